"""What a lobby tells a bot, when the store's answers are late or come in another order than they were asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from types import SimpleNamespace
from typing import Any

import pytest
from harness.store_calls import get_attendance, put_offer, reserve_seat

from seatwise.v1 import lobby_service_pb2 as pb
from seatwise_server.lobby.attendance import AttendanceStream
from seatwise_server.lobby.lobby import Lobby
from seatwise_server.refusal import Refusal
from seatwise_server.store import Attendance as Presence
from seatwise_server.store import SeatNews, SeatOf, SeatOffer, Store, keys
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.streams import note_arrival_of_stream
from seatwise_server.timings import ATTENDANCE_LEASE_MS

STANDS = SeatOffer("matches/m", 0, 1, pb.SeatOffer(match="matches/m", epoch=1).SerializeToString())


class NoShows:
    """Takes all notes."""

    def __init__(self) -> None:
        self.told: list[SeatOf] = []

    async def note_told(self, _: str, seats: Collection[SeatOf]) -> int:
        self.told += seats
        return len(seats)


def lobby_with(seats: Any) -> Lobby:
    store: Any = SimpleNamespace(seats=seats, no_shows=NoShows())
    return Lobby("lobby", store, SimpleNamespace())  # type: ignore[arg-type]


class Seats:
    """Its first answer was true when it was asked for, and is late."""

    def __init__(self) -> None:
        self.asked = 0
        self.is_late = asyncio.Event()

    async def open_offers(self, _: str) -> list[SeatOffer]:
        self.asked += 1
        if self.asked == 1:
            await self.is_late.wait()
            return []
        return [STANDS]


async def test_an_answer_that_is_late_closes_no_seat() -> None:
    seats = Seats()
    lobby = lobby_with(seats)
    attendance = AttendanceStream("bots/b/versions/1", (), 1)
    first = asyncio.create_task(lobby._tell_open_seats(attendance))
    await asyncio.sleep(0)
    second = asyncio.create_task(lobby._tell_open_seats(attendance))
    await asyncio.sleep(0.01)
    seats.is_late.set()
    await asyncio.gather(first, second)
    assert attendance.told == {("matches/m", 0): 1}
    told = [attendance._unread.get_nowait() for _ in range(attendance._unread.qsize())]
    assert [each.WhichOneof("event") for each in told if each] == ["offer"]


class Counted:
    """Counts what is asked for."""

    def __init__(self, offers: list[SeatOffer]) -> None:
        self.offers = offers
        self.read = 0

    async def open_offers(self, _: str) -> list[SeatOffer]:
        self.read += len(self.offers)
        return self.offers

    async def offers_of(self, _: str, seats: Collection[SeatOf]) -> list[SeatOffer]:
        self.read += len(seats)
        return [offer for offer in self.offers if (offer.match, offer.seat) in seats]


async def test_of_a_thousand_seats_only_those_are_read_that_changed() -> None:
    stands = [
        SeatOffer(
            f"matches/m{number}", 0, 1, pb.SeatOffer(match=f"matches/m{number}", epoch=1).SerializeToString()
        )
        for number in range(1000)
    ]
    seats = Counted(stands)
    lobby = lobby_with(seats)
    attendance = AttendanceStream("bots/b/versions/1", (), 1000)
    await lobby._tell_open_seats(attendance)
    told = len(attendance.told)
    seats.offers, seats.read = (
        [
            *stands[1:],
            SeatOffer(
                "matches/new", 1, 1, pb.SeatOffer(match="matches/new", seat=1, epoch=1).SerializeToString()
            ),
        ],
        0,
    )
    await lobby._tell_open_seats(attendance, {SeatOf("matches/m0", 0), SeatOf("matches/new", 1)})
    assert (told, len(attendance.told), seats.read) == (1000, 1000, 2)
    assert {("matches/new", 1), ("matches/m0", 0)} & attendance.told.keys() == {("matches/new", 1)}


BOT = "bots/b/versions/1"
QUEUE = "casual-2"


class SlowAttend:
    """Holds the next attendance up on its way to the store."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_asked = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self._attend = store.attendances.number_stream
        monkeypatch.setattr(store.attendances, "number_stream", self)

    async def __call__(self, *args: Any) -> Any:
        self.is_asked.set()
        await self.may_go_on.wait()
        return await self._attend(*args)


