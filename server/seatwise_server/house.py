"""The house's own bots: they fill free places, through the same door as everybody else."""

from __future__ import annotations

import asyncio

import structlog

from seatwise_server.store import Store
from seatwise_server.store.errors import BotExists

STRONGEST_FIRST = ("counting", "greedy", "random")
OWNER = "house"
MOST_MATCHES = 64

log = structlog.get_logger()


def house_bots() -> tuple[str, ...]:
    """Their names, in the order in which they are asked to fill places."""
    return tuple(f"bots/house-{sample}/versions/1" for sample in STRONGEST_FIRST)


async def run_house_bots(store: Store, address: str) -> None:
    """Runs them all against our own server. Runs until cancelled."""
    async with asyncio.TaskGroup() as group:
        for sample in STRONGEST_FIRST:
            group.create_task(_run(store, sample, address))


async def _run(store: Store, sample: str, address: str) -> None:

    from seatwise.remote import run_async

    token = await _token(store, f"house-{sample}")
    await run_async(
        sample, game="ugo", address=address, token=token, queues=(), max_matches=MOST_MATCHES,
        handle_signals=False,
    )  # fmt: skip


async def _token(store: Store, name: str) -> str:
    """A new token at each start: nobody else ever has it."""
    try:
        await store.bots.register(name, "1", OWNER, "")
    except BotExists:
        log.debug("house_bot_known", bot=name)
    issued = await store.bots.rotate(f"bots/{name}/versions/1")
    assert issued.token
    return issued.token
