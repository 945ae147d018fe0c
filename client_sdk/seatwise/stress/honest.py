"""The honest matches of `seatwise stress`: ordinary bots of the SDK, and what they feel."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final

from seatwise.async_client import AsyncClient, Registered
from seatwise.bot import Bot
from seatwise.errors import SeatwiseError
from seatwise.kits import DEFAULT_GAME
from seatwise.link.bot_session import BotSession, RunPlan
from seatwise.link.security import Security
from seatwise.link.wire import GrpcWire
from seatwise_referee.ending import Ending

THINK_S: Final = 0.02
"""For each move, in seconds: more of them would measure this machine rather than the server."""
MATCH_POLL_S: Final = 0.2
OPEN_STATES: Final = ("STATE_WAITING", "STATE_SEATING", "STATE_RUNNING")


@dataclass(slots=True)
class Felt:
    """The delays and losses of the honest bots in one phase."""

    steps_ms: list[float] = field(default_factory=list)
    """From the answer of one bot to the next question of its match, in milliseconds."""
    matches: int = 0
    """Matches that ended."""
    harm: Counter[str] = field(default_factory=Counter)
    """How often an honest seat was harmed: `timeouts`, `forfeits`, `voids` and `errors`."""


class HonestTables:
    """Pairs of honest bots, each of which plays match after match. `felt` is where the present phase is written."""

    def __init__(self, client: AsyncClient, address: str, security: Security) -> None:
        self._client = client
        self._address = address
        self._security = security
        self._last_answers: dict[str, float] = {}
        self.felt = Felt()

    async def play_pair(self, pair: tuple[Registered, Registered]) -> None:
        """Play one match after the other between two bots, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for bot in pair:
                group.create_task(play_bot(lambda: HonestBot(self), self._address, bot.token, self._security))
            while True:
                await self._play_match([bot.bot for bot in pair])

    async def _play_match(self, bots: list[str]) -> None:
        try:
            name = await play_match(self._client, bots)
            self.felt.matches += 1
            self.felt.harm += count_harm(await self._client.get_record(name))
            self._last_answers.pop(name, None)
        except SeatwiseError:
            self.felt.harm["errors"] += 1
            await asyncio.sleep(MATCH_POLL_S)

    def note_question(self, match: str) -> None:
        """A bot is asked: this ends the step that began with the last answer in its match."""
        last = self._last_answers.pop(match, None)
        if last is not None:
            self.felt.steps_ms.append((monotonic() - last) * 1000)

    def note_answer(self, match: str) -> None:
        """A bot gives its answer."""
        self._last_answers[match] = monotonic()


class HonestBot(Bot):
    """Thinks for a moment, and plays the first legal card."""

    def __init__(self, tables: HonestTables) -> None:
        self._tables = tables

    async def choose(self, view: Any) -> Any:
        """Choose the first legal card."""
        self._tables.note_question(self.match)
        await asyncio.sleep(THINK_S)
        self._tables.note_answer(self.match)
        return view.legal_cards[0]


async def play_bot(factory: Callable[[], Bot], address: str, token: str, security: Security) -> None:
    """Connect a bot of the SDK that plays only matches that name it, one at a time, until cancelled."""
    plan = RunPlan(factory=factory, game=DEFAULT_GAME, queues=(), max_matches=1, matches=None, on_result=None)
    await BotSession(plan, GrpcWire(address, token, security=security)).run_session()


async def play_match(client: AsyncClient, bots: list[str]) -> str:
    """Create a match of one round between these bots, and return its name when it is over. It is aborted if this is cancelled."""
    match = await client.create_match(DEFAULT_GAME, bots, {"rounds": 1})
    try:
        while True:
            found = await client.get_match(match.name)
            if type(found).State.Name(found.state) not in OPEN_STATES:
                return match.name
            await asyncio.sleep(MATCH_POLL_S)
    except asyncio.CancelledError:
        with suppress(SeatwiseError):
            await client.abort_match(match.name)
        raise


def count_harm(record: str) -> Counter[str]:
    """Count the timeouts and forfeits of a record's seats, and whether it is void.

    Args:
        record: The record, as one line of JSON.
    """
    entries = json.loads(record)["entries"]
    harm: Counter[str] = Counter()
    for entry in entries:
        if entry["kind"] == "default" and entry["reason"] == Ending.TIMED_OUT:
            harm["timeouts"] += len(entry["moves"])
        harm["forfeits"] += entry["kind"] == "forfeited"
        harm["voids"] += entry["kind"] == "voided"
    return +harm
