"""Of a forged record the first thing that is wrong is named."""

from __future__ import annotations

import re
from copy import deepcopy
from hashlib import sha256

import pytest
from matches.forging import Body, Forgery, chained, drop, fault_of, insert, record_of, set_in, swap, the

from seatwise_referee.games.registry import GAMES
from seatwise_referee.shuffle import deal_seed

# Forged records: each forgery, with the chain as it was and with the chain made to fit


def _reseeded(body: Body) -> None:
    body["seed"] = "11" * 32
    body["commitment"] = sha256(bytes.fromhex(body["seed"])).hexdigest()


def _other_nonce(body: Body) -> None:
    body["nonces"][1] = the(body, "sat", seat=1)["nonce"] = "22" * 32


def _all_taken_again(body: Body) -> None:
    """The last card of the match is played twice."""
    last = the(body, "move", -1)
    insert(body, last, **{key: value for key, value in last.items() if key not in ("seq", "at_ms")})


def _swapped_moves(body: Body) -> None:
    """Two cards of one trick change places, numbers and times staying where they were."""
    first, second = the(body, "move", 0), the(body, "move", 1)
    first["move"], second["move"] = second["move"], first["move"]
    first["seat"], second["seat"] = second["seat"], first["seat"]


def _shifted(entry: Body, ms: int) -> None:
    entry["at_ms"] += ms


def _grant(body: Body) -> None:
    """More free time: what was late is not late any more."""
    body["time_control"]["free_ms"]["card"] = 9000


def _penniless(body: Body) -> None:
    body["time_control"]["bank_ms"] = 0


def _left_alone(body: Body) -> None:
    """Seat 1 never sat either, and the deals are as if it had given no nonce."""
    drop(body, the(body, "sat", seat=1))
    insert(body, the(body, "forfeited", seat=0), kind="forfeited", seat=1, ending="NEVER_SAT")
    body["nonces"][1] = None
    nonces = [None if nonce is None else bytes.fromhex(nonce) for nonce in body["nonces"]]
    seed = deal_seed(bytes.fromhex(body["seed"]), nonces)
    body["deals"] = GAMES["ugo"].deals_in_clear(4, seed, body["options"])


def _resigned_without_leaving(body: Body) -> None:
    """The referee played what the seat played."""
    move = the(body, "move")
    played = {"seat": move["seat"], "move": move["move"]}
    place = body["entries"].index(move)
    body["entries"][place] = {
        **{key: move[key] for key in ("seq", "at_ms", "prompt")},
        "kind": "default",
        "reason": "RESIGNED",
        "moves": [played],
    }


def _doubled(body: Body) -> None:
    body["entries"].insert(4, deepcopy(body["entries"][3]))


