"""`check_game` finds each of these wrong games, and says so in the sentence that fits it."""

from __future__ import annotations

import itertools
import json
import random
import time
from contextlib import suppress
from typing import Any, ClassVar

import pytest
from doubles.hosted_games import Bids, Guesses, Highest, load_leduc, use_game

from seatwise.cli import main
from seatwise.hosting import GameFault, HostedGame, HostedOption
from seatwise.testing import check_game


class Raises(Highest):
    """Fails when the last card is laid."""

    def play_move(self, state: Any, move: Any, chance: Any) -> Any:
        after = super().play_move(state, move, chance)
        return after if any(after.hands) else after.hands[9]


class NeverEnds(Highest):
    most_moves = 20

    def play_move(self, state: Any, move: Any, chance: Any) -> Any:
        return state


class DrawsLots(Highest):
    """Takes its chance from elsewhere."""

    def start_match(self, seats: int, options: Any, chance: Any) -> Any:
        return super().start_match(seats, options, chance)._replace(played=(random.randrange(10**9),) * seats)


class Remembers(Highest):
    """Has a memory outside of the state."""

    def __init__(self) -> None:
        self.calls = itertools.count()

    def count_points(self, state: Any) -> list[int]:
        return [next(self.calls)] * len(state.hands)


class Changes(Highest):
    """Changes the state that it is given."""

    def start_match(self, seats: int, options: Any, chance: Any) -> Any:
        return {
            "hands": [list(hand) for hand in super().start_match(seats, options, chance).hands],
            "played": [],
        }

    def find_turn(self, state: Any) -> int | None:
        seat = len(state["played"]) % len(state["hands"])
        return seat if state["hands"][seat] else None

    def list_moves(self, state: Any) -> list[Any]:
        return list(state["hands"][self.find_turn(state)])

    def play_move(self, state: Any, move: Any, chance: Any) -> Any:
        state["hands"][self.find_turn(state)].remove(move)
        state["played"].append(move)
        return state

    def show_state(self, state: Any, seat: int | None) -> dict[str, Any]:
        return {"hand": [] if seat is None else list(state["hands"][seat]), "played": list(state["played"])}

    def count_points(self, state: Any) -> list[int]:
        return [0] * len(state["hands"])

    resample_state = HostedGame.resample_state


class Leaks(Highest):
    """Shows the next seat's lowest card, late in the match only."""

    def show_state(self, state: Any, seat: int | None) -> dict[str, Any]:
        shown = super().show_state(state, seat)
        other = state.hands[((seat or 0) + 1) % len(state.hands)]
        return {**shown, "hint": other[0] if len(state.played) > 2 and other and seat is not None else 0}


class LeaksToSpectators(Highest):
    def show_state(self, state: Any, seat: int | None) -> dict[str, Any]:
        return super().show_state(state, seat or 0)


