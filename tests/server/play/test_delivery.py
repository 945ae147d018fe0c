"""Delivery: each of its steps may fail, before or after it was done, and a repeat makes everything good once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from harness.store_calls import put_offer, reserve_seat
from matches.one_match import Desk
from matches.set_scenes import desk
from redis.asyncio import Redis

from seatwise_referee.ending import VoidReason
from seatwise_referee.game import Seat
from seatwise_referee.journal import canonical_json, encode_entry
from seatwise_server.competition.schedules.schedule import SoFar, follow_attempts
from seatwise_server.limits import (
    BOT_HTTP_STREAMS,
    HTTP_CONNECTIONS,
    HTTP_REQUESTS,
    HTTP_STREAMS,
    SOCKETS,
    PlaceLimit,
    Places,
)
from seatwise_server.play.delivery import Delivery, MatchEnd, end_of
from seatwise_server.play.match_claims import MatchClaims, UnownedMatch
from seatwise_server.play.no_shows import ABSENT_BOTS, FaultWatch, MissedSeats
from seatwise_server.store import AppendResult, Attendance, Flusher, Job, SeatOf, Store, keys, seats
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.redis.client import Argument, RedisClient
from seatwise_server.store.redis.scripts import script_named

LADDER = "ladders/main"
STEPS = ("match_forget", "result_append", "set_end", "seat_release")
"""The scripts that follow the record."""


class Dying:
    """A client of Redis whose process dies at one script: before it is run or after, and before those behind it."""

    def __init__(self, client: RedisClient, step: str, when: str) -> None:
        self._client, self._script, self._when = client, script_named(step), when

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def call_many(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        named = [command[1] in (self._script.source, self._script.sha) for command in commands]
        if True not in named:
            return await self._client.call_many(commands)
        sent = commands[: named.index(True) + (self._when == "after")]
        if sent:
            await self._client.call_many(sent)
        raise StoreUnavailable("the server dies here")


def dying(store: Store, step: str, when: str) -> Store:
    return Store(Dying(store.client, step, when))


async def finished(store: Store, *, is_void: bool = False) -> tuple[Desk, list[bytes], int]:
    """A match of a ladder and of a set, over and not delivered; its bots hold their seats."""
    it = desk(1, size=1)
    it.setup = replace(it.setup, competition=LADDER)
    it.match.setup = it.setup
    it.sit_all()
    if is_void:
        for seat in (0, 1):
            it.do(it.match.resign(Seat(seat), it.now))
    else:
        it.play_out(ms_each=7)
    place = it.setup.deal_set
    assert place
    await store.sets.join_set(place.name, 1, it.setup.match, 1, "ugo", place.seed)
    await store.matches.create_match(
        it.setup.match, {"setup": canonical_json(it.setup.to_json()), "state": "RUNNING"}
    )
    for seat, bot in enumerate(it.setup.bots):
        await store.attendances.write_attendance(bot, Attendance("lobby", "one", 1, ()), 60_000)
        assert (await reserve_seat(store, bot, it.setup.match, seat)).holds
    return (
        it,
        [encode_entry(entry) for entry in it.journal],
        (await store.journal.claim_match(it.setup.match, "a", 0))[0],
    )


async def check_all_is_done(store: Store, it: Desk, count: int = 1) -> None:
    results = await store.results.read_results(LADDER)
    assert [each.match for each in results] == [it.setup.match] * count
    assert await store.sets.is_over("sets/final")
    for bot in it.setup.bots:
        assert await store.seats.held_seats(bot) == []


def of_record(record: bytes) -> tuple[Sequence[Any], ...]:
    body = json.loads(record)
    return body["outcome"]["points"], body["result"]["ranks"], body["endings"], body["chain"]


async def test_the_result_in_the_log_is_that_of_the_record(store: Store) -> None:
    it, journal, epoch = await finished(store)
    assert await Delivery(store, 60).deliver_match(it.setup, epoch, "a", end_of(it.setup, journal))
    [result] = await store.results.read_results(LADDER)
    record = await store.matches.get_record(it.setup.match)
    assert record
    told = (list(result.points), list(result.ranks), list(result.endings), result.chain)
    assert told == of_record(record)
    assert (result.bots, result.deal) == (it.setup.bots, "sets/final")


async def test_the_end_is_announced_when_anyone_can_read_the_record(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    it, journal, epoch = await finished(store)
    announced: list[int] = []
    retire_match = type(store.journal).retire_match

    async def observed(*args: Any) -> AppendResult:
        assert not announced, "the record is not stored yet"
        return await retire_match(*args)

    monkeypatch.setattr(type(store.journal), "retire_match", observed)
    delivery, end = Delivery(store, 60), end_of(it.setup, journal)
    assert not await delivery.deliver_match(it.setup, epoch, "b", end, lambda: announced.append(1))
    assert not announced, "the match belongs to another owner, who announces its end"
    assert await delivery.deliver_match(it.setup, epoch, "a", end, lambda: announced.append(1))
    assert announced


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
async def test_a_delivery_that_stops_is_repeated_and_counts_once(store: Store, step: str, when: str) -> None:
    it, journal, epoch = await finished(store)
    end = end_of(it.setup, journal)
    with pytest.raises(StoreUnavailable):
        await Delivery(dying(store, step, when), 60).deliver_match(it.setup, epoch, "a", end)
    assert await Delivery(store, 60).deliver_match(it.setup, epoch, "a", end)
    await check_all_is_done(store, it)


@pytest.mark.parametrize("step", STEPS)
async def test_bots_are_free_only_after_their_result_is_in_the_log(store: Store, step: str) -> None:
    it, journal, epoch = await finished(store)
    with pytest.raises(StoreUnavailable):
        await Delivery(dying(store, step, "before"), 60).deliver_match(
            it.setup, epoch, "a", end_of(it.setup, journal)
        )
    for bot in it.setup.bots:
        assert await store.seats.held_seats(bot), step


async def test_a_redis_that_has_lost_all_scripts_misses_no_step_of_a_delivery(
    store: Store, redis_client: Redis
) -> None:
    it, journal, epoch = await finished(store)
    await redis_client.script_flush()
    assert await Delivery(store, 60).deliver_match(it.setup, epoch, "a", end_of(it.setup, journal))
    await check_all_is_done(store, it)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
async def test_an_heir_finishes_the_delivery_of_a_dead_owner(
    store: Store, flusher: Flusher, redis_client: Redis, step: str, when: str
) -> None:
    it, journal, epoch = await finished(store)
    await store.jobs.push_job(it.setup.match)
    [job] = await store.jobs.take_jobs("a", 1, 100)
    with pytest.raises(StoreUnavailable):
        await Delivery(dying(store, step, when), 60).deliver_match(
            it.setup, epoch, "a", end_of(it.setup, journal)
        )
    heir = MatchClaims("b", store, flusher, Delivery(store, 60))
    fence = await store.journal.read_fence(it.setup.match)
    assert await heir.claim_match(UnownedMatch(Job(job.job_id, job.match), "a", fence)) is None
    await check_all_is_done(store, it)
    assert await redis_client.zscore(keys.MATCH_EXPIRY, job.match), "it leaves the list when its record goes"
    assert await store.jobs.count_unfinished() == 0


async def test_two_owners_that_both_deliver_count_once(store: Store) -> None:
    it, journal, epoch = await finished(store)
    end = end_of(it.setup, journal)
    delivery = Delivery(store, 60)
    assert await delivery.deliver_match(it.setup, epoch, "a", end)
    assert await delivery.deliver_match(it.setup, epoch, "a", end)
    assert not await delivery.deliver_match(it.setup, epoch, "b", end)
    await check_all_is_done(store, it)


async def test_a_void_match_never_counts(store: Store) -> None:
    it, journal, epoch = await finished(store, is_void=True)
    end = end_of(it.setup, journal)
    assert (end.state, end.message.void_reason) == ("VOIDED", "ABANDONED")
    assert await Delivery(store, 60).deliver_match(it.setup, epoch, "a", end)
    await check_all_is_done(store, it, count=0)


def unseated_desk(competition: str = LADDER, seats: int = 2) -> Desk:
    """A match that is void because the first of its bots did not sit down."""
    it = desk(1, size=1, seats=seats)
    it.setup = replace(it.setup, competition=competition)
    it.match.setup = it.setup
    for seat in range(1, seats):
        it.sit(seat)
    it.now = it.setup.time_control.setup_ms
    it.tick()
    return it


async def unseated(store: Store, competition: str = LADDER, seats: int = 2) -> tuple[Desk, MatchEnd, int]:
    """Such a match, whose first bot attends and was offered its seat; and its end and its epoch."""
    it = unseated_desk(competition, seats)
    bot = it.setup.bots[0]
    await store.attendances.write_attendance(bot, Attendance("lobby", "one", 1, (LADDER,)), 60_000)
    await store.seats.reserve_all(it.setup.match, [(bot, 0)])
    await put_offer(store, bot, it.setup.match, 0, 1, b"offer")
    end = end_of(it.setup, [encode_entry(entry) for entry in it.journal])
    assert end.message.void_reason == "TOO_FEW_SAT"
    return it, end, (await store.journal.claim_match(it.setup.match, "a", 0))[0]


async def lose_lobby(store: Store, bot: str) -> None:
    """The lobby of the bot was killed."""
    await store.client.call("UNLINK", keys.bot_attendance(bot))


async def leave(store: Store, bot: str) -> None:
    """The bot hangs up."""
    await store.attendances.remove_attendance(bot, "one", by_itself=True)


@pytest.mark.parametrize(
    ("is_told", "after", "is_noted"),
    [
        (True, None, True),
        (False, None, False),
        (True, leave, True),
        (False, leave, True),  # it was offered the seat a moment before
        (True, lose_lobby, False),
        (False, lose_lobby, False),
    ],
)
async def test_a_bot_that_was_not_told_of_its_seat_of_a_ladder_is_not_absent(
    store: Store, is_told: bool, after: Callable[[Store, str], Awaitable[None]] | None, is_noted: bool
) -> None:
    it, end, epoch = await unseated(store)
    bot = it.setup.bots[0]
    if is_told:
        assert await store.no_shows.note_told(bot, [SeatOf(it.setup.match, 0)]) == 1
    if after:
        await after(store, bot)
    assert await Delivery(store, 60).deliver_match(it.setup, epoch, "a", end)
    events = await store.ladders.read_events(LADDER)
    assert [event.absent for event in events] == ([(bot,)] if is_noted else [])
    assert await store.client.call("EXISTS", keys.bot_other_seats(bot)) == 0


async def test_a_bot_that_is_told_too_late_of_its_seat_of_a_ladder_is_not_absent(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    it, end, epoch = await unseated(store)
    monkeypatch.setattr(seats, "LATE_MS", -1)
    assert await store.no_shows.note_told(it.setup.bots[0], [SeatOf(it.setup.match, 0)]) == 0
    assert await Delivery(store, 60).deliver_match(it.setup, epoch, "a", end)
    assert await store.ladders.read_events(LADDER) == []


async def test_a_referee_that_died_in_the_set_up_excuses_the_absent(store: Store) -> None:
    it, end, epoch = await unseated(store)
    await store.no_shows.note_told(it.setup.bots[0], [SeatOf(it.setup.match, 0)])
    excused = replace(end, absence=MissedSeats(end.absence.seats, is_excused=True))
    assert await Delivery(store, 60).deliver_match(it.setup, epoch, "a", excused)
    assert await store.ladders.read_events(LADDER) == []


async def test_a_bot_that_never_sat_in_a_void_match_is_noted_once(store: Store) -> None:
    it = unseated_desk()
    journal = [encode_entry(entry) for entry in it.journal]
    end = end_of(it.setup, journal)
    assert end.message.void_reason == "TOO_FEW_SAT"
    epoch, _ = await store.journal.claim_match(it.setup.match, "a", 0)
    for _ in range(2):
        assert await Delivery(store, 60).deliver_match(it.setup, epoch, "a", end)
    [event] = await store.ladders.read_events(LADDER)
    assert (event.absent, event.match, event.at) == ((it.setup.bots[0],), it.setup.match, 0)
    assert await store.results.count_results(LADDER) == 0


Happening = Callable[[Store, str], Awaitable[None]]


def fills(limit: PlaceLimit) -> Happening:
    """Others fill a limit of the bot's address."""

    async def happen(store: Store, _: str) -> None:
        places = Places(replace(limit, most_of_address=1))
        watch = FaultWatch(store, lambda: False, lambda: False)
        places.take_place("192.0.2.1")
        assert places.find_refusal("192.0.2.1")
        await look_once(watch)

    return happen


