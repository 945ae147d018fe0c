"""Health and reflection are for everybody: what anybody does there holds up nobody."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from harness import SOON_S, Refused, house_in, refusal_of, server_process

from seatwise_server.limits import HEALTH_WATCHERS, SPECTATORS, PlaceLimit, Places
from seatwise_server.refusal import Refusal
from seatwise_server.rpc.grpc_server import HealthServicer

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHECK = "/grpc.health.v1.Health/Check"
WATCH = "/grpc.health.v1.Health/Watch"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN


def watching(door: HealthServicer, service: str = "") -> Any:
    """What a watcher is told, one after the other."""
    return aiter(door.Watch(health_pb2.HealthCheckRequest(service=service), None))  # type: ignore[arg-type]


async def soon(told: Any) -> int:
    """The next thing a watcher is told."""
    async with asyncio.timeout(SOON_S):
        status: int = (await anext(told)).status
        return status


# One after the other


async def test_a_watcher_is_told_how_it_is_and_what_changes():
    door = HealthServicer()
    door.set_statuses({"": NOT_SERVING})
    told = watching(door)
    assert await soon(told) == NOT_SERVING
    waiting = asyncio.create_task(soon(told))
    await asyncio.sleep(0)
    door.set_statuses({"": NOT_SERVING})
    await asyncio.sleep(0)
    assert not waiting.done()
    door.set_statuses({"": SERVING})
    assert await waiting == SERVING


async def test_a_service_that_is_not_there_may_be_watched_until_it_comes():
    door = HealthServicer()
    told = watching(door, "later")
    assert await soon(told) == UNKNOWN
    door.set_statuses({"later": SERVING})
    assert await soon(told) == SERVING


async def test_a_watcher_who_leaves_takes_nobodys_news_away():
    door = HealthServicer()
    stays, leaves = watching(door), watching(door)
    for told in (stays, leaves):
        await soon(told)
    await leaves.aclose()
    door.set_statuses({"": SERVING})
    assert await soon(stays) == SERVING


async def test_there_are_only_so_many_onlookers_and_who_leaves_makes_room():
    few = Places(PlaceLimit("callers look on already", 1))
    with few.reserve_place():
        with pytest.raises(Refusal, match="1 callers look on") as refused, few.reserve_place():
            pass
        assert refused.value.reason == "SERVER_FULL"
    with few.reserve_place():
        pass


# At the wire


async def test_a_spectator_that_looks_on_when_there_are_enough_is_told_so(tmp_path, monkeypatch):
    monkeypatch.setattr(HEALTH_WATCHERS, "most", 1)
    monkeypatch.setattr(SPECTATORS, "most", 1)
    async with house_in(tmp_path) as house, house.table(2) as table:
        request = health_pb2.HealthCheckRequest()
        watch = health_pb2_grpc.HealthStub(house.admin.channel).Watch
        for another in (lambda: watch(request), lambda: house.admin.watch(table.name)):
            first = another()
            await first.read()
            refused = await refusal_of(another().read())
            assert (refused.code, refused.reason) == ("RESOURCE_EXHAUSTED", "SERVER_FULL")
            first.cancel()


async def test_the_health_of_what_is_not_there_is_not_found(house):
    request = health_pb2.HealthCheckRequest(service="x" * 1000)
    refused = await refusal_of(house.admin.raw(CHECK, request.SerializeToString()))
    assert (refused.code, refused.reason) == ("NOT_FOUND", "NOT_FOUND")


async def of_stream(house, method: str, body: bytes) -> Refused:
    """How a stream that begins with these bytes is refused."""
    channel = house.admin.channel
    if method == WATCH:
        return await refusal_of(anext(aiter(channel.unary_stream(method, None, None)(body))))
    call = channel.stream_stream(method, None, None)()
    await call.write(body)
    return await refusal_of(anext(aiter(call)))


async def test_bytes_that_are_no_request_are_malformed(house):
    for refused in (
        await refusal_of(house.admin.raw(CHECK, b"\xff")),
        await of_stream(house, WATCH, b"\xff"),
        await of_stream(house, REFLECTION, b"\xff"),
    ):
        assert (refused.code, refused.reason) == ("INVALID_ARGUMENT", "MALFORMED")
        assert "Error" not in refused.message


def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    """One of HTTP/2."""
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


def calls_and_leaves_no_room(method: str) -> bytes:
    """What an HTTP/2 client says who calls this method, and gives leave to send it nothing."""
    headers = {":method": "POST", ":scheme": "http", ":path": method, ":authority": "x",
               "content-type": "application/grpc", "te": "trailers"}  # fmt: skip
    parts = [bytes([len(part)]) + part.encode() for header in headers.items() for part in header]
    packed = b"".join(b"\0" + name + value for name, value in zip(parts[::2], parts[1::2], strict=True))
    settings = frame(4, 0, 0, b"\0\4" + bytes(4))
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings + frame(1, 4, 1, packed) + frame(0, 1, 1, bytes(5))


@asynccontextmanager
async def deaf_watcher(address: str) -> AsyncIterator[None]:
    """Watches the health, lets nobody tell it, and is alive: it answers pings."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(calls_and_leaves_no_room(WATCH))
    called = asyncio.Event()

    async def answer() -> None:
        while True:
            head = await reader.readexactly(9)
            body = await reader.readexactly(int.from_bytes(head[:3], "big"))
            if head[3] == 1:
                called.set()  # the headers of the answer
            if head[3:5] == b"\6\0":
                writer.write(frame(6, 1, 0, body))

    answering = asyncio.create_task(answer())
    async with asyncio.timeout(SOON_S):
        await called.wait()
    yield
    answering.cancel()
    await asyncio.gather(answering, return_exceptions=True)
    writer.close()


@pytest.mark.slow
async def test_a_health_watcher_who_never_reads_keeps_no_server_from_stopping():
    async with server_process() as (process, house), deaf_watcher(house.address):
        process.signal(signal.SIGTERM)
        assert await process.ended() == 0
