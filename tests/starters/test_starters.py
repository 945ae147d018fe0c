"""Each starter plays whole matches, over broken links and by TLS, ends for good reasons only, and drains."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio
from harness.house import House, house_in
from harness.proxy import proxy_to
from harness.table import Chair

from seatwise.async_client import AsyncClient
from seatwise_server.tls.tls_files import self_signed_files
from starters.starter import BUILD_S, STARTERS, Starter, running_starter

pytestmark = pytest.mark.timeout(2 * BUILD_S)

NEEDS_NO_BUILD = "node"
"""The starter that `make test` runs too."""


class Built(NamedTuple):
    """A starter that is ready to run."""

    starter: Starter
    folder: Path


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(each, id=each.name, marks=[] if each.name == NEEDS_NO_BUILD else [pytest.mark.slow])
        for each in STARTERS
    ],
)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    starter: Starter = request.param
    return Built(starter, starter.build(tmp_path_factory.mktemp(starter.name)))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    """With house bots, which fill the tables of the casual queues."""
    async with house_in(tmp_path_factory.mktemp("house"), house_bots=True, ws_port=0) as house:
        yield house


def target_of(built: Built, house: House) -> str:
    """host:port of the door that the starter comes by."""
    assert house.server
    return (house.server.ws_address if built.starter.scheme == "ws" else house.address).rpartition("/")[2]


async def finished_match(house: House, name: str, bot: str) -> None:
    """It counts, and the bot has played it to its end by itself."""
    match = await house.admin.over(name)
    assert match.HasField("result")
    assert match.result.endings[list(match.bots).index(bot)] == 1, "it is not COMPLETED"


@pytest.mark.asyncio(loop_scope="session")
async def test_it_plays_whole_matches_against_a_house_bot_over_links_that_break(
    built: Built, server: House
) -> None:
    bot = await server.admin.register()
    async with proxy_to(target_of(built, server)) as proxy:
        arguments = (
            "--address",
            built.starter.address_at(proxy.address),
            "--queue",
            "casual-2",
            "--max-matches",
            "1",
            "--matches",
            "2",
        )
        async with running_starter(built.starter.run, built.folder, bot.token, *arguments) as starter:
            first = (await starter.said(r"seated in (matches/\w+)"))[1]
            proxy.cut_after = 20_000
            assert await starter.ended(90.0) == 0
        second = (await starter.said(rf"seated in (matches/(?!{first[8:]})\w+)"))[1]
    for match in (first, second):
        await finished_match(server, match, bot.bot)
    assert any("coming again" in line for line in starter.lines)


@pytest.mark.asyncio(loop_scope="session")
async def test_it_finishes_its_match_after_an_interrupt_and_lost_links(built: Built, server: House) -> None:
    bot, other = await server.admin.register(), await server.bot()
    attending = await other.attend()
    async with proxy_to(target_of(built, server)) as proxy:
        arguments = ("--address", built.starter.address_at(proxy.address), "--queue", "")
        async with running_starter(built.starter.run, built.folder, bot.token, *arguments) as starter:
            match = await server.admin.create([bot.bot, other.bot], bank_ms=60_000)
            chair = Chair(other, match.name, (await attending.offer(match.name)).seat)
            await chair.sit()
            await chair.asked()
            starter.interrupt()
            await starter.said("draining")
            proxy.cut()
            playing = asyncio.create_task(chair.play_out(60.0))
            assert await starter.ended(60.0) == 0
            await playing
    await finished_match(server, match.name, bot.bot)


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    ("queue", "token", "reason"),
    [("casaul", "", "NOT_FOUND|no queue"), ("casual-2", "nonsense", "UNKNOWN|unknown")],
)
async def test_it_does_not_come_again_after_a_final_reason(
    built: Built, server: House, queue: str, token: str, reason: str
) -> None:
    bot = await server.admin.register()
    address = built.starter.address_at(target_of(built, server))
    arguments = ("--address", address, "--queue", queue)
    async with running_starter(built.starter.run, built.folder, token or bot.token, *arguments) as starter:
        assert await starter.ended() != 0
        await starter.said(reason)
    assert not any("coming again" in line for line in starter.lines)


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.slow
async def test_it_plays_by_tls_with_a_server_that_it_trusts_and_with_no_other(
    built: Built, tmp_path: Path
) -> None:
    files = self_signed_files(tmp_path)
    async with house_in(tmp_path, house_bots=True, ws_port=0, tls=files, is_tls_auto=True) as house:
        assert house.server
        address = f"localhost:{target_of(built, house).rpartition(':')[2]}"
        async with AsyncClient(house.address, house.admin.token, tls_pin=house.server.pin) as admin:
            tokens = [(await admin.register_bot(name)).token for name in ("friend", "stranger")]
        arguments = ("--address", built.starter.address_at(address, is_tls=True), "--queue", "casual-2")
        trusting, variables = built.starter.trust(files.cert)
        trusted = (*arguments, "--matches", "1", *trusting)
        async with running_starter(
            built.starter.run, built.folder, tokens[0], *trusted, **variables
        ) as starter:
            assert await starter.ended(60.0) == 0
        async with running_starter(built.starter.run, built.folder, tokens[1], *arguments) as stranger:
            await stranger.said("certificate|coming again|TLS|SSL|handshake")
            assert not any("seated" in line for line in stranger.lines)
