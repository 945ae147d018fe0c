"""Sets of duplicate deals: the same cards at several tables, and records that prove it."""

from __future__ import annotations

import hmac
import json
from dataclasses import replace
from hashlib import sha256

import pytest
from matches.forging import Body, Forgery, chained, fault_of, set_in, the
from matches.one_match import Desk, nonce
from matches.one_race import RaceDesk
from matches.set_scenes import SET_SEED, desk, join, played

from seatwise_referee.game import Seat
from seatwise_referee.journal import Sat, canonical_json
from seatwise_referee.match import Match, replay_match
from seatwise_referee.setup import DealSet, Setup
from seatwise_referee.shuffle import seed_in_set
from seatwise_referee.verify import verify_line, verify_lines


def body(number: int = 2) -> Body:
    record: Body = played(number).record()
    return record


def test_seeds_of_a_set_are_made_as_the_format_says() -> None:
    assert seed_in_set(SET_SEED, 2) == hmac.digest(SET_SEED, b"match/2", "sha256")
    assert body()["seed"] == hmac.digest(SET_SEED, b"match/2", "sha256").hex()


def test_all_matches_of_a_set_have_the_same_deals_and_each_its_own_commitment() -> None:
    one, other = body(1), body(3)
    assert one["deals"] == other["deals"]
    assert one["commitment"] != other["commitment"]
    assert one["commitment"] == sha256(bytes.fromhex(one["seed"])).hexdigest()


def test_deals_come_from_the_set_alone() -> None:
    items = [f"{colour}{value}" for colour in "RBGYK" for value in range(9)]
    seed = sha256(SET_SEED).digest()
    order = sorted(items, key=lambda item: hmac.digest(seed, f"ugo/round/1:{item}".encode(), "sha256"))
    assert body()["deals"][0]["hands"] == [order[:10], order[10:20]]


def test_no_nonce_is_taken_in_a_set() -> None:
    it = desk()
    it.do(it.match.sit(Seat(0), nonce(0), 0))
    [sat] = it.journal
    assert isinstance(sat, Sat)
    assert sat.nonce is None
    assert body()["nonces"] == [None, None]


def test_a_match_of_a_set_is_replayed_from_its_stored_setup() -> None:
    it = played()
    stored = Setup.from_json(json.loads(canonical_json(it.setup.to_json())))
    assert stored == it.setup
    assert replay_match(stored, it.journal).position == it.match.position


def test_a_setup_without_a_set_is_stored_as_before() -> None:
    assert "deal_set" not in Desk(2).setup.to_json()


def test_records_of_a_set_verify_and_name_it() -> None:
    verdicts = list(verify_lines(played(number).line() for number in (1, 2, 3)))
    assert [verdict.fault for verdict in verdicts] == [None] * 3
    assert [verdict.setup and verdict.setup.deal_set for verdict in verdicts] == [
        DealSet("sets/final", number, 3, SET_SEED) for number in (1, 2, 3)
    ]


# Forged, with the chain as it was and with the chain made to fit


def _other_seed(record: Body) -> None:
    """A seed of one's own choosing, with the commitment that goes with it."""
    record["seed"] = "11" * 32
    record["commitment"] = sha256(bytes.fromhex(record["seed"])).hexdigest()


def _other_set(record: Body) -> None:
    """Another set's seed, and all that comes of it but the deals."""
    other = bytes(32)
    record["deal_set"]["seed"] = other.hex()
    record["seed"] = seed_in_set(other, 2).hex()
    record["commitment"] = sha256(bytes.fromhex(record["seed"])).hexdigest()


def _with_nonce(record: Body) -> None:
    record["nonces"][1] = the(record, "sat", seat=1)["nonce"] = "22" * 32


