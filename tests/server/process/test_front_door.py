"""One public address: deploy/nginx.conf sends each stream to the referee that the SDK names."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from zipfile import ZipFile

import grpc
import pytest
import pytest_asyncio
import yaml
from harness import FRONT, REFEREE, SOON_S, Fleet, ServerProcess, http_connection

from seatwise.async_client import AsyncClient
from seatwise.errors import UnavailableError
from seatwise.remote import run_async
from seatwise_server.embedded import EmbeddedRedis
from seatwise_server.tls.made_certificates import issue_certificate
from seatwise_server.tls.tls_files import TlsFiles, read_identity

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(
        not shutil.which("nginx"), reason="NGINX IS NOT INSTALLED: the front door is not tested"
    ),
]

DEPLOY = Path(__file__).parents[3] / "deploy"
CONF = DEPLOY / "nginx.conf"
WHEEL = "seatwise-9.9.9-py3-none-any.whl"
MANIFEST = DEPLOY / "kubernetes" / "manifests" / "front-door.yaml"
REFEREES = re.compile(r'"~\^.*?<named>(seatwise-referee.*?:7433)\)\$"')
PLAY = "/seatwise.v1.PlayService/Play"


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def where(process: ServerProcess) -> str:
    """host:port, for nginx."""
    return process.address.removeprefix("https://")


def http_of(processes: Fleet) -> str:
    """host:port of the front's REST API, for nginx."""
    [started] = [line for line in processes.processes[0].log if line["event"] == "server_started"]
    return str(started["http_address"]).removeprefix("https://")


def sockets_of(processes: Fleet, number: int) -> str:
    """host:port of the WebSockets of a process, for nginx."""
    return processes.processes[number].ws_address.removeprefix("wss://")


def everywhere(folder: Path, port: int) -> tuple[tuple[str, str], ...]:
    """Where it listens, and where it finds certificates."""
    return (
        ("listen 7443", f"listen 127.0.0.1:{port}"),
        ("/etc/nginx/tls/", f"{folder}/door/"),
        ("/etc/nginx/internal-tls/", f"{folder}/tls/"),
    )


def configuration(processes: Fleet, folder: Path, port: int) -> str:
    """The example, with the addresses of these processes in the place of its own."""
    front, one, two = (where(process) for process in processes.processes[:3])
    text = CONF.read_text()
    for name, address in (
        ("lobby-1.internal:7433", front), ("lobby-2.internal:7433", front),
        ("gateway-1.internal:7433", front), ("gateway-2.internal:7433", front),
        ("gateway-1.internal:7480", http_of(processes)), ("gateway-2.internal:7480", http_of(processes)),
        ("referee-1.internal:7433", one), ("referee-2.internal:7433", two),
        ("referee-1\\.internal:7433", re.escape(one)), ("referee-2\\.internal:7433", re.escape(two)),
        ("lobby-1.internal:7481", sockets_of(processes, 0)), ("lobby-2.internal:7481", sockets_of(processes, 0)),
        ("referee-1.internal:7481", sockets_of(processes, 1)), ("referee-2.internal:7481", sockets_of(processes, 2)),
        *everywhere(folder, port),
    ):  # fmt: skip
        assert name in text
        text = text.replace(name, address)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    return text.replace("access_log off;", f"access_log off;\n{places}")


