"""Bots by WebSocket: whom they trust, what never travels in clear, and what they are told when a link cannot be opened.

0.0.0.0 stands for another machine, as in test_encryption.py.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import pytest
from doubles.certificates import HERE, Identity, identity
from doubles.fake_server import FakeServer, serving, serving_web_sockets
from harness.listener import listening

import seatwise
from seatwise import errors
from seatwise.client import Client
from seatwise.errors import EncryptionError, UsageError
from seatwise.link import web_socket_wire
from seatwise.link.endpoint import is_local_address, resolve_endpoint, web_socket_path
from seatwise.link.security import Security
from seatwise.link.web_socket_wire import WebSocketFirstWire, WebSocketWire
from seatwise.link.wire import GrpcWire
from seatwise.remote import choose_wire, run_async
from seatwise.v1.lobby_service_pb2 import AttendRequest, SeatOffer

TOKEN = "very-secret-token"
CA = identity(is_ca=True, subject="test CA")
SERVER = identity(*HERE, signer=CA)
SELF_SIGNED = identity("lan.example")
SECONDS = 20


class Lowest(seatwise.Bot):
    def choose(self, view: seatwise.View) -> Any:
        return view.legal_cards[0]


def context_of(whose: Identity, folder: Path, client_ca: Identity | None = None) -> ssl.SSLContext:
    """That of a server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*whose.write(folder))
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=client_ca.cert_pem.decode())
    return context


@pytest.fixture
async def plain() -> AsyncIterator[FakeServer]:
    async with serving_web_sockets() as fake:
        yield fake


@pytest.fixture
async def secure(tmp_path: Path) -> AsyncIterator[FakeServer]:
    async with serving_web_sockets(context=context_of(SERVER, tmp_path)) as fake:
        yield fake


@pytest.fixture
def ca(tmp_path: Path) -> str:
    return CA.write(tmp_path, "ca")[0]


@asynccontextmanager
async def attending(address: str, **options: Any) -> AsyncIterator[asyncio.Task[Any]]:
    """A bot that runs beside the test."""
    task = asyncio.create_task(run_async(Lowest, address=address, token=TOKEN, **options))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def failure(address: str, **options: Any) -> Exception:
    """Why a bot gives up; its first link must fail."""
    async with asyncio.timeout(SECONDS):
        with pytest.raises(errors.SeatwiseError) as failed:
            await run_async(Lowest, address=address, token=TOKEN, **options)
    return failed.value


def port_of(server: FakeServer) -> str:
    return server.address.rpartition(":")[2]


# Addresses


def test_an_address_names_its_transport_and_its_encryption() -> None:
    secure, plain = resolve_endpoint("WSS://play.example/r/1/"), resolve_endpoint("ws://127.0.0.1")
    assert (secure.is_encrypted, secure.target, secure.host, secure.port) == (
        True,
        "play.example",
        "play.example",
        443,
    )
    assert (plain.is_encrypted, plain.is_local, plain.port) == (False, True, 80)
    assert (web_socket_path("wss://play.example/r/1/"), web_socket_path("ws://a:1")) == ("/r/1", "")
    assert is_local_address("wss://localhost:7481/r/1")
    assert not is_local_address("wss://localhost.example/localhost")


def test_the_other_services_are_not_to_be_had_by_websocket() -> None:
    with pytest.raises(UsageError, match="takes bots only"), Client("ws://localhost:7481", TOKEN) as client:
        client.get_bot("bots/a/versions/1")


async def test_without_the_extra_the_sdk_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "picows", None)
    monkeypatch.delitem(sys.modules, "seatwise.link.web_socket_wire")
    with pytest.raises(UsageError, match=r"pip install '\.\[ws\]' in a clone"):
        await run_async(Lowest, address="ws://localhost:7481", token=TOKEN)


def test_offers_are_followed_by_the_same_transport() -> None:
    wire = WebSocketWire("ws://localhost:1", TOKEN)
    assert wire.address_in(SeatOffer()) == "ws://localhost:1"
    assert wire.address_in(SeatOffer(address="a:1", ws_address="ws://a:2")) == "ws://a:2"
    assert wire.address_in(SeatOffer(address="a:1")) == ""
    behind = WebSocketWire("ws://localhost:1", TOKEN, front_door=True)
    assert behind.address_in(SeatOffer(address="a:1")) == "a:1"


