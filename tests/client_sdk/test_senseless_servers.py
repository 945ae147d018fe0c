"""Bots against servers whose messages fit the protocol and make no sense: the match concerned is left, and the run goes on."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import grpc
import picows
import pytest
from doubles.fake_server import SEED, FakeServer, Lobby, Referee, serving, serving_web_sockets, view_of_ugo
from doubles.senseless import MATCHES, Senseless, SenselessStream, SenselessWire

import seatwise
from seatwise.codec import MalformedView
from seatwise.errors import UnavailableError
from seatwise.games.ubongo.v1 import ubongo_pb2
from seatwise.games.ugo.v1 import ugo_pb2
from seatwise.kits.ubongo.codec import CODEC as UBONGO
from seatwise.kits.ugo.codec import CODEC as UGO
from seatwise.link import (
    backoff,
    bot_runner,
    bot_session,
    lobby_link,
    referee_link,
    rest_wire,
    seat_session,
)
from seatwise.link.bot_runner import BotThread
from seatwise.link.bot_session import BotSession, RunPlan
from seatwise.link.rest_wire import RestWire
from seatwise.link.security import Security
from seatwise.link.web_socket_wire import WebSocketStream
from seatwise.offer import TimeLeft
from seatwise.remote import run_async
from seatwise.samples import sample
from seatwise.v1 import lobby_service_pb2 as lobby_pb2
from seatwise.v1 import match_pb2, play_service_pb2

pytestmark = pytest.mark.asyncio(loop_scope="function")

FULL = {"points": [1, 2], "outcome_ranks": [1, 2], "ranks": [1, 2], "endings": [1, 1]}


class Lowest(seatwise.Bot):
    """Plays its lowest card."""

    def choose(self, view: seatwise.View) -> Any:
        return view.legal_cards[0]


class First(seatwise.Bot):
    """Makes the first legal move of a game from outside."""

    def decide(self, view: Any) -> Any:
        return view.legal_moves[0]


@pytest.fixture(params=[serving, serving_web_sockets], ids=["grpc", "websocket"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[FakeServer]:
    async with request.param() as fake:
        yield fake


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The lines that the SDK has logged so far."""
    caplog.set_level(logging.INFO)
    return lambda: [
        each.getMessage() for each in caplog.records if each.name in ("seatwise", "grpc._common", "asyncio")
    ]


@asynccontextmanager
async def attending(server: FakeServer, factory: Any = Lowest, **others: Any) -> AsyncIterator[Lobby]:
    """A bot that attends, and has not ended when the test is over."""
    run = asyncio.create_task(run_async(factory, address=server.address, token="secret", **others))
    try:
        yield await server.lobby()
        assert not run.done(), run
    finally:
        run.cancel()
        await asyncio.wait({run})


def at(server: FakeServer) -> dict[str, str]:
    """The fields of an offer that name this server."""
    if server.address.startswith("ws://"):
        return {"address": "nowhere:1", "ws_address": server.address}
    return {"address": server.address, "ws_address": "ws://nowhere:1"}


