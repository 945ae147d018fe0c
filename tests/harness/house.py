"""A real server in this process, and what it logs."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import structlog

from harness.http import HttpConnection, http_connection
from harness.http_link import use_http
from harness.table import Admin, Chair, Table
from harness.tls_front import TlsFront, tls_front_of
from harness.websocket import PROTO, use_websockets
from harness.wire import Wire
from seatwise_server.app import Running, embedded_redis, running
from seatwise_server.config import Config, HttpSettings

FAULTS = frozenset(
    {
        "rpc_failed",
        "match_failed",
        "flush_failed",
        "flusher_callback_failed",
        "append_refused",
        "http_server_failed",
    }
)
"""Events that tell of a fault of the server's own."""


HTTP = "http"
"""Stands for the way of bots over plain HTTP where others have a subprotocol."""
HTTPS = "https"
"""Stands for that of bots over HTTP by TLS."""
UNLIMITED_READS = {"reads_per_second": 0.0, "anonymous_reads_per_second": 0.0}
"""All tests call from one address."""


class Logs:
    """Takes all that this process logs through structlog, whatever its level, as the sink of it all."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.lines: list[str] = []
        """As an operator would read them."""

    def __call__(self, _: object, method: str, event: dict[str, Any]) -> str:
        self.events.append({"level": method, **event})
        line = structlog.processors.JSONRenderer(default=repr)(_, method, dict(event))
        self.lines.append(str(line))
        raise structlog.DropEvent

    def clear(self) -> None:
        """Forgets all so far."""
        del self.events[:], self.lines[:]

    def named(self, name: str, **what: Any) -> list[dict[str, Any]]:
        """The events of this name with these facts."""
        return [
            event
            for event in self.events
            if event["event"] == name and all(event.get(key) == value for key, value in what.items())
        ]

    def faults(self) -> list[dict[str, Any]]:
        """Those that tell of a fault of the server's own."""
        return [event for event in self.events if event["event"] in FAULTS or event["level"] == "exception"]


@dataclass(slots=True)
class House:
    """A server that is up, in this process or in another."""

    address: str
    admin: Admin
    ws_address: str = ""
    server: Running | None = None
    """Its parts, if it runs in this process."""
    logs: Logs = field(default_factory=Logs)
    """What it has logged since the test began, if it runs in this process."""
    subprotocol: str = ""
    """By which its bots come from now on; empty for gRPC, HTTP or HTTPS for streams and posts over HTTP."""
    tls_front: TlsFront | None = None
    """Ends TLS before its HTTP port, if bots come by HTTPS."""
    _wires: list[Wire] = field(default_factory=list)

    async def bot(self, name: str = "") -> Wire:
        """A new bot with a connection of its own, which ends with the test."""
        return self._keep(await self.admin.register(name))

    def wire(self, token: str = "", bot: str = "") -> Wire:
        """Another connection, which ends with the test."""
        return self._keep(Wire(self.address, token, bot))

    def _keep(self, wire: Wire) -> Wire:
        if self.subprotocol == HTTP:
            assert self.server is not None
            use_http(wire, self.server.http_address)
        elif self.subprotocol == HTTPS:
            assert self.tls_front is not None
            use_http(wire, self.tls_front.address, self.tls_front.trust)
        elif self.subprotocol:
            use_websockets(wire, self.ws_address, self.subprotocol)
        self._wires.append(wire)
        return wire

    @asynccontextmanager
    async def http(self, token: str = "") -> AsyncIterator[HttpConnection]:
        """A connection to the HTTP port."""
        assert self.server is not None
        async with http_connection(self.server.http_address, token) as connection:
            yield connection

    @asynccontextmanager
    async def table(self, seats: int = 2, *, rounds: int = 1, **limits: Any) -> AsyncIterator[Table]:
        """A new match between new bots, offered to them all; nobody sits yet."""
        bots = [await self.bot() for _ in range(seats)]
        yield await self.seat(bots, rounds=rounds, **limits)

    async def seat(self, bots: Sequence[Wire], *, rounds: int = 1, **limits: Any) -> Table:
        """A new match between these bots, who attend from now on."""
        attending = [await bot.attend() for bot in bots]
        match = await self.admin.create([bot.bot for bot in bots], rounds=rounds, **limits)
        offers = [await each.offer(match.name) for each in attending]
        chairs = [Chair(bot, match.name, offer.seat) for bot, offer in zip(bots, offers, strict=True)]
        return Table(match, sorted(chairs, key=lambda chair: chair.seat))

    async def drop_all(self) -> None:
        """Ends all connections of bots."""
        wires, self._wires[:] = list(self._wires), []
        await asyncio.gather(*[wire.drop() for wire in wires])


