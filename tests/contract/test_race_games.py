"""What a game in which all build at once must keep besides, so that a match can carry its race."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from matches.random_matches import TABLES, Chances, bounded, dealt, match, some

from seatwise_referee.game import IllegalMove, Seat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matches.random_matches import Step

RACES = [(game, seats) for game, seats in TABLES if hasattr(game, "call_together")]
every_race = pytest.mark.parametrize(
    ("game", "seats"), RACES, ids=lambda value: str(getattr(value, "name", value))
)


def answers(game: Any, seats: int, chance: Random) -> Iterator[Step]:
    """The steps in which a seat moved."""
    return (step for step in match(game, seats, chance) if step.seat is not None)


def test_there_is_a_race() -> None:
    assert {game.name for game, _ in RACES} >= {"ubongo"}


@every_race
@given(chance=Chances)
@bounded(3)
def test_its_prompts_are_races_and_those_of_other_games_are_not(
    game: Any, seats: int, chance: Random
) -> None:
    assert all(step.prompt.race for step in match(game, seats, chance))
    assert not game.prompt(dealt(game, seats, chance)).fault  # whoever builds on need not answer in time


@every_race
@given(chance=Chances)
@bounded(4)
def test_a_move_lays_or_calls_or_offers_and_the_default_move_does_neither(
    game: Any, seats: int, chance: Random
) -> None:
    kinds = (game.is_lay, game.is_call, game.is_offer)
    for step in answers(game, seats, chance):
        assert sum(is_one(step.move) for is_one in kinds) == 1
        assert not any(is_one(game.default_move(step.state, step.seat)) for is_one in kinds)
    for junk in (None, (), "call", object()):
        assert not any(is_one(junk) for is_one in kinds)


@every_race
@given(chance=Chances)
@bounded(4)
def test_layouts_come_back_from_a_journal_as_they_were(game: Any, seats: int, chance: Random) -> None:
    for step in some(answers(game, seats, chance), chance, 0.3):
        if game.is_lay(step.move):
            written = json.loads(json.dumps(game.layouts(step.after), allow_nan=False))
            assert len(written) == seats
            assert game.with_layouts(step.state, written) == step.after
            assert game.layouts(step.state)[: step.seat] == written[: step.seat]


@every_race
@given(chance=Chances)
@bounded(2)
def test_layouts_that_are_none_are_refused(game: Any, seats: int, chance: Random) -> None:
    state = dealt(game, seats, chance)
    for junk in (None, 3, "x", {}, [[]], [["9-99", 0, 0, 0]], [["1-01", 0, 0]], [["1-01", 0.5, 0, 0]]):
        with pytest.raises(ValueError, match=r"."):  # an `IllegalMove` is one too
            game.with_layouts(state, [junk, *[[]] * (seats - 1)])
    for layouts in ([], [[]] * (seats + 1)):
        with pytest.raises(IllegalMove):
            game.with_layouts(state, layouts)


@every_race
@given(chance=Chances)
@bounded(6)
def test_one_who_calls_alone_calls_as_by_a_move_and_all_must_be_able_to(
    game: Any, seats: int, chance: Random
) -> None:
    for step in answers(game, seats, chance):
        if game.is_call(step.move):
            assert game.call_together(step.state, frozenset((step.seat,))) == step.after
            unable = next((seat for seat in step.prompt.seats if not can_call(game, step.state, seat)), None)
            if unable is not None:
                with pytest.raises(IllegalMove):
                    game.call_together(step.state, frozenset((step.seat, unable)))


def can_call(game: Any, state: Any, seat: Seat) -> bool:
    return any(game.is_call(move) for move, _ in zip(game.legal_moves(state, seat), range(5), strict=False))


@every_race
@given(chance=Chances)
@bounded(4)
def test_an_agreement_ends_the_round_for_all(game: Any, seats: int, chance: Random) -> None:
    for step in some(match(game, seats, chance), chance, 0.2):
        following = game.prompt(game.end_round(step.state))
        assert following is None or following.number == step.prompt.number + 1
        assert following is None or following.seats == set(range(seats))


@every_race
def test_a_seat_that_agrees_to_the_end_must_take_that_back_to_call(game: Any, seats: int) -> None:
    """For all see who agrees, and would see it vanish before they are told of the call."""
    chance = Random(seats)
    tried = 0
    for step in (step for _ in range(20) for step in answers(game, seats, chance)):
        offer = next((move for move in game.legal_moves(step.state, step.seat) if game.is_offer(move)), None)
        if game.is_call(step.move) and offer is not None:
            tried += 1
            offered = game.play(step.state, step.seat, offer)
            if game.prompt(offered) == step.prompt:
                with pytest.raises(IllegalMove, match="offer"):
                    game.call_together(offered, frozenset((step.seat,)))
    assert tried
