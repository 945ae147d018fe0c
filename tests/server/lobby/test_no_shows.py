"""Bots that attend a queue and never sit down: what they cost the others, and what becomes of either."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from harness import SOON_S, Attending, Chair, House, Wire, house_in, refusal_of, until
from harness.ladder import Player
from harness.store_calls import put_offer
from harness.terminal import ctl
from matches.one_match import Desk

from seatwise.v1 import admin_service_pb2, admin_service_pb2_grpc, bot_service_pb2
from seatwise.v1 import lobby_service_pb2 as pb
from seatwise_referee.journal import canonical_json, encode_entry
from seatwise_server.lobby.seating import QUEUES
from seatwise_server.play.delivery import Delivery, end_of
from seatwise_server.play.no_shows import MissedSeats, find_missed_seats, note_no_shows
from seatwise_server.store import Attendance, QueueEntry, SeatOf, Store, keys, seats
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.matches import WAITED_SINCE

on_one_loop = pytest.mark.asyncio(loop_scope="session")

QUEUE = "casual-2"
SETUP_S = 0.3
PLENTY = 1000


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A match of two is one round, and nobody waits long for others to sit down."""
    for name in (QUEUE, "casual-3"):
        limits = {"setup_ms": int(SETUP_S * 1000)}
        queue = dataclasses.replace(QUEUES[name], options={"rounds": 1}, time_control=limits)
        monkeypatch.setitem(QUEUES, name, queue)


@asynccontextmanager
async def playing(house: House, count: int, places: int, queue: str = QUEUE) -> AsyncIterator[list[Player]]:
    """So many bots that sit down and play."""
    async with AsyncExitStack() as stack:
        found = [Player(await house.bot()) for _ in range(count)]
        for each in found:
            stack.push_async_callback(each.stop)
            await each.attend(queue, places)
        yield found


async def silent(house: House, count: int, queue: str = QUEUE) -> list[tuple[Wire, Attending]]:
    """So many bots that take all they get, and sit down nowhere."""
    wires = [await house.bot() for _ in range(count)]
    return [(wire, await wire.attend([queue], PLENTY)) for wire in wires]


async def until_told(attending: Attending) -> pb.TakenOff:
    """What the bot is told when it is off."""
    [told, *_] = await attending.until(lambda: attending.taken_off)
    assert isinstance(told, pb.TakenOff)
    return told


async def off_queues(house: House, wire: Wire, attending: Attending | None = None) -> Attending:
    """This bot has missed as many seats as it takes to be off; the attending is its own."""
    attending = attending or await wire.attend([QUEUE], PLENTY)
    async with playing(house, 1, 1):
        await until_told(attending)
    return attending


# What it costs the others


def spoiled(house: House, bad: Sequence[str]) -> list[dict[str, Any]]:
    """The void matches in which one of these sat not."""
    voided = house.logs.named("match_voided", reason="TOO_FEW_SAT")
    return [each for each in voided if set(bad) & set(each["bots"])]


def counted(house: House, bad: Sequence[str]) -> list[dict[str, Any]]:
    """Those of them that count; not those in which they met each other, or were told late by a machine that is busy."""
    excused = {each["match"] for each in house.logs.named("no_show", counts=False)}
    return [each for each in spoiled(house, bad) if each["match"] not in excused]


def lost_s(voided: Sequence[dict[str, Any]], bad: Sequence[str]) -> float:
    """Seconds for which places of others were held in them."""
    return sum(each["took_ms"] / 1000 * sum(bot not in bad for bot in each["bots"]) for each in voided)


@on_one_loop
@pytest.mark.parametrize(
    ("bad", "places"),
    [(1, 1), pytest.param(1, 4, marks=pytest.mark.slow), pytest.param(3, 2, marks=pytest.mark.slow)],
)
async def test_silent_bots_cost_eight_others_three_set_up_times_each(
    house: House, bad: int, places: int
) -> None:
    """Before there was a trial one silent bot spoiled 145 of 148 matches: 73 of 80 seconds in which others had a place."""
    bots = await silent(house, bad)
    names = [wire.bot for wire, _ in bots]
    async with playing(house, 8, places):
        if bad == 1:  # several are paired with each other, which costs nobody anything
            await until_told(bots[0][1])
        await asyncio.sleep(10 * SETUP_S)
        finished = len(house.logs.named("match_finished"))
    assert len(counted(house, names)) <= 3 * bad
    assert lost_s(counted(house, names), names) <= 3 * bad * (SETUP_S + 0.5)
    assert finished > len(spoiled(house, names))


