"""Lets spectators follow a match from any process. It reads the journal, not the referee's memory: only safe entries.

One tail reads the journal of a match for all spectators of this process. Each of them is sent the newest that there is, or
every position from the deal on.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any

import structlog
from google.protobuf.timestamp_pb2 import Timestamp

from seatwise.codec.wire_format import encode_field
from seatwise.kits import KITS
from seatwise.kits.codecs import CODECS
from seatwise.v1 import match_service_pb2 as pb
from seatwise_referee.games.registry import GAMES
from seatwise_referee.journal import Entry, Finished, Rejected, Voided, decode_entry, entry_from_json
from seatwise_referee.position import Position, first_position, position_after
from seatwise_referee.setup import Setup
from seatwise_server import resources
from seatwise_server.config import SpectatorDelay
from seatwise_server.game_choice import is_hosted_game
from seatwise_server.play.game_views import GameViews, ViewsFailed
from seatwise_server.refusal import Refusal
from seatwise_server.store import MatchMeta, Store
from seatwise_server.streams import SharedStream

TAIL_BLOCK_MS = 1000
LATE_CHECK_S = 10.0
"""The check of a game from outside is awaited for so long after the end of a match. It takes some three seconds, once for each game."""
SHORTEST_UPDATE_S = 0.1
"""Positions are sent at most so often: a person sees no more of them."""
MOST_WATCHED_MATCHES = 500
"""The most matches that are followed at a time: each tail keeps a connection to the store open."""
MOST_KEPT_RESPONSES = 1_000
"""Responses of a match that are kept for those who want all of them: about 500 bytes each. The longest match of UGO! has 400."""

log = structlog.get_logger()


class MatchWatcher:
    """Follows matches for any number of spectators, each match by one tail."""

    def __init__(self, store: Store, delay: SpectatorDelay = SpectatorDelay.LIVE) -> None:
        self._store = store
        self._delay = delay
        self._views = GameViews()
        self._broadcasts: dict[str, MatchBroadcast] = {}

    async def follow_match(
        self, name: str, *, has_all: bool = False
    ) -> AsyncGenerator[pb.WatchMatchResponse, None]:
        """Yield the present state of the match, then the newest change, then its end; or all changes since the deal.

        Several spectators are given the same object: nobody may change it. Raises `Refusal` SERVER_FULL.
        """
        broadcast = self._broadcasts.get(name) or self._begin_broadcast(name)
        broadcast.spectators += 1
        try:
            async for response in broadcast.all_responses() if has_all else broadcast.newest_responses():
                yield response
        finally:
            broadcast.spectators -= 1
            if not broadcast.spectators:
                self._forget_broadcast(name, broadcast)  # now: who comes while it stops needs another
                await broadcast.stop()

    def _begin_broadcast(self, name: str) -> MatchBroadcast:
        if len(self._broadcasts) >= MOST_WATCHED_MATCHES:
            message = f"{MOST_WATCHED_MATCHES} matches are watched already; try again soon"
            raise Refusal("SERVER_FULL", message, retry_after="5")
        broadcast = self._broadcasts[name] = MatchBroadcast()
        tail = MatchTail(self._store, name, self._delay, self._views)
        broadcast.start(tail.read_responses(), on_end=lambda: self._forget_broadcast(name, broadcast))
        return broadcast

    def _forget_broadcast(self, name: str, broadcast: MatchBroadcast) -> None:
        if self._broadcasts.get(name) is broadcast:
            del self._broadcasts[name]


class MatchBroadcast:
    """The positions of one match that spectators may see: the newest, and all since the deal."""

    def __init__(self) -> None:
        self.spectators = 0
        self._count = 0
        self._newest: dict[bool, tuple[int, pb.WatchMatchResponse]] = {}
        """The newest response with the match, and the newest with a position, each with its number."""
        self._kept: list[bytes] = []
        """The first response, and all others or the last ones of them."""
        self._stream = SharedStream()

    def start(self, tail: AsyncGenerator[pb.WatchMatchResponse, None], on_end: Callable[[], object]) -> None:
        """Begin to read the tail. `on_end` is called at its end: who comes later needs another tail."""
        self._stream.start(tail, self._keep_response, on_end)

    async def stop(self) -> None:
        """Stop reading."""
        await self._stream.stop()

    async def newest_responses(self) -> AsyncIterator[pb.WatchMatchResponse]:
        """Yield the newest responses until the match is over. A slow reader misses what came in between."""
        seen: dict[bool, int] = {}
        while True:
            unseen = [(told[0], kind) for kind, told in self._newest.items() if told[0] > seen.get(kind, 0)]
            if unseen:
                kind = not seen or min(unseen)[1]  # the match comes first
                seen[kind], response = self._newest[kind]
                yield response
            elif not await self._stream.wait_for_change():
                return

    async def all_responses(self) -> AsyncIterator[pb.WatchMatchResponse]:
        """Yield every response until the match is over, the first one first. It skips what is kept no more."""
        seen = 0
        while True:
            place = seen and max(1, seen - self._left_out)
            if place < len(self._kept):
                seen = place + self._left_out + 1 if place else 1
                yield pb.WatchMatchResponse.FromString(self._kept[place])
            elif not await self._stream.wait_for_change():
                return

    @property
    def _left_out(self) -> int:
        return self._count - len(self._kept)

    def _keep_response(self, response: pb.WatchMatchResponse) -> None:
        self._count += 1
        self._newest[response.HasField("match")] = self._count, response
        self._kept.append(response.SerializeToString())
        if len(self._kept) > MOST_KEPT_RESPONSES:
            del self._kept[1]


class MatchTail:
    """Reads the journal of one match as it grows."""

    def __init__(self, store: Store, name: str, delay: SpectatorDelay, views: GameViews) -> None:
        self._store = store
        self._name = name
        self._delay = delay
        self._views = views

    async def read_responses(self) -> AsyncGenerator[pb.WatchMatchResponse, None]:
        """Yield the match, then every position as soon as it may be shown, then the end."""
        meta = await self._store.matches.get_meta(self._name)
        if meta is None:
            return
        yield _match_response(meta)
        setup = Setup.from_json(json.loads(meta.fields["setup"]))
        if not await self._may_show_positions(setup.game):
            async for told in self._follow_states(meta.state):
                yield told
            return
        if is_hosted_game(setup.game):
            shown: ShownPosition = HostedPosition(setup, self._delay, self._views)
        else:
            shown = ShownPosition(setup, self._delay)
        state = meta.state
        while not shown.is_over and meta and "result" not in meta.fields:
            found = await self._store.journal.wait_for_entries(self._name, shown.seq, TAIL_BLOCK_MS)
            responses = await shown.add_entries(list(map(decode_entry, found)))
            for response in responses:
                yield response
            meta = await self._store.matches.get_meta(self._name)
            if meta and meta.state != state and "result" not in meta.fields:
                state = meta.state
                yield _match_response(meta)
            if responses:
                await asyncio.sleep(SHORTEST_UPDATE_S)
        last = await self._wait_for_result()
        for response in await shown.add_entries(await self._read_rest(shown), is_over=True):
            yield response
        if last and last.state != state:
            yield _match_response(last)

    async def _may_show_positions(self, game: str) -> bool:
        """Wait for the check of a game from outside; False if it lasts long after the match, because it may hang as the game does."""
        check = asyncio.ensure_future(self._is_shown(game))
        patience_s = TAIL_BLOCK_MS / 1000
        try:
            while not (await asyncio.wait({check}, timeout=patience_s))[0]:
                if patience_s == LATE_CHECK_S:
                    return False
                meta = await self._store.matches.get_meta(self._name)
                if meta is None or "result" in meta.fields:
                    patience_s = LATE_CHECK_S
            return check.result()
        finally:
            check.cancel()

    async def _follow_states(self, state: str) -> AsyncIterator[pb.WatchMatchResponse]:
        """Yield the match whenever its state has changed, until it is over."""
        while (meta := await self._store.matches.get_meta(self._name)) is not None:
            if meta.state != state:
                state = meta.state
                yield _match_response(meta)
            if "result" in meta.fields:
                return
            await asyncio.sleep(TAIL_BLOCK_MS / 1000 / 4)

    async def _wait_for_result(self) -> MatchMeta | None:
        """Wait for the match's result, which follows the last entry within a moment."""
        while True:
            meta = await self._store.matches.get_meta(self._name)
            if meta is None or "result" in meta.fields:
                return meta
            await asyncio.sleep(TAIL_BLOCK_MS / 1000 / 4)

    async def _read_rest(self, shown: ShownPosition) -> list[Entry]:
        """Return the entries that were not read before the journal was replaced by the record."""
        kept = None if shown.is_over else await self._store.matches.get_record(self._name)
        if not kept:
            return []
        return [entry_from_json(each) for each in json.loads(kept)["entries"][shown.seq :]]

    async def _is_shown(self, game: str) -> bool:
        return game in KITS and (not is_hosted_game(game) or await self._views.may_show_live(game))


