"""An owner that is erased: its name, its addresses and the meaning of its pseudonyms are nowhere in Redis, and all verifies."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from harness import House, house_in, in_memory, until
from harness.table import Chair, Table
from harness.wire import Wire
from seasons.one_season import files_in, league_of

from seatwise.async_client import AsyncClient
from seatwise.season import check_season, open_bundle
from seatwise.season.audit_chain import verify_audit_log
from seatwise.v1 import access_service_pb2 as pb
from seatwise.v1 import bot_service_pb2
from seatwise_referee.verify import verify_line
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.schedule import SoFar
from seatwise_server.config import HttpSettings
from seatwise_server.embedded import EmbeddedRedis
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.runner import logged_result_in
from seatwise_server.league.season_files import BUNDLE, write_season_bundle
from seatwise_server.league.season_log import Season
from seatwise_server.league.settings import Entrant, League
from seatwise_server.league.table import standings_of
from seatwise_server.store import new_client
from seatwise_server.store.redis.client import as_pairs
from seatwise_server.store.redis.durability import rewrite_files

OWNER, NEIGHBOUR = "zenobia", "theodora"
LEAGUE = "leagues/erased"
ITS_ADDRESS, OTHER_ADDRESS = "203.0.113.77", "198.51.100.42"

pytestmark = pytest.mark.asyncio(loop_scope="session")

READS: dict[bytes, tuple[str, ...]] = {
    b"string": ("GET",),
    b"hash": ("HGETALL",),
    b"set": ("SMEMBERS",),
    b"list": ("LRANGE", "0", "-1"),
    b"zset": ("ZRANGE", "0", "-1"),
    b"stream": ("XRANGE", "-", "+"),
}
"""How the values of each type are read. DUMP would compress them, and hide what they hold."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def proxied_house() -> AsyncIterator[House]:
    """A server that invited owners use over HTTP, through a proxy that tells their addresses."""
    with tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as folder:
        http = HttpSettings(port=0, trusted_proxies=("127.0.0.1",))
        async with house_in(Path(folder), http=http, registration="invite") as house:
            yield house


async def ask(house: House, token: str, path: str, body: Any, address: str) -> Any:
    """The response to this request, which comes from this address through the proxy."""
    async with house.http(token) as http:
        answer = await http.call("POST", path, body, {"x-forwarded-for": address})
    return answer.json


async def join(house: House, owner: str, address: str) -> str:
    """Lets an owner in, and returns its token."""
    invite = (await ask(house, house.admin.token, "/v1/invites", {}, OTHER_ADDRESS))["token"]
    body = {"ownerId": owner, "requestId": f"{owner} joins"}
    return str((await ask(house, invite, "/v1/owners", body, address))["token"])


async def bots_of(house: House, token: str, address: str) -> list[Wire]:
    """Registers two bots of the owner, and lets them attend."""
    bots = []
    for number in (1, 2):
        body = {"bot": f"public-{number}", "requestId": f"{OWNER} registers {number}"}
        made = await ask(house, token, "/v1/bots", body, address)
        bots.append(house.wire(made["token"], made["bot"]["name"]))
    return bots


def league_between(bots: Sequence[Wire]) -> League:
    """A round robin whose deals are the only ones of their kind, so no record is withheld."""
    return league_of(entrants=tuple(Entrant(it.bot, it.bot) for it in bots), deals="none")