async def attend_elsewhere(store: Store) -> None:
    """The bot's last stream was at a lobby that has gone since; its lease has some seconds left."""
    turn = await store.attendances.number_stream(BOT, asyncio.get_running_loop().time())
    await store.attendances.write_attendance(BOT, Presence("gone", "older", 1, (), turn), ATTENDANCE_LEASE_MS)


def told(attendance: AttendanceStream) -> list[str | None]:
    """The events that were told, and None where the stream was ended."""
    responses = [attendance._unread.get_nowait() for _ in range(attendance._unread.qsize())]
    return [each and each.WhichOneof("event") for each in responses]


@pytest.mark.parametrize("looks", ["_beat_once", "_update_changed_bots"])
async def test_a_bot_whose_attendance_is_not_written_yet_is_not_told_that_it_is_replaced(
    store: Store, monkeypatch: pytest.MonkeyPatch, looks: str
) -> None:
    await attend_elsewhere(store)
    slow = SlowAttend(store, monkeypatch)
    lobby = Lobby("lobby", store, SimpleNamespace(wake_pairing=lambda: None))  # type: ignore[arg-type]
    attendance = AttendanceStream(BOT, (), 1)
    present = lobby.attend_lobby(attendance)
    arriving = asyncio.create_task(present.__aenter__())
    await slow.is_asked.wait()
    lobby._changed[BOT], lobby._doubtful = set(), {BOT}  # heard of the bot's stream before this one
    await getattr(lobby, looks)()
    slow.may_go_on.set()
    await arriving
    assert told(attendance) == ["welcome"]
    found = await get_attendance(store, BOT)
    assert found
    assert found.attend_id == attendance.attend_id
    await present.__aexit__(None, None, None)


async def test_a_beat_keeps_what_is_written_and_ends_what_was_replaced(store: Store) -> None:
    lobby = Lobby("lobby", store, SimpleNamespace(wake_pairing=lambda: None))  # type: ignore[arg-type]
    attendance = AttendanceStream(BOT, (), 1)
    async with lobby.attend_lobby(attendance):
        await lobby._beat_once()
        assert told(attendance) == ["welcome"]
        await attend_elsewhere(store)
        await lobby._beat_once()
        assert told(attendance) == [None]


async def test_a_bot_that_drains_hears_of_seats_that_are_reserved_and_not_offered_yet(store: Store) -> None:
    lobby = Lobby("lobby", store, SimpleNamespace(wake_pairing=lambda: None))  # type: ignore[arg-type]
    attendance = AttendanceStream(BOT, (), 2)
    async with lobby.attend_lobby(attendance):
        await reserve_seat(store, BOT, "matches/m", 0)
        await lobby.set_limit(attendance, 0)
        assert pending_seats(attendance) == [0, 1]
        await lobby._beat_once()
        assert pending_seats(attendance) == []
        await put_offer(store, BOT, "matches/m", 0, 1, STANDS.offer)
        await lobby._beat_once()
        assert pending_seats(attendance) == [0]
        await lobby._beat_once()
        assert pending_seats(attendance) == []
        await store.seats.release_all("matches/m", [BOT])


async def test_a_bot_that_arrives_to_drain_hears_of_its_open_seats_first(store: Store) -> None:
    lobby = Lobby("lobby", store, SimpleNamespace(wake_pairing=lambda: None))  # type: ignore[arg-type]
    async with lobby.attend_lobby(AttendanceStream(BOT, (), 1)):
        await reserve_seat(store, BOT, "matches/m", 0)
        await put_offer(store, BOT, "matches/m", 0, 1, STANDS.offer)
    attendance = AttendanceStream(BOT, (), 0)
    async with lobby.attend_lobby(attendance):
        assert pending_seats(attendance) == [1, 0]
        await store.seats.release_all("matches/m", [BOT])


