"""Who may speak, who may take over, and what of it: on clocks that obey, and on a real Redis."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matches.one_match import setup_of
from matches.one_race import race_setup
from redis.asyncio import Redis

from seatwise_referee.ending import VoidReason
from seatwise_referee.game import Seat
from seatwise_referee.journal import Sat, TakenOver, canonical_json, encode_entry
from seatwise_server.game_choice import ALL_KINDS
from seatwise_server.play.delivery import Delivery
from seatwise_server.play.lease import Lease
from seatwise_server.play.match_claims import (
    MOST_DEATHS,
    MOST_DEATHS_IN_ALL,
    MatchClaims,
    UnknownFormat,
    UnownedMatch,
)
from seatwise_server.play.referee import HeartbeatSender
from seatwise_server.play.seat_offers import RefereeIdentity
from seatwise_server.play.takeover import share_of
from seatwise_server.store import AppendResult, Death, Flusher, Store
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.redis.client import Argument, RedisClient
from seatwise_server.store.redis.scripts import script_named
from seatwise_server.timings import REFEREE_LEASE_MARGIN_S, REFEREE_LEASE_S

CERTAIN_S = REFEREE_LEASE_S - REFEREE_LEASE_MARGIN_S


class Clock:
    """Shows what the test says."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def held() -> tuple[Clock, Lease]:
    """A lease that holds since now."""
    clock = Clock()
    lease = Lease(clock)
    lease.note_confirmed(clock.now)
    assert lease.renew_lease()
    return clock, lease


def test_a_lease_holds_from_when_the_heartbeat_was_sent_not_from_its_answer() -> None:
    clock, lease = held()
    sent = clock.now + 1
    clock.now += 3
    lease.note_confirmed(sent)
    clock.now = sent + CERTAIN_S - 0.01
    assert lease.holds()
    clock.now = sent + CERTAIN_S
    assert not lease.holds()


def test_a_heartbeat_alone_brings_no_lost_lease_back() -> None:
    clock, lease = held()
    clock.now += CERTAIN_S + 1
    lease.note_confirmed(clock.now)
    assert not lease.holds()
    assert lease.lapses == 1
    assert lease.renew_lease()
    assert lease.holds()


def test_an_answer_that_comes_after_a_stall_brings_nothing_back() -> None:
    clock, lease = held()
    sent = clock.now
    clock.now += 60
    lease.note_confirmed(sent)
    assert not lease.renew_lease()


def test_a_referee_that_gives_its_matches_up_says_nothing_any_more() -> None:
    clock, lease = held()
    lease.give_up()
    lease.note_confirmed(clock.now)
    assert not lease.holds()
    assert (lease.lapses, lease.silent_since) == (1, clock.now)


def test_before_the_first_heartbeat_nothing_may_be_said() -> None:
    assert not Lease(Clock()).holds()


class Owner:
    """A referee without tables: what its presence does to it."""

    name, free_tables, is_draining = "me", 5, False
    game_kinds = ALL_KINDS
    place = RefereeIdentity(name, "host:1", 5)
    tables: ClassVar[dict[str, Any]] = {}
    lease: Lease

    def __init__(self, *matches: str) -> None:
        self.open_tables = self
        self.matches = dict.fromkeys(matches, 1)
        self.lost: list[tuple[str, AppendResult]] = []
        self.spoke = 0

    def owned_matches(self) -> dict[str, int]:
        return dict(self.matches)

    def lose_match(self, match: str, answer: AppendResult) -> None:
        del self.matches[match]
        self.lost.append((match, answer))

    def on_lease_regained(self) -> None:
        self.spoke += 1

    def obey_order(self, order: str) -> None: ...


class Fences:
    """A store that knows heartbeats and fences, and takes its time."""

    def __init__(self, *not_ours: str) -> None:
        self.not_ours = not_ours
        self.asked: list[str] = []
        self.hook: Any = None
        self.processes = self.journal = self
        self.is_away = False

    async def write_heartbeat(self, *_: object, **__: object) -> int:
        if self.is_away:
            raise StoreUnavailable("away")
        return 1

    async def confirm_fence(self, match: str, *_: object) -> AppendResult:
        await asyncio.sleep(0)
        self.asked.append(match)
        if self.hook:
            self.hook()
        return AppendResult.FENCED if match in self.not_ours else AppendResult.OK


def present(owner: Owner, fences: Any, clock: Clock) -> tuple[HeartbeatSender, Lease]:
    owner.lease = lease = Lease(clock)
    return HeartbeatSender(owner, fences), lease  # type: ignore[arg-type]


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_after_silence_every_fence_is_asked_before_a_word_is_said() -> None:
    owner, fences, clock = Owner("a", "b", "c"), Fences("b"), Clock()
    presence, lease = present(owner, fences, clock)
    await presence.send_heartbeat()
    assert not lease.holds()
    await settled()
    assert (sorted(fences.asked), owner.lost, owner.spoke, lease.holds()) == (
        ["a", "b", "c"],
        [("b", AppendResult.FENCED)],
        1,
        True,
    )


