"""A server that speaks TLS: real processes, real bots, certificates that are renewed under way."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import grpc
import pytest
from cryptography.x509 import load_pem_x509_certificate
from doubles.certificates import HERE, identity
from doubles.fake_server import serving as fake_serving
from grpc_health.v1 import health_pb2, health_pb2_grpc
from harness import FRONT, REFEREE, SOON_S, ServerProcess, house_in, until
from harness.fleet import Fleet
from harness.house import captured_logs

from seatwise.async_client import AsyncClient
from seatwise.cli import main
from seatwise.errors import UnavailableError
from seatwise.link.security import format_pin, key_digest
from seatwise.remote import run_async
from seatwise_server.cli import serve
from seatwise_server.config import Config
from seatwise_server.embedded import EmbeddedRedis
from seatwise_server.rpc import grpc_server
from seatwise_server.tls import announced_address, certificate_reloader, made_certificates
from seatwise_server.tls.certificate_reloader import CertificateReloader
from seatwise_server.tls.made_certificates import ensure_self_signed, host_names, issue_certificate
from seatwise_server.tls.tls_files import TlsError, TlsFiles, read_identity, self_signed_files

CA = identity(is_ca=True, subject="test CA")
SERVER = identity(*HERE, signer=CA)


@asynccontextmanager
async def serving(folder: Path, *args: str) -> AsyncIterator[ServerProcess]:
    process = ServerProcess(folder, "--log-level", "debug", *args)
    await process.start()
    try:
        yield process
    finally:
        await process.stop()


def port_of(process: ServerProcess) -> int:
    return int(process.address.rpartition(":")[2])


def shown(process: ServerProcess) -> bytes:
    """The certificate that a new connection sees."""
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", port_of(process))))


async def play(process: ServerProcess, matches: int = 2, **security: Any) -> None:
    """Two bots, from another machine as far as anybody can see, play these matches to the end."""
    address, results = f"https://0.0.0.0:{port_of(process)}", []
    async with AsyncClient(process.address, process.token, **security) as admin:
        bots = [await admin.register_bot(f"bot{number}") for number in range(2)]
        for _ in range(matches):
            await admin.create_match("ugo", [bot.bot for bot in bots])
    async with asyncio.timeout(60):
        await asyncio.gather(*[
            run_async(
                "random", address=address, token=bot.token, queues=(), matches=matches,
                max_matches=matches, on_result=results.append, **security,
            )
            for bot in bots
        ])  # fmt: skip
    assert [result.is_void for result in results] == [False] * 2 * matches


# By themselves


@pytest.mark.slow
async def test_a_pair_of_its_own_serves_a_lan(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What it prints is the fingerprint of its key, and with that alone bots play."""
    async with serving(tmp_path, "--tls", "auto") as process:
        assert process.address.startswith("https://127.0.0.1:")
        files = self_signed_files(tmp_path)
        assert files.key.stat().st_mode & 0o777 == 0o600
        pin = read_identity(files).pin
        assert pin == format_pin(key_digest(shown(process)))
        await play(process, tls_pin=pin)
        token = ["--token", process.token]
        assert await asyncio.to_thread(main, ["match", "list", "--address", process.address, *token]) == 0
        assert await asyncio.to_thread(main, ["ctl", "referees", "--address", process.address, *token]) == 0
        assert await asyncio.to_thread(main, ["ctl", "health", "--address", process.address]) == 0
        capfd.readouterr()
        plain = f"127.0.0.1:{port_of(process)}"
        assert await asyncio.to_thread(main, ["ctl", "health", "--address", plain]) == 1
        assert f"{plain} speaks TLS: write https://{plain}" in capfd.readouterr().err
        await process.stop()
        before = files.key.read_bytes()
        await process.start()
        assert (files.key.read_bytes(), read_identity(files).pin) == (before, pin)


