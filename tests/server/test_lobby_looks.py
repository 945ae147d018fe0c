"""What a lobby tells a bot, when the store's answers are late or come in another order than they were asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest

from seatwise.v1 import lobby_service_pb2 as pb
from seatwise_server.lobby.attendance import Attendance
from seatwise_server.lobby.lobby import Lobby
from seatwise_server.store import Attendance as Presence
from seatwise_server.store import Offer, SeatOf, Store
from seatwise_server.store.attendance import LEASE_MS

STANDS = Offer("matches/m", 0, 1, pb.SeatOffer(match="matches/m", epoch=1).SerializeToString())


class Seats:
    """Its first answer was true when it was asked for, and is late."""

    def __init__(self) -> None:
        self.asked = 0
        self.is_late = asyncio.Event()

    async def open_offers(self, _: str) -> list[Offer]:
        self.asked += 1
        if self.asked == 1:
            await self.is_late.wait()
            return []
        return [STANDS]


async def test_an_answer_that_is_late_closes_no_seat() -> None:
    seats: Any = Seats()
    lobby = Lobby("lobby", SimpleNamespace(seats=seats), SimpleNamespace())  # type: ignore[arg-type]
    attendance = Attendance("bots/b/versions/1", (), 1)
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

    def __init__(self, offers: list[Offer]) -> None:
        self.offers = offers
        self.read = 0

    async def open_offers(self, _: str) -> list[Offer]:
        self.read += len(self.offers)
        return self.offers

    async def offers_of(self, _: str, seats: Collection[SeatOf]) -> list[Offer]:
        self.read += len(seats)
        return [offer for offer in self.offers if (offer.match, offer.seat) in seats]


async def test_of_a_thousand_seats_only_those_are_read_that_changed() -> None:
    stands = [
        Offer(
            f"matches/m{number}", 0, 1, pb.SeatOffer(match=f"matches/m{number}", epoch=1).SerializeToString()
        )
        for number in range(1000)
    ]
    seats: Any = Counted(stands)
    lobby = Lobby("lobby", SimpleNamespace(seats=seats), SimpleNamespace())  # type: ignore[arg-type]
    attendance = Attendance("bots/b/versions/1", (), 1000)
    await lobby._tell_open_seats(attendance)
    told = len(attendance.told)
    seats.offers, seats.read = (
        [
            *stands[1:],
            Offer(
                "matches/new", 1, 1, pb.SeatOffer(match="matches/new", seat=1, epoch=1).SerializeToString()
            ),
        ],
        0,
    )
    await lobby._tell_open_seats(attendance, {SeatOf("matches/m0", 0), SeatOf("matches/new", 1)})
    assert (told, len(attendance.told), seats.read) == (1000, 1000, 2)
    assert {("matches/new", 1), ("matches/m0", 0)} & attendance.told.keys() == {("matches/new", 1)}


BOT = "bots/b/versions/1"


class SlowAttend:
    """Holds the next attendance up on its way to the store."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_asked = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self._attend = store.attendances.attend
        monkeypatch.setattr(store.attendances, "attend", self)

    async def __call__(self, *args: Any) -> Any:
        self.is_asked.set()
        await self.may_go_on.wait()
        return await self._attend(*args)


async def attend_elsewhere(store: Store) -> None:
    """The bot's last stream was at a lobby that has gone since; its lease has some seconds left."""
    turn = await store.attendances.turn(BOT)
    await store.attendances.attend(BOT, Presence("gone", "older", 1, (), turn), LEASE_MS)


def told(attendance: Attendance) -> list[str | None]:
    """The events that were told, and None where the stream was ended."""
    responses = [attendance._unread.get_nowait() for _ in range(attendance._unread.qsize())]
    return [each and each.WhichOneof("event") for each in responses]


@pytest.mark.parametrize("looks", ["_beat_once", "_look_after_changed_once"])
async def test_a_bot_whose_attendance_is_not_written_yet_is_not_told_that_it_is_replaced(
    store: Store, monkeypatch: pytest.MonkeyPatch, looks: str
) -> None:
    await attend_elsewhere(store)
    slow = SlowAttend(store, monkeypatch)
    lobby = Lobby("lobby", store, SimpleNamespace(wake=lambda: None))  # type: ignore[arg-type]
    attendance = Attendance(BOT, (), 1)
    present = lobby.present(attendance)
    arriving = asyncio.create_task(present.__aenter__())
    await slow.is_asked.wait()
    lobby._changed[BOT], lobby._doubtful = set(), {BOT}  # heard of the bot's stream before this one
    await getattr(lobby, looks)()
    slow.may_go_on.set()
    await arriving
    assert told(attendance) == ["welcome"]
    found = await store.attendances.get(BOT)
    assert found
    assert found.attend_id == attendance.attend_id
    await present.__aexit__(None, None, None)


async def test_a_beat_keeps_what_is_written_and_ends_what_was_replaced(store: Store) -> None:
    lobby = Lobby("lobby", store, SimpleNamespace(wake=lambda: None))  # type: ignore[arg-type]
    attendance = Attendance(BOT, (), 1)
    async with lobby.present(attendance):
        await lobby._beat_once()
        assert told(attendance) == ["welcome"]
        await attend_elsewhere(store)
        await lobby._beat_once()
        assert told(attendance) == [None]