FORGERIES: dict[str, tuple[str, Forgery, str]] = {
    # header
    "format": ("smooth", set_in(["format"], "seatwise.record/2"), r"^format is 'seatwise.record/2'; this verifier"),
    "game": ("smooth", set_in(["game"], "chess"), r"^not checked: install the package of the game 'chess'; this verifier knows 'ugo'"),
    "rules": ("smooth", set_in(["rules_version"], "2"), r"^rules_version is '2'; this verifier knows '1' of ugo"),
    "missing key": ("smooth", lambda body: body.pop("durability"), r"^the key 'durability' is missing"),
    "unknown key": ("smooth", set_in(["note"], "x"), r"^the key 'note' does not belong there"),
    "option": ("smooth", set_in(["options", "rounds"], 2), r"^deals has 1 elements; the options and the seed give 2"),
    "too many rounds": ("smooth", set_in(["options", "rounds"], 9), r"^options: rounds: must be"),
    "unknown option": ("smooth", set_in(["options", "jokers"], 1), r"^options: jokers"),
    "incomplete options": ("smooth", set_in(["options"], {}), r"^options: the key 'rounds' is missing"),
    "seat order": ("smooth", swap(["seats"], 0, 1), r"^seats\[0\].seat is 1; seats stand in order"),
    "one seat": ("smooth", lambda body: body["seats"].pop(), r"^1 seats; ugo is played by 2 to 4"),
    "too few nonces": ("smooth", lambda body: body["nonces"].pop(), r"^nonces has 1 elements for 2 seats"),
    "limit": ("smooth", set_in(["time_control", "bank_ms"], 10**9), r"^time_control: bank_ms is 1000000000"),
    "pace": (
        "smooth",
        lambda body: body["time_control"]["free_ms"].pop("arrange"),
        r"^time_control.free_ms has no limit for the pace 'arrange'",
    ),
    "durability": ("smooth", set_in(["durability"], "perhaps"), r"^durability is 'perhaps'; it must be one of"),
    "times of a server": ("raced", set_in(["times"], "priced"), r"^times is 'priced'; only a race at a local table has"),
    "times without a race": (
        "smooth",
        lambda body: body.update(durability="none", times="measured"),
        r"^times is 'measured'; only a race at a local table has",
    ),
    "times of no kind": ("raced", set_in(["times"], "guessed"), r"^times is 'guessed'; it must be one of priced, measured"),
    "seed": ("smooth", set_in(["seed"], "00" * 32), r"^the commitment '[0-9a-f]+' is not SHA-256 of the seed"),
    "commitment": ("smooth", set_in(["commitment"], "00" * 32), r"^the commitment '0+' is not SHA-256"),
    "seed and commitment": ("smooth", _reseeded, r"^deals\[0\].hands\[0\]\[0\] is '..'; seed and nonces give '..'"),
    "nonce": ("smooth", set_in(["nonces", 1], "22" * 32), r"^seq 2: seat 1 sat with the nonce 'a1.*is '2222"),
    "nonce of a sat": (
        "smooth",
        lambda body: the(body, "sat", seat=0).update(nonce=None),
        r"^seq 1: seat 0 sat with the nonce None, but nonces\[0\] is 'a0a0",
    ),
    "nonce of nobody": ("never_sat", set_in(["nonces", 3], "22" * 32), r"^nonces\[3\] is given, but no entry `sat`"),
    "both nonces": ("smooth", _other_nonce, r"^deals\[0\].hands"),
    "dealt card": ("smooth", swap(["deals", 0, "hands", 1], 2, 3), r"^deals\[0\].hands\[1\]\[2\] is '..'; seed"),
    "card aside": ("smooth", swap(["deals", 0, "aside"], 0, 1), r"^deals\[0\].aside\[0\] is"),
    "starter": ("smooth", set_in(["deals", 0, "starter"], 1), r"^deals\[0\].starter is 1; seed and nonces give 0"),
    "round is true": ("smooth", set_in(["deals", 0, "round"], True), r"^deals\[0\].round is True; seed.* give 1"),
    "deal with more": ("smooth", set_in(["deals", 0, "luck"], 1), r"^deals\[0\] is \{"),
    # order
    "dropped entry": (
        "smooth",
        lambda body: body["entries"].pop(9),
        r"^seq 11: stands where seq 10 belongs, which is missing",
    ),
    "doubled entry": ("smooth", _doubled, r"^seq 4: stands twice"),
    "order": ("smooth", swap(["entries"], 8, 9), r"^seq 10: out of order: seq 9 belongs there"),
    "seq is text": ("smooth", set_in(["entries", 3, "seq"], "4"), r"^entries\[3\].seq is '4'; it must be 4"),
    "no entries": ("smooth", set_in(["entries"], []), r"^nonces\[0\] is given, but no entry `sat`"),
    "end cut off": ("smooth", lambda body: body["entries"].pop(), r"^the entries end with `move` \(seq 30\)"),
    "time falls": ("smooth", set_in(["entries", 9, "at_ms"], 1), r"^seq 10: at_ms falls from 42 to 1"),
    "swapped moves": ("smooth", _swapped_moves, r"^seq 4: `move` of seat 1; seat 0 is asked"),
    "dropped and renumbered": (
        "smooth",
        lambda body: drop(body, the(body, "move", 2)),
        r"^seq 6: `move` names prompt 4; open is 3",
    ),
    "doubled and renumbered": ("smooth", _all_taken_again, r"the game is over, so `finished` must come at once"),
    # entries
    "kind": ("smooth", set_in(["entries", 5, "kind"], "sleep"), r"^seq 6: 'sleep' is no kind of entry; there are"),
    "voided": ("smooth", set_in(["entries", 5], {"kind": "voided", "seq": 6}), r"^seq 6: a voided match has no record"),
    "private key": ("smooth", set_in(["entries", 5, "request_id"], "x"), r"^seq 6: the key 'request_id' does not"),
    "no such seat": ("smooth", set_in(["entries", 5, "seat"], 2), r"^seq 6: there is no seat 2 at a table of 2"),
    "negative seat": ("smooth", set_in(["entries", 5, "seat"], -1), r"^seq 6: seat is -1; it must be a whole number"),
    "sat twice": (
        "resigned",
        lambda body: insert(body, the(body, "sat", 0), kind="sat", seat=2, nonce=body["nonces"][2]),
        r"^seq 2: seat 2 sat twice",
    ),
    "sat after the deal": (
        "never_sat",
        lambda body: insert(body, the(body, "default"), kind="sat", seat=0, nonce=None),
        r"^seq 7: seat 0 sat after the deal",
    ),
    "dealt too early": (
        "resigned",
        lambda body: insert(body, the(body, "sat", 0), kind="dealt"),
        r"^seq 2: dealt before seat 0 had sat",
    ),
    "dealt twice": (
        "smooth",
        lambda body: insert(body, the(body, "dealt"), kind="dealt"),
        r"^seq 4: dealt twice",
    ),
    "not dealt": (
        "smooth",
        lambda body: drop(body, the(body, "dealt")),
        r"^seq 3: all seats were taken or forfeited, so `dealt` must come at once; here is `move` of seat 0",
    ),
    "played card": ("smooth", set_in(["entries", 3, "move", "play"], "Y0"), r"^seq 4: seat 0 may not .*do not hold Y0"),
    "no card": ("smooth", set_in(["entries", 3, "move", "play"], "R9"), r"^seq 4: seat 0: \{'play': 'R9'\} is no move"),
    "no move": ("smooth", set_in(["entries", 3, "move"], [[[1]]]), r"^seq 4: seat 0: \[\[\[1\]\]\] is no move"),
    "prompt": ("smooth", set_in(["entries", 3, "prompt"], 7), r"^seq 4: `move` names prompt 7; open is 1"),
    "mover": ("smooth", set_in(["entries", 3, "seat"], 1), r"^seq 4: `move` of seat 1; seat 0 is asked"),
    "move before the deal": (
        "resigned",
        lambda body: insert(
            body, the(body, "sat", 0), kind="move", seat=2, prompt=1, move={"play": "R0"},
            asked_ms=0, allowance_ms=0, charged_ms=0,
        ),
        r"^seq 2: `move` before the deal",
    ),
    "unknown reason": ("smooth", lambda body: insert(
        body, the(body, "dealt"), kind="rejected", seat=0, prompt=1, reason="STALE"
    ), r"^seq 4: reason is 'STALE'; it must be one of ILLEGAL, TOO_LATE"),
    "rejected but not asked": (
        "smooth",
        lambda body: insert(body, the(body, "dealt"), kind="rejected", seat=1, prompt=1, reason="ILLEGAL"),
        r"^seq 4: `rejected` of seat 1; seat 0 is asked",
    ),
    "late but nothing played": (
        "smooth",
        lambda body: insert(body, the(body, "dealt"), kind="rejected", seat=0, prompt=1, reason="TOO_LATE"),
        r"^seq 5: seat 0 answered too late, so `default` of seat 0 \(TIMED_OUT\) must come at once; here is `move`",
    ),
    # clocks
    "charge": (
        "smooth",
        lambda body: the(body, "move", 3).update(charged_ms=5),
        r"^seq 7: seat 1 was charged 5 ms; at 28 - asked 28 - allowance 0 - frozen 0 is 0 ms",
    ),
    "charge with a freeze": (
        "stood_still",
        lambda body: the(body, "move").update(charged_ms=1),
        r"^seq 6: seat 0 was charged 1 ms; at 2700 - asked 200 - allowance 15 - frozen 1100 is 1385 ms",
    ),
    "freeze": (
        "stood_still",
        lambda body: the(body, "frozen", 1).update(ms=301),
        r"^seq 6: seat 0 was charged 1385 ms; .* frozen 1101 is 1384 ms",
    ),
    "dropped freeze": (
        "stood_still",
        lambda body: drop(body, the(body, "frozen", 1)),
        r"^seq 5: seat 0 was charged 1385 ms; .* frozen 800 is 1685 ms",
    ),
    "frozen before anybody is asked": (
        "resigned",
        lambda body: insert(body, the(body, "sat", 0), kind="frozen", ms=5, why="STALL"),
        r"^seq 2: `frozen` while nobody is asked",
    ),
    "frozen for longer than the match": (
        "stood_still",
        lambda body: the(body, "frozen").update(ms=the(body, "frozen")["at_ms"] + 1),
        r"^seq 4: `frozen` for \d+ ms at \d+: that began before the match was opened",
    ),
    "frozen for no reason": (
        "stood_still",
        lambda body: the(body, "frozen").update(why="NAP"),
        r"^seq 4: why is 'NAP'; it must be one of STALL, STORE",
    ),
    "moved time": (
        "stood_still",
        lambda body: _shifted(the(body, "move"), -100),
        r"^seq 6: seat 0 was charged 1385 ms; at 2600 - asked 200 .* is 1285 ms",
    ),
    "asked earlier": (
        "taken_over",
        lambda body: the(body, "move").update(asked_ms=890),
        r"^seq 6: seat 0 was asked at 890, before prompt 1 was opened at 900",
    ),
    "asked later": (
        "smooth",
        lambda body: the(body, "move").update(asked_ms=50),
        r"^seq 4: seat 0 was asked at 50, after 7 when it was over",
    ),
    "allowance": (
        "smooth",
        lambda body: the(body, "move").update(allowance_ms=101),
        r"^seq 4: seat 0 has an allowance of 101 ms; the cap is 100",
    ),
    "bank": (
        "stood_still",
        _penniless,
        r"^seq 6: seat 0 moved too late: charged 1385 ms, with free 1000 \+ bank 0 \+ grace 50 = 1050 ms",
    ),
    "epoch": (
        "taken_over",
        lambda body: the(body, "taken_over", 1).update(epoch=2),
        r"^seq 5: epoch 2 follows epoch 2; epochs rise",
    ),
    # time-outs and exits
    "time left": (
        "timed_out",
        _grant,
        r"^seq \d+: seat 1 had time left: charged 4750 ms, with free 9000 \+ bank 500 \+ grace 50 = 9550 ms",
    ),
    "charge of a time-out": (
        "timed_out",
        lambda body: the(body, "default")["moves"][0].update(charged_ms=9999),
        r"^seq \d+: seat 1 was charged 9999 ms; at 5000 - asked 250 .* is 4750 ms",
    ),
    "default move": (
        "timed_out",
        lambda body: the(body, "default", 3)["moves"][0].update(move={"play": "R0"}),
        r"^seq \d+: the referee played \{'play': 'R0'\} for seat 1; its default move is",
    ),
    "default for nobody": (
        "timed_out",
        lambda body: the(body, "default").update(moves=[]),
        r"^seq \d+: a `default` that plays for no seat",
    ),
    "default twice for one seat": (
        "timed_out",
        lambda body: the(body, "default")["moves"].append(the(body, "default")["moves"][0]),
        r"^seq \d+: seat 1 is played for twice in the `default`",
    ),
    "default of a time-out without times": (
        "timed_out",
        lambda body: the(body, "default")["moves"][0].pop("asked_ms"),
        r"^seq \d+: moves\[0\]: the key 'asked_ms' is missing",
    ),
    "default for who has not left": (
        "smooth",
        _resigned_without_leaving,
        r"^seq 4: seat 0 has not left, so there is no `default` \(RESIGNED\)",
    ),
    "reason of a default": (
        "resigned",
        lambda body: the(body, "default").update(reason="FORFEITED"),
        r"so `default` of seat 0 \(RESIGNED\) must come at once; here is `default`",
    ),
    "default not at once": (
        "never_sat",
        lambda body: the(body, "default").update(at_ms=5001),
        r"^seq 6: seat 0 has left and is asked prompt 1, so .* must come at once, at 5000, not at 5001",
    ),
    "uncounted strike": (
        "timed_out",
        lambda body: drop(body, the(body, "forfeited")),
        r"seat 1 has 2 of 2 strikes, so `forfeited` of seat 1 \(TIMED_OUT\) must come at once; here is",
    ),
    "more strikes allowed": (
        "timed_out",
        set_in(["time_control", "max_strikes"], 3),
        r"^seq \d+: seat 1 is forfeited with 2 of 3 strikes",
    ),
    "forfeited too early": (
        "timed_out",
        lambda body: insert(body, the(body, "default"), kind="forfeited", seat=1, ending="TIMED_OUT"),
        r"^seq \d+: seat 1 is forfeited with 1 of 2 strikes",
    ),
    "uncounted illegal move": (
        "broke_rules",
        lambda body: drop(body, the(body, "forfeited")),
        r"seat 0 has 2 of 2 illegal moves, so `forfeited` of seat 0 \(ILLEGAL_MOVES\) must come at once",
    ),
    "dropped rejection": (
        "broke_rules",
        lambda body: drop(body, the(body, "rejected")),
        r"^seq \d+: seat 0 is forfeited with 1 of 2 illegal moves",
    ),
    "ending of a forfeit": (
        "broke_rules",
        lambda body: the(body, "forfeited").update(ending="TIMED_OUT"),
        r"so `forfeited` of seat 0 \(ILLEGAL_MOVES\) must come at once; here is `forfeited` of seat 0",
    ),
    "never sat, too early": (
        "never_sat",
        set_in(["time_control", "setup_ms"], 5001),
        r"^seq 3: seat 0 is forfeited for NEVER_SAT at 5000, before the set-up time ends at 5001",
    ),
    "never sat, but sat": (
        "never_sat",
        lambda body: the(body, "forfeited").update(seat=2),
        r"^seq 3: seat 2 is forfeited for NEVER_SAT, but it sat",
    ),
    "never sat, in another order": (
        "never_sat",
        lambda body: [the(body, "forfeited", 0).update(seat=3), the(body, "forfeited", 1).update(seat=0)],
        r"^seq 3: seat 3 is forfeited for NEVER_SAT before seat 0",
    ),
    "never sat, one forgotten": (
        "never_sat",
        lambda body: drop(body, the(body, "forfeited", 1)),
        r"^seq 4: the set-up time is over, so `forfeited` of seat 3 \(NEVER_SAT\) must come at once; here is `dealt`",
    ),
    "only one sat": (
        "never_sat",
        _left_alone,
        r"^seq 4: fewer than two seats were taken: such a match is void and has no record",
    ),
    "resigned before it sat": (
        "resigned",
        lambda body: the(body, "resigned").update(seat=1),
        r"^seq 2: seat 1 resigned before it sat",
    ),
    "resigned twice": (
        "resigned",
        lambda body: insert(body, the(body, "resigned"), kind="resigned", seat=2),
        r"^seq 3: seat 2 resigned, but had left with seq 2",
    ),
    "forfeited after it resigned": (
        "resigned",
        lambda body: insert(body, the(body, "resigned"), kind="forfeited", seat=2, ending="TIMED_OUT"),
        r"^seq 3: seat 2 is forfeited, but had left with seq 2",
    ),
    "all left": (
        "resigned",
        lambda body: insert(body, the(body, "resigned", seat=3), kind="resigned", seat=1),
        r"no seat is left that plays: such a match is void and has no record",
    ),
    # result
    "points": ("smooth", lambda body: the(body, "finished")["outcome"].update(points=[99, 0]), r"^seq 31: outcome.points is"),
    "rounds": (
        "eventful",
        lambda body: the(body, "finished")["outcome"]["rounds"].reverse(),
        r"^seq 116: outcome.rounds is",
    ),
    "rank": ("smooth", lambda body: the(body, "finished")["outcome"]["ranks"].reverse(), r"^seq 31: outcome.ranks is"),
    "rank that counts": (
        "broke_rules",
        lambda body: the(body, "finished")["result"]["ranks"].reverse(),
        r"^seq 34: result.ranks is \[1, 2\]; the match played again gives \[2, 1\]",
    ),
    "ending": (
        "broke_rules",
        lambda body: the(body, "finished").update(endings=["COMPLETED", "COMPLETED"]),
        r"^seq 34: endings is \['COMPLETED', 'COMPLETED'\]; the match played again gives \['ILLEGAL_MOVES'",
    ),
    "tail": (
        "smooth",
        lambda body: body["outcome"]["points"].reverse(),
        r"^outcome at the end of the record is .*; the entry `finished` says",
    ),
    "tail's ranks": ("smooth", set_in(["result", "ranks"], [1, 1]), r"^result at the end of the record is"),
    "tail's endings": ("smooth", set_in(["endings", 0], "RESIGNED"), r"^endings at the end of the record is"),
    "finished too early": (
        "smooth",
        lambda body: insert(body, the(body, "move"), **{**the(body, "finished"), "at_ms": 7}),
        r"^seq 5: `finished` while prompt 2 is open",
    ),
    "finished before the deal": (
        "resigned",
        lambda body: insert(body, the(body, "sat"), **{**the(body, "finished"), "at_ms": 0}),
        r"^seq 2: `finished` before the deal",
    ),
    "more after the end": (
        "smooth",
        lambda body: insert(body, the(body, "finished"), kind="taken_over", epoch=2),
        r"^seq 32: `taken_over` follows `finished`, which is the end",
    ),
}  # fmt: skip


@pytest.mark.parametrize("is_chained", [False, True])
@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_record_is_told_what_is_wrong_with_it(name: str, is_chained: bool) -> None:
    scene, forge, expected = FORGERIES[name]
    body = record_of(scene)
    forge(body)
    told = fault_of(chained(body) if is_chained else body)
    assert re.search(expected, told), told


def test_each_kind_of_forgery_has_a_message_of_its_own() -> None:
    names = ["played card", "points", "charge", "nonce", "seed", "order", "dropped entry", "doubled entry"]
    assert len({FORGERIES[name][2] for name in names}) == len(names)
