"""Verifies the records of a file in several processes. The verdicts come in the order of the lines."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from seatwise.cli.arguments import use_deck_files
from seatwise.errors import UsageError
from seatwise_referee.verify import Verdict, verify_line

BATCH_LINES = 32
BATCH_BYTES = 1024 * 1024
"""A batch is sent to a process when it has so many lines, or so many bytes."""
BATCHES_EACH = 2
"""The most batches under way for each process, so that a large file takes little memory."""


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def verify_in_processes(lines: Iterable[bytes], jobs: int, deck_files: Sequence[str]) -> Iterator[Verdict]:
    """Yield the verdict on each line, as `verify_line` returns it, in the order of the lines.

    Raises `UsageError` if a process dies.
    """
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _start_worker, (tuple(deck_files),))
    under_way: deque[Future[list[Verdict]]] = deque()
    try:
        for batch in _batches(lines):
            under_way.append(pool.submit(_verify_batch, batch))
            if len(under_way) >= BATCHES_EACH * jobs:
                yield from under_way.popleft().result()
        while under_way:
            yield from under_way.popleft().result()
    except BrokenProcessPool:
        raise UsageError("a process that verifies records has died; verify with --jobs 1") from None
    finally:
        pool.shutdown(cancel_futures=True)


def _batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if len(batch) >= BATCH_LINES or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _start_worker(deck_files: Sequence[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends its processes
    use_deck_files(deck_files)


def _verify_batch(lines: Sequence[bytes]) -> list[Verdict]:
    return [verify_line(line) for line in lines]
