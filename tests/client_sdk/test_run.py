"""Runs, from their arguments to their summary."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest
from doubles.fake_server import FakeServer, Lobby, Referee, serving
from doubles.virtual import in_virtual_time

import seatwise
from seatwise import errors, remote
from seatwise.link import bot_session, lobby_link, question_loop, seat_session
from seatwise.link.lobby_link import SLOW_ANSWER_S
from seatwise.link.wire import GrpcWire
from seatwise.remote import run, run_async


class First(seatwise.Bot):
    """Plays its first card."""

    def choose(self, view: seatwise.View) -> Any:
        return view.legal_cards[0]


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with serving() as fake:
        yield fake


def start(server: FakeServer, factory: Any = First, **others: Any) -> asyncio.Task[Any]:
    return asyncio.create_task(run_async(factory, address=server.address, token="secret", **others))


async def complained(why: str, caplog: pytest.LogCaptureFixture) -> None:
    """The log has it."""
    async with asyncio.timeout(30):
        while why not in caplog.text:  # noqa: ASYNC110  # nobody tells when a line is logged
            await asyncio.sleep(0.01)


async def play_to_the_end(lobby: Lobby, referee: Referee, match: str, **end: Any) -> None:
    """One match in which the bot makes one move."""
    await lobby.offer(match)
    await referee.sat()
    await referee.ask(match=match)
    await referee.accept(await referee.moved(), match=match)
    await referee.finish(match=match, **end)


# How long it runs


async def test_it_ends_after_so_many_matches_and_sums_them_up(server: FakeServer) -> None:
    results: list[seatwise.Result] = []
    task = start(server, matches=2, on_result=results.append)
    lobby = await server.lobby()
    await lobby.offer("a")
    referee = await server.referee()
    await referee.sat()
    await referee.finish(points=(9, 1), match="a")
    await play_to_the_end(lobby, referee, "b", points=(4, 2))
    summary = await task
    assert (summary.matches, summary.mean_points, summary.mean_rank) == (2, 6.5, 1.0)
    assert (summary.ranks, summary.endings) == ({1: 2}, {"COMPLETED": 2})
    assert (summary.moves, summary.failures, summary.voided, summary.left) == (1, 0, 0, 0)
    assert [result.match for result in results] == ["matches/a", "matches/b"]
    assert str(summary).startswith("2 matches: 6.50 points, rank 1.00 on average; 0 failures in 1 moves")
    assert summary.to_json()["ranks"] == {"1": 2}


async def test_it_asks_for_no_more_seats_than_are_wanted(server: FakeServer) -> None:
    task = start(server, matches=3, max_matches=2)
    lobby = await server.lobby()
    assert await lobby.limit() == 2
    await lobby.offer("a")
    await lobby.offer("b")
    referee = await server.referee()
    await referee.sat()
    await referee.sat()
    await referee.finish(match="a")
    await lobby.offer("c")
    assert await lobby.limit() == 0
    await referee.sat()
    await referee.finish(match="b")
    await referee.finish(match="c")
    assert (await task).matches == 3


async def test_a_voided_match_does_not_count(server: FakeServer) -> None:
    task = start(server, matches=1)
    lobby = await server.lobby()
    assert await lobby.limit() == 1
    await lobby.offer("a")
    referee = await server.referee()
    await referee.sat()
    assert await lobby.limit() == 0
    await referee.void(match="a")
    assert await lobby.limit() == 1
    await play_to_the_end(lobby, referee, "b")
    summary = await task
    assert (summary.matches, summary.voided) == (1, 1)


async def test_it_drains_while_the_lobby_is_away(server: FakeServer) -> None:
    task = start(server, matches=1)
    lobby = await server.lobby()
    await lobby.offer("a")
    referee = await server.referee()
    await referee.sat()
    lobby.end("UNAVAILABLE", "SERVER_STOPPING")
    again = await server.lobby()
    assert await again.limit() == 0
    await referee.finish(match="a")
    assert (await task).matches == 1


async def test_it_stays_until_the_seats_that_were_announced_are_offered(server: FakeServer) -> None:
    task = start(server, matches=1, max_matches=2)
    lobby = await server.lobby()
    assert await lobby.limit() == 1
    lobby.pending_seats = 1
    await lobby.offer("a")
    assert await lobby.limit() == 0  # it wants no more matches than this one
    referee = await server.referee()
    await referee.sat()
    await referee.finish(match="a")
    left, _ = await asyncio.wait([task], timeout=2 * SLOW_ANSWER_S)  # one that does not wait leaves at once
    assert not left
    await lobby.offer("b")
    await referee.sat()  # two streams carry the offer and the end
    await referee.finish(match="b")
    lobby.pending_seats = 0
    await lobby.welcome(0)
    assert (await task).matches == 2


async def test_it_stays_while_a_connected_lobby_cannot_confirm_the_limit(server: FakeServer) -> None:
    task = start(server, matches=1, max_matches=2)
    lobby = await server.lobby()
    assert await lobby.limit() == 1
    lobby.can_confirm = False  # its store is away, and may have paired the bot before
    await lobby.offer("a")
    assert await lobby.limit() == 0
    referee = await server.referee()
    await referee.sat()
    await referee.finish(match="a")
    left, _ = await asyncio.wait([task], timeout=2 * SLOW_ANSWER_S)  # one that does not wait leaves at once
    assert not left
    await lobby.offer("b")
    await lobby.welcome(0)
    await referee.sat()
    await referee.finish(match="b")
    assert (await task).matches == 2


async def test_it_finds_another_lobby_before_it_leaves(server: FakeServer) -> None:
    task = start(server, matches=1, max_matches=2)
    lobby = await server.lobby()
    assert await lobby.limit() == 1
    lobby.can_confirm = False
    await lobby.offer("a")
    assert await lobby.limit() == 0
    referee = await server.referee()
    await referee.sat()
    await referee.finish(match="a")
    await asyncio.sleep(SLOW_ANSWER_S)
    lobby.end("UNAVAILABLE", "SERVER_STOPPING")
    again = await server.lobby()
    await again.offer("b")  # it was paired just before
    await referee.sat()
    await referee.finish(match="b")
    assert (await task).matches == 2


async def test_it_does_not_stay_for_ever_where_no_lobby_answers(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Lobby, "can_confirm", False)
    monkeypatch.setattr(lobby_link, "AWAITED_S", 1.5)
    task = start(server, matches=1)
    lobby = await server.lobby()
    await lobby.offer("a")
    referee = await server.referee()
    await referee.sat()
    await referee.finish(match="a")
    assert (await task).matches == 1
    assert "left, although the lobby did not say that it offers no more seats" in caplog.text


async def test_one_line_for_each_match(server: FakeServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "seatwise")
    task = start(server, matches=1)
    lobby = await server.lobby()
    await lobby.limit()
    await lobby.offer("a")
    await (await server.referee()).finish(match="a")
    await task
    assert [record.message for record in caplog.records] == [
        "attending as bots/me/versions/1: queue casual, at most 1 at once",
        "seated in matches/a seat 0 against bots/other/versions/1",
        "matches/a seat 0: rank 1 with 7 points of 7 3; COMPLETED, 0 moves, 0 failures",
        "1 match: 7.00 points, rank 1.00 on average; 0 failures in 0 moves",
    ]


# Signals

SCRIPT = """
import seatwise, sys, time
class First(seatwise.Bot):
    def choose(self, view):
        if len(view.legal_cards) == 1:
            time.sleep(60)
        return view.legal_cards[0]
