"""No-shows in queues, on a real Redis: what counts, what a bot may have then, and how it comes back."""

from __future__ import annotations

import asyncio
from secrets import token_hex

import pytest
from harness.store_calls import put_offer, reserve_seat
from redis.asyncio import Redis

from seatwise_server.store import (
    Attendance,
    NoShow,
    Reservation,
    SeatNews,
    SeatOf,
    Store,
    keys,
    now_ms,
    seats,
)
from seatwise_server.store import queues as attendances

BOT = "bots/greedy/versions/1"
QUEUE = "casual-2"
LEASE_MS = 60_000


@pytest.fixture
async def bot(store: Store) -> str:
    """Present, with places without number."""
    await store.attendances.write_attendance(BOT, Attendance("lobby", "one", 1000, (QUEUE,)), LEASE_MS)
    return BOT


async def reserve(store: Store, bot: str, number: int) -> Reservation:
    """A seat of the queue."""
    [answer] = await store.seats.reserve_all(f"matches/{number}", [(bot, 0)], queued={bot})
    return answer


async def offer(store: Store, bot: str, number: int) -> None:
    """A seat of the queue is offered, and the bot has it."""
    assert (await reserve(store, bot, number)).holds
    assert await put_offer(store, bot, f"matches/{number}", 0, 1, b"offer")


async def take(store: Store, bot: str, *numbers: int) -> None:
    """The bot is offered these seats, and sits down in them, and the matches end."""
    for number in numbers:
        await offer(store, bot, number)
        assert await store.no_shows.note_all_taken([(bot, SeatOf(f"matches/{number}", 0))]) == [True]
        await store.seats.release_all(f"matches/{number}", [bot])


async def test_one_match_a_day_is_void_because_a_bot_in_any_version_could_not_connect(store: Store) -> None:
    name = f"bots/{token_hex(4)}/versions"
    assert [await store.no_shows.take_excuse(f"{name}/{version}") for version in (1, 2)] == [True, False]
    assert 86_000 < await store.client.call("TTL", keys.bot_excuse(f"{name}/1")) <= 86_400


async def tell(store: Store, bot: str, number: int) -> int:
    return await store.no_shows.note_told(bot, [SeatOf(f"matches/{number}", 0)])


async def note(store: Store, bot: str, number: int, *, counts: bool = True) -> NoShow:
    """The set-up is over, and the bot did not sit down; then the match is over too."""
    match = f"matches/{number}"
    [noted] = await store.no_shows.note_no_shows(match, [(bot, 0)], counts=counts)
    await store.seats.release_all(match, [bot])
    return noted


async def miss(store: Store, bot: str, number: int) -> NoShow:
    """The bot is told of a seat and does not sit down."""
    await offer(store, bot, number)
    assert await tell(store, bot, number) == 1
    return await note(store, bot, number)


async def room(store: Store, bot: str) -> int:
    [free] = await store.seats.free_places([bot], QUEUE)
    return free


# What a bot may have


async def test_a_new_bot_may_have_one_untaken_seat_and_one_more_for_each_that_it_takes(
    store: Store, bot: str
) -> None:
    assert await room(store, bot) == 1
    await offer(store, bot, 1)
    assert await room(store, bot) == 0
    assert await reserve(store, bot, 2) is Reservation.BARRED
    assert await store.no_shows.note_all_taken([(bot, SeatOf("matches/1", 0))]) == [True]
    assert await room(store, bot) == 2
    assert await reserve(store, bot, 2) is Reservation.RESERVED
    assert await reserve(store, bot, 3) is Reservation.RESERVED
    assert await reserve(store, bot, 4) is Reservation.BARRED


async def test_no_bot_may_have_more_than_some_untaken_seats(store: Store, bot: str) -> None:
    await take(store, bot, *range(seats.MOST_UNTAKEN + 5))
    assert await room(store, bot) == seats.MOST_UNTAKEN