@pytest.mark.parametrize(
    ("address", "offered", "near", "anywhere"),
    [
        ("localhost:7", {"ws_port": 8}, "ws://localhost:8", "ws://localhost:8"),
        ("https://[::1]:7", {"ws_port": 8}, "wss://[::1]:8", "wss://[::1]:8"),
        ("https://a.example:7", {"ws_port": 8}, "wss://a.example:8", "wss://a.example:8"),
        ("https://a.example:7", {"ws_address": "wss://A.example/r-1"}, "wss://A.example/r-1", "wss://A.example/r-1"),
        ("https://a.example:7", {"ws_address": "wss://b.example"}, "", "wss://b.example"),
        ("https://a.example:7", {"ws_address": "ws://a.example"}, "", ""),
        ("https://a.example:7", {"address": "b.example:7", "ws_address": "wss://b.example:8"}, *["wss://b.example:8"] * 2),
        ("https://a.example:7", {"address": "b.example:7", "ws_port": 8}, "", ""),
        ("https://a.example:7", {"ws_address": "https://a.example:8"}, "", ""),
        ("https://a.example:7", {"ws_address": "wss://a.example:8/\n"}, "", ""),
        ("https://a.example:7", {}, "", ""),
        ("localhost:7", {"ws_address": "ws://127.0.0.1:8"}, "ws://127.0.0.1:8", "ws://127.0.0.1:8"),
        ("https://a.example:7", {"address": "http://b.example:7", "ws_address": "ws://b.example"}, "", ""),
        ("unix:/run/seatwise", {"ws_port": 8}, "", ""),
    ],
)  # fmt: skip
async def test_a_seat_is_played_over_websocket_only_at_the_host_of_grpc_and_as_safely(
    address: str, offered: dict[str, Any], near: str, anywhere: str
) -> None:
    for transport, expected in (("auto", near), ("websocket", anywhere)):
        wire = choose_wire(address, TOKEN, False, Security(), transport)
        assert isinstance(wire, WebSocketFirstWire)
        assert wire._announced[wire.address_in(SeatOffer(**offered))] == expected


async def test_behind_a_front_door_the_websocket_is_at_the_door() -> None:
    wire = choose_wire("https://door.example", TOKEN, True, Security())
    assert isinstance(wire, WebSocketFirstWire)
    at = {"address": "https://r-1.internal:7", "ws_address": "wss://door.example/r-1"}
    assert wire._announced[wire.address_in(SeatOffer(**at))] == "wss://door.example/r-1"


def test_the_transport_that_is_asked_for_must_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    for address, transport in (
        ("ws://localhost", "grpc"),
        ("rest+http://localhost", "grpc"),
        ("localhost:7", "tcp"),
    ):
        with pytest.raises(UsageError):
            choose_wire(address, TOKEN, False, Security(), transport)
    assert isinstance(choose_wire("localhost:7", TOKEN, False, Security(), "grpc"), GrpcWire)
    monkeypatch.setitem(sys.modules, "picows", None)
    monkeypatch.delitem(sys.modules, "seatwise.link.web_socket_wire")
    assert isinstance(choose_wire("localhost:7", TOKEN, False, Security()), GrpcWire)
    with pytest.raises(UsageError, match="need the extra"):
        choose_wire("localhost:7", TOKEN, False, Security(), "websocket")