def pending_seats(attendance: AttendanceStream) -> list[int]:
    """The numbers of pending seats in the welcomes that were told."""
    responses = [attendance._unread.get_nowait() for _ in range(attendance._unread.qsize())]
    return [each.welcome.pending_seats for each in responses if each and each.HasField("welcome")]


async def test_a_bot_whose_lease_ran_out_while_redis_was_away_keeps_its_place(store: Store) -> None:
    lobby = Lobby("lobby", store, SimpleNamespace(wake_pairing=lambda: None))  # type: ignore[arg-type]
    attendance = AttendanceStream(BOT, (QUEUE,), 1)
    async with lobby.attend_lobby(attendance):
        before = await store.queues.list_entries(QUEUE)
        await store.client.call("UNLINK", keys.bot_attendance(BOT))
        await lobby._wait_in_queues(attendance)
        assert await store.queues.list_entries(QUEUE) == before
        assert [each.name for each in before] == [BOT]


# What is handed over


class WellKnown:
    """Its offer stands."""

    async def open_offers(self, _: str) -> list[SeatOffer]:
        return [STANDS]


async def test_an_offer_is_noted_as_told_when_the_stream_has_a_writer_and_not_before() -> None:
    lobby = lobby_with(WellKnown())
    notes: Any = lobby._store.no_shows
    attendance = AttendanceStream(BOT, (), 1)
    written: list[pb.AttendResponse] = []

    async def write(response: pb.AttendResponse) -> None:
        written.append(response)

    await lobby._tell_open_seats(attendance)
    assert notes.told == []
    writing = asyncio.create_task(attendance.write_all(write))
    await asyncio.sleep(0)
    await lobby._tell_open_seats(attendance)
    assert (notes.told, len(written)) == ([SeatOf("matches/m", 0)], 1)
    await lobby._tell_open_seats(attendance)
    assert len(notes.told) == 1
    attendance.end(None)
    await writing


async def test_an_offer_to_a_stream_that_is_ending_is_not_noted() -> None:
    lobby = lobby_with(WellKnown())
    notes: Any = lobby._store.no_shows
    attendance = AttendanceStream(BOT, (), 1)

    async def write(_: pb.AttendResponse) -> None:
        """It is not read."""
        await asyncio.Event().wait()

    writing = asyncio.create_task(attendance.write_all(write))
    await asyncio.sleep(0)
    attendance.end(Refusal("SERVER_STOPPING", "the server stops"))
    await lobby._tell_open_seats(attendance)
    assert notes.told == []
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)


async def test_offers_that_are_told_on_arrival_are_noted_soon(store: Store) -> None:
    await store.attendances.write_attendance(
        BOT, Presence("gone", "older", 9, (QUEUE,), 0), ATTENDANCE_LEASE_MS
    )
    await store.seats.reserve_all("matches/m", [(BOT, 0)], queued={BOT})
    await put_offer(store, BOT, "matches/m", 0, 1, STANDS.offer)
    lobby = Lobby("lobby", store, SimpleNamespace(wake_pairing=lambda: None))  # type: ignore[arg-type]
    attendance = AttendanceStream(BOT, (QUEUE,), 1)
    written = asyncio.Event()

    async def write(_: pb.AttendResponse) -> None:
        written.set()

    async with lobby.attend_lobby(attendance):
        assert await store.no_shows.seat_news("matches/m", [(BOT, 0)]) == [SeatNews.UNTOLD]
        writing = asyncio.create_task(attendance.write_all(write))
        await written.wait()
        await lobby._update_changed_bots()
        assert await store.no_shows.seat_news("matches/m", [(BOT, 0)]) == [SeatNews.TOLD]
        attendance.end(None)
        await writing


@pytest.mark.parametrize(
    ("reason", "by_itself"),
    [("", True), ("SLOW_READER", True), ("SERVER_STOPPING", False), ("TOKEN_REVOKED", False)],
)
async def test_a_bot_leaves_by_itself_unless_we_end_its_stream(
    store: Store, monkeypatch: pytest.MonkeyPatch, reason: str, by_itself: bool
) -> None:
    assert await leaving(store, monkeypatch, lambda: Refusal(reason, "why") if reason else None) is by_itself