@on_one_loop
@pytest.mark.slow
async def test_a_bot_that_sits_now_and_then_spoils_no_more_than_it_has_sat(house: House) -> None:
    """It sits down often enough to be trusted, then takes all it can get."""
    wire = await house.bot()
    attending = await wire.attend([QUEUE], PLENTY)
    stream, taken, sat = wire.play(), 0, 8
    async with asyncio.TaskGroup() as chairs, playing(house, 8, 4):
        while taken < sat:
            await attending.until(lambda: attending.offers[taken:])  # noqa: B023  # it waits here
            chair = chair_of(wire, attending.offers[taken])
            await chair.sit(stream)
            chairs.create_task(chair.play_out())
            taken += 1
        await until_told(attending)
        await asyncio.sleep(2 * SETUP_S)
    all_spoiled = spoiled(house, [wire.bot])
    came = {offer.match for offer in attending.offers[:sat]}  # too late to some, on a busy machine
    assert len(all_spoiled) >= 3
    assert sum(line["match"] not in came for line in all_spoiled) <= seats.MOST_UNTAKEN
    assert len(attending.offers) <= sat + seats.MOST_UNTAKEN


def chair_of(wire: Wire, offer: pb.SeatOffer) -> Chair:
    return Chair(wire, offer.match, offer.seat)


@on_one_loop
@pytest.mark.slow
async def test_a_bot_that_sits_down_at_the_last_moment_keeps_one_table_waiting_at_a_time(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seats, "SLOW_MS", int(SETUP_S * 300))
    wire = await house.bot()
    attending = await wire.attend([QUEUE], PLENTY)
    stream, untaken = wire.play(), list[int]()
    async with asyncio.TaskGroup() as chairs, playing(house, 4, 2):
        for count in range(5):
            await attending.until(lambda count=count: attending.offers[count:])
            untaken.append(len(attending.offers) - count)
            await asyncio.sleep(SETUP_S * 0.6)
            chair = chair_of(wire, attending.offers[count])
            await chair.sit(stream)
            chairs.create_task(chair.play_out())
    assert untaken == [1] * 5


@on_one_loop
async def test_at_a_table_that_is_dealt_without_it_a_no_show_counts_at_once(house: House) -> None:
    """Two sit down, and play on for a long time."""
    [(wire, attending)] = await silent(house, 1, "casual-3")
    others = [await house.bot() for _ in range(2)]
    waiting = [await other.attend(["casual-3"], 1) for other in others]
    for other, each in zip(others, waiting, strict=True):
        await chair_of(other, await each.offer()).sit()
    await attending.offer()
    await until(lambda: house.logs.named("no_show", bot=wire.bot, counts=True))
    assert not matches_of(house, wire, "match_finished")


@on_one_loop
async def test_bots_that_sit_down_are_given_all_the_matches_that_they_take(house: House) -> None:
    """And more and more at once, though none of the matches is over."""
    wires = [await house.bot() for _ in range(2)]
    async with AsyncExitStack() as stack:
        for wire in wires:
            stack.push_async_callback(_cancelled, asyncio.create_task(_sit_everywhere(wire, 5)))
        await until(lambda: len(matches_of(house, wires[0], "match_opened")) == 5)
    assert not matches_of(house, wires[0], "match_finished")


def matches_of(house: House, wire: Wire, event: str) -> list[dict[str, Any]]:
    """Those of this bot; what an earlier test has left at the server ends some time."""
    return [each for each in house.logs.named(event) if wire.bot in each["bots"]]


async def _sit_everywhere(wire: Wire, places: int) -> None:
    attending, stream = await wire.attend([QUEUE], places), wire.play()
    for count in range(places):
        await attending.until(lambda count=count: attending.offers[count:])
        await chair_of(wire, attending.offers[count]).sit(stream)
    await asyncio.Event().wait()


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


# What it is told, and how it comes back