async def test_a_match_that_comes_in_between_is_asked_too() -> None:
    owner, fences, clock = Owner("a"), Fences(), Clock()
    fences.hook = lambda: owner.matches.setdefault("late", 1)
    presence, lease = present(owner, fences, clock)
    await presence.send_heartbeat()
    await settled()
    assert sorted(fences.asked) == ["a", "late"]
    assert lease.holds()


async def test_a_referee_that_stalls_while_it_asks_begins_anew() -> None:
    owner, fences, clock = Owner("a"), Fences(), Clock()
    presence, lease = present(owner, fences, clock)

    def stall() -> None:
        clock.now += 2 * REFEREE_LEASE_S

    fences.hook = stall
    await presence.send_heartbeat()
    await settled()
    assert (owner.spoke, lease.holds()) == (0, False)
    fences.hook = None
    await presence.send_heartbeat()
    await settled()
    assert (fences.asked, owner.spoke, lease.holds()) == (["a", "a"], 1, True)


async def test_as_long_as_no_heartbeat_is_confirmed_nothing_is_asked() -> None:
    owner, fences, clock = Owner("a"), Fences(), Clock()
    presence, lease = present(owner, fences, clock)
    fences.is_away = True
    await presence.send_heartbeat()
    await settled()
    assert (fences.asked, lease.holds()) == ([], False)


Free = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 50), min_size=1)


@given(free=Free, count=st.integers(0, 100))
def test_an_estate_is_shared_whole_once_and_by_what_is_free(free: dict[str, int], count: int) -> None:
    parts = {name: list(share_of(range(count), free, name)) for name in free}
    taken = sorted(match for part in parts.values() for match in part)
    assert taken == list(range(min(count, sum(free.values()))))
    assert all(len(part) <= free[name] for name, part in parts.items())
    ideal = {name: len(taken) * free[name] / max(1, sum(free.values())) for name in free}
    assert all(abs(len(part) - ideal[name]) <= 1 for name, part in parts.items())


async def opened(store: Store, flusher: Flusher, **meta: bytes) -> tuple[MatchClaims, Any]:
    """A new match with its job, and who is to open it."""
    setup = setup_of()
    await store.matches.create_match(
        setup.match, {"setup": canonical_json(setup.to_json()), "state": "SEATING", **meta}
    )
    await store.jobs.push_job(setup.match)
    [job] = await store.jobs.take_jobs("a", 1, 100)
    return opening(store, flusher), job


def opening(store: Store, flusher: Flusher, owner: str = "a") -> MatchClaims:
    return MatchClaims(owner, store, flusher, Delivery(store, 60))


async def die(
    store: Store, flusher: Flusher, job: Any, heir: str, death: Death = Death.SOON
) -> VoidReason | None:
    """The owner has died in that way; what the heir is to do with the match."""
    fence = await store.journal.read_fence(job.match)
    owned = await opening(store, flusher, heir).claim_match(UnownedMatch(job, "a", fence, death))
    assert owned
    return owned.void


async def verdicts_on(
    store: Store,
    flusher: Flusher,
    *,
    deaths: int,
    death: Death = Death.SOON,
    opens: bool = True,
    moves: int = 0,
) -> list[VoidReason | None]:
    """Of one heir after the other; so many of the first get on with the match, all others only take it over."""
    _, job = await opened(store, flusher)
    verdicts, seq = [await die(store, flusher, job, "first", Death.NONE)], 0
    for number in range(deaths):
        heir, epoch = f"heir{number}", number + 2
        verdicts.append(await die(store, flusher, job, heir, death))
        done: tuple[Any, ...] = (TakenOver(seq=seq + 1, at_ms=seq, epoch=epoch),) if opens else ()
        if number < moves:
            done += (Sat(seq=seq + 2, at_ms=seq, seat=Seat(number % 2), nonce=None),)
        if done:
            entries = [encode_entry(entry) for entry in done]
            assert await flusher.append_and_wait(job.match, epoch, heir, seq + 1, entries) is AppendResult.OK
        seq += len(done)
    return verdicts[1:]