async def until(condition: Callable[[], object]) -> None:
    """Waits for what happens without a message."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110  # log records set no asyncio.Event
            await asyncio.sleep(0.005)


async def answers(referee: Referee, match: str = "good") -> None:
    """The bot still plays a match."""
    await referee.ask(prompt=77, match=match)
    while (item := await referee.next()).submit_move.prompt != 77:
        assert item.match != f"matches/{match}" or item.HasField("sit")


# Results

RESULTS: dict[str, dict[str, Any]] = {
    "nothing": {"points": [], "outcome_ranks": [], "ranks": [], "endings": []},
    "too few points": {"points": [1]},
    "too many ranks": {"ranks": [1, 2, 3]},
    "no ranks by points": {"outcome_ranks": []},
    "a rank below the first": {"ranks": [0, 1]},
    "a rank behind the last": {"outcome_ranks": [1, 2**31 - 1]},
    "one ending": {"endings": [1]},
    "an ending that nobody knows": {"endings": [99, 1]},
    "a round of one seat": {"rounds": [{"points": [1]}]},
}


async def test_a_malformed_result_ends_its_match_only(
    server: FakeServer, lines: Callable[[], list[str]]
) -> None:
    told: list[seatwise.Result] = []
    async with attending(server, on_result=told.append, max_matches=20) as lobby:
        for number in range(len(RESULTS)):
            await lobby.offer(f"{number}", **at(server))
        await lobby.offer("good", **at(server))
        referee = await server.referee()
        for _ in range(len(RESULTS) + 1):
            await referee.sat()
        for number, wrong in enumerate(RESULTS.values()):
            ended = play_service_pb2.MatchEnded(result=match_pb2.Result(**{**FULL, **wrong}), seed=SEED)
            for _ in range(2):
                await referee.say(f"{number}", match_ended=ended)
        await answers(referee)
        await until(lambda: sum("over, result unknown" in line for line in lines()) == len(RESULTS))
        malformed = [line for line in lines() if "the referee has sent a malformed result: " in line]
        assert len(malformed) == len(RESULTS)
        assert all(line.endswith("ends without a result; tell its operator") for line in malformed)
    assert not told


async def test_nothing_is_handled_after_the_end_of_a_match(
    server: FakeServer, lines: Callable[[], list[str]]
) -> None:
    ended = asyncio.Event()

    class Slow(Lowest):
        async def ended(self, result: seatwise.Result) -> None:  # noqa: ARG002
            ended.set()
            await asyncio.sleep(60)

    async with attending(server, Slow) as lobby:
        await lobby.offer(**at(server))
        await lobby.offer("good", **at(server))
        referee = await server.referee()
        await referee.sat()
        await referee.sat()
        await referee.finish()
        await ended.wait()
        for prompt in (1, 2):
            await referee.ask(prompt)
        await referee.say(move_rejected=play_service_pb2.MoveRejected(request_id="x", reason=1, message="no"))  # type: ignore[arg-type]
        await answers(referee)
        assert not [line for line in lines() if "rejected" in line or "out of time" in line]


# Questions

UPDATES: dict[str, dict[str, Any]] = {
    "no view": {},
    "a view of another game": {"ubongo": ubongo_pb2.View()},
    "an empty view": {"ugo": ugo_pb2.View()},
    "no such card": {"ugo": view_of_ugo(hand=[99])},
    "another seat's view": {"ugo": view_of_ugo(1, hand=[1], legal_cards=[1])},
    "an unknown question": {"pace": "\x1b[2J" * 1000, "ugo": view_of_ugo(hand=[1], legal_cards=[1])},
}


async def test_a_malformed_question_is_told_and_the_next_is_answered(
    server: FakeServer, lines: Callable[[], list[str]]
) -> None:
    async with attending(server) as lobby:
        await lobby.offer("good", **at(server))
        referee = await server.referee()
        await referee.sat()
        for prompt, fields in enumerate(UPDATES.values(), start=1):
            update = play_service_pb2.Update(**{"prompt": prompt, "to_act": True, "pace": "card", **fields})
            await referee.say("good", update=update)
        await answers(referee)
        told = [line for line in lines() if "the referee has sent a malformed question: " in line]
        assert len(told) == len(UPDATES)
        assert all(line.isprintable() and len(line) < 600 for line in told)
        assert "the view is of ubongo, not of ugo" in told[1]


UGO_VIEWS: dict[str, dict[str, Any]] = {
    "no seat": {"seat": None},
    "another seat": {"seat": 1},
    "hand sizes of three seats": {"hand_sizes": [2, 2, 2]},
    "another number of cards": {"hand_sizes": [3, 3]},
    "one kingdom": {"kingdoms": [ugo_pb2.Kingdom(sections=[ugo_pb2.Section()] * 5)]},
    "a kingdom without sections": {"kingdoms": [ugo_pb2.Kingdom()] * 2},
    "too many farmers": {"kingdoms": [ugo_pb2.Kingdom(sections=[ugo_pb2.Section()] * 5, farmers=10)] * 2},
    "a kingdom of ten thousand cards": {
        "kingdoms": [ugo_pb2.Kingdom(sections=[ugo_pb2.Section(cards=[1] * 10_000)] * 5)] * 2
    },  # type: ignore[arg-type]
    "a leader that is not there": {"leader": 2},
    "a starter that is not there": {"starter": -1},
    "an arranger that is not there": {"arranger": 2**31 - 1},
    "a winner that is not there": {"tricks": [ugo_pb2.Trick(winner=2)]},
    "a last round won by nobody": {"last_round": [ugo_pb2.Trick(leader=-1)]},
    "points of one seat": {"points": [ugo_pb2.RoundPoints(points=[1])]},
    "cards that it does not hold": {"legal_cards": [3]},
    "a card twice": {"hand": [1, 1], "legal_cards": [1]},
    "a thousand cards in a trick": {"trick": [1] * 1000},
    "nothing to choose from": {"legal_cards": []},
}
UBONGO_FIELDS: dict[str, Any] = {"seat": 0, "hand": range(1, 10), "symbols": "ABCDEF" * 9, "laid": [0, 0]}
UBONGO_VIEWS: dict[str, dict[str, Any]] = {
    "no seat": {"seat": None},
    "no hand": {"hand": [], "symbols": ""},
    "a thousand cards": {"hand": [1] * 1000, "symbols": "ABCDEF" * 1000},
    "symbols of fewer cards": {"symbols": "ABCDEF"},
    "three seats": {"laid": [0, 0, 0]},
    "a builder that is not there": {"building": [2]},
    "an offer of nobody": {"offers": [-1]},
    "a caller that is not there": {"out": [2**31 - 1]},
    "points of one seat": {"points": [ubongo_pb2.RoundPoints(points=[1])]},
    "a last round of one seat": {"last_round": [ubongo_pb2.Built()]},
    "a card that it does not hold": {"layout": ubongo_pb2.Layout(cards=[20], xs=[0], ys=[0], turns=[0])},
    "a card far away": {"layout": ubongo_pb2.Layout(cards=[1], xs=[2**31 - 1], ys=[0], turns=[0])},
    "a fifth turn": {"layout": ubongo_pb2.Layout(cards=[1], xs=[0], ys=[0], turns=[4])},
}


@pytest.mark.parametrize("wrong", UGO_VIEWS.values(), ids=UGO_VIEWS)
async def test_a_view_of_ugo_that_no_seat_can_see_is_malformed(wrong: dict[str, Any]) -> None:
    right = {"hand": [1, 2], "legal_cards": [1, 2]}
    UGO.check_view(UGO.decode_view(view_of_ugo(**right)), 0, 2)  # type: ignore[arg-type]
    with pytest.raises(MalformedView):
        UGO.check_view(UGO.decode_view(view_of_ugo(**{**right, **wrong})), 0, 2)


@pytest.mark.parametrize("wrong", UBONGO_VIEWS.values(), ids=UBONGO_VIEWS)
async def test_a_view_of_ubongo_that_no_seat_can_see_is_malformed(wrong: dict[str, Any]) -> None:
    UBONGO.check_view(UBONGO.decode_view(ubongo_pb2.View(**UBONGO_FIELDS)), 0, 2)
    with pytest.raises(MalformedView):
        UBONGO.check_view(UBONGO.decode_view(ubongo_pb2.View(**{**UBONGO_FIELDS, **wrong})), 0, 2)


async def test_no_time_that_a_bot_is_told_is_negative(server: FakeServer) -> None:
    seen: list[Any] = []

    class Timed(Lowest):
        def choose(self, view: seatwise.View) -> Any:
            seen.append(self.time)
            return view.legal_cards[0]

    async with attending(server, Timed) as lobby:
        await lobby.offer(**at(server))
        referee = await server.referee()
        await referee.sat()
        time = play_service_pb2.TimeLeft(
            move_ms=-1, bank_ms=-(2**31), charged_ms=-1, latency_ms=-1, strikes=-1
        )
        view = view_of_ugo(hand=[1], legal_cards=[1])
        await referee.say(
            update=play_service_pb2.Update(prompt=1, to_act=True, pace="card", time=time, ugo=view)
        )
        await referee.moved()
    assert seen == [TimeLeft(0, 0, 0, 0, 0)]


# Lines of the log


async def test_log_lines_that_a_server_causes_are_bounded_and_printable(
    server: FakeServer, lines: Callable[[], list[str]]
) -> None:
    async with attending(server) as lobby:
        await lobby.offer("good", **at(server))
        referee = await server.referee()
        await referee.sat()
        for number in range(100):
            rejected = play_service_pb2.MoveRejected(request_id="x", reason=77, message="\x1b[2J\n" * 1000)  # type: ignore[arg-type]
            await referee.say("good", move_rejected=rejected)
            await lobby.send(lobby_pb2.AttendResponse(welcome=lobby_pb2.Welcome(bot=f"\x1b{number}")))
            await lobby.take_off(f"\x1b{number}", "\x1b[2J\n" * 1000, "NO_SHOWS")
            await lobby.offer_fields(match=f"\x1b{number}")
        await answers(referee)
        said = lines()
    assert len(said) < 4 * (backoff.MOST_SERVER_LINES + 2)
    assert all(line.isprintable() and len(line) < 2 * 1000 for line in said)
    assert any("its server causes more lines than these" in line for line in said)


async def test_a_void_reason_is_printable_and_short(
    server: FakeServer, lines: Callable[[], list[str]]
) -> None:
    told: list[seatwise.Result] = []
    async with attending(server, on_result=told.append) as lobby:
        await lobby.offer(**at(server))
        referee = await server.referee()
        await referee.sat()
        await referee.say(match_ended=play_service_pb2.MatchEnded(void_reason="\x1b[2J" * 1000))
        await until(lambda: told)
        assert told[0].void_reason.isprintable()
        assert len(told[0].void_reason) == 200
        assert all(line.isprintable() for line in lines())


# Memory


async def test_a_seat_that_is_closed_again_and_again_asks_once_for_the_last_word(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seat_session, "CLOSED_WAIT_S", 0.01)
    async with attending(server) as lobby:
        await lobby.offer("good", **at(server))
        referee = await server.referee()
        await referee.sat()
        for _ in range(50):
            await lobby.close("good")
        await referee.sat()
        await referee.ask(prompt=77, match="good")
        assert (await referee.moved()).submit_move.prompt == 77


async def test_more_seats_than_max_matches_and_some_are_not_taken(
    server: FakeServer, lines: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bot_session, "MOST_EXTRA_SEATS", 3)
    async with attending(server, max_matches=2) as lobby:
        for number in range(10):
            await lobby.offer(f"{number}", **at(server))
        await until(lambda: any("matches/9 is not taken; tell its operator" in line for line in lines()))
        taken = [line for line in lines() if line.startswith("seated in ")]
        assert len(taken) == 2 + 3
        referee = await server.referee()
        for _ in range(5):
            await referee.sat()
        await referee.finish(match="0")
        async with asyncio.timeout(5):
            while not any(line.startswith("seated in matches/good") for line in lines()):
                await lobby.offer("good", **at(server))  # the seat of the other match is left a moment later
                await asyncio.sleep(0.01)
        await referee.sat()


class WireOfOneMatch(SenselessWire):
    """A match that moves from referee to referee. Each referee lets the bot connect, and says nothing."""

    def __init__(self, moves: int) -> None:
        super().__init__(0, "ugo", 0)
        self._moves = moves
        self.links = 0

    @asynccontextmanager
    async def play(self, address: str) -> AsyncIterator[SenselessStream]:  # noqa: ARG002
        self.links += 1
        try:
            yield SenselessStream(iter(()))
        finally:
            self.links -= 1

    def _of_lobby(self) -> Iterator[lobby_pb2.AttendResponse]:
        for epoch in range(1, self._moves + 1):
            message = Senseless(0, "ugo").offer(0)
            message.offer.epoch, message.offer.address = epoch, f"127.0.0.1:{epoch}"
            self.said += 1
            yield message


@asynccontextmanager
async def session(wire: Any, game: str = "ugo", factory: Any = Lowest) -> AsyncIterator[BotSession]:
    """A run over a wire without a network, which goes on as long as the test."""
    run = BotSession(RunPlan(factory, game, ("casual",), 4, None, None), wire)
    task = asyncio.create_task(run.run_session())
    try:
        yield run
        assert not task.done(), task
    finally:
        run.leave_matches()
        await asyncio.wait({task})


async def test_links_that_no_seat_needs_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bot_session, "MOST_LINKS", 5)
    wire = WireOfOneMatch(50)
    async with session(wire):
        await until(lambda: wire.said == 50)
        await asyncio.sleep(0.05)
        assert 1 <= wire.links <= 5


async def test_a_referee_that_sends_and_does_not_read_is_left(
    lines: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(referee_link, "MOST_UNSENT", 100)

    class Deaf(SenselessStream):
        async def write(self, message: Any) -> None:  # noqa: ARG002
            await asyncio.Event().wait()

    class DeafWire(WireOfOneMatch):
        @asynccontextmanager
        async def play(self, address: str) -> AsyncIterator[SenselessStream]:  # noqa: ARG002
            pings = [play_service_pb2.PlayResponseItem(ping=play_service_pb2.Ping(number=1))] * 30
            yield Deaf(iter([play_service_pb2.PlayResponse(items=pings)] * 30))

    async with session(DeafWire(1)):
        await until(
            lambda: any(
                "the referee sends, and does not read what it is answered" in line for line in lines()
            )
        )


async def test_a_lobby_that_says_nothing_is_left(
    lines: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lobby_link, "FIRST_WORD_S", 0.01)
    async with session(WireOfOneMatch(0)):
        await until(lambda: any("the lobby does not answer. Trying again" in line for line in lines()))


async def test_questions_that_are_over_do_not_wait_for_a_bot_that_thinks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bot_runner, "MOST_WAITING_CALLS", 10)
    thread = BotThread("bot")
    done = threading.Event()
    first = thread.call_function(done.wait, 5)
    for _ in range(100):
        thread.call_function(int).cancel()
    last = thread.call_function(int, "7")
    assert thread._jobs.qsize() <= 12
    done.set()
    assert (await first, await last) == (True, 7)
    thread.stop()


# Bytes


async def test_bytes_that_are_no_message_are_told_without_a_traceback(lines: Callable[[], list[str]]) -> None:
    """gRPC logged a traceback for each, and the bot was told that the lobby had closed the stream."""

    async def attend(requests: AsyncIterator[bytes], context: Any) -> None:
        async for _ in requests:
            await context.write(b"\xff")

    served = grpc.aio.server()
    handler = grpc.stream_stream_rpc_method_handler(attend)
    served.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("seatwise.v1.LobbyService", {"Attend": handler}),)
    )
    port = served.add_insecure_port("127.0.0.1:0")
    await served.start()
    run = asyncio.create_task(run_async(Lowest, address=f"127.0.0.1:{port}", token="secret"))
    try:
        await until(lines)
        told = f"lobby 127.0.0.1:{port}: the server has sent bytes that are no message. Trying again until it answers"
        assert lines() == [told]
        assert not run.done()
    finally:
        run.cancel()
        await asyncio.wait({run})
        await served.stop(None)


@pytest.mark.parametrize("room", [True, False])
async def test_pings_of_a_server_that_reads_nothing_are_not_answered(room: bool) -> None:
    sent: list[bytes] = []
    transport: Any = SimpleNamespace(send_pong=sent.append)
    frame: Any = SimpleNamespace(msg_type=picows.WSMsgType.PING, get_payload_as_bytes=lambda: b"1")
    stream: WebSocketStream[Any, Any] = WebSocketStream(play_service_pb2.PlayResponse)
    if not room:
        stream.pause_writing()
    stream.on_ws_frame(transport, frame)
    assert sent == [b"1"] * room


BODIES = {
    "a line without an end": (b"200 OK", "the server has sent a line that is too long"),
    "a refusal without an end": (b"503 No", "the server has sent a body that is too long"),
}


@pytest.mark.parametrize(("status", "told"), BODIES.values(), ids=BODIES)
async def test_http_without_an_end_is_left(status: bytes, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_wire, "LONGEST_HTTP_LINE", 100_000)
    monkeypatch.setattr("seatwise.link.rest_wire.LONGEST_HTTP_LINE", 100_000)

    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 %b\r\ntransfer-encoding: chunked\r\n\r\n" % status)
        writer.write(b"%x\r\n%b\r\n" % (10_000, b"x" * 10_000) * 20)
        with suppress(OSError):
            while await reader.read(1000):
                pass
        writer.close()
        ended.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as served, asyncio.timeout(5):
        port = served.sockets[0].getsockname()[1]
        wire = RestWire(f"rest+http://127.0.0.1:{port}", "token", Security(insecure=True))
        with pytest.raises(UnavailableError, match=told):
            async with wire.play("") as stream:
                await stream.read()
        await ended.wait()


# Anything


@pytest.mark.parametrize("game", ["ugo", "ubongo", "elsewhere"])
async def test_no_message_ends_a_run_or_shows_a_traceback(
    game: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    factory = {"ugo": Lowest, "elsewhere": First}.get(game) or sample("first-fit", game)
    for seed in range(15):
        caplog.clear()
        wire = SenselessWire(seed, game, messages=100)
        async with session(wire, game, factory):
            await until(lambda: wire.said >= 100)  # noqa: B023
            await asyncio.sleep(0.01)
        said = [each for each in caplog.records if each.name in ("seatwise", "asyncio")]
        assert not [each for each in said if each.exc_info or not each.getMessage().isprintable()], seed
        assert len(said) < (MATCHES + 2) * (backoff.MOST_SERVER_LINES + 3), seed