async def test_a_bot_that_gives_up_a_lobby_which_stood_still_does_not_leave_by_itself(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await leaving(store, monkeypatch, lambda: None, has_broken_links=True) is False


async def test_a_stream_that_breaks_is_the_bots_and_one_that_redis_breaks_is_not(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error, by_itself in ((asyncio.CancelledError, True), (StoreUnavailable, False)):

        def fail(error: type[BaseException] = error) -> None:
            raise error("it breaks")

        with pytest.raises(error):
            await leaving(store, monkeypatch, fail)
        assert _left == [by_itself]


_left: list[bool] = []


async def leaving(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    end: Callable[[], Refusal | None],
    *,
    has_broken_links: bool = False,
) -> bool:
    """Whether the store is told that the bot left by itself."""

    async def leave(_: str, __: str, *, by_itself: bool) -> bool:
        _left[:] = [by_itself]
        return True

    monkeypatch.setattr(store.attendances, "remove_attendance", leave)
    pairing: Any = SimpleNamespace(wake_pairing=lambda: None)
    lobby = Lobby("lobby", store, pairing, lambda: has_broken_links)
    attendance = AttendanceStream(BOT, (QUEUE,), 1)
    async with lobby.attend_lobby(attendance):
        attendance.end(end())
    return _left[0]


# Two streams of one bot


def refusal_told(attendance: AttendanceStream) -> str:
    """The reason for which the stream ends; empty while it does not."""
    return attendance._ending.reason if attendance._ending else ""


async def test_a_stream_that_was_held_up_does_not_replace_one_that_arrived_later(store: Store) -> None:
    lobby = Lobby("lobby", store, SimpleNamespace(wake_pairing=lambda: None))  # type: ignore[arg-type]
    late, newer = AttendanceStream(BOT, (), 1), AttendanceStream(BOT, (), 1)
    async with lobby.attend_lobby(newer):
        with pytest.raises(Refusal, match="a newer stream of this bot attends"):
            async with lobby.attend_lobby(late):
                pass
        await lobby._beat_once()
        assert refusal_told(newer) == ""


async def test_a_stream_that_was_replaced_while_it_got_its_turn_does_not_write_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its turn may be the higher one: the store would end the newer stream."""
    lobby = Lobby("lobby", store, SimpleNamespace(wake_pairing=lambda: None))  # type: ignore[arg-type]
    older, newer = AttendanceStream(BOT, (), 1), AttendanceStream(BOT, (), 1)
    held, asked, numbered = asyncio.Event(), asyncio.Event(), store.attendances.number_stream

    async def numbered_late(bot: str, arrival_s: float) -> int:
        if asked.is_set():
            return await numbered(bot, arrival_s)
        asked.set()
        await held.wait()
        return await numbered(bot, arrival_s + 1)  # as Redis may number it that was away

    monkeypatch.setattr(store.attendances, "number_stream", numbered_late)

    async def attend(attendance: AttendanceStream) -> None:
        async with lobby.attend_lobby(attendance):
            pass

    attending = asyncio.create_task(attend(older))
    await asked.wait()
    async with lobby.attend_lobby(newer):
        held.set()
        await attending
        await lobby._beat_once()
        assert (refusal_told(older), refusal_told(newer)) == ("REPLACED", "")
        assert older.turn > newer.turn


async def test_a_stream_that_another_lobby_handles_late_does_not_replace_one_that_arrived_later(
    store: Store,
) -> None:
    one, two = (Lobby(name, store, SimpleNamespace(wake_pairing=lambda: None)) for name in ("one", "two"))  # type: ignore[arg-type]
    arrived = note_arrival_of_stream()
    long_ago = arrived._replace(time_s=arrived.time_s - 60)  # a call to Redis may take long on a busy machine
    late, newer = AttendanceStream(BOT, (), 1, long_ago), AttendanceStream(BOT, (QUEUE,), 1)
    async with two.attend_lobby(newer):
        with pytest.raises(Refusal, match="a newer stream of this bot attends"):
            async with one.attend_lobby(late):
                pass
        await two._beat_once()
        assert refusal_told(newer) == ""
        assert await store.queues.position_of(QUEUE, BOT) == 0