@on_one_loop
async def test_it_is_told_why_and_until_when_as_is_everybody_who_asks(house: House) -> None:
    wire = await house.bot()
    attending = await wire.attend([QUEUE, "casual-3"], PLENTY)
    await off_queues(house, wire, attending)
    await attending.until(lambda: len(attending.taken_off) == 2)
    assert sorted(each.queue for each in attending.taken_off) == [QUEUE, "casual-3"]
    told = attending.taken_off[0]
    assert told.cause == pb.TakenOff.CAUSE_NO_SHOWS
    assert told.reason.startswith("it did not sit down in matches/")
    off = (await house.admin.bots.GetBot(bot_service_pb2.GetBotRequest(name=wire.bot))).bot.off_queues
    assert (off.reason, off.back_time) == (told.reason, told.back_time)
    left_s = off.back_time.seconds - time.time()
    assert seats.PAUSE_MS / 1000 - 30 < left_s <= seats.PAUSE_MS / 1000 + 1


@on_one_loop
async def test_a_new_stream_is_told_again_and_is_paired_no_more(house: House) -> None:
    wire = await house.bot()
    await (await off_queues(house, wire)).close()
    again = await wire.attend([QUEUE], 4)
    assert (await until_told(again)).queue == QUEUE
    async with playing(house, 2, 1):
        before = len(house.logs.named("match_finished"))
        async with asyncio.timeout(SOON_S):
            while len(house.logs.named("match_finished")) < before + 5:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    assert not again.offers


@on_one_loop
async def test_it_is_paired_again_when_the_time_is_over(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seats, "PAUSE_MS", 300)
    monkeypatch.setattr("seatwise_server.lobby.lobby.LOBBY_HEARTBEAT_S", 0.1)
    wire = await house.bot()
    attending = await off_queues(house, wire)
    count = len(attending.offers)
    async with playing(house, 1, 1):
        await attending.until(lambda: len(attending.offers) > count)


@on_one_loop
async def test_it_plays_matches_that_name_it_all_the_same(house: House) -> None:
    wire, other = [await house.bot() for _ in range(2)]
    attending = await off_queues(house, wire)
    await other.attend()
    match = await house.admin.create([wire.bot, other.bot])
    await attending.offer(match.name)


@on_one_loop
async def test_an_operator_lets_it_back_and_nobody_else(house: House) -> None:
    wire = await house.bot()
    attending = await off_queues(house, wire)
    request = admin_service_pb2.ForgiveNoShowsRequest(bot=wire.bot)
    call = admin_service_pb2_grpc.AdminServiceStub(wire.channel).ForgiveNoShows(
        request, metadata=wire.metadata
    )
    assert (await refusal_of(call)).reason == "NOT_ALLOWED"
    code, said, _ = await ctl(house, "forgive", wire.bot)
    assert (code, said) == (0, f"{wire.bot} is back on the queues\n")
    count = len(attending.offers)
    async with playing(house, 1, 1):
        await attending.until(lambda: len(attending.offers) > count)
    code, _, complained = await ctl(house, "forgive", "bots/nobody/versions/1")
    assert (code, "NOT_FOUND" in complained) == (1, True)


# Its partners


