"""Writes the positions that a spectator may see in the form of a replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatwise.kits import find_kit
from seatwise.kits.codecs import CODECS
from seatwise.replay import Frame, OpenedHands
from seatwise.replay.sentences import short_names
from seatwise.v1 import match_pb2, match_service_pb2
from seatwise_server.pages.page_filters import last_part, show_span


class PositionWriter:
    """Writes the positions of one match as a spectator sees them."""

    def __init__(self, match: match_pb2.Match) -> None:
        game = last_part(match.game)
        self._codec = CODECS[game]
        self._writer = find_kit(game).load_frame_writer()
        self._names = short_names(tuple(match.bots))
        self._last: tuple[match_service_pb2.WatchMatchResponse, Any] | None = None
        """The position that was read last, and its view: the next step begins with it."""

    def frames_between(
        self,
        before: match_service_pb2.WatchMatchResponse | None,
        after: match_service_pb2.WatchMatchResponse,
    ) -> list[Frame]:
        """Returns the step to the second position, and before it the end of a round if one ended in between.

        Returns no step where nothing has changed.
        """
        old, new = self._view_of(before) if before else None, self._view_of(after)
        table = self._writer.write_table(new)
        if old is None:
            return [self._frame("round", _describe_deal(table), table)]
        opened = () if before and list(before.opened) == list(after.opened) else _opened_in(after)
        if old == new and not opened:
            return []
        changes = self._writer.describe_seen_moves, self._writer.describe_change
        said = " ".join(filter(None, (describe(old, new, self._names) for describe in changes)))
        said = said or f"{show_span(after.at_ms)} after the start."
        ended = self._writer.write_round_end(old, new)
        if ended is None:
            return [self._frame("live", said, table, opened)]
        is_over = table.get("round") == ended.get("round")
        following = [] if is_over else [self._frame("round", _describe_deal(table), table)]
        return [self._frame("live", said, ended, opened), *following]

    def draw_position(self, response: match_service_pb2.WatchMatchResponse) -> str:
        """Returns a position as text."""
        frame = self._frame("live", "", self._writer.write_table(self._view_of(response)))
        return self._writer.draw_text(frame, self._names)

    def _view_of(self, response: match_service_pb2.WatchMatchResponse) -> Any:
        if self._last is None or self._last[0] is not response:
            self._last = response, self._codec.decode_view(getattr(response, self._codec.field))
        return self._last[1]

    def _frame(self, kind: str, says: str, table: Any, opened: tuple[OpenedHands, ...] = ()) -> Frame:
        seats = len(self._names)
        return Frame(
            kind=kind,
            says=says,
            asked=(),
            moves=(),
            points=_total_points(table.get("points", ()), seats),
            table=table,
            own=(None,) * seats,
            times=(None,) * seats,
            left=("",) * seats,
            opened=opened,
        )


def _describe_deal(table: Any) -> str:
    number = table.get("round")
    return f"Round {number} is dealt." if number else "The cards are dealt."


def _opened_in(response: match_service_pb2.WatchMatchResponse) -> tuple[OpenedHands, ...]:
    return tuple(
        OpenedHands(each.round, tuple(_cards_of(hand) for hand in each.hands)) for each in response.opened
    )


def _cards_of(hand: match_service_pb2.OpenedHand) -> tuple[tuple[str, str], ...]:
    symbols = hand.symbols or [""] * len(hand.cards)
    return tuple(zip(hand.cards, symbols, strict=True))


def _total_points(rounds: Sequence[Sequence[int]], seats: int) -> tuple[int, ...]:
    return tuple(sum(each[seat] for each in rounds) for seat in range(seats))
