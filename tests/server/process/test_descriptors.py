"""Whoever opens connections without end takes none of the descriptors that the server itself needs."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock
from urllib.parse import urlsplit

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from harness import SOON_S, ServerProcess, server_process, until
from harness.http import http_connection
from harness.http_link import use_http
from harness.ubongo import builds_out
from harness.websocket import PROTO

from seatwise_server.descriptors import OWN_DESCRIPTORS, WANTED, connections_for_others
from seatwise_server.play.seat_offers import RefereeIdentity, SeatOffers
from seatwise_server.rpc import grpc_server
from seatwise_server.rpc.grpc_server import GrpcServer

pytestmark = pytest.mark.asyncio(loop_scope="session")

NONE = resource.RLIM_INFINITY
HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"


@pytest.mark.parametrize(
    ("soft", "hard", "set_to", "for_others"),
    [
        (1024, 4096, 4096, 4096 - OWN_DESCRIPTORS),
        (1024, 1024, 1024, 512),
        (256, NONE, WANTED, WANTED - OWN_DESCRIPTORS),
        (1024, 2**20, WANTED, WANTED - OWN_DESCRIPTORS),
        (2**20, 2**20, None, 2**20 - OWN_DESCRIPTORS),
        (NONE, NONE, None, WANTED - OWN_DESCRIPTORS),
    ],
)
async def test_the_limit_is_raised_and_some_are_kept(monkeypatch, soft, hard, set_to, for_others):
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    assert connections_for_others() == for_others
    assert asked == ([] if set_to is None else [(set_to, hard)])


async def test_a_limit_that_the_system_does_not_let_us_raise_stays(monkeypatch):
    def refuse(*_: object) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, NONE))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert connections_for_others() == 128


@asynccontextmanager
async def doors(most_connections: int) -> AsyncIterator[int]:
    """A server without any role; its port."""
    it = GrpcServer(most_connections)
    port = it.server.add_insecure_port("127.0.0.1:0")
    await it.start()
    yield port
    await it.server.stop(None)


async def hung_up(port: int, words: bytes) -> None:
    """Returns when the server closes the connection, which it must soon."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(words)
    async with asyncio.timeout(SOON_S):
        while await reader.read(4096):
            pass
    writer.close()


async def test_one_connection_more_than_there_may_be_is_hung_up_on_and_the_others_stay():
    async with doors(1) as port, grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub, request = health_pb2_grpc.HealthStub(channel), health_pb2.HealthCheckRequest(service="live")
        await stub.Check(request)
        await hung_up(port, HTTP2)
        await stub.Check(request)


async def test_a_connection_that_says_nothing_is_hung_up_on(monkeypatch):
    monkeypatch.setattr(grpc_server, "HANDSHAKE_TIMEOUT_MS", 100)
    async with doors(10) as port:
        await asyncio.gather(hung_up(port, b""), hung_up(port, HTTP2[:10]))


@pytest.mark.usefixtures("few")
async def test_more_connections_than_the_system_allows_stop_neither_matches_nor_the_server():
    async with server_process() as (process, house), house.table(2) as table:
        await table.sit()
        host, _, port = house.address.rpartition(":")
        with ExitStack() as crowd:
            for _ in range(300):
                crowd.enter_context(socket.create_connection((host, int(port))))
            await table.play_out()
            assert process.is_alive
            await house.admin.over(table.name)
            await house.admin.record(table.name)


def count_short(process: ServerProcess, event: str, port: str) -> int:
    return len([it for it in process.log if it["event"] == event and it["port"] == port])


async def crowd(host: str, port: int, size: int) -> None:
    """Connects again and again, because the server hangs up on who says nothing."""
    with ExitStack() as older:
        while True:
            with ExitStack() as newer:
                for _ in range(size):
                    newer.enter_context(socket.create_connection((host, port)))
                older.close()
                older.push(newer.pop_all())
            await asyncio.sleep(2)


@asynccontextmanager
async def crowd_at(process: ServerProcess, address: str, port: str = "bots") -> AsyncIterator[None]:
    """More connections than the server takes; afterwards there is room again."""
    where = urlsplit(address if "//" in address else f"//{address}")
    before = count_short(process, "connections_free_again", port)
    crowding = asyncio.create_task(crowd(str(where.hostname), where.port or 0, 60 if port == "http" else 300))
    await until(lambda: count_short(process, "connections_used_up", port) > before)
    yield
    crowding.cancel()
    await until(lambda: count_short(process, "connections_free_again", port) > before)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    before = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))\n"
    monkeypatch.setattr(ServerProcess, "before", before)


@pytest.mark.slow
@pytest.mark.usefixtures("few")
async def test_a_bot_that_cannot_connect_for_want_of_descriptors_loses_no_time():
    """Its link is lost while all connections are used up, for many times the time that it has for a move."""
    limits = {"free_ms": {"card": 1000, "arrange": 1000}, "bank_ms": 0, "setup_ms": 10_000}
    async with server_process() as (process, house), house.table(2, **limits) as table:
        await table.sit()
        mover, _ = await table.asked()
        async with crowd_at(process, house.address):
            await mover.stream.hang_up()
            await asyncio.sleep(5)
        await mover.sit(mover.wire.play())
        ends = await table.play_out()
        assert all("ENDING_COMPLETED" in str(end.result) for end in ends)
        record = (await house.admin.record(table.name)).decode()
        assert "TIMED_OUT" not in record