print(seatwise.run(First, address=sys.argv[1], token="secret"))
"""


@asynccontextmanager
async def script(server: FakeServer, program: str = SCRIPT) -> AsyncIterator[Process]:
    """A bot in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, server.address, stdout=PIPE, stderr=PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_first_signal_finishes_what_is_open(server: FakeServer, number: signal.Signals) -> None:
    async with script(server) as process:
        lobby = await server.lobby()
        await lobby.offer("a")
        referee = await server.referee()
        await referee.sat()
        assert await lobby.limit() == 4
        process.send_signal(number)
        assert await lobby.limit() == 0
        await referee.ask(match="a")
        await referee.accept(await referee.moved(), match="a")
        await referee.finish(match="a")
        out, err = await process.communicate()
        assert process.returncode == 0
        assert out.startswith(b"1 match: 7.00 points")
        assert b"open matches: 1, to be finished first; Ctrl-C again leaves at once" in err
        assert b"matches/a seat 0: rank 1" in err


async def test_the_second_signal_leaves_at_once_whatever_the_bot_does(server: FakeServer) -> None:
    async with script(server) as process:
        lobby = await server.lobby()
        await lobby.offer("a")
        referee = await server.referee()
        await referee.sat()
        await referee.ask(match="a", cards=(1,))
        assert await lobby.limit() == 4
        process.send_signal(signal.SIGINT)
        assert await lobby.limit() == 0
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
        assert process.returncode == 0
        assert b"1 left" in out
        assert b"Traceback" not in err


