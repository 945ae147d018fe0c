"""Keeps the league's bots running: starts them, restarts them, and gives up those that fail repeatedly."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from seatwise.child_process import ChildProcess
from seatwise.link.security import Security
from seatwise_referee.ending import Ending
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.league.processes import CHILD_END_S, last_line, start_bot
from seatwise_server.league.season_log import SeasonLog
from seatwise_server.league.settings import Entrant, League
from seatwise_server.league.substitute import run_substitute

MOST_FAILURES = 4
"""The number of failed starts in a row after which a substitute resigns the entrant's matches."""
WAITS_S = (0.2, 1.0, 2.0, 4.0)


@dataclass
class Players:
    """The entrants that the runner starts. Use it in an `async with` statement."""

    league: League
    address: str
    tokens: Mapping[str, str]
    """The tokens by player."""
    season_log: SeasonLog
    logs: Path
    """The folder of their logs, with one file for each."""
    tables: int
    """The most matches that a bot may have at once."""
    tell: Callable[[str], None] = lambda _: None
    """Shows a message to the operator."""
    security: Security = field(default_factory=Security)
    """How the bots' connections to the server are protected."""

    def __post_init__(self) -> None:
        self._failures: Counter[str] = Counter()
        self._local = {each.player: each for each in self.league.entrants if each.is_local}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._running: dict[str, ChildProcess] = {}

    async def __aenter__(self) -> Players:
        self.logs.mkdir(parents=True, exist_ok=True)
        if not self.league.is_fresh:
            self.start_players(self._local)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop_players(list(self._tasks))

    def start_players(self, players: Iterable[str], *, is_for_one: bool = False) -> None:
        """Start the local ones among the players, until they are stopped or for one match.

        With `is_for_one`, a player that is named several times has that many seats in the match.
        """
        for player, seats in Counter(players).items():
            if player in self._local and player not in self._tasks:
                playing = self._keep_attending(self._local[player], seats if is_for_one else 0)
                self._tasks[player] = asyncio.create_task(playing)

    async def stop_players(self, players: Iterable[str]) -> None:
        """Stop these players, and wait until their processes have ended."""
        ending = [self._tasks.pop(player) for player in players if player in self._tasks]
        for task in ending:
            task.cancel()
        for task in ending:
            await asyncio.wait({task})
            if not task.cancelled() and (error := task.exception()):
                raise error

    def note_completed(self, result: LoggedResult) -> None:
        """Forget the failures of the players that completed this match."""
        for player, ending in zip(result.bots, result.endings, strict=True):
            if ending == Ending.COMPLETED:
                self._failures.pop(player, None)

    async def start_again(self, players: Iterable[str]) -> None:
        """Stop the processes of players that do not attend. It counts as a failure, and they are started again."""
        running = [self._running[player] for player in players if player in self._running]
        await asyncio.gather(*(process.stop(CHILD_END_S) for process in running))

    async def give_up(self, players: Iterable[str], why: str) -> None:
        """Give up the local ones among the players: from now on a substitute resigns their matches."""
        for player in players:
            if player not in self._local or player in self.season_log.season.given_up:
                continue
            self._give_up(self._local[player], why)
            if player in self._tasks:
                await self.stop_players([player])
                self.start_players([player])

    def is_ours(self, player: str) -> bool:
        """Return whether the runner starts this player."""
        return player in self._local

    async def _keep_attending(self, entrant: Entrant, seats: int) -> None:
        """Keep a process of the entrant running until cancelled, or until its `seats` seats in one match are played."""
        player = entrant.player
        while player not in self.season_log.season.given_up:
            code = await self._run_process(entrant, seats)
            if seats and code == 0:
                return
            self._note_failure(entrant, code)
            await asyncio.sleep(WAITS_S[min(self._failures[player], len(WAITS_S)) - 1])
        await run_substitute(self.address, self.tokens[player], self.security)

    async def _run_process(self, entrant: Entrant, seats: int) -> int:
        """Run one process until it ends, and return its exit code."""
        process = self._running[entrant.player] = await start_bot(
            self.league, entrant, self.address, self.tokens[entrant.player], self._log_of(entrant),
            security=self.security, most=seats or self.tables * self.league.seats, matches=seats,
        )  # fmt: skip
        try:
            return await process.wait()
        finally:
            del self._running[entrant.player]
            # A process that is given up is not asked twice, one whose only match is over has no work to finish,
            # and one that has ended may have left child processes: these three are killed.
            is_given_up = entrant.player in self.season_log.season.given_up
            process.kill() if is_given_up or seats or process.code is not None else await process.stop(
                CHILD_END_S
            )
            await process.wait()

    def _note_failure(self, entrant: Entrant, code: int) -> None:
        self._failures[entrant.player] += 1
        why = f"its process ended with exit code {code}: {last_line(self._log_of(entrant))}"
        times = self._failures[entrant.player]
        self.tell(f"{entrant.name}: {why} ({times} of {MOST_FAILURES} times in a row)")
        if times >= MOST_FAILURES:
            told = f"started {MOST_FAILURES} times in a row without a completed match; {why}"
            self._give_up(entrant, told)

    def _give_up(self, entrant: Entrant, why: str) -> None:
        self.season_log.give_up_entrant(entrant.player, why)
        again = f"to readmit it, repair it, press Ctrl-C, run `seatwise league reinstate {entrant.name} {self.logs.parent} --why TEXT`, and run the league again"
        self.tell(f"{entrant.name} is given up: {why}. A substitute resigns its matches; {again}")

    def _log_of(self, entrant: Entrant) -> Path:
        return self.logs / f"{entrant.name}.log"
