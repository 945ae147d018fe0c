"""Caching at the REST door: a 304 repeats reads instead of work, and is sent only if the response is the same."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from harness import House, HttpConnection
from harness.house import house_in, in_memory
from harness.published import DEAL_SET, LADDER, LEAGUE, Published, publishing

from seatwise_referee.ending import Ending
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.config import HttpSettings
from seatwise_server.rest.endpoints import OperationEndpoint
from seatwise_server.rest.known_versions import MOST_READS_KEPT, KnownVersions
from seatwise_server.store import RedisClient
from seatwise_server.store.redis.address import RedisMode
from seatwise_server.store.redis.client import Argument
from seatwise_server.store.redis.recorded_reads import ReadRecording, RecordingClient, recording_reads

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shown() -> AsyncIterator[tuple[House, Published]]:
    """A server that has something of everything."""
    with tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as folder:
        async with house_in(Path(folder), http=HttpSettings(port=0)) as house, publishing(house) as published:
            yield house, published


@pytest.fixture
def http_house(shown: tuple[House, Published]) -> House:
    """The server."""
    return shown[0]


@pytest.fixture
def published(shown: tuple[House, Published]) -> Published:
    """What it has."""
    return shown[1]


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The methods of the responses that were computed since."""
    methods: list[str] = []
    read = OperationEndpoint._read

    async def counted(self: OperationEndpoint, *args: Any) -> Any:
        methods.append(self.operation.method)
        return await read(self, *args)

    monkeypatch.setattr(OperationEndpoint, "_read", counted)
    return methods


def paths_of(what: Published) -> list[str]:
    """Of all resources that change and that everybody may read."""
    return [
        "games/ugo",
        *what.matches,
        *("matches", "matches?pageSize=2", f"matches?bot={what.bots[0]}"),
        *("bots", what.bots[0], f"{what.bots[0]}/opponents", DEAL_SET),
        *("ladders", LADDER, f"{LADDER}/standings", f"{LADDER}/standingsHistory", f"{LADDER}/results"),
        *("leagues", LEAGUE, f"{LEAGUE}/standings", f"{LEAGUE}/results"),
    ]


TRIES = 20
"""The bots of other tests have leases that may run out between two requests, which changes the list of bots."""


async def tag_of(http: HttpConnection, path: str) -> str:
    """The ETag of a response that was asked for twice, so that the server knows what it reads."""
    for _ in range(TRIES):
        answer = await http.get(f"/v1/{path}")
        assert answer.status == 200, path
        tag = answer.headers["etag"]
        if (await http.get(f"/v1/{path}", if_none_match=tag)).status == 304:
            return tag
    raise AssertionError(f"{path} is sent again and again")


async def test_what_was_asked_for_twice_is_not_computed_again(
    http_house: House, published: Published, computed: list[str]
) -> None:
    async with http_house.http() as http:
        for path in paths_of(published):
            for _ in range(TRIES):
                tag = await tag_of(http, path)
                computed.clear()
                again = await http.get(f"/v1/{path}", if_none_match=tag)
                if again.status == 304:
                    break
            assert (again.status, again.body, again.headers["etag"], computed) == (304, b"", tag, []), path


async def test_a_version_is_known_only_to_callers_with_the_same_rights(
    http_house: House, published: Published
) -> None:
    in_a_set = f"/v1/{published.matches[1]}"
    async with http_house.http(http_house.admin.token) as operator, http_house.http() as anybody:
        full = await tag_of(operator, published.matches[1])
        withheld = await tag_of(anybody, published.matches[1])
        assert full != withheld
        assert (await anybody.get(in_a_set, if_none_match=full)).status == 200
        assert (await operator.get(in_a_set, if_none_match=withheld)).status == 200
        assert (await operator.get(in_a_set, if_none_match=full)).status == 304


