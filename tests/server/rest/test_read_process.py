"""Anonymous reads beside the matches: the process that answers them, and the way there."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import tempfile
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from harness import House, Wire, house_in, in_memory, server_process, until
from harness.wire import SOON_S

from seatwise.remote import run_async
from seatwise.v1 import match_pb2
from seatwise.v1 import match_service_pb2 as pb
from seatwise_server import app, limits
from seatwise_server.config import Config, HttpSettings
from seatwise_server.counts import COUNTS
from seatwise_server.read_process import ReadProcess
from seatwise_server.refusal import Refusal
from seatwise_server.rest.http_server import bind_port
from seatwise_server.rpc.read_forwarder import ReadForwarder
from seatwise_server.store import StoredMatchPage

pytestmark = pytest.mark.asyncio(loop_scope="session")

LIST = "/seatwise.v1.MatchService/ListMatches"
GET = "/seatwise.v1.MatchService/GetMatch"
BACK_WITHIN_S = 20.0
"""A process starts in a second, or in ten on a machine with much else to do."""


async def process_other_than(process: ReadProcess, before: int | None = None) -> int:
    """The process that answers now, once there is another one."""
    return int(await until(lambda: process.pid if process.pid != before else None, BACK_WITHIN_S))


async def ask(wire: Wire, method: str, raw: bytes = b"", token: str = "") -> bytes:
    """The bytes of the response, to these bytes."""
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    call: Any = wire.channel.unary_unary(method)
    answer: bytes = await call(raw, metadata=metadata, timeout=SOON_S)
    return answer


def process_of(house: House) -> ReadProcess:
    assert house.server
    assert house.server.reads
    return house.server.reads


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def reading_house() -> AsyncIterator[House]:
    """A server in this process, with a process for reads that is up."""
    with tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as folder:
        async with house_in(Path(folder), has_read_process=True) as house:
            await ask(house.wire(), LIST)
            await process_other_than(process_of(house))
            yield house


class NotHere(AssertionError):
    """This process must not answer."""


@pytest.fixture
def nothing_here(reading_house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process reads no match."""

    async def refuse(*_: Any) -> None:
        raise NotHere

    assert reading_house.server
    monkeypatch.setattr(reading_house.server.store.matches, "list_page", refuse)
    monkeypatch.setattr(reading_house.server.store.matches, "get_record", refuse)


@pytest.mark.usefixtures("nothing_here")
async def test_reads_without_a_token_are_answered_elsewhere(reading_house: House) -> None:
    admin, wire = reading_house.admin, reading_house.wire()
    match = await admin.create([(await reading_house.bot()).bot for _ in range(2)])
    found = pb.ListMatchesResponse.FromString(await ask(wire, LIST))
    assert match.name in [each.name for each in found.matches]
    got = pb.GetMatchResponse.FromString(
        await ask(wire, GET, pb.GetMatchRequest(name=match.name).SerializeToString())
    )
    assert got.match == match
    assert await asyncio.gather(*(ask(wire, LIST) for _ in range(20)))


