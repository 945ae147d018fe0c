"""Access tokens: each has a name, a holder, scopes and perhaps an end. A holder is a person or a bot.

They exist beside the one token that each bot gets when it is registered, and beside the admin token of the local file.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass

from seatwise_server.store import keys
from seatwise_server.store.errors import AccessTokenAbsent, AccessTokenExists, BadPageToken, TokenRefused
from seatwise_server.store.keeping import keep_key
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, call, call_many
from seatwise_server.store.redis.clock import now_ms
from seatwise_server.store.tokens import (
    ACCESS_KIND,
    NO_HASH,
    SECRET_BYTES,
    hash_secret,
    new_access_token,
    open_ticket,
    parse_token,
    seal_ticket,
)

KEEP_ENDED_MS = 90 * 86_400_000
"""How long a revoked or expired token is listed, in milliseconds. After that its text is unknown."""

_ID_BYTES = 10
_NAME = re.compile(r"tokens/[a-z2-7]{16}")
_CREATED_BEFORE = 2
_IS_REVOKED = 2
_HAS_EXPIRED = 3
_FIELDS = ("hash", "holder", "scopes", "create_ms", "expire_ms", "revoke_ms", "last_use_ms")


@dataclass(frozen=True, slots=True)
class StoredAccessToken:
    """An access token without its secret. All times are milliseconds of Redis's clock since 1970; 0 means never."""

    name: str
    """Format: tokens/{token}."""
    holder: str
    """The name of a person, or bots/{bot}/versions/{version}."""
    scopes: frozenset[str]
    create_ms: int
    expire_ms: int
    revoke_ms: int
    last_use_ms: int


@dataclass(frozen=True, slots=True)
class IssuedAccessToken:
    """An access token, and its text, which is shown only once."""

    token: StoredAccessToken
    text: str
    """Empty for a repeat of an earlier request."""


@dataclass(frozen=True, slots=True)
class AccessTokenPage:
    """Some access tokens, in the order of their names."""

    tokens: tuple[StoredAccessToken, ...]
    next_page_token: str
    """Empty on the last page."""


