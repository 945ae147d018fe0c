"""Owners: invites let them in, they register bots of their own, and have power over nothing else."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from doubles.fake_issuer import AUDIENCE, FakeIssuer, IssuerServer, issuer_server
from harness import House, house_in, in_memory
from harness.terminal import ctl, told
from harness.wire import Refused
from redis.asyncio import Redis

from seatwise.errors import UsageError
from seatwise.v1 import access_service_pb2, bot_pb2, bot_service_pb2
from seatwise.v1 import owner_service_pb2 as pb
from seatwise_server.cli import owners
from seatwise_server.config import HttpSettings
from seatwise_server.refusal import Refusal
from seatwise_server.services.access import SCOPES_OF_BOTS, Access
from seatwise_server.services.authentication import Caller
from seatwise_server.services.owners import OwnerRequests
from seatwise_server.store import OwnerCreation, Store, keys
from seatwise_server.store.errors import (
    BadPageToken,
    InviteAbsent,
    InviteExists,
    OwnerAbsent,
    TokenRefused,
    TooManyBots,
)

HOUR_MS = 3_600_000
JOAN, ANN = "owners/joan", "owners/ann"
BOT = "bots/lowest/versions/1"
SCANNED = re.compile(r"seatwise_(bot|admin|access|invite)_[A-Za-z0-9.-]{40,150}")
"""What docs/operations.md gives to a scanner for secrets."""


# In the store


async def refusal(store: Store, text: str) -> str:
    with pytest.raises(TokenRefused) as refused:
        await store.credentials.authenticate(text)
    return refused.value.reason


async def test_an_invite_proves_that_its_holder_may_join_and_nothing_else(store: Store) -> None:
    issued = await store.invites.create_invite(3, 1, HOUR_MS)
    proved = await store.credentials.authenticate(issued.text)
    assert (proved.holder, proved.scopes, proved.bot) == (issued.invite.name, {"join"}, "")
    assert 0 < proved.left_ms <= HOUR_MS
    assert SCANNED.fullmatch(issued.text)


async def test_only_hashes_of_invites_and_of_the_names_of_owners_are_kept(
    store: Store, redis_client: Redis
) -> None:
    issued = await store.invites.create_invite(3, 1, HOUR_MS)
    await store.owners.create_owner(JOAN, 3, 8, issued.invite.name, "r")
    assert await store.invites.use_invite(issued.invite.name, JOAN)
    await store.owners.add_bot(JOAN, BOT)
    secret = issued.text.rpartition(".")[2][:52].encode()
    for key in await redis_client.keys():
        assert b"joan" not in key
        dump = await redis_client.dump(key)
        assert secret not in dump
        assert b"joan" not in dump


async def test_an_invite_that_expired_or_was_revoked_opens_nothing(store: Store, redis_client: Redis) -> None:
    expired, revoked = [await store.invites.create_invite(3, 1, HOUR_MS) for _ in range(2)]
    [key] = [it for it in await redis_client.keys("*:invite") if expired.invite.name.encode() in it]
    await redis_client.hset(key, "expire_ms", 1)
    assert await refusal(store, expired.text) == "EXPIRED"
    assert not await store.invites.use_invite(expired.invite.name, JOAN)
    for _ in range(2):
        assert (await store.invites.revoke_invite(revoked.invite.name)).revoke_ms
    assert await refusal(store, revoked.text) == "REVOKED"
    assert not await store.invites.use_invite(revoked.invite.name, JOAN)
    forged = revoked.text[:-12] + ("a" if revoked.text[-12] != "a" else "b") + revoked.text[-11:]
    assert await refusal(store, forged) == "UNKNOWN"
    with pytest.raises(InviteAbsent):
        await store.invites.revoke_invite("invites/none")


async def test_an_invite_lets_in_as_many_owners_as_it_says_each_once(store: Store) -> None:
    name = (await store.invites.create_invite(3, 2, HOUR_MS)).invite.name
    uses = await asyncio.gather(
        *(store.invites.use_invite(name, f"owners/o{each % 5}") for each in range(20))
    )
    assert sum(uses) == 8
    invite = await store.invites.find(name)
    assert invite
    assert invite.used == 2


async def test_a_repeated_request_creates_one_invite_and_shows_its_token_once(store: Store) -> None:
    made, repeat = [await store.invites.create_invite(3, 1, HOUR_MS, request_id="monday") for _ in range(2)]
    assert (made.invite, repeat.text) == (repeat.invite, "")
    assert await store.invites.list_page(9) == ([made.invite], "")
    with pytest.raises(InviteExists):
        await store.invites.create_invite(4, 1, HOUR_MS, request_id="monday")
    assert (await store.credentials.authenticate(made.text)).holder == made.invite.name


async def test_invites_are_listed_by_page(store: Store) -> None:
    names = sorted([(await store.invites.create_invite(3, 1, HOUR_MS)).invite.name for _ in range(5)])
    first, token = await store.invites.list_page(3)
    rest, end = await store.invites.list_page(3, token)
    assert [it.name for it in first + rest] == names
    assert end == ""
    with pytest.raises(BadPageToken):
        await store.invites.list_page(3, "nonsense")


async def test_an_owner_has_no_more_bots_than_its_quota_however_many_are_added_at_once(store: Store) -> None:
    assert await store.owners.create_owner(JOAN, 3, 8, "invites/x", "r") is OwnerCreation.CREATED
    added = await asyncio.gather(
        *(store.owners.add_bot(JOAN, f"bots/b{each}/versions/1") for each in range(10)),
        return_exceptions=True,
    )
    assert sum(it is None for it in added) == 3
    assert sum(isinstance(it, TooManyBots) for it in added) == 7
    owner = await store.owners.get_owner(JOAN)
    assert owner
    assert len(owner.bots) == owner.most_bots == 3
    await store.owners.add_bot(JOAN, owner.bots[0])
    await store.owners.remove_bot(JOAN, owner.bots[0])
    await store.owners.add_bot(JOAN, "bots/another/versions/1")
    with pytest.raises(OwnerAbsent):
        await store.owners.add_bot(ANN, BOT)


async def test_a_name_is_given_to_one_owner(store: Store) -> None:
    assert await store.owners.create_owner(JOAN, 3, 8, "invites/x", "r") is OwnerCreation.CREATED
    assert await store.owners.create_owner(JOAN, 3, 8, "invites/x", "r") is OwnerCreation.REPEATED
    assert await store.owners.create_owner(JOAN, 3, 8, "invites/x", "s") is OwnerCreation.TAKEN
    assert await store.owners.create_owner(JOAN, 3, 8, "invites/y", "r") is OwnerCreation.TAKEN
    assert await store.owners.create_owner(ANN, 3, 8, "invites/x", "") is OwnerCreation.CREATED
    assert await store.owners.create_owner(ANN, 3, 8, "invites/x", "") is OwnerCreation.TAKEN


async def test_an_erased_owner_leaves_nothing(store: Store, redis_client: Redis) -> None:
    name = (await store.invites.create_invite(3, 2, HOUR_MS)).invite.name
    before = {key: await redis_client.dump(key) for key in await redis_client.keys()}
    await store.owners.create_owner(JOAN, 3, 8, name, "r")
    await store.owners.add_bot(JOAN, BOT)
    await store.invites.use_invite(name, JOAN)
    for _ in range(2):
        await store.owners.erase_owner(JOAN)
    assert {*await redis_client.keys()} == before.keys()
    assert not [field for field in await redis_client.hkeys(keys_of(before, b":invite")) if b"by:" in field]


def keys_of(found: dict[bytes, Any], end: bytes) -> bytes:
    return next(key for key in found if key.endswith(end))


async def change_wait(store: Store, per_minute: float) -> float:
    return (await store.owners.count_request(JOAN, per_minute))[0]


async def test_an_owner_may_change_so_many_things_in_a_minute_at_all_processes_together(
    store: Store, redis_client: Redis
) -> None:
    await store.owners.create_owner(JOAN, 3, 8, "invites/x", "r")
    waits = await asyncio.gather(*(change_wait(store, 7) for _ in range(10)))
    assert sorted(waits)[:7] == [0.0] * 7
    assert all(0 < wait <= 60 / 7 + 0.01 for wait in sorted(waits)[7:])
    [key] = await redis_client.keys("*:owner")
    full_ms = float(
        await redis_client.hget(key, "requests_full_ms")
    )  # as if the time of two changes had passed
    await redis_client.hset(key, "requests_full_ms", full_ms - 2 * 60_000 / 7)
    assert [bool(await change_wait(store, 7)) for _ in range(3)] == [False, False, True]
    await redis_client.hset(key, "requests_full_ms", full_ms + 1e9)  # the clock of Redis was set back
    assert 0 < await change_wait(store, 7) <= 60 / 7 + 0.01


async def test_an_owners_own_quota_of_changes_comes_before_that_of_the_server(
    store: Store, redis_client: Redis
) -> None:
    await store.owners.create_owner(JOAN, 3, 8, "invites/x", "r")
    assert not any([await change_wait(store, 0) for _ in range(100)])
    await store.owners.set_quotas(JOAN, {"most_requests": 2})
    assert [bool(await change_wait(store, 0)) for _ in range(3)] == [False, False, True]
    await store.owners.set_quotas(JOAN, {"most_requests": 0})
    assert await change_wait(store, 0) == 3600
    await store.owners.erase_owner(JOAN)
    assert await change_wait(store, 1) == 0
    assert not await redis_client.keys("*:owner")


def _invited(name: str) -> Caller:
    return Caller(name=f"invites/{name}", scopes=frozenset({Access.JOIN}))


def _bot(name: str) -> Caller:
    return Caller(name=f"bots/{name}/versions/1", bot=f"bots/{name}/versions/1", scopes=SCOPES_OF_BOTS)


@pytest.mark.parametrize("caller_named", [_invited, _bot])
async def test_the_holder_of_an_invite_or_a_bot_may_change_so_many_things_in_a_minute(
    store: Store, caller_named: Callable[[str], Caller]
) -> None:
    now = [0.0]
    requests = OwnerRequests(store.owners, 6, lambda: now[0])
    one, other = map(caller_named, ("a", "b"))
    admin = Caller(name="Jim", scopes=frozenset({Access.REGISTER}))

    async def refused(caller: Caller) -> bool:
        try:
            await requests.admit_request(caller, None)
        except Refusal as why:
            return int(why.metadata["retry_after"]) >= 1
        return False

    assert [await refused(one) for _ in range(8)] == [False] * 6 + [True] * 2
    assert requests.show_limit(one) == (6, 60, 0, 60)
    assert requests.show_limit(other) is None
    assert not await refused(other)
    assert not any([await refused(admin) for _ in range(100)])
    now[0] += 10
    assert [await refused(one) for _ in range(2)] == [False, True]
    joan = Caller(name=JOAN, scopes=frozenset({Access.OWN}))
    await store.owners.create_owner(JOAN, 3, 8, "invites/x", "r")
    await requests.admit_request(joan, None)
    assert requests.show_limit(joan) == (6, 60, 5, 10)


# At the doors


@pytest.fixture(scope="module")
def issuer_at_door() -> Iterator[IssuerServer]:
    """The issuer that this server trusts."""
    with issuer_server() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def inviting_house(issuer_at_door: IssuerServer) -> AsyncIterator[House]:
    """A server that lets invited owners register bots, with both doors."""
    with tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as folder:
        settings: dict[str, Any] = {"registration": "invite", "owner_requests_per_minute": 0.0}
        settings |= {"oidc_issuer": issuer_at_door.url, "oidc_audience": AUDIENCE}
        async with house_in(Path(folder), http=HttpSettings(port=0), **settings) as house:
            yield house


class OverGrpc:
    """Calls with a token, by gRPC."""

    def __init__(self, house: House, token: str) -> None:
        self._wire = house.wire(token)

    async def call(self, method: str, request: Any, response: Any, _route: str = "") -> Any:
        call: Any = self._wire.channel.unary_unary(f"/seatwise.v1.{method}")
        try:
            answer = await call(request.SerializeToString(), metadata=self._wire.metadata)
        except grpc.aio.AioRpcError as error:
            return Refused.of(error).reason
        return response.FromString(answer)

    async def create_owner(self, owner_id: str, request_id: str = "") -> Any:
        request = pb.CreateOwnerRequest(owner_id=owner_id, request_id=request_id)
        return await self.call("OwnerService/CreateOwner", request, pb.CreateOwnerResponse)

    async def register(self, bot: str, owner: str = "", request_id: str = "", version: str = "") -> Any:
        request = bot_service_pb2.RegisterBotRequest(
            bot=bot, owner=owner, request_id=request_id, version=version
        )
        return await self.call("BotService/RegisterBot", request, bot_service_pb2.RegisterBotResponse)

    async def rotate(self, bot: str) -> Any:
        request = bot_service_pb2.RotateTokenRequest(name=bot)
        return await self.call("BotService/RotateToken", request, bot_service_pb2.RotateTokenResponse)

    async def revoke(self, bot: str) -> Any:
        request = bot_service_pb2.RevokeTokenRequest(name=bot)
        return await self.call("BotService/RevokeToken", request, bot_service_pb2.RevokeTokenResponse)

    async def get_owner(self, name: str) -> Any:
        return await self.call("OwnerService/GetOwner", pb.GetOwnerRequest(name=name), pb.GetOwnerResponse)

    async def say_kind(self, name: str) -> Any:
        request = bot_service_pb2.SetBotKindRequest(name=name, kind=bot_pb2.BOT_KIND_LEARNED)
        return await self.call("BotService/SetBotKind", request, bot_service_pb2.SetBotKindResponse)

    async def tokens(self) -> Any:
        request = access_service_pb2.ListAccessTokensRequest(page_size=1000)
        answer = await self.call(
            "AccessService/ListAccessTokens", request, access_service_pb2.ListAccessTokensResponse
        )
        return [it.name for it in answer.access_tokens]

    async def rotate_token(self, name: str) -> Any:
        request = access_service_pb2.RotateAccessTokenRequest(name=name)
        return await self.call(
            "AccessService/RotateAccessToken", request, access_service_pb2.RotateAccessTokenResponse
        )


async def invite(house: House, **quotas: int) -> str:
    request = pb.CreateInviteRequest(**quotas)
    made = await OverGrpc(house, house.admin.token).call(
        "OwnerService/CreateInvite", request, pb.CreateInviteResponse
    )
    return str(made.token)


async def owner(house: House, owner_id: str, bots: int = 2) -> OverGrpc:
    made = await OverGrpc(house, await invite(house, most_bots=bots)).create_owner(owner_id)
    assert made.owner.name == f"owners/{owner_id}"
    return OverGrpc(house, made.token)


at_the_doors = pytest.mark.asyncio(loop_scope="session")


@at_the_doors
async def test_an_invited_owner_registers_its_bots_up_to_its_quota(inviting_house: House) -> None:
    house = inviting_house
    ruth = await owner(house, "ruth")
    made = [await ruth.register(f"ruth-{number}") for number in range(2)]
    assert {it.bot.owner for it in made} == {"owners/ruth"}
    assert all(it.token for it in made)
    assert await ruth.register("ruth-2") == "QUOTA_EXCEEDED"
    shown = (await ruth.get_owner("owners/ruth")).owner
    assert (list(shown.bots), shown.most_bots) == ([it.bot.name for it in made], 2)
    assert await ruth.get_owner("owners/someone") == "NOT_FOUND"
    await delete(house, made[0].bot.name)
    assert await ruth.register("ruth-0") == "ALREADY_EXISTS"
    assert (await ruth.register("ruth-3")).token


async def erase(house: House, name: str) -> list[str]:
    request = access_service_pb2.EraseOwnerRequest(owner=name)
    answer = await OverGrpc(house, house.admin.token).call(
        "AccessService/EraseOwner", request, access_service_pb2.EraseOwnerResponse
    )
    return list(answer.bots)


async def delete(house: House, bot: str) -> None:
    request = bot_service_pb2.DeleteBotRequest(name=bot).SerializeToString()
    await house.admin.raw("/seatwise.v1.BotService/DeleteBot", request)


async def test_a_name_of_bots_is_given_to_one_owner_for_good(store: Store) -> None:
    for name in (JOAN, ANN):
        await store.owners.create_owner(name, 3, 8, "invites/x", "r")
    claims = await asyncio.gather(*(store.owners.claim_name((JOAN, ANN)[it % 2], BOT) for it in range(10)))
    assert sum(claims) == 5
    assert claims[0] != claims[1]
    assert not await store.owners.claim_name("the operator", BOT)
    holder = JOAN if claims[0] else ANN
    await store.owners.erase_owner(holder)
    await store.owners.create_owner(holder, 3, 8, "invites/x", "s")
    assert not await store.owners.claim_name(holder, BOT)


@at_the_doors
async def test_two_owners_do_not_share_a_name_by_asking_at_once(inviting_house: House) -> None:
    """In half of the races each of them got a version."""
    lea, mia = await owner(inviting_house, "lea", 20), await owner(inviting_house, "mia", 20)
    for number in range(10):
        made = await asyncio.gather(
            lea.register(f"both-{number}", version="1"), mia.register(f"both-{number}", version="2")
        )
        assert "ALREADY_EXISTS" in made
        assert any(it != "ALREADY_EXISTS" for it in made)
    bots = [(await it.get_owner(f"owners/{name}")).owner.bots for it, name in ((lea, "lea"), (mia, "mia"))]
    assert sum(map(len, bots)) == 10


@at_the_doors
async def test_the_name_of_a_deleted_bot_stays_with_its_owner(inviting_house: House) -> None:
    house = inviting_house
    nora, olga = await owner(house, "nora"), await owner(house, "ottilie")
    assert (await nora.register("norn")).token
    await delete(house, "bots/norn/versions/1")
    assert await olga.register("norn", version="2") == "ALREADY_EXISTS"
    assert (await nora.register("norn", version="2")).token
    assert await erase(house, "owners/nora") == ["bots/norn/versions/2"]
    await delete(house, "bots/norn/versions/2")
    assert await olga.register("norn", version="3") == "ALREADY_EXISTS"
    assert (await OverGrpc(house, house.admin.token).register("norn", version="3")).token


@at_the_doors
async def test_a_bot_of_before_keeps_its_name_when_it_is_deleted(inviting_house: House) -> None:
    house = inviting_house
    assert house.server
    await house.server.store.bots.register_bot("elder", "1", "the operator", "")
    await delete(house, "bots/elder/versions/1")
    pia = await owner(house, "pia")
    assert await pia.register("elder", version="2") == "ALREADY_EXISTS"
    assert (await pia.get_owner("owners/pia")).owner.bots == []


@at_the_doors
async def test_an_owner_that_is_erased_while_it_registers_a_bot_leaves_no_name(
    inviting_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = inviting_house
    assert house.server
    store = house.server.store
    rita = await owner(house, "rita")
    claim = type(store.owners).claim_name

    async def erase_first(owners: Any, name: str, bot: str) -> bool:
        is_its = await claim(owners, name, bot)
        await erase(house, name)
        return is_its

    monkeypatch.setattr(type(store.owners), "claim_name", erase_first)
    assert await rita.register("late") in ("NOT_FOUND", "TOKEN_REVOKED")
    assert (await store.bots.owners_of(["bots/late/versions/1"])) == {"bots/late/versions/1": ""}


@at_the_doors
async def test_a_bot_that_was_registered_by_half_forgets_its_erased_owner_too(
    inviting_house: House,
) -> None:
    """Its process died before it was in the list of bots, so it kept the name of its owner for ever."""
    house = inviting_house
    assert house.server
    store = house.server.store
    sara = await owner(house, "sara")
    bot = (await sara.register("half")).bot.name
    await store.client.call("ZREM", keys.BOT_INDEX, bot)
    assert await erase(house, "owners/sara") == [bot]
    assert (await store.bots.owners_of([bot])) == {bot: ""}


@at_the_doors
async def test_an_owner_has_power_over_its_own_bots_only(inviting_house: House) -> None:
    house = inviting_house
    rosa, emma = await owner(house, "rosa"), await owner(house, "emma")
    its = (await rosa.register("rosa-1")).bot.name
    assert await emma.register("rosa-1") == "ALREADY_EXISTS"
    assert await emma.rotate(its) == await emma.revoke(its) == "NOT_ALLOWED"
    assert (await emma.get_owner("owners/emma")).owner.bots == []
    assert await rosa.register("rosa-2", owner="owners/emma") == "INVALID_ARGUMENT"
    foreign = (await OverGrpc(house, house.admin.token).register("admins-own", owner="owners/rosa")).bot.name
    assert await rosa.rotate(foreign) == "NOT_ALLOWED"
    assert await rosa.register("admins-own") == "ALREADY_EXISTS"
    assert await rosa.rotate(foreign) == "NOT_ALLOWED"
    assert await emma.say_kind(its) == await rosa.say_kind(foreign) == "NOT_ALLOWED"
    assert (await rosa.say_kind(its)).bot.kind == bot_pb2.BOT_KIND_LEARNED
    assert (await rosa.rotate(its)).token
    assert (await rosa.revoke(its)).bot.name == its


@at_the_doors
async def test_an_owner_takes_no_name_that_would_pass_for_the_servers_or_anothers(
    inviting_house: House,
) -> None:
    """The server would run its house bot under a name whose token the owner may rotate."""
    house = inviting_house
    lisa, paul = await owner(house, "lisa", bots=5), await owner(house, "paul", bots=5)
    for name in ("house-search-2000", "house-x", "guest-0123456789ab"):
        assert await lisa.register(name) == "INVALID_ARGUMENT"
    assert (await lisa.register("household")).token
    admin = OverGrpc(house, house.admin.token)
    assert (await admin.register("of-nobody")).token
    assert await lisa.register("of-nobody", version="2") == "ALREADY_EXISTS"
    assert (await lisa.register("lisas")).token
    assert await paul.register("lisas", version="2") == "ALREADY_EXISTS"
    assert (await lisa.register("lisas", version="2")).token
    assert (await admin.register("lisas", version="3", owner="Jim")).token
    assert (await paul.register("lisa")).token
    assert (await paul.get_owner("owners/paul")).owner.bots == ["bots/lisa/versions/1"]


@at_the_doors
async def test_a_bot_whose_token_the_operator_has_revoked_stays_shut_out(inviting_house: House) -> None:
    house = inviting_house
    admin, rita = OverGrpc(house, house.admin.token), await owner(house, "rita")
    bot = (await rita.register("rita-1")).bot.name
    assert (await rita.revoke(bot)).bot.revoked
    assert (await rita.rotate(bot)).token
    assert (await admin.revoke(bot)).bot.revoked
    assert (await rita.revoke(bot)).bot.revoked
    assert await rita.rotate(bot) == "NOT_ALLOWED"
    assert (await admin.rotate(bot)).token
    assert (await rita.rotate(bot)).token


@at_the_doors
async def test_a_bot_that_another_was_quicker_to_register_is_not_the_owners(inviting_house: House) -> None:
    house = inviting_house
    assert house.server
    nina = await owner(house, "nina")
    bot = (await OverGrpc(house, house.admin.token).register("quicker", owner="Jim")).bot.name
    await house.server.store.owners.add_bot("owners/nina", bot)  # as if it had been counted just before
    assert await nina.rotate(bot) == await nina.revoke(bot) == "NOT_ALLOWED"
    assert await nina.register("quicker") == "ALREADY_EXISTS"
    assert (await nina.get_owner("owners/nina")).owner.bots == []


@at_the_doors
async def test_an_owner_sees_and_changes_only_its_own_tokens(inviting_house: House) -> None:
    house = inviting_house
    iris, olga = await owner(house, "iris"), await owner(house, "olga")
    [mine], [other] = await iris.tokens(), await olga.tokens()
    admins = await OverGrpc(house, house.admin.token).tokens()
    assert {mine, other} <= set(admins)
    assert await iris.rotate_token(other) == "NOT_FOUND"
    rotated = await iris.rotate_token(mine)
    assert await iris.get_owner("owners/iris") == "TOKEN_UNKNOWN"
    assert await OverGrpc(house, rotated.token).tokens() == [mine]


@at_the_doors
async def test_an_invite_is_used_up_and_its_repeat_shows_no_token(inviting_house: House) -> None:
    house = inviting_house
    holder = OverGrpc(house, await invite(house))
    assert (
        await holder.register("a-bot") == "NOT_ALLOWED" or await holder.register("a-bot") == "SCOPE_MISSING"
    )
    assert await holder.create_owner("Not An Id") == "INVALID_ARGUMENT"
    assert await holder.create_owner("\x1b[2J\u202e") == "INVALID_ARGUMENT"
    assert await holder.create_owner("vera", "\x1b[2J\u202e") == "INVALID_ARGUMENT"
    first = await holder.create_owner("vera", "the-request")
    again = await holder.create_owner("vera", "the-request")
    assert (first.owner, bool(first.token)) == (again.owner, True)
    assert again.token == ""
    assert await holder.create_owner("vera", "another") == "ALREADY_EXISTS"
    assert await holder.create_owner("wera") == "NOT_ALLOWED"
    assert await OverGrpc(house, house.admin.token).get_owner("owners/wera") == "NOT_FOUND"


@at_the_doors
async def test_owners_join_and_register_over_http_too(inviting_house: House) -> None:
    house = inviting_house
    async with house.http(await invite(house)) as http:
        made = (await http.call("POST", "/v1/owners", {"ownerId": "lena"})).json
    async with house.http(made["token"]) as http:
        answer = await http.call("POST", "/v1/bots", {"bot": "lena-1"})
        assert (answer.status, answer.json["bot"]["owner"]) == (200, "owners/lena")
        assert (await http.get("/v1/owners/lena")).json["owner"]["bots"] == ["bots/lena-1/versions/1"]
        assert "ratelimit" not in answer.headers
        answer = await http.call("POST", "/v1/invites", {})
        assert (answer.status, answer.reason) == (403, "SCOPE_MISSING")
        change = pb.SetOwnerQuotasRequest(name="owners/lena", most_requests=2)
        admin = OverGrpc(house, house.admin.token)
        await admin.call("OwnerService/SetOwnerQuotas", change, pb.SetOwnerQuotasResponse)
        answers = [await http.call("POST", "/v1/bots", {"bot": f"lena-{each}"}) for each in (2, 3, 4)]
    assert answers[-1].reason == "QUOTA_EXCEEDED"
    assert {each.headers["ratelimit-policy"] for each in answers} == {'"changes";q=2;w=60'}
    assert [each.headers["ratelimit"].split(";")[1] for each in answers] == ["r=1", "r=0", "r=0"]


@at_the_doors
async def test_quotas_are_set_by_admins_and_owners_are_erased(inviting_house: House) -> None:
    house = inviting_house
    admin, hans = OverGrpc(house, house.admin.token), await owner(house, "hans", bots=1)
    bot = (await hans.register("hans-1")).bot.name
    request = pb.SetOwnerQuotasRequest(name="owners/hans", most_bots=0)
    refused = await hans.call("OwnerService/SetOwnerQuotas", request, pb.SetOwnerQuotasResponse)
    assert refused == "SCOPE_MISSING"
    answer = await admin.call("OwnerService/SetOwnerQuotas", request, pb.SetOwnerQuotasResponse)
    assert (answer.owner.most_bots, list(answer.owner.bots)) == (0, [bot])
    assert answer.owner.most_matches == 8
    assert await hans.register("hans-2") == "QUOTA_EXCEEDED"
    for most in (0, 100):
        change = pb.SetOwnerQuotasRequest(name="owners/hans", most_requests=most)
        answer = await admin.call("OwnerService/SetOwnerQuotas", change, pb.SetOwnerQuotasResponse)
        assert answer.owner.most_requests == most
        assert (await hans.rotate(bot) == "QUOTA_EXCEEDED") is (most == 0)
    assert (await hans.get_owner("owners/hans")).owner.most_requests == 100
    erase = access_service_pb2.EraseOwnerRequest(owner="owners/hans")
    erased = await admin.call("AccessService/EraseOwner", erase, access_service_pb2.EraseOwnerResponse)
    assert (list(erased.bots), len(erased.access_tokens)) == ([bot], 1)
    assert await hans.rotate(bot) == "TOKEN_REVOKED"
    assert await admin.get_owner("owners/hans") == "NOT_FOUND"
    lines = await admin.call(
        "AccessService/ListAuditEntries",
        access_service_pb2.ListAuditEntriesRequest(page_size=1000),
        access_service_pb2.ListAuditEntriesResponse,
    )
    found = [json.loads(entry.line) for entry in lines.entries]
    assert not [line for line in found if "owners/hans" in json.dumps(line)]
    assert {"CreateInvite", "CreateOwner", "RegisterBot", "SetOwnerQuotas", "EraseOwner"} <= {
        line["method"].rpartition("/")[2] for line in found
    }


@at_the_doors
async def test_a_bot_of_an_owner_plays_no_more_matches_at_once_than_the_quota_says(
    inviting_house: House,
) -> None:
    house = inviting_house
    text = await invite(house, most_matches=2)
    made = await OverGrpc(house, text).create_owner("mina")
    assert made.owner.most_matches == 2
    registered = await OverGrpc(house, made.token).register("mina-1")
    bot = house.wire(registered.token, registered.bot.name)
    attending = await bot.attend(max_matches=100)
    assert (await attending.welcome()).max_matches == 2
    await attending.say(50)
    assert (await attending.welcome(2)).max_matches == 2
    await attending.say(1)
    assert (await attending.welcome(3)).max_matches == 1


def fresh_token(issuer: FakeIssuer, subject: str, **claims: Any) -> str:
    now_s = int(time.time())
    return issuer.token(**{"sub": subject, "iat": now_s, "exp": now_s + 300, **claims})


@at_the_doors
async def test_a_person_of_the_issuer_registers_bots_by_either_door(
    inviting_house: House, issuer_at_door: IssuerServer
) -> None:
    house, issuer = inviting_house, issuer_at_door.fake
    by_grpc = await OverGrpc(house, fresh_token(issuer, "zoe")).create_owner("")
    name = by_grpc.owner.name
    assert name.startswith("owners/oidc-")
    assert (by_grpc.owner.most_bots, by_grpc.owner.most_matches) == (3, 8)
    assert (await OverGrpc(house, by_grpc.token).register("zoes-1")).bot.owner == name
    async with house.http(fresh_token(issuer, "zoe")) as http:
        by_rest = (await http.call("POST", "/v1/owners", {})).json
        wrong = (await http.call("POST", "/v1/owners", {"ownerId": "zoe"})).json["error"]
    assert (by_rest["owner"]["name"], by_rest["owner"]["bots"]) == (name, ["bots/zoes-1/versions/1"])
    assert "leave owner_id empty" in wrong["message"]
    assert await OverGrpc(house, by_grpc.token).register("zoes-2") == "TOKEN_UNKNOWN", "it was replaced"
    assert (await OverGrpc(house, by_rest["token"]).register("zoes-2")).bot.owner == name
    async with house.http(fresh_token(issuer, "bea", aud="another")) as http:
        refused = (await http.call("POST", "/v1/owners", {})).json["error"]
    assert (refused["code"], refused["details"][0]["reason"]) == (401, "TOKEN_UNKNOWN")
    bea = OverGrpc(house, fresh_token(issuer, "bea"))
    assert await bea.register("beas") == "TOKEN_UNKNOWN", "with an ID token one joins, and does nothing else"
    assert await OverGrpc(house, fresh_token(issuer, "zoe", exp=1)).create_owner("") == "TOKEN_EXPIRED"


@at_the_doors
async def test_an_owner_whose_token_was_revoked_does_not_come_back_by_signing_in(
    inviting_house: House, issuer_at_door: IssuerServer
) -> None:
    house, cleo = inviting_house, OverGrpc(inviting_house, fresh_token(issuer_at_door.fake, "cleo"))
    made = await cleo.create_owner("")
    [its] = await OverGrpc(house, made.token).tokens()
    request = access_service_pb2.RevokeAccessTokenRequest(name=its)
    admin = OverGrpc(house, house.admin.token)
    await admin.call("AccessService/RevokeAccessToken", request, access_service_pb2.RevokeAccessTokenResponse)
    assert await cleo.create_owner("") == "NOT_ALLOWED"
    erase = access_service_pb2.EraseOwnerRequest(owner=made.owner.name)
    await admin.call("AccessService/EraseOwner", erase, access_service_pb2.EraseOwnerResponse)
    assert await OverGrpc(house, made.token).register("cleos") == "TOKEN_REVOKED"
    squatter = OverGrpc(house, await invite(house))
    assert await squatter.create_owner(made.owner.name.removeprefix("owners/")) == "INVALID_ARGUMENT"


@at_the_doors
async def test_where_registration_is_closed_owners_register_nothing(house: House) -> None:
    holder = OverGrpc(house, await invite(house))
    assert await holder.create_owner("late") == "NOT_ALLOWED"
    assert house.server
    await house.server.store.owners.create_owner("owners/early", 3, 8, "invites/none", "")
    issued = await house.server.store.access_tokens.create_token("owners/early", frozenset({"own"}), 0, "")
    assert await OverGrpc(house, issued.text).register("early-1") == "NOT_ALLOWED"


@at_the_doors
async def test_operators_invite_and_owners_join_at_the_terminal(inviting_house: House) -> None:
    house = inviting_house
    [made] = await told(house, "invite", "create", "--bots", "5", "--expires", "7d")
    assert made["most_bots"] == 5
    code, said, complained = await ctl(house, "owner", "create", "tina", token=made["token"])
    assert (code, complained) == (0, "")
    assert SCANNED.search(said)
    assert "will be public" in said
    said = (await ctl(house, "owner", "set-quotas", "tina", "--bots", "7", "--requests", "9"))[1]
    assert "has 0 of 7 bots; each plays at most 8" in said
    assert "at most 9 changes in a minute" in said
    code, said, _ = await ctl(house, "invite", "list")
    assert (code, made["name"] in said, "1 of 1" in said) == (0, True, True)


@at_the_doors
async def test_a_class_becomes_owners_in_one_command_that_goes_on_after_a_kill(
    inviting_house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = tmp_path / "names.csv"
    names.write_text("id,name\nclass-a,Ada\nclass-b,Bob\nclass-c,Cleo\n")
    command, tokens = ("owner", "create", "--file", str(names)), tmp_path / "names.tokens.csv"
    append = owners._append_row

    def append_until_killed(path: Path, each: str, token: str) -> None:
        if each == "class-b":
            raise UsageError("killed")
        append(path, each, token)

    monkeypatch.setattr(owners, "_append_row", append_until_killed)
    assert (await ctl(inviting_house, *command))[2] == "seatwise ctl: killed\n"
    first = tokens.read_text()
    assert "seatwise_invite_" in first
    monkeypatch.setattr(owners, "_append_row", append)
    [done] = await told(inviting_house, *command)
    assert done == {"created": 2, "owners": 3, "file": str(tokens)}
    rows = dict(line.split(",") for line in tokens.read_text().splitlines())
    assert list(rows) == ["class-a", "class-b", "class-c"]
    assert rows["class-a"] in first
    assert tokens.stat().st_mode & 0o077 == 0
    for each, token in rows.items():
        assert (
            f"owners/{each} has 0 of 3 bots"
            in (await ctl(inviting_house, "owner", "show", each, token=token))[1]
        )
    assert (await told(inviting_house, *command))[0]["created"] == 0
    for text in ("a diary,\nnot a list\n", "one line without its end"):
        (tmp_path / "diary").write_text(text)
        (tmp_path / "diary").chmod(0o600)
        complained = (await ctl(inviting_house, *command, "--tokens", str(tmp_path / "diary")))[2]
        assert ("something else than tokens" in complained, (tmp_path / "diary").read_text()) == (True, text)
    names.write_text("Class D\n")
    assert "is no id" in (await ctl(inviting_house, *command))[2]
    names.write_text("class-d\n")
    tokens.chmod(0o644)
    assert "others may read it" in (await ctl(inviting_house, *command))[2]
