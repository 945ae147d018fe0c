"""Plays blocks of matches in worker processes, and returns them in their order."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from queue import SimpleQueue
from typing import IO, Any

from seatwise.child_process import kill_group, open_child
from seatwise.errors import UsageError
from seatwise.local.deal_block import BlockPlan, PlayedBlock

AHEAD = 8
"""How many blocks a worker may be ahead of the oldest one that is not finished, so that a slow block holds none of them up."""


@contextmanager
def playing_blocks(
    plan: BlockPlan, jobs: int, on_failure: Callable[[str], None]
) -> Iterator[Iterator[PlayedBlock]]:
    """Play blocks without an end, as long as the context lasts.

    Args:
        plan: The versions, their opponents and the game.
        jobs: The number of worker processes, at least 1.
        on_failure: A function that is called with the text of each kind of failure of a bot, once.

    Raises:
        UsageError: A worker process has ended: the bot has ended it, or its file cannot be loaded there.
        OSError: A worker process cannot write what its bots print.
    """
    pool = _BlockPool(plan, jobs, on_failure)
    try:
        yield pool.read_blocks()
    finally:
        pool.stop()


class _BlockPool:
    """The workers, each with a thread that talks to it."""

    def __init__(self, plan: BlockPlan, jobs: int, on_failure: Callable[[str], None]) -> None:
        self._plan = plan
        self._on_failure = on_failure
        self._seen: set[tuple[str, str]] = set()
        self._numbers = count()
        self._allowed = threading.Semaphore(jobs * AHEAD)
        self._lock = threading.Lock()
        self._answers: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._is_stopping = False
        self._workers = [
            open_child("seatwise.local.block_worker", stdout=subprocess.PIPE, runs_others=True)
            for _ in range(jobs)
        ]
        self._threads = [
            threading.Thread(target=self._feed, args=(each,), daemon=True) for each in self._workers
        ]
        for thread in self._threads:
            thread.start()

    def read_blocks(self) -> Iterator[PlayedBlock]:
        """Yield the blocks by their numbers."""
        waiting: dict[int, PlayedBlock] = {}
        for number in count():
            while number not in waiting:
                block = self._next_answer()
                waiting[block.number] = block
            self._allowed.release()
            yield waiting.pop(number)

    def stop(self) -> None:
        """End the workers."""
        self._is_stopping = True
        for worker in self._workers:
            kill_group(worker.pid)
        for _ in self._threads:
            self._allowed.release()
        for worker, thread in zip(self._workers, self._threads, strict=True):
            worker.wait()
            thread.join()
            for pipe in (worker.stdin, worker.stdout):
                _close_pipe(pipe)

    def _next_answer(self) -> PlayedBlock:
        answer = self._answers.get()
        if answer is None:
            raise UsageError(
                "a process that plays the matches has ended: does the bot end its process, or run out of memory? Its last "
                "lines are above"
            )
        if fault := answer.get("fault"):
            raise OSError(*fault, "standard error of the bots")
        for failure in answer["failures"]:
            kind = (failure["bot"], failure["place"])
            if kind not in self._seen:
                self._seen.add(kind)
                self._on_failure(failure["text"])
        return PlayedBlock.from_json(answer["block"])

    def _feed(self, worker: subprocess.Popen[str]) -> None:
        """Ask one worker for one block after the other."""
        stdin, stdout = worker.stdin, worker.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            print(json.dumps(self._plan.to_json()), file=stdin, flush=True)
            while self._allowed.acquire() and not self._is_stopping:
                with self._lock:
                    number = next(self._numbers)
                print(number, file=stdin, flush=True)
                self._answers.put(json.loads(stdout.readline()))
        except (OSError, ValueError):  # it has ended: nothing, or half a line
            self._answers.put(None)


def _close_pipe(pipe: IO[str] | None) -> None:
    if pipe is None:
        return
    with suppress(BrokenPipeError):
        pipe.close()