def test_the_pair_is_renewed_in_time_and_keeps_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = self_signed_files(tmp_path / "new")
    monkeypatch.setattr(made_certificates, "SELF_SIGNED_DAYS", 29)
    ensure_self_signed(files, ["referee-1.internal", "10.1.2.3", "h\u00f6st"])
    first, key = read_identity(files), files.key.read_bytes()
    assert timedelta(days=28) < first.expires - datetime.now(UTC) < timedelta(days=30)
    monkeypatch.setattr(made_certificates, "SELF_SIGNED_DAYS", 365)
    ensure_self_signed(files)
    renewed = read_identity(files)
    assert (files.key.read_bytes(), renewed.pin) == (key, first.pin)
    assert renewed.expires - datetime.now(UTC) > timedelta(days=364)
    ensure_self_signed(files)
    assert read_identity(files) == renewed
    ensure_self_signed(files, ["10.1.2.3"])  # the machine has another address now
    assert read_identity(files).pin == first.pin
    assert "10.1.2.3" in host_names(load_pem_x509_certificate(files.cert.read_bytes()))


def test_a_key_that_is_none_of_ours_is_not_replaced(tmp_path: Path) -> None:
    files = self_signed_files(tmp_path)
    files.key.write_text("mine")
    with pytest.raises(TlsError, match="holds no key that this command makes: delete it"):
        ensure_self_signed(files)
    assert files.key.read_text() == "mine"


async def test_the_house_bots_play_by_tls(tmp_path: Path) -> None:
    """Wherever the server listens: they trust it, and no one else."""
    config: dict[str, Any] = {"tls": self_signed_files(tmp_path), "is_tls_auto": True, "house_bots": True}
    async with house_in(tmp_path, host="0.0.0.0", **config) as house:
        admin_token = (tmp_path / "admin.token").read_text().strip()
        results: list[Any] = []
        assert house.server
        async with AsyncClient(house.address, admin_token, tls_pin=house.server.pin) as admin:
            token = (await admin.register_bot("guest")).token
        async with asyncio.timeout(60):
            await run_async(
                "random", address=house.address, token=token, queues=("casual-2",), matches=1,
                on_result=results.append, tls_pin=house.server.pin,
            )  # fmt: skip
        assert [result.is_void for result in results] == [False]


LEAGUE = """
name = "two"
game = "ugo"
format = "round-robin"
seats = 2
options = { rounds = 1 }
[[entrants]]
bot = "greedy"
[[entrants]]
bot = "random"
"""


@pytest.mark.slow
async def test_the_bots_of_a_league_come_by_tls(tmp_path: Path) -> None:
    """They are processes of their own: they are told whom to trust."""
    (tmp_path / "league.toml").write_text(LEAGUE)
    (tmp_path / "server").mkdir()
    async with serving(tmp_path / "server", "--tls", "auto") as process:
        league = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "seatwise", "league", "run", str(tmp_path / "league.toml"),
            "--address", f"https://0.0.0.0:{port_of(process)}", "--results", str(tmp_path / "results"),
            "--tls-pin", read_identity(self_signed_files(tmp_path / "server")).pin, "--json",
            env={**os.environ, "SEATWISE_TOKEN": process.token}, stdout=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        async with asyncio.timeout(60):
            assert await league.wait() == 0
    season = (tmp_path / "results" / "season.jsonl").read_text().splitlines()
    results = [line for line in map(json.loads, season) if line.get("kind") == "result"]
    assert results
    assert {ending for result in results for ending in result["endings"]} == {"COMPLETED"}, (
        "no substitute resigned"
    )


# With certificates of a CA


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    """The options that name certificate and key."""
    cert, key = SERVER.write(tmp_path)
    return ("--tls-cert", cert, "--tls-key", key)


@pytest.fixture
def ca(tmp_path: Path) -> str:
    return CA.write(tmp_path, "ca")[0]


@pytest.mark.slow
async def test_offers_say_that_referees_speak_tls(tmp_path: Path, files: tuple[str, ...], ca: str) -> None:
    """Every process speaks TLS; each offer says so; the same bots are nowhere in clear."""
    async with AsyncExitStack() as stack:
        fleet = Fleet(tmp_path, stack.enter_context(EmbeddedRedis(tmp_path / "redis")).url)
        stack.push_async_callback(fleet.stop)
        front = await fleet.start(*FRONT, *files)
        referees = [await fleet.start(*REFEREE, *files) for _ in range(2)]
        await play(front, matches=4, tls_ca=ca)
        opened = [line for each in referees for line in each.log if line["event"] == "match_opened"]
        assert len(opened) == 4
        announced = {each.address for each in await referees_of(front)}
        assert announced == {referee.address for referee in referees}
        assert all(address.startswith("https://") for address in announced)


