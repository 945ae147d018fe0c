"""Time in which gRPC had a bot's message and the event loop had not is charged to no bot."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from doubles.room import Link, Room
from doubles.virtual import in_virtual_time, running
from harness.house import house_in
from harness.wire import SOON_S

from seatwise_referee import record
from seatwise_referee.journal import encode_entry
from seatwise_referee.verify import verify_line
from seatwise_server import app
from seatwise_server.config import ROLES
from seatwise_server.embedded import EmbeddedRedis
from seatwise_server.play import match_clock
from seatwise_server.play.match_clock import (
    ECHO_BEAT_S,
    KEPT_S,
    LINK_BREAKING_S,
    LINK_LOSS_NOTICED_S,
    LONGEST_BEHIND_S,
    STALL_BOUND_S,
    EventLoopLag,
    TransportLag,
)
from seatwise_server.rpc import grpc_echo
from seatwise_server.rpc.grpc_echo import ATTENDED_BEAT_S, GrpcEcho

SECOND = {"free_ms": {"card": 1000, "arrange": 1000}, "bank_ms": 1, "grace_ms": 50}


class Echoes:
    """A loop with its lags, and echoes on it."""

    def __init__(self) -> None:
        self.loop_lag = EventLoopLag(running())
        self.loop_lag.start_beat()
        self.worked_s = 0.0
        self.lag = TransportLag(self.loop_lag, lambda: self.worked_s)

    def send(self) -> None:
        self.lag.note_sent(running().time())

    def return_(self) -> None:
        self.lag.note_returned(running().time())

    async def go_round(self, took_s: float) -> float:
        """One echo; when it was sent."""
        sent = running().time()
        self.send()
        await asyncio.sleep(took_s)
        self.return_()
        return sent

    def delay_since(self, asked_at: float) -> float:
        return self.lag.exchange_delay_s(asked_at, running().time())


@in_virtual_time
async def test_an_echo_that_is_in_time_says_nothing() -> None:
    echoes = Echoes()
    began = await echoes.go_round(STALL_BOUND_S)
    assert not echoes.lag.is_known(running().time())
    assert echoes.delay_since(began) == 0


@in_virtual_time
async def test_an_echo_that_is_late_counts_before_it_is_back_and_after() -> None:
    echoes = Echoes()
    began = running().time()
    echoes.send()
    await asyncio.sleep(0.3)
    assert echoes.delay_since(began) == pytest.approx(0.3)
    await asyncio.sleep(0.1)
    echoes.return_()
    assert echoes.delay_since(began) == pytest.approx(0.4)


@in_virtual_time
async def test_stalls_of_the_loop_and_its_own_work_are_no_delay_of_the_transport() -> None:
    echoes = Echoes()
    began = running().time()
    echoes.send()
    await asyncio.sleep(0.01)
    running().stand_still(0.5)
    await asyncio.sleep(0.01)
    echoes.return_()
    assert echoes.delay_since(began) == 0
    began = running().time()
    echoes.send()
    await asyncio.sleep(0.5)
    echoes.worked_s += 0.48
    echoes.return_()
    assert echoes.delay_since(began) == 0


@in_virtual_time
async def test_only_what_was_late_with_the_question_or_with_the_answer_counts() -> None:
    echoes = Echoes()
    asked = await echoes.go_round(0.2)
    await asyncio.sleep(1)
    await echoes.go_round(0.7)  # meanwhile the bot thinks
    await asyncio.sleep(1)
    await echoes.go_round(0.1)
    assert echoes.delay_since(asked) == pytest.approx(0.3)
    await asyncio.sleep(2 * ECHO_BEAT_S)
    assert echoes.delay_since(asked) == pytest.approx(0.2)
    assert echoes.delay_since(asked + 1) == 0


@in_virtual_time
async def test_delays_are_bounded_and_forgotten() -> None:
    echoes = Echoes()
    asked = running().time()
    echoes.send()
    await asyncio.sleep(10 * LONGEST_BEHIND_S)
    assert echoes.delay_since(asked) == LONGEST_BEHIND_S
    echoes.lag.note_lost()
    assert not echoes.lag.is_known(running().time())
    await echoes.go_round(0.2)
    await asyncio.sleep(KEPT_S + 1)
    await echoes.go_round(0.01)
    assert not echoes.lag.is_known(running().time())


@in_virtual_time
async def test_of_many_late_echoes_a_command_looks_only_at_those_near_its_two_times() -> None:
    echoes, rng = Echoes(), random.Random(5)
    for _ in range(300):
        await echoes.go_round(rng.choice([0.01, STALL_BOUND_S + 0.01, 0.3]))
        await asyncio.sleep(ECHO_BEAT_S)
    late = list(echoes.lag._late)
    assert len(late) > 150
    for at in (rng.uniform(late[0].sent - 1, late[-1].returned + 1) for _ in range(300)):
        near = [echo for echo in late if echo.sent - ECHO_BEAT_S <= at <= echo.returned + ECHO_BEAT_S]
        assert list(echoes.lag._late_at(at, None)) == near
        assert len(near) <= 2


@in_virtual_time
async def test_a_delay_that_breaks_links_is_known_for_a_while() -> None:
    echoes = Echoes()
    await echoes.go_round(LINK_BREAKING_S - 0.1)
    assert not echoes.lag.broke_links(running().time())
    echoes.send()
    await asyncio.sleep(LINK_BREAKING_S + 0.1)
    assert echoes.lag.broke_links(running().time())
    echoes.return_()
    await asyncio.sleep(LINK_LOSS_NOTICED_S - 0.1)
    assert echoes.lag.broke_links(running().time())
    await asyncio.sleep(0.2)
    assert not echoes.lag.broke_links(running().time())


# At a table


async def answer_late(room: Room, links: list[Link], ms: int) -> int:
    """The asked seat answers at once, and gRPC has the answer so long that it comes that late; its charge."""
    room.transport.note_sent(running().time())
    await room.pass_ms(ms)
    await room.move(links)
    room.transport.note_returned(running().time())
    return int(room.entries("move")[-1].charged_ms)


def frozen_ms(room: Room) -> list[int]:
    assert all(entry.why == "STALL" for entry in room.entries("frozen"))
    return [entry.ms for entry in room.entries("frozen")]


@in_virtual_time
async def test_a_delay_in_grpc_is_not_charged_and_the_record_verifies() -> None:
    room = Room(rounds=1, **SECOND)
    links = await room.seat_all()
    assert await answer_late(room, links, 300) <= 10
    [taken_off] = frozen_ms(room)
    assert 290 <= taken_off <= 310
    await room.pass_ms(1000 * (ECHO_BEAT_S + 0.1))
    await room.move(links)
    assert 100 <= room.entries("move")[-1].charged_ms <= 200  # the time that it took itself
    await room.play_out(links)
    written = record.write_record(room.setup, list(map(encode_entry, room.entries())))
    assert verify_line(written.line).fault is None


@in_virtual_time
async def test_a_bot_that_answers_a_prompt_often_has_the_delay_taken_off_once() -> None:
    room = Room(**SECOND)
    links = await room.seat_all()
    room.transport.note_sent(running().time())
    await room.pass_ms(300)
    for number in range(3):
        links[room.asked].submit(room.asked, room.illegal_move(), room.prompt, f"bad{number}")
        await room.pass_ms(1)
    assert 300 <= sum(frozen_ms(room)) <= 320


@in_virtual_time
async def test_no_seat_is_late_while_grpc_may_have_the_answer() -> None:
    room = Room(**SECOND)
    links = await room.seat_all()
    await room.pass_ms(500)
    assert await answer_late(room, links, 2500) <= 520
    assert not room.entries("timed_out")
    assert not any(seat.strikes for seat in room.match.position.seats)


@in_virtual_time
@pytest.mark.parametrize("behind_s", [0.5, LINK_BREAKING_S + 1])
async def test_a_seat_that_lost_its_link_while_grpc_was_far_behind_is_not_charged_for_coming_back(
    behind_s: float,
) -> None:
    room = Room(**SECOND)
    links = await room.seat_all()
    room.transport.note_sent(running().time())
    await room.pass_ms(1000 * behind_s)
    room.transport.note_returned(running().time())
    links[room.asked].hang_up()
    await room.pass_ms(3000)
    assert bool(room.entries("default")) == (behind_s < LINK_BREAKING_S)
    if behind_s > LINK_BREAKING_S:
        link = room.link(room.asked)
        link.sit(room.asked)
        await room.pass_ms(30)
        link.submit(room.asked, room.legal_move(), room.prompt, "back again")
        await room.pass_ms(200)
        (accepted,) = link.new("move_accepted")
        assert accepted.charged_ms == pytest.approx(30, abs=15)


@in_virtual_time
async def test_where_nothing_is_late_nothing_is_taken_off() -> None:
    room = Room(rounds=1)
    links = await room.seat_all()
    while not room.match.is_over:
        room.transport.note_sent(running().time())
        await room.move(links)
        room.transport.note_returned(running().time())
    assert frozen_ms(room) == []


# Through gRPC


def late_by(late_s: float) -> Callable[[GrpcEcho, AsyncIterator[bytes], object], Awaitable[None]]:
    """The server's end of the echo, which holds each message back so long."""
    plain = GrpcEcho._take

    async def take_late(echo: GrpcEcho, messages: AsyncIterator[bytes], context: object) -> None:
        async def late() -> AsyncIterator[bytes]:
            async for message in messages:
                await asyncio.sleep(late_s)
                yield message

        await plain(echo, late(), context)

    return take_late


