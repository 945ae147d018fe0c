"""Access tokens in the store, and the texts of all tokens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from seatwise_server.store import Credential, IssuedAccessToken, Store, keys, now_ms
from seatwise_server.store import tokens as token_texts
from seatwise_server.store.errors import (
    AccessTokenAbsent,
    AccessTokenExists,
    BadPageToken,
    StoreUnavailable,
    TokenRefused,
)
from seatwise_server.store.redis import scripts
from seatwise_server.store.tokens import KEEP_ENDED_MS, AdminTokenFile, new_token

SCANNED = re.compile(r"seatwise_(bot|admin|access)_[A-Za-z0-9.-]{40,150}")
"""What docs/operations.md gives to a scanner for secrets."""

HOUR_MS = 3_600_000
BOT = "bots/greedy/versions/1.2"


async def created(
    store: Store, *scopes: str, holder: str = "Joan", ms: int = 0, request_id: str = ""
) -> IssuedAccessToken:
    return await store.access_tokens.create_token(holder, frozenset(scopes), ms, request_id)


async def refusal(store: Store, token: str) -> TokenRefused:
    with pytest.raises(TokenRefused) as refused:
        await store.credentials.authenticate(token)
    return refused.value


async def test_a_token_proves_its_holder_and_scopes(store: Store) -> None:
    issued = await created(store, "read", "register")
    proved = await store.credentials.authenticate(issued.text)
    assert proved == Credential("Joan", frozenset({"read", "register"}), issued.token.name)
    assert proved.bot == ""
    assert SCANNED.fullmatch(issued.text)


async def test_only_a_hash_is_kept(store: Store, redis_client: Redis) -> None:
    secret = (await created(store, "read")).text.rpartition(".")[2][:52].encode()
    assert len(secret) == 52
    for key in await redis_client.keys():
        assert secret not in await redis_client.dump(key)


async def test_a_token_expires(store: Store, redis_client: Redis) -> None:
    issued = await created(store, "read", ms=HOUR_MS)
    assert 0 < (await store.credentials.authenticate(issued.text)).left_ms <= HOUR_MS
    [key] = await redis_client.keys("*:access")
    kept_ms = await redis_client.zscore(keys.KEPT_KEYS, key) - await now_ms(store.client)
    assert HOUR_MS < kept_ms <= HOUR_MS + KEEP_ENDED_MS
    await redis_client.hset(key, "expire_ms", await now_ms(store.client))
    assert (await refusal(store, issued.text)).reason == "EXPIRED"
    assert (await refusal(store, (await new_text(issued)))).reason == "UNKNOWN"


async def new_text(issued: IssuedAccessToken) -> str:
    """The text of another secret for this token."""
    return token_texts.new_text("access", issued.token.name.removeprefix("tokens/"))[0]


async def test_a_revoked_token_opens_nothing_and_everybody_is_told(store: Store, redis_client: Redis) -> None:
    issued = await created(store, "read")
    before = await store.credentials.tokens_revision()
    for _ in range(2):
        assert (await store.access_tokens.revoke_token(issued.token.name)).revoke_ms
    assert (await refusal(store, issued.text)).reason == "REVOKED"
    assert (await refusal(store, await new_text(issued))).reason == "UNKNOWN"
    assert await store.credentials.tokens_revision() > before
    [key] = await redis_client.keys("*:access")
    assert 0 < await redis_client.zscore(keys.KEPT_KEYS, key) - await now_ms(store.client) <= KEEP_ENDED_MS
    with pytest.raises(AccessTokenAbsent):
        await store.access_tokens.rotate_token(issued.token.name)


async def test_rotation_ends_the_old_text_at_once(store: Store) -> None:
    old = await created(store, "read")
    new = await store.access_tokens.rotate_token(old.token.name)
    assert (await refusal(store, old.text)).reason == "UNKNOWN"
    assert (await store.credentials.authenticate(new.text)).token_name == old.token.name


async def test_a_token_whose_creation_was_cut_off_is_listed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An owner could be erased, and its name stay at such a token."""
    create = scripts.run_script

    async def die_behind(*args: Any) -> Any:
        await create(*args)
        raise StoreUnavailable("the process died")

    with monkeypatch.context() as patch:
        patch.setattr(scripts, "run_script", die_behind)
        with pytest.raises(StoreUnavailable):
            await created(store, "read")
    assert [it.holder for it in (await store.access_tokens.list_page(10))[0]] == ["Joan"]