async def test_whatever_changes_is_sent_again(http_house: House, published: Published) -> None:
    assert http_house.server
    store, bot = http_house.server.store, published.bots[0]
    async with http_house.http() as http:

        async def changes(path: str, tag: str) -> None:
            now = await http.get(f"/v1/{path}", if_none_match=tag)
            assert (now.status, now.body) == (200, (await http.get(f"/v1/{path}")).body), path
            assert now.headers["etag"] != tag

        in_a_set, waiting, stranger = published.matches[1], published.matches[-1], published.bots[-1]
        first = ("matches", in_a_set, waiting, "bots", stranger)
        tags = {path: await tag_of(http, path) for path in first}
        assert "withheld" in (await http.get(f"/v1/{in_a_set}")).body.decode().lower()
        await http_house.admin.abort(waiting)
        await store.bots.revoke_token(stranger)
        await store.sets.close_set(DEAL_SET, 3600)
        for path in first:
            await changes(path, tags[path])
        newest = (
            f"{LADDER}/results?newestFirst=true"  # on a busy machine there is more than a page of results
        )
        second = (LADDER, newest, LEAGUE, f"{LEAGUE}/results", f"{LEAGUE}/standings", bot)
        tags = {path: await tag_of(http, path) for path in second}
        endings = (Ending.COMPLETED, Ending.COMPLETED)
        played = LoggedResult(1, "matches/one-more", tuple(published.bots[:2]), (3, 2), (1, 2), endings)
        for competition in (LADDER, LEAGUE):
            await store.results.append_result(competition, played)
        await store.ladders.take_off(bot, LADDER, "FORFEITS")
        for path in second:
            await changes(path, tags[path])


@pytest.mark.usefixtures("published")
async def test_the_kind_of_a_bot_changes_the_table_of_its_ladder(http_house: House) -> None:
    assert http_house.server
    store, path = http_house.server.store, f"/v1/{LADDER}/standings"
    async with http_house.http() as http:
        leader, second = [line["bot"] for line in (await http.get(path)).json["standings"][:2]]
        for bot, kind in ((leader, 4), (second, 4), (leader, 0), (second, 0)):
            tag = await tag_of(http, f"{LADDER}/standings")
            await store.bots.set_kind(bot, kind)
            lines = (await http.get(path, if_none_match=tag)).json["standings"]
            shown = {line["bot"]: line["kind"] for line in lines}
            assert shown[bot] == f"BOT_KIND_{'LANGUAGE_MODEL' if kind else 'UNSPECIFIED'}"
            if bot == second and kind:  # pages are kept for some seconds
                assert (await http.get(f"/{LADDER}")).body.decode().count("language model") == 2


# The parts


async def record(client: RedisClient, *commands: tuple[str, ...]) -> ReadRecording:
    """What one operation does with the store."""
    recorder = RecordingClient(client)
    with recording_reads() as reads:
        for command in commands:
            await recorder.call(*command)
    return reads


@pytest.mark.asyncio(loop_scope="function")
async def test_reads_are_unchanged_until_one_of_their_replies_is_another(client: RedisClient) -> None:
    await client.call("HSET", "{a}", "field", "1")
    reads = await record(client, ("HGETALL", "{a}"), ("GET", "{b}"), ("HGETALL", "{a}"))
    assert (reads.is_repeatable, len(reads.commands)) == (True, 2)
    assert await reads.is_unchanged()
    await client.call("SET", "{b}", "2")
    assert not await reads.is_unchanged()
    await client.call("DEL", "{b}")
    assert await reads.is_unchanged()


def plain_reads(bots: int) -> list[tuple[str, ...]]:
    """What a page of so many bots reads: twice as many."""
    kinds: list[tuple[str, ...]] = [("HMGET", "a", "name", "owner"), ("EXISTS", "b")]
    return [(kind, f"{key}{number}", *fields) for number in range(bots) for kind, key, *fields in kinds]


