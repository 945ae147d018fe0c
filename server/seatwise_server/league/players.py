"""Keeps the league's bots running: starts them, restarts them, and gives up those that fail repeatedly."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from seatwise.child_process import ChildProcess
from seatwise.errors import SeatwiseError
from seatwise.link.security import Security
from seatwise.link.wire import GrpcWire
from seatwise.v1.lobby_service_pb2 import AttendRequest
from seatwise.v1.play_service_pb2 import PlayRequest, PlayRequestItem, Resign, Sit
from seatwise_referee.ending import Ending
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.league.processes import CHILD_END_S, last_line, start_bot
from seatwise_server.league.season_log import SeasonLog
from seatwise_server.league.settings import Entrant, League

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
    tell: Callable[[str], None]
    """Shows a message to the operator."""
    security: Security
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
        """Start the local ones among the players: until they are stopped, or for one match, with a seat for each time they are named."""
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
        """Keep a process of the entrant running until cancelled, or until its `seats` in one match are played."""
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
            if seats or process.code is not None or entrant.player in self.season_log.season.given_up:
                process.kill()
            else:
                await process.stop(CHILD_END_S)
            await process.wait()

    def _note_failure(self, entrant: Entrant, code: int) -> None:
        self._failures[entrant.player] += 1
        why = f"its process ended with exit code {code}: {last_line(self._log_of(entrant))}"
        times = self._failures[entrant.player]
        self.tell(f"{entrant.name}: {why} ({times} of {MOST_FAILURES} times in a row)")
        if times >= MOST_FAILURES:
            self._give_up(entrant, f"started {times} times in a row without a completed match; {why}")

    def _give_up(self, entrant: Entrant, why: str) -> None:
        self.season_log.give_up_entrant(entrant.player, why)
        again = f"to readmit it, repair it, press Ctrl-C, run `seatwise league reinstate {entrant.name} {self.logs.parent} --why TEXT`, and run the league again"
        self.tell(f"{entrant.name} is given up: {why}. A substitute resigns its matches; {again}")

    def _log_of(self, entrant: Entrant) -> Path:
        return self.logs / f"{entrant.name}.log"


# Takes the seats of a bot that does not play, and resigns them: the bot loses its matches, and no other bot waits for it.

MAX_MATCHES = 1000
RECONNECT_S = 1.0
NONCE = bytes(32)
"""A nonce that adds no randomness to the deal."""
Outbox: TypeAlias = "asyncio.Queue[PlayRequestItem]"
"""All requests to one referee: its seats share one stream, which has one writer."""


async def run_substitute(address: str, token: str, security: Security) -> None:
    """Take every seat that the bot is offered, and resign it. Runs until cancelled."""
    while True:
        try:
            async with asyncio.TaskGroup() as group:
                await _attend_lobby(GrpcWire(address, token, security=security), group)
                raise _LinkLost  # ends the streams to the referees too
        except* (SeatwiseError, _LinkLost):
            await asyncio.sleep(RECONNECT_S)


class _LinkLost(Exception):  # not an error: the substitute connects again
    pass


async def _attend_lobby(wire: GrpcWire, group: asyncio.TaskGroup) -> None:
    outboxes: dict[str, Outbox] = {}
    async with wire.attend() as lobby:
        await lobby.write(AttendRequest(max_matches=MAX_MATCHES))
        while (response := await lobby.read()) is not None:
            if not response.HasField("offer"):
                continue
            offer = response.offer
            address = offer.address or wire.address
            if address not in outboxes:
                outboxes[address] = asyncio.Queue()
                group.create_task(_resign_seats(wire, address, outboxes[address]))
            # a bot that never sits forfeits too, but only after the set-up time, and a match of two is then void
            sit = PlayRequestItem(match=offer.match, seat=offer.seat, sit=Sit(nonce=NONCE))
            outboxes[address].put_nowait(sit)


async def _resign_seats(wire: GrpcWire, address: str, outbox: Outbox) -> None:
    """Send the outbox to a referee, and resign each seat at its first update, which comes after the deal."""
    async with wire.play(address) as stream, asyncio.TaskGroup() as group:
        writer = group.create_task(_write_requests(stream.write, outbox))
        while (response := await stream.read()) is not None:
            for item in response.items:
                if item.HasField("update"):
                    outbox.put_nowait(PlayRequestItem(match=item.match, seat=item.seat, resign=Resign()))
        writer.cancel()


async def _write_requests(write: Callable[[PlayRequest], Awaitable[None]], outbox: Outbox) -> None:
    while True:
        await write(PlayRequest(items=[await outbox.get()]))
