"""Whoever opens connections without end takes none of the descriptors that the server itself needs."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from harness import SOON_S, ServerProcess, server_process, until

from seatwise_server.descriptors import OWN_DESCRIPTORS, WANTED, connections_for_others
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


async def test_more_connections_than_the_system_allows_stop_neither_matches_nor_the_server(monkeypatch):
    few = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))\n"
    monkeypatch.setattr(ServerProcess, "before", few)
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


@pytest.mark.slow
async def test_a_bot_that_cannot_connect_for_want_of_descriptors_loses_no_time(monkeypatch):
    """Its link is lost while all connections are used up, for many times the time that it has for a move."""
    few = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))\n"
    monkeypatch.setattr(ServerProcess, "before", few)
    limits = {"free_ms": {"card": 1000, "arrange": 1000}, "bank_ms": 0, "setup_ms": 10_000}
    async with server_process() as (process, house), house.table(2, **limits) as table:
        await table.sit()
        mover, _ = await table.asked()
        host, _, port = house.address.rpartition(":")
        with ExitStack() as crowd:
            for _ in range(300):
                crowd.enter_context(socket.create_connection((host, int(port))))
            await until(lambda: [it for it in process.log if it["event"] == "connections_used_up"])
            await mover.stream.hang_up()
            await asyncio.sleep(5)
        await until(lambda: [it for it in process.log if it["event"] == "connections_free_again"])
        await mover.sit(mover.wire.play())
        ends = await table.play_out()
        assert all("ENDING_COMPLETED" in str(end.result) for end in ends)
        record = (await house.admin.record(table.name)).decode()
        assert "TIMED_OUT" not in record