async def test_an_expired_token_gets_no_new_text(store: Store, redis_client: Redis) -> None:
    """It was given one, which had expired before anybody could use it."""
    issued = await store.access_tokens.create_token("Joan", frozenset({"read"}), 60_000, "")
    new = await store.access_tokens.rotate_token(issued.token.name)
    assert new.token.expire_ms == issued.token.expire_ms
    [key] = await redis_client.keys("*:access")
    await redis_client.hset(key, "expire_ms", 1)
    with pytest.raises(AccessTokenAbsent, match="has expired; create another token"):
        await store.access_tokens.rotate_token(issued.token.name)
    assert (await store.access_tokens.revoke_token(issued.token.name)).revoke_ms


async def test_a_repeated_request_creates_nothing_and_shows_no_token(store: Store) -> None:
    first = await created(store, "read", request_id="one")
    again = await created(store, "read", request_id="one")
    assert (again.token.name, again.text) == (first.token.name, "")
    assert await store.credentials.authenticate(first.text)
    with pytest.raises(AccessTokenExists):
        await created(store, "admin", request_id="one")
    assert len((await store.access_tokens.list_page(10))[0]) == 1


async def test_tokens_are_listed_page_by_page_without_those_that_are_forgotten(
    store: Store, redis_client: Redis
) -> None:
    names = sorted([(await created(store, "read")).token.name for _ in range(5)])
    page, token = await store.access_tokens.list_page(3)
    rest, end = await store.access_tokens.list_page(3, token)
    assert [it.name for it in (*page, *rest)] == names
    assert not end
    await redis_client.delete(f"seatwise:{{token:{names[0]}}}:access")
    assert [it.name for it in (await store.access_tokens.list_page(10))[0]] == names[1:]
    assert await redis_client.zcard("seatwise:tokens:index") == 4
    with pytest.raises(BadPageToken):
        await store.access_tokens.list_page(3, "tokens/!")


@pytest.mark.parametrize("name", ["", "tokens/", "tokens/x", "tokens/aaaaaaaaaaaaaaaa", "bots/a/versions/1"])
async def test_other_names_are_those_of_no_token(store: Store, name: str) -> None:
    for change in (store.access_tokens.rotate_token, store.access_tokens.revoke_token):
        with pytest.raises(AccessTokenAbsent):
            await change(name)


async def test_a_bot_that_is_shut_out_has_no_other_way_in(store: Store) -> None:
    await store.bots.register_bot("greedy", "1.2", "ann", "")
    play = await created(store, "play", holder=BOT)
    assert (await store.credentials.authenticate(play.text)).bot == BOT
    await store.bots.revoke_token(BOT)
    assert (await refusal(store, play.text)).reason == "REVOKED"
    await store.bots.rotate_token(BOT)
    assert await store.credentials.authenticate(play.text)
    await store.bots.delete_bot(BOT)
    assert (await refusal(store, play.text)).reason == "REVOKED"


async def test_the_last_use_is_kept_for_both_kinds(store: Store, redis_client: Redis) -> None:
    await store.bots.register_bot("greedy", "1.2", "ann", "")
    name = (await created(store, "read")).token.name
    await store.credentials.write_uses([BOT, name, "tokens/aaaaaaaaaaaaaaaa"])
    found = await store.access_tokens.find(name)
    assert found
    assert 0 <= await now_ms(store.client) - found.last_use_ms < 10_000
    assert int(await redis_client.hget(f"seatwise:{{bot:{BOT}}}:registration", "last_use_ms")) > 0
    assert await store.access_tokens.find("tokens/aaaaaaaaaaaaaaaa") is None


async def test_a_typing_error_is_told_from_a_token_that_is_not_known(store: Store) -> None:
    text = (await created(store, "read")).text
    for wrong in (text[:-1], text[:-9] + ("a" if text[-9] != "a" else "b") + text[-8:], text + "a"):
        assert "typing error" in str(await refusal(store, wrong))
    unknown = await refusal(store, new_token("bots/nobody/versions/1")[0])
    assert (unknown.reason, "typing error" in str(unknown)) == ("UNKNOWN", False)


def test_the_admin_token_is_read_again_when_its_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_texts, "ADMIN_FILE_CHECK_S", 0.0)
    path = tmp_path / "admin.token"
    file = AdminTokenFile(path)
    first = file.read_token()
    assert SCANNED.fullmatch(first)
    assert file.read_token() == first == path.read_text().strip()
    path.write_text("admin." + "b" * 52)
    assert file.read_token() == "admin." + "b" * 52
    path.write_text("short")
    assert file.read_token() == "admin." + "b" * 52
    path.unlink()
    assert file.read_token() not in (first, "admin." + "b" * 52)
    assert file.read_token() == path.read_text().strip()
