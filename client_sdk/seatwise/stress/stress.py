"""Runs `seatwise stress`: honest matches before, during and after a time with hostile bots."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import token_hex
from time import monotonic
from typing import Any, Final

from seatwise.async_client import AsyncClient, Registered
from seatwise.bot_errors import UsageError
from seatwise.error_groups import first_error
from seatwise.errors import SeatwiseError
from seatwise.link.endpoint import is_local_address, is_rest_address, is_web_socket_address
from seatwise.link.security import Security, SecurityOptions
from seatwise.stress.honest import Felt, HonestTables, play_match
from seatwise.stress.hostile import HOSTILE_KINDS, SEATED_KINDS

PHASES: Final = ("before", "during", "after")
MOST_SECONDS: Final = 60.0
"""The longest phase."""
MOST_PAIRS: Final = 8
"""The most honest matches at once."""
STOP_S: Final = 20.0
"""How long the process of the hostile bots may take to end, in seconds, before it is killed."""
STRESS_OWNER: Final = "seatwise-stress"
_HARM_COLUMNS: Final = ("timeouts", "forfeits", "voids", "errors")

OnPhase = Callable[[str], None]
"""Called with the name of each phase when it begins."""


@dataclass(frozen=True, slots=True)
class StressPlan:
    """The target and the extent of a run. Raises `UsageError` if it is not allowed or makes no sense."""

    address: str
    """The address for gRPC of a server on this machine, or of any server with a permit of it."""
    token: str = field(repr=False)
    """The admin token of that server: it registers the bots, and deletes them at the end."""
    seconds: float = 10.0
    """The length of each of the three phases, at most 60."""
    pairs: int = 2
    """Honest matches at once, at most 8."""
    kinds: tuple[str, ...] = tuple(HOSTILE_KINDS)
    """The hostile bots, each a key of `HOSTILE_KINDS`."""
    security: SecurityOptions = field(default_factory=lambda: SecurityOptions())
    permit: str = field(default="", repr=False)
    """The permit that the server's admin has created for this run. Servers of this machine need none."""

    def __post_init__(self) -> None:
        check_stress_address(self.address, self.permit)
        if not 0 < self.seconds <= MOST_SECONDS:
            raise UsageError(f"seconds: {self.seconds:g} must be above 0 and at most {MOST_SECONDS:g}")
        if not 1 <= self.pairs <= MOST_PAIRS:
            raise UsageError(f"pairs: {self.pairs} must be from 1 to {MOST_PAIRS}")
        if unknown := sorted(set(self.kinds) - set(HOSTILE_KINDS)):
            raise UsageError(f"there is no hostile bot {unknown[0]}; there are {', '.join(HOSTILE_KINDS)}")
        if not self.token:
            raise UsageError(
                "stress needs the server's admin token: pass --token, or run it as the user that runs `seatwise serve`"
            )


def check_stress_address(address: str, permit: str = "") -> None:
    """Raise `UsageError` unless the address is one for gRPC, and of this machine or with a permit: nobody else's server is harmed."""
    if is_web_socket_address(address) or is_rest_address(address):
        raise UsageError(f"{address}: give the address for gRPC, HOST:PORT or unix:PATH")
    if not permit and not is_local_address(address):
        raise UsageError(
            f"{address} is not this machine: stress harms a server on purpose. Run it on the machine of the server, at "
            "localhost, 127.0.0.1, [::1] or unix:PATH. Or ask the server's admin for a permit, good for one run: "
            f"`seatwise ctl stress-permit --address {address}` prints it, and --permit takes it"
        )


@dataclass(frozen=True, slots=True)
class StressReport:
    """The delays of the honest bots, by phase, and the deeds of the hostile ones."""

    seconds: float
    """The length of each phase."""
    honest: dict[str, Felt]
    """By phase: before, during, after."""
    hostile: list[dict[str, Any]]
    """For each hostile bot `kind`, `acts`, `ends` and `failure`, as `hostile_process.obey_orders` returns them."""

    @property
    def has_harm(self) -> bool:
        """Whether an honest seat lost a move, a match or a call, or played nothing in a phase, or a hostile bot failed by itself."""
        lost = any(felt.harm or not felt.steps_ms for felt in self.honest.values())
        return lost or any(each["failure"] for each in self.hostile)

    def to_json(self) -> dict[str, Any]:
        """Return the report for programs: times in milliseconds, and counts."""
        phases = {phase: describe_phase(felt) for phase, felt in self.honest.items()}
        return {
            "seconds": self.seconds,
            "honest": phases,
            "hostile": self.hostile,
            "harm": self.has_harm,
        }


