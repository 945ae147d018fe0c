"""Match jobs: each tells referees that a match needs an owner, and names the referee that took it.

A job is no lease: the fence of the match decides who owns it. Games from outside have a stream of their own: a referee that is
slow with them never holds the job of another match.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from redis.exceptions import ResponseError

from seatwise_server.background_tasks import gather_limited
from seatwise_server.game_choice import ALL_KINDS, GameKind
from seatwise_server.store import keys
from seatwise_server.store.errors import NoFreeTable, ProposalExpired
from seatwise_server.store.redis.client import LONGEST_BLOCK_MS, as_pairs
from seatwise_server.store.redis.scripts import StorePart

GROUP = "referees"

_HELD_AT_ONCE = 1_000
_JOB_ID = re.compile(r"(?:hosted:)?[0-9]{1,19}-[0-9]{1,19}")
"""Redis has no ids with more digits, and answers them with an error of its own."""

_STREAMS = {GameKind.OWN: keys.JOB_STREAM, GameKind.HOSTED: keys.HOSTED_JOB_STREAM}
_PREFIXES = {GameKind.OWN: "", GameKind.HOSTED: "hosted:"}
"""The text before the id of a job in its stream."""


@dataclass(frozen=True, slots=True)
class Job:
    """A match that needs a referee."""

    job_id: str
    match: str


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of the living referees, used or free, and the kinds of games whose matches share them."""

    count: int
    kinds: Sequence[GameKind]


def is_job_id(text: str) -> bool:
    """Whether this may be the id of a job."""
    return _JOB_ID.fullmatch(text) is not None