class AccessTokens:
    """The access tokens on one Redis."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def create_token(
        self, holder: str, scopes: frozenset[str], lifetime_ms: int, request_id: str
    ) -> IssuedAccessToken:
        """Creates a token that is valid for `lifetime_ms` milliseconds, or for ever if that is 0.

        A repeat of the same request (if it has an id) creates nothing and shows no text. Raises AccessTokenExists if
        another request has used this id.
        """
        token_id = _new_id(request_id)
        name = f"tokens/{token_id}"
        text, secret_hash = new_access_token(token_id)
        args = (holder, " ".join(sorted(scopes)), secret_hash, request_id, lifetime_ms, 0)
        await self._list_token(name)  # first: a token that is in no list could not be erased with its holder
        answer = await scripts.run_script(
            self._client, "access_token_create", [keys.access_token(name)], *args
        )
        created = await self.get_token(name)
        if answer == 0 or created is None or (created.holder, created.scopes) != (holder, scopes):
            raise AccessTokenExists(f"{name} was created by a request of the same id with other contents")
        await self._list_token(name)  # a list may have dropped it, because there was no such token yet
        if created.expire_ms:
            keep_ms = created.expire_ms - created.create_ms + KEEP_ENDED_MS
            await keep_key(self._client, keys.access_token(name), keep_ms)
        return IssuedAccessToken(created, "" if answer == _CREATED_BEFORE else text)

    async def _list_token(self, name: str) -> None:
        await call(self._client, "ZADD", keys.ACCESS_TOKEN_INDEX, "NX", 0, name)

    async def read_ticket_key(self) -> bytes:
        """Returns the key with which all processes of this server seal tickets. The first one that asks draws it."""
        if (found := await call(self._client, "GET", keys.TICKET_KEY)) is None:
            await call(self._client, "SET", keys.TICKET_KEY, secrets.token_bytes(SECRET_BYTES), "NX")
            found = await call(self._client, "GET", keys.TICKET_KEY)
        return bytes(found)

    async def new_ticket(self, contents: str) -> str:
        """Returns a ticket that says this. Nothing is stored of it."""
        return seal_ticket(_new_id(""), contents, await self.read_ticket_key())

    async def open_ticket(self, text: str) -> str:
        """Returns what a ticket of this server says; empty for any other text."""
        return open_ticket(text, await self.read_ticket_key())

    async def is_used(self, ticket: str) -> bool:
        """Returns whether the ticket is a token already."""
        return await self.get_token(_token_of(ticket)) is not None

    async def use_ticket(self, text: str, holder: str, scopes: frozenset[str], lifetime_ms: int) -> None:
        """Makes a token of a ticket. It is in no list, and is forgotten after `lifetime_ms` milliseconds. Repeatable."""
        secret = parse_token(text)[1].partition(".")[2]
        args = (holder, " ".join(sorted(scopes)), hash_secret(secret), "", lifetime_ms, lifetime_ms)
        await scripts.run_script(
            self._client, "access_token_create", [keys.access_token(_token_of(text))], *args
        )

    async def rotate_token(self, name: str) -> IssuedAccessToken:
        """Gives the token a new text; the old text is no longer valid, and the end stays as it was.

        Raises AccessTokenAbsent, also for a token that is revoked or has expired.
        """
        _check_name(name)
        text, secret_hash = new_access_token(name.removeprefix("tokens/"))
        answer = await self._change(name, secret_hash)
        if answer == _IS_REVOKED:
            raise AccessTokenAbsent(f"{name} is revoked; create another token")
        if answer == _HAS_EXPIRED:
            raise AccessTokenAbsent(f"{name} has expired; create another token")
        return IssuedAccessToken(await self._get_changed(name), text)

    async def revoke_token(self, name: str) -> StoredAccessToken:
        """Revokes the token. Repeatable. Raises AccessTokenAbsent."""
        _check_name(name)
        await self._change(name, b"")
        return await self._get_changed(name)

    async def _change(self, name: str, secret_hash: bytes) -> int:
        key = keys.access_token(name)
        answer = int(await scripts.run_script(self._client, "access_token_change", [key], secret_hash))
        if answer == 0:
            raise AccessTokenAbsent(f"there is no {name}")
        if not secret_hash:
            await keep_key(self._client, key, KEEP_ENDED_MS)
        await call(self._client, "INCR", keys.TOKENS_REVISION)
        return answer

    async def _get_changed(self, name: str) -> StoredAccessToken:
        found = await self.get_token(name)
        if found is None:
            raise AccessTokenAbsent(f"there is no {name}")
        return found

    async def erase_holder(self, name: str, holder: str, pseudonym: str) -> None:
        """Puts a pseudonym in the place of this holder of the token. Repeatable."""
        args = (holder, pseudonym)
        await scripts.run_script(self._client, "holder_erase", [keys.access_token(name)], *args)

    async def get_token(self, name: str) -> StoredAccessToken | None:
        """Returns the token; None if there is none."""
        found = _parse_token(name, await call(self._client, *_read_command(name)))
        return found[1] if found else None

    async def authenticate(self, text: str) -> tuple[StoredAccessToken, int]:
        """Returns the token with this text, and the milliseconds that it is still valid; 0 means for ever.

        Raises TokenRefused, with REVOKED or EXPIRED only if the secret is the right one.
        """
        kind, body = parse_token(text)
        token_id, _, secret = body.partition(".")
        name = f"tokens/{token_id}"
        is_name = kind == ACCESS_KIND and _NAME.fullmatch(name)
        found = _parse_token(name, await call(self._client, *_read_command(name))) if is_name else None
        held, token = found or (NO_HASH, None)
        is_right = hmac.compare_digest(hash_secret(secret), held)
        if token is None or not is_right:
            raise TokenRefused("UNKNOWN")
        if token.revoke_ms:
            raise TokenRefused("REVOKED")
        left_ms = token.expire_ms - await now_ms(self._client) if token.expire_ms else 0
        if token.expire_ms and left_ms <= 0:
            raise TokenRefused("EXPIRED")
        return token, left_ms

    async def list_page(self, page_size: int, page_token: str = "") -> AccessTokenPage:
        """Returns tokens in the order of their names, also revoked and expired ones. Raises BadPageToken."""
        if page_token and not _NAME.fullmatch(page_token):
            raise BadPageToken("the page token is not one that this list gave out")
        start = f"({page_token}" if page_token else "-"
        limits = ("BYLEX", "LIMIT", 0, page_size + 1)
        answer = await call(self._client, "ZRANGE", keys.ACCESS_TOKEN_INDEX, start, "+", *limits)
        names = [name.decode() for name in answer]
        shown = names[:page_size]
        answers = await call_many(self._client, [_read_command(name) for name in shown]) if shown else []
        found = {name: _parse_token(name, answer) for name, answer in zip(shown, answers, strict=True)}
        if forgotten := [name for name, it in found.items() if it is None]:
            await call(self._client, "ZREM", keys.ACCESS_TOKEN_INDEX, *forgotten)
        next_token = shown[-1] if len(names) > page_size else ""
        return AccessTokenPage(tuple(it[1] for it in found.values() if it), next_token)


def _new_id(request_id: str) -> str:
    """Returns a random id, or the one id of a request."""
    raw = (
        hashlib.sha256(request_id.encode()).digest()[:_ID_BYTES]
        if request_id
        else secrets.token_bytes(_ID_BYTES)
    )
    return base64.b32encode(raw).decode().lower()


def _token_of(ticket: str) -> str:
    return f"tokens/{parse_token(ticket)[1].partition('.')[0]}"


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise AccessTokenAbsent(f"there is no {name[:80]!r}")


def _read_command(name: str) -> tuple[str, ...]:
    return ("HMGET", keys.access_token(name), *_FIELDS)


def _parse_token(name: str, answer: list[bytes | None]) -> tuple[bytes, StoredAccessToken] | None:
    secret_hash, holder, scopes, *times = answer
    if secret_hash is None or holder is None or scopes is None:
        return None
    create_ms, expire_ms, revoke_ms, last_use_ms = (int(it or 0) for it in times)
    return secret_hash, StoredAccessToken(
        name,
        holder.decode(),
        frozenset(scopes.decode().split()),
        create_ms,
        expire_ms,
        revoke_ms,
        last_use_ms,
    )