def in_memory() -> str | None:
    """A folder in memory where the system has one: for tests that write much and lose no power."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@contextmanager
def captured_logs() -> Iterator[Logs]:
    """Everything logged while this lasts."""
    logs, before = Logs(), structlog.get_config()
    processors = [structlog.contextvars.merge_contextvars, structlog.processors.format_exc_info, logs]
    structlog.configure(processors=processors, cache_logger_on_first_use=False)
    try:
        yield logs
    finally:
        structlog.configure(**before)


@asynccontextmanager
async def house_in(folder: Path, **config: Any) -> AsyncIterator[House]:
    """A server in this process, on an embedded Redis in the folder; without house bots and limits of reads unless asked for."""
    settings = Config(**{"port": 0, "data": folder, "house_bots": False, **UNLIMITED_READS, **config})
    async with AsyncExitStack() as stack:
        logs = stack.enter_context(captured_logs())
        embedded = embedded_redis(settings)
        if embedded:
            stack.callback(embedded.stop)
        server = await stack.enter_async_context(running(settings, embedded))
        admin = Admin(server.address, settings.admin_token_file.read_text().strip())
        stack.push_async_callback(admin.drop)
        house = House(server.address, admin, server.ws_address, server, logs)
        stack.push_async_callback(house.drop_all)
        yield house
        if server.stopped.done():
            server.stopped.result()


@contextmanager
def lost_tasks() -> Iterator[list[dict[str, Any]]]:
    """What the event loop complains of while this lasts: tasks whose exception nobody asked for."""
    complaints: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    try:
        yield complaints
    finally:
        loop.set_exception_handler(before)


@pytest.fixture(
    params=["", *(pytest.param(way, marks=pytest.mark.slow) for way in (PROTO, HTTP, HTTPS))],
    ids=["grpc", "websocket", "http", "https"],
)
def both_doors(request: pytest.FixtureRequest, house: House) -> Iterator[None]:
    """The test is run with bots that come by gRPC and, in `make nightly`, by WebSocket, by plain HTTP and by HTTP over TLS.

    tests/server/ws has matches by WebSocket for every run.

    A test with the mark `not_by_http` sends bytes that have no form in HTTP, or is about a connection that a bot over HTTP has not.
    """
    if request.param in (HTTP, HTTPS) and (why := request.node.get_closest_marker("not_by_http")):
        pytest.skip(why.args[0])
    house.subprotocol = request.param
    yield
    house.subprotocol = ""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def module_house(request: pytest.FixtureRequest) -> AsyncIterator[House]:
    """One server for all tests of a module. It has an HTTP port, which takes two seconds, only if one of them comes by it."""
    ports: dict[str, Any] = {"http": HttpSettings(port=0)} if _comes_by(request, HTTP) else {}
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory())))
        house = await stack.enter_async_context(house_in(folder, ws_port=0, **ports))
        if _comes_by(request, HTTPS):
            assert house.server
            house.tls_front = await stack.enter_async_context(tls_front_of(house.server.http_address, folder))
        yield house


def _comes_by(request: pytest.FixtureRequest, way: str) -> bool:
    """Whether a test of the module is run with bots that come this way; HTTP stands for HTTPS, too."""
    items = [item for item in request.session.items if item.nodeid.startswith(request.node.nodeid)]
    return any(f"[{way}" in item.name for item in items)


@pytest_asyncio.fixture(loop_scope="session")
async def house(module_house: House) -> AsyncIterator[House]:
    """The module's server, which logs no fault of its own during the test; its bots go with the test."""
    async with _without_faults(module_house):
        yield module_house


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def module_http_house() -> AsyncIterator[House]:
    """One server with an HTTP port for all tests of a module."""
    with tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as folder:
        async with house_in(Path(folder), http=HttpSettings(port=0)) as house:
            yield house


@pytest_asyncio.fixture(loop_scope="session")
async def http_house(module_http_house: House) -> AsyncIterator[House]:
    """As `house`, with an HTTP port."""
    async with _without_faults(module_http_house):
        yield module_http_house


@asynccontextmanager
async def _without_faults(house: House) -> AsyncIterator[None]:
    house.logs.clear()
    with lost_tasks() as complaints:
        yield
        await house.drop_all()
    assert not house.logs.faults()
    assert not complaints
