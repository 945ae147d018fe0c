"""Of a forged race the first thing that is wrong is named, and each kind of forgery by a message of its own."""

from __future__ import annotations

import re
from copy import deepcopy

import pytest
from matches.forging import Body, Forgery, chained, drop, fault_of, insert, record_of, set_in, the
from matches.race_scenes import RACES

TIMES = {"asked_ms": 0, "allowance_ms": 0, "charged_ms": 0}


def change(kind: str, nth: int = 0, **values: object) -> Forgery:
    """The nth entry of that kind has these values."""
    return lambda body: the(body, kind, nth).update(values)


def change_call(number: int, nth: int = 0, **values: object) -> Forgery:
    """So has a call in the nth `called`."""
    return lambda body: the(body, "called", nth)["calls"][number].update(values)


def add(kind: str, after: str, nth: int = 0, **values: object) -> Forgery:
    """One more entry, after the nth of another kind."""
    return lambda body: insert(body, the(body, after, nth), kind=kind, **values)


def _doubled(body: Body) -> None:
    calls = the(body, "called")["calls"]
    calls.append(deepcopy(calls[-1]))


def _longer(body: Body) -> None:
    """Who is out had one card more by the next call."""
    layouts = the(body, "called", 1)["layouts"]
    layouts[0] = layouts[0][:-1]


def _overlapping(body: Body) -> None:
    layout = the(body, "called")["layouts"][2]
    layout[1][1:3] = layout[0][1:3]


def _of_another(body: Body) -> None:
    layouts = the(body, "called")["layouts"]
    layouts[2] = layouts[1]


def _as_a_move(body: Body) -> None:
    insert(body, the(body, "dealt"), kind="move", seat=0, prompt=1, move={"call": True}, **TIMES)


def _as_timed_out(body: Body) -> None:
    played = [{"seat": 0, "move": {"stop": True}, **TIMES}]
    insert(body, the(body, "dealt"), kind="default", reason="TIMED_OUT", prompt=1, moves=played)


def _kept_laying(body: Body) -> None:
    """In the round after its own exit seat 1 lays again."""
    default = the(body, "default", 2)
    lay = the(body, "default")["moves"][0]["move"]
    default["moves"].insert(0, {"seat": 1, "move": lay})


def _called_for(body: Body) -> None:
    the(body, "default")["moves"].insert(0, {"seat": 1, "move": {"offer_end": True}})


def _turned(body: Body) -> None:
    """A fitting card is turned to where it does not fit."""
    layout = the(body, "called")["layouts"][1]
    layout[0][3] = (layout[0][3] + 2) % 4


