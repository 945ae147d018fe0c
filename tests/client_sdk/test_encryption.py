"""No token leaves in clear: what the SDK does where TLS is, where none is, and where one end is wrong about it.

0.0.0.0 stands for another machine: it leads here, but by its look nobody can know. What a listener on the way reads is
written down.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from doubles.certificates import HERE, Identity, identity
from doubles.fake_server import FakeServer, serving
from harness.listener import listening

import seatwise
from seatwise.async_client import AsyncClient
from seatwise.client import Client
from seatwise.errors import EncryptionError, SeatwiseError, UnavailableError, UsageError
from seatwise.link import dialing
from seatwise.link.endpoint import resolve_endpoint
from seatwise.link.security import Security, dates_of
from seatwise.remote import run_async
from seatwise.v1.admin_service_pb2 import ListRefereesRequest
from seatwise.v1.admin_service_pb2_grpc import AdminServiceStub
from seatwise_server.cli import asking

TOKEN = "very-secret-token"
CA = identity(is_ca=True, subject="test CA")
SERVER = identity(*HERE, signer=CA)
SELF_SIGNED = identity("lan.example")
EXPIRED = identity("lan.example", days=-1)
SECONDS = 20


class Lowest(seatwise.Bot):
    def choose(self, view: seatwise.View) -> Any:
        return view.legal_cards[0]


@asynccontextmanager
async def attending(address: str, **security: Any) -> AsyncIterator[asyncio.Task[Any]]:
    """A bot that runs beside the test."""
    task = asyncio.create_task(run_async(Lowest, address=address, token=TOKEN, **security))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


@pytest.fixture
async def plain() -> AsyncIterator[FakeServer]:
    async with serving() as fake:
        yield fake


@pytest.fixture
async def secure() -> AsyncIterator[FakeServer]:
    async with serving(credentials=SERVER.credentials()) as fake:
        yield fake


@pytest.fixture
def ca(tmp_path: Path) -> str:
    return CA.write(tmp_path, "ca")[0]


def port_of(server: FakeServer) -> str:
    return server.address.rpartition(":")[2]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110  # gRPC's threads set no asyncio.Event
            await asyncio.sleep(0.005)


async def failure_of(run: Awaitable[Any]) -> SeatwiseError:
    async with asyncio.timeout(SECONDS):
        with pytest.raises(SeatwiseError) as failed:
            await run
    return failed.value


# In clear


def administrate(address: str, **security: Any) -> None:
    """As `seatwise ctl` does."""
    parser = ArgumentParser()
    asking.add_arguments(parser)
    given = ["--address", address, "--token", TOKEN, *(["--insecure"] if security.get("insecure") else [])]
    with asking.open_service(parser.parse_args(given), AdminServiceStub) as ask:
        ask("ListReferees", ListRefereesRequest())


def read(address: str, **security: Any) -> None:
    with Client(address, TOKEN, patience_s=0.0, **security) as client:
        client.get_bot("bots/a/versions/1")


async def read_async(address: str, **security: Any) -> None:
    async with AsyncClient(address, TOKEN, patience_s=0.0, **security) as client:
        await client.get_bot("bots/a/versions/1")


async def watch_async(address: str, **security: Any) -> None:
    async with AsyncClient(address, TOKEN, patience_s=0.0, **security) as client:
        await anext(client.watch_match("matches/m"))


async def play(address: str, **security: Any) -> None:
    await run_async(Lowest, address=address, token=TOKEN, **security)


def in_thread(call: Callable[..., None]) -> Callable[..., Awaitable[None]]:
    async def called(address: str, **security: Any) -> None:
        await asyncio.to_thread(call, address, **security)

    return called


CALLERS = {
    "bot": play,
    "ctl": in_thread(administrate),
    "client": in_thread(read),
    "async client": read_async,
    "watch": watch_async,
}


@pytest.mark.parametrize("call", CALLERS.values(), ids=CALLERS)
@pytest.mark.parametrize("scheme", ["", "http://", "https://"])
async def test_no_token_leaves_in_clear(plain: FakeServer, call: Any, scheme: str) -> None:
    async with listening(plain.address) as listener:
        error = await failure_of(call(f"{scheme}0.0.0.0:{listener.port}"))
        assert isinstance(error, EncryptionError)
        said = "would travel in clear" if scheme == "http://" else "speaks no TLS"
        assert said in str(error)
        assert TOKEN.encode() not in listener.heard
        if scheme == "http://":
            assert not listener.heard


@pytest.mark.parametrize("call", CALLERS.values(), ids=CALLERS)
async def test_it_leaves_in_clear_where_that_was_said(plain: FakeServer, call: Any) -> None:
    """And then the listener reads it: those above would have found it."""
    async with listening(plain.address) as listener:
        task = asyncio.ensure_future(call(f"0.0.0.0:{listener.port}", insecure=True))
        await until(lambda: TOKEN.encode() in listener.heard or task.done())
        task.cancel()
        await asyncio.wait({task})
        assert TOKEN.encode() in listener.heard


async def test_the_environment_may_say_it(plain: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATWISE_INSECURE", "1")
    async with attending(f"0.0.0.0:{port_of(plain)}"):
        assert (await plain.lobby()).metadata["authorization"] == f"Bearer {TOKEN}"
    assert isinstance(
        await failure_of(play(f"0.0.0.0:{port_of(plain)}", insecure=False)), EncryptionError
    )  # who says no is heard
    monkeypatch.setenv("SEATWISE_INSECURE", "maybe")
    with pytest.raises(UsageError, match="SEATWISE_INSECURE is 'maybe': write 1 or 0"):
        Security.resolve_options()


async def test_a_caller_that_shows_no_token_may_read_in_clear(plain: FakeServer) -> None:
    async with listening(plain.address) as listener:
        async with AsyncClient(f"http://0.0.0.0:{listener.port}", "", patience_s=0.0) as client:
            error = await failure_of(client.get_bot("bots/a/versions/1"))
        assert not isinstance(error, EncryptionError)
        assert listener.heard


async def test_this_machine_is_told_in_clear(plain: FakeServer, tmp_path: Path) -> None:
    async with attending(plain.address):
        await plain.lobby()
    async with serving(host=f"unix:{tmp_path}/s", port=0) as socket, attending(socket.address):
        await socket.lobby()


async def test_the_way_to_this_machine_leads_through_no_other(
    plain: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gRPC would take a proxy that the environment names, even to the loopback."""
    async with listening(plain.address) as listener:
        for variable in ("grpc_proxy", "https_proxy", "http_proxy"):
            monkeypatch.setenv(variable, f"http://127.0.0.1:{listener.port}")
        for variable in ("no_proxy", "no_grpc_proxy"):
            monkeypatch.delenv(variable, raising=False)
        async with attending(plain.address):
            await plain.lobby()
        assert not listener.heard