def in_a_cluster(processes: Fleet, folder: Path, port: int) -> str:
    """The one of Kubernetes, which knows referees by a pattern of their names; there is nobody to look names up here."""
    front, *referees = (where(process) for process in processes.processes[:3])
    [text] = [it["data"]["nginx.conf"] for it in yaml.safe_load_all(MANIFEST.read_text()) if "data" in it]
    pattern = "|".join(map(re.escape, referees))
    text, count = REFEREES.subn(lambda found: found[0].replace(found[1], f"(?:{pattern})"), text)
    assert count == 1
    for name, address in (
        ("seatwise-lobby.seatwise.svc.cluster.local:7433", front),
        ("seatwise-gateway.seatwise.svc.cluster.local:7433", front),
        ("seatwise-gateway.seatwise.svc.cluster.local:7480", http_of(processes)),
        ("seatwise-lobby.seatwise.svc.cluster.local:7481", sockets_of(processes, 0)),
        # Some variable has to be left: nginx takes no other path of an upstream in such a location.
        (
            "$pod.seatwise-referee.seatwise.svc.cluster.local:7481/v1/play",
            f"{sockets_of(processes, 1)}/v1/play$is_args",
        ),
        ("resolver kube-dns.kube-system.svc.cluster.local valid=2s;", ""),
        (" /tmp/", f" {folder}/"),
        *everywhere(folder, port),
        ("pid ", "# pid "),
    ):
        assert name in text
        text = text.replace(name, address)
    return text


@asynccontextmanager
async def nginx(processes: Fleet, folder: Path, written: Callable[[Fleet, Path, int], str], port: int):
    """The front door's address, as long as this lasts."""
    conf = folder / "nginx.conf"
    conf.write_text(written(processes, folder, port))
    settings = f"daemon off; pid {folder}/pid; error_log {folder}/error.log;"
    if os.geteuid() == 0:  # or its workers could not write into the folder
        settings += " user root;"
    door = await asyncio.create_subprocess_exec(
        "nginx", "-p", str(folder), "-c", str(conf), "-e", f"{folder}/error.log", "-g", settings
    )
    try:
        async with asyncio.timeout(SOON_S):
            while True:
                with suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                await asyncio.sleep(0.02)
        yield f"https://localhost:{port}"
    finally:
        door.terminate()
        await door.wait()


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="session",
    params=[configuration, pytest.param(in_a_cluster, marks=pytest.mark.slow)],
)
async def door(tmp_path_factory, request):
    """The processes, the front door's address, and the options of `run` with which bots trust it."""
    folder = tmp_path_factory.mktemp("nginx")
    issue_certificate(folder / "ca", folder / "tls", ["seatwise.internal", "localhost"])
    issue_certificate(folder / "ca", folder / "door", ["localhost"])
    files = ("--tls-cert", str(folder / "tls" / "tls.crt"), "--tls-key", str(folder / "tls" / "tls.key"))
    async with AsyncExitStack() as stack:
        redis = stack.enter_context(EmbeddedRedis(folder / "redis"))
        processes = Fleet(folder, redis.url)
        stack.push_async_callback(processes.stop)
        with ZipFile(folder / WHEEL, "w") as wheel:
            wheel.writestr("seatwise/__init__.py", "")
        http = ("--http-port", "0", "--http-proxy", "127.0.0.0/8", "--wheel", str(folder / WHEEL))
        port = free_port()
        await processes.start(*FRONT, *http, *files)
        for number in (1, 2):
            named = ("--ws-address", f"wss://localhost:{port}/referee-{number}")
            await processes.start(*REFEREE, *named, *files)
        at = await stack.enter_async_context(nginx(processes, folder, request.param, port))
        yield processes, at, folder


async def tokens(processes: Fleet, *names: str) -> list[str]:
    front = processes.processes[0]
    async with AsyncClient(front.address, front.token) as admin:
        return [(await admin.register_bot(name)).token for name in names]


async def test_bots_that_reach_nothing_but_the_front_door_play_at_every_referee(door):
    """By TLS on every way, trusting the pin of the door's key."""
    processes, address, folder = door
    pin = read_identity(TlsFiles(folder / "door" / "tls.crt", folder / "door" / "tls.key")).pin
    results: list = []

    async def play(token: str) -> None:
        await run_async(
            "random", address=address, token=token, queues=("casual-2",), max_matches=2, matches=2,
            on_result=results.append, front_door=True, tls_pin=pin,
        )  # fmt: skip

    async with asyncio.timeout(60):
        await asyncio.gather(*map(play, await tokens(processes, "a", "b", "c", "d")))
    assert len(results) == 8
    assert not [result for result in results if result.is_void]
    opened = [
        [line for line in process.log if line["event"] == "match_opened"]
        for process in processes.processes[1:3]
    ]
    assert sum(map(len, opened)) >= 4


