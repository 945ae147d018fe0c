"""A ladder in simulated time: bots that attend, tables that last, ratings that follow."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.ratings.openskill_ratings import OpenskillRatings
from seatwise_server.ladder.bot_form import BotForms, PairMeetings
from seatwise_server.ladder.ladder_pairing import AttendingBot, PairedTable, PairingRules

Play = Callable[[Sequence[str], random.Random], tuple[int, ...]]
"""Ranks by seat."""


@dataclass
class Ladder:
    """All attend all the time but for those that are `away`, with one match at once; a pass every second."""

    rules: PairingRules
    play: Play
    owners: dict[str, str]
    seed: int
    room: int = 1000
    lasts: tuple[float, float] = (5.0, 15.0)
    log: list[LoggedResult] = field(default_factory=list)
    longest_wait: dict[str, float] = field(default_factory=dict)
    now: float = 0.0
    away: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.ratings, self.forms, self.meetings = OpenskillRatings(), BotForms(), PairMeetings()
        self.free_since = dict.fromkeys(self.owners, 0.0)
        self.running: list[tuple[float, PairedTable]] = []

    def come(self, bot: str, owner: str) -> None:
        self.owners[bot], self.free_since[bot] = owner, self.now

    def attending(self) -> list[AttendingBot]:
        return [self._attending(bot) for bot in self.owners if bot not in self.away]

    def _attending(self, bot: str) -> AttendingBot:
        form, since = self.forms.form_of(bot), self.free_since.get(bot)
        waited, free = (0.0, 0) if since is None else (self.now - since, 1)
        return AttendingBot(
            bot,
            self.ratings.rating_of(bot).mu,
            waited,
            self.owners[bot],
            form.recent_opponents,
            form.seat_counts,
            self.meetings.barred_opponents(bot, self.rules.seats, int(self.now * 1000)),
            free,
        )

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1
            self._end()
            for table in self.rules.pair_tables(self.attending(), self.room - len(self.running)):
                self._start(table)

    def _start(self, table: PairedTable) -> None:
        for bot in table:
            waited = self.now - self.free_since.pop(bot)
            self.longest_wait[bot] = max(waited, self.longest_wait.get(bot, 0.0))
        self.running.append((self.now + self.chance.uniform(*self.lasts), table))

    def _end(self) -> None:
        for _, table in sorted(end for end in self.running if end[0] <= self.now):
            ranks = self.play(table, self.chance)
            seq, endings = len(self.log) + 1, ("COMPLETED",) * len(table)
            result = LoggedResult(
                seq,
                f"matches/{seq}",
                table,
                tuple(-rank for rank in ranks),
                ranks,
                endings,
                log_ms=int(self.now * 1000),
            )
            self.log.append(result)
            self.ratings.apply_result(result, is_rated=self.meetings.admit_result(result))
            self.forms.apply_result(result)
            self.free_since.update(dict.fromkeys(table, self.now))
        self.running = [end for end in self.running if end[0] > self.now]


def plackett_luce(strength: dict[str, float]) -> Play:
    """Who is ahead of whom at a table, by the differences of their strengths in log-odds; nothing else plays a part."""

    def play(bots: Sequence[str], chance: random.Random) -> tuple[int, ...]:
        arrivals = [strength[bot] - _gumbel(chance) for bot in bots]
        return tuple(1 + sum(other > own for other in arrivals) for own in arrivals)

    return play


def _gumbel(chance: random.Random) -> float:
    return math.log(chance.expovariate(1.0))