async def measured(
    monkeypatch: pytest.MonkeyPatch,
    late_s: float,
    is_playing: Callable[[], bool],
    within_s: float = 10,
    is_attended: bool = False,
) -> list[float]:
    """The round trips of three echoes, of which the server holds each back so long; none if they are not there in time."""
    took: list[float] = []
    loop_lag = EventLoopLag(asyncio.get_running_loop())
    loop_lag.start_beat()
    lag = TransportLag(loop_lag)
    done, loop = asyncio.Event(), asyncio.get_running_loop()

    def note_returned(now: float) -> None:
        took.append(lag.exchange_delay_s(now, now))
        lag.note_returned(now)
        if len(took) == 3:
            loop.call_soon(done.set)

    monkeypatch.setattr(GrpcEcho, "_take", late_by(late_s))
    monkeypatch.setattr(grpc_echo, "ECHO_RETRY_S", 60)
    it: Any = SimpleNamespace(note_sent=lag.note_sent, note_lost=lag.note_lost, note_returned=note_returned)
    running_echo = asyncio.create_task(GrpcEcho(it, is_playing, lambda: is_attended).run_echo())
    try:
        async with asyncio.timeout(within_s):
            await done.wait()
    except TimeoutError:
        pass
    finally:
        running_echo.cancel()
        await asyncio.wait({running_echo})
        loop_lag.stop_beat()
    return took


