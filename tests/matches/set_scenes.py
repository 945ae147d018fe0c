"""Matches of a set of duplicate deals, as the referee sees them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from matches.one_match import Desk
from seatwise_referee.match import Match
from seatwise_referee.setup import DealSet
from seatwise_referee.shuffle import seed_in_set

SET_SEED = bytes(range(100, 132))


def desk(number: int = 2, size: int = 3, name: str = "sets/final", seats: int = 2, rounds: int = 1) -> Desk:
    """A match of the set, not begun."""
    it = Desk(seats, rounds, name=f"matches/number-{number}")
    join(it, DealSet(name, number, size, SET_SEED))
    return it


def join(it: Desk, place: DealSet) -> None:
    """This match, which has not begun, is one of the set."""
    it.setup = replace(it.setup, seed=seed_in_set(SET_SEED, place.number), deal_set=place)
    it.match = Match(it.setup)


def played(number: int = 2, ms_each: int = 7, **place: Any) -> Desk:
    """The same, played to the end; every move takes so long."""
    it = desk(number, **place)
    it.sit_all()
    it.play_out(ms_each=ms_each)
    return it