# What the lobby offers


async def test_an_offer_without_a_scheme_has_that_of_the_lobby(
    secure: FakeServer, plain: FakeServer, ca: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The fault that was found: told https, a bot dialed HOST:PORT of its offer in clear."""
    caplog.set_level(logging.WARNING, "seatwise")
    address = f"https://localhost:{port_of(secure)}"
    async with listening(plain.address) as listener, attending(address, tls_ca=ca) as run:
        lobby = await secure.lobby()
        await lobby.offer(address=f"0.0.0.0:{listener.port}")
        await until(lambda: "no TLS is spoken there: tell its operator" in caplog.text)
        assert listener.heard
        assert TOKEN.encode() not in listener.heard
        assert not plain.has_news
        # The same bot plays on where TLS is, with a scheme or without.
        for number, scheme in enumerate(("", "https://"), 2):
            async with serving(credentials=SERVER.credentials()) as referee:
                await lobby.offer("m", epoch=number, address=f"{scheme}{referee.address}")
                seated = await referee.referee()
                await seated.sat()
                assert seated.metadata["seatwise-referee"] == f"{scheme}{referee.address}"
        assert not run.done()


async def test_an_offer_in_clear_is_not_taken_up(
    secure: FakeServer, plain: FakeServer, ca: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "seatwise")
    async with listening(plain.address) as listener:
        async with attending(f"https://localhost:{port_of(secure)}", tls_ca=ca) as run:
            await (await secure.lobby()).offer(address=f"http://0.0.0.0:{listener.port}")
            await until(lambda: "where the token would travel in clear" in caplog.text)
            assert not run.done()
        assert not listener.heard


async def test_an_offer_in_clear_is_taken_up_where_that_was_said(
    secure: FakeServer, plain: FakeServer, ca: str
) -> None:
    """Servers of before TLS offer addresses without a scheme; behind a proxy that speaks TLS they are in clear."""
    async with attending(f"https://localhost:{port_of(secure)}", tls_ca=ca, insecure=True):
        lobby = await secure.lobby()
        for number, scheme in enumerate(("", "http://"), 1):
            await lobby.offer(f"m{number}", address=f"{scheme}0.0.0.0:{port_of(plain)}")
            await (await plain.referee()).sat()


async def test_an_offer_in_clear_where_tls_is_spoken_is_explained(
    plain: FakeServer, secure: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "seatwise")
    async with attending(plain.address):
        await (await plain.lobby()).offer(address=secure.address)
        await until(lambda: f"seatwise serve --address https://{secure.address}" in caplog.text)


async def test_behind_a_front_door_only_its_own_address_is_dialed(
    secure: FakeServer, plain: FakeServer, ca: str
) -> None:
    async with attending(f"https://localhost:{port_of(secure)}", tls_ca=ca, front_door=True):
        await (await secure.lobby()).offer(address=plain.address)
        referee = await secure.referee()
        await referee.sat()
        assert referee.metadata["seatwise-referee"] == plain.address
        assert not plain.has_news


# Whom it trusts


@pytest.mark.parametrize("call", CALLERS.values(), ids=CALLERS)
async def test_tls_where_none_was_said_is_explained(secure: FakeServer, call: Any) -> None:
    address = secure.address
    error = await failure_of(call(address))
    assert isinstance(error, EncryptionError)
    assert str(error) == f"{address} speaks TLS: write https://{address}"


async def test_a_certificate_of_nobody_known_is_refused(secure: FakeServer) -> None:
    async with listening(secure.address) as listener:
        error = await failure_of(play(f"0.0.0.0:{listener.port}"))
        assert isinstance(error, EncryptionError)
        assert "is not trusted: unable to get local issuer certificate. Pin its key with --tls-pin" in str(
            error
        )
        assert not secure.has_news


async def test_a_certificate_for_another_name_is_refused(ca: str) -> None:
    async with serving(credentials=identity("other.example", signer=CA).credentials()) as server:
        error = await failure_of(play(f"https://localhost:{port_of(server)}", tls_ca=ca))
        assert isinstance(error, EncryptionError)
        assert "is not trusted: Hostname mismatch" in str(error)


async def test_a_certificate_that_has_expired_is_refused(ca: str) -> None:
    async with serving(credentials=identity(*HERE, signer=CA, days=-1).credentials()) as server:
        error = await failure_of(play(f"https://localhost:{port_of(server)}", tls_ca=ca))
        assert isinstance(error, EncryptionError)
        assert "is not trusted: certificate has expired" in str(error)


async def test_a_ca_may_be_named(secure: FakeServer, ca: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with attending(f"0.0.0.0:{port_of(secure)}", tls_ca=ca):
        await secure.lobby()
    monkeypatch.setenv("SEATWISE_TLS_CA", ca)
    async with attending(f"0.0.0.0:{port_of(secure)}"):
        await secure.lobby()


@pytest.mark.parametrize(
    "whose",
    [SELF_SIGNED, SERVER, identity("*.lan.example"), identity("10.1.2.3"), identity(subject="old.example")],
    ids=["self-signed", "of a CA", "wildcard", "address", "common name"],
)
@pytest.mark.parametrize("call", [play, read_async], ids=["bot", "client"])
async def test_a_pinned_key_is_trusted_whatever_its_certificate_says(whose: Identity, call: Any) -> None:
    async with serving(credentials=whose.credentials()) as server:
        task = asyncio.create_task(call(f"0.0.0.0:{port_of(server)}", tls_pin=whose.pin))
        if call is play:
            lobby = await server.lobby()
            assert lobby.metadata["authorization"] == f"Bearer {TOKEN}"
            task.cancel()
            await asyncio.wait({task})
        else:
            error = await failure_of(task)
            assert not isinstance(error, EncryptionError | UnavailableError)  # the server has answered


@pytest.mark.parametrize("call", CALLERS.values(), ids=CALLERS)
async def test_an_expired_certificate_with_the_pinned_key_is_explained(
    call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gRPC refuses it, and says neither why nor what to do: a bot tried for ever."""
    monkeypatch.setenv("SEATWISE_TLS_PIN", EXPIRED.pin)
    async with serving(credentials=EXPIRED.credentials()) as server:
        error = await failure_of(call(f"https://{server.address}"))
    ended = f"{EXPIRED.certificate.not_valid_after_utc:%F %T}"
    assert isinstance(error, EncryptionError)
    assert f"the certificate of https://{server.address} has expired: it was valid until {ended} UTC" in str(
        error
    )
    assert "tell the operator to renew the certificate" in str(error)
    assert "with the same key your pin still fits" in str(error)


async def test_a_bot_that_plays_waits_until_an_expired_certificate_is_renewed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "seatwise")
    renewed = identity("lan.example", key=EXPIRED.key)
    order = in_turn(renewed, renewed, EXPIRED, renewed, renewed)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving(credentials=order))
        bot = attending(f"0.0.0.0:{port_of(server)}", tls_pin=EXPIRED.pin)
        run = await stack.enter_async_context(bot)
        first = await server.lobby()
        await first.limit()
        first.end()
        await server.lobby()
        assert "has expired: it was valid until" in caplog.text
        assert not run.done()


