"""A load of appends for tests of the flusher: matches that go on as soon as they are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from seatwise_server.store import AppendResult, Flusher, Listeners, Store
from seatwise_server.store.group_commit.writer import Done

GOOD = {AppendResult.OK, AppendResult.ALREADY}


PATIENCE_S = 30.0
"""An attempt of sentinels to fail over may fail, for their votes were split or the new primary was slow to answer. Then
they rest for twice their `failover-timeout`, here six seconds, and try again."""


async def until(holds: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    """Waits for the world; only tests of real processes do, no other clock tells when one is gone."""
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110 - what we wait for is another process
            await asyncio.sleep(0.005)


async def owned(store: Store, count: int, owner: str = "a") -> list[str]:
    """Matches of this owner, at epoch 1."""
    matches = [f"matches/{number}" for number in range(count)]
    await asyncio.gather(*(store.journal.claim_match(match, owner, 0) for match in matches))
    return matches


class Gaps:
    """What a flusher said of Redis coming and going."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def listeners(self) -> Listeners:
        """For the flusher."""
        return Listeners(lambda: self.said.append("down"), lambda _: self.said.append("up"))

    def are_over(self) -> bool:
        """Whether Redis was gone and is back; sentinels that disagree may fail over twice."""
        return self.said[-1:] == ["up"]


class Load:
    """Matches that each append their next entry as soon as the one before is answered, or a moment later."""

    def __init__(self, flusher: Flusher, matches: list[str], length: int, pause_s: float = 0) -> None:
        self.flusher = flusher
        self.lengths = dict.fromkeys(matches, length)
        self.answers: dict[str, list[AppendResult]] = {match: [] for match in matches}
        self._pause_s = pause_s

    def start(self) -> None:
        """Lets all begin, or go on from where they have stopped."""
        for match in self.answers:
            self._next(match)

    def end_soon(self, more: int) -> None:
        """Lets each match have only so many more."""
        self.lengths = {match: len(answers) + more for match, answers in self.answers.items()}

    def _next(self, match: str) -> None:
        seq = len(self.answers[match]) + 1
        if seq <= self.lengths[match]:
            done: Done = partial(self._answered, match)
            self.flusher.append_entries(match, 1, "a", seq, [b"%d" % seq], done)

    def _answered(self, match: str, answer: AppendResult) -> None:
        self.answers[match].append(answer)
        if self._pause_s:
            asyncio.get_running_loop().call_later(self._pause_s, self._next, match)
        else:
            self._next(match)

    @property
    def count(self) -> int:
        """Appends that were answered."""
        return sum(len(it) for it in self.answers.values())

    def is_over(self) -> bool:
        """Whether all have all."""
        return all(len(answers) >= self.lengths[match] for match, answers in self.answers.items())

    async def check(self, store: Store) -> None:
        """Nothing lost, nothing twice, everything answered once."""
        for match, answers in self.answers.items():
            assert len(answers) == self.lengths[match]
            assert set(answers) <= GOOD
            assert await store.journal.read_entries(match) == written(len(answers))

    async def check_answered(self, store: Store) -> None:
        """What was answered so far is there, in order; what was not may be."""
        counts = {match: len(answers) for match, answers in self.answers.items()}
        for match, count in counts.items():
            assert set(self.answers[match]) <= GOOD
            assert (await store.journal.read_entries(match))[:count] == written(count)


def written(count: int) -> list[bytes]:
    """The first entries of every match."""
    return [b"%d" % seq for seq in range(1, count + 1)]
