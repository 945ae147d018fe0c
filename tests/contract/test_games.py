"""What every game must keep, at every table size; a game in the registry gets all of it for that one line."""

from __future__ import annotations

import json
import pickle
from dataclasses import fields, replace
from itertools import islice, product
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from doubles.hosted_games import Goofspiel
from hypothesis import given
from matches.random_matches import (
    LEGAL,
    LISTED,
    OPTIONS,
    TABLES,
    TESTED,
    Chances,
    answer,
    bounded,
    dealt,
    match,
    some,
    timed_out,
    viewers,
)
from matches.random_matches import (
    every_table as every_own_table,
)

from seatwise_referee.game import BadOptions, IllegalMove, ListsLegalMoves, Seat
from seatwise_referee.hosted.hosted_rules import HostedRules

if TYPE_CHECKING:
    from collections.abc import Iterator

GOOFSPIEL = HostedRules(Goofspiel())
"""A game from outside in which seats choose at once, in secret. Its moves are JSON, and its deals are not told in clear."""

every_game = pytest.mark.parametrize("game", [*TESTED.values(), GOOFSPIEL], ids=[*TESTED, GOOFSPIEL.name])
every_table = pytest.mark.parametrize(
    ("game", "seats"), [*TABLES, (GOOFSPIEL, 2)], ids=lambda value: str(getattr(value, "name", value))
)

# --- The course of a match ------------------------------------------------------------------------------


@every_table
@given(chance=Chances)
@bounded(30)
def test_every_match_ends_with_points_and_ranks_for_every_seat(game: Any, seats: int, chance: Random) -> None:
    for step in match(game, seats, chance):
        assert game.outcome(step.state) is None
    outcome = game.outcome(step.after)
    assert len(outcome.points) == len(outcome.ranks) == seats
    assert all(len(points) == seats for points in outcome.rounds)
    assert outcome.ranks == tuple(1 + sum(other < own for other in outcome.ranks) for own in outcome.ranks)
    for own, other in product(zip(outcome.points, outcome.ranks, strict=True), repeat=2):
        assert own[1] < other[1] or own[0] <= other[0]  # a game may break ties, but may not turn points round


@every_table
@given(chance=Chances)
@bounded(3)
def test_the_same_seed_and_moves_give_the_same_match(game: Any, seats: int, chance: Random) -> None:
    again = Random()
    again.setstate(chance.getstate())
    assert list(match(game, seats, chance)) == list(match(game, seats, again))


@every_table
def test_another_seed_gives_another_deal(game: Any, seats: int) -> None:
    assert dealt(game, seats, Random(1)) != dealt(game, seats, Random(2))


@every_table
@given(chance=Chances)
@bounded(5)
def test_states_and_all_that_is_made_from_them_can_be_hashed(game: Any, seats: int, chance: Random) -> None:
    for step in match(game, seats, chance):
        twin = pickle.loads(pickle.dumps(step.state))
        assert (twin, hash(twin)) == (step.state, hash(step.state))
        for made in (step.prompt, step.move, *(game.view(step.state, viewer) for viewer in viewers(seats))):
            hash(made)
    hash(game.outcome(step.after))


@every_table
@given(chance=Chances)
@bounded(5)
def test_every_prompt_asks_seats_of_this_table_at_a_pace_of_this_game(
    game: Any, seats: int, chance: Random
) -> None:
    for step in match(game, seats, chance):
        assert step.prompt.seats
        assert step.prompt.seats <= set(range(seats))
        assert step.prompt.pace in game.paces
        assert all(milliseconds > 0 for milliseconds in game.paces.values())


@every_table
@given(chance=Chances)
@bounded(5)
def test_prompt_numbers_start_at_one_and_rise(game: Any, seats: int, chance: Random) -> None:
    number = 0
    for step in match(game, seats, chance):
        following = game.prompt(step.after)
        assert number or step.prompt.number == 1
        number = step.prompt.number
        if following is not None:
            is_open = step.prompt.race or len(step.prompt.seats) > 1
            is_same_question = is_open and step.seat is not None
            assert following.number > number or (is_same_question and following.number == number)


