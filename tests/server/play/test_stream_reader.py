"""The reader of a stream: it ends with the stream, and what it meets afterwards is nobody's."""

from __future__ import annotations

import asyncio
import gc

import pytest
from harness.house import lost_tasks

from seatwise_server.streams import reading_beside


async def _refused_by_grpc() -> None:
    """As a read is that waits while its stream is refused: it is cancelled, and fails with the refusal."""
    try:
        await asyncio.Event().wait()
    finally:
        raise RuntimeError("Locally aborted.")


async def test_an_error_behind_the_end_of_a_stream_is_not_logged() -> None:
    """asyncio logged a traceback for each stream that was replaced."""
    with lost_tasks() as complaints:
        with reading_beside(_refused_by_grpc(), lambda: None):
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        gc.collect()
    assert not complaints


async def test_a_reader_that_failed_before_its_stream_is_not_complained_of_either() -> None:
    async def fail() -> None:
        raise RuntimeError("the caller is gone")

    with lost_tasks() as complaints:
        with reading_beside(fail(), lambda: None):
            await asyncio.sleep(0)  # and nobody asks what became of it
        await asyncio.sleep(0.01)
        gc.collect()
    assert not complaints


async def test_the_end_of_a_reader_is_told_and_its_fault_may_be_asked_for() -> None:
    ended = asyncio.Event()

    async def fail() -> None:
        raise RuntimeError("a fault of ours")

    with reading_beside(fail(), ended.set) as reader:
        await ended.wait()
        with pytest.raises(RuntimeError, match="of ours"):
            await reader
