"""Finished races in which something happened, each from its one known journal."""

from __future__ import annotations

from typing import Any

from matches.one_race import BUILD_MS, ROUND_MS, SEVEN, RaceDesk, ready
from seatwise_referee.games.ubongo import Lay

ILLEGAL = Lay(((), ()))  # type: ignore[arg-type]


def raced() -> RaceDesk:
    """A tie of two who are differently far away, then a round that one of them wins."""
    race = ready(0, 1, tables=3, rounds=2, allowances=[1, 40, 0])
    race.lay(2, 4)
    race.at(501).call(0)
    race.at(540).call(1)
    race.until(700)
    race.hand_all(1, 40, 0)
    race.lay(1, SEVEN), race.lay(2, -3)
    race.at(1000).call(1)
    race.until(2000)
    return race


def called_falsely() -> RaceDesk:
    """Two call falsely, one after the other, and a third one rightly."""
    race = ready(3, tables=4)
    race.lay(0, -7), race.lay(1, -8), race.lay(2, 5)
    race.at(100).call(0)
    race.until(200)
    race.lay(2, 6)
    race.at(300).call(1)
    race.at(304).call(3)
    race.until(400)
    return race


def ended_falsely() -> RaceDesk:
    """A false call ends the round, as printed."""
    race = ready(1, false_call="ends")
    race.lay(0, -7)
    race.at(100).call(0)
    race.until(200)
    return race


def agreed() -> RaceDesk:
    """One round ends because all agree, the next because its time is over; one seat is silent in it."""
    race = ready(0, tables=3, rounds=2, allowances=[0, 30, 0])
    race.lay(1, 5)
    race.at(100).offer(0)
    race.at(200).offer(2)
    race.offer(0, on=False), race.offer(0)
    race.at(300).offer(1)
    race.at(310).hand_all(0, 30, 0)
    race.lay(0, 3)
    race.at(400).lay(2, 4)
    race.until(400 + ROUND_MS)
    return race


def left_race() -> RaceDesk:
    """One resigns with cards laid, one is forfeited for illegal moves, one for its silence."""
    race = ready(1, tables=4, rounds=3, max_rejections=2, max_strikes=2)
    race.lay(2, 4)
    race.at(50).resign(1)
    race.play(2, ILLEGAL), race.play(2, ILLEGAL)
    for _ in range(2):
        race.hand_all()
        race.lay(0, 2)
        race.until(race.now + ROUND_MS + 1)
    race.hand_all()
    race.lay(0, 1), race.offer(0)
    return race


def race_taken_over() -> RaceDesk:
    """After a false call, with a standstill before and one after it."""
    race = ready(1, tables=3)
    race.lay(0, -7)
    race.at(2000).stand_still(500)
    race.at(4000).call(0)
    race.until(4100)
    race.at(9000).take_over()
    race.at(9040).hand_all(0, 60, 0)
    race.at(9500).stand_still(200, "STORE")
    race.at(9540).resign(2)
    race.at(9600).call(1)
    race.until(9800)
    return race


def race_stood_still() -> RaceDesk:
    """What comes in a standstill is known as such only later; the window is as wide as the loop lagged."""
    race = ready(0, 2, tables=3, allowances=[0, 100, 0])
    race.match.note_lag(30)
    race.at(150).lay(1, 3)
    race.at(200).call(0)
    race.at(230).stand_still(70, "STORE")
    race.at(255).call(2)
    race.until(600)
    return race


def eventful_race() -> RaceDesk:
    """All of it in one match of four seats and three rounds, with one seat that never sat."""
    race = RaceDesk(4, 3, max_strikes=2, are_seated=False)
    race.sit(2, 1, 0)
    race.until(5000)
    race.hand_all(10, 20, 30, 40)
    race.lay(0, -8), race.lay(1, SEVEN), race.lay(2, 2)
    race.play(1, ILLEGAL)
    race.at(5300).stand_still(100)
    race.at(5400).call(0)
    race.until(5500)
    race.at(6000).take_over()
    race.hand_all(0, 100, 0, 0)
    race.play(1, Lay(race.layout(1, SEVEN)))
    race.at(6500).call(1)
    race.until(7000)
    race.hand_all()
    race.lay(0, 4), race.offer(0)
    race.until(7000 + BUILD_MS + 400)
    race.hand_all()
    race.lay(1, 3)
    race.at(race.now + 100).resign(2)
    race.offer(0), race.offer(1)
    return race


RACES: dict[str, Any] = {
    scene.__name__: scene
    for scene in (
        raced, called_falsely, ended_falsely, agreed, left_race, race_taken_over, race_stood_still, eventful_race,
    )
}  # fmt: skip
"""By name."""