async def test_bots_by_websocket_go_where_their_offers_send_them(door, request):
    """To one origin, by the path that names the referee; with front_door and without."""
    processes, address, folder = door
    if "configuration" not in request.node.name:
        pytest.skip("there is nobody to look names up here")
    pin = read_identity(TlsFiles(folder / "door" / "tls.crt", folder / "door" / "tls.key")).pin
    results: list = []

    async def play(token: str, front_door: bool) -> None:
        await run_async(
            "random", address=address.replace("https://", "wss://"), token=token, queues=("casual-2",), max_matches=2,
            matches=2, on_result=results.append, front_door=front_door, tls_pin=pin,
        )  # fmt: skip

    tried = zip(await tokens(processes, "w1", "w2", "w3", "w4"), (True, False, True, False), strict=True)
    async with asyncio.timeout(60):
        await asyncio.gather(*[play(*each) for each in tried])
    assert len(results) == 8
    assert not [result for result in results if result.is_void]
    ended = [line for it in processes.processes[1:3] for line in it.log if line.get("door") == "websocket"]
    assert {line["code"] for line in ended} <= {"OK", "CANCELLED"}
    assert ended


async def test_the_api_is_there_too(door):
    """gRPC and REST have one origin, and the gateway knows who calls."""
    processes, address, folder = door
    trust = ssl.create_default_context(cafile=str(folder / "ca" / "ca.crt"))
    async with http_connection(address, tls=trust) as http:
        games = await http.get("/v1/games")
        assert games.status == 200
        assert len(games.json["games"]) == 2
        lost = await http.call("POST", "/v1/matches", {}, {"x-forwarded-for": "192.0.2.1"})
        assert (lost.status, lost.reason) == (401, "TOKEN_MISSING")
        large = await http.call(
            "POST", "/v1/bots", b"x" * 300_000, {"authorization": "Bearer " + processes.processes[0].token}
        )
        assert (large.status, large.reason) == (413, "REQUEST_TOO_LARGE")


async def test_the_pages_are_there_too(door):
    _, address, folder = door
    trust = ssl.create_default_context(cafile=str(folder / "ca" / "ca.crt"))
    async with http_connection(address, tls=trust) as http:
        style = re.search(rb"/static/[^\"]+", (await http.get("/")).body)
        assert style
        for path in ("/matches", "/operators", "/readyz", "/v1/docs", style[0].decode()):
            assert (await http.get(path)).status == 200, path
        assert (await http.get("/healthz")).status == 204  # nginx itself
        assert (await http.get(f"/dist/{WHEEL}")).body == (folder / WHEEL).read_bytes()
        lost = await http.get("/nothing")
        assert (lost.status, b"nginx" in lost.body) == (404, False)


async def test_every_service_of_grpc_is_there(door):
    _, address, folder = door
    credentials = grpc.ssl_channel_credentials((folder / "ca" / "ca.crt").read_bytes())
    async with grpc.aio.secure_channel(address.removeprefix("https://"), credentials) as channel:
        assert await channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=SOON_S)
        assert await channel.unary_unary("/seatwise.v1.GameService/ListGames")(b"", timeout=SOON_S)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await channel.unary_unary("/seatwise.v2.Nothing/Ask")(b"", timeout=SOON_S)
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.slow
async def test_seven_hundred_connections_of_strangers_keep_nobody_out(door):
    """Each address has at most 32 streams, and all come to the gateway from one proxy that was named as a network."""
    processes, address, folder = door
    trust = ssl.create_default_context(cafile=str(folder / "ca" / "ca.crt"))
    front, port = processes.processes[0], int(address.rpartition(":")[2])
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(AsyncClient(front.address, front.token))
        bots = [(await admin.register_bot(name)).bot for name in ("s1", "s2")]
        match = await admin.create_match("ugo", bots)
        for number in range(700):
            reader, writer = await asyncio.open_connection(
                "localhost",
                port,
                ssl=trust,
                local_addr=(f"127.0.1.{1 + number // 30}", 0),
                family=socket.AF_INET,
            )
            stack.callback(writer.close)
            writer.write(f"GET /v1/{match.name}:watch HTTP/1.1\r\nhost: x\r\n\r\n".encode())
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        async with http_connection(address, tls=trust) as http:
            assert [(await http.get(path)).status for path in ("/v1/games", "/", "/matches")] == [200] * 3


