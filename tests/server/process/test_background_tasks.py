"""Tasks that nobody awaits are kept, and cancelled until they have ended, whatever they do with a cancellation."""

from __future__ import annotations

import asyncio
import gc

from doubles.virtual import in_virtual_time

from seatwise_server.background_tasks import BackgroundTasks, cancel_until_ended


async def swallow_one_cancellation() -> None:
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        await asyncio.sleep(3600)


@in_virtual_time
async def test_a_task_that_swallows_a_cancellation_is_cancelled_again() -> None:
    task = asyncio.create_task(swallow_one_cancellation())
    await asyncio.sleep(0)
    await cancel_until_ended([task])
    assert task.cancelled()


@in_virtual_time
async def test_a_task_is_kept_until_it_ends_and_no_longer() -> None:
    tasks, done = BackgroundTasks(), asyncio.Event()

    async def finish() -> None:
        await asyncio.sleep(1)
        done.set()

    tasks.start_task(finish())
    gc.collect()
    await done.wait()
    await asyncio.sleep(0)
    assert not tasks._tasks


@in_virtual_time
async def test_waiting_for_all_ends_with_its_time() -> None:
    tasks = BackgroundTasks()
    task = tasks.start_task(asyncio.sleep(3600))
    began = asyncio.get_running_loop().time()
    await tasks.wait_for_all(2.0)
    assert asyncio.get_running_loop().time() == began + 2.0
    tasks.request_cancel()
    await tasks.cancel_all()
    assert task.cancelled()
