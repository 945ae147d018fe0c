"""Each role by itself: what it serves, what it leaves to others, and several of a kind on one Redis."""

from __future__ import annotations

import asyncio
import signal
import sys

import grpc
import pytest
import pytest_asyncio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from harness import Attending, Chair, Fleet, House, Wire, fleet, plays_on, refusal_of
from harness.process import _SERVE
from harness.table import Table

from seatwise.errors import ServerFullError, from_rpc
from seatwise.v1 import lobby_service_pb2
from seatwise_server.lobby import lobby
from seatwise_server.play import play_stream
from seatwise_server.services import matches

pytestmark = pytest.mark.asyncio(loop_scope="session")

METHODS = {
    "lobby": "/seatwise.v1.LobbyService/Attend",
    "referee": "/seatwise.v1.PlayService/Play",
    "gateway": "/seatwise.v1.GameService/ListGames",
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def ships():
    async with fleet(1, "--tables", "2") as (processes, house):
        yield processes, house


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def second_lobby(ships):
    return await ships[0].start("--role", "lobby")


async def serves(address: str, method: str) -> bool:
    """Whether the process has this method, whatever it says to a call without a token."""
    async with grpc.aio.insecure_channel(address) as channel:
        await channel.channel_ready()
        call = channel.unary_unary(method, None, None)
        try:
            await call(b"", timeout=5)
        except grpc.aio.AioRpcError as error:
            return error.code() is not grpc.StatusCode.UNIMPLEMENTED
        return True


async def health(address: str, service: str = "") -> str:
    async with grpc.aio.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=5)
        return health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)


async def attend_at(address: str, bot: Wire, *queues: str, most: int = 1) -> tuple[Wire, Attending]:
    """The bot attends at this lobby, wherever it was registered."""
    wire = Wire(address, bot.token, bot.bot)
    await wire.channel.channel_ready()
    return wire, await wire.attend(list(queues), max_matches=most)


async def play(bots: list[Wire], attending: list[Attending], house: House) -> str:
    """The match that all of them are offered, played to its end at its referee; they want no other."""
    offers = [await each.offer() for each in attending]
    for each in attending:
        await each.say(0)
    wires = [Wire(offers[0].address, bot.token, bot.bot) for bot in bots]
    for wire in wires:
        await wire.channel.channel_ready()
    chairs = [Chair(wire, offer.match, offer.seat) for wire, offer in zip(wires, offers, strict=True)]
    table = Table(await house.admin.match(offers[0].match), chairs)
    await table.sit()
    await plays_on(house, table)
    for wire in wires:
        await wire.drop()
    return offers[0].match


async def test_a_process_serves_its_roles_and_no_other(ships):
    processes: Fleet = ships[0]
    front, referee = processes.processes[:2]
    found = {
        name: [await serves(each.address, method) for each in (front, referee)]
        for name, method in METHODS.items()
    }
    assert found == {"lobby": [True, False], "gateway": [True, False], "referee": [False, True]}
    assert await health(referee.address) == await health(front.address) == "SERVING"
    assert await health(referee.address, "seatwise.v1.PlayService") == "SERVING"


async def test_a_single_role_needs_a_redis_that_others_can_reach():
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, "-c", _SERVE, "--role", "lobby"]
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    _, complained = await process.communicate()
    assert process.returncode == 2
    assert b"needs --redis URL" in complained


async def test_bots_at_two_lobbies_are_seated_together_and_once(ships, second_lobby):
    _, house = ships
    bots = [await house.bot() for _ in range(4)]
    at = [house.address, second_lobby.address] * 2
    here = [await attend_at(address, bot, "casual") for address, bot in zip(at, bots, strict=True)]
    match = await play(bots, [attending for _, attending in here], house)
    assert {offer.match for _, attending in here for offer in attending.offers} == {match}
    for wire, _ in here:
        await wire.drop()


async def test_a_bot_that_attends_at_another_lobby_ends_the_older_stream(ships, second_lobby):
    _, house = ships
    bot = await house.bot()
    wire, older = await attend_at(house.address, bot, "casual")
    other, newer = await attend_at(second_lobby.address, bot, "casual")
    assert (await older.end(2)).reason == "REPLACED"
    await asyncio.sleep(0.3)
    assert newer.how is None
    await wire.drop()
    await other.drop()


async def test_the_death_of_a_lobby_costs_a_bot_nothing_but_its_stream(ships):
    processes, house = ships
    dying = await processes.start("--role", "lobby")
    bots = [await house.bot() for _ in range(2)]
    lost = [await attend_at(dying.address, bot, "casual-2") for bot in bots[:1]]
    dying.signal(signal.SIGKILL)
    await lost[0][1].end()
    here = [await attend_at(house.address, bot, "casual-2") for bot in bots]
    await play(bots, [attending for _, attending in here], house)
    for wire, _ in (*lost, *here):
        await wire.drop()


async def test_when_tables_are_full_bots_wait_in_their_queue_and_know_their_place(ships):
    processes, house = ships
    referee = processes.processes[1]
    minute = {
        "card": 60_000,
        "arrange": 60_000,
    }  # nobody moves for a while, and no table may be free because of that
    running = [await processes.seated(house, free_ms=minute) for _ in range(2)]
    await asyncio.sleep(1.2)  # a heartbeat says that nothing is free
    assert await health(referee.address) == "NOT_SERVING"
    assert await health(referee.address, "able") == await health(referee.address, "live") == "SERVING"
    bots = [await house.bot() for _ in range(4)]
    waiting = [await bot.attend(["casual-2"], max_matches=1) for bot in bots]
    for place, each in enumerate(waiting, 1):
        await each.until(lambda each=each, place=place: ("casual-2", place) in each.places)
    assert not [each.offers for each in waiting if each.offers]
    await plays_on(house, running[0].table)
    await waiting[0].offer()
    await waiting[2].until(lambda: ("casual-2", 1) in waiting[2].places)
    await play(bots[:2], waiting[:2], house)
    await play(bots[2:], waiting[2:], house)
    await plays_on(house, running[1].table)


@pytest.fixture
def _full(monkeypatch):
    monkeypatch.setattr(lobby, "MOST_PRESENT", 0)
    monkeypatch.setattr(play_stream, "MOST_STREAMS", 0)
    monkeypatch.setattr(matches, "MOST_WAITING", 0)


@pytest.mark.usefixtures("_full")
@pytest.mark.slow
async def test_a_full_house_says_so_and_when_to_come_back(house):
    bot = await house.bot()
    refused = [
        (await bot.play().end()),
        await refusal_of(house.admin.create([bot.bot, bot.bot])),
    ]
    attending = bot.attending()
    await attending.say(1)
    refused.append(await attending.end())
    assert {(how.code, how.reason) for how in refused} == {("RESOURCE_EXHAUSTED", "SERVER_FULL")}
    with pytest.raises(ServerFullError) as full:
        await sdk_error(bot)
    assert full.value.retry_after == 5


async def sdk_error(bot: Wire) -> None:
    """What the SDK makes of it."""
    call = bot.channel.stream_stream(
        METHODS["lobby"],
        lobby_service_pb2.AttendRequest.SerializeToString,
        lobby_service_pb2.AttendResponse.FromString,
    )(metadata=bot.metadata)
    try:
        await call.write(lobby_service_pb2.AttendRequest(max_matches=1))
        await call.read()
    except grpc.aio.AioRpcError as error:
        raise from_rpc(error) from error