async def referees_of(front: ServerProcess) -> list[Any]:
    from seatwise.v1.admin_service_pb2 import ListRefereesRequest
    from seatwise.v1.admin_service_pb2_grpc import AdminServiceStub

    credentials = grpc.ssl_channel_credentials(CA.cert_pem)
    async with grpc.aio.secure_channel(front.address.removeprefix("https://"), credentials) as channel:
        metadata = (("authorization", f"Bearer {front.token}"),)
        answer = await AdminServiceStub(channel).ListReferees(ListRefereesRequest(), metadata=metadata)
        return list(answer.referees)


async def test_a_server_may_want_certificates_of_its_bots(
    tmp_path: Path, files: tuple[str, ...], ca: str
) -> None:
    cert, key = identity("bot", signer=CA).write(tmp_path, "bot")
    forged = identity("bot").write(tmp_path, "forged")
    async with serving(tmp_path, *files, "--tls-client-ca", ca) as process:
        await play(process, tls_ca=ca, tls_cert=cert, tls_key=key)
        for other in ({}, {"tls_cert": forged[0], "tls_key": forged[1]}):
            async with AsyncClient(
                process.address, process.token, patience_s=0.0, tls_ca=ca, **other
            ) as admin:
                with pytest.raises(
                    UnavailableError, match=r"hangs up after the TLS handshake|cannot connect"
                ):
                    await admin.list_matches()


# Renewed under way


async def test_a_certificate_is_renewed_without_a_restart(
    tmp_path: Path, files: tuple[str, ...], ca: str
) -> None:
    """Streams stay, new connections see the new one; with files that do not fit all stays as it was."""
    async with (
        serving(tmp_path, *files) as process,
        AsyncClient(process.address, process.token, tls_ca=ca) as admin,
    ):
        token = (await admin.register_bot("stays")).token
        address = f"https://localhost:{port_of(process)}"
        staying = asyncio.create_task(run_async("random", address=address, token=token, tls_ca=ca))
        await until(lambda: shown(process) == SERVER.der)
        renewed = identity(*HERE, signer=CA, days=90)
        renewed.write(tmp_path)
        await until(lambda: shown(process) == renewed.der)
        (tmp_path / "server.crt").write_text("nonsense")
        await until(lambda: [line for line in process.log if line["event"] == "tls_not_reloaded"])
        assert shown(process) == renewed.der
        await play(process, tls_ca=ca)
        SERVER.write(tmp_path)
        await until(lambda: shown(process) == SERVER.der)
        reloaded = [line for line in process.log if line["event"] == "tls_reloaded"]
        assert [line["pin"] for line in reloaded] == [renewed.pin, SERVER.pin]
        ended = [line for line in process.log if line["event"] == "rpc_ended"]
        assert not [
            line
            for line in ended
            if line["method"].endswith("Attend") and line.get("bot") == "bots/stays/versions/1"
        ]
        staying.cancel()
        await asyncio.wait({staying})


class Files:
    """A pair that a test replaces, and who reloads it."""

    def __init__(self, folder: Path) -> None:
        SERVER.write(folder)
        self.folder = folder
        self.reloader = CertificateReloader(TlsFiles(folder / "server.crt", folder / "server.key"))
        self.now_s = 0.0

    def look(self) -> None:
        self.now_s += 1.0
        self.reloader.check_files(self.now_s)


def test_between_two_files_that_are_replaced_nothing_is_wrong(tmp_path: Path) -> None:
    watched, renewed = Files(tmp_path), identity(*HERE, signer=CA)
    with captured_logs() as logs:
        (tmp_path / "server.crt").write_bytes(renewed.cert_pem)
        watched.look()
        assert watched.reloader.identity.pin == SERVER.pin
        renewed.write(tmp_path)
        watched.look()
        assert watched.reloader.identity.pin == renewed.pin
        assert [event["event"] for event in logs.events] == ["tls_reloaded"]


