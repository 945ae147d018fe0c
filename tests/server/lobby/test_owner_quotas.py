"""Quotas of an owner over all its bots: matches at once, matches in 24 hours, and watches. They hold for all processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

import pytest
from doubles.operations import operations_on
from harness.free_tables import give_tables
from redis.asyncio import Redis

from seatwise.v1 import lobby_service_pb2, match_service_pb2
from seatwise.v1 import owner_service_pb2 as pb
from seatwise_referee.ending import MatchState
from seatwise_referee.games.registry import default_time_control
from seatwise_server.ladder.ladder_host import HostedLadder, LadderHost
from seatwise_server.ladder.ladder_settings import Ladder
from seatwise_server.ladder.ladder_state import LadderState
from seatwise_server.lobby.attendance import AttendanceStream
from seatwise_server.lobby.lobby import Lobby
from seatwise_server.lobby.pairing import Pairing
from seatwise_server.lobby.seating import CREATED, Seating
from seatwise_server.refusal import Refusal
from seatwise_server.resource_names import new_match_name
from seatwise_server.services.access import Access
from seatwise_server.services.authentication import Caller
from seatwise_server.services.owners import OwnerWatches
from seatwise_server.store import Attendance, EndedMatch, OwnerCount, OwnerLimits, Store, keys, now_ms
from seatwise_server.store.errors import ProposalExpired
from seatwise_server.store.owners import LEFTOVER_MS, OwnerMatches

JOAN = "owners/joan"
FIRST, SECOND = "bots/first/versions/1", "bots/second/versions/1"
STRANGERS = tuple(f"bots/stranger-{number}/versions/1" for number in range(3))
LADDER = Ladder("ladders/main", "ugo", 2, {"rounds": 1}, default_time_control("ugo"))
QUEUE = "casual-2"
NO_LIMITS = OwnerLimits()
LONG_MS = 60_000
DAY_MS = 86_400_000


async def create_joan(store: Store, **quotas: int) -> None:
    """The owner of the bots `FIRST` and `SECOND`, with these quotas."""
    await store.owners.create_owner(JOAN, 3, 8, "invites/i", "")
    await store.owners.set_quotas(JOAN, quotas)
    for bot in (FIRST, SECOND):
        await store.owners.add_bot(JOAN, bot)
        await store.bots.register_bot(bot.split("/")[1], "1", JOAN, "")


async def open_match(store: Store, match: str, *, counts_day: bool = True) -> OwnerCount:
    until_ms = await now_ms(store.client) + LONG_MS
    [answer] = await store.owner_matches.open_match(match, [JOAN], until_ms, NO_LIMITS, counts_day=counts_day)
    return answer


async def used(store: Store) -> tuple[int, int]:
    """The matches at once, and those of 24 hours."""
    [room] = await store.owner_matches.measure_room([JOAN], NO_LIMITS)
    return room.open_matches, room.day_matches


# In the store


async def test_of_many_matches_at_the_same_time_only_as_many_begin_as_the_quota_allows(store: Store) -> None:
    await create_joan(store, most_matches_at_once=3)
    names = [f"matches/{number}" for number in range(20)]
    answers = await asyncio.gather(*(open_match(store, name) for name in names))
    assert answers.count(OwnerCount.COUNTED) == 3
    assert answers.count(OwnerCount.FULL) == 17
    begun = [name for name, answer in zip(names, answers, strict=True) if answer is OwnerCount.COUNTED]
    assert await open_match(store, begun[0]) is OwnerCount.COUNTED, "a repeat is no further match"
    for _ in range(2):
        await store.owner_matches.close_match(begun[0], {JOAN}, is_void=False)
    assert await used(store) == (2, 0)
    assert await open_match(store, "matches/next") is OwnerCount.COUNTED
    assert await open_match(store, "matches/last") is OwnerCount.FULL


async def test_matches_of_24_hours_count_when_they_are_over_unless_they_are_void(
    store: Store, redis_client: Redis
) -> None:
    await create_joan(store, most_matches_a_day=2)
    for match, is_void in (("matches/1", False), ("matches/2", True), ("matches/3", False)):
        assert await open_match(store, match) is OwnerCount.COUNTED
        await store.owner_matches.close_match(match, {JOAN}, is_void=is_void)
    assert await open_match(store, "matches/4") is OwnerCount.SPENT
    assert await open_match(store, "matches/4", counts_day=False) is OwnerCount.COUNTED, "an operator made it"
    [room] = await store.owner_matches.measure_room([JOAN], NO_LIMITS)
    began_ms = await redis_client.zscore(keys.owner_day_matches(JOAN), "matches/1") or 0
    assert (room.of_day, room.day_matches, room.back_ms) == (0, 3, began_ms + DAY_MS)
    for match in ("matches/1", "matches/3"):
        await redis_client.zincrby(keys.owner_day_matches(JOAN), -DAY_MS, match)
    assert await used(store) == (1, 1)
    assert await open_match(store, "matches/5") is OwnerCount.COUNTED
    assert await redis_client.zcard(keys.owner_day_matches(JOAN)) == 2, "older ones are removed"


async def test_the_quotas_of_the_server_apply_to_owners_without_their_own(store: Store) -> None:
    await create_joan(store)
    limits = OwnerLimits(at_once=1, a_day=1)
    until_ms = await now_ms(store.client) + LONG_MS
    ask: Any = (until_ms, limits)
    assert await store.owner_matches.open_match("m/1", [JOAN], *ask, counts_day=True) == [OwnerCount.COUNTED]
    assert await store.owner_matches.open_match("m/2", [JOAN], *ask, counts_day=True) == [OwnerCount.FULL]
    await store.owners.set_quotas(JOAN, {"most_matches_at_once": 2})
    assert await store.owner_matches.open_match("m/2", [JOAN], *ask, counts_day=True) == [OwnerCount.SPENT]
    await store.owners.set_quotas(JOAN, {"most_matches_at_once": 0, "most_matches_a_day": 0})
    assert await open_match(store, "m/3") is OwnerCount.FULL, "0 is a quota, too"


async def test_nothing_is_counted_too_late_or_for_an_owner_that_is_erased(
    store: Store, redis_client: Redis
) -> None:
    await create_joan(store, most_matches_at_once=1, most_matches_a_day=1, most_watches=1)
    late = await now_ms(store.client)
    with pytest.raises(ProposalExpired):
        await store.owner_matches.open_match("m/1", [JOAN], late, NO_LIMITS, counts_day=True)
    assert await open_match(store, "m/2") is OwnerCount.COUNTED
    with pytest.raises(ProposalExpired):
        await store.owner_matches.close_match("m/2", {JOAN}, is_void=True, until_ms=late)
    assert await used(store) == (1, 1)
    assert await store.owner_matches.open_watch(JOAN, "w", LONG_MS, NO_LIMITS)
    await store.owners.erase_owner(JOAN)
    for number in range(3):
        assert await open_match(store, f"m/{number}") is OwnerCount.COUNTED
        assert await store.owner_matches.open_watch(JOAN, f"w/{number}", LONG_MS, NO_LIMITS)
    assert not [key for key in await redis_client.keys() if keys.owner_hash(JOAN).encode() in key]


async def test_matches_that_are_over_do_not_count_for_ever_whoever_ended_them(
    store: Store, redis_client: Redis
) -> None:
    await create_joan(store, most_matches_a_day=9)
    states = {"m/run": "RUNNING", "m/over": "FINISHED", "m/void": "VOIDED", "m/never": "", "m/new": ""}
    for match, state in states.items():
        await open_match(store, match)
        if state:
            await redis_client.hset(keys.match_meta(match), "state", state)
    for match in states.keys() - {"m/new"}:
        await redis_client.zincrby(keys.owner_open_matches(JOAN), -LEFTOVER_MS - 1, match)
    assert await store.owner_matches.close_leftovers(JOAN) == 3
    assert {*await redis_client.zrange(keys.owner_open_matches(JOAN), 0, -1)} == {b"m/run", b"m/new"}
    counted = {*await redis_client.zrange(keys.owner_day_matches(JOAN), 0, -1)}
    assert counted == {b"m/run", b"m/new", b"m/over"}, (
        "a void match, and one that never began, counts in no 24 hours"
    )


async def test_a_delivery_that_was_cut_short_is_repeated_for_the_owner(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create_joan(store, most_matches_a_day=5)
    await open_match(store, "matches/1")
    ended = EndedMatch("matches/1", [FIRST, SECOND], MatchState.FINISHED, 60)

    async def killed(*_: Any, **__: Any) -> None:
        raise ProcessLookupError

    with monkeypatch.context() as patch:
        patch.setattr(OwnerMatches, "close_match", killed)
        with pytest.raises(ProcessLookupError):
            await store.deliveries.conclude_match(ended)
    assert await used(store) == (1, 1)
    for _ in range(2):
        await store.deliveries.conclude_match(ended)
    assert await used(store) == (0, 1)


# At the pairing


def lobby_on(store: Store) -> Pairing:
    """A lobby that holds the ladder, where there is room at some referee."""
    host = LadderHost(store, "a lobby")
    host.hosted[LADDER.name] = HostedLadder(LADDER, LadderState(store, LADDER.name))
    return give_tables(Pairing(store, Seating(store, "fsync"), {}, host))


async def wait_in(store: Store, queue: str, *bots: str) -> None:
    for bot in bots:
        await store.attendances.write_attendance(bot, Attendance("lobby", bot, 1, (queue,)), LONG_MS)
        await store.queues.enter_queue(queue, bot)


async def run_passes(lobby: Pairing) -> None:
    """As many as may be useful."""
    for _ in range(3):
        lobby._ladders._rests_until = 0.0
        await lobby._run_pass()


async def matches_of(store: Store, *bots: str) -> list[str]:
    """The matches in which these bots hold seats, one for each seat."""
    return [each.match for bot in bots for each in await store.seats.held_seats(bot)]


async def free_seats_of(store: Store, *matches: str) -> None:
    """These matches have come to nothing."""
    for match in matches:
        setup = await Seating(store, "fsync").setup_of(match)
        assert setup
        await store.seats.release_all(match, setup.bots)


async def waiting_in(store: Store, queue: str) -> list[str]:
    return [entry.name for entry in await store.queues.list_entries(queue)]


@pytest.mark.parametrize("queue", [QUEUE, LADDER.name])
async def test_a_bot_whose_owner_is_at_its_limit_waits_and_holds_no_partner_back(
    store: Store, queue: str
) -> None:
    await create_joan(store, most_matches_at_once=1)
    lobby = lobby_on(store)
    await wait_in(store, queue, FIRST, STRANGERS[0])
    await run_passes(lobby)
    [match, same] = await matches_of(store, FIRST, STRANGERS[0])
    assert match == same
    await wait_in(store, queue, SECOND, STRANGERS[1])
    await run_passes(lobby)
    assert await waiting_in(store, queue) == [SECOND, STRANGERS[1]], "both keep their places"
    assert await matches_of(store, SECOND, STRANGERS[1]) == []
    await wait_in(store, queue, STRANGERS[2])
    await run_passes(lobby)
    assert len({*await matches_of(store, *STRANGERS[1:])}) == 1
    assert await waiting_in(store, queue) == [SECOND]
    await free_seats_of(store, match)
    await wait_in(store, queue, STRANGERS[0])
    await run_passes(lobby)
    assert len(await matches_of(store, SECOND, STRANGERS[0])) == 2, "its owner has room again"
    assert await used(store) == (1, 0)


async def test_a_match_between_bots_of_one_owner_counts_once(store: Store) -> None:
    await create_joan(store, most_matches_at_once=1)
    await wait_in(store, QUEUE, FIRST, SECOND)
    await run_passes(lobby_on(store))
    assert len({*await matches_of(store, FIRST, SECOND)}) == 1
    assert await used(store) == (1, 0)


async def test_a_created_match_waits_for_room_at_once_but_not_for_the_next_day(store: Store) -> None:
    await create_joan(store, most_matches_at_once=1, most_matches_a_day=1)
    lobby, seating = lobby_on(store), Seating(store, "fsync")
    await open_match(store, "matches/before")
    bots = (FIRST, STRANGERS[0])
    setup = seating.new_setup(new_match_name(), "ugo", bots, {"rounds": 1}, default_time_control("ugo"))
    for bot in bots:
        await store.attendances.write_attendance(bot, Attendance("lobby", bot, 1, (QUEUE,)), LONG_MS)
    await seating.create_match(setup, MatchState.WAITING, CREATED)
    await store.queues.enter_queue(CREATED, setup.match)
    await wait_in(store, QUEUE, STRANGERS[0], STRANGERS[1])
    await run_passes(lobby)
    assert await waiting_in(store, CREATED) == [setup.match]
    assert len({*await matches_of(store, STRANGERS[0], STRANGERS[1])}) == 1, "its partner plays meanwhile"
    await free_seats_of(store, *await matches_of(store, STRANGERS[0]))
    await store.owner_matches.close_match("matches/before", {JOAN}, is_void=False)
    assert await used(store) == (0, 1), "its day is used up"
    await run_passes(lobby)
    assert await matches_of(store, FIRST) == [setup.match]
    assert await used(store) == (1, 2)


async def test_a_bot_is_told_when_the_quota_of_24_hours_is_used_up_and_when_it_is_back(
    store: Store, redis_client: Redis
) -> None:
    await create_joan(store, most_matches_a_day=1)
    await open_match(store, "matches/1")
    pairing: Any = SimpleNamespace(wake_pairing=lambda: None)
    lobby, attendance = Lobby("lobby", store, pairing), AttendanceStream(FIRST, (QUEUE,), 1)
    async with lobby.attend_lobby(attendance):
        off = attendance.off[QUEUE]
        assert off.cause == lobby_service_pb2.TakenOff.CAUSE_OWNER_QUOTA
        assert "as many matches in 24 hours as its quota allows (1)" in off.reason
        began_ms = await redis_client.zscore(keys.owner_day_matches(JOAN), "matches/1") or 0
        assert off.back_time.ToMilliseconds() == began_ms + DAY_MS
        assert await waiting_in(store, QUEUE) == []
        await redis_client.zincrby(keys.owner_day_matches(JOAN), -DAY_MS, "matches/1")
        await lobby._beat_once()
        assert (attendance.off, await waiting_in(store, QUEUE)) == ({}, [FIRST])
        await store.owner_matches.close_match("matches/1", {JOAN}, is_void=False)
        await store.owners.set_quotas(JOAN, {"most_matches_at_once": 0})
        await lobby._beat_once()
        assert "ask the operator" in attendance.off[QUEUE].reason
        assert not attendance.off[QUEUE].HasField("back_time")
        await store.owners.set_quotas(JOAN, {"most_matches_at_once": 1, "most_matches_a_day": 2})
        await open_match(store, "matches/2")
        await lobby._beat_once()
        assert attendance.off == {}, "it only waits until a match is over"


# Watches, and what an owner is shown

OWNER = Caller(name=JOAN, scopes=frozenset({Access.OWN}))


async def refused_watch(watches: OwnerWatches, caller: Caller) -> Refusal:
    with pytest.raises(Refusal) as refused:
        async with watches.count_watch(caller):
            pass
    return refused.value


async def test_an_owner_and_its_bots_watch_so_many_matches_at_all_processes_together(store: Store) -> None:
    await create_joan(store)
    here, there = (OwnerWatches(store, OwnerLimits(watches=2)) for _ in range(2))
    async with AsyncExitStack() as open_watches:
        await open_watches.enter_async_context(here.count_watch(OWNER))
        async with there.count_watch(Caller(bot=FIRST)):
            for watches in (here, there):
                refusal = await refused_watch(watches, OWNER)
                assert (refusal.reason, refusal.metadata["retry_after"]) == ("QUOTA_EXCEEDED", "5")
            async with here.count_watch(Caller()), here.count_watch(Caller(bot=STRANGERS[0])):
                pass  # they are of no owner
        async with there.count_watch(OWNER):
            pass


async def test_a_watch_whose_process_died_counts_only_as_long_as_its_lease(
    store: Store, redis_client: Redis
) -> None:
    await create_joan(store, most_watches=1)
    assert await store.owner_matches.open_watch(JOAN, "died", LONG_MS, NO_LIMITS)
    watches = OwnerWatches(store, NO_LIMITS)
    await refused_watch(watches, OWNER)
    await redis_client.zincrby(keys.owner_watches(JOAN), -2 * LONG_MS, "died")
    async with watches.count_watch(OWNER):
        await refused_watch(watches, OWNER)
    assert await redis_client.exists(keys.owner_watches(JOAN)) == 0


async def test_a_match_is_watched_within_the_quota_and_the_owner_is_shown_what_it_has(store: Store) -> None:
    await create_joan(store, most_watches=0, most_matches_a_day=5)
    await open_match(store, "matches/1")
    limits = OwnerLimits(at_once=7, watches=9)
    operations = {method.rpartition("/")[2]: it for method, it in operations_on(store, limits).items()}
    seating = Seating(store, "fsync")
    setup = seating.new_setup("matches/w", "ugo", [FIRST, SECOND], {}, default_time_control("ugo"))
    await seating.create_match(setup, MatchState.WAITING, CREATED)
    request = match_service_pb2.WatchMatchRequest(name="matches/w")
    watched: AsyncIterator[Any] = operations["WatchMatch"].handle(OWNER, request)
    with pytest.raises(Refusal, match="as many matches as your quota allows"):
        await anext(watched)
    owner = (await operations["GetOwner"].handle(OWNER, pb.GetOwnerRequest(name=JOAN))).owner
    shown = (owner.most_matches_at_once, owner.most_matches_a_day, owner.most_watches)
    assert (shown, owner.matches, owner.day_matches) == ((7, 5, 0), 1, 1)
    asked = pb.SetOwnerQuotasRequest(name=JOAN, most_matches_at_once=0, most_watches=3)
    owner = (await operations["SetOwnerQuotas"].handle(Caller(), asked)).owner
    assert (owner.most_matches_at_once, owner.most_watches, owner.HasField("most_requests")) == (0, 3, False)
    with pytest.raises(Refusal, match="most_matches_a_day is -1; 0 to 100000 are allowed"):
        await operations["SetOwnerQuotas"].handle(
            Caller(), pb.SetOwnerQuotasRequest(name=JOAN, most_matches_a_day=-1)
        )