@pytest.mark.parametrize(
    "whose", [EXPIRED, SELF_SIGNED, identity(days=9_000)], ids=["expired", "of now", "after 2049"]
)
def test_the_dates_of_a_certificate_are_read(whose: Identity) -> None:
    certificate = whose.certificate
    dates = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    assert dates_of(whose.der) == dates


@pytest.mark.parametrize("port", ["65536", "9" * 5000])
def test_a_port_that_does_not_exist_is_no_port(port: str) -> None:
    with pytest.raises(ValueError, match="the highest is 65535"):
        assert resolve_endpoint(f"https://localhost:{port}").port


@pytest.mark.parametrize("call", CALLERS.values(), ids=CALLERS)
async def test_another_key_than_the_pinned_one_is_refused(
    secure: FakeServer, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEATWISE_TLS_PIN", f"{CA.pin},{SELF_SIGNED.pin}")
    error = await failure_of(call(f"https://127.0.0.1:{port_of(secure)}"))
    assert isinstance(error, EncryptionError)
    assert f"has the key {SERVER.pin}, which is not pinned" in str(error)
    assert not secure.has_news


def in_turn(*whose: Identity) -> grpc.ServerCredentials:
    """Of a server that shows each connection the next of them, and then the last."""
    shown: Iterator[Identity] = iter(whose)
    first, *_ = whose

    def fetch() -> Any:
        one = next(shown, None)
        return one and grpc.ssl_server_certificate_configuration([(one.key_pem, one.cert_pem)])

    return grpc.dynamic_ssl_server_credentials(
        grpc.ssl_server_certificate_configuration([(first.key_pem, first.cert_pem)]), fetch
    )


async def test_no_other_server_slips_in_between_the_look_at_the_key_and_the_dial() -> None:
    """The first connection, which is looked at, is with the pinned server; the second is with one of the same name."""
    async with serving(credentials=in_turn(SELF_SIGNED, identity("lan.example"))) as server:
        async with attending(f"0.0.0.0:{port_of(server)}", tls_pin=SELF_SIGNED.pin) as run:
            error = await failure_of(run)
            assert isinstance(error, EncryptionError)
        assert not server.has_news


@pytest.mark.parametrize("names", [("lan.example",), ("new.example",)], ids=["same names", "other names"])
async def test_a_renewed_certificate_with_the_pinned_key_fits(names: tuple[str, ...]) -> None:
    renewed = identity(*names, key=SELF_SIGNED.key, days=90)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            serving(credentials=in_turn(SELF_SIGNED, SELF_SIGNED, renewed))
        )
        await stack.enter_async_context(attending(f"0.0.0.0:{port_of(server)}", tls_pin=SELF_SIGNED.pin))
        first = await server.lobby()
        first.end()
        await server.lobby()