class NotingClient(RecordingClient):
    """Notes each command that it passes on."""

    def __init__(self, client: RedisClient, mode: RedisMode) -> None:
        super().__init__(client)
        self.commands: list[Sequence[Argument]] = []
        self._mode = mode

    @property
    def mode(self) -> RedisMode:
        return self._mode

    async def call(self, *command: Argument, **options: Any) -> Any:
        self.commands.append(command)
        return await super().call(*command, **options)

    async def call_many(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        self.commands += commands
        return await super().call_many(commands)


async def repeated_by(
    client: RedisClient, *commands: tuple[str, ...], mode: RedisMode = RedisMode.STANDALONE
) -> list[str]:
    """The names of the commands that repeat these reads."""
    noting = NotingClient(client, mode)
    reads = await record(noting, *commands)
    noting.commands.clear()
    assert await reads.is_unchanged()
    return [str(command[0]) for command in noting.commands]


@pytest.mark.asyncio(loop_scope="function")
async def test_reads_are_repeated_by_one_script_where_it_has_the_same_replies(client: RedisClient) -> None:
    await client.call("SADD", "set", "a")
    pair = [("GET", "a"), ("EXISTS", "b")]
    await repeated_by(client, *pair)  # now Redis knows the script
    assert await repeated_by(client, *plain_reads(50)) == ["EVALSHA"]
    assert await repeated_by(client, *pair, mode=RedisMode.CLUSTER) == ["GET", "EXISTS"]
    assert await repeated_by(client, ("SMEMBERS", "set"), *pair) == ["SMEMBERS", "GET", "EXISTS"]
    assert len(await repeated_by(client, *plain_reads(200))) == 400


@pytest.mark.asyncio(loop_scope="function")
async def test_the_script_that_repeats_a_page_sees_each_change(client: RedisClient) -> None:
    await client.call("ZADD", "index", 0, "bots/a", 0, "bots/b")
    await client.call("HSET", "a1", "name", "\xff\n1", "owner", "")
    index = ("ZRANGE", "index", "[bots/", "[bots/\xff", "BYLEX", "LIMIT", "0", "51")
    reads = await record(client, index, *plain_reads(50))
    for change, undo in (
        (("SET", "b49", "1"), ("DEL", "b49")),
        (("HSET", "a1", "owner", "b"), ("HSET", "a1", "owner", "")),
        (("HDEL", "a1", "owner"), ("HSET", "a1", "owner", "")),
        (("ZREM", "index", "bots/b"), ("ZADD", "index", 0, "bots/b")),
    ):
        await client.call(*change)
        assert not await reads.is_unchanged(), change
        await client.call(*undo)
        assert await reads.is_unchanged(), undo


@pytest.mark.asyncio(loop_scope="function")
async def test_only_what_reads_is_repeated(client: RedisClient) -> None:
    for command in (("SET", "{a}", "1"), ("INCR", "{a}"), ("TIME",)):
        reads = await record(client, ("GET", "{a}"), command)
        assert not reads.is_repeatable, command
        known = KnownVersions()
        known.keep_version(("m", b"", "", "", frozenset()), "1", reads)
        assert known.get_version(("m", b"", "", "", frozenset())) is None
    recorder = RecordingClient(client)
    with recording_reads() as waits:
        await recorder.call_blocking("BLPOP", "{list}", "0.01")
    assert not waits.is_repeatable


@pytest.mark.asyncio(loop_scope="function")
async def test_reads_that_changed_while_they_were_recorded_are_not_repeated(client: RedisClient) -> None:
    recorder = RecordingClient(client)
    with recording_reads() as reads:
        await recorder.call("GET", "{a}")
        await client.call("SET", "{a}", "2")
        await recorder.call("GET", "{a}")
    assert not reads.is_repeatable


@pytest.mark.asyncio(loop_scope="function")
async def test_the_memory_of_versions_is_bounded(client: RedisClient) -> None:
    known, reads = KnownVersions(), await record(client, ("GET", "{a}"))
    for number in range(MOST_READS_KEPT):
        known.keep_version(("m", str(number).encode(), "", "", frozenset()), "1", reads)
    assert known.get_version(("m", b"0", "", "", frozenset())) is None
    assert known.get_version(("m", str(MOST_READS_KEPT - 1).encode(), "", "", frozenset()))