class LeaksByMoves(Highest):
    """Lists a move only if another seat could beat it."""

    def list_moves(self, state: Any) -> list[Any]:
        own = super().list_moves(state)
        others = max((max(hand, default=0) for hand in state.hands), default=0)
        return [move for move in own if move["card"] <= others // 2] or own


class LeaksByTurn(Highest):
    """The seat with the lowest card is always next."""

    def find_turn(self, state: Any) -> int | None:
        held = [(hand[0], seat) for seat, hand in enumerate(state.hands) if hand]
        return min(held)[1] if held else None


class HalfPoints(Highest):
    def count_points(self, state: Any) -> list[Any]:
        return [points / 2 for points in super().count_points(state)]


class NoJson(Highest):
    def show_state(self, state: Any, seat: int | None) -> dict[str, Any]:
        return {**super().show_state(state, seat), "seen": set(state.played)}


class Disagrees(Highest):
    """Lists a move that it does not play."""

    def list_moves(self, state: Any) -> list[Any]:
        return [*super().list_moves(state), {"pass": True}]


class SameMoveTwice(Highest):
    def list_moves(self, state: Any) -> list[Any]:
        return super().list_moves(state) * 2


class NoSeat(Highest):
    def find_turn(self, state: Any) -> int | None:
        turn = super().find_turn(state)
        return None if turn is None else turn + 1


def spin(seconds: float) -> None:
    """Uses so much CPU time."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


class Slow(Highest):
    def show_state(self, state: Any, seat: int | None) -> Any:
        spin(0.008)
        return super().show_state(state, seat)


class Sleepy(Highest):
    def play_move(self, state: Any, move: Any, chance: Any) -> Any:
        time.sleep(0.25)
        return super().play_move(state, move, chance)


class Nameless(Highest):
    name = "My Game"


class Restless(Highest):
    """Lists its moves in another order each time, which tells nobody anything."""

    def __init__(self) -> None:
        self.calls = itertools.count()

    def list_moves(self, state: Any) -> list[Any]:
        moves = super().list_moves(state)
        shift = next(self.calls) % len(moves)
        return moves[shift:] + moves[:shift]


class HalfACharacter(Highest):
    def show_state(self, state: Any, seat: int | None) -> dict[str, Any]:
        return {**super().show_state(state, seat), "mood": "\ud83d"}


class LeaksByChoices(Bids):
    def list_choices(self, state: Any, seat: int) -> list[Any]:
        own, other = state.hands[seat], state.hands[seat - 1]
        return [card for card in own if card < other[0]] or list(own)


class SameSeatTwice(Bids):
    def find_turn(self, state: Any) -> Any:
        return [0, 0] if state.hands[0] else None


class OneMoveForAll(Bids):
    """Forgets to play what several seats have chosen."""

    play_choices = HostedGame.play_choices


class Permissive(Guesses):
    """Allows what it cannot play."""

    def check_move(self, state: Any, seat: int, move: Any) -> str:
        return ""


class Forbids(Guesses):
    """Lists a move that it refuses."""

    def check_move(self, state: Any, seat: int, move: Any) -> str:
        return "no"


class Nods(Guesses):
    def check_move(self, state: Any, seat: int, move: Any) -> Any:
        return True


class TellsByRefusals(Guesses):
    """Refuses an empty list to a seat if the other seat has an even card."""

    def check_move(self, state: Any, seat: int, move: Any) -> str:
        return "no" if move == [] and state.hands[seat - 1][0] % 2 else super().check_move(state, seat, move)


class Silent(Highest):
    """Is over before it begins."""

    def find_turn(self, state: Any) -> int | None:
        return None


class Usurps(Highest):
    name = "ugo"


class EndsTheProcessByItsText(Highest):
    """Raises an exception whose text cannot be made, in a way that would end the process."""

    def show_state(self, state: Any, seat: int | None) -> dict[str, Any]:
        raise Unspeakable


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise SystemExit(0)

    __repr__ = __str__


class EndsTheProcessByAKey(Highest):
    def show_state(self, state: Any, seat: int | None) -> Any:
        return {Unspeakable(): 1}


class FloodsTheLog(Highest):
    def show_state(self, state: Any, seat: int | None) -> dict[str, Any]:
        return {"k" * 10**6: {1}}


class NumberWithoutText(Highest):
    """Shows a number that Python itself refuses to write."""

    def show_state(self, state: Any, seat: int | None) -> dict[str, Any]:
        return {"n": 10**5000}


class OwnFault(Highest):
    """Raises the referee's own error."""

    def play_move(self, state: Any, move: Any, chance: Any) -> Any:
        raise GameFault("all is well")


class NoOptions(Highest):
    options = None  # type: ignore[assignment]


class Deep(Highest):
    def play_move(self, state: Any, move: Any, chance: Any) -> Any:
        return self.play_move(state, move, chance)


class Leaves(Highest):
    def play_move(self, state: Any, move: Any, chance: Any) -> Any:
        raise SystemExit(0)


class NotANumber(Highest):
    def count_points(self, state: Any) -> list[Any]:
        return [float("nan")] * len(state.hands)


class LeaksByOrder(Highest):
    def list_moves(self, state: Any) -> list[Any]:
        moves, next_hand = super().list_moves(state), state.hands[(self.find_turn(state) or 0) - 1]
        return moves[::-1] if sum(next_hand) % 2 else moves


class LeaksByLength(Highest):
    def show_state(self, state: Any, seat: int | None) -> dict[str, Any]:
        return {**super().show_state(state, seat), "pad": " " * sum(state.hands[0]) if seat else ""}


class HalfAWeight(Highest):
    def start_match(self, seats: int, options: Any, chance: Any) -> Any:
        chance.draw_outcome([(1, 0.5)])


WRONG = {
    EndsTheProcessByItsText: "show_state raised Unspeakable, which has no text",
    EndsTheProcessByAKey: "a step raised SystemExit",
    FloodsTheLog: "show_state returned a value that is no JSON here: kkk",
    NumberWithoutText: "whole numbers end at 2^53 - 1",
    OwnFault: "play_move raised GameFault: all is well",
    NoOptions: "options is a dict of HostedOption by name, not NoneType",
    Deep: "play_move raised RecursionError",
    Leaves: "play_move raised SystemExit",
    NotANumber: "count_points must return 2 whole numbers",
    LeaksByOrder: "list_moves tells seat",
    LeaksByLength: "show_state shows seat 1 a secret",
    HalfAWeight: "start_match raised ValueError: the weight 0.5",
    Raises: "play_move raised IndexError",
    NeverEnds: "the match has no end after 20 moves",
    DrawsLots: "start_match gives another result when it is called again with the same arguments",
    Remembers: "gives another result when it is called again",
    Changes: "play_move changes the state that it is given",
    Leaks: "show_state shows seat 0 a secret",
    LeaksToSpectators: "show_state shows a spectator a secret",
    LeaksByMoves: "list_moves tells seat",
    LeaksByTurn: "find_turn tells seat",
    HalfPoints: "count_points must return 2 whole numbers",
    NoJson: "show_state returned a value that is no JSON here: seen has the type set",
    Disagrees: "play_move raised KeyError",
    SameMoveTwice: "list_moves returned a move twice",
    NoSeat: "find_turn returned 2; a seat is 0 to 1, or None",
    Slow: "ms each of CPU time, mostly in show_state; more than 20 ms are too slow",
    Sleepy: "ms each by the clock, and wait for something, mostly in play_move; more than 200 ms are too slow",
    Restless: "list_moves gives another result when it is called again with the same state",
    HalfACharacter: "mood has half of a surrogate pair",
    LeaksByChoices: "list_choices tells seat 0 a secret",
    SameSeatTwice: "find_turn returned [0, 0]; a seat is 0 to 1, or None, or a list of seats",
    OneMoveForAll: "play_choices raised NotImplementedError",
    Permissive: "check_move allows the move null, and then play_move raised TypeError",
    Forbids: 'check_move refuses the move {"guess":0}, which list_moves lists: no',
    Nods: "check_move must return a text",
    TellsByRefusals: "check_move tells seat",
    Silent: "no seat is ever asked",
    Usurps: "there is another game ugo",
    Nameless: "a game's name has lower-case letters",
}


@pytest.mark.parametrize(("game", "why"), WRONG.items(), ids=[game.__name__ for game in WRONG])
def test_a_wrong_game_is_found(game: type[Highest], why: str) -> None:
    report = None
    with suppress(SystemExit):  # which would end pytest itself
        report = check_game(game, matches=1 if game in (Slow, Sleepy) else 4)
    assert report, "the game has ended its checker"
    assert any(why in fault for fault in report.faults), report
    assert max(map(len, report.faults)) < 400


@pytest.mark.parametrize(
    "game", [Highest, load_leduc(), Bids, Guesses], ids=["highest", "leduc", "bids", "guesses"]
)
def test_a_game_that_is_right_has_no_fault(game: type[Highest]) -> None:
    report = check_game(game, matches=6)
    assert report.faults == ()
    assert report.secrets == "checked"
    assert report.digest == check_game(game, matches=6).digest


def test_an_option_may_have_any_number_of_values() -> None:
    class Wide(Highest):
        options: ClassVar[dict[str, HostedOption]] = {
            **Highest.options,
            "salt": HostedOption(0, range(10**12)),
        }

    assert check_game(Wide, matches=5).faults == ()


def test_a_step_that_waits_for_a_busy_machine_is_no_fault() -> None:
    class Waits(Highest):
        def play_move(self, state: Any, move: Any, chance: Any) -> Any:
            time.sleep(0.03)
            return super().play_move(state, move, chance)

    assert check_game(Waits, matches=1).faults == ()


def test_a_game_that_cannot_resample_is_told_so() -> None:
    class Open(Highest):
        resample_state = HostedGame.resample_state

    assert check_game(Open, matches=2).secrets == "not checked: the game has no resample_state"


@pytest.mark.parametrize("resamples", [True, False])
def test_a_game_that_hides_nothing_from_one_seat_alone_says_so(resamples: bool) -> None:
    """Whatever is hidden, such as a pile, is hidden from all; a view may name its own seat."""

    class Shared(Highest):
        def show_state(self, state: Any, seat: int | None) -> Any:
            return {"you": seat, "played": list(state.played)}

        def resample_state(self, state: Any, seat: int | None, chance: Any) -> Any:
            return state if resamples else super(Highest, self).resample_state(state, seat, chance)

    if not resamples:
        Shared.resample_state = HostedGame.resample_state  # type: ignore[method-assign]
    assert check_game(Shared, matches=3).secrets == "not checked: nothing is hidden from one seat alone"


def test_resampling_that_changes_nothing_checks_no_secrets() -> None:
    class Pretends(Highest):
        def resample_state(self, state: Any, seat: int | None, chance: Any) -> Any:
            return state

    assert "never changes anything" in check_game(Pretends, matches=2).secrets


def test_the_command_says_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Chatty(Highest):
        def find_turn(self, state: Any) -> int | None:
            print("hello")
            return super().find_turn(state)

    use_game(monkeypatch, Chatty)
    use_game(monkeypatch, type("Wrong", (HalfPoints,), {"name": "wrong"}))
    assert main(["check-game", "wrong", "--matches", "2", "--once"]) == 1
    assert "wrong: count_points must return" in capsys.readouterr().out
    assert main(["check-game", "highest", "--matches", "2", "--once", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["faults"] == []
    assert main(["check-game", "ugo"]) == 2
    assert "it is no game from outside" in capsys.readouterr().err