@pytest.mark.parametrize("state", ["told", "late", "offered", "left"])
async def test_a_bot_that_keeps_others_waiting_may_have_one_seat_again_unless_it_was_told_late(
    store: Store, bot: str, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    await take(store, bot, 1, 2)
    assert await room(store, bot) == 3
    monkeypatch.setattr(seats, "SLOW_MS", 5)
    await offer(store, bot, 3)
    if state == "late":
        monkeypatch.setattr(seats, "LATE_MS", -1)
    if state != "offered":
        await tell(store, bot, 3)
    if state == "left":
        await store.attendances.remove_attendance(bot, "one", by_itself=True)
        await store.attendances.write_attendance(bot, Attendance("lobby", "two", 1000, (QUEUE,)), LEASE_MS)
    await asyncio.sleep(0.02)
    assert await store.no_shows.note_all_taken([(bot, SeatOf("matches/3", 0))]) == [True]
    assert await room(store, bot) == (3 if state in ("late", "offered") else 1)


async def test_a_seat_that_is_noted_twice_counts_once(store: Store, bot: str) -> None:
    await offer(store, bot, 1)
    answers = [await store.no_shows.note_all_taken([(bot, SeatOf("matches/1", 0))]) for _ in range(2)]
    assert answers == [[True], [False]]
    assert await room(store, bot) == 2


async def test_the_end_of_a_match_frees_what_nobody_noted(store: Store, bot: str) -> None:
    await offer(store, bot, 1)
    await store.seats.release_all("matches/1", [bot])
    assert await room(store, bot) == 1
    assert await store.client.call("EXISTS", keys.bot_untaken(bot)) == 0


async def test_ladders_and_matches_by_name_ask_for_no_trial(store: Store) -> None:
    await store.attendances.write_attendance(
        BOT, Attendance("lobby", "one", 9, (QUEUE, "ladders/main")), LEASE_MS
    )
    await offer(store, BOT, 1)
    [in_queue, in_ladder] = await store.seats.room_in(BOT, [QUEUE, "ladders/main"])
    assert (in_queue.free, in_queue.is_off, in_ladder.free) == (0, False, 8)
    assert await reserve_seat(store, BOT, "matches/2", 0) is Reservation.RESERVED
    assert await store.no_shows.note_all_taken([(BOT, SeatOf("matches/2", 0))]) == [False]
    assert [await note(store, BOT, 2)] == [NoShow.NONE]


async def test_lobbies_hear_of_a_seat_that_is_taken_where_it_lets_the_bot_have_another(
    store: Store, bot: str, redis_client: Redis
) -> None:
    async with redis_client.pubsub(ignore_subscribe_messages=True) as notices:
        await notices.subscribe(keys.OFFERS_CHANNEL)
        await notices.get_message(timeout=1)
        await offer(store, bot, 1)
        assert await store.no_shows.note_all_taken([(bot, SeatOf("matches/1", 0))]) == [
            True
        ]  # it had no place left
        await offer(store, bot, 2)
        assert await store.no_shows.note_all_taken([(bot, SeatOf("matches/2", 0))]) == [
            True
        ]  # it had one left
        await offer(store, bot, 3)
        assert await note(store, bot, 3) is NoShow.EXCUSED
        heard = [await notices.get_message(timeout=0.2) for _ in range(7)]
    seats = [each["data"].decode().removeprefix(f"{bot} matches/") for each in heard if each]
    assert seats == [
        "1/0",
        "1/0",
        "2/0",
        "3/0",
        "3/0",
        "3/0",
    ]  # each offer, one seat taken, a no-show, a release


# What counts


async def test_a_no_show_puts_a_bot_on_trial_and_the_third_takes_it_off(store: Store, bot: str) -> None:
    await take(store, bot, 1, 2, 3)
    assert await room(store, bot) == 4
    assert await miss(store, bot, 4) is NoShow.COUNTED
    assert await room(store, bot) == 1
    assert await miss(store, bot, 5) is NoShow.COUNTED
    assert await store.no_shows.read_off_queues(bot) is None
    assert await miss(store, bot, 6) is NoShow.OFF
    off = await store.no_shows.read_off_queues(bot)
    assert off
    assert off.matches == ("matches/4", "matches/5", "matches/6")
    assert off.reason.startswith(
        "it did not sit down in matches/4, matches/5, matches/6; it is paired again from 20"
    )
    assert await room(store, bot) == 0
    assert await reserve(store, bot, 7) is Reservation.BARRED
    assert await reserve_seat(store, bot, "matches/8", 0) is Reservation.RESERVED  # by name


async def test_a_new_stream_of_the_bot_changes_nothing(store: Store, bot: str) -> None:
    for number in (1, 2):
        await miss(store, bot, number)
    await store.attendances.remove_attendance(bot, "one")
    await store.attendances.write_attendance(bot, Attendance("lobby", "two", 1000, (QUEUE,)), LEASE_MS)
    assert await miss(store, bot, 3) is NoShow.OFF


async def test_a_no_show_that_is_noted_twice_counts_once(store: Store, bot: str) -> None:
    for number in (1, 2):
        await offer(store, bot, number)
        await tell(store, bot, number)
        seat = (f"matches/{number}", [(bot, 0)])
        noted = [await store.no_shows.note_no_shows(*seat, counts=True) for _ in range(3)]
        assert noted == [[NoShow.COUNTED], [NoShow.NONE], [NoShow.NONE]]
    assert await store.no_shows.read_off_queues(bot) is None


async def test_many_at_once_count_as_many_and_the_pause_is_one(store: Store, bot: str) -> None:
    await take(store, bot, *range(5))
    for number in range(10, 14):
        await offer(store, bot, number)
        await tell(store, bot, number)
    noted = [await note(store, bot, number) for number in range(10, 14)]
    assert noted == [NoShow.COUNTED] * 2 + [NoShow.OFF] * 2
    assert await store.client.call("HGET", keys.bot_no_shows(bot), "pauses") == b"1"
    off = await store.no_shows.read_off_queues(bot)
    assert off
    assert off.matches == ("matches/10", "matches/11", "matches/12")


async def test_a_bot_that_was_not_told_of_its_seat_is_excused(store: Store, bot: str) -> None:
    await take(store, bot, 1)
    for number in range(2, 8):
        await offer(store, bot, number)
        assert await note(store, bot, number) is NoShow.EXCUSED
    assert await store.no_shows.read_off_queues(bot) is None
    assert await room(store, bot) == 2


async def test_a_bot_that_was_told_late_is_excused(
    store: Store, bot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seats, "LATE_MS", 5)
    await offer(store, bot, 1)
    await asyncio.sleep(0.02)
    assert await tell(store, bot, 1) == 0
    assert await note(store, bot, 1) is NoShow.EXCUSED


async def test_a_seat_that_is_not_offered_yet_cannot_be_told(store: Store, bot: str) -> None:
    await reserve(store, bot, 1)
    assert await tell(store, bot, 1) == 0
    await put_offer(store, bot, "matches/1", 0, 1, b"offer")
    assert await tell(store, bot, 1) == 1


async def test_a_second_offer_of_a_seat_does_not_make_the_first_a_late_one(
    store: Store, bot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seats, "LATE_MS", 5)
    await offer(store, bot, 1)
    await asyncio.sleep(0.02)
    await put_offer(store, bot, "matches/1", 0, 2, b"offer")
    assert await tell(store, bot, 1) == 0


async def test_an_absence_that_the_caller_excuses_does_not_count(store: Store, bot: str) -> None:
    for number in range(5):
        await offer(store, bot, number)
        await tell(store, bot, number)
        assert await note(store, bot, number, counts=False) is NoShow.EXCUSED
    assert await store.no_shows.read_off_queues(bot) is None


@pytest.mark.parametrize(
    ("by_itself", "noted"), [(True, NoShow.COUNTED), (False, NoShow.EXCUSED)], ids=["by itself", "our doing"]
)
@pytest.mark.parametrize("is_offered", [True, False])
async def test_a_bot_that_leaves_with_a_seat_in_its_hand_is_held_to_it(
    store: Store, bot: str, by_itself: bool, noted: NoShow, is_offered: bool
) -> None:
    await reserve(store, bot, 1)
    if is_offered:
        await put_offer(store, bot, "matches/1", 0, 1, b"offer")
    assert await store.attendances.remove_attendance(bot, "one", by_itself=by_itself)
    await put_offer(store, bot, "matches/1", 0, 1, b"offer")
    news = await store.no_shows.seat_news("matches/1", [(bot, 0), ("bots/x/versions/1", 1)])
    assert news == [SeatNews.LEFT if by_itself else SeatNews.UNTOLD, None]
    assert await note(store, bot, 1) is noted


async def test_a_bot_whose_stream_breaks_long_after_an_offer_that_nobody_told_it_is_excused(
    store: Store, bot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attendances, "LATE_MS", 5)
    await offer(store, bot, 1)
    await asyncio.sleep(0.02)
    assert await store.attendances.remove_attendance(bot, "one", by_itself=True)
    assert await note(store, bot, 1) is NoShow.EXCUSED


async def test_a_seat_that_no_queue_gave_is_noted_and_takes_no_place_in_queues(
    store: Store, bot: str
) -> None:
    async def news() -> list[SeatNews | None]:
        return await store.no_shows.seat_news("matches/9", [(bot, 0)])

    await store.seats.reserve_all("matches/9", [(bot, 0)])
    await put_offer(store, bot, "matches/9", 0, 1, b"offer")
    assert await news() == [SeatNews.UNTOLD]
    assert await tell(store, bot, 9) == 1
    assert await news() == [SeatNews.TOLD]
    assert await reserve(store, bot, 1) is Reservation.RESERVED
    await store.attendances.remove_attendance(bot, "one", by_itself=True)
    assert await news() == [SeatNews.LEFT]
    assert await store.client.call("PTTL", keys.bot_other_seats(bot)) > 0
    await store.seats.release_all("matches/9", [bot])
    assert await news() == [None]


async def test_a_bot_that_was_told_and_leaves_by_itself_is_held_to_its_seat(store: Store, bot: str) -> None:
    await offer(store, bot, 1)
    await tell(store, bot, 1)
    assert await store.no_shows.seat_news("matches/1", [(bot, 0)]) == [SeatNews.TOLD]
    await store.attendances.remove_attendance(bot, "one", by_itself=True)
    assert await note(store, bot, 1) is NoShow.COUNTED


async def test_a_bot_that_was_told_and_whose_lobby_died_is_excused(store: Store, bot: str) -> None:
    await offer(store, bot, 1)
    await tell(store, bot, 1)
    await store.client.call("UNLINK", keys.bot_attendance(bot))  # its lease is over
    assert await note(store, bot, 1) is NoShow.EXCUSED


async def test_an_older_stream_that_ends_says_nothing_about_seats(store: Store, bot: str) -> None:
    await offer(store, bot, 1)
    assert not await store.attendances.remove_attendance(bot, "zero", by_itself=True)
    assert await note(store, bot, 1) is NoShow.EXCUSED


# How it comes back


@pytest.fixture
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first pause is 100 ms, the longest 300."""
    for name, value in (("REMEMBERED_MS", 60_000), ("PAUSE_MS", 100), ("DAY_MS", 10_000)):
        monkeypatch.setattr(seats, name, value)
    monkeypatch.setattr(seats, "LONGEST_PAUSE_MS", 300)


async def until_back(store: Store, bot: str) -> None:
    while await store.no_shows.read_off_queues(bot):  # noqa: ASYNC110  # it ends by Redis's clock
        await asyncio.sleep(0.005)


async def check_pause(store: Store, bot: str, match: int, wanted_ms: int) -> None:
    """One more no-show begins a pause that is so long; waits until it is over."""
    before = await now_ms(store.client)
    assert await miss(store, bot, match) is NoShow.OFF
    after = await now_ms(store.client)
    until = int(await store.client.call("HGET", keys.bot_no_shows(bot), "off_until_ms"))
    assert before + wanted_ms <= until <= after + wanted_ms
    await until_back(store, bot)


@pytest.mark.usefixtures("in_a_hurry")
async def test_each_pause_is_twice_as_long_and_no_longer_than_the_longest(store: Store, bot: str) -> None:
    for number in range(2):
        await miss(store, bot, number)
    for number, wanted_ms in enumerate(
        (100, 200, 300, 300), start=2
    ):  # later one is enough: nothing was forgiven
        await check_pause(store, bot, number, wanted_ms)
        assert await room(store, bot) == 1


@pytest.mark.usefixtures("in_a_hurry")
async def test_a_day_after_the_last_pause_they_begin_anew(
    store: Store, bot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        await miss(store, bot, number)
    await until_back(store, bot)
    monkeypatch.setattr(seats, "DAY_MS", 0)
    await asyncio.sleep(0.005)
    assert await miss(store, bot, 10) is NoShow.OFF
    assert await store.client.call("HGET", keys.bot_no_shows(bot), "pauses") == b"1"


async def test_time_forgives(store: Store, bot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seats, "REMEMBERED_MS", 200)
    for number in range(6):
        assert await miss(store, bot, number) is NoShow.COUNTED
        await asyncio.sleep(0.21)


async def test_seats_that_are_taken_forgive_a_no_show_of_ten(store: Store, bot: str) -> None:
    for number in range(2):
        assert await miss(store, bot, number) is NoShow.COUNTED
    await take(store, bot, *range(10, 20))
    assert await miss(store, bot, 30) is NoShow.COUNTED
    await take(store, bot, *range(40, 45))
    assert await miss(store, bot, 50) is NoShow.OFF


async def test_seats_that_were_taken_before_are_no_credit(store: Store, bot: str) -> None:
    await take(store, bot, *range(100))
    noted = [await miss(store, bot, number) for number in range(100, 103)]
    assert noted == [NoShow.COUNTED, NoShow.COUNTED, NoShow.OFF]


async def test_an_operator_forgives_all(store: Store, bot: str) -> None:
    for number in range(3):
        await miss(store, bot, number)
    assert await store.no_shows.forgive(bot)
    assert not await store.no_shows.forgive(bot)
    assert await store.no_shows.read_off_queues(bot) is None
    assert await room(store, bot) == 1
    assert await miss(store, bot, 9) is NoShow.COUNTED


async def test_the_notes_on_a_bot_that_comes_no_more_expire(store: Store, bot: str) -> None:
    await take(store, bot, 1)
    assert 0 < await store.client.call("PTTL", keys.bot_no_shows(bot)) <= seats.NO_SHOWS_KEPT_MS
    assert await store.client.call("EXISTS", keys.bot_untaken(bot)) == 0


# The way back into the queue


async def test_a_bot_that_is_put_back_stands_where_it_stood_and_never_further_behind(store: Store) -> None:
    first = [await store.queues.enter_queue(QUEUE, each) for each in ("a", "b")]
    await store.queues.propose_first(QUEUE, 2, 0, "matches/1")
    await asyncio.sleep(0.002)
    later = await store.queues.enter_queue(QUEUE, "c")
    again = await store.queues.enter_queue(QUEUE, "b")
    await store.queues.return_all(QUEUE, first)
    assert await store.queues.list_entries(QUEUE) == [*first, later]
    await store.queues.return_all(QUEUE, [again, later])
    assert await store.queues.list_entries(QUEUE) == [*first, later]
