"""A bot that builds, on a server that does what a test tells it to."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from doubles.fake_server import FakeServer, Lobby, Referee, serving

import seatwise
from seatwise.games.ubongo.v1 import ubongo_pb2
from seatwise.kits.race_steps import BURST, STEP_MS, SendRate
from seatwise.remote import run_async
from seatwise.ubongo import CARDS, Call, Layout, OfferEnd, Placement
from seatwise.v1.play_service_pb2 import PlayRequestItem
from seatwise_referee.race_prompt import MOST_LAYS_A_SECOND

HAND = ubongo_pb2.View(seat=0, round=1, rounds=6, hand=range(1, 10), symbols="ABCDEF" * 9, laid=[0, 0])


def row(cards: int, y: int = 0) -> Layout:
    """So many cards beside one another, whether they fit or not."""
    return tuple(Placement(CARDS[each], 2 * each, y, 0) for each in range(cards))


def builder(build: Callable[..., Any]) -> type[seatwise.Bot]:
    return type("Builder", (seatwise.Bot,), {"build": build})


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with serving() as fake:
        yield fake


@asynccontextmanager
async def seated(server: FakeServer, build: Callable[..., Any]) -> AsyncIterator[tuple[Lobby, Referee]]:
    """The bot runs and has sat down."""
    task = asyncio.create_task(
        run_async(builder(build), game="ubongo", address=server.address, token="secret", matches=1)
    )
    try:
        lobby = await server.lobby()
        await lobby.offer(game="games/ubongo")
        referee = await server.referee()
        await referee.sat()
        yield lobby, referee
    finally:
        task.cancel()
        await asyncio.wait({task})


def said(item: PlayRequestItem) -> str:
    """How many cards were laid, or what else was said."""
    move = item.submit_move.ubongo
    kind = move.WhichOneof("kind")
    return (
        str(len(move.lay.cards))
        if kind == "lay"
        else f"{kind} {move.offer_end.on}"
        if kind == "offer_end"
        else "call"
    )


async def test_steps_are_sent_in_order_and_a_call_waits_for_no_answer(server: FakeServer) -> None:
    async def build(_: Any, view: Any) -> AsyncIterator[Any]:
        yield row(3)
        yield row(len(view.hand))
        yield Call()

    async with seated(server, build) as (_, referee):
        await referee.ask_to_build(HAND)
        items = [await referee.moved() for _ in range(3)]
        assert list(map(said, items)) == ["3", "9", "call"]
        assert {item.submit_move.prompt for item in items} == {1}
        assert len({item.submit_move.request_id for item in items}) == 3


async def test_a_generator_that_is_not_async_runs_in_a_thread_of_its_own(server: FakeServer) -> None:
    threads = []

    def build(_: Any, view: Any) -> Iterator[Any]:  # noqa: ARG001  # as it is called
        threads.append(threading.current_thread())
        yield row(2)
        threads.append(threading.current_thread())

    async with seated(server, build) as (_, referee):
        await referee.ask_to_build(HAND)
        assert [said(await referee.moved()) for _ in range(2)] == ["2", "offer_end True"]
    assert len(set(threads)) == 1
    assert threads[0] is not threading.main_thread()


async def test_over_a_new_link_the_last_layout_and_the_call_are_said_again(server: FakeServer) -> None:
    async def build(_: Any, view: Any) -> AsyncIterator[Any]:  # noqa: ARG001  # as it is called
        yield row(7)
        yield row(8)
        yield Call()

    async with seated(server, build) as (_, referee):
        await referee.ask_to_build(HAND)
        first = [await referee.moved() for _ in range(3)]
        referee.end("UNAVAILABLE", "")
        referee = await server.referee()
        await referee.sat()
        await referee.ask_to_build(HAND)
        again = [await referee.moved() for _ in range(2)]
        assert list(map(said, again)) == ["8", "call"]
        assert again[1].submit_move == first[2].submit_move
        await referee.ask_to_build(HAND, to_act=False)  # the call is held
        await referee.accept(again[1])
        await referee.ask_to_build(HAND, prompt=2)
        assert said(await referee.moved()) == "7"


async def test_a_new_round_closes_the_generator_of_the_last(server: FakeServer) -> None:
    closed: list[int] = []

    async def build(_: Any, view: Any) -> AsyncIterator[Any]:
        try:
            yield row(view.round)
            await asyncio.sleep(60)
        finally:
            closed.append(view.round)

    async with seated(server, build) as (_, referee):
        for number in (1, 2):
            hand = ubongo_pb2.View()
            hand.CopyFrom(HAND)
            hand.round = number
            await referee.ask_to_build(hand, prompt=number)
            assert said(await referee.moved()) == str(number)
        assert closed == [1]


async def test_an_error_of_a_bot_costs_that_round_only(server: FakeServer) -> None:
    async def build(_: Any, view: Any) -> AsyncIterator[Any]:
        yield row(4)
        if view.round == 1:
            raise RuntimeError("broken")

    async with seated(server, build) as (_, referee):
        for number in (1, 2):
            await referee.ask_to_build(HAND, prompt=number)
            assert [said(await referee.moved()) for _ in range(2)] == ["4", "offer_end True"]


async def test_of_many_layouts_the_newest_is_said_and_never_more_than_the_referee_takes(
    server: FakeServer,
) -> None:
    async def build(_: Any, view: Any) -> AsyncIterator[Any]:  # noqa: ARG001  # as it is called
        for number in range(300):
            yield row(7, y=number % 20)
        yield row(9)
        await asyncio.sleep(60)

    async with seated(server, build) as (_, referee):
        await referee.ask_to_build(HAND)
        began, heard = time.monotonic(), 0
        while said(await referee.moved()) != "9":
            heard += 1
        assert heard <= BURST + 1000 * (time.monotonic() - began) / STEP_MS + 1


async def test_a_layout_that_came_too_fast_is_said_again(server: FakeServer) -> None:
    async def build(_: Any, view: Any) -> AsyncIterator[Any]:  # noqa: ARG001  # as it is called
        yield row(5)
        yield OfferEnd(on=True)
        await asyncio.sleep(60)

    async with seated(server, build) as (_, referee):
        await referee.ask_to_build(HAND)
        first, _ = await referee.moved(), await referee.moved()
        await referee.reject(first, "TOO_MANY")
        assert [said(await referee.moved()) for _ in range(2)] == ["5", "offer_end True"]


def test_the_rate_stays_below_the_referees() -> None:
    rate, sent, now = SendRate(), [], 0.0
    while now < 5000:
        now = rate.ready_ms(now)
        rate.count_layout(now)
        sent.append(now)
    assert max(sum(1 for each in sent if first <= each < first + 1000) for first in sent) < MOST_LAYS_A_SECOND
