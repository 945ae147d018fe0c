"""Bots that no lobby has told of their seats: tables wait for them, and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from doubles.room import Room
from doubles.virtual import in_virtual_time, running
from matches.one_match import ALLOWED_MS, setup_of

from seatwise_referee.ending import VoidReason
from seatwise_referee.journal import Voided, encode_entry
from seatwise_referee.match import replay_match
from seatwise_server.play.seat_offers import LOBBY_LOOK_S, MOST_UNHEARD_S, RefereeIdentity, SeatOffers
from seatwise_server.store import Attendance, SeatNews, Store
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.timings import ATTENDANCE_LEASE_MS, LOBBY_HEARTBEAT_S

SETUP_MS = 5000
LAST_RENEWAL_MS = int(LOBBY_HEARTBEAT_S * 1000)
"""The age of an attendance just before a live lobby renews it."""


class Lobbies:
    """What the store says of them: whom they look after, and what bots know of their seats."""

    def __init__(self) -> None:
        self.kept: frozenset[str] = frozenset()
        self.stopped_s: float | None = None
        self.is_away = False
        self.news: dict[str, SeatNews] = {}
        """What bots know that a queue has seated."""

    async def kept_ms(self, bots: Collection[str]) -> dict[str, int]:
        if self.is_away:
            raise StoreUnavailable("away")
        stopped_s = self.stopped_s
        age_ms = LAST_RENEWAL_MS if stopped_s is None else int((running().time() - stopped_s) * 1000)
        return {bot: age_ms for bot in bots if bot in self.kept}

    async def seat_news(self, _: str, seats: Sequence[tuple[str, int]]) -> list[SeatNews | None]:
        return [self.news.get(bot) for bot, _ in seats]

    def look_after(self, room: Room) -> None:
        """All bots are told, now, and their attendances are renewed from now on."""
        self.kept = frozenset(room.setup.bots)

    def stand_still(self) -> None:
        """The lobbies renew their attendances now, and do nothing more."""
        self.stopped_s = running().time()


def opened(room: Room) -> Lobbies:
    """The table is open, its seats are offered, and it is watched as a referee watches it."""
    lobbies = Lobbies()
    store: Any = SimpleNamespace(attendances=lobbies, no_shows=lobbies)
    waiting = SeatOffers(RefereeIdentity("me", "", 1), store, store).wait_for_lobbies
    room.table.start_clocks()
    tasks: list[asyncio.Task[None]] = []  # kept, or it might be forgotten by the loop
    running().call_later(LOBBY_LOOK_S, lambda: tasks.append(asyncio.create_task(waiting(room.table))))
    return lobbies


def kinds(room: Room) -> list[str]:
    return [entry.kind for entry in room.entries()]


@in_virtual_time
async def test_a_set_up_lasts_longer_while_no_lobby_could_tell_anybody_of_it() -> None:
    room = Room(setup_ms=SETUP_MS)
    lobbies = opened(room)
    await room.pass_ms(11_000)
    assert kinds(room) == []
    lobbies.look_after(room)
    for seat in (0, 1):
        room.link(seat).sit(seat)
    await room.pass_ms(20)
    assert kinds(room) == ["sat", "sat", "dealt"]


@in_virtual_time
async def test_a_bot_that_was_told_late_has_nearly_all_of_the_set_up_time() -> None:
    room = Room(setup_ms=SETUP_MS)
    lobbies = opened(room)
    await room.pass_ms(9_000)
    lobbies.look_after(room)
    await room.pass_ms(SETUP_MS - 1_000)
    assert kinds(room) == []
    await room.pass_ms(1_500)
    assert kinds(room) == ["forfeited", "forfeited", "voided"]


@in_virtual_time
async def test_a_bot_that_was_told_in_time_has_no_more() -> None:
    room = Room(setup_ms=SETUP_MS)
    opened(room).look_after(room)
    await room.pass_ms(SETUP_MS + 10)
    assert kinds(room) == ["forfeited", "forfeited", "voided"]


@in_virtual_time
async def test_a_bot_of_which_no_lobby_ever_hears_again_is_gone() -> None:
    room = Room(setup_ms=SETUP_MS)
    opened(room)
    await room.pass_ms(MOST_UNHEARD_S * 1000 - 1000)
    assert kinds(room) == []
    await room.pass_ms(SETUP_MS + 2000)
    assert kinds(room)[-1] == "voided"


def seated_without_a_word(competition: str) -> tuple[Room, Lobbies]:
    """Of three bots no lobby tells the last one, though lobbies renew its attendance."""
    room = Room(setup=replace(setup_of(3, setup_ms=SETUP_MS), competition=competition))
    lobbies = opened(room)
    lobbies.look_after(room)
    lobbies.news = {room.setup.bots[2]: SeatNews.UNTOLD}
    for seat in (0, 1):
        room.link(seat).sit(seat)
    return room, lobbies


@pytest.mark.parametrize("competition", ["ladders/test", "leagues/test"])
@in_virtual_time
async def test_a_match_of_a_competition_does_not_count_without_a_bot_that_was_never_told_of_its_seat(
    competition: str,
) -> None:
    room, lobbies = seated_without_a_word(competition)
    await room.pass_ms(MOST_UNHEARD_S * 1000 - 1_500)
    lobbies.is_away = True
    await room.pass_ms(2_000)
    lobbies.is_away = False
    await room.pass_ms(1_500)
    assert kinds(room) == ["sat", "sat", "voided"]
    end = room.entries()[-1]
    assert isinstance(end, Voided)
    assert end.reason == VoidReason.BOT_NOT_TOLD


@in_virtual_time
async def test_a_match_of_a_ladder_is_rated_without_a_bot_that_was_told_late_and_does_not_sit_down() -> None:
    room, lobbies = seated_without_a_word("ladders/test")
    await room.pass_ms(20_000)
    lobbies.news = {room.setup.bots[2]: SeatNews.TOLD}
    await room.pass_ms(MOST_UNHEARD_S * 1000)
    assert kinds(room)[:4] == ["sat", "sat", "forfeited", "dealt"]


@in_virtual_time
async def test_a_created_match_waits_for_a_bot_that_was_never_told_of_its_seat_and_then_begins_without_it() -> (
    None
):
    room, _ = seated_without_a_word("")
    await room.pass_ms(MOST_UNHEARD_S * 1000 - 1_500)
    assert kinds(room) == ["sat", "sat"]
    await room.pass_ms(SETUP_MS + 3_000)
    assert kinds(room)[:4] == ["sat", "sat", "forfeited", "dealt"]


@in_virtual_time
async def test_a_bot_that_left_with_a_seat_of_a_queue_keeps_nobody_waiting_for_longer() -> None:
    room = Room(setup_ms=SETUP_MS)
    lobbies = opened(room)
    lobbies.news = dict.fromkeys(room.setup.bots, SeatNews.LEFT)
    await room.pass_ms(SETUP_MS + 10)
    assert kinds(room) == ["forfeited", "forfeited", "voided"]


@in_virtual_time
async def test_a_lobby_that_keeps_a_bot_and_stands_still_before_it_tells_it_of_its_seat_is_waited_for() -> (
    None
):
    room = Room(setup_ms=SETUP_MS)
    lobbies = opened(room)
    lobbies.look_after(room)
    lobbies.news = dict.fromkeys(room.setup.bots, SeatNews.UNTOLD)
    await room.pass_ms(SETUP_MS + 3_000)
    assert kinds(room) == []
    lobbies.news = dict.fromkeys(room.setup.bots, SeatNews.TOLD)
    for seat in (0, 1):
        room.link(seat).sit(seat)
    await room.pass_ms(20)
    assert kinds(room) == ["sat", "sat", "dealt"]


@in_virtual_time
async def test_a_lobby_that_renews_once_and_stands_still_before_it_tells_anybody_is_waited_for() -> None:
    room = Room(setup_ms=2 * SETUP_MS)
    lobbies = opened(room)
    await room.pass_ms(10)
    lobbies.look_after(room)
    lobbies.stand_still()
    await room.pass_ms(2 * SETUP_MS + 3_000)
    assert kinds(room) == []


@in_virtual_time
async def test_a_bot_that_was_told_and_whose_lobby_died_is_waited_for() -> None:
    room = Room(setup_ms=SETUP_MS)
    lobbies = opened(room)
    lobbies.news = dict.fromkeys(room.setup.bots, SeatNews.TOLD)
    await room.pass_ms(SETUP_MS + 3_000)
    assert kinds(room) == []


@in_virtual_time
async def test_a_store_that_is_away_hurts_nothing() -> None:
    room = Room(setup_ms=SETUP_MS)
    lobbies = opened(room)
    lobbies.is_away = True
    await room.pass_ms(4_500)
    lobbies.is_away = False
    await room.pass_ms(4_000)
    assert kinds(room) == []


@in_virtual_time
async def test_after_a_takeover_too_no_time_runs_before_a_bot_can_know_where_to_go() -> None:
    room = Room(setup_ms=SETUP_MS)
    await room.seat_all()
    position = replay_match(room.setup, room.entries()).position
    heir = Room(setup=room.setup, position=position, epoch=2, written=list(map(encode_entry, room.entries())))
    lobbies = opened(heir)
    await heir.pass_ms(SETUP_MS + ALLOWED_MS + 3_000)
    assert kinds(heir)[-1] == "taken_over"
    lobbies.look_after(heir)
    link = heir.link(heir.asked)
    link.sit(heir.asked)
    await heir.pass_ms(20)
    link.submit(heir.asked, heir.legal_move(), heir.prompt, "at last")
    await heir.pass_ms(200)
    (accepted,) = link.new("move_accepted")
    assert accepted.charged_ms == pytest.approx(20, abs=15)


async def test_the_store_knows_when_a_lobby_last_looked_after_a_bot(store: Store) -> None:
    attends = Attendance("lobby", "attend", 1, ())
    await store.attendances.write_attendance("bots/here/versions/1", attends, ATTENDANCE_LEASE_MS)
    await asyncio.sleep(0.05)
    kept_ms = await store.attendances.kept_ms(["bots/here/versions/1", "bots/gone/versions/1"])
    assert list(kept_ms) == ["bots/here/versions/1"]
    assert 50 <= kept_ms["bots/here/versions/1"] < ATTENDANCE_LEASE_MS / 2
    assert await store.attendances.kept_ms([]) == {}
