"""Bots of the SDK that come by plain HTTP: whole matches of both games, lost links, takeovers, TLS, and how they end."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from doubles.certificates import HERE, identity
from harness import FRONT, REFEREE, Fleet, House, ServerProcess, until
from harness.house import house_in
from harness.proxy import proxy_to

from seatwise.async_client import AsyncClient
from seatwise.errors import BadTokenError, EncryptionError, NotFoundError, UsageError
from seatwise.link.endpoint import is_local_address
from seatwise.link.security import Security
from seatwise.remote import choose_wire, run_async
from seatwise_server.config import HttpSettings
from seatwise_server.embedded import EmbeddedRedis
from seatwise_server.tls.tls_files import TlsFiles

pytestmark = pytest.mark.asyncio(loop_scope="session")

CA = identity(is_ca=True, subject="test CA")


def address_of(house: House) -> str:
    assert house.server is not None
    return f"rest+{house.server.http_address}"


async def play(house: House, address: str, sample: str, game: str, **options: Any) -> list[Any]:
    """Two bots of this sample play two matches by this address; their results."""
    wires, results = [await house.bot() for _ in range(2)], []
    for _ in range(2):
        await house.admin.create([wire.bot for wire in wires], game=game, **options)
    async with asyncio.timeout(60):
        await asyncio.gather(*[
            run_async(
                sample, game=game, address=address, token=wire.token, queues=(), matches=2, max_matches=2,
                on_result=results.append,
            )
            for wire in wires
        ])  # fmt: skip
    return results


@pytest.mark.parametrize(("sample", "game", "limits"), [
    ("greedy", "ugo", {}), ("solver", "ubongo", {"free_ms": {"build": 1500}}),
])  # fmt: skip
async def test_sample_bots_play_whole_matches_by_http(
    http_house: House, sample: str, game: str, limits: dict[str, Any]
) -> None:
    results = await play(http_house, address_of(http_house), sample, game, **limits)
    assert [result.is_void for result in results] == [False] * 4
    assert {ending for result in results for ending in result.endings} == {"COMPLETED"}


async def test_a_bot_whose_links_are_cut_comes_back_and_loses_no_move(http_house: House) -> None:
    assert http_house.server is not None
    async with proxy_to(http_house.server.http_address.removeprefix("http://")) as proxy:
        wires, results = [await http_house.bot() for _ in range(2)], []
        match = await http_house.admin.create([wire.bot for wire in wires], rounds=8)

        async def cut() -> None:
            for _ in range(4):
                await asyncio.sleep(0.15)
                proxy.cut()

        async with asyncio.timeout(60):
            await asyncio.gather(cut(), *[
                run_async(
                    "random", address=f"rest+http://{proxy.address}", token=wire.token, queues=(), matches=1,
                    on_result=results.append,
                )
                for wire in wires
            ])  # fmt: skip
    assert [result.is_void for result in results] == [False] * 2
    assert {ending for result in results for ending in result.endings} == {"COMPLETED"}
    await http_house.admin.record(match.name)


@pytest.mark.parametrize(
    ("options", "error"), [({"token": "none"}, BadTokenError), ({"queues": ("nowhere",)}, NotFoundError)]
)
async def test_a_bot_that_is_refused_for_good_ends(
    http_house: House, options: dict[str, Any], error: type[Exception]
) -> None:
    wire = await http_house.bot()
    with pytest.raises(error):
        async with asyncio.timeout(10):
            await run_async(
                "random", **{"address": address_of(http_house), "token": wire.token, "queues": (), **options}
            )


async def test_a_bot_that_drains_finishes_what_it_plays(http_house: House) -> None:
    """The new limit goes to the lobby by a post."""
    wires, results = [await http_house.bot() for _ in range(2)], []
    await http_house.admin.create([wire.bot for wire in wires], rounds=2)
    async with asyncio.timeout(30):
        await asyncio.gather(*[
            run_async(
                "random", address=address_of(http_house), token=wire.token, queues=(), matches=1, max_matches=4,
                on_result=results.append,
            )
            for wire in wires
        ])  # fmt: skip
    assert len(results) == 2
    lines = http_house.logs.named("rpc_ended", method="/v1/attendance", verb="POST")
    assert {line["status"] for line in lines} == {204}


@pytest.mark.slow  # test_takeover.py has it over gRPC and WebSocket in every run
async def test_a_referee_that_dies_is_followed_by_the_server(tmp_path: Path) -> None:
    """The bot stays at one URL; the seats go on elsewhere."""
    with EmbeddedRedis(tmp_path / "redis") as redis:
        fleet = Fleet(tmp_path, redis.url)
        try:
            await fleet.start(*FRONT, "--http-port", "0")
            for _ in range(2):
                await fleet.start(*REFEREE)
            front, *referees = fleet.processes
            await play_through_a_kill(front, referees)
        finally:
            await fleet.stop()


async def play_through_a_kill(front: ServerProcess, referees: list[ServerProcess]) -> None:
    [started] = [line for line in front.log if line["event"] == "server_started"]
    results: list[Any] = []
    async with AsyncClient(front.address, front.token) as admin:
        bots = [await admin.register_bot(f"bot{number}") for number in range(2)]
        playing = asyncio.gather(*[
            run_async(
                "random", address=f"rest+{started['http_address']}", token=bot.token, queues=(), matches=1,
                on_result=results.append,
            )
            for bot in bots
        ])  # fmt: skip
        await admin.create_match("ugo", [bot.bot for bot in bots], {"rounds": 8})

        def owner() -> ServerProcess | None:
            opened = [each for each in referees if any(line["event"] == "match_opened" for line in each.log)]
            return opened[0] if opened else None

        await (await until(owner)).kill()
        async with asyncio.timeout(60):
            await playing
    assert [result.is_void for result in results] == [False] * 2
    assert {ending for result in results for ending in result.endings} == {"COMPLETED"}


@asynccontextmanager
async def tls_house(folder: Path):
    cert, key = identity(*HERE, signer=CA).write(folder)
    settings = {"tls": TlsFiles(Path(cert), Path(key)), "http": HttpSettings(port=0)}
    async with house_in(folder, **settings) as house:
        yield house


async def test_by_tls_a_bot_trusts_a_ca_or_a_pin_and_nobody_else(tmp_path: Path) -> None:
    ca = CA.write(tmp_path, "ca")[0]
    async with tls_house(tmp_path) as house:
        assert house.server is not None
        port = house.server.http_address.rpartition(":")[2]
        other = f"rest+https://0.0.0.0:{port}"
        async with AsyncClient(house.server.address, house.admin.token, tls_ca=ca) as admin:
            bots = [await admin.register_bot(f"bot{number}") for number in range(2)]
            await admin.create_match("ugo", [bot.bot for bot in bots], {"rounds": 1})
        results: list[Any] = []
        async with asyncio.timeout(30):
            await asyncio.gather(*[
                run_async(
                    "random", address=other, token=bot.token, queues=(), matches=1, on_result=results.append, **security,
                )
                for bot, security in zip(bots, ({"tls_ca": ca}, {"tls_pin": house.server.pin}), strict=True)
            ])  # fmt: skip
        assert [result.is_void for result in results] == [False] * 2
        stranger = identity("elsewhere").pin
        for security in ({}, {"tls_pin": stranger}):
            with pytest.raises(EncryptionError):
                async with asyncio.timeout(10):
                    await run_async("random", address=other, token=bots[0].token, queues=(), **security)


async def test_a_token_does_not_travel_in_clear_to_another_machine() -> None:
    with pytest.raises(EncryptionError, match="in clear"):
        choose_wire("rest+http://example.org:7480", "secret", False, Security())
    assert choose_wire("rest+http://localhost:7480", "secret", False, Security()).address
    assert is_local_address("rest+http://localhost:7480")
    assert not is_local_address("rest+https://example.org")


async def test_a_client_at_the_port_for_http_is_told_so(http_house: House) -> None:
    assert http_house.server
    async with AsyncClient(http_house.server.http_address, "") as client:
        with pytest.raises(UsageError, match="is a port for HTTP or WebSockets: give the one for gRPC"):
            await client.list_matches()