# --- Moves ----------------------------------------------------------------------------------------------


@every_game
def test_a_game_that_is_checked_here_lists_its_legal_moves(game: Any) -> None:
    """The referee needs no lists, but these tests do."""
    assert isinstance(game, ListsLegalMoves)


@every_table
@given(chance=Chances)
@bounded(4)
def test_a_seat_has_moves_exactly_when_it_is_asked(game: Any, seats: int, chance: Random) -> None:
    for step in match(game, seats, chance):
        for seat in map(Seat, range(seats)):
            assert (next(game.legal_moves(step.state, seat), None) is not None) == (seat in step.prompt.seats)
    assert all(not list(game.legal_moves(step.after, Seat(seat))) for seat in range(seats))


@every_table
@given(chance=Chances)
@bounded(8)
def test_every_listed_move_can_be_played_and_no_other(game: Any, seats: int, chance: Random) -> None:
    steps = list(match(game, seats, chance))
    seen = list(dict.fromkeys(step.move for step in steps if step.move is not None))
    for step in some(iter(steps), chance, 0.3):
        seat = min(step.prompt.seats)
        listed = list(islice(game.legal_moves(step.state, seat), LISTED))
        assert len(listed) == len(set(listed))
        for move in listed:
            game.play(step.state, seat, move)
        if len(listed) < LISTED:
            for move in set(seen) - set(listed):
                with pytest.raises(IllegalMove):
                    game.play(step.state, seat, move)


@every_table
@given(chance=Chances)
@bounded(2)
def test_legal_moves_come_in_a_fixed_order(game: Any, seats: int, chance: Random) -> None:
    for step in match(game, seats, chance):
        for seat in step.prompt.seats:
            listed = [list(islice(game.legal_moves(step.state, seat), LISTED)) for _ in range(2)]
            assert listed[0] == listed[1]


JUNK: list[Any] = [None, -1, 3.5, 10**30, "R3", "", (), ("R3",) * 10_000, [], {}, object(), float("nan")]


def garbage(move: Any) -> Iterator[Any]:
    """What is no move at all, and what has a move's shape with nonsense in it."""
    yield from JUNK
    yield type(move)
    for field in fields(move):
        for junk in (*JUNK, move, (move,), (getattr(move, field.name),) * 2):
            yield replace(move, **{field.name: junk})


@every_table
@given(chance=Chances)
@bounded(4)
def test_an_illegal_move_changes_nothing(game: Any, seats: int, chance: Random) -> None:
    for step in some(match(game, seats, chance), chance, 0.15):
        before = pickle.dumps(step.state)
        asked = min(step.prompt.seats)
        default = game.default_move(step.state, asked)
        tries = [(asked, junk) for junk in garbage(default)]
        tries += [(seat, default) for seat in range(-1, seats + 1) if seat not in step.prompt.seats]
        refused = sum(is_refused(game, step.state, Seat(seat), move) for seat, move in tries)
        assert refused >= len(JUNK)
        assert pickle.loads(before) == step.state


def is_refused(game: Any, state: Any, seat: Seat, move: Any) -> bool:
    """Whether it is illegal; any other error than `IllegalMove` fails the test."""
    said = answer(game, state, seat, move)
    assert 0 < len(said) < 500
    return said != LEGAL


@every_table
@given(chance=Chances)
@bounded(2)
def test_a_match_that_is_over_takes_no_moves(game: Any, seats: int, chance: Random) -> None:
    steps = list(match(game, seats, chance))
    over = steps[-1].after
    for seat in map(Seat, range(seats)):
        for move in {step.move for step in steps if step.move is not None}:
            with pytest.raises(IllegalMove):
                game.play(over, seat, move)


@every_table
@given(chance=Chances)
@bounded(3)
def test_moves_come_back_from_json_as_they_were(game: Any, seats: int, chance: Random) -> None:
    for step in match(game, seats, chance):
        for move in islice(game.legal_moves(step.state, min(step.prompt.seats)), 5):
            written = json.dumps(game.move_to_json(move), allow_nan=False)
            assert game.move_from_json(json.loads(written)) == move


