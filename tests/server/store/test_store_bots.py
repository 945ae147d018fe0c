"""The register of bots, and what opens the door to them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from harness.store_calls import reserve_seat
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis

from seatwise_server.resource_names import BadBotName, bot_name_for, parse_bot_name
from seatwise_server.store import Store, keys
from seatwise_server.store.errors import (
    BadPageToken,
    BotAbsent,
    BotDeleted,
    BotExists,
    BotShutOut,
    TokenRefused,
)
from seatwise_server.store.queues import Attendance
from seatwise_server.store.redis.client import RedisClient
from seatwise_server.store.redis.scripts import run_script
from seatwise_server.store.tokens import (
    CHECKSUM_LENGTH,
    BadAdminTokenFile,
    load_or_create_admin_token,
    new_token,
    split_token,
)

BOT = "bots/greedy/versions/1.2"

names = st.from_regex(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?", fullmatch=True)
versions = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,18}[a-z0-9])?", fullmatch=True)


async def registered(store: Store, request_id: str = "first") -> str:
    issued = await store.bots.register_bot("greedy", "1.2", "users/ann", request_id)
    assert issued.token is not None
    return issued.token


async def refusal(store: Store, token: str) -> str:
    with pytest.raises(TokenRefused) as refused:
        await store.bots.authenticate(token)
    return refused.value.reason


async def test_a_registered_bot_is_known_by_its_token(store: Store) -> None:
    token = await registered(store)
    bot = await store.bots.authenticate(token)
    assert (bot.bot, bot.owner, bot.is_revoked) == (BOT, "users/ann", False)
    assert await store.bots.get_bot(BOT) == bot


async def test_a_repeated_request_registers_nothing_and_shows_no_token(store: Store) -> None:
    token = await registered(store)
    again = await store.bots.register_bot("greedy", "1.2", "users/eve", "first")
    assert (again.bot, again.token) == (BOT, None)
    assert (await store.bots.authenticate(token)).owner == "users/ann"


async def test_a_name_and_version_is_registered_once(store: Store) -> None:
    await registered(store)
    with pytest.raises(BotExists):
        await store.bots.register_bot("greedy", "1.2", "users/eve", "second")
    assert await store.bots.register_bot("greedy", "1.3", "users/ann", "third")


async def test_no_token_is_kept_in_redis(store: Store, redis_client: Redis) -> None:
    secret = (await registered(store)).rpartition(".")[2][:-CHECKSUM_LENGTH].encode()
    assert len(secret) >= 51  # 32 bytes in base32
    for key in await redis_client.keys():
        assert secret not in await redis_client.dump(key)


@pytest.mark.parametrize(
    "token",
    [
        "",
        ".",
        "..",
        "greedy",
        "greedy.1.2",
        "greedy.1.2.",
        "nobody.1.x",
        "greedy.9.x",
        "Greedy.1.2.x",
        "é.1.x",
        "a b.1.x",
    ],
)
async def test_other_tokens_are_unknown(store: Store, token: str) -> None:
    await registered(store)
    assert await refusal(store, token) == "UNKNOWN"


async def test_a_revoked_token_is_refused_and_everybody_is_told(store: Store) -> None:
    token = await registered(store)
    before = await store.credentials.tokens_revision()
    await store.bots.revoke_token(BOT)
    assert await refusal(store, token) == "REVOKED"
    assert await refusal(store, token[:-1]) == "UNKNOWN"  # only the right secret learns why
    await store.bots.revoke_token(BOT)
    assert await store.credentials.tokens_revision() == before + 2
    bot = await store.bots.get_bot(BOT)
    assert bot is not None
    assert bot.is_revoked


async def test_rotation_ends_the_old_token(store: Store) -> None:
    old = await registered(store)
    before = await store.credentials.tokens_revision()
    issued = await store.bots.rotate_token(BOT, "second")
    assert issued.token is not None
    assert await refusal(store, old) == "UNKNOWN"
    assert (await store.bots.authenticate(issued.token)).bot == BOT
    assert await store.credentials.tokens_revision() == before + 1
    assert (await store.bots.rotate_token(BOT, "second")).token is None
    assert (await store.bots.authenticate(issued.token)).bot == BOT


async def test_rotation_opens_a_revoked_bot_again(store: Store) -> None:
    old = await registered(store)
    await store.bots.revoke_token(BOT)
    token = (await store.bots.rotate_token(BOT)).token
    assert token is not None
    assert (await store.bots.authenticate(token)).bot == BOT
    assert await refusal(store, old) == "UNKNOWN"


async def test_an_owner_gets_no_new_token_for_a_bot_whose_token_an_operator_has_revoked(store: Store) -> None:
    await registered(store)
    await store.bots.revoke_token(BOT, by_owner=True)
    assert (await store.bots.rotate_token(BOT, by_owner=True)).token
    await store.bots.revoke_token(BOT)
    await store.bots.revoke_token(BOT, by_owner=True)
    with pytest.raises(BotShutOut):
        await store.bots.rotate_token(BOT, by_owner=True)
    assert (await store.bots.rotate_token(BOT)).token
    assert (await store.bots.rotate_token(BOT, by_owner=True)).token


async def test_of_a_deleted_bot_its_name_is_left_and_a_token_that_is_refused(store: Store) -> None:
    token = await registered(store)
    revision = await store.credentials.tokens_revision()
    for _ in range(2):
        await store.bots.delete_bot(BOT)
    assert await store.credentials.tokens_revision() > revision
    assert await refusal(store, token) == "REVOKED"
    assert await store.bots.get_bot(BOT) is None
    assert (await store.bots.list_page(10)).bots == ()
    for request_id in ("first", "second", ""):
        with pytest.raises(BotDeleted):
            await store.bots.register_bot("greedy", "1.2", "users/ann", request_id)
    for change in (store.bots.rotate_token, store.bots.revoke_token):
        with pytest.raises(BotAbsent):
            await change(BOT)


async def test_the_owner_of_a_deleted_bot_is_forgotten(store: Store, redis_client: Redis) -> None:
    await registered(store)
    await store.bots.delete_bot(BOT)
    assert await store.bots.owners_of([BOT]) == {BOT: ""}
    for key in await redis_client.keys():
        assert b"users/ann" not in await redis_client.dump(key)


async def test_a_deleted_bot_is_given_no_seat_although_its_lobby_died(store: Store) -> None:
    await registered(store)
    await store.attendances.write_attendance(BOT, Attendance("lobby", "one", 4, ("casual",)), 60_000)
    assert await store.seats.free_places([BOT]) == [4]
    await store.bots.delete_bot(BOT)
    assert await store.seats.free_places([BOT]) == [0]
    assert not (await reserve_seat(store, BOT, "matches/m", 0)).holds


async def test_an_unregistered_bot_is_absent(store: Store) -> None:
    assert await store.bots.get_bot(BOT) is None
    with pytest.raises(BotAbsent):
        await store.bots.rotate_token(BOT)
    with pytest.raises(BotAbsent):
        await store.bots.revoke_token(BOT)
    with pytest.raises(BotAbsent):
        await store.bots.delete_bot(BOT)
    assert await store.credentials.tokens_revision() == 0


async def test_bots_are_listed_by_name_in_pages(store: Store) -> None:
    for number in range(7):
        await store.bots.register_bot(f"bot{number}", "1", "users/ann", "r")
    await store.bots.register_bot("bot3", "2", "users/ann", "r")
    found: list[str] = []
    token = ""
    while True:
        page = await store.bots.list_page(3, token)
        assert len(page.bots) <= 3
        found += [bot.bot for bot in page.bots]
        token = page.next_page_token
        if not token:
            break
    assert len(found) == 8
    assert found == sorted(found)
    of_one = await store.bots.list_page(10, prefix="bots/bot3/")
    assert [bot.bot for bot in of_one.bots] == ["bots/bot3/versions/1", "bots/bot3/versions/2"]
    with pytest.raises(BadPageToken):
        await store.bots.list_page(3, "????")


@given(names, versions)
def test_any_name_and_version_can_be_read_from_the_token(name: str, version: str) -> None:
    bot = bot_name_for(name, version)
    assert parse_bot_name(bot) == (name, version)
    token, _ = new_token(bot)
    assert split_token(token)[0] == bot


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("", "1"),
        ("1st", "1"),
        ("Greedy", "1"),
        ("a.b", "1"),
        ("a/b", "1"),
        ("a-", "1"),
        ("a\n", "1"),
        ("a" * 41, "1"),
        ("a", ""),
        ("a", "."),
        ("a", "1."),
        ("a", "1/2"),
        ("a", "1 2"),
        ("a", "1\n"),
        ("a", "1" * 21),
        ("ä", "1"),
        ("a", "²"),
    ],
)
def test_other_names_are_refused(name: str, version: str) -> None:
    with pytest.raises(BadBotName):
        bot_name_for(name, version)


@pytest.mark.parametrize(
    "bot", ["", "bots/a", "bots/a/versions", "bots/a/versions/1/2", "users/a/versions/1"]
)
def test_other_resource_names_are_refused(bot: str) -> None:
    with pytest.raises(BadBotName):
        parse_bot_name(bot)


def test_the_admin_token_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "data" / "admin.token"
    before = os.umask(0)
    try:
        token = load_or_create_admin_token(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_or_create_admin_token(path) == token
    assert [it.name for it in path.parent.iterdir()] == ["admin.token"]


def test_of_two_that_make_the_admin_token_at_once_the_first_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "admin.token"
    link = os.link

    def link_late(draft: Path, to: Path) -> None:
        path.write_text("the other process was quicker, by this much")
        link(draft, to)

    monkeypatch.setattr(os, "link", link_late)
    assert load_or_create_admin_token(path) == "the other process was quicker, by this much"
    assert [it.name for it in tmp_path.iterdir()] == ["admin.token"]


def test_an_empty_admin_token_opens_nothing(tmp_path: Path) -> None:
    path = tmp_path / "admin.token"
    path.touch(mode=0o600)
    with pytest.raises(BadAdminTokenFile, match=str(path)):
        load_or_create_admin_token(path)


async def test_a_registration_that_the_transport_sends_twice_is_one(client: RedisClient) -> None:
    registration = [keys.bot_registration("bots/resent/versions/1")]
    for token_hash, answer in (("one", 1), ("one", 1), ("another", 0)):
        args = ("me", token_hash, "")
        assert await run_script(client, "bot_register", registration, *args) == answer


async def test_the_bot_of_a_guest_is_forgotten_and_no_other(store: Store, redis_client: Redis) -> None:
    await registered(store)
    guest = await store.bots.register_guest("guest-1", "guest", 60_000)
    assert await redis_client.zrange(keys.KEPT_KEYS, 0, -1) == [keys.bot_registration(guest).encode()]
