"""Records: what is in them, and that anybody can work out their chain."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from matches.example_record import example
from matches.one_match import SEED, Desk, nonce
from matches.race_scenes import RACES
from matches.scenes import SCENES, TURNS

from seatwise_referee import record
from seatwise_referee.ending import VoidReason
from seatwise_referee.game import Seat
from seatwise_referee.journal import PRIVATE_FIELDS
from seatwise_referee.match import replay_match
from seatwise_referee.record import NotFinished
from seatwise_referee.verify import verify_line

EXAMPLE = Path(__file__).parent / "data" / "example-record.jsonl"
every_scene = pytest.mark.parametrize("scene", SCENES)


def body_of(scene: str) -> dict[str, Any]:
    body: dict[str, Any] = SCENES[scene]().record()
    return body


def dumped(value: Any) -> bytes:
    """Canonical JSON by another way."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def test_a_record_has_the_keys_of_its_format() -> None:
    assert sorted(body_of("smooth")) == [
        "chain", "commitment", "deals", "durability", "endings", "entries", "format", "game", "match", "nonces",
        "options", "outcome", "result", "rules_version", "seats", "seed", "time_control",
    ]  # fmt: skip


@every_scene
def test_a_record_is_one_line_of_canonical_json(scene: str) -> None:
    line = SCENES[scene]().line()
    assert line == dumped(json.loads(line)) + b"\n"
    assert line.count(b"\n") == 1


@every_scene
def test_private_fields_stay_out_of_the_record(scene: str) -> None:
    assert not any(PRIVATE_FIELDS & entry.keys() for entry in body_of(scene)["entries"])


@every_scene
def test_the_chain_starts_with_the_header_and_takes_up_each_entry(scene: str) -> None:
    body = body_of(scene)
    entries = body.pop("entries")
    last, _, _, _ = (body.pop(key) for key in ("chain", "outcome", "result", "endings"))
    link = sha256(dumped(body)).digest()
    for entry in entries:
        link = sha256(link + dumped(entry)).digest()
    assert link.hex() == last


def shuffled(items: Iterable[str], body: dict[str, Any], label: str) -> list[str]:
    """The order that seed and nonces give, worked out in another way."""
    nonces = b"".join(bytes.fromhex(each or "00" * 32) for each in body["nonces"])
    seed = sha256(bytes.fromhex(body["seed"]) + nonces).digest()
    return sorted(items, key=lambda item: hmac.digest(seed, f"{label}:{item}".encode(), "sha256"))


@pytest.mark.parametrize("scene", TURNS)
def test_the_deals_of_ugo_are_those_that_were_played(scene: str) -> None:
    body = body_of(scene)
    cards = [colour + str(value) for colour in "RBGYK" for value in range(9)]
    for number, deal in enumerate(body["deals"], start=1):
        order = shuffled(cards, body, f"ugo/round/{number}")
        assert deal["round"] == number
        assert [*(card for hand in deal["hands"] for card in hand), *deal["aside"]] == order


@pytest.mark.parametrize("scene", RACES)
def test_the_deals_of_ubongo_are_those_that_were_played(scene: str) -> None:
    body = body_of(scene)
    for number, deal in enumerate(body["deals"], start=1):
        deck = (number + 1) // 2
        order = shuffled((f"{deck}-{card:02}" for card in range(1, 37)), body, f"ubongo/deck/{deck}")
        hands = [card for hand in deal["hands"] for card in hand]
        assert deal["round"] == number
        assert hands == order[: 9 * len(body["seats"])]
        assert sorted(deal["symbols"]) == sorted(hands)
        assert {len(symbols) for symbols in deal["symbols"].values()} == {6}


def test_nonces_stand_by_seat_in_whatever_order_the_seats_were_taken() -> None:
    desk = Desk(3)
    desk.do(desk.match.sit(Seat(2), nonce(2), 0))
    desk.do(desk.match.sit(Seat(1), None, 0))
    desk.do(desk.match.sit(Seat(0), nonce(0), 0))
    assert record.nonces_of(desk.setup, desk.journal) == (nonce(0), None, nonce(2))


def test_the_seed_fits_its_commitment() -> None:
    body = body_of("smooth")
    assert body["seed"] == SEED.hex()
    assert body["commitment"] == sha256(SEED).hexdigest()


def test_the_tail_repeats_the_last_entry() -> None:
    body = body_of("eventful")
    last = body["entries"][-1]
    assert [body[key] for key in ("outcome", "result", "endings")] == [
        last[key] for key in ("outcome", "result", "endings")
    ]


def test_an_unfinished_match_has_no_record() -> None:
    desk = Desk()
    with pytest.raises(NotFinished, match="matches/test"):
        desk.record()
    desk.sit_all()
    with pytest.raises(NotFinished):
        desk.record()


def test_a_voided_match_has_no_record() -> None:
    desk = Desk()
    desk.sit_all()
    desk.do(desk.match.void_match(VoidReason.ABORTED, 0))
    with pytest.raises(NotFinished):
        desk.record()


@every_scene
def test_a_replay_gives_the_same_record(scene: str) -> None:
    desk = SCENES[scene]()
    assert replay_match(desk.setup, desk.journal).position == desk.match.position
    assert record.record_line(record.build_record(desk.setup, desk.journal)) == desk.line()


def test_the_durability_is_on_record() -> None:
    desk = SCENES["smooth"]()
    body = record.build_record(replace(desk.setup, durability="loss-allowed"), desk.journal)
    assert body["durability"] == "loss-allowed"
    assert verify_line(record.record_line(body)).fault is None


def test_the_example_of_the_specification_is_what_a_match_writes() -> None:
    line = EXAMPLE.read_bytes()
    assert line == example().line()
    assert verify_line(line).fault is None