async def test_a_client_takes_up_a_renewed_certificate() -> None:
    renewed = identity("new.example", key=SELF_SIGNED.key)
    port = 0
    for whose in (SELF_SIGNED, renewed):
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(serving(port, whose.credentials()))
            if not port:
                port = int(port_of(server))
                client = AsyncClient(f"0.0.0.0:{port}", TOKEN, tls_pin=SELF_SIGNED.pin)
            error = await failure_of(client.get_bot("bots/a/versions/1"))
            assert not isinstance(error, EncryptionError | UnavailableError)
    await client.close()


async def test_tls_on_this_machine_needs_neither_pin_nor_ca() -> None:
    async with serving(credentials=SELF_SIGNED.credentials()) as server:
        async with attending(f"https://localhost:{port_of(server)}"):
            await server.lobby()
        administered = asyncio.to_thread(administrate, f"https://{server.address}")
        assert not isinstance(await failure_of(administered), EncryptionError | UnavailableError)


async def test_a_lobby_that_was_up_is_waited_for_even_with_a_wrong_key(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An operator's mistake must not end bots that play: it is mended while they come back."""
    caplog.set_level(logging.WARNING, "seatwise")
    order = in_turn(SELF_SIGNED, SELF_SIGNED, SERVER, SELF_SIGNED, SELF_SIGNED)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving(credentials=order))
        bot = attending(f"0.0.0.0:{port_of(server)}", tls_pin=SELF_SIGNED.pin)
        run = await stack.enter_async_context(bot)
        first = await server.lobby()
        await first.limit()
        first.end()
        await server.lobby()
        assert not run.done()