FORGERIES: dict[str, tuple[str, Forgery, str]] = {
    # what has no place in a race, or only there
    "move": ("raced", _as_a_move, r"^seq 5: `move` in a race; there what counts stands in `called`, `agreed` and"),
    "time-out": ("raced", _as_timed_out, r"^seq 5: `default` for TIMED_OUT in a race"),
    "late": (
        "raced", add("rejected", "dealt", seat=0, prompt=1, reason="TOO_LATE"), r"^seq 5: `rejected` for TOO_LATE in a r"
    ),
    "called in no race": (
        "smooth", add("called", "dealt", prompt=1, calls=[], window_ms=5, layouts=[]),
        r"^seq 4: `called` in prompt 1, which is no race",
    ),
    "agreed in no race": (
        "smooth", add("agreed", "dealt", prompt=1, reason="OFFERED", layouts=[], silent=[], asked=[]),
        r"^seq 4: `agreed` in prompt 1, which is no race",
    ),
    "called before the deal": (
        "raced", add("called", "sat", prompt=1, calls=[], window_ms=5, layouts=[]), r"^seq 2: `called` before the deal"
    ),
    "called in another round": ("raced", change("called", prompt=2), r"^seq 5: `called` names prompt 2; open is 1"),
    "agreed in another round": ("agreed", change("agreed", prompt=2), r"^seq 5: `agreed` names prompt 2; open is 1"),
    # the calls
    "nobody called": ("raced", change("called", calls=[]), r"^seq 5: a `called` without a call"),
    "a call without a time": (
        "raced", lambda body: the(body, "called")["calls"][0].pop("came_ms"),
        r"^seq 5: calls\[0\]: the key 'came_ms' is missing",
    ),
    "request ids": ("raced", change("called", request_ids=["x"]), r"^seq 5: the key 'request_ids' does not belong"),
    "no such caller": ("raced", change_call(0, seat=3), r"^seq 5: there is no seat 3 at a table of 3"),
    "caller who is out": (
        "called_falsely", change_call(0, 1, seat=0), r"^seq 7: `called` of seat 0; seat 1, 2, 3 is asked"
    ),
    "caller with too few cards": ("raced", change_call(1, seat=2), r"^seq 5: seat 2 may not call: you call with 7 fit"),
    "caller who had a card less": ("raced", lambda body: the(body, "called")["layouts"][0].pop(), r"^seq 5: seat 0 may not call: .*; you have laid 6"),
    "calls twice": ("raced", _doubled, r"^seq 5: a seat calls twice in one `called`"),
    "order of calls": (
        "race_stood_still", lambda body: the(body, "called")["calls"].reverse(),
        r"^seq 6: the calls are not in order: seat 0, charged 160 ms, stands after seat 2, charged 185 ms",
    ),
    "charge of a call": (
        "raced", change_call(0, charged_ms=499),
        r"^seq 5: seat 0 was charged 499 ms; at 501 - asked 0 - allowance 1 - frozen 0 is 500 ms",
    ),
    "when a call came": ("raced", change_call(0, came_ms=500), r"^seq 5: seat 0 was charged 500 ms; at 500 .* is 499 ms"),
    "call after its decision": (
        "raced", change_call(0, came_ms=9999), r"^seq 5: the call of seat 0 came at 9999, after 540 when it was decided"
    ),
    "call before it was asked": ("raced", change_call(0, asked_ms=502), r"^seq 5: seat 0 was asked at 502, after 501"),
    "allowance of a call": ("raced", change_call(0, allowance_ms=101), r"^seq 5: seat 0 has an allowance of 101 ms"),
    "asked before the put": (
        "race_taken_over", change_call(0, 1, asked_ms=8999), r"^seq 11: seat 1 was asked at 8999, before prompt 1 was opened"
    ),
    "base after a takeover": (
        "race_taken_over", change_call(0, 1, charged_ms=300),
        r"^seq 11: seat 1 was charged 300 ms; base 3500 \+ at 9600 - asked 9040 - allowance 60 - frozen 200 is 3800 ms",
    ),
    "dropped takeover": (
        "race_taken_over", lambda body: drop(body, the(body, "taken_over")),
        r"^seq 10: seat 1 was charged 3800 ms; at 9600 - asked 9040 .* is 300 ms",
    ),
    "freeze within a hold": (
        "race_stood_still", change("frozen", ms=71), r"^seq 6: seat 0 was charged 160 ms; .* frozen 41 is 159 ms"
    ),
    "freeze after the call": (
        "race_stood_still", lambda body: drop(body, the(body, "frozen")),
        r"^seq 5: seat 0 was charged 160 ms; .* frozen 0 is 200 ms",
    ),
    "too late a call": (
        "raced", set_in(["time_control", "free_ms", "build"], 50),
        r"^seq 5: seat 0 moved too late: charged 500 ms, with free 50 \+ bank 0 \+ grace 50 = 100 ms",
    ),
    # ties
    "too small a window": (
        "raced", change("called", window_ms=4), r"^seq 5: the window of ties is 4 ms; the time control has at least 5"
    ),
    "no tie": (
        "race_stood_still", change("called", window_ms=24),
        r"^seq 6: seat 2 was charged 185 ms: no tie with 160 ms in a window of 24 ms",
    ),
    "one call of a tie left out": (
        "raced", lambda body: the(body, "called")["calls"].pop(1),
        r"^seq 7: outcome.rounds is \[\[10, 10, 4\], .*; the match played again gives \[\[10, 7, 4\]",
    ),
    # layouts
    "a layout too few": (
        "raced", lambda body: the(body, "called")["layouts"].pop(),
        r"^seq 5: the layouts cannot be: there are 3 seats, not 2",
    ),
    "a layout that is none": (
        "raced", lambda body: the(body, "called")["layouts"].__setitem__(1, "x"),
        r"^seq 5: the layouts cannot be: a layout is a list of at most 9 placements",
    ),
    "cards of another": ("raced", _of_another, r"^seq 5: the layouts cannot be: you do not hold 1-"),
    "overlapping cards": ("raced", _overlapping, r"^seq 5: the layouts cannot be: 1-.. and 1-.. overlap"),
    "layout of who is out": (
        "called_falsely", _longer, r"^seq 7: the layouts cannot be: seat 0 builds no more in this round"
    ),
    "a card turned": ("raced", _turned, r"^seq 7: outcome.rounds is .*; the match played again gives \[\[10, 0, 4\]"),
    "layout of an agreement": (
        "agreed", lambda body: the(body, "agreed")["layouts"][1].pop(),
        r"^seq 7: outcome.rounds is \[\[7, 5, 0\], .* gives \[\[7, 4, 0\]",
    ),
    # the end without a call
    "agreed by those who say so": (
        "agreed", change("agreed", silent=[1]), r"^seq 5: a round that ended because all agreed names nobody as asked or"
    ),
    "time that is not over": (
        "agreed", set_in(["time_control", "free_ms", "build"], 20_000),
        r"^seq 6: seat 0 had time left: charged 10\d+ ms, with free 20000 \+ bank 0 \+ grace 50 = 20050 ms",
    ),
    "charge of a round's end": (
        "agreed", lambda body: the(body, "agreed", 1)["asked"][2].update(charged_ms=20_000),
        r"^seq 6: seat 2 was charged 20000 ms; at \d+ - asked 310 - allowance 0 - frozen 0 is 10\d+ ms",
    ),
    "not all were asked": (
        "agreed", lambda body: the(body, "agreed", 1)["asked"].pop(),
        r"^seq 6: the time was over for the seats \[0, 1\]; those that build are \[0, 1, 2\]",
    ),
    "silent in disorder": (
        "agreed", change("agreed", 1, silent=[1, 0]), r"^seq 6: the silent seats \[1, 0\] are not in rising order"
    ),
    "silent but laying": (
        "agreed", change("agreed", 1, silent=[0, 1]), r"^seq 6: seat 0 is called silent, but its layout has changed"
    ),
    "silent but gone": (
        "left_race", change("agreed", 0, silent=[1, 3]), r"^seq 12: seat 1 is called silent, but does not build"
    ),
    "no such silent seat": ("agreed", change("agreed", 1, silent=[7]), r"^seq 6: there is no seat 7 at a table of 3"),
    "a strike that was none": (
        "left_race", change("agreed", 0, silent=[]),
        r"^seq 16: seat 1 has left and is asked prompt 3, so .* must come at once; here is `forfeited` of seat 3",
    ),
    "an uncounted strike": (
        "left_race", lambda body: drop(body, the(body, "forfeited", 1)),
        r"^seq 16: seat 3 has 2 of 2 strikes, so `forfeited` of seat 3 \(TIMED_OUT\) must come at once; here is",
    ),
    # who has left
    "what was laid by who left": ("left_race", lambda body: the(body, "default")["moves"].pop(0), r"^seq 12: the layouts cannot be: seat 1 builds no more in this round"),
    "laid after leaving": (
        "left_race", _kept_laying, r"^seq 13: seat 1 left before prompt 2, and has laid nothing in it"
    ),
    "agreed for another": (
        "left_race", _called_for,
        r"^seq 7: the referee played \{'offer_end': True\} for seat 1, which only a seat itself can",
    ),
    "no layout for another": (
        "left_race", lambda body: the(body, "default")["moves"].insert(0, {"seat": 1, "move": {"lay": [[[]]]}}),
        r"^seq 7: seat 1: \{'lay': \[\[\[\]\]\]\} is no move",
    ),
    "cards of another for who left": (
        "left_race", lambda body: the(body, "default")["moves"][0].update(move={"lay": [["3-01", 0, 0, 0]]}),
        r"^seq 7: seat 1 may not \{'lay': .* you do not hold 3-01",
    ),
    "not stopped": (
        "left_race", lambda body: the(body, "default")["moves"].pop(),
        r"^seq 7: the referee played \{'lay': .* for seat 1; its default move is \{'stop': True\}",
    ),
    "laid twice": (
        "left_race", lambda body: the(body, "default")["moves"].insert(0, the(body, "default")["moves"][0]),
        r"^seq 7: the `default` lays for seat 1 more than once",
    ),
    "stopped by a number": (
        "left_race", lambda body: the(body, "default")["moves"][1].update(move={"stop": 1}),
        r"^seq 7: the referee played \{'stop': 1\} for seat 1; its default move is \{'stop': True\}",
    ),
    # the deck
    "symbols": (
        "raced", lambda body: body["deals"][0]["symbols"].update({sorted(body["deals"][0]["symbols"])[0]: "ABCDEF"}),
        r"^deals\[0\].symbols.1-\d\d is 'ABCDEF'; seed and nonces give '",
    ),
    "another deck": ("raced", set_in(["options", "deck"], "mine:" + "0" * 64), r"^options: deck: must be the name or"),
    "deck by half its name": ("raced", set_in(["options", "deck"], "house"), r"^options: deck: must .* not 'house'"),
    "deck by its name alone": (
        "raced", set_in(["options", "deck"], "house-1"), r"^options.deck is 'house-1'; in full it is 'house-1:[0-9a-f]{64}'"
    ),
    "kind of false call": (
        "called_falsely", set_in(["options", "false_call"], "ends"),
        r"^seq 7: the game is over, so `finished` must come at once; here is `called`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("is_chained", [False, True])
@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_race_is_told_what_is_wrong_with_it(name: str, is_chained: bool) -> None:
    scene, forge, expected = FORGERIES[name]
    body = record_of(scene)
    forge(body)
    told = fault_of(chained(body) if is_chained else body)
    assert re.search(expected, told), told


@pytest.mark.parametrize(
    ("scene", "forge"),
    [
        ("called_falsely", lambda body: drop(body, the(body, "called"))),  # it cost nobody a point
        ("race_stood_still", change("called", window_ms=26)),
        ("agreed", lambda body: the(body, "agreed")["layouts"][0].reverse()),
    ],
)
def test_only_the_chain_notices_a_change_that_moves_no_point(scene: str, forge: Forgery) -> None:
    body = record_of(scene)
    forge(body)
    assert fault_of(body).startswith("the chain ends with")
    assert fault_of(chained(body)) == "None"


def test_each_kind_of_forgery_has_a_message_of_its_own() -> None:
    assert len({expected for _, _, expected in FORGERIES.values()}) == len(FORGERIES)


def test_the_scenes_have_every_kind_of_entry_of_a_race() -> None:
    kinds = {entry["kind"] for scene in RACES for entry in record_of(scene)["entries"]}
    assert kinds >= {
        "called",
        "agreed",
        "default",
        "rejected",
        "resigned",
        "forfeited",
        "taken_over",
        "frozen",
    }