class OneByOne:
    """A client of Redis that sends each command of a message by itself, and does something before a claim."""

    def __init__(self, client: RedisClient, before_claim: Callable[[], Awaitable[None]]) -> None:
        self._client, self._before_claim = client, before_claim

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def call_many(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        answers = []
        for command in commands:
            if command[1] == script_named("claim").source:
                await self._before_claim()
            answers += await self._client.call_many([command])
        return answers


async def test_entries_written_until_the_fence_is_set_are_known_to_the_new_owner(
    store: Store, flusher: Flusher
) -> None:
    ours, job = await opened(store, flusher)
    assert await ours.claim_match(UnownedMatch(job, "a", None))
    fence = await store.journal.read_fence(job.match)
    sat = encode_entry(Sat(seq=1, at_ms=5, seat=Seat(0), nonce=None))

    async def write() -> None:
        assert await flusher.append_and_wait(job.match, 1, "a", 1, [sat]) is AppendResult.OK

    its_store = Store(OneByOne(store.client, write))
    heir = await opening(its_store, flusher, "b").claim_match(UnownedMatch(job, "a", fence, Death.SOON))
    assert heir
    assert (heir.epoch, heir.match.position.seq) == (2, 1)


async def test_a_match_whose_third_owner_dies_is_poisoned(store: Store, flusher: Flusher) -> None:
    assert await verdicts_on(store, flusher, deaths=3) == [None, None, VoidReason.POISONED]


async def test_a_referee_that_dies_with_a_match_that_got_on_since_is_not_its_victim(
    store: Store, flusher: Flusher
) -> None:
    verdicts = await verdicts_on(store, flusher, deaths=2 * MOST_DEATHS, moves=MOST_DEATHS)
    assert verdicts == [None] * (2 * MOST_DEATHS - 1) + [VoidReason.POISONED]


async def test_a_match_that_gets_on_outlives_any_number_of_owners(store: Store, flusher: Flusher) -> None:
    many = MOST_DEATHS_IN_ALL + 2
    assert await verdicts_on(store, flusher, deaths=many, moves=many) == [None] * many


@pytest.mark.parametrize(("death", "opens"), [(Death.LATE, True), (Death.SOON, False)])
async def test_many_have_to_die_late_or_before_they_open_it_until_a_match_is_poisoned(
    store: Store, flusher: Flusher, death: Death, opens: bool
) -> None:
    """Three kills while one round of a race is played, or while a server starts, void no match."""
    verdicts = await verdicts_on(store, flusher, deaths=MOST_DEATHS_IN_ALL, death=death, opens=opens)
    assert verdicts == [None] * (MOST_DEATHS_IN_ALL - 1) + [VoidReason.POISONED]


async def test_a_referee_that_dies_before_it_opens_a_match_has_not_got_on_with_it(
    store: Store, flusher: Flusher
) -> None:
    """The entries at the journal's end are those of the owner before."""
    _, job = await opened(store, flusher)
    assert await die(store, flusher, job, "first", Death.NONE) is None
    sat = encode_entry(Sat(seq=1, at_ms=0, seat=Seat(0), nonce=None))
    assert await flusher.append_and_wait(job.match, 1, "first", 1, [sat]) is AppendResult.OK
    verdicts = [await die(store, flusher, job, f"heir{number}") for number in range(MOST_DEATHS_IN_ALL)]
    assert verdicts[-1] is VoidReason.POISONED


async def test_handing_over_is_no_death(store: Store, flusher: Flusher) -> None:
    _, job = await opened(store, flusher)
    heirs = [f"heir{number}" for number in range(2 * MOST_DEATHS_IN_ALL)]
    assert {await die(store, flusher, job, heir, Death.NONE) for heir in heirs} == {None}


async def test_a_match_of_another_version_is_left_to_it(store: Store, flusher: Flusher) -> None:
    ours, job = await opened(store, flusher, format=b"seatwise.journal/2")
    with pytest.raises(UnknownFormat):
        await ours.claim_match(UnownedMatch(job, "a", None))
    assert await store.journal.read_fence(job.match) is None


async def test_rules_of_another_version_are_left_to_it(store: Store, flusher: Flusher) -> None:
    setup = setup_of(name="matches/newer").to_json() | {"rules_version": "99"}
    await store.matches.create_match("matches/newer", {"setup": json.dumps(setup), "state": "SEATING"})
    ours, job = await opened(store, flusher)
    with pytest.raises(UnknownFormat):
        await ours.claim_match(UnownedMatch(type(job)("1-0", "matches/newer"), "a", None))


async def test_a_match_with_a_deck_that_is_not_here_is_left_to_those_who_have_it(
    store: Store, flusher: Flusher
) -> None:
    setup = race_setup().to_json()
    setup["options"] = {**setup["options"], "deck": "theirs:" + "0" * 64}
    await store.matches.create_match("matches/theirs", {"setup": json.dumps(setup), "state": "SEATING"})
    ours, job = await opened(store, flusher)
    with pytest.raises(UnknownFormat, match="deck"):
        await ours.claim_match(UnownedMatch(type(job)("1-0", "matches/theirs"), "a", None))
    assert await store.journal.read_fence("matches/theirs") is None


async def test_entries_that_a_failover_forgot_are_written_again_under_a_new_epoch(
    store: Store, flusher: Flusher, redis_client: Redis
) -> None:
    ours, job = await opened(store, flusher)
    owned = await ours.claim_match(UnownedMatch(job, "a", None))
    assert owned
    sat = encode_entry(Sat(seq=1, at_ms=5, seat=Seat(0), nonce=None))
    assert await flusher.append_and_wait(job.match, 1, "a", 1, [sat]) is AppendResult.OK
    await redis_client.flushall()
    assert await store.journal.confirm_fence(job.match, 1, "a") is AppendResult.LOST
    again = await ours.reclaim_match(owned.match.setup, 1)
    assert again
    assert (again.epoch, again.match.position.seq) == (2, 1)
    assert await store.journal.read_entries(job.match) == [sat]