def describe_phase(felt: Felt) -> dict[str, float]:
    """Return the figures of one phase: matches, steps, `p50_ms`, `p99_ms` and `max_ms` of the steps, and counts of harm."""
    ordered = sorted(felt.steps_ms)
    ranks = {"p50_ms": 0.5, "p99_ms": 0.99, "max_ms": 1.0}
    times = {name: round(_quantile(ordered, share), 2) for name, share in ranks.items()}
    harm = {name: felt.harm[name] for name in _HARM_COLUMNS}
    return {"matches": felt.matches, "steps": len(ordered), **times, **harm}


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


async def stress_server(plan: StressPlan, on_phase: OnPhase = lambda _: None) -> StressReport:
    """Play honest matches, with hostile bots beside them in the middle phase. All bots are deleted at the end.

    Raises:
        UnavailableError: No server answers.
        NotAllowedError: The token is not the admin's.
        NotFoundError: The permit was used, has expired, or is of another server.
    """
    async with AsyncClient(plan.address, plan.token, **plan.security) as client:
        if plan.permit:
            await client.use_stress_permit(plan.permit)
        accounts = StressAccounts(client)
        try:
            return await _run_phases(plan, client, accounts, on_phase)
        except BaseExceptionGroup as group:  # honest bots failed: the first reason is enough
            raise first_error(group) from None
        finally:
            await accounts.delete_bots()


class StressAccounts:
    """The bots that are registered for one run."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._prefix = f"stress-{token_hex(6)}"
        self._names: list[str] = []

    async def register_bot(self) -> Registered:
        """Register one more bot."""
        bot = f"{self._prefix}-{len(self._names)}"
        self._names.append(f"bots/{bot}/versions/1")
        return await self._client.register_bot(bot, owner=STRESS_OWNER)

    async def register_pair(self) -> tuple[Registered, Registered]:
        """Register two bots that play each other."""
        return await self.register_bot(), await self.register_bot()

    async def delete_bots(self) -> None:
        """Delete them all. Their streams end, and matches that wait for them are aborted."""
        for name in self._names:
            with suppress(SeatwiseError):
                await self._client.delete_bot(name)


async def _run_phases(
    plan: StressPlan, client: AsyncClient, accounts: StressAccounts, on_phase: OnPhase
) -> StressReport:
    tables = HonestTables(client, plan.address, Security.resolve_options(**plan.security))
    pairs = [await accounts.register_pair() for _ in range(plan.pairs)]
    enemies = [(kind, await accounts.register_pair()) for kind in plan.kinds]
    tasks = [asyncio.create_task(tables.play_pair(pair)) for pair in pairs]
    felt: dict[str, Felt] = {}
    hostile: list[dict[str, Any]] = []
    try:
        for phase in PHASES:
            on_phase(phase)
            tables.felt = felt[phase] = Felt()
            if phase == "during":
                hostile = await _play_hostile(plan, client, enemies)
            else:
                await asyncio.sleep(plan.seconds)
            _raise_failures(tasks)
    finally:
        await _cancel(tasks)
    return StressReport(plan.seconds, felt, hostile)


def _raise_failures(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        if task.done():
            task.result()


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _play_hostile(
    plan: StressPlan, client: AsyncClient, enemies: list[tuple[str, tuple[Registered, Registered]]]
) -> list[dict[str, Any]]:
    """Run the process of the hostile bots for one phase, and return what each did."""
    bots = [
        [kind, bot.token] for kind, pair in enemies for bot in (pair if kind in SEATED_KINDS else pair[:1])
    ]
    orders = {"address": plan.address, "seconds": plan.seconds, "security": plan.security, "bots": bots}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "seatwise.stress.hostile_process",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    seated = [
        asyncio.create_task(_keep_playing(client, [bot.bot for bot in pair]))
        for kind, pair in enemies
        if kind in SEATED_KINDS
    ]
    try:
        return await _read_report(process, json.dumps(orders), plan.seconds)
    finally:
        await _cancel(seated)
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _read_report(
    process: asyncio.subprocess.Process, orders: str, seconds: float
) -> list[dict[str, Any]]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(orders.encode() + b"\n")
    await process.stdin.drain()
    began = monotonic()
    try:
        async with asyncio.timeout(seconds + STOP_S):
            line = await process.stdout.readline()
    except TimeoutError:
        line = b""
    if not line:
        waited = monotonic() - began
        return [
            {
                "kind": "all",
                "acts": 0,
                "ends": {},
                "failure": f"the process of the hostile bots said nothing for {waited:.0f} s",
            }
        ]
    found: list[dict[str, Any]] = json.loads(line)
    return found


async def _keep_playing(client: AsyncClient, bots: list[str]) -> None:
    while True:
        with suppress(SeatwiseError):
            await play_match(client, bots)
        await asyncio.sleep(1.0)