# What makes no sense


def test_a_missing_token_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEATWISE_TOKEN", raising=False)
    with pytest.raises(errors.MissingTokenError, match="SEATWISE_TOKEN"):
        run(First)


async def test_the_token_may_be_in_the_environment(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEATWISE_TOKEN", "from the environment\n")
    task = asyncio.create_task(run_async(First, address=server.address))
    assert (await server.lobby()).metadata["authorization"] == "Bearer from the environment"
    task.cancel()
    await asyncio.wait({task})


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"game": "chess"}, r"has no method decide\(self, view\)"),  # it may be hosted on the server
        ({"game": "Chess"}, "a game's name has lower-case letters"),
        ({"max_matches": 0}, "max_matches: must be 1 or more"),
        ({"matches": 0}, "matches: must be 1 or more"),
        ({"bot_class": First()}, "give the class First"),
        ({"bot_class": "nosuch"}, "no such sample"),
    ],
)
def test_wrong_arguments_are_told_before_anything_is_sent(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(errors.UsageError, match=text):
        run(**{"bot_class": First, "token": "secret", **arguments})


def test_a_token_that_is_none_is_told() -> None:
    with pytest.raises(errors.BadTokenError, match="copied in full"):
        run(First, token="geh\u00e4im")


async def test_inside_a_loop_the_other_name_is_told() -> None:
    with pytest.raises(errors.UsageError, match="run_async"):
        run(First, token="secret")


async def test_an_offer_of_another_game_ends_the_run(server: FakeServer) -> None:
    task = start(server)
    await (await server.lobby()).offer("a", game="games/ubongo")
    with pytest.raises(errors.WrongGameError, match="'ubongo', and this bot plays 'ugo'"):
        await task


@pytest.mark.parametrize("where", ["__init__", "setup"])
async def test_a_bot_that_cannot_be_made_at_all_ends_the_run(server: FakeServer, where: str) -> None:
    def fail(*_: Any) -> None:
        raise OSError("no model")

    task = start(server, type("Broken", (First,), {where: fail}))
    await (await server.lobby()).offer("a")
    with pytest.raises(errors.BotFailedError, match="no model") as caught:
        await task
    assert isinstance(caught.value.__cause__, OSError)


async def test_later_a_bot_that_cannot_be_made_costs_its_match_only(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    made: list[seatwise.Bot] = []

    class Second(First):
        def __init__(self) -> None:
            made.append(self)
            if len(made) == 2:
                raise OSError("no model")

    task = start(server, Second)
    lobby = await server.lobby()
    await lobby.offer("a")
    referee = await server.referee()
    await referee.sat()
    await lobby.offer("b")
    await complained("no model", caplog)  # bots are made side by side: the third must not be the second
    await lobby.offer("c")
    assert (await referee.sat()).match == "matches/c"
    task.cancel()
    await asyncio.wait({task})


async def test_on_result_may_be_a_coroutine_and_may_fail(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(result: seatwise.Result) -> None:
        raise OSError(f"disk full at {result.match}")

    task = start(server, matches=1, on_result=fail)
    await (await server.lobby()).offer("a")
    await (await server.referee()).finish(match="a")
    assert (await task).matches == 1
    assert "disk full at matches/a" in caplog.text


async def test_behind_a_front_door_every_referee_is_reached_through_it(server: FakeServer) -> None:
    task = start(server, front_door=True)
    await (await server.lobby()).offer("a", address="referee-3.inside:7433")
    assert (await server.referee()).metadata["seatwise-referee"] == "referee-3.inside:7433"
    task.cancel()
    await asyncio.wait({task})


def test_a_queue_may_be_named_without_a_tuple() -> None:
    assert remote._choose_queues("ladders/main", "casual") == ("ladders/main",)


# Bots that do not return


class Hanging(seatwise.Bot):
    """Never returns from its first question."""

    asked = threading.Event()

    def choose(self, view: seatwise.View) -> Any:  # noqa: ARG002
        self.asked.set()
        threading.Event().wait()

    def ended(self, result: seatwise.Result) -> None:
        raise AssertionError(f"not to be called: {result}")


class Deaf(seatwise.Bot):
    """Goes on although its answer is not wanted any more."""

    asked = threading.Event()
    may_end = threading.Event()

    async def choose(self, view: seatwise.View) -> Any:
        self.asked.set()
        while not self.may_end.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.02)
        return view.legal_cards[0]


@pytest.mark.parametrize("factory", [Hanging, Deaf])
async def test_a_bot_that_never_answers_does_not_hide_the_end_of_its_match(
    server: FakeServer, factory: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question_loop, "STUCK_S", 0.05)
    caplog.set_level(logging.INFO, "seatwise")
    task = start(server, factory, matches=1)
    lobby = await server.lobby()
    await lobby.offer("a")
    referee = await server.referee()
    await referee.sat()
    await referee.ask(match="a")
    assert await asyncio.to_thread(factory.asked.wait, 30)
    await referee.finish(match="a")
    async with asyncio.timeout(30):
        summary = await task
    Deaf.may_end.set()
    assert (summary.matches, summary.left) == (1, 0)
    assert "matches/a seat 0: rank 1 with 7 points" in caplog.text
    assert ("the bot has not returned from its method" in caplog.text) == (factory is Hanging)


async def test_a_setup_that_never_returns_does_not_hide_the_end_of_its_match(
    server: FakeServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unready(First):
        def setup(self, offer: seatwise.Offer) -> None:  # noqa: ARG002
            threading.Event().wait()

    monkeypatch.setattr(question_loop, "STUCK_S", 0.05)
    monkeypatch.setattr(seat_session, "CLOSED_WAIT_S", 0.05)
    monkeypatch.setattr(seat_session, "NO_WORD_S", 0.05)
    task = start(server, Unready, matches=1)
    lobby = await server.lobby()
    await lobby.offer("a")
    await lobby.close("a")
    async with asyncio.timeout(30):
        assert (await task).unknown == 1
    assert "setup() has not returned although the match is over" in caplog.text


BLOCKING = """
import seatwise, sys, time
class Blocking(seatwise.Bot):
    async def choose(self, view):
        while True:
            BODY
seatwise.run(Blocking, address=sys.argv[1], token="secret")
"""


@pytest.mark.parametrize("body", ["pass", "time.sleep(600)"])
async def test_a_coroutine_that_never_awaits_is_named_and_the_second_signal_ends_it(
    server: FakeServer, body: str
) -> None:
    async with script(server, BLOCKING.replace("BODY", body)) as process:
        lobby = await server.lobby()
        await lobby.offer("a")
        referee = await server.referee()
        await referee.sat()
        await referee.ask(match="a")
        assert process.stderr is not None
        async with asyncio.timeout(30):
            while b"choose has not let the event loop run" not in (line := await process.stderr.readline()):
                assert line, "it ended without the warning"
        assert b"(<string>, line " in line
        process.send_signal(signal.SIGINT)
        await asyncio.sleep(
            0.5
        )  # as people do: Python's sleep misses a second signal that comes while it handles the first
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            assert await process.wait() != 0


async def test_sigterm_ends_a_bot_whose_server_is_gone() -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving())
        async with script(server) as process:
            await (await server.lobby()).offer("a")
            await (await server.referee()).sat()
            await stack.aclose()
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(30):
                out, err = await process.communicate()
            assert b"open matches: 1, left, because no server answers" in err
            assert b"1 left" in out


@in_virtual_time
async def test_a_server_is_gone_when_neither_lobby_nor_referee_has_sent_anything_for_a_while() -> None:
    plan = bot_session.RunPlan(First, "ugo", ("casual",), 1, None, None)
    session = bot_session.BotSession(plan, GrpcWire("localhost:1", "secret"))
    referee = SimpleNamespace(heard_s=0.0)
    session._links["referee"] = referee  # type: ignore[assignment]
    leaving = asyncio.create_task(session._leave_dead_server())
    for _ in range(30):  # a minute of pings
        referee.heard_s = asyncio.get_running_loop().time()
        await asyncio.sleep(2)
    assert not leaving.done()
    await asyncio.sleep(2)
    assert leaving.done()


NOISY = """
import asyncio, contextlib, sys
import seatwise
from seatwise.remote import run_async
import grpc

async def call():
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    channel = grpc.aio.secure_channel(f"127.0.0.1:{port}", grpc.ssl_channel_credentials())
    with contextlib.suppress(grpc.aio.AioRpcError):
        await channel.unary_unary("/a/b")(b"", timeout=20)
    await server.stop(None)

asyncio.run(call())
"""


async def test_the_log_lines_of_grpc_stay_out_of_the_output_of_a_bot() -> None:
    """A failed TLS handshake is one of the things that its core logs by itself."""
    environment = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", NOISY, stdout=PIPE, stderr=PIPE, env=environment
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert (process.returncode, out, err) == (0, b"", b"")