async def test_reads_with_a_token_are_answered_here(
    reading_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def list_page(*_: Any) -> StoredMatchPage:
        return StoredMatchPage((), "here")

    assert reading_house.server
    monkeypatch.setattr(reading_house.server.store.matches, "list_page", list_page)
    bot = await reading_house.bot()
    assert await ask(bot, LIST, token=bot.token) == b"\x12\x04here"
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await ask(bot, LIST, token="wrong")
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize(
    ("method", "raw"),
    [
        (GET, pb.GetMatchRequest(name="matches/none").SerializeToString()),
        (GET, pb.GetMatchRequest(name="\N{SNOWMAN}\n" * 99).SerializeToString()),
        (LIST, pb.ListMatchesRequest(page_size=-1).SerializeToString()),
        (LIST, pb.ListMatchesRequest(page_token="?").SerializeToString()),
        (LIST, b"\xff"),
    ],
)
async def test_a_refusal_is_the_same_wherever_it_comes_from(
    reading_house: House, method: str, raw: bytes
) -> None:
    wire, told = reading_house.wire(), []
    for token in ("", reading_house.admin.token):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await ask(wire, method, raw, token)
        error = refused.value
        told.append((error.code(), error.details(), list(error.trailing_metadata() or ())))
    assert told[0] == told[1]


async def test_a_match_is_watched_to_its_end_elsewhere(
    reading_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reading_house.server
    monkeypatch.setattr(reading_house.server.store.journal, "wait_for_entries", None)
    match = await reading_house.admin.create([(await reading_house.bot()).bot for _ in range(2)])
    request = pb.WatchMatchRequest(name=match.name)
    async with asyncio.timeout(SOON_S):
        call = reading_house.wire().matches.WatchMatch(request)
        seen = [await call.read()]
        await reading_house.admin.abort(match.name)
        while (response := await call.read()) is not grpc.aio.EOF:
            seen.append(response)
    assert seen[0].match.name == match.name
    assert seen[-1].match.void_reason == "ABORTED"


async def test_the_process_is_started_again_and_spectators_are_told_to_come_back(
    reading_house: House,
) -> None:
    process = process_of(reading_house)
    before = await process_other_than(process)
    match = await reading_house.admin.create([(await reading_house.bot()).bot for _ in range(2)])
    wire = reading_house.wire()
    watching = wire.matches.WatchMatch(pb.WatchMatchRequest(name=match.name))
    await watching.read()
    os.kill(before, signal.SIGKILL)
    for _ in range(5):
        assert await ask(wire, GET, pb.GetMatchRequest(name=match.name).SerializeToString())
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await watching.read()
    assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
    await process_other_than(process, before)
    assert await ask(wire, LIST)


async def test_a_match_is_unharmed_by_callers_and_by_the_death_of_the_process(reading_house: House) -> None:
    """Reads go on meanwhile: refused is only what is too much for the server itself."""
    house, process = reading_house, process_of(reading_house)
    before = await process_other_than(process)
    players = [await house.bot() for _ in range(2)]
    playing = [
        asyncio.create_task(run_async("random", address=house.address, token=bot.token, queues=()))
        for bot in players
    ]
    answered, refused = list[bytes](), set[grpc.StatusCode]()

    async def call_lists(wire: Wire) -> None:
        while True:
            try:
                answered.append(await ask(wire, LIST))
                await asyncio.sleep(0.002)
            except grpc.aio.AioRpcError as error:
                refused.add(error.code())
                await asyncio.sleep(0.01)

    calling = [asyncio.create_task(call_lists(house.wire())) for _ in range(4)]
    match = await house.admin.create([bot.bot for bot in players], rounds=3)
    os.kill(before, signal.SIGKILL)
    await process_other_than(process, before)
    request = pb.GetMatchRequest(name=match.name).SerializeToString()
    async with asyncio.timeout(BACK_WITHIN_S):
        over = match
        while not over.result.ranks:
            await asyncio.sleep(0.1)
            over = pb.GetMatchResponse.FromString(await ask(players[0], GET, request)).match
    for task in (*calling, *playing):
        task.cancel()
    await asyncio.gather(*calling, *playing, return_exceptions=True)
    assert over.result.endings == [match_pb2.ENDING_COMPLETED] * 2
    assert answered
    assert refused <= {grpc.StatusCode.RESOURCE_EXHAUSTED}


async def test_the_process_may_have_half_a_gibibyte_and_steps_back(reading_house: House) -> None:
    """It is a gateway like any other: above its limit it ends itself, and is started again."""
    told = process_of(reading_house)._plan(Path("socket")).config
    assert (told.max_memory, told.niceness, told.roles) == (2**29, 10, {"gateway"})


async def test_only_this_user_reaches_its_socket(reading_house: House) -> None:
    folder = process_of(reading_house).folder
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert os.listdir(folder) == [f"{os.getpid()}.sock"]


async def test_it_ends_with_the_server_without_a_warning_and_leaves_no_socket_and_no_port() -> None:
    with tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as folder:
        async with house_in(Path(folder), has_read_process=True, http=HttpSettings(port=0)) as house:
            assert house.server
            port = int(house.server.http_address.rpartition(":")[2])
            process = process_of(house)
            pid = await process_other_than(process)
        assert os.listdir(process.folder) == []
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        assert house.logs.named("read_process_started")
        assert not house.logs.named("read_process_ended")


async def test_it_dies_with_a_server_that_is_killed() -> None:
    async with server_process() as (server, house):
        await ask(house.wire(), LIST)
        started = await until(
            lambda: [line for line in server.log if line["event"] == "read_process_started"]
        )
        await server.kill()
        await until(lambda: not is_running(started[0]["pid"]), within_s=BACK_WITHIN_S)


def is_running(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


async def test_a_server_that_nobody_reads_has_no_such_process() -> None:
    with tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as folder:
        async with house_in(Path(folder), has_read_process=True) as house:
            await house.bot()
            assert process_of(house).pid is None
            assert not house.logs.named("read_process_started")


# HTTP


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def http_reading_house() -> AsyncIterator[House]:
    """A server in this process whose process for reads serves HTTP."""
    with tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as folder:
        async with house_in(Path(folder), has_read_process=True, http=HttpSettings(port=0)) as house:
            yield house


async def test_http_is_served_beside_the_matches(
    http_reading_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request waits until the process is there."""
    house = http_reading_house
    assert house.server
    async with house.http() as http:
        await http.send("GET", "/v1/games")
        assert (await http.answer(within_s=BACK_WITHIN_S)).status == 200
        monkeypatch.setattr(house.server.store.matches, "list_page", None)
        await http.send("GET", "/v1/matches")
        assert (await http.answer()).status == 200
    async with house.http(house.admin.token) as http:
        bots = [(await house.bot()).bot for _ in range(2)]
        await http.send("POST", "/v1/matches", {"game": "games/ugo", "bots": bots})
        made = await http.answer()
        assert (made.status, made.json["match"]["state"]) == (200, "STATE_WAITING")


async def test_http_says_whether_the_whole_server_is_ready(
    http_reading_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = http_reading_house
    assert house.server
    assert house.server.referee

    async def is_ready(status: int) -> None:
        async with house.http() as http, asyncio.timeout(BACK_WITHIN_S):
            told = 0
            while told != status:
                await http.send("GET", "/readyz")
                told = (await http.answer(within_s=BACK_WITHIN_S)).status

    await is_ready(200)
    with monkeypatch.context() as patch:
        patch.setattr(house.server.referee.lease, "holds", lambda: False)
        await is_ready(503)
    await is_ready(200)


async def test_a_connection_waits_while_the_process_is_started_again(http_reading_house: House) -> None:
    process = process_of(http_reading_house)
    before = await process_other_than(process)
    os.kill(before, signal.SIGKILL)
    await until(lambda: not is_running(before))
    async with http_reading_house.http() as http:
        await http.send("GET", "/v1/games")
        assert (await http.answer(within_s=BACK_WITHIN_S)).status == 200
    assert process.pid != before


async def test_the_server_counts_what_is_refused_over_http(http_reading_house: House) -> None:
    before = COUNTS.refusals["METHOD_NOT_ALLOWED"]
    async with http_reading_house.http() as http:
        for _ in range(2):
            await http.send("PUT", "/v1/games")
            assert (await http.answer(within_s=BACK_WITHIN_S)).status == 405
    await until(lambda: COUNTS.refusals["METHOD_NOT_ALLOWED"] == before + 2)


# The way there


class Caller:
    """The context of a call without a deadline."""

    def time_remaining(self) -> None:
        return None


async def test_this_process_answers_few_reads_at_once_itself() -> None:
    forwarder, gate = ReadForwarder(), asyncio.Event()
    context: Any = Caller()

    async def answer() -> bytes:
        await gate.wait()
        return b"here"

    most = limits.OWN_READS.most
    asked = [asyncio.create_task(forwarder.call_unary(LIST, b"", context, answer)) for _ in range(most + 1)]
    await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED, timeout=SOON_S)
    gate.set()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert answers[:most] == [b"here"] * most
    refused = answers[most]
    assert isinstance(refused, Refusal)
    assert (refused.reason, refused.metadata) == ("SERVER_FULL", {"retry_after": "1"})


async def test_no_more_reads_wait_for_the_process_than_it_may_have(reading_house: House) -> None:
    await process_other_than(process_of(reading_house))
    wires = [reading_house.wire() for _ in range(4)]
    most = limits.FORWARDED_READS.most
    asked = [ask(wires[number % 4], LIST) for number in range(4 * most)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    refused = [each for each in answers if isinstance(each, grpc.aio.AioRpcError)]
    assert {each.code() for each in refused} <= {grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert len(answers) - len(refused) >= most


async def test_a_start_waits_for_the_port_of_a_server_that_was_killed() -> None:
    held = bind_port("127.0.0.1", 0)
    held.listen()
    config = Config(port=0, http=HttpSettings(port=held.getsockname()[1]))
    waiting = asyncio.create_task(app._wait_for_ports(config))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    held.close()
    await asyncio.wait_for(waiting, 1.0)