async def test_bots_that_reach_nothing_but_https_play_there(door):
    """By plain HTTP, through the door: the gateway follows the offers."""
    processes, address, folder = door
    pin = read_identity(TlsFiles(folder / "door" / "tls.crt", folder / "door" / "tls.key")).pin
    results: list = []
    async with asyncio.timeout(60):
        await asyncio.gather(*[
            run_async(
                "random", address=f"rest+{address}", token=token, queues=("casual-2",), matches=1, on_result=results.append,
                tls_pin=pin,
            )
            for token in await tokens(processes, "h1", "h2")
        ])  # fmt: skip
    assert [result.is_void for result in results] == [False] * 2


async def test_a_referee_that_the_door_does_not_know_is_not_looked_for(door):
    processes, address, folder = door
    [token] = await tokens(processes, "e")
    credentials = grpc.ssl_channel_credentials((folder / "ca" / "ca.crt").read_bytes())
    async with grpc.aio.secure_channel(address.removeprefix("https://"), credentials) as channel:
        for named in ("10.0.0.1:22", "https://10.0.0.1:22", "", "lobbies"):
            metadata = (("authorization", f"Bearer {token}"), ("seatwise-referee", named))
            call = channel.stream_stream(PLAY, None, None)(metadata=metadata, timeout=SOON_S)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call.read()
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_an_address_that_calls_without_end_is_refused_and_may_come_again(door):
    """The last test at this door, for it uses up what one address may call."""
    _, address, folder = door
    credentials = grpc.ssl_channel_credentials((folder / "ca" / "ca.crt").read_bytes())
    async with AsyncExitStack() as stack:
        asks = []
        for number in range(
            4
        ):  # one connection has at most 256 calls open, and 512 of an address are too many
            channel = grpc.aio.secure_channel(
                address.removeprefix("https://"), credentials, [("connection", number)]
            )
            await stack.enter_async_context(channel)
            asks.append(channel.unary_unary("/seatwise.v1.GameService/ListGames"))
        answers = await asyncio.gather(*(asks[call % 4](b"") for call in range(1000)), return_exceptions=True)
        refused = [each for each in answers if isinstance(each, grpc.aio.AioRpcError)]
        by_code = Counter(each.code() for each in refused)
        assert 100 < by_code[grpc.StatusCode.UNAVAILABLE] < 700, "the door refuses those"
        assert by_code.keys() <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}
        await asyncio.sleep(1)  # the door counts by the second
        assert await asks[0](b"")


async def test_the_door_trusts_only_processes_of_its_own_ca(door):
    """Behind it nobody can slip in either: with another CA in its folder it reaches no process."""
    processes, _, folder = door
    elsewhere = folder / "elsewhere"
    issue_certificate(elsewhere / "ca", elsewhere / "tls", ["seatwise.internal"])
    shutil.copytree(folder / "door", elsewhere / "door")
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(nginx(processes, elsewhere, configuration, free_port()))
        client = await stack.enter_async_context(AsyncClient(address, "", patience_s=0.0))
        with pytest.raises(UnavailableError):
            await client.list_matches()
