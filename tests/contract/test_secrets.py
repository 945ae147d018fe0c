"""No seat learns of a game what it may not know: the same tests for every game and table size.

The strongest of them needs no list of secrets: all that a seat cannot know is drawn anew, and
whatever is shown to that seat must stay as it was.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import given
from leaks.resample import HIDDEN, RESAMPLERS, hidden_from, resampled
from matches.effort import FULL
from matches.random_matches import (
    LISTED,
    Chances,
    answer,
    bounded,
    every_game,
    every_table,
    match,
    some,
    timed_out,
    viewers,
)

from seatwise_referee.game import Seat

if TYPE_CHECKING:
    from collections.abc import Iterator


@every_table
@given(chance=Chances)
@bounded(20)
def test_a_view_is_the_same_whatever_its_seat_cannot_know(game: Any, seats: int, chance: Random) -> None:
    for step in match(game, seats, chance):
        for viewer in viewers(seats):
            twin = resampled(game.name, step.state, viewer, chance)
            assert game.view(twin, viewer) == game.view(step.state, viewer)
            assert game.prompt(twin) == step.prompt


@every_table
@given(chance=Chances)
@bounded(10)
def test_a_seat_is_offered_and_refused_the_same_whatever_it_cannot_know(
    game: Any, seats: int, chance: Random
) -> None:
    steps = list(match(game, seats, chance))
    moves = [step.move for step in steps if step.move is not None]
    for step in some(iter(steps), chance, 0.5 if FULL else 0.15):
        for seat in map(Seat, range(seats)):
            twin = resampled(game.name, step.state, seat, chance)
            listed, twins = (
                list(islice(game.legal_moves(state, seat), LISTED)) for state in (step.state, twin)
            )
            assert listed == twins
            for move in chance.sample(moves, 5):
                assert answer(game, twin, seat, move) == answer(game, step.state, seat, move)


@every_table
@given(chance=Chances)
@bounded(5)
def test_the_other_world_differs_in_the_secrets_of_others(game: Any, seats: int, chance: Random) -> None:
    """Or the two tests above would prove nothing: twins differ, and for others they look different."""
    changed = looked = 0
    for step in match(game, seats, chance):
        for seat in map(Seat, range(seats)):
            twin = resampled(game.name, step.state, seat, chance)
            looked += 1
            changed += any(game.view(twin, other) != game.view(step.state, other) for other in viewers(seats))
            assert twin != step.state
    assert changed > 0.6 * looked


@every_table
@given(chance=Chances)
@bounded(5)
def test_a_resampled_match_can_be_played_on_to_its_end(game: Any, seats: int, chance: Random) -> None:
    for step in some(match(game, seats, chance), chance, 0.05):
        state = resampled(game.name, step.state, chance.choice(viewers(seats)), chance)
        while (prompt := game.prompt(state)) is not None:
            state = timed_out(game, state, prompt)
        assert game.outcome(state) is not None


@every_game
def test_every_game_can_be_resampled(game: Any) -> None:
    assert game.name in RESAMPLERS
    assert game.name in HIDDEN


@every_table
@given(chance=Chances)
@bounded(8)
def test_no_view_holds_a_card_that_its_seat_cannot_know(game: Any, seats: int, chance: Random) -> None:
    for step in match(game, seats, chance):
        for viewer in viewers(seats):
            view = game.view(step.state, viewer)
            assert not hidden_from(game.name, step.state, viewer) & set(shown(view))


@every_table
@given(chance=Chances)
@bounded(8)
def test_hands_that_are_opened_help_nobody(game: Any, seats: int, chance: Random) -> None:
    """They are of finished rounds, as they were dealt, and the same whatever a seat or a spectator cannot know."""
    steps = list(match(game, seats, chance))
    opened_at_the_end = {deal["round"]: deal for deal in game.opened(steps[-1].after)}
    assert opened_at_the_end
    for step in steps:
        opened = game.opened(step.state)
        for deal in opened:
            assert deal["round"] <= len(game.view(step.state, None).points)
            assert [len(set(hand)) for hand in deal["hands"]] == [len(hand) for hand in deal["hands"]]
            assert len(deal["hands"]) == seats
        for viewer in viewers(seats):
            assert game.opened(resampled(game.name, step.state, viewer, chance)) == opened


@every_table
@given(chance=Chances)
@bounded(10)
def test_a_spectator_knows_no_more_than_any_seat(game: Any, seats: int, chance: Random) -> None:
    for step in match(game, seats, chance):
        spectator = game.view(step.state, None)
        for seat in map(Seat, range(seats)):
            assert_no_more(spectator, game.view(step.state, seat))


def assert_no_more(less: Any, more: Any) -> None:
    """Each part of the one view is the same in the other, or is empty."""
    for field in fields(less):
        own, others = getattr(less, field.name), getattr(more, field.name)
        if own != others and own not in (None, (), 0, False):
            assert is_dataclass(own), f"{field.name}: {own} is more than {others}"
            assert_no_more(own, others)


def shown(part: Any) -> Iterator[str]:
    """Every value in a view as text, but for the round before, whose cards are in play again."""
    if is_dataclass(part):
        part = tuple(getattr(part, field.name) for field in fields(part) if field.name != "last_round")
    if not isinstance(part, tuple | frozenset):
        yield str(part)
        return
    for inner in part:
        yield from shown(inner)
