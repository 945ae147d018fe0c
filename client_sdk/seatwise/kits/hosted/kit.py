"""The kit of a game from outside: all that the product knows of it follows from the author's `HostedKit`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from seatwise.errors import BadAnswerError
from seatwise.hosting import GameFault, HostedGame, HostedKit
from seatwise.kits.game_kit import CasualQueue, GameKit, HouseSeat, TurnMethod, shorten
from seatwise_referee.hosted.hosted_rules import MOVE_PACE, HostedRules, guard_call
from seatwise_referee.hosted.payload import LONGEST_MOVE, HostedMove, HostedView, encode_payload

RANDOM_SAMPLE: Final = {"random": "seatwise.kits.hosted.samples:RandomMove"}
"""The sample that every game from outside has."""

LEVEL_SAMPLE: Final = "seatwise.kits.hosted.samples:make_house_level"
"""The sample for each level of house bots."""

SHORT_VIEW: Final = 200
"""The most characters of a view in a line of text."""


def read_json_move(answer: object, view: HostedView) -> HostedMove:
    """Return the move for the answer of a bot. Raises `BadAnswerError` if it is no legal move."""
    try:
        text = encode_payload(answer, LONGEST_MOVE)
    except ValueError as wrong:
        raise BadAnswerError(f"decide(view) returned {shorten(answer)}, which is no JSON: {wrong}") from None
    if text not in view.legal and not view.has_more_moves:
        some = ", ".join(view.legal[:8]) + (", ..." if len(view.legal) > 8 else "")
        raise BadAnswerError(
            f"{text[:60]} is not legal here: decide(view) must return one of view.legal_moves, here {some}"
        )
    return HostedMove(text)


def list_json_moves(view: HostedView) -> Mapping[str, Any]:
    """Return the legal moves by their JSON."""
    return dict(zip(view.legal, view.legal_moves, strict=True))


def describe_json_view(view: HostedView) -> str:
    """Return the view as text, shortened."""
    return view.text if len(view.text) <= SHORT_VIEW else f"{view.text[:SHORT_VIEW]}..."


def describe_json_move(move: HostedMove) -> str:
    """Return the move as JSON."""
    return move.text


def complete_kit(found: object) -> HostedKit:
    """Return the kit for a `HostedKit`, a `HostedGame` or a class derived from it. Raises `GameFault` for anything else."""
    if isinstance(found, type) and issubclass(found, HostedGame):
        found = HostedKit(guard_call(found.__name__, found))
    if isinstance(found, HostedGame):
        found = HostedKit(found)
    if not isinstance(found, HostedKit) or not isinstance(found.game, HostedGame):
        told = guard_call("repr", lambda: repr(found)[:60])
        raise GameFault(f"{told} is neither a class derived from HostedGame nor a HostedKit")
    if any(type(text) is not str for pair in found.samples.items() for text in pair):
        raise GameFault(
            f"{found.game.name}: its samples are texts by name, as in {{'caller': 'my_bots:Caller'}}"
        )
    return found


def make_hosted_kit(rules: HostedRules, title: str, samples: Mapping[str, str]) -> GameKit:
    """Return the kit of a game from outside."""
    levels = rules.house_levels
    return GameKit(
        game=rules,
        title=title,
        methods={MOVE_PACE: TurnMethod("decide", read_json_move)},
        samples={**RANDOM_SAMPLE, **dict.fromkeys(levels, LEVEL_SAMPLE), **samples},
        other_house_bots=tuple(_house_seats(rules.name, levels, rules.table_sizes[-1] - 1)),
        queues=(CasualQueue(f"casual-{rules.name}", rules.table_sizes[0]),),
        codec_module="seatwise.kits.hosted.codec",
        describe_view=describe_json_view,
        describe_move=describe_json_move,
        list_moves=list_json_moves,
        is_hosted=True,
        frames_module="seatwise.kits.hosted.frames",
    )


def _house_seats(game: str, levels: Sequence[str], needed: int) -> Iterator[HouseSeat]:
    """Yield as many house bots of each level as a match can lack: house-hearts-club, house-hearts-club-2 and so on."""
    for level in levels:
        for number in range(1, needed + 1):
            yield HouseSeat(f"house-{game}-{level}{f'-{number}' if number > 1 else ''}", level)


class UninstalledGame(HostedGame[Any]):
    """Stands for a game from outside that is played on a server and is not installed here.

    A bot needs no more of it than its name: the server sends views and legal moves.
    """

    table_sizes = range(2, 17)

    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]  # a class variable of other games


def make_remote_kit(name: str) -> GameKit:
    """Return the kit for a game that is installed on the server only. Raises `GameFault` if no game can have the name."""
    return make_hosted_kit(HostedRules(UninstalledGame(name)), name, {})
