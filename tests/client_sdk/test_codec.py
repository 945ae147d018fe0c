"""What travels is what was meant, there and back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatwise.codec import MalformedMove, MalformedView
from seatwise.codec.offer import decode_offer, decode_options, decode_time_control, encode_time_control
from seatwise.codec.result import decode_ending, decode_match_ended
from seatwise.games.ugo.v1 import ugo_pb2
from seatwise.kits.codecs import CODECS
from seatwise.kits.ugo.codec import decode_move, decode_view, encode_move, encode_view
from seatwise.offer import Offer
from seatwise.v1 import match_pb2, play_service_pb2, time_control_pb2
from seatwise_referee.ending import Ending, MatchState
from seatwise_referee.game import Seat
from seatwise_referee.games.registry import GAMES
from seatwise_referee.games.ugo import CARDS, Arrange, Kingdom, Play, Trick, UgoView
from seatwise_referee.journal import Finished, Voided
from seatwise_referee.setup import Setup
from seatwise_referee.time_control import BadTimeControl, TimeControl
from seatwise_server.play.delivery import encode_ending, encode_match_ended
from seatwise_server.play.seat_offers import encode_offer
from seatwise_server.services.matches import parse_time_control

GAME = GAMES["ugo"]
cards = st.sampled_from(CARDS)
some_cards = st.lists(cards, max_size=10).map(tuple)
seats = st.integers(0, 3).map(Seat)
tricks = st.lists(st.builds(Trick, seats, some_cards, seats, some_cards), max_size=10).map(tuple)
kingdoms = st.lists(
    st.builds(Kingdom, st.tuples(*[some_cards] * 5), st.integers(0, 9)), min_size=2, max_size=4
).map(tuple)
views = st.builds(
    UgoView,
    seat=st.none() | seats,
    round=st.integers(1, 8),
    rounds=st.integers(1, 8),
    starter=seats,
    hand=some_cards,
    hand_sizes=st.lists(st.integers(0, 10), min_size=2, max_size=4).map(tuple),
    leader=seats,
    trick=some_cards,
    legal_cards=some_cards,
    won_cards=some_cards,
    arranger=st.none() | seats,
    kingdoms=kingdoms,
    supply=st.integers(0, 36),
    points=st.lists(st.tuples(*[st.integers(-45, 40)] * 4), max_size=8).map(tuple),
    tricks=tricks,
    last_round=tricks,
)


def field_by_field(view: UgoView) -> ugo_pb2.View:
    """The message as anybody would build it."""

    def trick(each: Trick) -> ugo_pb2.Trick:
        return ugo_pb2.Trick(
            leader=each.leader, cards=wire(each.cards), winner=each.winner, laid=wire(each.laid)
        )

    return ugo_pb2.View(
        seat=view.seat,
        round=view.round,
        rounds=view.rounds,
        starter=view.starter,
        hand=wire(view.hand),
        hand_sizes=view.hand_sizes,
        leader=view.leader,
        trick=wire(view.trick),
        legal_cards=wire(view.legal_cards),
        won_cards=wire(view.won_cards),
        arranger=view.arranger,
        kingdoms=[
            ugo_pb2.Kingdom(
                sections=[ugo_pb2.Section(cards=wire(stack)) for stack in kingdom.sections],
                farmers=kingdom.farmers,
            )
            for kingdom in view.kingdoms
        ],
        supply=view.supply,
        points=[ugo_pb2.RoundPoints(points=points) for points in view.points],
        tricks=map(trick, view.tricks),
        last_round=map(trick, view.last_round),
    )


def wire(some: tuple[int, ...]) -> list[ugo_pb2.Card]:
    return [ugo_pb2.Card.Value(f"CARD_{card}") for card in some]


def views_of_a_match(seats: int, seed: int) -> Iterator[UgoView]:
    chance = random.Random(seed)
    state = GAME.deal(seats, seed.to_bytes(32, "big"), {"rounds": 3})
    while (prompt := GAME.prompt(state)) is not None:
        yield from (GAME.view(state, viewer) for viewer in (None, *range(seats)))
        (asked,) = prompt.seats
        state = GAME.play(state, asked, chance.choice(list(GAME.legal_moves(state, asked))))
    yield from (GAME.view(state, viewer) for viewer in (None, *range(seats)))


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_every_view_of_a_match_travels_as_if_built_field_by_field(seats: int) -> None:
    for view in views_of_a_match(seats, seed=seats):
        message = ugo_pb2.View.FromString(encode_view(view))
        assert message == field_by_field(view)
        assert decode_view(message) == view


@given(views)
def test_any_view_travels_as_if_built_field_by_field(view: UgoView) -> None:
    message = ugo_pb2.View.FromString(encode_view(view))
    assert message == field_by_field(view)
    assert decode_view(message) == view


@given(views)
def test_one_list_of_tricks_can_be_this_round_and_the_last(view: UgoView) -> None:
    first = replace(view, last_round=())
    second = replace(view, tricks=(), last_round=view.tricks)
    for each in (first, second, first):
        assert ugo_pb2.View.FromString(encode_view(each)) == field_by_field(each)


def test_equal_views_have_equal_bytes_whatever_was_encoded_before() -> None:
    once = [encode_view(view) for view in views_of_a_match(4, seed=1)]
    list(map(encode_view, views_of_a_match(3, seed=2)))
    assert [encode_view(view) for view in views_of_a_match(4, seed=1)] == once


def test_a_view_can_be_spliced_into_an_update_by_the_number_of_its_game() -> None:
    codec = CODECS["ugo"]
    view = next(iter(views_of_a_match(4, seed=5)))
    body = codec.encode_view(view)
    key = codec.number << 3 | 2
    update = play_service_pb2.Update(prompt=7, to_act=True, pace="card").SerializeToString()
    spliced = update + bytes((key & 127 | 128, key >> 7, len(body) & 127 | 128, len(body) >> 7)) + body
    parsed = play_service_pb2.Update.FromString(spliced)
    assert parsed.prompt == 7
    assert parsed.WhichOneof("view") == codec.field
    assert codec.decode_view(getattr(parsed, codec.field)) == view


@given(st.builds(Play, cards) | st.builds(Arrange, st.permutations(CARDS).map(tuple) | some_cards))
def test_a_move_comes_back_as_it_went(move: Play | Arrange) -> None:
    message = ugo_pb2.Move.FromString(encode_move(move).SerializeToString())
    assert decode_move(message) == move


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (ugo_pb2.Move(), "the move is empty: set play or arrange"),
        (ugo_pb2.Move(play=0), "play: the card is not set (CARD_UNSPECIFIED)"),  # type: ignore[arg-type]
        (ugo_pb2.Move(play=46), "play: 46 is no card; they are CARD_R0 = 1 to CARD_K8 = 45"),  # type: ignore[arg-type]
        (ugo_pb2.Move(play=-1), "play: -1 is no card; they are CARD_R0 = 1 to CARD_K8 = 45"),  # type: ignore[arg-type]
        (ugo_pb2.Move(arrange=ugo_pb2.Arrange(cards=[1, 0])), "arrange.cards[1]: the card is not set (CARD_UNSPECIFIED)"),  # type: ignore[list-item]
        (ugo_pb2.Move(arrange=ugo_pb2.Arrange(cards=[1] * 46)), "arrange: there are only 45 cards, not 46"),  # type: ignore[list-item]
    ],
)  # fmt: skip
def test_a_message_that_is_no_move_says_why(message: ugo_pb2.Move, why: str) -> None:
    with pytest.raises(MalformedMove) as malformed:
        decode_move(message)
    assert str(malformed.value) == why


def test_a_view_with_an_unknown_card_is_malformed() -> None:
    with pytest.raises(MalformedView, match="card number 46"):
        decode_view(ugo_pb2.View(hand=[46]))  # type: ignore[list-item]
    with pytest.raises(MalformedView, match="card number 0"):
        decode_view(ugo_pb2.View(hand=[0]))  # type: ignore[list-item]


def test_a_complete_time_control_comes_back_with_its_noughts() -> None:
    time_control = TimeControl(free_ms={"card": 500, "arrange": 900}, bank_ms=0, grace_ms=0, setup_ms=1)
    assert decode_time_control(encode_time_control(time_control)) == time_control


def test_a_field_that_a_request_leaves_out_has_its_default() -> None:
    message = time_control_pb2.TimeControl(free_ms={"card": 50}, bank_ms=7)
    asked = parse_time_control("ugo", message)
    assert asked == TimeControl(free_ms={"card": 50, "arrange": 1000}, bank_ms=7)


def test_a_request_for_nought_is_granted() -> None:
    message = time_control_pb2.TimeControl(bank_ms=0, tie_window_ms=0)
    asked = parse_time_control("ugo", message)
    assert (asked.bank_ms, asked.tie_window_ms, asked.grace_ms) == (0, 0, 50)
    assert parse_time_control("ugo", encode_time_control(asked)) == asked


@pytest.mark.parametrize(
    "message",
    [time_control_pb2.TimeControl(free_ms={"crad": 50}), time_control_pb2.TimeControl(bank_ms=-1)],
)
def test_a_request_that_cannot_be_played_is_refused(message: time_control_pb2.TimeControl) -> None:
    with pytest.raises(BadTimeControl):
        parse_time_control("ugo", message)


@pytest.mark.parametrize("ending", Ending)
def test_each_ending_has_its_number(ending: Ending) -> None:
    assert decode_ending(encode_ending(ending)) is ending


def test_a_finished_match_is_told_as_its_last_entry_says() -> None:
    finished = Finished(
        seq=9,
        at_ms=1,
        outcome={"points": [11, -3], "ranks": [1, 2], "rounds": [[5, 1], [6, -4]]},
        result={"ranks": [2, 1]},
        endings=(Ending.RESIGNED, Ending.COMPLETED),
    )
    message = encode_match_ended(finished, seed=b"s" * 32, chain=b"c" * 32)
    told = decode_match_ended(message, "matches/x", Seat(1))
    assert (told.match, told.seat, told.is_void) == ("matches/x", 1, False)
    assert (told.points, told.outcome_ranks, told.ranks) == ((11, -3), (1, 2), (2, 1))
    assert told.endings == finished.endings
    assert told.rounds == ((5, 1), (6, -4))
    assert (told.seed, told.chain) == (b"s" * 32, b"c" * 32)


def test_a_voided_match_is_told_with_its_reason() -> None:
    message = encode_match_ended(Voided(seq=9, at_ms=1, reason="ABORTED"), seed=b"")
    told = decode_match_ended(message, "matches/x", Seat(0))
    assert told.is_void
    assert told.void_reason == "ABORTED"
    assert told.points == ()


def test_an_offer_tells_the_bot_what_was_set_up() -> None:
    setup = Setup(
        match="matches/x",
        game="ugo",
        rules_version="1",
        options={"rounds": 3},
        bots=("bots/a/versions/1", "bots/b/versions/2"),
        time_control=TimeControl(free_ms={"card": 1, "arrange": 2}, bank_ms=0),
        seed=b"s" * 32,
    )
    message = encode_offer(setup, Seat(1), 5, "host:7")
    assert (message.epoch, message.address) == (5, "host:7")
    assert b"s" * 32 not in message.SerializeToString()
    assert decode_offer(message) == Offer(
        match=setup.match,
        seat=Seat(1),
        game="ugo",
        bots=setup.bots,
        options=setup.options,
        time_control=setup.time_control,
        commitment=sha256(setup.seed).digest(),
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4),
        ("-4", -4),
        ("04", 4),
        ("", ""),
        ("-", "-"),
        ("four", "four"),
        ("1.5", "1.5"),
        ("٣", "٣"),
        ("9" * 13, "9" * 13),
    ],
)
def test_an_option_that_reads_as_a_whole_number_is_one(text: str, value: int | str) -> None:
    assert decode_options({"rounds": text}) == {"rounds": value}


def test_the_wire_has_each_state_of_a_match_and_no_other() -> None:
    known = {f"STATE_{state}" for state in MatchState}
    assert set(match_pb2.Match.State.keys()) == {"STATE_UNSPECIFIED", *known}
