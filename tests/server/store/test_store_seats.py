"""Who is present, which seats are held, and what is offered."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections import Counter
from typing import Any

import pytest
from harness.store_calls import get_attendance, put_offer, reserve_seat
from redis.asyncio import Redis

from seatwise_server.store import Attendance, Reservation, SeatOf, SeatOffer, Store, keys
from seatwise_server.store.redis import scripts
from seatwise_server.store.seats import KEYS_OF_SCRIPTS, LobbyNotice, lobby_notices

BOT = "bots/greedy/versions/1"
LEASE_MS = 60_000


def attendance(attend_id: str = "first", most: int = 4, lobby: str = "lobby") -> Attendance:
    return Attendance(lobby, attend_id, most, ("casual", "ladders/main"))


async def attend(store: Store, most: int = 4) -> None:
    await store.attendances.write_attendance(BOT, attendance(most=most), LEASE_MS)


async def test_a_bot_is_present_until_it_leaves(store: Store) -> None:
    assert await get_attendance(store, BOT) is None
    await attend(store)
    assert await get_attendance(store, BOT) == attendance()
    assert await store.attendances.present_bots([BOT, "bots/x/versions/1"]) == {BOT}
    assert await store.attendances.remove_attendance(BOT, "first")
    assert not await store.attendances.remove_attendance(BOT, "first")
    assert await get_attendance(store, BOT) is None
    assert await store.attendances.present_bots([]) == set()


async def test_a_presence_ends_with_its_lease(store: Store) -> None:
    await store.attendances.write_attendance(BOT, attendance(), 30)
    assert await store.attendances.renew_attendance(BOT, attendance(), 60)
    await asyncio.sleep(0.1)
    assert await get_attendance(store, BOT) is None


async def test_a_newer_attendance_replaces_the_older(store: Store, redis_client: Redis) -> None:
    async with redis_client.pubsub(ignore_subscribe_messages=True) as notices:
        await notices.subscribe(keys.ATTENDS_CHANNEL)
        await notices.get_message(timeout=1)
        assert await store.attendances.write_attendance(BOT, attendance(lobby="here"), LEASE_MS)
        assert await store.attendances.write_attendance(BOT, attendance("second"), LEASE_MS)
        heard = [await notices.get_message(timeout=1) for _ in range(2)]
    assert [it["data"] for it in heard if it] == [f"{BOT} first".encode(), f"{BOT} second".encode()]
    assert not await store.attendances.renew_attendance(BOT, attendance(), LEASE_MS)
    assert not await store.attendances.remove_attendance(BOT, "first")
    assert await get_attendance(store, BOT) == attendance("second")


async def test_a_bot_changes_what_it_takes(store: Store) -> None:
    await attend(store)
    assert await store.attendances.write_attendance(BOT, attendance(most=0), LEASE_MS)
    assert await get_attendance(store, BOT) == attendance(most=0)
    assert await reserve_seat(store, BOT, "matches/1", 0) is Reservation.FULL


async def test_seats_stay_within_the_limit_however_many_ask_at_once(store: Store) -> None:
    await attend(store, most=5)
    asked = (reserve_seat(store, BOT, f"matches/{number}", 0) for number in range(40))
    answers = Counter(await asyncio.gather(*asked))
    assert answers == {Reservation.RESERVED: 5, Reservation.FULL: 35}
    assert len(await store.seats.held_seats(BOT)) == 5


async def test_asking_twice_for_a_seat_counts_once(store: Store) -> None:
    await attend(store, most=2)
    answers = [
        await reserve_seat(store, BOT, match, 1)
        for match in ("matches/1", "matches/1", "matches/2", "matches/3")
    ]
    assert answers == [Reservation.RESERVED, Reservation.ALREADY, Reservation.RESERVED, Reservation.FULL]
    assert [it.holds for it in answers] == [True, True, True, False]
    assert await reserve_seat(store, BOT, "matches/1", 1) is Reservation.ALREADY  # also when full
    assert await store.seats.held_seats(BOT) == [SeatOf("matches/1", 1), SeatOf("matches/2", 1)]


async def test_releasing_twice_frees_once(store: Store) -> None:
    await attend(store, most=1)
    await reserve_seat(store, BOT, "matches/1", 0)
    for _ in range(2):
        await store.seats.release_all("matches/1", [BOT])
    assert await reserve_seat(store, BOT, "matches/2", 0) is Reservation.RESERVED
    assert await reserve_seat(store, BOT, "matches/3", 0) is Reservation.FULL


async def test_an_absent_bot_gets_no_seat_and_keeps_those_it_has(store: Store) -> None:
    assert await reserve_seat(store, BOT, "matches/1", 0) is Reservation.ABSENT
    await attend(store)
    await reserve_seat(store, BOT, "matches/1", 0)
    await store.attendances.remove_attendance(BOT, "first")
    assert await reserve_seat(store, BOT, "matches/1", 0) is Reservation.ALREADY
    assert await store.seats.held_seats(BOT) == [SeatOf("matches/1", 0)]


async def test_the_room_that_a_bot_has_is_for_what_it_attends_for(store: Store) -> None:
    bots = [BOT, "bots/absent/versions/1"]
    assert await store.seats.free_places(bots) == [0, 0]
    await attend(store, most=3)
    await reserve_seat(store, BOT, "matches/1", 0)
    for queue, free in (("", 2), ("ladders/main", 2), ("casual", 1)):  # a new bot is on trial in queues
        assert await store.seats.free_places(bots, queue) == [free, 0]
    for queue in ("casual-2", "cas"):
        assert await store.seats.free_places(bots, queue) == [0, 0]
    await attend(store, most=0)
    assert await store.seats.free_places(bots, "casual") == [0, 0]


async def test_offers_are_kept_published_and_never_outrun_by_older_ones(
    store: Store, redis_client: Redis
) -> None:
    await attend(store)
    await reserve_seat(store, BOT, "matches/1", 2)
    async with redis_client.pubsub(ignore_subscribe_messages=True) as notices:
        await notices.subscribe(keys.OFFERS_CHANNEL)
        await notices.get_message(timeout=1)
        epochs = [
            await put_offer(store, BOT, "matches/1", 2, epoch, b"offer %d" % epoch)
            for epoch in (9, 10, 9, 10)
        ]
        heard = await notices.get_message(timeout=1)
    assert epochs == [True, True, False, True]
    assert heard is not None
    assert heard["data"] == f"{BOT} matches/1/2".encode()
    assert await store.seats.open_offers(BOT) == [SeatOffer("matches/1", 2, 10, b"offer 10")]


async def test_an_offer_keeps_its_bytes(store: Store) -> None:
    await attend(store)
    await reserve_seat(store, BOT, "matches/1", 0)
    offer = bytes(range(256)) + b" 7 "
    await put_offer(store, BOT, "matches/1", 0, 1, offer)
    assert [it.offer for it in await store.seats.open_offers(BOT)] == [offer]


async def test_an_offer_goes_with_its_seat_and_does_not_come_back(store: Store) -> None:
    await attend(store)
    await reserve_seat(store, BOT, "matches/1", 0)
    await put_offer(store, BOT, "matches/1", 0, 1, b"offer")
    await store.seats.release_all("matches/1", [BOT])
    assert not await put_offer(store, BOT, "matches/1", 0, 2, b"late")
    assert await store.seats.open_offers(BOT) == []


async def test_lobbies_hear_whose_offers_change(store: Store, redis_client: Redis) -> None:
    await attend(store)
    await reserve_seat(store, BOT, "matches/1", 0)
    hearing = lobby_notices(store.client)
    first = asyncio.ensure_future(anext(hearing))
    while await redis_client.pubsub_numsub(keys.OFFERS_CHANNEL) == [(keys.OFFERS_CHANNEL.encode(), 0)]:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await put_offer(store, BOT, "matches/1", 0, 1, b"offer")
    await store.seats.release_all("matches/1", [BOT])
    assert [await first, await anext(hearing)] == [LobbyNotice(BOT, seat=SeatOf("matches/1", 0))] * 2
    await hearing.aclose()


async def test_all_seats_of_a_match_are_offered_and_freed_at_once(store: Store, redis_client: Redis) -> None:
    bots = [BOT, "bots/other/versions/1"]
    for seat, bot in enumerate(bots):
        await store.attendances.write_attendance(bot, attendance(), LEASE_MS)
        await reserve_seat(store, bot, "matches/1", seat)
    await redis_client.script_flush()  # as after a restart of Redis
    await store.seats.put_offers("matches/1", 1, [(bot, bot.encode()) for bot in bots])
    assert [await store.seats.open_offers(bot) for bot in bots] == [
        [SeatOffer("matches/1", seat, 1, bot.encode())] for seat, bot in enumerate(bots)
    ]
    await redis_client.script_flush()
    await store.seats.release_all("matches/1", bots)
    assert [await store.seats.held_seats(bot) for bot in bots] == [[], []]
    assert [await store.seats.open_offers(bot) for bot in bots] == [[], []]


async def test_an_attendance_that_was_replaced_is_not_kept(store: Store) -> None:
    older, newer = attendance(), dataclasses.replace(attendance(), attend_id="newer", lobby="lobby-2")
    assert await store.attendances.renew_attendance(BOT, older, LEASE_MS)
    assert await store.attendances.write_attendance(BOT, newer, LEASE_MS)
    assert not await store.attendances.renew_attendance(BOT, older, LEASE_MS)
    assert await get_attendance(store, BOT) == newer


async def test_a_late_write_of_an_older_stream_replaces_no_newer_one(store: Store) -> None:
    older, newer = [await store.attendances.number_stream(BOT, came_s) for came_s in (1.0, 2.0)]
    assert older < newer
    late = Attendance("elsewhere", "late", 1, (), older)
    await store.attendances.write_attendance(BOT, Attendance("here", "newer", 1, (), newer), LEASE_MS)
    assert not await store.attendances.write_attendance(BOT, late, LEASE_MS)
    assert not await store.attendances.renew_attendance(BOT, late, LEASE_MS)
    assert await store.attendances.renew_attendance(BOT, Attendance("here", "newer", 1, (), newer), LEASE_MS)


async def test_a_newer_stream_takes_its_place_back_from_an_older_one_that_came_after_its_lease(
    store: Store,
) -> None:
    """Until the older lobby knows that its stream was replaced, it goes on renewing."""
    turns = [await store.attendances.number_stream(BOT, came_s) for came_s in (1.0, 2.0)]
    older, newer = (Attendance(f"lobby-{turn}", f"stream-{turn}", 1, (), turn) for turn in turns)
    await store.attendances.write_attendance(BOT, newer, LEASE_MS)
    await store.client.call("UNLINK", keys.bot_attendance(BOT))  # as Redis does when the lease is over
    assert await store.attendances.renew_attendance(BOT, older, LEASE_MS)
    assert await store.attendances.renew_attendance(BOT, newer, LEASE_MS)
    assert not await store.attendances.renew_attendance(BOT, older, LEASE_MS)


async def test_a_stream_that_arrived_earlier_has_the_lower_number_though_it_is_numbered_later(
    store: Store,
) -> None:
    now = asyncio.get_running_loop().time()
    newer = await store.attendances.number_stream(BOT, now)
    older = await store.attendances.number_stream(BOT, now - 60)
    newest = await store.attendances.number_stream(BOT, now + 60)
    assert older < newer < newest


async def test_streams_have_rising_numbers_where_the_clock_was_set_back_and_beside_older_versions(
    store: Store,
) -> None:
    """Older versions count one up from the last number."""
    ahead = 5 * 10**15
    await store.client.call("HSET", keys.bot_registration(BOT), "streams", ahead)
    assert [await store.attendances.number_stream(BOT, came_s) for came_s in (9.0, 1.0)] == [
        ahead + 1,
        ahead + 2,
    ]
    assert await store.client.call("HINCRBY", keys.bot_registration(BOT), "streams", 1) == ahead + 3


async def test_a_number_that_was_long_in_coming_is_asked_for_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be as high as if the stream had arrived later."""
    ages_us: list[int] = []

    async def run_late(_client: Any, _name: str, _keys: list[str], age_us: int) -> bytes:
        ages_us.append(age_us)
        await asyncio.sleep(0.2)
        return b"%d" % len(ages_us)

    monkeypatch.setattr(scripts, "run_script", run_late)
    assert await store.attendances.number_stream(BOT, asyncio.get_running_loop().time()) == 2
    assert ages_us[1] - ages_us[0] >= 199_000


@pytest.mark.parametrize("script", sorted(KEYS_OF_SCRIPTS))
def test_the_keys_of_a_script_are_those_that_its_head_names(script: str) -> None:
    [named] = re.findall(r"KEYS: ([^.]*)\.", scripts.script_named(script).source.decode())
    names = {key: name for name, key in vars(keys).items() if name.startswith("bot_")}
    declared = [names[key].removeprefix("bot_").replace("_", " ") for key in KEYS_OF_SCRIPTS[script]]
    assert declared == named.replace("-", " ").split(", ")