def floods(*, fills_descriptors: bool) -> Happening:
    """Others use all descriptors up, or keep the process from its work."""

    async def happen(store: Store, _: str) -> None:
        await look_once(FaultWatch(store, lambda: fills_descriptors, lambda: True))

    return happen


async def look_once(watch: FaultWatch) -> None:
    """Looks for faults of a process that has run for a while."""
    watch._fault = ""
    with suppress(TimeoutError):
        async with asyncio.timeout(0.2):
            await watch.watch_faults()


@pytest.mark.parametrize("seats", [2, 3, 4])
@pytest.mark.parametrize(
    ("is_told", "after", "excuse"),
    [
        (True, None, ""),
        (True, leave, ""),
        (True, fills(HTTP_STREAMS), ""),  # those of watchers
        (False, None, "NOT_TOLD"),
        (True, lose_lobby, "NOT_TOLD"),
        (True, fills(SOCKETS), "LIMIT"),
        (True, fills(HTTP_CONNECTIONS), "LIMIT"),
        (True, fills(HTTP_REQUESTS), "LIMIT"),
        (True, fills(BOT_HTTP_STREAMS), "LIMIT"),
        (True, floods(fills_descriptors=True), "DESCRIPTORS"),
        (True, floods(fills_descriptors=False), "STALL"),
    ],
)
async def test_a_league_is_told_who_missed_a_match_and_what_excuses_that(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    is_told: bool,
    after: Happening | None,
    excuse: str,
    seats: int,
) -> None:
    monkeypatch.setattr("seatwise_server.play.no_shows.FAULT_BEAT_S", 0.01)
    it, end, epoch = await unseated(store, "leagues/cup", seats)
    bot = it.setup.bots[0]
    if is_told:
        assert await store.no_shows.note_told(bot, [SeatOf(it.setup.match, 0)]) == 1
    if after:
        await after(store, bot)
    assert await Delivery(store, 60).deliver_match(it.setup, epoch, "a", end)
    assert (list(end.message.absent_seats), end.message.absence_excuse) == ([0], excuse)
    found = await store.leagues.void_matches("leagues/cup")
    assert found == {it.setup.match: [] if excuse else [bot]}
    [absent] = map(tuple, found.values())
    twice = SoFar({}, ["m", "m.2"], {"m": absent, "m.2": absent})
    found_out = follow_attempts("m", twice)
    assert (found_out.absent, found_out.attempt) == (((), "m.3") if excuse else ((bot,), None))