@on_one_loop
async def test_partners_are_seated_again_before_those_who_came_after_them(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """There is one table, and the others came while the void match had it."""
    async with house_in(tmp_path_factory.mktemp("house"), most_tables=1) as house:
        [(_, first)] = await silent(house, 1)
        partner = await house.bot()
        waiting = await partner.attend([QUEUE], 1)
        void = await waiting.offer()
        await chair_of(partner, void).sit()
        await first.say(0)  # before the others come, for on a slow machine the match is void by then
        await first.welcome(2)
        others = [await house.bot() for _ in range(3)]
        for other in others:
            await other.attend([QUEUE], 1)
        again = await waiting.until(lambda: waiting.offers[1:])
        assert set(again[0].bots) == {partner.bot, others[0].bot}


def voided_desk(waited: bool = True) -> tuple[Desk, dict[str, Any]]:
    """A match of a queue in which the second seat was not taken, and what is written of it."""
    it = Desk(2)
    it.sit(0)
    it.now = it.setup.time_control.setup_ms
    it.do(it.match.tick(it.now))
    meta = {"setup": canonical_json(it.setup.to_json()), "state": "SEATING", "queue": QUEUE}
    if waited:
        meta[WAITED_SINCE] = canonical_json({bot: 5 + seat for seat, bot in enumerate(it.setup.bots)})
    return it, meta


async def seated(store: Store, it: Desk, meta: dict[str, Any]) -> int:
    """The match is a referee's, and its bots know of their seats; the epoch."""
    await store.matches.create_match(it.setup.match, meta)
    for seat, bot in enumerate(it.setup.bots):
        await store.attendances.write_attendance(bot, Attendance("lobby", bot, 1, (QUEUE,)), 60_000)
        await store.seats.reserve_all(it.setup.match, [(bot, seat)], queued=it.setup.bots)
        await put_offer(store, bot, it.setup.match, seat, 1, b"offer")
        await store.no_shows.note_told(bot, [SeatOf(it.setup.match, seat)])
    return (await store.journal.claim_match(it.setup.match, "a", 0))[0]


async def missed(store: Store, bot: str) -> int:
    """How many matches are held against the bot."""
    held = await store.client.call("HGET", keys.bot_no_shows(bot), "matches")
    return len(held.split()) if held else 0


class Failing:
    """A part of the store of which one step fails, before it is done or after."""

    def __init__(self, part: Any, step: str, when: str) -> None:
        self._part, self._step, self._when = part, step, when

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        if name != self._step:
            return found

        async def fails(*args: Any, **named: Any) -> None:
            if self._when == "after":
                await found(*args, **named)
            raise StoreUnavailable("the server dies here")

        return fails


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("part", "step"),
    [
        ("no_shows", "note_no_shows"),
        ("journal", "retire_match"),
        ("deliveries", "conclude_match"),
        ("seats", "free_places"),
        ("queues", "return_all"),
    ],
)
async def test_an_owner_that_dies_while_it_notes_a_no_show_leaves_nothing_undone_and_nothing_twice(
    store: Store, part: str, step: str, when: str
) -> None:
    it, meta = voided_desk()
    epoch = await seated(store, it, meta)
    end = end_of(it.setup, [encode_entry(entry) for entry in it.journal])
    dying = copy.copy(store)
    setattr(dying, part, Failing(getattr(store, part), step, when))
    with pytest.raises(StoreUnavailable):
        await Delivery(dying, 60).deliver_match(it.setup, epoch, "a", end)
    fence = await store.journal.read_fence(it.setup.match)
    assert fence
    if fence.is_retired:
        await Delivery(store, 60).conclude_delivery(it.setup)
    else:
        assert await Delivery(store, 60).deliver_match(it.setup, epoch, "a", end)
    partner, absent = it.setup.bots
    assert [await missed(store, bot) for bot in it.setup.bots] == [0, 1]
    assert await store.queues.list_entries(QUEUE) == [QueueEntry(partner, 5)]
    assert await store.seats.held_seats(absent) == []


async def test_a_partner_that_has_gone_or_attends_for_something_else_is_not_put_back(store: Store) -> None:
    it, meta = voided_desk()
    epoch = await seated(store, it, meta)
    bot = it.setup.bots[0]
    await store.attendances.write_attendance(bot, Attendance("lobby", bot, 1, ("casual",)), 60_000)
    end = end_of(it.setup, [encode_entry(entry) for entry in it.journal])
    assert await Delivery(store, 60).deliver_match(it.setup, epoch, "a", end)
    assert await store.queues.list_entries(QUEUE) == []


# Whose fault it is


def kept(*sat: int, is_taken_over: bool = False, seats: int = 3) -> tuple[Desk, list[bytes]]:
    """The journal of a set-up in which these seats were taken; a referee may have died in it."""
    it = Desk(seats)
    it.sit(*sat[:1])
    if is_taken_over:
        it.do(it.match.take_over(2, it.now))
    it.sit(*sat[1:])
    it.now += it.setup.time_control.setup_ms
    it.do(it.match.tick(it.now))
    return it, [encode_entry(entry) for entry in it.journal]