async def test_a_server_may_ask_for_certificates_of_its_clients(
    tmp_path: Path, ca: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "seatwise")
    wanted = "hangs up after the TLS handshake, as servers do that want a client certificate: name yours with --tls-cert"
    cert, key = identity("bot", signer=CA).write(tmp_path, "bot")
    async with serving(credentials=SERVER.credentials(client_ca=CA)) as server:
        address = f"https://localhost:{port_of(server)}"
        for trust in ({"tls_ca": ca}, {"tls_pin": SERVER.pin}):
            caplog.clear()
            async with attending(address, **trust):
                await until(lambda: wanted in caplog.text)
            async with attending(address, tls_cert=cert, tls_key=key, **trust):
                await server.lobby()


async def test_a_server_of_another_kind_may_say_that_it_wants_a_certificate(tmp_path: Path, ca: str) -> None:
    """OpenSSL sends an alert where gRPC only hangs up."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=ca)
    context.load_cert_chain(*SERVER.write(tmp_path))
    context.verify_mode = ssl.CERT_REQUIRED
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=context)
    endpoint = resolve_endpoint(f"https://localhost:{server.sockets[0].getsockname()[1]}")
    error = UnavailableError("Socket closed")
    explained = await asyncio.to_thread(dialing.explain_failure, endpoint, Security(ca=ca), error)
    server.close()
    assert "as servers do that want a client certificate" in str(explained)


async def test_files_that_do_not_fit_are_named(secure: FakeServer, tmp_path: Path) -> None:
    address = f"https://localhost:{port_of(secure)}"
    cert, _ = identity("bot").write(tmp_path, "one")
    _, key = identity("bot").write(tmp_path, "two")
    assert "both its files" in str(await failure_of(play(address, tls_cert=cert)))
    assert "none.pem cannot be read: No such file" in str(
        await failure_of(play(address, tls_ca=tmp_path / "none.pem"))
    )
    unfit = await failure_of(play(address, tls_cert=cert, tls_key=key))
    assert isinstance(unfit, UsageError)
    assert "do not fit" in str(unfit)


# What is passed on


def test_another_process_gets_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cert, key = SERVER.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    given = Security.resolve_options(
        insecure=True, tls_pin=[CA.pin, SERVER.pin], tls_ca="server.crt", tls_cert=cert, tls_key=key
    )
    for name, value in given.to_environment().items():
        monkeypatch.setenv(name, value)
    passed_on = Security.resolve_options()
    assert passed_on == Security(True, given.pins, str(tmp_path / "server.crt"), cert, key)
    assert Security().to_environment() == {}


@pytest.mark.parametrize(
    "address", ["https://127.0.0.1:1", "127.0.0.1:1", "unix:/none", "https://none.invalid:1"]
)
def test_a_silent_address_is_not_reported_as_a_fault_of_tls(address: str) -> None:
    error = UnavailableError("Connection refused")
    assert dialing.explain_failure(resolve_endpoint(address), Security(), error) is error


async def test_a_server_that_came_up_meanwhile_is_not_called_untrusted(secure: FakeServer) -> None:
    """gRPC trusts other CAs than Python does. Only if gRPC has refused a certificate is it said to be the reason."""
    error = UnavailableError("Connection refused")
    endpoint = resolve_endpoint(f"0.0.0.0:{port_of(secure)}")
    assert await asyncio.to_thread(dialing.explain_failure, endpoint, Security(), error) is error