async def test_a_referee_that_died_in_the_set_up_excuses_the_absent_of_a_league(store: Store) -> None:
    it, end, epoch = await unseated(store, "leagues/cup")
    excused = replace(end, absence=MissedSeats(end.absence.seats, is_excused=True))
    assert await Delivery(store, 60).deliver_match(it.setup, epoch, "a", excused)
    assert excused.message.absence_excuse == "TAKEOVER"


async def test_a_match_of_a_league_without_room_for_a_bot_is_held_against_nobody(store: Store) -> None:
    it, end, epoch = await unseated(store, "leagues/cup")
    end.message.void_reason = VoidReason.NO_ROOM
    assert await Delivery(store, 60).deliver_match(it.setup, epoch, "a", end)
    assert end.message.absence_excuse == "DESCRIPTORS"


async def test_an_organiser_who_gives_up_waiting_names_the_absent(store: Store) -> None:
    it = desk(1, size=1)
    it.setup = it.match.setup = replace(it.setup, competition="leagues/cup")
    it.do(it.match.void_match(VoidReason.ABORTED, it.now))
    await store.matches.create_match(it.setup.match, {"setup": canonical_json(it.setup.to_json())})
    await store.matches.ask_abort(it.setup.match, f"{ABSENT_BOTS}{it.setup.bots[1]}")
    epoch, _ = await store.journal.claim_match(it.setup.match, "a", 0)
    end = end_of(it.setup, [encode_entry(entry) for entry in it.journal])
    assert await Delivery(store, 60).deliver_match(it.setup, epoch, "a", end)
    assert list(end.message.absent_seats) == [1]
