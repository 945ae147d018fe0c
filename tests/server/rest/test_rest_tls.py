"""The HTTP port speaks TLS with the certificate of the gRPC port: renewed without a restart, and with certificates of clients."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from doubles.certificates import HERE, Identity, identity
from harness import House, http_connection
from harness.house import house_in

from seatwise_server.config import HttpSettings
from seatwise_server.rest import http_server
from seatwise_server.tls import certificate_reloader
from seatwise_server.tls.tls_files import TlsFiles

pytestmark = pytest.mark.asyncio(loop_scope="session")

CA = identity(is_ca=True, subject="test CA")


@asynccontextmanager
async def tls_house(folder: Path, client_ca: Path | None = None) -> AsyncIterator[tuple[House, str]]:
    """A server with TLS, and the URL of its HTTP port."""
    cert, key = identity(*HERE, signer=CA).write(folder)
    files = TlsFiles(Path(cert), Path(key), client_ca)
    async with house_in(folder, tls=files, http=HttpSettings(port=0)) as house:
        assert house.server is not None
        yield house, house.server.http_address


def trusting(client: Identity | None = None, folder: Path | None = None) -> ssl.SSLContext:
    """What a client with our CA, and with a certificate of its own if it has one, speaks."""
    context = ssl.create_default_context(cadata=CA.cert_pem.decode())
    if client and folder:
        context.load_cert_chain(*client.write(folder, "client"))
    return context


async def test_https_is_served_and_plain_text_is_not(tmp_path: Path) -> None:
    async with tls_house(tmp_path) as (_, address):
        assert address.startswith("https://")
        async with http_connection(address, tls=trusting()) as http:
            assert (await http.get("/v1/games")).status == 200
            tls = http.writer.get_extra_info("ssl_object")
            assert tls.version() in ("TLSv1.2", "TLSv1.3")
        async with http_connection(address) as plain:
            await plain.send("GET", "/v1/games")
            assert b"HTTP/1.1 200" not in await plain.ends()


async def test_a_certificate_is_renewed_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate_reloader, "CERTIFICATE_CHECK_S", 0.02)
    async with tls_house(tmp_path) as (house, address), http_connection(address, tls=trusting()) as old:
        new = identity(*HERE, signer=CA)
        new.write(tmp_path)
        async with asyncio.timeout(10):
            while not house.logs.named("tls_reloaded"):  # noqa: ASYNC110  # there is no event to wait for
                await asyncio.sleep(0.01)
        async with http_connection(address, tls=trusting()) as http:
            shown = http.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            assert shown == new.der
            assert (await http.get("/v1/games")).status == 200
        assert (await old.get("/v1/games")).status == 200


async def test_a_server_may_want_certificates_of_its_callers(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_bytes(CA.cert_pem)
    async with tls_house(tmp_path, ca) as (_, address):
        async with http_connection(address, tls=trusting(identity("caller", signer=CA), tmp_path)) as http:
            assert (await http.get("/v1/games")).status == 200
        other = identity(is_ca=True, subject="another CA")
        for stranger in (trusting(), trusting(identity("caller", signer=other), tmp_path)):
            with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
                async with http_connection(address, tls=stranger) as http:
                    await http.get("/v1/games")


async def test_half_a_handshake_is_hung_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "TLS_HANDSHAKE_S", 0.2)
    async with tls_house(tmp_path) as (_, address), http_connection(address) as http:
        await http.send_raw(b"\x16\x03\x01")
        await http.ends()
