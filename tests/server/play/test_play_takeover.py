"""Which matches of the dead a referee takes over, as it finds them in a real Redis."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from doubles.virtual import in_virtual_time
from redis.asyncio import Redis

from seatwise_server.background_tasks import MOST_AWAITED_AT_ONCE
from seatwise_server.game_choice import ALL_KINDS, GameKind
from seatwise_server.play import lease, takeover
from seatwise_server.play.match_claims import UnownedMatch
from seatwise_server.play.takeover import Takeover
from seatwise_server.store import Death, Fence, Heartbeat, Store
from seatwise_server.store.jobs import Job

LEASE_S = 0.3


class Host:
    """A referee with free tables that only notes what it is to open."""

    open_matches = 0
    game_kinds: Sequence[GameKind] = ALL_KINDS

    def __init__(self, name: str, free: int = 10) -> None:
        self.name = name
        self.free_tables = free
        self.opened: set[str] = set()
        self.deaths: set[Death] = set()

    def has_match(self, match: str) -> bool:
        return match in self.opened

    async def open_match(self, unowned: UnownedMatch) -> None:
        self.opened.add(unowned.job.match)
        self.deaths.add(unowned.death)


@pytest.fixture(autouse=True)
def _short_lease(monkeypatch: pytest.MonkeyPatch, redis_client: Redis) -> None:  # noqa: ARG001 - empty
    monkeypatch.setattr(takeover, "REFEREE_LEASE_S", LEASE_S)


async def first_found(host: Host, store: Store, living: list[str]) -> set[str]:
    """What the host opens at the first look that finds anything, while these others live too."""
    heir = Takeover(host, store)
    while not host.opened:  # the test's own time-out ends it
        for name in (host.name, *living):
            await store.processes.write_heartbeat(name, "host:1", 0, 10, is_draining=False)
        await heir._look_for_dead()
        await asyncio.sleep(LEASE_S / 6)
    return host.opened


async def held_by(store: Store, holder: str, matches: list[str]) -> None:
    """That process has taken the jobs of these matches."""
    for match in matches:
        await store.jobs.push_job(match)
    assert len(await store.jobs.take_jobs(holder, len(matches), 100)) == len(matches)


MATCHES = [f"matches/m{number}" for number in range(9)]


async def test_the_matches_of_the_dead_are_shared(store: Store) -> None:
    await held_by(store, "dead", MATCHES)
    for match in MATCHES:
        await store.journal.claim_match(match, "dead", 0)
    ours = await first_found(Host("b"), store, ["a", "c"])
    assert len(ours) == 3


async def test_a_referee_of_other_games_has_no_share(store: Store) -> None:
    await held_by(store, "dead", MATCHES)
    for match in MATCHES:
        await store.journal.claim_match(match, "dead", 0)
    host = Host("b")
    host.game_kinds = (GameKind.OWN,)
    heir = Takeover(host, store)
    while not host.opened:  # the test's own time-out ends it
        await store.processes.write_heartbeat("a", "host:1", 0, 10, kinds=[GameKind.HOSTED])
        await store.processes.write_heartbeat("b", "host:1", 0, 10)
        await heir._look_for_dead()
        await asyncio.sleep(LEASE_S / 6)
    assert host.opened == set(MATCHES)


@pytest.mark.parametrize("name", ["a", "c"])
async def test_matches_that_others_leave_are_taken_by_a_referee_with_room(store: Store, name: str) -> None:
    """They may be dead too, and nobody knows it yet."""
    await held_by(store, "dead", MATCHES)
    for match in MATCHES:
        await store.journal.claim_match(match, "dead", 0)
    host = Host(name)
    heir = Takeover(host, store)
    while len(host.opened) < len(MATCHES):  # the test's own time-out ends it
        for each in ("a", "b", "c"):
            await store.processes.write_heartbeat(each, "host:1", 0, 10, is_draining=False)
        await heir._look_for_dead()
        await asyncio.sleep(LEASE_S / 6)


async def test_the_holder_of_the_job_of_a_dead_referees_match_takes_it(
    store: Store,
) -> None:
    """Its owner had taken it over from us and died before it could note that the job was its own."""
    await held_by(store, "b", MATCHES)
    for match in MATCHES:
        epoch, _ = await store.journal.claim_match(match, "b", 0)
        await store.journal.claim_match(match, "dead", epoch, death=Death.SOON)
    assert await first_found(Host("b"), store, ["a", "c"]) == set(MATCHES)


@pytest.mark.parametrize(("lived_ms", "death"), [(0, Death.LATE), (60_000, Death.SOON)])
async def test_a_referee_that_lived_with_a_match_for_a_while_died_late(
    store: Store, monkeypatch: pytest.MonkeyPatch, lived_ms: int, death: Death
) -> None:
    monkeypatch.setattr(takeover, "SOON_DEATH_MS", lived_ms)
    await held_by(store, "dead", MATCHES)
    for match in MATCHES:
        await store.journal.claim_match(match, "dead", 0)
    await store.processes.write_heartbeat("dead", "host:1")
    host = Host("b")
    await first_found(host, store, [])
    assert host.deaths == {death}


@pytest.mark.parametrize("is_dead", [True, False])
async def test_the_matches_of_a_process_that_its_parent_saw_die_are_taken_over_at_once_and_its_death_counts(
    store: Store, monkeypatch: pytest.MonkeyPatch, is_dead: bool
) -> None:
    monkeypatch.setattr(takeover, "REFEREE_LEASE_S", 3600)
    await held_by(store, "dead", MATCHES)
    for match in MATCHES:
        await store.journal.claim_match(match, "dead", 0)
    for name in ("b", "dead"):
        await store.processes.write_heartbeat(name, "host:1", 0, 10)
    await store.processes.deregister_process("dead", is_dead=is_dead)
    host = Host("b")
    await Takeover(host, store)._look_for_dead()
    assert host.opened == set(MATCHES)
    assert host.deaths == {Death.SOON if is_dead else Death.NONE}


async def test_a_process_that_has_stopped_in_order_has_not_died(store: Store) -> None:
    await store.processes.write_heartbeat("a", "host:1")
    await store.processes.deregister_process("a")
    await store.processes.deregister_process("a", is_dead=True)
    beat = (await store.processes.read_heartbeats())["a"]
    assert (beat.has_left, beat.has_died) == (True, False)


async def test_a_job_that_was_taken_and_never_opened_is_opened_by_who_took_it(store: Store) -> None:
    await held_by(store, "b", MATCHES)
    assert await first_found(Host("b"), store, ["a", "c"]) == set(MATCHES)


async def test_matches_that_do_not_fit_are_left_to_others(store: Store) -> None:
    await held_by(store, "b", MATCHES)
    host = Host("b", free=2)
    await first_found(host, store, ["a"])
    assert len(host.opened) == 2
    assert await store.jobs.count_by_owner() == {"b": 9}
    host.free_tables = 0
    await Takeover(host, store)._look_for_dead()
    assert await store.jobs.count_by_owner() == {"b": 2}
    assert {job.match for job in await store.jobs.take_jobs("a", 10, 100)} == set(MATCHES) - host.opened


# Many, in virtual time: the store answers at once, opening a match takes a while


OPENING_S = 0.25


class Books:
    """Redis, as far as an heir reads it: one referee is dead and held so many matches."""

    def __init__(self, matches: int) -> None:
        self.held_by_dead = {f"{number:06}": f"matches/{number}" for number in range(matches)}
        self.processes = self.jobs = self.journal = self

    async def read_heartbeats(self) -> dict[str, Heartbeat]:
        heir = Heartbeat(int(asyncio.get_running_loop().time()), "", has_left=False, free=10_000)
        return {"dead": Heartbeat(1, "", has_left=False), "heir": heir}

    async def count_by_owner(self, _kinds: object = ()) -> dict[str, int]:
        return {"dead": len(self.held_by_dead)} if self.held_by_dead else {}

    async def jobs_of(self, holder: str, count: int, after_id: str = "", _kinds: object = ()) -> list[Job]:
        jobs = [Job(*each) for each in sorted(self.held_by_dead.items()) if each[0] > after_id]
        return jobs[:count] if holder == "dead" else []

    async def read_fence(self, _: str) -> Fence:
        return Fence(1, "dead", is_retired=False)


class Heir:
    """A referee with room for all, for which each match is work."""

    name, free_tables, open_matches = "heir", 10_000, 0
    game_kinds = ALL_KINDS

    def __init__(self, books: Books) -> None:
        self._books = books
        self.opened: dict[str, float] = {}

    def has_match(self, match: str) -> bool:
        return match in self.opened

    async def open_match(self, unowned: UnownedMatch) -> None:
        await asyncio.sleep(OPENING_S)
        self.opened[unowned.job.match] = asyncio.get_running_loop().time()
        del self._books.held_by_dead[unowned.job.job_id]


@in_virtual_time
async def test_however_many_matches_a_referee_leaves_its_lease_is_waited_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An heir that is busy with them goes on looking who lives, or all would have a whole lease again and again."""
    monkeypatch.setattr(takeover, "REFEREE_LEASE_S", lease.REFEREE_LEASE_S)
    books: Any = Books(2000)
    heir: Any = Heir(books)
    began = asyncio.get_running_loop().time()
    running = asyncio.create_task(Takeover(heir, books).run_takeovers())
    await asyncio.sleep(60)
    running.cancel()
    assert len(heir.opened) == 2000
    work_s = 2000 / MOST_AWAITED_AT_ONCE * OPENING_S
    assert max(heir.opened.values()) - began < lease.REFEREE_LEASE_S + 1 + work_s