def test_a_bot_that_did_not_sit_down_is_in_the_journal() -> None:
    assert find_missed_seats(*_read(kept(0, 1, 2))) == MissedSeats((), is_excused=False)
    assert find_missed_seats(*_read(kept(0, 2))) == MissedSeats((1,), is_excused=False)
    assert find_missed_seats(*_read(kept(2))) == MissedSeats((0, 1), is_excused=False)
    assert find_missed_seats(*_read(kept(0, 2, is_taken_over=True))) == MissedSeats((1,), is_excused=True)


def _read(scene: tuple[Desk, list[bytes]]) -> tuple[Any, list[bytes]]:
    it, journal = scene
    return it.setup, journal


def test_a_referee_that_dies_after_the_deal_excuses_nobody() -> None:
    it, _ = kept(0, 1)
    it.do(it.match.take_over(2, it.now))
    assert find_missed_seats(it.setup, [encode_entry(entry) for entry in it.journal]) == MissedSeats(
        (2,), is_excused=False
    )


@pytest.mark.parametrize(
    ("queued", "absent", "is_excused", "fault", "counts"),
    [
        ((0, 1), (1,), False, "RESTART", 1),
        ((0, 1), (1,), False, "DESCRIPTORS", 0),
        ((0, 1), (1,), True, "", 0),
        ((0, 1), (0, 1), False, "", 0),
        ((1,), (1,), False, "", 0),
        ((), (1,), False, "", 0),
    ],
    ids=[
        "a partner waits",
        "no room",
        "a referee died",
        "nobody could sit",
        "only the house waits",
        "no queue",
    ],
)
async def test_a_no_show_counts_where_it_kept_another_bot_of_the_queue_waiting_through_no_fault_of_ours(
    store: Store, queued: Sequence[int], absent: tuple[int, ...], is_excused: bool, fault: str, counts: int
) -> None:
    it, meta = voided_desk(waited=False)
    if queued:
        meta[WAITED_SINCE] = canonical_json({it.setup.bots[seat]: 5 for seat in queued})
    await seated(store, it, meta)
    await store.no_shows.note_fault(fault)
    await note_no_shows(store, it.setup, MissedSeats(absent, is_excused))
    assert sum([await missed(store, bot) for bot in it.setup.bots]) == counts


@on_one_loop
async def test_an_offer_that_no_stream_was_given_is_nobodys_no_show(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lobby writes nothing to the bot; all others are well."""
    wire = await house.bot()
    attending = await wire.attend([QUEUE], PLENTY)
    assert house.server
    present = house.server.lobby
    assert present
    monkeypatch.setattr(present._present[wire.bot], "queue_offer", lambda _: None)
    async with playing(house, 2, 1):
        async with asyncio.timeout(SOON_S):
            while len(spoiled(house, [wire.bot])) < 4:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    assert not attending.taken_off
    assert not house.logs.named("no_show", bot=wire.bot, counts=True)


@on_one_loop
async def test_a_bot_that_does_not_read_is_told_all_the_same(house: House) -> None:
    """What it has not read stands before its offers, and would stand there for ever."""
    wire = await house.bot()
    attending = wire.attending()
    attending._reader.cancel()
    await attending.say(PLENTY, [QUEUE])
    async with playing(house, 2, 1):
        async with asyncio.timeout(2 * SOON_S):
            while not house.logs.named("bot_taken_off_queues", bot=wire.bot):
                await attending._call.write(pb.AttendRequest(max_matches=PLENTY))
                await asyncio.sleep(0)
    assert len(spoiled(house, [wire.bot])) <= 4


async def until_seats(store: Store, bot: str, count: int) -> None:
    """As soon as the bot holds so many; nothing but Redis knows before it is offered one."""
    while len(await store.seats.held_seats(bot)) != count:  # noqa: ASYNC110
        await asyncio.sleep(0)


@on_one_loop
async def test_a_bot_that_goes_as_soon_as_it_is_paired_is_held_to_its_seat(house: House) -> None:
    wire = await house.bot()
    assert house.server
    store = house.server.store
    async with playing(house, 2, 1):
        async with asyncio.timeout(2 * SOON_S):
            while not await store.no_shows.read_off_queues(wire.bot):
                attending = await wire.attend([QUEUE], PLENTY)
                await until_seats(store, wire.bot, 1)
                await attending.close()
                await until_seats(store, wire.bot, 0)
    assert len(spoiled(house, [wire.bot])) <= 4
