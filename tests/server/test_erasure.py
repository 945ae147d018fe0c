"""An owner that is erased: its name, its addresses and the meaning of its pseudonyms are nowhere in Redis, and all verifies."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from harness import House, house_in, in_memory

from seatwise.audit_chain import verify_audit_log
from seatwise.v1 import access_service_pb2 as pb
from seatwise.v1 import bot_service_pb2
from seatwise_referee.verify import verify_line
from seatwise_server.config import HttpSettings
from seatwise_server.store.redis.client import call

OWNER, NEIGHBOUR = "zenobia", "theodora"
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
    invite = (await ask(house, house.admin.token, "/v1/invites", {}, OTHER_ADDRESS))["text"]
    body = {"ownerId": owner, "requestId": f"{owner} joins"}
    return str((await ask(house, invite, "/v1/owners", body, address))["text"])


async def play_between_bots_of(house: House, token: str, address: str) -> bytes:
    """Plays a match between two bots of the owner, and returns its record."""
    bots = []
    for number in (1, 2):
        body = {"bot": f"public-{number}", "requestId": f"{OWNER} registers {number}"}
        made = await ask(house, token, "/v1/bots", body, address)
        bots.append(house.wire(made["token"], made["bot"]["name"]))
    table = await house.seat(bots)
    await table.sit()
    await table.play_out()
    await house.admin.over(table.name)
    return await house.admin.record(table.name)


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
    for key in await call(client, "KEYS", "*"):
        kind = await call(client, "TYPE", key)
        verb, *args = READS[kind if isinstance(kind, bytes) else kind.encode()]
        found[key] = key + b" " + repr(await call(client, verb, key, *args)).encode()
    return found


async def audit_lines(house: House) -> list[bytes]:
    assert house.server
    return [it.line.encode() + b"\n" for it in await house.server.store.audit.read_page(0, 1000)]


def holding(found: dict[bytes, bytes], *texts: str) -> list[bytes]:
    """The keys that hold one of these texts."""
    return [key for key, held in found.items() if any(text.encode() in held for text in texts)]


async def test_an_erased_owner_is_nowhere_in_redis_and_everything_verifies(proxied_house: House) -> None:
    house = proxied_house
    token = await join(house, OWNER, ITS_ADDRESS)
    other = await join(house, NEIGHBOUR, OTHER_ADDRESS)
    record = await play_between_bots_of(house, token, ITS_ADDRESS)
    await delete_a_bot_of(house, token, ITS_ADDRESS)
    refused = await ask(house, other, "/v1/bots/public-1/versions/1:rotateToken", {}, OTHER_ADDRESS)
    assert refused["error"]["details"][0]["reason"] == "NOT_ALLOWED"
    lines = await audit_lines(house)
    before = await all_of_redis(house)
    pseudonyms = {line["who"] for line in map(json.loads, lines)}
    assert holding(before, OWNER)
    assert holding(before, ITS_ADDRESS)

    erase = pb.EraseOwnerRequest(owner=f"owners/{OWNER}").SerializeToString()
    answer = await house.admin.raw("/seatwise.v1.AccessService/EraseOwner", erase)
    assert len(pb.EraseOwnerResponse.FromString(answer).bots) == 2

    after = await all_of_redis(house)
    assert holding(after, OWNER, ITS_ADDRESS) == []
    assert holding(after, NEIGHBOUR)
    assert holding(after, OTHER_ADDRESS)
    its_own = {it for it in pseudonyms if holding(before, it) and not meanings_of(after, it)}
    assert any(meanings_of(before, it) for it in its_own), "a pseudonym has lost its meaning"

    later = await audit_lines(house)
    assert later[: len(lines)] == lines
    assert verify_audit_log(later) == (len(later), 1, "")
    assert await house.admin.record(str(json.loads(record)["match"])) == record
    assert verify_line(record).fault is None
    assert not any(text.encode() in b"".join([record, *later]) for text in (OWNER, ITS_ADDRESS))


def meanings_of(found: dict[bytes, bytes], pseudonym: str) -> list[bytes]:
    """The keys that tell what this pseudonym means."""
    return [key for key in found if pseudonym and pseudonym.encode() in key]
