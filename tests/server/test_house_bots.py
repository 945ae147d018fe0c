"""The house's bots are a convenience: whatever keeps them from starting keeps no match from going on."""

from __future__ import annotations

import asyncio
import errno
import os

import pytest

from seatwise_server import house
from seatwise_server.store import Store


async def test_house_bots_that_cannot_be_started_are_tried_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0
    started = asyncio.Event()

    async def fails_once(*_: object) -> int:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        started.set()
        return await asyncio.Future()

    monkeypatch.setattr(house, "HOUSE_RETRY_S", 0.0)
    monkeypatch.setattr(house, "_run_process", fails_once)
    running = asyncio.create_task(house.run_house_bots(store, house.HouseLink("localhost:1"), "me"))
    async with asyncio.timeout(10):
        await started.wait()
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()
