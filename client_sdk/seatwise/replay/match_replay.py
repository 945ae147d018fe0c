"""A whole match for a viewer: what is fixed about it, its frames, and its result."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

from seatwise.errors import UsageError
from seatwise.kits.frames import ALL_OPEN, Frame, FrameWriter, Viewpoint, count_totals
from seatwise.replay.frame_builder import HintSource, build_frames, make_printable, short_names
from seatwise_referee.journal import entry_from_json
from seatwise_referee.verify import verify_line
from seatwise_referee.verify.header import setup_of


@dataclass(frozen=True, slots=True)
class MatchReplay:
    """A match with its frames. `to_json` is what the viewer in a browser takes."""

    match: str
    """The name of the match: matches/{id}."""

    game: str
    """The name of the game."""

    bots: tuple[str, ...]
    """The bots by seat, each as bots/{bot}/versions/{version}."""

    viewpoint: Viewpoint
    """The viewpoint of all frames."""

    frames: tuple[Frame, ...]
    """The positions, one for each step."""

    points: tuple[int, ...] = ()
    """The points by seat; empty while the match goes on."""

    ranks: tuple[int, ...] = ()
    """The ranks that count, by seat; empty while the match goes on."""

    endings: tuple[str, ...] = ()
    """How the match ended for each seat, an `Ending`; empty while it goes on."""

    chain: str = ""
    """The end of the record's chain, in hex; empty without a record."""

    @property
    def decisive_step(self) -> int:
        """The first step from which on no other bot has as many points as a winner, those of the open round included.

        The last step where no points decide, as after a forfeit, or while the match goes on.
        """
        last, seats = len(self.frames) - 1, range(len(self.bots))
        others = [seat for seat in seats if self.ranks and self.ranks[seat] > 1]
        for step in range(last, -1, -1):
            totals = count_totals(self.frames[step].table, len(self.bots))
            least = min((totals[seat] for seat in seats if seat not in others), default=0)
            if not others or max(totals[seat] for seat in others) >= least:
                return min(step + 1, last)
        return 0

    @property
    def names(self) -> tuple[str, ...]:
        """The short names of the bots, by seat."""
        return short_names(self.bots)

    def to_json(self) -> dict[str, Any]:
        """Return the replay as JSON. Its keys are the names of the fields, `names` and `decisive_step`."""
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        frames = [frame.to_json() for frame in self.frames]
        return told | {"names": self.names, "decisive_step": self.decisive_step, "frames": frames}


def build_replay(
    record: dict[str, Any],
    viewpoint: Viewpoint = ALL_OPEN,
    *,
    has_hints: bool = False,
    writer: FrameWriter | None = None,
) -> MatchReplay:
    """Return the replay of a record that is known to be genuine, such as one that this server wrote.

    Args:
        record: The record, as JSON.
        viewpoint: `ALL_OPEN`, `SPECTATOR`, or the number of a seat.
        has_hints: Whether frames say what the strongest sample bot would play. That takes seconds.
        writer: Writes the positions, if not the writer of the game.

    Returns:
        The whole match.
    """
    setup = setup_of(record)
    hints = HintSource(setup.game) if has_hints else None
    return MatchReplay(
        match=make_printable(setup.match),
        game=setup.game,
        bots=tuple(map(make_printable, setup.bots)),
        viewpoint=viewpoint,
        frames=tuple(build_frames(setup, map(entry_from_json, record["entries"]), viewpoint, hints, writer)),
        points=tuple(record["outcome"]["points"]),
        ranks=tuple(record["result"]["ranks"]),
        endings=tuple(record["endings"]),
        chain=record["chain"],
    )


def read_replay(
    line: str | bytes, viewpoint: Viewpoint = ALL_OPEN, *, has_hints: bool = False
) -> MatchReplay:
    """Check a record, and return its replay.

    Args:
        line: The record, one line of a file of records.
        viewpoint: `ALL_OPEN`, `SPECTATOR`, or the number of a seat.
        has_hints: Whether frames say what the strongest sample bot would play. That takes seconds.

    Returns:
        The whole match.

    Raises:
        UsageError: The record is not genuine, or there is no such seat. The text says what is wrong.
    """
    verdict = verify_line(line)
    if verdict.fault or verdict.setup is None:
        is_unchecked = verdict.fault is not None and verdict.fault.is_unchecked
        raise UsageError(str(verdict.fault) if is_unchecked else f"the record is wrong: {verdict.fault}")
    seats = len(verdict.setup.bots)
    if isinstance(viewpoint, int) and viewpoint not in range(seats):
        raise UsageError(f"there is no seat {viewpoint}: the seats are 0 to {seats - 1}")
    return build_replay(json.loads(line), viewpoint, has_hints=has_hints)
