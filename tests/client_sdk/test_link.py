"""The link of a bot to its server, against a server that does what a test tells it to."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from doubles.fake_server import ME, OTHER, FakeServer, Lobby, Referee, serving, serving_web_sockets

import seatwise
from seatwise import errors
from seatwise.link.backoff import Backoff
from seatwise.remote import run_async
from seatwise.v1.play_service_pb2 import MatchEnded

Serve = Callable[..., AbstractAsyncContextManager[FakeServer]]


class Lowest(seatwise.Bot):
    """Plays its lowest card, and remembers all that is done to it."""

    made: list[Lowest]

    def __init_subclass__(cls) -> None:
        cls.made = []

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.results: list[seatwise.Result] = []
        self.made.append(self)

    def choose(self, view: seatwise.View) -> Any:
        self.asked.append(view)
        return self.answer(view)

    def answer(self, view: seatwise.View) -> Any:
        return view.legal_cards[0]

    def ended(self, result: seatwise.Result) -> None:
        self.results.append(result)


def bot_class(**methods: Callable[..., Any]) -> type[Lowest]:
    """A class of its own for each test, so that each counts its own objects."""
    return type("Mine", (Lowest,), methods)


@pytest.fixture(params=[serving, serving_web_sockets], ids=["grpc", "websocket"])
def serve(request: pytest.FixtureRequest) -> Serve:
    """Starts a server of one transport."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
async def server(serve: Serve) -> AsyncIterator[FakeServer]:
    async with serve() as fake:
        yield fake


def at(server: FakeServer) -> dict[str, str]:
    """The fields of an offer that name this server."""
    if server.address.startswith("ws://"):
        return {"address": "nowhere:1", "ws_address": server.address}
    return {"address": server.address, "ws_address": "ws://nowhere:1"}


@asynccontextmanager
async def running(factory: Any, server: FakeServer, **others: Any) -> AsyncIterator[asyncio.Task[Any]]:
    """A bot that runs beside the test."""
    task = asyncio.create_task(run_async(factory, address=server.address, token="secret", **others))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


@asynccontextmanager
async def seated(factory: Any, server: FakeServer, **offered: Any) -> AsyncIterator[tuple[Lobby, Referee]]:
    """A bot that has sat down at matches/m."""
    async with running(factory, server):
        lobby = await server.lobby()
        await lobby.offer(**offered)
        referee = await server.referee()
        await referee.sat()
        yield lobby, referee


