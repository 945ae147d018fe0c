"""One public address: deploy/nginx.conf sends each stream to the referee that the SDK names."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
import yaml
from harness import SOON_S, Fleet, fleet

from seatwise.remote import run_async

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(
        not shutil.which("nginx"), reason="NGINX IS NOT INSTALLED: the front door is not tested"
    ),
]

DEPLOY = Path(__file__).parents[2] / "deploy"
CONF = DEPLOY / "nginx.conf"
MANIFEST = DEPLOY / "kubernetes" / "front-door.yaml"
REFEREES = re.compile(r'"~\^seatwise-referee.*?\$"')
PLAY = "/seatwise.v1.PlayService/Play"


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def configuration(processes: Fleet, folder: Path, port: int) -> str:
    """The example, with the addresses of these processes in the place of its own."""
    front, one, two = (process.address for process in processes.processes[:3])
    text = CONF.read_text()
    for name, address in (
        ("lobby-1.internal:7433", front), ("lobby-2.internal:7433", front),
        ("gateway-1.internal:7433", front), ("gateway-2.internal:7433", front),
        ("referee-1.internal:7433", one), ("referee-2.internal:7433", two),
        ("listen 7443", f"listen 127.0.0.1:{port}"),
    ):  # fmt: skip
        assert name in text
        text = text.replace(name, address)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    return text.replace("access_log off;", f"access_log off;\n{places}")


def in_a_cluster(processes: Fleet, folder: Path, port: int) -> str:
    """The one of Kubernetes, which knows referees by a pattern of their names; there is nobody to look names up here."""
    front, *referees = (process.address for process in processes.processes[:3])
    [text] = [it["data"]["nginx.conf"] for it in yaml.safe_load_all(MANIFEST.read_text()) if "data" in it]
    pattern = "|".join(map(re.escape, referees))
    text, count = REFEREES.subn(lambda _: f'"~^({pattern})$"', text)
    assert count == 1
    for name, address in (
        ("seatwise-lobby.seatwise.svc.cluster.local:7433", front),
        ("seatwise-gateway.seatwise.svc.cluster.local:7433", front),
        ("resolver kube-dns.kube-system.svc.cluster.local valid=2s;", ""),
        ("listen 7443", f"listen 127.0.0.1:{port}"),
        (" /tmp/", f" {folder}/"),
        ("pid ", "# pid "),
    ):
        assert name in text
        text = text.replace(name, address)
    return text


@asynccontextmanager
async def nginx(processes: Fleet, folder: Path, written: Callable[[Fleet, Path, int], str]):
    """The front door's address, as long as this lasts."""
    port = free_port()
    conf = folder / "nginx.conf"
    conf.write_text(written(processes, folder, port))
    settings = f"daemon off; pid {folder}/pid; error_log {folder}/error.log;"
    door = await asyncio.create_subprocess_exec(
        "nginx", "-p", str(folder), "-c", str(conf), "-e", f"{folder}/error.log", "-g", settings
    )
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            async with asyncio.timeout(SOON_S):
                await channel.channel_ready()
        yield f"127.0.0.1:{port}"
    finally:
        door.terminate()
        await door.wait()


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="session",
    params=[configuration, pytest.param(in_a_cluster, marks=pytest.mark.slow)],
)
async def door(tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("nginx")
    async with fleet(2) as (processes, house), nginx(processes, folder, request.param) as address:
        yield processes, house, address


async def play(address: str, token: str, results: list) -> None:
    await run_async(
        "random", address=address, token=token, queues=("casual-2",), max_matches=2, matches=2,
        on_result=results.append, front_door=True,
    )  # fmt: skip


async def test_bots_that_reach_nothing_but_the_front_door_play_at_every_referee(door):
    processes, house, address = door
    bots = [await house.bot() for _ in range(4)]
    results: list = []
    async with asyncio.timeout(60):
        await asyncio.gather(*[play(address, bot.token, results) for bot in bots])
    assert len(results) == 8
    assert not [result for result in results if result.is_void]
    opened = [
        [line for line in process.log if line["event"] == "match_opened"]
        for process in processes.processes[1:3]
    ]
    assert sum(map(len, opened)) >= 4


async def test_a_referee_that_the_door_does_not_know_is_not_looked_for(door):
    _, house, address = door
    bot = await house.bot()
    async with grpc.aio.insecure_channel(address) as channel:
        for named in ("10.0.0.1:22", "", "lobbies"):
            call = channel.stream_stream(PLAY, None, None)(
                metadata=(*bot.metadata, ("seatwise-referee", named)), timeout=SOON_S
            )
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call.read()
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