def test_files_that_stay_wrong_are_told_once(tmp_path: Path) -> None:
    watched = Files(tmp_path)
    with captured_logs() as logs:
        (tmp_path / "server.key").unlink()
        for _ in range(5):
            watched.look()
        [told] = logs.events
        assert (told["event"], told["why"]) == (
            "tls_not_reloaded",
            f"{tmp_path}/server.key cannot be read: No such file or directory",
        )
        SERVER.write(tmp_path)
        watched.look()
        (tmp_path / "server.key").write_text("")
        for _ in range(5):
            watched.look()
        assert len(logs.named("tls_not_reloaded")) == 2


def test_an_expired_certificate_does_not_take_the_place_of_a_good_one(tmp_path: Path) -> None:
    """It was loaded, and nobody could connect any more."""
    watched = Files(tmp_path)
    identity(*HERE, signer=CA, days=-1).write(tmp_path)
    with captured_logs() as logs:
        for _ in range(3):
            watched.look()
        assert watched.reloader.identity.pin == SERVER.pin
        [told] = logs.named("tls_not_reloaded")
        assert "has expired" in told["why"]
        renewed = identity(*HERE, signer=CA)
        renewed.write(tmp_path)
        watched.look()
        assert watched.reloader.identity.pin == renewed.pin


def test_a_certificate_that_expires_soon_is_told_each_day(tmp_path: Path) -> None:
    watched = Files(tmp_path)
    identity(*HERE, signer=CA, days=10).write(tmp_path)
    with captured_logs() as logs:
        for _ in range(3):
            watched.look()
        assert len(logs.named("tls_expires_soon")) == 1
        watched.now_s += certificate_reloader.WARN_EVERY_S
        watched.look()
        assert len(logs.named("tls_expires_soon")) == 2


def test_a_pair_of_its_own_is_renewed_while_the_server_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = self_signed_files(tmp_path)
    monkeypatch.setattr(made_certificates, "SELF_SIGNED_DAYS", 20)
    reloader = CertificateReloader(files, lambda: ensure_self_signed(files))
    first = reloader.identity
    monkeypatch.setattr(made_certificates, "SELF_SIGNED_DAYS", 365)
    reloader.check_files(0.0)
    assert reloader.identity.pin == first.pin
    assert reloader.identity.expires - first.expires > timedelta(days=300)


# What is said


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("--tls-cert server.crt", "name both --tls-cert and --tls-key"),
        ("--tls auto --tls-cert server.crt --tls-key server.key", "leave --tls-cert and --tls-key out"),
        ("--tls-client-ca ca.crt", "--tls-client-ca needs a certificate of the server"),
        ("--tls-cert none.crt --tls-key server.key", "none.crt cannot be read: No such file or directory"),
        ("--tls-cert server.key --tls-key server.key", "server.key holds no certificate in PEM"),
        ("--tls-cert server.crt --tls-key server.crt", "server.crt holds no private key in PEM"),
        (
            "--tls-cert server.crt --tls-key ca.key",
            "ca.key is not the key of the first certificate in server.crt",
        ),
        ("--tls-cert server.crt --tls-key locked.key", "locked.key is protected by a password"),
        (
            "--tls-cert server.crt --tls-key server.key --tls-client-ca ca.key",
            "ca.key holds no certificate in PEM",
        ),
    ],
)
def test_files_that_cannot_be_used_are_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: str,
    why: str,
) -> None:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
    )

    from seatwise_server import log

    monkeypatch.setattr(log, "configure", lambda _, **__: None)
    monkeypatch.chdir(tmp_path)
    SERVER.write(tmp_path)
    CA.write(tmp_path, "ca")
    locked = SERVER.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    (tmp_path / "locked.key").write_bytes(locked)
    assert main(["serve", "--port", "0", "--data", str(tmp_path / "data"), *options.split()]) == 1
    told = capsys.readouterr().err
    assert told.startswith("seatwise serve: ")
    assert why in told