async def until(condition: Callable[[], bool]) -> None:
    """Waits for what happens without a message."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110  # threads set no asyncio.Event
            await asyncio.sleep(0.005)


# Playing


async def test_a_bot_attends_sits_moves_and_is_told_the_end(server: FakeServer) -> None:
    mine = bot_class()
    async with running(mine, server, queues=("casual", "fast"), max_matches=3) as run:
        lobby = await server.lobby()
        request = await lobby.next()
        assert (list(request.queues), request.max_matches) == (["casual", "fast"], 3)
        assert lobby.metadata["authorization"] == "Bearer secret"
        await lobby.offer()
        referee = await server.referee()
        assert referee.metadata["authorization"] == "Bearer secret"
        assert referee.metadata["seatwise-referee"] == server.address
        sat = await referee.sat()
        assert (sat.match, sat.seat, len(sat.sit.nonce), sat.sit.receipt) == ("matches/m", 0, 32, b"")
        await referee.ask(prompt=1, cards=(5, 6))
        moved = await referee.moved()
        assert (moved.match, moved.seat, moved.submit_move.prompt, moved.submit_move.ugo.play) == (
            "matches/m", 0, 1, 5,
        )  # fmt: skip
        await referee.accept(moved)
        await referee.finish()
        await until(lambda: len(mine.made[0].results) == 1)
        result = mine.made[0].results[0]
        assert (result.match, result.points, result.ranks) == ("matches/m", (7, 3), (1, 2))
        assert (mine.made[0].name, mine.made[0].match) == (ME, "matches/m")
        assert not run.done()


async def test_a_bot_that_is_taken_off_a_ladder_is_told_why_and_stays(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(bot_class(), server, queues=("ladders/main",)) as run:
        lobby = await server.lobby()
        await lobby.take_off("ladders/main", "forfeited 3 matches in a row")
        await until(lambda: "off ladders/main: forfeited 3 matches in a row" in caplog.text)
        await lobby.offer()
        await (await server.referee()).sat()
        assert not run.done()


async def test_a_bot_that_is_off_the_queues_tells_its_author_what_to_do_and_waits(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(bot_class(), server, queues=("casual", "casual-2")) as run:
        lobby = await server.lobby()
        for queue in ("casual", "casual-2"):
            await lobby.take_off(queue, "it did not sit down in matches/m", "NO_SHOWS")
        await until(lambda: "off casual-2: it did not sit down in matches/m" in caplog.text)
        assert caplog.text.count("Is setup() slower than offer.time_control.setup_ms?") == 1
        assert "back in queue" not in caplog.text
        caplog.set_level("INFO", "seatwise")
        await lobby.place("casual-2", 1)
        await until(lambda: "back in queue casual-2" in caplog.text)
        await lobby.offer()
        await (await server.referee()).sat()
        assert not run.done()


async def test_a_bot_that_forfeits_is_told_who_lets_it_back(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(bot_class(), server, queues=("ladders/main",)):
        lobby = await server.lobby()
        await lobby.limit()
        await lobby.take_off("ladders/main", "forfeited 3 matches in a row", "FORFEITS")
        await until(
            lambda: (
                "`seatwise ladder reinstate main me/versions/1` readmits it with its own token" in caplog.text
            )
        )


async def test_a_bot_is_told_its_time(server: FakeServer) -> None:
    mine = bot_class(answer=lambda self, view: view.legal_cards[self.time.bank_ms - 500])
    async with seated(mine, server) as (_, referee):
        await referee.ask(cards=(4, 5, 6))
        assert (await referee.moved()).submit_move.ugo.play == 6


async def test_two_matches_share_one_stream_and_have_a_bot_each(server: FakeServer) -> None:
    mine = bot_class()
    async with seated(mine, server) as (lobby, referee):
        await lobby.offer("n", seat=1)
        sat = await referee.sat()
        assert (sat.match, sat.seat) == ("matches/n", 1)
        await referee.ask(prompt=1, cards=(4,))
        await referee.ask(prompt=3, cards=(9,), match="n", seat=1)
        moves = [await referee.moved(), await referee.moved()]
        found = {(move.match, move.submit_move.prompt, move.submit_move.ugo.play) for move in moves}
        assert found == {("matches/m", 1, 4), ("matches/n", 3, 9)}
        assert len(mine.made) == 2
        assert not server.has_news


async def test_a_ping_is_answered_while_a_bot_thinks(server: FakeServer) -> None:
    go_on = threading.Event()
    mine = bot_class(answer=lambda _, view: go_on.wait(5) and view.legal_cards[0])
    async with seated(mine, server) as (_, referee):
        await referee.ask()
        await until(lambda: bool(mine.made[0].asked))
        await referee.say("", 0, 0, ping={"number": 17})
        pong = await referee.next()
        assert pong.pong.number == 17
        assert not go_on.is_set()
        go_on.set()
        await referee.moved()


async def test_a_coroutine_is_asked_in_the_loop_and_stopped_when_its_time_is_over(server: FakeServer) -> None:
    threads: list[Any] = []
    stopped = asyncio.Event()

    async def choose(_: Lowest, view: seatwise.View) -> Any:
        threads.append(threading.current_thread())
        if len(threads) == 1:
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
        return view.legal_cards[0]

    mine = bot_class(choose=choose)
    async with seated(mine, server) as (_, referee):
        await referee.ask(prompt=1)
        await until(lambda: bool(threads))
        await referee.ask(prompt=2)
        assert (await referee.moved()).submit_move.prompt == 2
        assert stopped.is_set()
        assert set(threads) == {threading.main_thread()}


async def test_a_late_answer_is_dropped_and_a_bot_is_never_asked_twice_at_once(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    go_on = threading.Event()
    abreast: list[int] = [0, 0]

    def answer(_: Lowest, view: seatwise.View) -> Any:
        abreast[0] += 1
        abreast[1] = max(abreast)
        go_on.wait(5)
        abreast[0] -= 1
        return view.legal_cards[0]

    mine = bot_class(answer=answer)
    async with seated(mine, server) as (_, referee):
        await referee.ask(prompt=1)
        await until(lambda: bool(mine.made[0].asked))
        await referee.ask(prompt=2)
        await until(lambda: "out of time in choose" in caplog.text)
        await referee.ask(prompt=3, cards=(8,))
        await referee.say("", 0, 0, ping={"number": 1})
        await referee.next()
        go_on.set()
        moved = await referee.moved()
        assert (moved.submit_move.prompt, moved.submit_move.ugo.play) == (3, 8)
        assert (len(mine.made[0].asked), abreast) == (2, [0, 1])


async def test_setups_run_side_by_side_and_before_the_first_sit(server: FakeServer) -> None:
    both = threading.Barrier(2, timeout=5)
    mine = bot_class(setup=lambda *_: both.wait())
    async with running(mine, server):
        lobby = await server.lobby()
        await lobby.offer("m")
        await lobby.offer("n")
        referee = await server.referee()
        assert {(await referee.sat()).match, (await referee.sat()).match} == {"matches/m", "matches/n"}


# Losing links


async def lose(referee: Referee, server: FakeServer, gone: str) -> Referee:
    """Breaks the link in one way or another; the bot comes back."""
    if gone == "peace":
        referee.end()
    else:
        referee.end(gone, "SERVER_STOPPING")
    return await server.referee()


GONE = ["peace", "UNAVAILABLE", "INTERNAL", "RESOURCE_EXHAUSTED", "NOT_FOUND"]


@pytest.mark.parametrize("gone", GONE)
async def test_a_lost_link_is_made_again_with_the_same_bot(server: FakeServer, gone: str) -> None:
    mine = bot_class()
    async with seated(mine, server) as (_, referee):
        await referee.show(receipt=b"r1")
        await until(lambda: referee.heard == 0)
        await referee.ask(prompt=4)
        await referee.moved()
        again = await lose(referee, server, gone)
        sat = await again.sat()
        assert sat.sit.receipt == b"asked 4"
        assert len(mine.made) == 1


async def test_the_nonce_stays_the_same(server: FakeServer) -> None:
    async with running(bot_class(), server):
        await (await server.lobby()).offer()
        referee = await server.referee()
        nonces = [(await referee.sat()).sit.nonce]
        referee = await lose(referee, server, "UNAVAILABLE")
        nonces.append((await referee.sat()).sit.nonce)
        assert nonces[0] == nonces[1]


async def test_link_lost_in_set_up(server: FakeServer) -> None:
    go_on = threading.Event()
    mine = bot_class(setup=lambda *_: go_on.wait(5))
    async with running(mine, server):
        await (await server.lobby()).offer()
        referee = await lose(await server.referee(), server, "UNAVAILABLE")
        assert referee.heard == 0
        go_on.set()
        await referee.sat()
        assert len(mine.made) == 1


async def test_link_lost_while_the_bot_thinks(server: FakeServer) -> None:
    go_on = threading.Event()
    mine = bot_class(answer=lambda _, view: go_on.wait(5) and view.legal_cards[0])
    async with seated(mine, server) as (_, referee):
        await referee.ask(prompt=1)
        await until(lambda: bool(mine.made[0].asked))
        again = await lose(referee, server, "UNAVAILABLE")
        await again.sat()
        await again.ask(prompt=1)
        go_on.set()
        assert (await again.moved()).submit_move.prompt == 1
        assert len(mine.made[0].asked) == 1


async def test_an_answer_found_while_there_is_no_link_is_said_on_the_next(server: FakeServer) -> None:
    go_on, has_answered = threading.Event(), threading.Event()

    def answer(_: Lowest, view: seatwise.View) -> Any:
        go_on.wait(5)
        has_answered.set()
        return view.legal_cards[0]

    mine = bot_class(answer=answer)
    async with seated(mine, server) as (_, referee):
        await referee.ask(prompt=1)
        await until(lambda: bool(mine.made[0].asked))
        referee.end()
        await referee.is_gone.wait()
        go_on.set()
        await until(has_answered.is_set)
        again = await server.referee()
        await again.sat()
        await again.ask(prompt=1)
        assert (await again.moved()).submit_move.prompt == 1


async def test_an_unacknowledged_move_is_sent_again_under_the_same_request_id(server: FakeServer) -> None:
    mine = bot_class()
    async with seated(mine, server) as (_, referee):
        await referee.ask(prompt=1)
        first = await referee.moved()
        again = await lose(referee, server, "UNAVAILABLE")
        await again.sat()
        await again.ask(prompt=1)
        assert await again.moved() == first
        assert len(mine.made[0].asked) == 1


async def test_a_question_shown_twice_on_one_link_is_answered_once(server: FakeServer) -> None:
    async with seated(bot_class(), server) as (_, referee):
        await referee.ask(prompt=1)
        await referee.moved()
        await referee.ask(prompt=1)
        await referee.say("", 0, 0, ping={"number": 1})
        assert (await referee.next()).HasField("pong")


async def test_a_move_that_was_taken_before_the_link_broke_is_not_sent_again(server: FakeServer) -> None:
    async with seated(bot_class(), server) as (_, referee):
        await referee.ask(prompt=1)
        first = await referee.moved()
        again = await lose(referee, server, "UNAVAILABLE")
        await again.sat()
        await again.ask(prompt=5)
        second = await again.moved()
        assert second.submit_move.prompt == 5
        assert second.submit_move.request_id != first.submit_move.request_id


async def test_the_receipt_of_an_accepted_move_is_sent_with_the_next_sit(server: FakeServer) -> None:
    async with seated(bot_class(), server) as (_, referee):
        await referee.ask(prompt=1)
        await referee.accept(await referee.moved(), receipt=b"later")
        again = await lose(referee, server, "UNAVAILABLE")
        assert (await again.sat()).sit.receipt == b"later"


async def test_a_server_that_is_down_is_waited_for(serve: Serve) -> None:
    mine = bot_class()
    async with serve() as first:
        port = int(first.address.rpartition(":")[2])
        run = asyncio.create_task(run_async(mine, address=first.address, token="secret"))
        lobby = await first.lobby()
        await lobby.offer()
        referee = await first.referee()
        await referee.sat()
        await referee.ask(prompt=1)
        move = await referee.moved()
    await asyncio.sleep(0.3)
    async with serve(port) as second:
        await (await second.lobby()).offer()
        again = await second.referee()
        await again.sat()
        await again.ask(prompt=1)
        assert await again.moved() == move
        assert len(mine.made) == 1
        run.cancel()
        await asyncio.wait({run})


async def test_the_lobby_is_attended_again_with_the_same_limit(server: FakeServer) -> None:
    async with running(bot_class(), server, max_matches=2):
        lobby = await server.lobby()
        lobby.end("UNAVAILABLE", "SERVER_STOPPING")
        request = await (await server.lobby()).next()
        assert (list(request.queues), request.max_matches) == (["casual"], 2)


# Takeover


async def test_a_higher_epoch_moves_the_seat_to_the_new_referee(serve: Serve, server: FakeServer) -> None:
    mine = bot_class()
    async with serve() as elsewhere, seated(mine, server) as (lobby, referee):
        await referee.ask(prompt=1)
        move = await referee.moved()
        await lobby.offer(epoch=2, **at(elsewhere))
        new = await elsewhere.referee()
        assert new.metadata["seatwise-referee"] == elsewhere.address
        await new.sat()
        await referee.ask(prompt=9, epoch=1)
        await new.ask(prompt=1, epoch=2)
        assert await new.moved() == move
        assert referee.heard == 0
        assert len(mine.made) == 1


async def test_a_message_of_an_older_epoch_is_dropped(server: FakeServer) -> None:
    mine = bot_class()
    async with seated(mine, server) as (_, referee):
        await referee.show(epoch=3)
        await referee.ask(prompt=1, epoch=2)
        await referee.finish(epoch=2)
        await referee.ask(prompt=7, epoch=3)
        assert (await referee.moved()).submit_move.prompt == 7
        assert len(mine.made[0].asked) == 1
        assert not mine.made[0].results


async def test_a_message_without_an_owner_is_heard_in_every_epoch(server: FakeServer) -> None:
    mine = bot_class()
    async with seated(mine, server) as (_, referee):
        await referee.show(epoch=3)
        await referee.finish(epoch=0)
        await until(lambda: bool(mine.made[0].results))


async def test_an_older_offer_is_dropped_and_a_repeated_one_changes_nothing(
    serve: Serve, server: FakeServer
) -> None:
    mine = bot_class()
    async with serve() as elsewhere, seated(mine, server) as (lobby, referee):
        await referee.show(epoch=2)
        await until(lambda: referee.heard == 0)
        await lobby.offer(epoch=1, **at(elsewhere))
        await lobby.offer(epoch=1)
        await referee.ask(prompt=1, epoch=2)
        await referee.moved()
        assert not elsewhere.has_news
        assert len(mine.made) == 1


async def test_the_same_referee_with_a_higher_epoch_is_sat_down_at_again(server: FakeServer) -> None:
    async with seated(bot_class(), server) as (lobby, referee):
        await referee.ask(prompt=1)
        move = await referee.moved()
        await lobby.offer(epoch=2)
        await referee.sat()
        await referee.ask(prompt=1, epoch=2)
        assert await referee.moved() == move


async def test_an_offer_of_a_match_that_is_over_makes_no_second_bot(server: FakeServer) -> None:
    mine = bot_class()
    async with seated(mine, server) as (lobby, referee):
        await referee.finish()
        await until(lambda: bool(mine.made[0].results))
        await lobby.offer(epoch=2)
        await lobby.offer("n")
        assert (await referee.sat()).match == "matches/n"
        assert [bot.match for bot in mine.made] == ["matches/m", "matches/n"]


async def test_a_match_that_is_offered_again_after_its_end_is_shown_the_receipt_of_the_end(
    server: FakeServer,
) -> None:
    mine = bot_class()
    async with seated(mine, server) as (lobby, referee):
        await referee.say(match_ended=MatchEnded(void_reason="ABORTED", receipt=b"the end"))
        await until(lambda: bool(mine.made[0].results))
        await lobby.offer(epoch=2)
        assert (await referee.sat()).sit.receipt == b"the end"
        await referee.void(epoch=2)
        await lobby.offer("n")
        assert (await referee.sat()).match == "matches/n"
        assert len(mine.made[0].results) == 1


LIMITS = {"free_ms": {"card": 1000, "arrange": 1000}, "max_strikes": 3, "max_rejections": 3}
OFFERED: dict[str, Any] = {
    "match": "matches/good",
    "seat": 1,
    "epoch": 1,
    "bots": [OTHER, ME],
    "game": "games/ugo",
    "commitment": bytes(32),
    "time_control": LIMITS,
}
MALFORMED: dict[str, dict[str, Any]] = {
    "no match": {"match": ""},
    "a match that is no name": {"match": "good"},
    "a match without a name": {"match": "matches/"},
    "a match that moves the cursor": {"match": "matches/\x1b[2J"},
    "a long match": {"match": "matches/" + "m" * 200},
    "a negative seat": {"seat": -1},
    "a seat that is too high": {"seat": 2},
    "no bots": {"bots": []},
    "one bot": {"bots": [ME], "seat": 0},
    "more bots than the game has seats": {"bots": [OTHER, ME, OTHER, OTHER, OTHER]},
    "a bot that is no name": {"bots": ["bots/\n", ME]},
    "no game": {"game": ""},
    "a game that is no name": {"game": "games/\n"},
    "no commitment": {"commitment": b""},
    "a long commitment": {"commitment": bytes(33)},
    "no time control": {"time_control": None},
    "no strikes": {"time_control": {**LIMITS, "max_strikes": 0}},
    "a negative limit": {"time_control": {**LIMITS, "setup_ms": -1}},
    "no free time": {"time_control": {**LIMITS, "free_ms": {"card\n": 0}}},
    "no epoch": {"epoch": 0},
    "a negative epoch": {"epoch": -1},
    "an address over two lines": {"address": "a\n:1", "ws_address": "ws://a\n:1"},
    "an address with a space": {"address": "a b:1", "ws_address": "ws://a b:1"},
    "an address that is not ASCII": {"address": "\xfc:1", "ws_address": "ws://\xfc:1"},
    "a long address": {"address": "a" * 70_000, "ws_address": "ws://" + "a" * 70_000},
}
"""Fields of an offer that are missing or wrong."""


@pytest.mark.parametrize("wrong", MALFORMED.values(), ids=MALFORMED)
async def test_a_malformed_offer_is_told_in_a_sentence_and_the_bot_goes_on(
    server: FakeServer, caplog: pytest.LogCaptureFixture, wrong: dict[str, Any]
) -> None:
    async with running(bot_class(), server):
        lobby = await server.lobby()
        await lobby.offer_fields(**{**OFFERED, "match": "matches/bad", **at(server), **wrong})
        await lobby.offer_fields(**OFFERED, **at(server))
        assert (await (await server.referee()).sat()).match == "matches/good"
    [told] = [each.message for each in caplog.records if each.levelno >= logging.WARNING]
    assert told.startswith("the lobby has sent a malformed offer: ")
    assert told.endswith("The seat is not taken; tell its operator")
    assert told.isprintable()
    assert len(told) < 500


async def test_a_closed_seat_asks_for_the_last_word(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatwise.link.seat_session.CLOSED_WAIT_S", 0.05)
    mine = bot_class()
    async with seated(mine, server) as (lobby, referee):
        await lobby.close()
        await referee.sat()
        await referee.finish(epoch=0)
        await until(lambda: bool(mine.made[0].results))


async def test_without_a_last_word_the_match_is_over_all_the_same(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatwise.link.seat_session.CLOSED_WAIT_S", 0.02)
    monkeypatch.setattr("seatwise.link.seat_session.NO_WORD_S", 0.02)
    async with running(bot_class(), server, matches=1) as run:
        lobby = await server.lobby()
        await lobby.offer()
        await (await server.referee()).sat()
        await lobby.close()
        summary = await run
        assert (summary.matches, summary.unknown) == (0, 1)


async def test_a_seat_that_is_closed_by_mistake_plays_on(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatwise.link.seat_session.CLOSED_WAIT_S", 0.02)
    monkeypatch.setattr("seatwise.link.seat_session.NO_WORD_S", 0.1)
    mine = bot_class()
    async with seated(mine, server) as (lobby, referee):
        await lobby.close()
        await referee.sat()
        await referee.show()
        await asyncio.sleep(0.3)
        await referee.ask(prompt=1)
        await referee.accept(await referee.moved())
        await referee.finish()
        await until(lambda: bool(mine.made[0].results))


# Ends


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        ("ABORTED", "REPLACED", errors.ReplacedError),
        ("UNAUTHENTICATED", "TOKEN_REVOKED", errors.BadTokenError),
        ("PERMISSION_DENIED", "NOT_ALLOWED", errors.NotAllowedError),
    ],
)
@pytest.mark.parametrize("where", ["lobby", "referee"])
async def test_some_ends_are_final(
    server: FakeServer, code: str, reason: str, kind: type[Exception], where: str
) -> None:
    async with running(bot_class(), server) as run:
        lobby = await server.lobby()
        await lobby.offer()
        referee = await server.referee()
        await referee.sat()
        (lobby if where == "lobby" else referee).end(code, reason)
        with pytest.raises(kind, match=f"so it is.*{reason}"):
            await run
        assert not server.has_news


async def test_a_queue_that_does_not_exist_is_not_asked_for_again(server: FakeServer) -> None:
    async with running(bot_class(), server, queues=("nosuch",)) as run:
        lobby = await server.lobby()
        await lobby.limit()  # gRPC loses the status of a call that ends while its first message is written
        lobby.end("NOT_FOUND", "NOT_FOUND")
        with pytest.raises(errors.NotFoundError):
            await run


async def test_a_seed_that_was_not_committed_to_is_complained_of(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    mine = bot_class()
    async with seated(mine, server) as (_, referee):
        await referee.finish(seed=bytes(32))
        await until(lambda: bool(mine.made[0].results))
        assert "not the one that the offer was committed to" in caplog.text


# The bot's own faults


def fail(error: BaseException) -> Callable[..., Any]:
    def answer(self: Lowest, view: seatwise.View) -> Any:
        if len(self.asked) == 1:
            raise error
        return view.legal_cards[0]

    return answer


@pytest.mark.parametrize("error", [ZeroDivisionError("oh"), StopIteration(), SystemExit(3)])
async def test_an_exception_costs_one_move(
    server: FakeServer, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    mine = bot_class(answer=fail(error))
    async with seated(mine, server) as (_, referee):
        await referee.ask(prompt=1)
        await until(lambda: type(error).__name__ in caplog.text)
        assert "test_link.py" in caplog.text
        await referee.ask(prompt=1)
        await referee.ask(prompt=2)
        assert (await referee.moved()).submit_move.prompt == 2
        assert len(mine.made[0].asked) == 2


async def test_an_answer_that_is_no_legal_move_may_be_mended(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    answers = iter(["nonsense", None])
    mine = bot_class(answer=lambda _, view: next(answers, view.legal_cards[0]))
    async with seated(mine, server) as (_, referee):
        await referee.ask(prompt=1)
        await referee.moved()
        assert len(mine.made[0].asked) == 3
        assert "must return one of view.legal_cards" in caplog.text


async def test_the_same_wrong_answer_is_not_asked_for_a_third_time(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    mine = bot_class(answer=lambda self, view: None if len(self.asked) < 3 else view.legal_cards[0])
    async with seated(mine, server) as (_, referee):
        await referee.ask(prompt=1)
        await until(lambda: "not asked again" in caplog.text)
        await referee.ask(prompt=2)
        assert (await referee.moved()).submit_move.prompt == 2


async def test_an_illegal_move_is_shown_and_the_bot_asked_again_a_few_times(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    mine = bot_class(answer=lambda self, view: view.legal_cards[len(self.asked) % 3])
    async with seated(mine, server) as (_, referee):
        await referee.ask(prompt=1)
        ids = set()
        for _ in range(3):
            move = await referee.moved()
            ids.add(move.submit_move.request_id)
            await referee.reject(move, "ILLEGAL")
        await until(lambda: "not asked again" in caplog.text)
        assert "because [ILLEGAL]" in caplog.text
        assert (len(ids), len(mine.made[0].asked)) == (3, 3)


async def test_the_last_illegal_move_before_a_forfeit_is_not_made(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    mine = bot_class(answer=lambda self, view: view.legal_cards[len(self.asked) % 3])
    async with seated(mine, server, max_rejections=3) as (_, referee):
        await referee.ask(prompt=1)
        await referee.reject(await referee.moved(), "ILLEGAL")
        await referee.reject(await referee.moved(), "ILLEGAL")
        await until(lambda: "not asked again" in caplog.text)
        assert len(mine.made[0].asked) == 2


@pytest.mark.parametrize("reason", ["STALE", "TOO_LATE", "NOT_ASKED", "MALFORMED", "WRONG_GAME", 99])
async def test_other_rejections_cost_the_move_and_nothing_else(server: FakeServer, reason: int | str) -> None:
    mine = bot_class()
    async with seated(mine, server) as (_, referee):
        await referee.ask(prompt=1)
        await referee.reject(await referee.moved(), reason)
        await referee.ask(prompt=2)
        assert (await referee.moved()).submit_move.prompt == 2
        assert len(mine.made[0].asked) == 2


@pytest.mark.parametrize("reason", ["NOT_SEATED", "NOT_HERE", "MATCH_OVER"])
async def test_some_rejections_are_mended_by_sitting_down_again(server: FakeServer, reason: str) -> None:
    async with seated(bot_class(), server) as (_, referee):
        await referee.ask(prompt=1)
        move = await referee.moved()
        await referee.reject(move, reason)
        await referee.sat()
        await referee.ask(prompt=1)
        assert await referee.moved() == move


async def test_too_many_means_later(server: FakeServer) -> None:
    async with seated(bot_class(), server) as (_, referee):
        await referee.ask(prompt=1)
        move = await referee.moved()
        await referee.reject(move, "TOO_MANY")
        assert await referee.moved() == move


async def test_a_seat_that_is_not_ours_is_left(server: FakeServer) -> None:
    async with running(bot_class(), server, matches=1) as run:
        await (await server.lobby()).offer()
        referee = await server.referee()
        await referee.reject(await referee.sat(), "NOT_YOUR_SEAT")
        assert (await run).unknown == 1


async def test_a_match_may_end_while_the_bot_thinks(server: FakeServer) -> None:
    go_on = threading.Event()
    mine = bot_class(answer=lambda _, view: go_on.wait(5) and view.legal_cards[0])
    async with running(mine, server, matches=1) as run:
        await (await server.lobby()).offer()
        referee = await server.referee()
        await referee.sat()
        await referee.ask()
        await until(lambda: bool(mine.made[0].asked))
        await referee.finish()
        await referee.say("", 0, 0, ping={"number": 1})
        await referee.next()
        go_on.set()
        assert (await run).matches == 1
        assert len(mine.made[0].results) == 1


# Waits


def test_waits_grow_to_a_bound_and_are_drawn_in_full() -> None:
    longest = Backoff(first_s=0.1, longest_s=2.0, chance=lambda: 1.0)
    assert [round(longest.next_s(), 3) for _ in range(7)] == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    shortest = Backoff(chance=lambda: 0.0)
    assert [shortest.next_s() for _ in range(5)] == [0.0] * 5
    longest.reset()
    assert longest.next_s() == 0.1


def test_two_bots_do_not_come_back_at_the_same_moment() -> None:
    waits = [Backoff().next_s() for _ in range(100)]
    assert len(set(waits)) == 100
    assert 0.0 <= min(waits) < 0.02 < 0.08 < max(waits) <= 0.1


def test_a_full_server_is_given_the_time_it_asks_for() -> None:
    full = errors.ServerFullError("full", "TABLES_FULL", {"retry_after": "3"})
    assert 3.0 <= Backoff().next_s(full) <= 3.1


def test_a_bot_that_waits_for_days_still_waits() -> None:
    backoff = Backoff(chance=lambda: 1.0)
    backoff.failures = 5000
    assert backoff.next_s() == 5.0


async def test_an_outage_is_told_once_and_its_end_too(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "seatwise")
    async with running(bot_class(), server):
        for _ in range(3):
            (await server.lobby()).end("UNAVAILABLE", "SERVER_STOPPING")
        await (await server.lobby()).next()
        await until(lambda: "back after" in caplog.text)
        assert caplog.text.count("Trying again") == 1
