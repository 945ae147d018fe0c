"""A mixed move: the referee draws one of several moves, by a rule that anybody can apply again."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from matches.forging import chained
from matches.one_match import SEED, Desk, nonce

from seatwise_referee.decision import AcceptMove, RejectRequest
from seatwise_referee.game import Seat
from seatwise_referee.games.ubongo import Ubongo
from seatwise_referee.journal import (
    DrawnMove,
    JournalEntry,
    WeightedMove,
    canonical_json,
    decode_entry,
    encode_entry,
    fault_of_choices,
    public_part,
)
from seatwise_referee.match import Match, replay_match
from seatwise_referee.mixed_move import MOST_CHOICE_WEIGHT, MOST_MIXED_CHOICES, MixedMove, draw_choice
from seatwise_referee.record import build_record, record_line
from seatwise_referee.setup import Setup
from seatwise_referee.time_control import TimeControl
from seatwise_referee.verify import MOST_BYTES, verify_line
from seatwise_referee.verify.reading import MOST_VALUES


def dealt(seats: int = 2) -> Desk:
    desk = Desk(seats)
    desk.sit_all()
    return desk


def legal(desk: Desk) -> list[Any]:
    return list(desk.match.game.legal_moves(desk.match.position.state, desk.asked))  # type: ignore[union-attr]


def mixed(desk: Desk) -> MixedMove:
    return MixedMove([(move, 1 + place) for place, move in enumerate(legal(desk))])


def play_mixed(desk: Desk) -> None:
    while not desk.match.is_over:
        desk.submit(mixed(desk))


def draw_as_published(weights: list[int], prompt: int, seat: int, seats: int = 2) -> int:
    """The words of docs/record-format.md, for matches of `Desk`."""
    seed = hashlib.sha256(SEED + b"".join(map(nonce, range(seats)))).digest()
    key = hmac.digest(seed, f"moves/{seat}".encode(), "sha256")
    total, attempt = sum(weights), 0
    while True:
        drawn = int.from_bytes(hmac.digest(key, f"draw/{prompt}/{attempt}".encode(), "sha256"), "big")
        if drawn < 2**256 - 2**256 % total:
            break
        attempt += 1
    rest = drawn % total
    for index, weight in enumerate(weights):
        rest -= weight
        if rest < 0:
            return index
    raise AssertionError


# What a mixed move is


@pytest.mark.parametrize("weight", [-1, 1.0, True, "1", None, MOST_CHOICE_WEIGHT + 1])
def test_a_weight_is_a_whole_number(weight: Any) -> None:
    with pytest.raises(ValueError, match="whole number from 0"):
        MixedMove([("a", weight)])


@pytest.mark.parametrize(
    "choices", [[], [("a", 0)], [(str(place), 1) for place in range(MOST_MIXED_CHOICES + 1)]]
)
def test_it_has_some_choices_and_not_too_many(choices: list[tuple[str, int]]) -> None:
    with pytest.raises(ValueError, match="choices"):
        MixedMove(choices)


def test_choices_without_weight_are_left_out() -> None:
    assert MixedMove({"a": 0, "b": 2}).choices == MixedMove([("b", 2)]).choices == (("b", 2),)


# The draw


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_each_draw_follows_from_seed_nonces_seat_and_prompt(seats: int) -> None:
    desk = dealt(seats)
    play_mixed(desk)
    drawn = [entry for entry in desk.journal if isinstance(entry, DrawnMove)]
    assert len(drawn) == 10 * seats + len([entry for entry in drawn if "arrange" in str(entry.move)])
    for entry in drawn:
        weights = [choice.weight for choice in entry.choices]
        index = draw_as_published(weights, entry.prompt, entry.seat, seats)
        assert entry.choices[index].move == entry.move


def test_draws_of_seats_and_prompts_differ_and_have_the_declared_frequencies() -> None:
    setup, nonces = dealt().setup, (nonce(0), nonce(1))
    drawn = {
        seat: [draw_choice(setup, nonces, Seat(seat), prompt, (1, 3)) for prompt in range(1, 4001)]
        for seat in (0, 1)
    }
    for seat in (0, 1):
        assert abs(sum(drawn[seat]) - 3000) < 5 * 28  # 28 is the standard deviation
    both = Counter(zip(drawn[0], drawn[1], strict=True))
    assert abs(both[0, 0] - 250) < 5 * 16
    other = (nonce(0), nonce(0))
    assert [draw_choice(setup, other, Seat(0), prompt, (1, 3)) for prompt in range(1, 4001)] != drawn[0]


def test_a_move_and_all_its_choices_are_in_the_record_and_verify() -> None:
    desk = dealt()
    play_mixed(desk)
    line = record_line(build_record(desk.setup, desk.journal))
    assert verify_line(line).fault is None, verify_line(line)
    assert b'"choices":[{"move":' in line


def test_one_choice_is_a_move_whose_probability_is_known() -> None:
    desk = dealt()
    desk.submit(MixedMove([(desk.default_move(), 7)]))
    entry = desk.journal[-1]
    assert isinstance(entry, DrawnMove)
    assert [choice.weight for choice in entry.choices] == [7]


def test_an_entry_is_read_as_it_was_written() -> None:
    desk = dealt()
    desk.submit(mixed(desk), request_id="mine")
    entry = desk.journal[-1]
    assert decode_entry(encode_entry(entry)) == entry
    assert b"mine" not in public_part(encode_entry(entry))


# Once, and the same again


def test_a_repeat_gets_the_first_answer_and_draws_nothing() -> None:
    desk = dealt()
    seat, prompt, move = desk.asked, desk.prompt, mixed(desk)
    desk.submit(move, request_id="r")
    written = list(desk.journal)
    (again,) = desk.do(desk.match.submit_move(seat, prompt, "r", move, desk.now))
    assert isinstance(again, AcceptMove)
    assert desk.journal == written


def test_a_referee_that_takes_over_before_the_entry_is_safe_draws_the_same() -> None:
    desk = dealt()
    seat, prompt, move = desk.asked, desk.prompt, mixed(desk)
    heir = replay_match(desk.setup, desk.journal)
    desk.submit(move)
    effects = heir.submit_move(seat, prompt, "other", move, desk.now)
    written = [effect for effect in effects if isinstance(effect, JournalEntry)]
    assert written[0].move == desk.journal[-1].move  # type: ignore[union-attr]


def test_a_replay_ends_where_the_match_ended() -> None:
    desk = dealt(3)
    play_mixed(desk)
    assert replay_match(desk.setup, desk.journal).position == desk.match.position


# What is refused


def refusal(desk: Desk, move: Any) -> str:
    refused = [effect for effect in desk.submit(move) if isinstance(effect, RejectRequest)]
    assert [effect.reason for effect in refused] == ["ILLEGAL"]
    assert not [entry for entry in desk.journal if entry.kind == "move"]
    return refused[0].message


def test_one_illegal_choice_makes_the_whole_move_illegal() -> None:
    desk = dealt()
    assert refusal(desk, MixedMove([(desk.default_move(), 1_000_000), (desk.illegal_move(), 1)]))


def test_no_choice_occurs_twice() -> None:
    desk = dealt()
    move = desk.default_move()
    assert "occurs twice" in refusal(desk, MixedMove([(move, 1), (move, 2)]))


def test_choices_are_no_larger_than_a_large_move_and_end_in_time() -> None:
    """A record stays small enough to be verified, whatever bots send."""
    choices = [WeightedMove({"play": f"{number:0>180}"}, 1) for number in range(20)]
    assert fault_of_choices(1, choices[:-1]) == ""
    assert "4096 bytes" in fault_of_choices(1, choices)
    assert fault_of_choices(3600, choices[:2]) == ""
    assert "after entry 3600" in fault_of_choices(3601, choices[:2])
    largest = 3600 * (3 * MOST_MIXED_CHOICES + 13) + 6400 * 11
    assert largest < MOST_VALUES
    assert MOST_BYTES > 3600 * (4096 + 200) + 6400 * 150


@pytest.mark.parametrize("choice", [None, 3, "R3", MixedMove([("R3", 1)])])
def test_a_choice_that_is_no_move_is_illegal(choice: Any) -> None:
    desk = dealt()
    refusal(desk, MixedMove([(choice, 1)]))


def test_a_race_takes_none() -> None:
    game = Ubongo()
    limits = TimeControl(free_ms=dict.fromkeys(game.paces, 1000))
    setup = Setup(
        "matches/race", "ubongo", game.rules_version, game.complete_options({}),
        ("bots/a/versions/1", "bots/b/versions/1"), limits, SEED,
    )  # fmt: skip
    match = Match(setup)
    for seat in (Seat(0), Seat(1)):
        match.sit(seat, nonce(seat), 0)
        match.confirm_entries(0)
    assert match.position.prompt is not None
    state = match.position.state
    effects = match.submit_move(
        Seat(0), match.position.prompt.number, "r", MixedMove([(game.default_move(state, Seat(0)), 1)]), 5
    )
    assert [effect.reason for effect in effects if isinstance(effect, RejectRequest)] == ["ILLEGAL"]


# What a verifier refuses


def forged(change: Callable[[dict[str, Any]], None]) -> str:
    """The sentence about a record whose first drawn move was changed, with a chain that fits."""
    desk = dealt()
    play_mixed(desk)
    record: Any = build_record(desk.setup, desk.journal)
    change(next(entry for entry in record["entries"] if len(entry.get("choices", ())) > 2))
    fault = verify_line(canonical_json(chained(record)) + b"\n").fault
    assert fault is not None
    return str(fault)


def change_move(entry: dict[str, Any]) -> None:
    entry["move"] = next(choice["move"] for choice in entry["choices"] if choice["move"] != entry["move"])


def make_improbable(entry: dict[str, Any]) -> None:
    for choice in entry["choices"]:
        choice["weight"] = 1 if choice["move"] == entry["move"] else MOST_CHOICE_WEIGHT


def add_illegal(entry: dict[str, Any]) -> None:
    entry["choices"].append({"move": {"arrange": ["R3"]}, "weight": 1})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (change_move, "but the draw gives"),
        (make_improbable, "but the draw gives"),
        (lambda entry: entry["choices"].append(entry["choices"][0]), "occurs twice"),
        (lambda entry: entry["choices"].clear(), "1 to 64 choices"),
        (lambda entry: entry["choices"][0].update(weight=0), "whole number from 1"),
        (lambda entry: entry["choices"][0].update(weight=True), "whole number from 1"),
        (lambda entry: entry["choices"][0].update(weight=2**31), "is above"),
        (lambda entry: entry["choices"][0].pop("move"), "is missing"),
        (lambda entry: entry.update(choices={}), "must be a list"),
        (lambda entry: entry.update(choices=None), "must be a list"),
    ],
)
def test_a_verifier_draws_again(change: Callable[[dict[str, Any]], None], words: str) -> None:
    assert words in forged(change)


def test_a_verifier_refuses_an_illegal_choice_that_was_not_drawn() -> None:
    """The weights are changed until the draw is the same with the illegal choice among them."""

    def add_without_being_drawn(entry: dict[str, Any]) -> None:
        add_illegal(entry)
        place = next(n for n, choice in enumerate(entry["choices"]) if choice["move"] == entry["move"])
        weights = [choice["weight"] for choice in entry["choices"]]
        while draw_as_published(weights, entry["prompt"], entry["seat"]) != place:
            weights[place] += 1
        entry["choices"][place]["weight"] = weights[place]

    assert "may not" in forged(add_without_being_drawn)


def test_a_move_that_was_refused_changes_no_draw() -> None:
    """A bot that tries an illegal choice first learns nothing, and the number that decides is still the same."""
    desk = dealt()
    seat, prompt, moves = desk.asked, desk.prompt, legal(desk)
    desk.submit(MixedMove([(moves[0], 1), (desk.illegal_move(), 1)]))
    desk.submit(MixedMove([(move, 1) for move in moves]))
    index = draw_as_published([1] * len(moves), prompt, seat)
    assert desk.journal[-1].move == desk.match.game.move_to_json(moves[index])  # type: ignore[union-attr]


def test_the_mean_of_a_draw_is_that_of_its_weights() -> None:
    """The sum of w V(a) over what is drawn, for all 256 seeds of a byte, is near the declared mean."""
    weights, values = (5, 1, 2), (3, -11, 4)
    declared = Fraction(sum(w * v for w, v in zip(weights, values, strict=True)), sum(weights))
    setup = dealt().setup
    drawn = [
        values[draw_choice(setup, (bytes([byte]) * 32, None), Seat(0), prompt, weights)]
        for byte in range(256)
        for prompt in range(1, 9)
    ]
    assert abs(sum(drawn) / len(drawn) - float(declared)) < 5 * 5.1 / len(drawn) ** 0.5