@pytest.mark.parametrize(
    ("address", "pin", "expected"),
    [
        ("127.0.0.1:1", "", "--address 127.0.0.1:1"),
        ("https://127.0.0.1:1", "PIN", "--address https://127.0.0.1:1"),
        ("0.0.0.0:1", "", "--address localhost:1"),
        ("https://[::]:1", "PIN", "--address https://localhost:1"),
        ("10.1.2.3:1", "", "--address 10.1.2.3:1 --insecure"),
        ("https://10.1.2.3:1", "PIN", "--address https://10.1.2.3:1 --tls-pin PIN"),
    ],
)
def test_the_command_that_it_says_works(
    capsys: pytest.CaptureFixture[str], address: str, pin: str, expected: str
) -> None:
    serve._show(Config(), {"address": address, "pin": pin, "http_address": "", "ws_address": ""})
    said = capsys.readouterr().out.splitlines()
    assert said[1].endswith(f"bot greedy {expected}")
    if pin:
        assert said[2] == "Pin of its key: PIN"
    else:
        assert (serve.PLAIN_TEXT in said) == (not address.startswith("127."))


async def test_an_address_that_does_not_fit_is_told_to_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bots could not play there: they are told as well, but only the operator can mend it."""
    monkeypatch.setattr(announced_address, "LOOK_AGAIN_S", 0.01)
    async with fake_serving(credentials=SERVER.credentials()) as secure:
        assert await told_of(f"https://{secure.address}") == []
        why = f"the server there speaks TLS, but bots are not told so: announce https://{secure.address} with --address"
        assert await told_of(secure.address) == [why]
        assert await told_of(f"http://{secure.address}") == [why]
    async with fake_serving() as plain:
        assert await told_of(plain.address) == []
        [told] = await told_of(f"https://{plain.address}")
        assert told.startswith("bots are told to use TLS there, but the server there speaks plain text")
    looking = asyncio.create_task(told_of(f"https://{plain.address}"))
    async with fake_serving(int(plain.address.rpartition(":")[2])):  # it is asked again until it answers
        assert await looking == [told]


async def told_of(address: str) -> list[str]:
    with captured_logs() as logs:
        async with asyncio.timeout(SOON_S):
            await announced_address.check_announced_address(address)
    return [event["why"] for event in logs.named("announced_address_wrong", address=address)]


def test_an_address_may_have_a_scheme() -> None:
    from argparse import ArgumentParser

    parser = ArgumentParser()
    serve.add_options(parser)
    for given in ("host:1", "https://host:1", "http://[::1]:1"):
        assert parser.parse_args(["--address", given]).address == given
    config = serve.make_config(
        serve.options_from(parser.parse_args(["--address", "https://host:1", "--host", "10.1.2.3"]))
    )
    assert config.hosts == ["10.1.2.3", "host"]


async def test_openssl_shows_the_fingerprint_that_is_printed(tmp_path: Path) -> None:
    """As docs/protocol.md has it, for bots in other languages."""
    if not shutil.which("openssl"):
        pytest.skip("OPENSSL IS NOT INSTALLED: its command line is not tested")
    page = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text()
    commands = "openssl s_client" + page.partition("openssl s_client")[2].partition("```")[0]
    async with fake_serving(credentials=SERVER.credentials()) as server:
        done = await asyncio.create_subprocess_shell(
            commands.replace("host:7433", server.address), cwd=tmp_path, stdout=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(SOON_S):
            said, _ = await done.communicate()
    assert f"sha256//{said.decode().strip()}" == SERVER.pin


# Beside it


async def test_probes_that_speak_no_tls_have_a_port_of_their_own(tmp_path: Path) -> None:
    """Health is answered there, and nothing else: no token is of any use there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    config: dict[str, Any] = {"tls": self_signed_files(tmp_path), "is_tls_auto": True, "metrics_port": 0}
    async with (
        house_in(tmp_path, health_port=port, **config) as house,
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        for service in ("", grpc_server.LIVE, grpc_server.ABLE):
            request = health_pb2.HealthCheckRequest(service=service)
            answer = await health_pb2_grpc.HealthStub(channel).Check(request, timeout=SOON_S)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await channel.unary_unary("/seatwise.v1.MatchService/ListMatches")(b"", timeout=SOON_S)
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
        [served] = house.logs.named("metrics_served")
        page = await asyncio.to_thread(urlopen, f"http://{served['address']}/metrics")
        [line] = [
            line for line in page.read().decode().splitlines() if line.startswith("seatwise_tls_expiry")
        ]
        page.close()
        expires = read_identity(self_signed_files(tmp_path)).expires
        assert float(line.split()[1]) == expires.timestamp()


def certify(folder: Path, *hosts: str, into: str = "tls", more: tuple[str, ...] = ()) -> int:
    return main(["ctl", "certificates", "--ca", f"{folder}/ca", "--into", f"{folder}/{into}", *more, *hosts])


def test_a_ca_of_ones_own_signs_and_renews(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As compose.yaml runs it at each start: what is good stays, a key always does."""
    files = TlsFiles(tmp_path / "tls" / "tls.crt", tmp_path / "tls" / "tls.key")
    assert certify(tmp_path, "seatwise.internal", "10.1.2.3") == 0
    first, key = read_identity(files), files.key.read_bytes()
    assert capsys.readouterr().out == (
        f"{files.cert} for seatwise.internal, 10.1.2.3, until {first.expires:%Y-%m-%d}. Pin of its key: {first.pin}\n"
    )
    assert files.key.stat().st_mode & 0o777 == 0o600
    assert certify(tmp_path, "10.1.2.3", "seatwise.internal") == 0
    assert read_identity(files) == first
    assert certify(tmp_path, "other.internal") == 0
    other = read_identity(files)
    assert (other.pin, other.cert_pem == first.cert_pem) == (first.pin, False)
    monkeypatch.setattr(made_certificates, "SERVER_CERTIFICATE_RENEWED_BEFORE_S", 826 * 24 * 3600.0)
    assert certify(tmp_path, "other.internal") == 0
    assert read_identity(files).cert_pem != other.cert_pem
    assert files.key.read_bytes() == key
    assert certify(tmp_path, "redis", into="redis", more=("--readable", "--json")) == 0
    assert (tmp_path / "redis" / "tls.key").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "redis" / "ca.crt").read_bytes() == (tmp_path / "tls" / "ca.crt").read_bytes()
    assert (tmp_path / "ca" / "ca.key").stat().st_mode & 0o777 == 0o600


def test_another_ca_signs_again(tmp_path: Path) -> None:
    assert certify(tmp_path, "a.internal") == 0
    before = (tmp_path / "tls" / "tls.crt").read_bytes()
    shutil.rmtree(tmp_path / "ca")
    assert certify(tmp_path, "a.internal") == 0
    assert (tmp_path / "tls" / "tls.crt").read_bytes() != before


def test_a_ca_that_cannot_sign_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert certify(tmp_path, "a.internal") == 0
    other = identity(is_ca=True)
    (tmp_path / "ca" / "ca.crt").write_bytes(other.cert_pem)
    assert certify(tmp_path, "a.internal") == 1
    assert "ca.key is not the key of" in capsys.readouterr().err
    (tmp_path / "ca" / "ca.crt").write_text("nonsense")
    assert certify(tmp_path, "a.internal") == 1
    assert "ca.crt holds no certificate in PEM" in capsys.readouterr().err
    assert certify(tmp_path, "h\u00f6st") == 1


async def test_bots_trust_what_that_ca_has_signed(tmp_path: Path) -> None:
    """Checked as strictly as Python 3.13 checks by itself."""
    files = issue_certificate(tmp_path / "ca", tmp_path / "tls", ["localhost", "0.0.0.0"])
    own = read_identity(files)
    credentials = grpc.ssl_server_credentials([(own.key_pem, own.cert_pem)])
    async with fake_serving(credentials=credentials) as server:
        port = int(server.address.rpartition(":")[2])
        playing = run_async(
            "random", address=f"0.0.0.0:{port}", token="t", tls_ca=tmp_path / "tls" / "ca.crt"
        )
        task = asyncio.create_task(playing)
        await server.lobby()
        task.cancel()
        await asyncio.wait({task})
        context = ssl.create_default_context(cafile=str(tmp_path / "tls" / "ca.crt"))
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        context.set_alpn_protocols(["h2"])
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
        writer.close()