async def test_echoes_go_round_and_what_holds_them_back_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    delays = await measured(monkeypatch, 0.4, lambda: True)
    assert len(delays) == 3
    assert 0.2 < max(delays) <= LONGEST_BEHIND_S, delays  # stalls of a busy machine are no delay of gRPC


async def test_without_a_match_no_echo_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await measured(monkeypatch, 0.0, lambda: False, within_s=0.3) == []


async def test_while_bots_only_attend_echoes_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    began = asyncio.get_running_loop().time()
    assert len(await measured(monkeypatch, 0.0, lambda: False, is_attended=True)) == 3
    assert asyncio.get_running_loop().time() - began >= 2 * ATTENDED_BEAT_S


async def test_the_first_match_after_a_pause_is_measured_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = iter([False, False])
    assert len(await measured(monkeypatch, 0.0, lambda: next(looks, True))) == 3


@pytest.mark.parametrize(
    ("tables", "writers", "attending", "expected"),
    [(1, 1, 0, (True, True)), (1, 0, 0, (False, True)), (0, 1, 0, (False, False)), (0, 0, 1, (False, True))],
)
def test_echoes_are_frequent_while_a_match_is_played_through_grpc(
    tables: int, writers: int, attending: int, expected: tuple[bool, bool]
) -> None:
    streams = SimpleNamespace(has_writers=writers > 0)
    referee = SimpleNamespace(transport_lag=None, tables=range(tables), streams=streams)
    roles: Any = SimpleNamespace(referee=referee), SimpleNamespace(lobby=range(attending))
    echo = app._new_echo(*roles)
    assert echo is not None
    assert (echo._is_playing(), echo._is_attended()) == expected


@pytest.mark.parametrize("roles", [ROLES, ("lobby", "gateway")])
async def test_a_lobby_knows_that_a_bot_was_lost_while_grpc_was_far_behind(
    monkeypatch: pytest.MonkeyPatch, redis_server: EmbeddedRedis, tmp_path: Path, roles: tuple[str, ...]
) -> None:
    monkeypatch.setattr(match_clock, "LINK_BREAKING_S", 0.2)
    monkeypatch.setattr(GrpcEcho, "_take", late_by(0.4))
    async with house_in(tmp_path, redis_url=redis_server.url, roles=frozenset(roles)) as house:
        assert house.server
        assert house.server.lobby is not None
        assert not house.server.lobby._has_broken_links()
        bot = await house.bot()
        await bot.attend([], 1)
        async with asyncio.timeout(SOON_S):
            while not house.server.lobby._has_broken_links():  # noqa: ASYNC110 - an echo has to come back
                await asyncio.sleep(0.01)
