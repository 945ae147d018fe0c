"""How the outcomes of a bot's methods come from their threads to the event loop."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from seatwise.link import bot_runner
from seatwise.link.bot_runner import QUICK_CALLS, BotThread, ThreadOutcomes
from seatwise.link.question_loop import QuestionLoop


class Woken:
    """Counts how often a loop is woken, and by what."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []
        self.is_closed = False

    def call_soon_threadsafe(self, function: Callable[[], None]) -> None:
        """As that of an event loop."""
        if self.is_closed:
            raise RuntimeError("Event loop is closed")
        self.calls.append(function)


async def test_outcomes_that_come_together_wake_the_loop_once_and_none_is_left() -> None:
    loop: Any = Woken()
    outcomes = ThreadOutcomes(loop)
    futures = [asyncio.get_running_loop().create_future() for _ in range(4)]
    for number in (0, 1):
        outcomes.post_outcome(futures[number], number, None)
    assert len(loop.calls) == 1
    loop.calls.pop()()
    for number in (2, 3):
        outcomes.post_outcome(futures[number], number, None)
    assert len(loop.calls) == 1
    loop.calls.pop()()
    assert [future.result() for future in futures] == [0, 1, 2, 3]


async def test_an_outcome_that_nobody_waits_for_is_dropped() -> None:
    loop: Any = Woken()
    outcomes = ThreadOutcomes(loop)
    unwanted = asyncio.get_running_loop().create_future()
    unwanted.cancel()
    outcomes.post_outcome(unwanted, 1, None)
    loop.calls.pop()()
    loop.is_closed = True
    outcomes.post_outcome(unwanted, 1, None)


async def test_an_error_in_the_thread_is_raised_by_the_future() -> None:
    thread = BotThread("matches/m/0")
    try:
        with pytest.raises(ZeroDivisionError):
            await thread.call_function(divmod, 1, 0)
        with pytest.raises(RuntimeError, match="StopIteration"):  # no future takes it as it is
            await thread.call_function(next, iter(()))
        thread.post_function(lambda: divmod(1, 0))  # nobody waits for it, and the thread goes on
        assert await thread.call_function(divmod, 7, 2) == (3, 1)
    finally:
        thread.stop()


async def test_the_loop_waits_for_a_bot_that_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bot_runner, "QUICK_S", 30.0)
    monkeypatch.setattr(bot_runner, "LONGEST_WAIT_S", 30.0)
    thread = BotThread("matches/m/0")
    try:
        for _ in range(QUICK_CALLS):
            future = thread.call_function(divmod, 7, 2)
            assert not future.done()  # not known to be quick yet
            assert await future == (3, 1)
        assert thread.call_function(divmod, 9, 2).result() == (4, 1)
        assert isinstance(thread.call_function(divmod, 1, 0).exception(), ZeroDivisionError)
    finally:
        thread.stop()


async def test_a_bot_that_is_quick_no_more_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bot_runner, "QUICK_S", 30.0)
    thread, go_on = BotThread("matches/m/0"), threading.Event()
    try:
        for _ in range(QUICK_CALLS):
            await thread.call_function(divmod, 7, 2)
        slow = thread.call_function(go_on.wait, 30)
        assert not slow.done()
        after = thread.call_function(divmod, 9, 2)
        go_on.set()
        async with asyncio.timeout(30):
            assert await slow
            assert await after == (4, 1)
    finally:
        go_on.set()
        thread.stop()


async def test_an_answer_to_a_question_that_is_over_is_not_waited_for() -> None:
    """It came in the same moment as the end of the question, so it could not be cancelled any more."""
    unused: Any = None
    offer: Any = SimpleNamespace(match="matches/m", seat=0)
    questions = QuestionLoop(unused, offer, unused, unused, unused, unused)
    answer = asyncio.get_running_loop().create_future()
    answer.set_result(late := asyncio.sleep(3600))
    over: Any = object()
    questions._read_answer(over, answer)
    assert questions._thinking is None
    assert inspect.getcoroutinestate(late) == inspect.CORO_CLOSED