@every_own_table
@given(chance=Chances)
@bounded(3)
def test_json_that_says_more_or_less_than_a_move_is_refused(game: Any, seats: int, chance: Random) -> None:
    for step in some(match(game, seats, chance), chance, 0.1):
        written = game.move_to_json(game.default_move(step.state, min(step.prompt.seats)))
        spoilt = [{**written, "more": 1}, {"more": 1}, [written], json.dumps(written)]
        spoilt += [{**written, key: junk} for key in written for junk in (None, 3.5, "?", [None], {}, [[]])]
        for junk in [None, True, 0, "", [], {}, *spoilt]:
            with pytest.raises(ValueError, match=r"."):
                game.move_from_json(junk)


# --- Time that runs out ---------------------------------------------------------------------------------


@every_table
@given(chance=Chances)
@bounded(4)
def test_time_that_runs_out_for_all_who_are_asked_brings_the_match_on(
    game: Any, seats: int, chance: Random
) -> None:
    for step in match(game, seats, chance):
        following = game.prompt(timed_out(game, step.state, step.prompt))
        assert following is None or following.number > step.prompt.number


@every_table
def test_a_match_of_nothing_but_timeouts_ends(game: Any, seats: int) -> None:
    state, steps = dealt(game, seats, Random(1)), 0
    while (prompt := game.prompt(state)) is not None:
        state, steps = timed_out(game, state, prompt), steps + 1
        assert steps < 10_000


@every_table
@given(chance=Chances)
@bounded(4)
def test_default_moves_for_all_who_are_asked_bring_the_match_on(
    game: Any, seats: int, chance: Random
) -> None:
    """In a race too: the referee plays them for seats that have left."""
    for step in match(game, seats, chance):
        state, following = step.state, step.prompt
        for seat in sorted(step.prompt.seats):
            if following and following.number == step.prompt.number:
                state = game.play(state, seat, game.default_move(state, seat))
                following = game.prompt(state)
        assert following is None or following.number > step.prompt.number


@every_table
@given(chance=Chances)
@bounded(2)
def test_default_moves_are_the_same_every_time_and_legal(game: Any, seats: int, chance: Random) -> None:
    for step in match(game, seats, chance):
        for seat in step.prompt.seats:
            default = game.default_move(step.state, seat)
            assert default == game.default_move(step.state, seat)
            game.play(step.state, seat, default)


# --- Deals and options ----------------------------------------------------------------------------------


@every_own_table
@given(chance=Chances)
@bounded(5)
def test_deals_tell_in_clear_what_is_dealt(game: Any, seats: int, chance: Random) -> None:
    """Whatever the moves, each seat finds itself holding just what `deals_in_clear` says for that round."""
    seed = chance.randbytes(32)
    options = game.complete_options(OPTIONS.get(game.name, {}))
    deals = game.deals_in_clear(seats, seed, options)
    assert json.loads(json.dumps(deals, allow_nan=False)) == deals
    state, started = game.deal(seats, seed, options), 0
    while (prompt := game.prompt(state)) is not None:
        views = [game.view(state, Seat(seat)) for seat in range(seats)]
        if views[0].round > started:
            started = views[0].round
            held = [sorted(map(str, view.hand)) for view in views]
            assert held == [sorted(hand) for hand in deals[started - 1]["hands"]]
        state = timed_out(game, state, prompt)
    assert started == len(deals)


@every_game
def test_options_are_complete_and_take_themselves(game: Any) -> None:
    options = game.complete_options({})
    assert game.complete_options(options) == options
    assert all(isinstance(value, int | str) for value in options.values())


@every_game
def test_unknown_options_and_wrong_tables_are_refused(game: Any) -> None:
    with pytest.raises(BadOptions, match="no_such_option"):
        game.complete_options({"no_such_option": 1})
    for key in game.complete_options({}):
        with pytest.raises(BadOptions, match=key):
            game.complete_options({key: object()})
    for seats in (game.table_sizes.start - 1, game.table_sizes.stop):
        with pytest.raises(BadOptions):
            game.deal(seats, bytes(32), game.complete_options({}))