class ShownPosition:
    """The position of a match, and which of its changes a spectator may be shown."""

    def __init__(self, setup: Setup, delay: SpectatorDelay) -> None:
        self.position = first_position(setup)
        self._setup = setup
        self._delay = delay
        self._held: list[pb.WatchMatchResponse] = []
        """Positions that are shown later."""

    @property
    def seq(self) -> int:
        """The number of the last entry."""
        return self.position.seq

    @property
    def is_over(self) -> bool:
        """Whether the match is over."""
        return self.position.end is not None

    async def add_entries(
        self, entries: Sequence[Entry], *, is_over: bool = False
    ) -> list[pb.WatchMatchResponse]:
        """Apply the entries. Return the positions that may be shown from now on, in their order."""
        shown = []
        for entry in entries:
            before = self.position
            self.position = position_after(before, entry, self._setup, GAMES[self._setup.game])
            # A rejection is only for its seat: a response without a change would reveal it.
            if not isinstance(entry, Rejected):
                self._held.append(spectator_view(self.position, self._setup, entry.at_ms))
                if self._delay is SpectatorDelay.LIVE or self._opens_hands(before):
                    shown += self._release_held()
        return shown + self._release_held() if is_over else shown

    def _release_held(self) -> list[pb.WatchMatchResponse]:
        released, self._held = self._held, []
        for response in released:
            response.send_time.CopyFrom(_now())
        return released

    def _opens_hands(self, before: Position) -> bool:
        """Whether the delay ends with this entry: the cards of a round have left play, or none were dealt before."""
        if self._delay is not SpectatorDelay.ROUND or self.position.state is None:
            return False
        game = GAMES[self._setup.game]
        return before.state is None or game.opened(self.position.state) != game.opened(before.state)