async def play_season(house: House, admin: AsyncClient, bots: Sequence[Wire]) -> dict[str, str]:
    """Plays all matches of the league at this server. Returns the match of each table of the schedule."""
    league = league_between(bots)
    await admin.create_league(LEAGUE, json.dumps(league.to_published_json()))
    attending = {it.bot: (it, await it.attend()) for it in bots}
    schedule = schedule_of(league)
    results: dict[str, LoggedResult] = {}
    matches: dict[str, str] = {}
    while due := schedule.due_matches(SoFar(results, set())):
        scheduled = due[0]
        match = await admin.create_match("ugo", list(scheduled.bots), dict(league.options), league=LEAGUE)
        chairs = []
        for bot in scheduled.bots:
            wire, stream = attending[bot]
            chairs.append(Chair(wire, match.name, (await stream.offer(match.name)).seat))
        table = Table(match, chairs)
        await table.sit()
        await table.play_out()
        over = await house.admin.over(match.name)
        results[scheduled.id] = logged_result_in(over, len(results) + 1)
        matches[scheduled.id] = match.name
    return matches


async def all_records(house: House, admin: AsyncClient) -> dict[str, bytes]:
    """The record of every match that the server lists."""
    page = await admin.list_matches(page_size=1000)
    return {it.name: await house.admin.record(it.name) for it in page}


async def bundle_of(
    folder: Path, admin: AsyncClient, bots: Sequence[Wire], matches: dict[str, str]
) -> tuple[str, bytes]:
    """The digest of the league's bundle, as its runner makes it of what the server says now; and all that is in it."""
    season, league = Season(LEAGUE), league_between(bots)
    for number, (table, match) in enumerate(matches.items(), start=1):
        season.results[table] = logged_result_in(await admin.get_match(match), number)
        season.records[match] = (await admin.get_record(match)).strip()
    return checked_bundle(folder, league, season)


def checked_bundle(folder: Path, league: League, season: Season) -> tuple[str, bytes]:
    folder.mkdir()
    digest = write_season_bundle(folder, league, season, standings_of(league, season.so_far))
    with open_bundle(folder / BUNDLE) as bundle:
        checked = check_season(bundle, digest)
        assert (checked.records, checked.has_table, checked.digest) == (len(season.results), True, digest)
    return digest, b"".join(files_in(folder / BUNDLE).values())


async def delete_a_bot_of(house: House, token: str, address: str) -> None:
    """Registers a bot that is refused an action and deleted: its address is known, too."""
    made = await ask(house, token, "/v1/bots", {"bot": "public-3"}, address)
    name = made["bot"]["name"]
    refused = await ask(house, made["token"], "/v1/matches", {}, address)
    assert refused["error"]["code"] == 403
    delete = bot_service_pb2.DeleteBotRequest(name=name).SerializeToString()
    await house.admin.raw("/seatwise.v1.BotService/DeleteBot", delete)


async def all_of_redis(house: House) -> dict[bytes, bytes]:
    """Every key with all that it holds, as text."""
    assert house.server
    client, found = house.server.store.owners._client, {}
    for key in await client.call("KEYS", "*"):
        kind = await client.call("TYPE", key)
        verb, *args = READS[kind if isinstance(kind, bytes) else kind.encode()]
        found[key] = key + b" " + repr(await client.call(verb, key, *args)).encode()
    return found


async def folder_of_redis(house: House) -> Path:
    assert house.server
    return Path(dict(as_pairs(await house.server.store.client.call("CONFIG", "GET", "dir")))[b"dir"].decode())


def are_files_free_of(folder: Path, *texts: str) -> bool:
    """Whether no file of Redis holds one of these texts."""
    try:
        held = [it.read_bytes() for it in folder.rglob("*") if it.is_file()]
    except FileNotFoundError:  # Redis replaces its files right now
        return False
    assert held
    return not any(text.encode() in it for it in held for text in texts)


async def audit_lines(house: House) -> list[bytes]:
    assert house.server
    return [it.line.encode() + b"\n" for it in await house.server.store.audit.read_page(0, 1000)]


def holding(found: dict[bytes, bytes], *texts: str) -> list[bytes]:
    """The keys that hold one of these texts."""
    return [key for key, held in found.items() if any(text.encode() in held for text in texts)]


