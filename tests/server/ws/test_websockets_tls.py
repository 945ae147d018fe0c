"""The WebSocket port speaks TLS with the server's certificate: it is renewed under way, and asks clients for theirs."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from doubles.certificates import HERE, Identity, identity
from harness import House, house_in, until
from harness.websocket import open_socket
from websockets.exceptions import InvalidHandshake

from seatwise.async_client import AsyncClient
from seatwise.errors import UnavailableError
from seatwise.link.security import Security, format_pin, key_digest
from seatwise.link.web_socket_wire import WebSocketWire
from seatwise.remote import run_async
from seatwise.v1.lobby_service_pb2 import AttendRequest
from seatwise_server.tls.certificate_reloader import CertificateReloader, ServerContexts
from seatwise_server.tls.tls_files import TlsFiles
from seatwise_server.ws import websocket_server

CA = identity(is_ca=True, subject="test CA")
SERVER = identity(*HERE, signer=CA)


@asynccontextmanager
async def secure_house(
    folder: Path, client_ca: Identity | None = None
) -> AsyncIterator[tuple[House, dict[str, Any]]]:
    """A server with TLS, and the options of those who trust it."""
    cert, key = SERVER.write(folder)
    ca = client_ca and Path(client_ca.write(folder, "client-ca")[0])
    files = TlsFiles(Path(cert), Path(key), ca)
    async with house_in(folder / "data", ws_port=0, tls=files) as house:
        yield house, {"tls_ca": CA.write(folder, "ca")[0]}


async def tokens(house: House, count: int, **security: Any) -> list[str]:
    async with AsyncClient(house.address, house.admin.token, **security) as admin:
        return [(await admin.register_bot(f"bot{number}")).token for number in range(count)]


def shown_by(address: str) -> str:
    """The pin of the key that a new connection sees."""
    host, _, port = address.removeprefix("wss://").rpartition(":")
    return format_pin(key_digest(ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, int(port))))))


async def test_bots_play_over_tls_as_another_machine_would(tmp_path: Path) -> None:
    async with secure_house(tmp_path) as (house, security):
        assert house.ws_address.startswith("wss://127.0.0.1:")
        address = house.ws_address.replace("127.0.0.1", "0.0.0.0")
        runs = [
            run_async("random", "ugo", address, token, ["casual-2"], matches=2, **security)
            for token in await tokens(house, 2, **security)
        ]
        async with asyncio.timeout(60):
            summaries = await asyncio.gather(*runs)
    assert [summary.matches for summary in summaries] == [2, 2]


async def test_a_renewed_certificate_is_shown_to_new_connections_and_ends_no_old_one(tmp_path: Path) -> None:
    renewed = identity(*HERE, signer=CA)
    async with secure_house(tmp_path) as (house, security):
        [token] = await tokens(house, 1, **security)
        async with WebSocketWire(
            house.ws_address, token, security=Security.resolve_options(**security)
        ).attend() as old:
            await old.write(AttendRequest(max_matches=1))
            assert await old.read()
            assert await asyncio.to_thread(shown_by, house.ws_address) == SERVER.pin
            renewed.write(tmp_path)
            await until(lambda: house.logs.named("tls_reloaded"))
            assert await asyncio.to_thread(shown_by, house.ws_address) == renewed.pin
            await old.write(AttendRequest(max_matches=2))
            assert await old.read()


async def test_a_client_without_a_certificate_is_refused_where_one_is_wanted(tmp_path: Path) -> None:
    async with secure_house(tmp_path, client_ca=CA) as (house, security):
        cert, key = identity("bot", signer=CA).write(tmp_path, "bot")
        own = {**security, "tls_cert": cert, "tls_key": key}
        [token] = await tokens(house, 1, **own)
        async with WebSocketWire(
            house.ws_address, token, security=Security.resolve_options(**own)
        ).attend() as stream:
            await stream.write(AttendRequest(max_matches=1))
            assert await stream.read()
        wire = WebSocketWire(house.ws_address, token, security=Security.resolve_options(**security))
        with pytest.raises(UnavailableError, match="as servers do that want a client certificate"):
            async with wire.attend() as stream:
                await stream.read()


async def test_a_tls_handshake_that_dawdles_holds_a_place_for_ten_seconds_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket_server, "UPGRADE_S", 0.3)
    async with secure_house(tmp_path) as (house, _):
        host, _, port = house.ws_address.removeprefix("wss://").rpartition(":")
        silent = [await asyncio.open_connection(host, int(port)) for _ in range(20)]
        assert house.server is not None
        assert house.server.websockets is not None
        quota = house.server.websockets._places
        await until(lambda: len(quota) == 20)
        await until(lambda: len(quota) == 0)
        for _, writer in silent:
            writer.transport.abort()


async def test_plain_text_at_the_tls_port_is_hung_up_on(tmp_path: Path) -> None:
    async with secure_house(tmp_path) as (house, _):
        with pytest.raises(InvalidHandshake):
            await open_socket(house.ws_address.replace("wss://", "ws://"), "/v1/play", "token")


def test_the_certificate_is_that_of_the_reloader(tmp_path: Path) -> None:
    """And it is the one of before as long as the files do not fit each other."""
    cert, key = SERVER.write(tmp_path)
    reloader = CertificateReloader(TlsFiles(Path(cert), Path(key)))
    contexts = ServerContexts(reloader)
    first = contexts.current_context()
    assert contexts.current_context() is first
    Path(key).write_bytes(identity("other").key_pem)
    reloader.check_files(0.0)
    assert contexts.current_context() is first
    identity(*HERE, signer=CA).write(tmp_path)
    reloader.check_files(1.0)
    assert contexts.current_context() is not first
