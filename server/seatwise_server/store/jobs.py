"""Match jobs for referees.

A job tells referees that a match needs an owner, and names the referee that took it. It is no lease: the fence
of the match decides who owns it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from redis.exceptions import ResponseError

from seatwise_server.store import keys
from seatwise_server.store.errors import ProposalExpired
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import LONGEST_BLOCK_MS, RedisClient, as_pairs, call, call_blocking

GROUP = "referees"

_HELD_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Job:
    """A match that needs a referee."""

    job_id: str
    match: str


class Jobs:
    """The one stream of match jobs."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def push_job(self, match: str, until_ms: int | None = None) -> str:
        """Returns the id of the match's job, and creates the job if there is none; a match whose job is done
        gets a new one.

        Raises ProposalExpired if there is none and it is `until_ms`, in milliseconds of Redis's clock, or
        later.
        """
        args = (match,) if until_ms is None else (match, until_ms)
        answer = await scripts.run_script(
            self._client, "job_push", [keys.JOB_STREAM, keys.JOB_MARKERS], *args
        )
        if answer is None:
            raise ProposalExpired(match)
        return str(answer.decode())

    async def is_open(self, match: str) -> bool:
        """Whether the match has a job that is not done, taken or not."""
        return bool(await call(self._client, "HEXISTS", keys.JOB_MARKERS, match))

    async def take_jobs(self, consumer: str, count: int, block_ms: int) -> list[Job]:
        """Takes jobs that no referee has taken, waiting at most 5 s for the first; empty if none came.

        A job whose reply was lost on the way is not given out again: `jobs_of` finds it.
        """
        block = max(1, min(block_ms, LONGEST_BLOCK_MS))
        how = ("COUNT", count, "BLOCK", block, "STREAMS", keys.JOB_STREAM, ">")
        command = ("XREADGROUP", "GROUP", GROUP, consumer, *how)
        answer = await self._in_group(lambda: call_blocking(self._client, *command))
        return [job for _, found in as_pairs(answer or []) for job in _parse_jobs(found)]

    async def count_by_owner(self) -> dict[str, int]:
        """Returns the number of unfinished jobs of each consumer that has taken some."""
        summary = await self._in_group(lambda: call(self._client, "XPENDING", keys.JOB_STREAM, GROUP))
        return {row["name"].decode(): int(row["pending"]) for row in summary["consumers"]}

    async def list_page(self, count: int, after_id: str = "-") -> list[Job]:
        """Returns jobs, taken or not, oldest first, after the last one of the previous page."""
        start = after_id if after_id == "-" else f"({after_id}"
        return _parse_jobs(await call(self._client, "XRANGE", keys.JOB_STREAM, start, "+", "COUNT", count))

    async def count_unfinished(self) -> int:
        """Returns the number of unfinished jobs, taken or not."""
        return int(await call(self._client, "XLEN", keys.JOB_STREAM))

    async def count_not_taken(self) -> int:
        """Returns the number of jobs that no referee has taken."""
        return max(0, await self.count_unfinished() - sum((await self.count_by_owner()).values()))

    async def jobs_of(self, consumer: str, count: int = _HELD_AT_ONCE, after_id: str = "") -> list[Job]:
        """Returns unfinished jobs that the consumer has taken, oldest first; they stay the consumer's."""
        args = (GROUP, consumer, count, f"({after_id}" if after_id else "-")
        found = await self._in_group(
            lambda: scripts.run_script(self._client, "job_held", [keys.JOB_STREAM], *args)
        )
        return [Job(job_id.decode(), match.decode()) for job_id, match in _parse_pairs(found)]

    async def move_job(self, job_id: str, dead: str, consumer: str) -> bool:
        """Moves a job from a dead consumer to this one; returns False if the job is done. Repeatable."""
        args = (GROUP, dead, consumer, job_id)
        return bool(
            await self._in_group(
                lambda: scripts.run_script(self._client, "job_move", [keys.JOB_STREAM], *args)
            )
        )

    async def give_back(self, job_id: str) -> bool:
        """Puts the job back for other referees, because its consumer cannot do it. Returns False if it is done."""
        named = [keys.JOB_STREAM, keys.JOB_MARKERS]
        return bool(await scripts.run_script(self._client, "job_return", named, GROUP, job_id))

    async def finish_job(self, job_id: str) -> bool:
        """Finishes the job for good; returns False if it was finished before."""
        named = [keys.JOB_STREAM, keys.JOB_MARKERS]
        return bool(await scripts.run_script(self._client, "job_done", named, GROUP, job_id))

    async def _in_group(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Calls `ask`; if the consumer group does not exist yet, creates it and calls `ask` again."""
        try:
            return await ask()
        except ResponseError as error:
            if not str(error).startswith("NOGROUP"):
                raise
        with contextlib.suppress(ResponseError):  # another process created it first
            await call(self._client, "XGROUP CREATE", keys.JOB_STREAM, GROUP, "0", "MKSTREAM")
        return await ask()


def _parse_jobs(found: Any) -> list[Job]:
    """Parses jobs from a stream's entries; redis-py leaves the fields of a script's answer as they are."""
    return [Job(job_id.decode(), as_pairs(fields)[0][1].decode()) for job_id, fields in found]


def _parse_pairs(flat: Any) -> list[tuple[Any, Any]]:
    return list(zip(flat[::2], flat[1::2], strict=True))
