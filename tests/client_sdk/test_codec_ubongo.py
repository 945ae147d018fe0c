"""Ubongo on the wire: what travels is what was meant, there and back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatwise.codec import MalformedMove, MalformedView
from seatwise.games.ubongo.v1 import ubongo_pb2
from seatwise.kits.codecs import CODECS
from seatwise.kits.ubongo.codec import decode_move, decode_view, encode_move, encode_view
from seatwise.v1 import play_service_pb2
from seatwise_referee.game import Seat
from seatwise_referee.games.ubongo import (
    BOUND,
    CALL,
    CARDS,
    HAND_SIZE,
    BuiltLayout,
    Lay,
    Layout,
    OfferEnd,
    Placement,
    Side,
    Stop,
    Ubongo,
    UbongoView,
)

GAME = Ubongo()
seats = st.integers(0, 3).map(Seat)
along = st.integers(-BOUND, BOUND)
cards = st.sampled_from(CARDS)
layouts = st.lists(st.builds(Placement, cards, along, along, st.integers(0, 3)), max_size=HAND_SIZE).map(
    tuple
)
sides = st.builds(Side, cards, st.text("ABCDEFGH", min_size=6, max_size=6))
some_seats = st.lists(seats, max_size=4).map(tuple)


@st.composite
def built(draw: st.DrawFn) -> BuiltLayout:
    layout: Layout = draw(layouts)
    symbols = [draw(sides).symbols for _ in layout]
    up = tuple(Side(each.card, own) for each, own in zip(layout, symbols, strict=True))
    return BuiltLayout(layout, up, draw(st.booleans()))


views = st.builds(
    UbongoView,
    seat=st.none() | seats,
    round=st.integers(1, 6),
    rounds=st.integers(1, 6),
    hand=st.lists(sides, max_size=HAND_SIZE).map(tuple),
    layout=layouts,
    laid=st.lists(st.integers(0, 9), max_size=4).map(tuple),
    building=some_seats,
    offers=some_seats,
    out=some_seats,
    points=st.lists(st.tuples(*[st.integers(0, 10)] * 4), max_size=6).map(tuple),
    last_round=st.lists(built(), max_size=4).map(tuple),
)


def layout_message(layout: Layout) -> ubongo_pb2.Layout | None:
    return ubongo_pb2.Layout(
        cards=[each.card + 1 for each in layout],
        xs=[each.x for each in layout],
        ys=[each.y for each in layout],
        turns=[each.turn for each in layout],
    ) if layout else None  # fmt: skip


def field_by_field(view: UbongoView) -> ubongo_pb2.View:
    """The message as anybody would build it."""
    return ubongo_pb2.View(
        seat=view.seat,
        round=view.round,
        rounds=view.rounds,
        hand=[side.card + 1 for side in view.hand],
        symbols="".join(side.symbols for side in view.hand),
        layout=layout_message(view.layout),
        laid=view.laid,
        building=view.building,
        offers=view.offers,
        out=view.out,
        points=[ubongo_pb2.RoundPoints(points=each) for each in view.points],
        last_round=[
            ubongo_pb2.Built(
                layout=layout_message(each.layout),
                symbols="".join(side.symbols for side in each.sides),
                has_called=each.has_called,
            )
            for each in view.last_round
        ],
    )


def views_of_a_match(seats: int, seed: int) -> Iterator[UbongoView]:
    chance = random.Random(seed)
    state = GAME.deal(seats, seed.to_bytes(32, "big"), GAME.complete_options({"rounds": 2}))
    for number in range(400):
        prompt = GAME.prompt(state)
        yield from (GAME.view(state, viewer) for viewer in (None, *map(Seat, range(seats))))
        if prompt is None:
            return
        seat = chance.choice(sorted(prompt.seats))
        likely = list(islice(GAME.legal_moves(state, seat), 12))
        state = GAME.play(state, seat, chance.choice(likely))
        if number % 100 == 99:
            state = GAME.end_round(state)


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_every_view_of_a_match_travels_as_if_built_field_by_field(seats: int) -> None:
    for view in views_of_a_match(seats, seed=seats):
        message = ubongo_pb2.View.FromString(encode_view(view))
        assert message == field_by_field(view)
        assert decode_view(message) == view


@given(views)
def test_any_view_travels_as_if_built_field_by_field(view: UbongoView) -> None:
    message = ubongo_pb2.View.FromString(encode_view(view))
    assert message == field_by_field(view)
    assert decode_view(message) == view


def test_a_view_can_be_spliced_into_an_update_by_the_number_of_its_game() -> None:
    codec = CODECS["ubongo"]
    view = list(views_of_a_match(4, seed=5))[-2]
    whole = play_service_pb2.Update(prompt=7, ubongo=field_by_field(view)).SerializeToString()
    assert whole.endswith(codec.encode_view(view))
    parsed = play_service_pb2.Update.FromString(whole)
    assert parsed.WhichOneof("view") == codec.field
    assert codec.number == play_service_pb2.Update.DESCRIPTOR.fields_by_name[codec.field].number


@given(st.builds(Lay, layouts) | st.just(CALL) | st.builds(OfferEnd, st.booleans()))
def test_a_move_comes_back_as_it_went(move: Lay | OfferEnd) -> None:
    message = ubongo_pb2.Move.FromString(encode_move(move).SerializeToString())
    assert decode_move(message) == move


def test_moves_that_only_the_referee_plays_are_not_encoded() -> None:
    with pytest.raises(ValueError, match="no move of a bot"):
        encode_move(Stop())


def lay(cards: list[int], xs: list[int], ys: list[int], turns: list[int]) -> ubongo_pb2.Move:
    return ubongo_pb2.Move(lay=ubongo_pb2.Layout(cards=cards, xs=xs, ys=ys, turns=turns))


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (ubongo_pb2.Move(), "the move is empty: set lay, call or offer_end"),
        (lay([0], [0], [0], [0]), "lay.cards[0]: 0 is no card; they are 1 to 108"),
        (lay([1, 109], [0, 1], [0, 1], [0, 1]), "lay.cards[1]: 109 is no card; they are 1 to 108"),
        (lay([-1], [0], [0], [0]), "lay.cards[0]: -1 is no card; they are 1 to 108"),
        (lay([1] * 10_000, [0] * 10_000, [0] * 10_000, [0] * 10_000), "lay: a hand has 9 cards, and this layout names 10000"),
        (lay([1], [0] * 10_000, [0], [0]), "lay: a hand has 9 cards, and this layout names 10000"),
        (lay([1, 2], [0], [0, 0], [0, 0]), "lay: cards, xs, ys and turns have as many numbers each; they have 2, 1, 2, 2"),
    ],
    ids=lambda each: each[:40] if isinstance(each, str) else "",
)  # fmt: skip
def test_a_message_that_is_no_move_says_why(message: ubongo_pb2.Move, why: str) -> None:
    with pytest.raises(MalformedMove) as malformed:
        decode_move(message)
    assert str(malformed.value) == why


def test_positions_out_of_bounds_are_for_the_rules_to_refuse() -> None:
    far = 2**31 - 1
    assert decode_move(lay([1], [far], [-far], [9])) == Lay((Placement(CARDS[0], far, -far, 9),))


def test_a_view_without_sense_is_malformed() -> None:
    with pytest.raises(MalformedView, match="109 is no card"):
        decode_view(ubongo_pb2.View(hand=[109], symbols="ABCDEF"))
    with pytest.raises(MalformedView, match="have 6 symbols, not 5"):
        decode_view(ubongo_pb2.View(hand=[1], symbols="ABCDE"))
