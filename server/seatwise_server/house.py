"""The house's own bots: they fill free places, through the same door as everybody else."""

from __future__ import annotations

import asyncio

import structlog

from seatwise.errors import SeatwiseError
from seatwise.remote import run_async
from seatwise_server.store import Store
from seatwise_server.store.errors import BotExists, StoreError

STRONGEST_FIRST = ("counting", "greedy", "random")
OWNER = "house"
MOST_MATCHES = 64
AGAIN_S = 5.0

log = structlog.get_logger()


def house_bots() -> tuple[str, ...]:
    """Their names, in the order in which they are asked to fill places."""
    return tuple(f"bots/house-{sample}/versions/1" for sample in STRONGEST_FIRST)


async def run_house_bots(store: Store, address: str) -> None:
    """Runs them all against our own server; one that fails is started again. Runs until cancelled."""
    async with asyncio.TaskGroup() as group:
        for sample in STRONGEST_FIRST:
            group.create_task(_keep_running(store, sample, address))


async def _keep_running(store: Store, sample: str, address: str) -> None:
    while True:
        try:
            await _run(store, sample, address)
        except (SeatwiseError, StoreError):
            log.exception("house_bot_failed", bot=sample)
        await asyncio.sleep(AGAIN_S)


async def _run(store: Store, sample: str, address: str) -> None:
    token = await _token(store, f"house-{sample}")
    await run_async(sample, game="ugo", address=address, token=token, queues=(), max_matches=MOST_MATCHES)


async def _token(store: Store, name: str) -> str:
    """A new token at each start: nobody else ever has it."""
    try:
        await store.bots.register(name, "1", OWNER, "")
    except BotExists:
        log.debug("house_bot_known", bot=name)
    issued = await store.bots.rotate(f"bots/{name}/versions/1")
    assert issued.token
    return issued.token