class HostedPosition(ShownPosition):
    """The position of a match of a game from outside, whose code runs in the process of `GameViews` alone."""

    def __init__(self, setup: Setup, delay: SpectatorDelay, views: GameViews) -> None:
        super().__init__(setup, delay)
        self._views = views
        self._entries: list[Entry] = []
        self._has_failed = False

    @property
    def seq(self) -> int:
        return len(self._entries)

    @property
    def is_over(self) -> bool:
        return bool(self._entries) and isinstance(self._entries[-1], (Finished, Voided))

    async def add_entries(
        self, entries: Sequence[Entry], *, is_over: bool = False
    ) -> list[pb.WatchMatchResponse]:
        """Return as `ShownPosition` does. A delay ends with the match; a game that fails is shown no further."""
        after = len(self._entries)
        self._entries += entries
        if entries and not self._has_failed:
            try:
                self._held += await self._views.read_steps(self._setup, self._entries, after)
            except ViewsFailed as failed:
                log.warning("match_not_shown", match=self._setup.match, why=str(failed))
                self._has_failed = True
        return self._release_held() if is_over or self._delay is SpectatorDelay.LIVE else []


def spectator_view(position: Position, setup: Setup, at_ms: int) -> pb.WatchMatchResponse:
    """Return the view that a spectator has of a position, with the hands that the rules have opened."""
    response = pb.WatchMatchResponse(at_ms=at_ms)
    if position.state is not None:
        game, codec = GAMES[setup.game], CODECS[setup.game]
        view = codec.encode_view(game.view(position.state, None))
        response.MergeFromString(encode_field(codec.number, view))
        response.opened.extend(map(_opened_round, game.opened(position.state)))
    return response


def _opened_round(opened: Any) -> pb.OpenedRound:
    symbols = opened.get("symbols", {})
    hands = [
        pb.OpenedHand(cards=hand, symbols=[symbols[card] for card in hand if card in symbols])
        for hand in opened["hands"]
    ]
    return pb.OpenedRound(round=opened["round"], hands=hands)


def _match_response(meta: MatchMeta) -> pb.WatchMatchResponse:
    return pb.WatchMatchResponse(match=resources.match_resource(meta), send_time=_now())


def _now() -> Timestamp:
    now = Timestamp()
    now.GetCurrentTime()
    return now