class Jobs(StorePart):
    """The streams of match jobs, one for each kind of games."""

    async def push_job(self, match: str, kind: GameKind = GameKind.OWN) -> str:
        """Return the id of the match's job, and create the job if there is none; a match whose job is done gets a new one."""
        named = [_STREAMS[kind], keys.JOB_MARKERS]
        answer = await self._run("job_push", named, match, _PREFIXES[kind])
        return str(answer.decode())

    async def push_new_job(self, match: str, kind: GameKind, until_ms: int, tables: Tables) -> str:
        """Do what `push_job` does for a new match, which needs one of these tables.

        All lobbies together push no more jobs than there are tables. Raises NoFreeTable if there are as many unfinished jobs, and
        ProposalExpired if it is `until_ms`, in ms of Redis's clock, or later; neither if the match has a job already.
        """
        named = [_STREAMS[kind], keys.JOB_MARKERS, *(_STREAMS[each] for each in tables.kinds)]
        args = (match, _PREFIXES[kind], until_ms, tables.count)
        answer = await self._run("job_push", named, *args)
        if answer is None:
            raise ProposalExpired(match)
        if answer == 0:
            raise NoFreeTable(match)
        return str(answer.decode())

    async def is_open(self, match: str) -> bool:
        """Whether the match has a job that is not done, taken or not."""
        return bool(await self._call("HEXISTS", keys.JOB_MARKERS, match))

    async def take_jobs(
        self, consumer: str, count: int, block_ms: int, kinds: Sequence[GameKind] = ALL_KINDS
    ) -> list[Job]:
        """Take jobs that no referee has taken, waiting at most 5 s for the first; empty if none came.

        A job whose reply was lost on the way is not given out again: `jobs_of` finds it.
        """
        block = max(1, min(block_ms, LONGEST_BLOCK_MS))
        kind_of = {_STREAMS[kind]: kind for kind in kinds}
        streams = [*kind_of, *(">" for _ in kinds)]
        how: list[str | int] = ["COUNT", count, "BLOCK", block, "STREAMS", *streams]
        ask = partial(self._client.call_blocking, "XREADGROUP", "GROUP", GROUP, consumer, *how)
        jobs: list[Job] = []
        for stream, found in as_pairs(await self._in_group(ask, kinds) or []):
            jobs += _parse_jobs(found, kind_of[stream.decode()])
        for job in jobs[count:]:  # Redis counts in each stream
            await self.give_back(job.job_id)
        return jobs[:count]

    async def count_by_owner(self, kinds: Sequence[GameKind] = ALL_KINDS) -> dict[str, int]:
        """Return the number of unfinished jobs of each consumer that has taken some."""
        counts: Counter[str] = Counter()
        asked = [partial(self._call, "XPENDING", _STREAMS[kind], GROUP) for kind in kinds]
        for summary in await gather_limited(map(self._in_group, asked, [[kind] for kind in kinds])):
            counts.update({row["name"].decode(): int(row["pending"]) for row in summary["consumers"]})
        return dict(counts)

    async def list_page(self, count: int, after_id: str = "") -> list[Job]:
        """Return jobs, taken or not, after the last one of the previous page: those of our own games first, oldest first."""
        jobs: list[Job] = []
        for kind, start in _kinds_after(after_id, ALL_KINDS):
            how = (start, "+", "COUNT", count - len(jobs))
            jobs += _parse_jobs(await self._call("XRANGE", _STREAMS[kind], *how), kind)
            if len(jobs) >= count:
                break
        return jobs

    async def count_unfinished(self, kinds: Sequence[GameKind] = ALL_KINDS) -> int:
        """Return the number of unfinished jobs, taken or not."""
        lengths = await self._call_many([("XLEN", _STREAMS[kind]) for kind in kinds])
        return sum(map(int, lengths))

    async def count_not_taken(self) -> int:
        """Return the number of jobs that no referee has taken."""
        return max(0, await self.count_unfinished() - sum((await self.count_by_owner()).values()))

    async def jobs_of(
        self,
        consumer: str,
        count: int = _HELD_AT_ONCE,
        after_id: str = "",
        kinds: Sequence[GameKind] = ALL_KINDS,
    ) -> list[Job]:
        """Return unfinished jobs that the consumer has taken, of each kind the oldest first; they stay the consumer's."""
        jobs: list[Job] = []
        for kind, start in _kinds_after(after_id, kinds):
            args = (GROUP, consumer, count - len(jobs), start)
            found = await self._in_group(partial(self._run, "job_held", [_STREAMS[kind]], *args), [kind])
            pairs = zip(found[::2], found[1::2], strict=True)
            jobs += [Job(f"{_PREFIXES[kind]}{at.decode()}", match.decode()) for at, match in pairs]
            if len(jobs) >= count:
                break
        return jobs

    async def move_job(self, job_id: str, dead: str, consumer: str) -> bool:
        """Move a job from a dead consumer to this one; returns False if the job is done. Repeatable."""
        kind, at = _split_id(job_id)
        move = partial(self._run, "job_move", [_STREAMS[kind]], GROUP, dead, consumer, at)
        return bool(await self._in_group(move, [kind]))

    async def give_back(self, job_id: str) -> bool:
        """Put the job back for other referees, because its consumer cannot do it. Return False if it is done."""
        kind, at = _split_id(job_id)
        args = (GROUP, at, _PREFIXES[kind])
        return bool(await self._run("job_return", [_STREAMS[kind], keys.JOB_MARKERS], *args))

    async def finish_job(self, job_id: str) -> bool:
        """Finish the job for good; returns False if it was finished before."""
        kind, at = _split_id(job_id)
        return bool(await self._run("job_done", [_STREAMS[kind], keys.JOB_MARKERS], GROUP, at))

    async def _in_group(self, ask: Callable[[], Awaitable[Any]], kinds: Sequence[GameKind]) -> Any:
        """Call `ask`; if a consumer group of these streams does not exist yet, creates it and calls `ask` again."""
        try:
            return await ask()
        except ResponseError as error:
            if not str(error).startswith("NOGROUP"):
                raise
        for kind in kinds:
            with contextlib.suppress(ResponseError):  # another process created it first
                await self._call("XGROUP", "CREATE", _STREAMS[kind], GROUP, "0", "MKSTREAM")
        return await ask()


def _split_id(job_id: str) -> tuple[GameKind, str]:
    before, _, at = job_id.rpartition(":")
    return (GameKind.HOSTED if before else GameKind.OWN), at


def _kinds_after(after_id: str, kinds: Sequence[GameKind]) -> list[tuple[GameKind, str]]:
    """Return the streams that a page may have jobs of, each with the place where to begin: after this job, or at the beginning."""
    if not after_id:
        return [(kind, "-") for kind in kinds]
    first, at = _split_id(after_id)
    return [(kind, f"({at}" if kind is first else "-") for kind in kinds[kinds.index(first) :]]


def _parse_jobs(found: Any, kind: GameKind) -> list[Job]:
    """Parse jobs from a stream's entries; redis-py leaves the fields of a script's answer as they are."""
    named = ((job_id.decode(), as_pairs(fields)[0][1].decode()) for job_id, fields in found)
    return [Job(f"{_PREFIXES[kind]}{job_id}", match) for job_id, match in named]
