"""A seat that is played by calls: what each call returns, and when."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import CancelledError
from typing import Any

import pytest

from seatwise.bot import BotFactory
from seatwise.errors import BadAnswerError, BadTokenError, UsageError
from seatwise.kits import KITS
from seatwise.local.table import LocalPlayer, LocalTable, local_time_control
from seatwise.mcp import model_seat
from seatwise.mcp.model_seat import LONGEST_CALL_S, WAIT_S, ModelSeat
from seatwise.result import Result
from seatwise.samples import sample
from seatwise_referee.game import Seat
from seatwise_referee.games.registry import GAMES
from seatwise_referee.setup import Setup

UGO = KITS["ugo"]
LONG_S = 60.0


class LeftTable(BaseException):
    """Ends the thread of a table whose test is over."""


async def play_here(
    factory: BotFactory, _: Sequence[str], on_result: Callable[[Result], None], rounds: int = 1
) -> None:
    """Play one match against greedy at a local table, in a thread."""
    loop = asyncio.get_running_loop()
    setup = Setup(
        match="matches/here",
        game="ugo",
        rules_version=GAMES["ugo"].rules_version,
        options=GAMES["ugo"].complete_options({"rounds": rounds}),
        bots=("bots/model/versions/1", "bots/greedy/versions/1"),
        time_control=local_time_control("ugo"),
        seed=bytes(32),
        durability="none",
    )

    is_left = threading.Event()

    def wait(value: Any) -> Any:
        if not asyncio.iscoroutine(value):
            return value
        if is_left.is_set():
            value.close()
            raise LeftTable
        try:
            return asyncio.run_coroutine_threadsafe(value, loop).result(LONG_S)
        except CancelledError:
            raise LeftTable from None

    players = [
        LocalPlayer(name, bots, bytes([seat]) * 16, random.Random(seat))
        for seat, (name, bots) in enumerate((("model", factory), ("greedy", sample("greedy"))))
    ]
    table = LocalTable(setup, players, lambda _: None, wait)
    try:
        await asyncio.to_thread(table.play_match)
    except BaseException:
        is_left.set()
        raise
    on_result(table._result_for(Seat(0)))


def run(test: Callable[[ModelSeat], Awaitable[None]], play: model_seat.PlayMatches = play_here) -> None:
    """Run a test with a seat."""

    async def with_seat() -> None:
        seat = ModelSeat(UGO, play)
        try:
            await test(seat)
        finally:
            await seat.leave()

    asyncio.run(with_seat())


def test_a_whole_match_is_played_by_calls_alone():
    async def play(seat: ModelSeat) -> None:
        assert seat.describe_state()["state"] == "idle"
        told, moves = await seat.find_match("casual"), 0
        while told["state"] != "match_over":
            assert told["state"] in ("your_turn", "others_think", "finding_match")
            if told["state"] == "your_turn":
                assert told["legal_moves"] == seat.list_legal_moves()
                assert told["view_text"].startswith("UgoView(seat=0")
                assert told["view"]["round"] == 1
                moves += 1
                told = await seat.make_move(told["legal_moves"][-1])
            else:
                told = await seat.wait_for_turn()
        assert moves >= 10
        assert told["result"] == seat.describe_result()
        assert told["result"]["endings"] == ["COMPLETED", "COMPLETED"]
        assert (await seat.find_match())["state"] == "your_turn"

    run(play)


def test_an_illegal_move_costs_nothing_and_names_the_legal_ones():
    async def play(seat: ModelSeat) -> None:
        with pytest.raises(BadAnswerError, match=r"it is not your turn. There is no match. Call find_match"):
            await seat.make_move("R3")
        told = await seat.find_match()
        with pytest.raises(BadAnswerError, match="'Z9' is no legal move here; the legal moves are: "):
            await seat.make_move("Z9")
        assert seat.list_legal_moves() == told["legal_moves"]
        with pytest.raises(BadAnswerError, match="no match has ended yet"):
            seat.describe_result()

    run(play)


def test_a_seat_that_resigns_is_asked_no_more():
    async def play(seat: ModelSeat) -> None:
        with pytest.raises(BadAnswerError, match="no match to resign"):
            await seat.resign_match()
        await seat.find_match()
        told = await seat.resign_match()
        while told["state"] != "match_over":
            assert told["state"] != "your_turn"
            told = await seat.wait_for_turn()
        assert told["result"]["endings"] == ["RESIGNED", "COMPLETED"]

    run(play)


def test_a_call_returns_although_nothing_happens_and_the_next_one_goes_on(monkeypatch):
    monkeypatch.setattr(model_seat, "WAIT_S", 0.01)

    async def nothing(*_: object) -> None:
        await asyncio.Event().wait()

    async def play(seat: ModelSeat) -> None:
        for told in (
            await seat.find_match("casual"),
            await seat.wait_for_turn(),
            await seat.find_match("casual"),
        ):
            assert told["state"] == "finding_match"
        assert told["text"].startswith("There is a match already")

    run(play, nothing)
    assert WAIT_S < LONGEST_CALL_S


def test_a_turn_that_was_missed_is_told():
    async def late(factory: BotFactory, _: Sequence[str], on_result: Callable[[Result], None]) -> None:
        view = GAMES["ugo"].view(GAMES["ugo"].deal(2, bytes(32), {"rounds": 1}), Seat(0))
        bot: Any = factory()
        asking = asyncio.create_task(bot.choose(view))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asking.cancel()
        on_result(Result("matches/a", Seat(0), void_reason="ABORTED"))

    async def play(seat: ModelSeat) -> None:
        told = await seat.find_match()
        while told["state"] != "match_over":
            told = await seat.wait_for_turn()
        assert "The time ran out 1 times" in told["text"]
        assert told["result"]["void_reason"] == "ABORTED"

    run(play, late)


def test_a_refused_move_is_told_and_may_be_tried_again():
    async def refused(*_: object) -> None:
        raise BadTokenError("the token is not known here")

    async def play(seat: ModelSeat) -> None:
        for _ in range(2):
            told = await seat.find_match()
            assert told["state"] == "failed"
            assert told["text"] == "The server does not let you play: the token is not known here"

    run(play, refused)


def test_a_question_that_ends_with_the_link_is_no_missed_turn():
    """Whose token was revoked at its turn was told that the time had run out."""

    async def revoked(factory: BotFactory, *_: object) -> None:
        view = GAMES["ugo"].view(GAMES["ugo"].deal(2, bytes(32), {"rounds": 1}), Seat(0))
        bot: Any = factory()
        asking = asyncio.create_task(bot.choose(view))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.sleep(0)
        raise BadTokenError("the token was revoked")

    async def play(seat: ModelSeat) -> None:
        told = await seat.find_match()
        while told["state"] != "failed":
            told = await seat.wait_for_turn()
        assert told["text"] == "The server does not let you play: the token was revoked"

    run(play, revoked)


def test_a_race_cannot_be_played_by_calls():
    with pytest.raises(UsageError, match="too many moves to list"):
        ModelSeat(KITS["ubongo"], play_here)