FORGERIES: dict[str, tuple[Forgery, str]] = {
    "seed": (_other_seed, "the seed '1111"),
    "seed of the set": (set_in(["deal_set", "seed"], "00" * 32), "is not that of match 2 of its set"),
    "number": (set_in(["deal_set", "number"], 3), "is not that of match 3 of its set"),
    "number beyond the set": (set_in(["deal_set", "size"], 1), "deal_set.number is 2; the set has 1 matches"),
    "number is text": (set_in(["deal_set", "number"], "2"), "deal_set.number is '2'; it must be a whole number"),
    "no set": (lambda record: record.pop("deal_set"), "seed and nonces give"),
    "null": (set_in(["deal_set"], None), "deal_set is None; it must be an object"),
    "more": (set_in(["deal_set", "luck"], 1), "deal_set: the key 'luck' does not belong there"),
    "less": (lambda record: record["deal_set"].pop("size"), "deal_set: the key 'size' is missing"),
    "another set": (_other_set, "deals[0].hands[0][0] is"),
    "dealt card": (set_in(["deals", 0, "hands", 0, 0], "R0"), "the set's seed gives"),
    "nonce": (_with_nonce, "nonces[1] is given; in a set of duplicate deals no nonce is taken"),
    "nonce of a sat": (
        lambda record: the(record, "sat", seat=0).update(nonce="22" * 32),
        "seq 1: seat 0 sat with the nonce '22",
    ),
}  # fmt: skip


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("rechain", [False, True])
def test_a_forged_set_is_named(forgery: str, rechain: bool) -> None:
    forge, fault = FORGERIES[forgery]
    record = body()
    forge(record)
    assert fault in fault_of(chained(record) if rechain else record)


def test_the_name_of_a_set_is_held_by_the_chain() -> None:
    record = body()
    record["deal_set"]["name"] = "sets/other"
    assert fault_of(record).startswith("the chain ends with")
    assert verify_line(canonical_json(chained(record))).fault is None


def test_a_match_cannot_be_moved_into_a_set() -> None:
    record = _plain()
    record["deal_set"] = {"name": "sets/final", "number": 2, "size": 3, "seed": SET_SEED.hex()}
    assert "is not that of match 2 of its set" in fault_of(chained(record))


def _plain() -> Body:
    it = Desk(2)
    it.sit_all()
    it.play_out(ms_each=7)
    record: Body = it.record()
    return record


# What the records of a file say together


def faults(*lines: bytes) -> list[str]:
    return [str(verdict.fault) for verdict in verify_lines(lines)]


def test_a_set_of_the_same_name_with_other_deals_is_named() -> None:
    it = desk(1)
    assert it.setup.deal_set
    other = replace(it.setup.deal_set, seed=bytes(32))
    it.setup = replace(it.setup, seed=seed_in_set(bytes(32), 1), deal_set=other)
    it.match = Match(it.setup)
    it.sit_all()
    it.play_out(ms_each=7)
    told = faults(played(2).line(), it.line())[1]
    assert told.startswith("deal_set.seed is '000000")
    assert told.endswith(f"; in line 1 the set 'sets/final' has '{SET_SEED.hex()}'")


def test_a_number_that_stands_twice_is_named() -> None:
    again = played(2)
    again.setup = replace(again.setup, match="matches/again")
    found = faults(played(1).line(), played(2).line(), again.line())
    assert found[2] == "match 2 of the set 'sets/final' is already in line 2"


def test_another_size_is_named() -> None:
    assert (
        faults(played(1).line(), played(2, size=4).line())[1]
        == "deal_set.size is 4; in line 1 the set 'sets/final' has 3"
    )


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ({"rounds": 2}, "options is {'rounds': 2}; in line 1 the set 'sets/final' has {'rounds': 1}"),
        ({"seats": 3}, "the number of seats is 3; in line 1 the set 'sets/final' has 2"),
    ],
)
def test_a_match_of_another_kind_is_named(table: dict[str, int], fault: str) -> None:
    assert faults(played(1).line(), played(2, **table).line())[1] == fault


def test_a_match_of_another_game_is_named() -> None:
    race = RaceDesk(are_seated=False)
    join(race, DealSet("sets/final", 2, 3, SET_SEED))
    race.sit_all()
    race.until(60_000)
    assert (
        faults(played(1).line(), race.line())[1]
        == "game is 'ubongo'; in line 1 the set 'sets/final' has 'ugo'"
    )


def test_two_sets_may_have_matches_of_the_same_number() -> None:
    one, other = played(1), played(1, name="sets/other")
    other.setup = replace(other.setup, match="matches/other")
    assert faults(one.line(), other.line()) == ["None", "None"]