@pytest.mark.slow
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("door", ["grpc", "websocket"])
@pytest.mark.parametrize("game", ["ubongo", "ugo"])
async def test_a_match_that_cannot_wait_for_a_bot_without_a_connection_is_void_but_only_once_a_day(
    game, door
):
    """A race waits for nobody, and a turn not longer than one set-up time."""
    paces = ("build",) if game == "ubongo" else ("card", "arrange")
    limits = {"bank_ms": 0, "setup_ms": 2000, "free_ms": dict.fromkeys(paces, 4000)}
    async with server_process("--ws-port", "0") as (process, house):
        house.subprotocol = "" if door == "grpc" else PROTO
        wires = [await house.bot() for _ in range(2)]
        for void_reason in ("NO_ROOM", ""):
            table = await house.seat(wires, game=game, **limits)
            await table.sit()
            if game == "ubongo":
                mover, other = table.chairs
                await asyncio.gather(mover.asked("build"), other.asked("build"))
            else:
                mover, [other] = await table.asked()
            async with crowd_at(process, house.ws_address if house.subprotocol else house.address):
                await mover.stream.hang_up()
                end = await (builds_out(other) if game == "ubongo" else other.play_out())
                assert end.void_reason == void_reason


@pytest.mark.slow
async def test_a_bot_over_http_loses_nothing_while_the_process_for_http_has_no_descriptor():
    """Callers cannot bring that about, so each match that cannot wait is void, however many there are in a day."""
    limits = {"bank_ms": 0, "setup_ms": 2000, "free_ms": {"build": 4000}}
    async with server_process("--http-port", "0", "--metrics-port", "0") as (process, house):
        [pid] = await until(
            lambda: [it["pid"] for it in process.log if it["event"] == "read_process_started"], 120
        )
        most = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        absent, other = [await house.bot() for _ in range(2)]
        use_http(absent, process.http_address)
        for _ in range(2):
            table = await house.seat([absent, other], game="ubongo", **limits)
            await table.sit()
            await asyncio.gather(*[chair.asked("build") for chair in table.chairs])
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, most[1]))
            [left, stays] = sorted(table.chairs, key=lambda chair: chair.wire is other)
            await until(lambda: [it for it in process.log if it["event"] == "connections_used_up"], 20)
            await left.stream.hang_up()
            assert (await builds_out(stays)).void_reason == "NO_ROOM"
            resource.prlimit(pid, resource.RLIMIT_NOFILE, most)
        [at] = [it["address"] for it in process.log if it["event"] == "metrics_served"]
        async with http_connection(f"http://{at}") as http:
            page = (await http.get("/metrics")).body.decode()
        assert float(page.split('connections_short_seconds_total{port="bots"} ')[1].split()[0]) > 0


async def test_only_a_shortage_that_callers_can_cause_is_counted():
    voided, store = (
        list[str](),
        SimpleNamespace(no_shows=SimpleNamespace(take_excuse=AsyncMock(return_value=False))),
    )
    referee = RefereeIdentity("a", "", most_tables=1)
    offers = SeatOffers(referee, cast("Any", store), cast("Any", None))
    table = cast("Any", SimpleNamespace(void_match=voided.append))
    await offers.void_without(table, ["bots/x/versions/1"], is_own=False)
    assert not voided
    await offers.void_without(table, ["bots/x/versions/1"], is_own=True)
    assert voided == ["NO_ROOM"]


@pytest.mark.slow
@pytest.mark.usefixtures("few")
async def test_bots_over_http_play_while_strangers_have_all_connections_and_the_server_tells_of_it():
    async with server_process("--http-port", "0", "--metrics-port", "0") as (process, house):
        bots = [await house.bot() for _ in range(2)]
        for bot in bots:
            use_http(bot, process.http_address)
        await until(lambda: [it for it in process.log if it["event"] == "read_process_started"], 120)
        async with crowd_at(process, process.http_address, "http"):
            table = await house.seat(bots)
            await table.sit()
            ends = await table.play_out()
            await until(lambda: [it for it in process.log if it["event"] == "connections_used_up"], 20)
        assert all("ENDING_COMPLETED" in str(end.result) for end in ends)
        assert b"TIMED_OUT" not in await house.admin.record(table.name)
        [at] = [it["address"] for it in process.log if it["event"] == "metrics_served"]

        async def short_s() -> float:
            async with http_connection(f"http://{at}") as http:
                page = (await http.get("/metrics")).body.decode()
            return float(page.split('connections_short_seconds_total{port="http"} ')[1].split()[0])

        async with asyncio.timeout(20):  # the process for HTTP reports once a second
            while await short_s() <= 0.2:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
