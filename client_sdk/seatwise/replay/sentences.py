"""Says in a sentence what a journal entry did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from seatwise.kits.frames import FrameWriter, PlayedMove
from seatwise_referee.ending import Ending
from seatwise_referee.journal import (
    Agreed,
    AgreedReason,
    Called,
    Defaulted,
    DefaultReason,
    Entry,
    Finished,
    Forfeited,
    Moved,
    Resigned,
    Voided,
)

MOST_NAME_LETTERS = 80
"""The most letters of a name that are shown."""

_FORFEITS = {
    Ending.TIMED_OUT: "forfeits: its time ran out too often",
    Ending.ILLEGAL_MOVES: "forfeits: it made too many illegal moves",
    Ending.NEVER_SAT: "forfeits: it never sat down",
}

_DEFAULTS = {
    DefaultReason.TIMED_OUT: "{name}'s time is over, so the referee plays for it: it {what}.",
    DefaultReason.FORFEITED: "{name} has forfeited, so the referee plays for it: it {what}.",
    DefaultReason.RESIGNED: "{name} has resigned, so the referee plays for it: it {what}.",
}


def short_names(bots: Sequence[str]) -> tuple[str, ...]:
    """Return a short name for each bot of a match, all different.

    >>> short_names(["bots/ann/versions/1", "bots/bob/versions/2", "bots/ann/versions/1"])
    ('ann (seat 0)', 'bob', 'ann (seat 2)')
    """
    short = [make_printable(bot.removeprefix("bots/").partition("/")[0] or bot) for bot in bots]
    times = Counter(short)
    return tuple(f"{name} (seat {seat})" if times[name] > 1 else name for seat, name in enumerate(short))


def make_printable(text: str) -> str:
    """Return a name of a record as text that is safe to print: a record may hold anything where a name belongs.

    >>> make_printable("ann\\x1b[2J")
    'ann\\\\x1b[2J'
    """
    letters = (
        letter if letter.isprintable() else f"\\x{ord(letter):02x}"
        for letter in text[: MOST_NAME_LETTERS + 1]
    )
    shown = "".join(letters)
    return shown if len(shown) <= MOST_NAME_LETTERS else f"{shown[:MOST_NAME_LETTERS]}..."


def join_names(names: Sequence[str]) -> str:
    """Return the names as a list in a sentence.

    >>> join_names(["ann", "bob", "eve"])
    'ann, bob and eve'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def describe_entry(
    entry: Entry, moves: Sequence[PlayedMove], names: Sequence[str], writer: FrameWriter
) -> str:
    """Return the entry as a sentence; "" for an entry that no step is made of.

    `moves` are its moves as the viewpoint may know them. No other part of the entry says what was played.
    """
    match entry:
        case Moved():
            return " ".join(f"{names[each.seat]} {_describe_move(each, writer)}." for each in moves)
        case Defaulted():
            return " ".join(
                _DEFAULTS[entry.reason].format(name=names[each.seat], what=_describe_move(each, writer))
                for each in moves
            )
        case Called():
            callers = [names[call.seat] for call in entry.calls]
            at = " at the same time" if len(callers) > 1 else ""
            return f"{join_names(callers)} {'call' if len(callers) > 1 else 'calls'}{at}."
        case Agreed():
            is_timeout = entry.reason is AgreedReason.TIMED_OUT
            return "The time of the round is over." if is_timeout else "All agree to end the round."
        case Resigned():
            return f"{names[entry.seat]} resigns."
        case Forfeited():
            return f"{names[entry.seat]} {_FORFEITS.get(entry.ending, 'forfeits')}."
        case Finished():
            return _describe_end(entry, names)
        case Voided():
            return f"The match is void ({entry.reason}): it has no result."
    return ""


def _describe_move(played: PlayedMove, writer: FrameWriter) -> str:
    return "moves" if played.move is None else writer.describe_move(played.move)


def _describe_end(entry: Finished, names: Sequence[str]) -> str:
    points: Any = entry.outcome["points"]
    ranks: Any = entry.result["ranks"]
    winners = [name for name, rank in zip(names, ranks, strict=True) if rank == 1]
    verb = "win together" if len(winners) > 1 else "wins"
    scored = ", ".join(f"{name} {own}" for name, own in zip(names, points, strict=True))
    return f"The match is over, and {join_names(winners)} {verb}. Points: {scored}."