async def test_without_a_websocket_that_works_the_seat_is_played_by_grpc(
    plain: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody listens; nobody answers; another server answers, and does not know the token."""
    monkeypatch.setattr(web_socket_wire, "ATTEMPT_S", 0.1)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        for port in ("1", str(silent.getsockname()[1]), port_of(plain)):
            async with serving() as by_grpc, attending(by_grpc.address):
                lobby = await by_grpc.lobby()
                await lobby.offer(ws_address=f"ws://127.0.0.1:{port}")
                if port == port_of(plain):
                    (await plain.referee()).end("UNAUTHENTICATED", "TOKEN_REVOKED")
                for _ in range(2):  # the second time at once
                    referee = await by_grpc.referee()
                    await referee.sat()
                    await referee.ask()
                    await referee.moved()
                    referee.end("UNAVAILABLE")
        assert not plain.has_news


# In clear


async def test_no_token_leaves_in_clear(plain: FakeServer) -> None:
    async with listening(plain.address) as listener:
        error = await failure(f"ws://0.0.0.0:{listener.port}")
        assert isinstance(error, EncryptionError)
        assert f"would travel in clear to ws://0.0.0.0:{listener.port}: write wss://0.0.0.0:" in str(error)
        assert not listener.heard


async def test_it_leaves_in_clear_where_that_was_said(plain: FakeServer) -> None:
    async with (
        listening(plain.address) as listener,
        attending(f"ws://0.0.0.0:{listener.port}", insecure=True),
    ):
        assert (await plain.lobby()).metadata["authorization"] == f"Bearer {TOKEN}"
        assert TOKEN.encode() in listener.heard


@pytest.mark.parametrize("host", ["0.0.0.0", "localhost"])
async def test_a_server_without_tls_is_told_no_token(plain: FakeServer, host: str) -> None:
    async with listening(plain.address) as listener:
        error = await failure(f"wss://{host}:{listener.port}")
        assert isinstance(error, EncryptionError)
        assert "speaks no TLS" in str(error)
        assert f"the address ws://{host}" in str(error)
        assert TOKEN.encode() not in listener.heard


async def test_an_offer_in_clear_is_not_taken_up(
    secure: FakeServer, plain: FakeServer, ca: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "seatwise")
    async with listening(plain.address) as listener, attending(secure.address, tls_ca=ca) as run:
        await (await secure.lobby()).offer(address="a:1", ws_address=f"ws://0.0.0.0:{listener.port}")
        async with asyncio.timeout(SECONDS):
            while "where the token would travel in clear" not in caplog.text:  # noqa: ASYNC110  # a log
                await asyncio.sleep(0.01)
        assert not run.done()
        assert not listener.heard


async def test_the_way_to_this_machine_leads_through_no_other(
    plain: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening(plain.address) as listener:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{listener.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        async with attending(plain.address):
            await plain.lobby()
        assert not listener.heard


async def test_another_machine_is_reached_through_the_proxy_of_the_environment(
    plain: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening(plain.address) as listener:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{listener.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        async with attending("ws://another.example:7481", insecure=True):
            async with asyncio.timeout(SECONDS):
                while b"CONNECT another.example:7481" not in listener.heard:  # noqa: ASYNC110  # it is only read
                    await asyncio.sleep(0.01)
        assert TOKEN.encode() not in listener.heard


# Whom it trusts


async def test_a_ca_may_be_named(secure: FakeServer, ca: str) -> None:
    async with attending(f"wss://0.0.0.0:{port_of(secure)}", tls_ca=ca):
        assert (await secure.lobby()).metadata["authorization"] == f"Bearer {TOKEN}"


async def test_tls_on_this_machine_needs_neither_pin_nor_ca(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            serving_web_sockets(context=context_of(SELF_SIGNED, tmp_path))
        )
        await stack.enter_async_context(attending(f"wss://localhost:{port_of(server)}"))
        await server.lobby()


async def test_a_certificate_of_nobody_known_is_refused(secure: FakeServer) -> None:
    error = await failure(f"wss://0.0.0.0:{port_of(secure)}")
    assert isinstance(error, EncryptionError)
    assert "is not trusted: unable to get local issuer certificate. Pin its key with --tls-pin" in str(error)
    assert not secure.has_news


@pytest.mark.parametrize(
    ("whose", "why"),
    [
        (identity("other.example", signer=CA), "Hostname mismatch"),
        (identity(*HERE, signer=CA, days=-1), "certificate has expired"),
    ],
    ids=["other name", "expired"],
)
async def test_a_certificate_that_does_not_fit_is_refused(
    whose: Identity, why: str, ca: str, tmp_path: Path
) -> None:
    async with serving_web_sockets(context=context_of(whose, tmp_path)) as server:
        error = await failure(f"wss://localhost:{port_of(server)}", tls_ca=ca)
        assert isinstance(error, EncryptionError)
        assert f"is not trusted: {why}" in str(error)


@pytest.mark.parametrize(
    "whose",
    [SELF_SIGNED, SERVER, identity("*.lan.example"), identity(subject="old.example", days=-1)],
    ids=["self-signed", "of a CA", "wildcard", "expired"],
)
async def test_a_pinned_key_is_trusted_whatever_its_certificate_says(whose: Identity, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving_web_sockets(context=context_of(whose, tmp_path)))
        await stack.enter_async_context(attending(f"wss://0.0.0.0:{port_of(server)}", tls_pin=whose.pin))
        assert (await server.lobby()).metadata["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("host", ["0.0.0.0", "localhost"])
async def test_another_key_than_the_pinned_one_is_told_nothing(secure: FakeServer, host: str) -> None:
    error = await failure(f"wss://{host}:{port_of(secure)}", tls_pin=SELF_SIGNED.pin)
    assert isinstance(error, EncryptionError)
    assert f"has the key {SERVER.pin}, which is not pinned" in str(error)
    assert not secure.has_news


async def test_tls_where_none_was_said_is_explained(secure: FakeServer) -> None:
    error = await failure(f"ws://localhost:{port_of(secure)}")
    assert isinstance(error, EncryptionError)
    assert (
        str(error) == f"ws://localhost:{port_of(secure)} speaks TLS: write wss://localhost:{port_of(secure)}"
    )


async def test_a_client_certificate_is_shown(ca: str, tmp_path: Path) -> None:
    cert, key = identity("bot", signer=CA).write(tmp_path, "bot")
    async with serving_web_sockets(context=context_of(SERVER, tmp_path, client_ca=CA)) as server:
        async with attending(server.address, tls_ca=ca, tls_cert=cert, tls_key=key):
            await server.lobby()
        async with attending(server.address, tls_ca=ca):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await server.lobby()


# Refusals


async def answered(answer: bytes) -> Exception:
    """What the wire raises where a server answers the upgrade so."""

    async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with (
            closing(writer),
            suppress(asyncio.IncompleteReadError),
        ):  # whoever looks for TLS behind it hangs up
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)

    server = await asyncio.start_server(answer_once, "127.0.0.1", 0)
    address = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        with pytest.raises(errors.SeatwiseError) as raised:
            async with WebSocketWire(address, TOKEN, security=Security()).attend():
                pass
    finally:
        server.close()
    return raised.value


def http(status: str, body: bytes = b"") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (http("401 Unauthorized"), errors.BadTokenError),
        (http("403 Forbidden"), errors.NotAllowedError),
        (http("404 Not Found"), errors.NotSupportedError),
        (http("502 Bad Gateway", b"<html>"), errors.UnavailableError),
        (http("301 Moved\r\nLocation: ws://elsewhere.example"), errors.UnavailableError),
        (http("200 OK"), errors.UnavailableError),
        (b"", errors.UnavailableError),
        (b"SSH-2.0\r\n\r\n", errors.UnavailableError),
        (
            http("404 Not Found", b'{"error":{"status":"NOT_FOUND","message":"m","details":[{"reason":"NOT_FOUND","metadata":{}}]}}'),
            errors.NotFoundError,
        ),
        (http("400 Bad", b'{"error":7}'), errors.UnavailableError),
    ],
    ids=["401", "403", "404", "502", "301", "200", "nothing", "ssh", "ours", "half ours"],
)  # fmt: skip
async def test_an_upgrade_that_is_refused_is_a_typed_error(answer: bytes, kind: type[Exception]) -> None:
    assert type(await answered(answer)) is kind


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        ("UNAUTHENTICATED", "TOKEN_REVOKED", errors.BadTokenError),
        ("ABORTED", "REPLACED", errors.ReplacedError),
        ("RESOURCE_EXHAUSTED", "SLOW_READER", errors.SlowReaderError),
        ("UNAVAILABLE", "SERVER_STOPPING", errors.UnavailableError),
        ("INTERNAL", "INTERNAL", errors.ServerFailedError),
    ],
)
async def test_a_refusal_at_the_end_is_a_typed_error(
    plain: FakeServer, code: str, reason: str, kind: type[errors.SeatwiseError]
) -> None:
    async with WebSocketWire(plain.address, TOKEN).attend() as stream:
        (await plain.lobby()).end(code, reason)
        with pytest.raises(errors.SeatwiseError) as raised:
            await stream.read()
        assert (type(raised.value), raised.value.reason) == (kind, reason)
        with pytest.raises(kind):
            await stream.read()
        with pytest.raises(kind):
            await stream.write(AttendRequest())


async def test_an_end_in_peace_is_no_error(plain: FakeServer) -> None:
    async with WebSocketWire(plain.address, TOKEN).attend() as stream:
        (await plain.lobby()).end()
        assert await stream.read() is None


async def test_a_server_that_reads_nothing_holds_the_writer_up(plain: FakeServer) -> None:
    """As gRPC does: what a bot writes must not pile up in its memory."""
    async with WebSocketWire(plain.address, TOKEN).attend() as stream:
        lobby = await plain.lobby()
        lobby._context._socket.transport.pause_reading()
        request = AttendRequest(queues=["q" * 100_000])
        async with asyncio.timeout(SECONDS):
            while (await asyncio.wait({write := asyncio.create_task(stream.write(request))}, timeout=0.5))[0]:
                await write
        write.cancel()