async def test_an_erased_owner_is_nowhere_in_redis_and_everything_verifies(
    proxied_house: House, tmp_path: Path
) -> None:
    house = proxied_house
    token = await join(house, OWNER, ITS_ADDRESS)
    other = await join(house, NEIGHBOUR, OTHER_ADDRESS)
    bots = await bots_of(house, token, ITS_ADDRESS)
    async with AsyncClient(house.address, house.admin.token) as admin:
        matches = await play_season(house, admin, bots)
        await delete_a_bot_of(house, token, ITS_ADDRESS)
        refused = await ask(house, other, "/v1/bots/public-1/versions/1:rotateToken", {}, OTHER_ADDRESS)
        assert refused["error"]["details"][0]["reason"] == "NOT_ALLOWED"
        lines, records = await audit_lines(house), await all_records(house, admin)
        digest, _ = await bundle_of(tmp_path / "before", admin, bots, matches)
        before = await all_of_redis(house)
        await erase_owner(house)

        after = await all_of_redis(house)
        check_that_it_is_gone(before, after, [line["who"] for line in map(json.loads, lines)])
        await until(partial(are_files_free_of, await folder_of_redis(house), OWNER, ITS_ADDRESS))
        later = await audit_lines(house)
        assert later[: len(lines)] == lines
        assert verify_audit_log(later) == (len(later), 1, "")
        assert matches
        assert records.keys() == {*matches.values()}
        assert await all_records(house, admin) == records
        assert [verify_line(record).fault for record in records.values()] == [None] * len(records)
        again, published = await bundle_of(tmp_path / "after", admin, bots, matches)
    assert again == digest
    assert not any(
        text.encode() in b"".join([*records.values(), *later, published]) for text in (OWNER, ITS_ADDRESS)
    )


async def erase_owner(house: House) -> None:
    erase = pb.EraseOwnerRequest(owner=f"owners/{OWNER}").SerializeToString()
    answer = await house.admin.raw("/seatwise.v1.AccessService/EraseOwner", erase)
    assert len(pb.EraseOwnerResponse.FromString(answer).bots) == 2


def check_that_it_is_gone(
    before: dict[bytes, bytes], after: dict[bytes, bytes], pseudonyms: Sequence[str]
) -> None:
    """Name, address and the meaning of a pseudonym were there, and are not; those of the neighbour are."""
    assert holding(before, OWNER)
    assert holding(before, ITS_ADDRESS)
    assert holding(after, OWNER, ITS_ADDRESS) == []
    assert holding(after, NEIGHBOUR)
    assert holding(after, OTHER_ADDRESS)
    its_own = {it for it in pseudonyms if holding(before, it) and not meanings_of(after, it)}
    assert any(meanings_of(before, it) for it in its_own), "a pseudonym has lost its meaning"


@pytest.mark.parametrize("percentage", [100, 0], ids=["as-usual", "while-a-backup-is-made"])
async def test_the_files_of_redis_are_rewritten_unless_the_operator_has_forbidden_it(
    tmp_path: Path, percentage: int
) -> None:
    with EmbeddedRedis(tmp_path / "redis") as redis:
        client = new_client(redis.url)
        await client.call("CONFIG", "SET", "auto-aof-rewrite-percentage", percentage)
        await client.call("SET", OWNER, "x")
        await client.call("DEL", OWNER)
        assert not are_files_free_of(tmp_path, OWNER)
        assert await rewrite_files(client) is bool(percentage)
        if percentage:
            await until(partial(are_files_free_of, tmp_path, OWNER))
        assert are_files_free_of(tmp_path, OWNER) is bool(percentage)
        await client.close_connections()


async def test_an_erasure_does_not_fail_where_redis_does_not_answer(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / "redis") as redis:
        client = new_client(redis.url)
    assert await rewrite_files(client) is False
    await client.close_connections()


def meanings_of(found: dict[bytes, bytes], pseudonym: str) -> list[bytes]:
    """The keys that tell what this pseudonym means."""
    return [key for key in found if pseudonym and pseudonym.encode() in key]
