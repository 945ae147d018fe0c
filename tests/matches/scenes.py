"""Finished matches in which something happened, each from its one known journal."""

from __future__ import annotations

from typing import Any

from matches.one_match import Desk
from matches.race_scenes import RACES
from seatwise_referee.game import Seat
from seatwise_referee.match import replay_match

OUT_OF_TIME_MS = 5000


def smooth(seats: int = 2, rounds: int = 1) -> Desk:
    """Nobody errs; every move takes 7 ms."""
    desk = Desk(seats, rounds)
    desk.sit_all()
    desk.play_out(ms_each=7)
    return desk


def timed_out() -> Desk:
    """Seat 1 runs out of time twice, once found by the timer and once by its own late answer, and is forfeited."""
    desk = Desk(3, max_strikes=2)
    desk.sit_all()
    desk.play_until(1)
    desk.now += OUT_OF_TIME_MS
    desk.tick()
    desk.play_until(1)
    desk.hand(allowance_ms=30)
    desk.now += OUT_OF_TIME_MS
    desk.submit()
    desk.play_out(ms_each=3)
    return desk


def broke_rules() -> Desk:
    """Seat 0 is forfeited for its second illegal move."""
    desk = Desk(2, max_rejections=2)
    desk.sit_all()
    desk.submit_illegal()
    desk.now += 4
    desk.submit()
    desk.play_until(0)
    desk.submit_illegal()
    desk.play_out(ms_each=2)
    return desk


def resigned() -> Desk:
    """Seat 2 goes before the deal, seat 0 when it is asked, seat 3 when it is not."""
    desk = Desk(4)
    desk.sit(2)
    desk.do(desk.match.resign(Seat(2), 0))
    desk.sit(0, 1, 3)
    desk.play_until(0)
    desk.do(desk.match.resign(Seat(0), desk.now))
    desk.play_until(1)
    desk.do(desk.match.resign(Seat(3), desk.now))
    desk.play_out(ms_each=2)
    return desk


def never_sat() -> Desk:
    """Seats 0 and 3 stay away."""
    desk = Desk(4)
    desk.sit(2, 1)
    desk.now = 5000
    desk.tick()
    desk.play_out(ms_each=2)
    return desk


def stood_still() -> Desk:
    """Two standstills in one prompt, of which the first began before the hand-over."""
    desk = Desk(2, increment_ms=20)
    desk.sit_all()
    desk.now = 200
    desk.hand(allowance_ms=15)
    for ms, why in ((900, "STALL"), (300, "STORE")):
        desk.now += 800
        desk.do(desk.match.note_standstill(ms, why, desk.now))
    desk.now += 900
    desk.submit()
    desk.play_out(ms_each=2)
    return desk


def taken_over() -> Desk:
    """In the set-up and in the middle of a prompt."""
    desk = Desk(2)
    desk.sit(0)
    _take_over(desk)
    desk.sit(1)
    desk.hand()
    desk.now += 900
    _take_over(desk)
    desk.now += 1500
    desk.hand(allowance_ms=10)
    desk.now += 60
    desk.submit()
    desk.play_out(ms_each=2)
    return desk


def _take_over(desk: Desk) -> None:
    desk.match = replay_match(desk.setup, desk.journal)
    desk.do(desk.match.take_over(desk.match.position.epoch + 1, desk.now))


def eventful() -> Desk:
    """All of it in one match of four seats and two rounds."""
    desk = Desk(4, 2, max_strikes=2, max_rejections=3, increment_ms=10)
    desk.sit(2, 1, 0)
    desk.now = 5000
    desk.tick()
    for step in range(400):
        if desk.match.is_over:
            return desk
        _something(desk, step)
    raise AssertionError("does not end")


def _something(desk: Desk, step: int) -> None:
    desk.now += 5
    seat = desk.asked
    desk.hand(allowance_ms=step % 4)
    if step == 9:
        _take_over(desk)
    elif step == 50:
        desk.do(desk.match.resign(Seat(2), desk.now))
    elif step in (15, 40):
        desk.submit_illegal()
    elif seat == 1 and step in range(20, 80):
        desk.now += OUT_OF_TIME_MS
        desk.tick()
        return
    elif step % 11 == 0:
        desk.now += 700
        desk.do(desk.match.note_standstill(650, "STALL", desk.now))
    if not desk.match.is_over:
        desk.submit()


TURNS: dict[str, Any] = {
    scene.__name__: scene
    for scene in (
        smooth, timed_out, broke_rules, resigned, never_sat, stood_still, taken_over, eventful,
    )
}  # fmt: skip
"""Of UGO!, by name."""

SCENES = {**TURNS, **RACES}
"""Of both games."""
