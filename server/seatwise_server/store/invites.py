"""Invites: each lets a number of owners in, until it expires."""

from __future__ import annotations

import base64
import hmac
import re
import secrets
from dataclasses import dataclass

from seatwise_server.store import keys
from seatwise_server.store.access_tokens import KEEP_ENDED_MS
from seatwise_server.store.errors import BadPageToken, InviteAbsent, TokenRefused
from seatwise_server.store.keeping import keep_key
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, call, call_many
from seatwise_server.store.redis.clock import now_ms
from seatwise_server.store.tokens import INVITE_KIND, NO_HASH, hash_secret, new_invite_text, parse_token

_INVITE_ID_BYTES = 10
_INVITE_NAME = re.compile(r"invites/[a-z2-7]{16}")
_INVITE_FIELDS = ("hash", "most_bots", "uses", "used", "create_ms", "expire_ms", "revoke_ms", "most_matches")


@dataclass(frozen=True, slots=True)
class StoredInvite:
    """An invite without its secret. All times are milliseconds of Redis's clock since 1970; 0 means never."""

    name: str
    """Format: invites/{invite}."""
    most_bots: int
    uses: int
    used: int
    create_ms: int
    expire_ms: int
    revoke_ms: int
    most_matches: int
    """The most matches that each bot of these owners plays at once."""


@dataclass(frozen=True, slots=True)
class IssuedInvite:
    """An invite, and its text, which is shown only once."""

    invite: StoredInvite
    text: str


class Invites:
    """The invites on one Redis."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def create_invite(
        self, most_bots: int, uses: int, lifetime_ms: int, most_matches: int = 8
    ) -> IssuedInvite:
        """Creates an invite for `uses` owners with `most_bots` bots each, which play `most_matches` at once each."""
        invite_id = base64.b32encode(secrets.token_bytes(_INVITE_ID_BYTES)).decode().lower()
        name = f"invites/{invite_id}"
        text, secret_hash = new_invite_text(invite_id)
        await keep_key(self._client, keys.invite(name), lifetime_ms + KEEP_ENDED_MS)
        args = (secret_hash, most_bots, uses, lifetime_ms, most_matches)
        await scripts.run_script(self._client, "invite_create", [keys.invite(name)], *args)
        await call(self._client, "ZADD", keys.INVITE_INDEX, "NX", 0, name)
        return IssuedInvite(await self._get_present(name), text)

    async def get_invite(self, name: str) -> StoredInvite | None:
        """Returns the invite; None if there is none."""
        if not _INVITE_NAME.fullmatch(name):
            return None
        found = _parse_invite(name, await call(self._client, "HMGET", keys.invite(name), *_INVITE_FIELDS))
        return found[1] if found else None

    async def revoke_invite(self, name: str) -> StoredInvite:
        """Revokes the invite. Repeatable. Raises InviteAbsent."""
        if not _INVITE_NAME.fullmatch(name) or not await scripts.run_script(
            self._client, "invite_revoke", [keys.invite(name)]
        ):
            raise InviteAbsent(f"there is no {name[:80]!r}")
        await call(self._client, "INCR", keys.TOKENS_REVISION)
        return await self._get_present(name)

    async def use_invite(self, name: str, owner: str) -> bool:
        """Uses the invite for an owner, once; returns False if it is used up or no longer valid. Only a hash of the owner is kept."""
        args = (keys.owner_hash(owner),)
        return bool(await scripts.run_script(self._client, "invite_use", [keys.invite(name)], *args))

    async def authenticate(self, text: str) -> tuple[StoredInvite, int]:
        """Returns the invite with this text, and the milliseconds that it is still valid.

        Raises TokenRefused, with REVOKED or EXPIRED only if the secret is the right one.
        """
        kind, body = parse_token(text)
        invite_id, _, secret = body.partition(".")
        name = f"invites/{invite_id}"
        is_name = kind == INVITE_KIND and _INVITE_NAME.fullmatch(name)
        answer = await call(self._client, "HMGET", keys.invite(name), *_INVITE_FIELDS) if is_name else None
        held, invite = (_parse_invite(name, answer) if answer else None) or (NO_HASH, None)
        is_right = hmac.compare_digest(hash_secret(secret), held)
        if invite is None or not is_right:
            raise TokenRefused("UNKNOWN")
        if invite.revoke_ms:
            raise TokenRefused("REVOKED")
        left_ms = invite.expire_ms - await now_ms(self._client)
        if left_ms <= 0:
            raise TokenRefused("EXPIRED")
        return invite, left_ms

    async def list_page(self, page_size: int, page_token: str = "") -> tuple[list[StoredInvite], str]:
        """Returns invites in the order of their names, also ended ones, and the next page token. Raises BadPageToken."""
        if page_token and not _INVITE_NAME.fullmatch(page_token):
            raise BadPageToken("the page token is not one that this list gave out")
        start = f"({page_token}" if page_token else "-"
        limits = ("BYLEX", "LIMIT", 0, page_size + 1)
        answer = await call(self._client, "ZRANGE", keys.INVITE_INDEX, start, "+", *limits)
        names = [name.decode() for name in answer]
        shown = names[:page_size]
        commands = [("HMGET", keys.invite(name), *_INVITE_FIELDS) for name in shown]
        answers = await call_many(self._client, commands) if commands else []
        found = {name: _parse_invite(name, it) for name, it in zip(shown, answers, strict=True)}
        if forgotten := [name for name, it in found.items() if it is None]:
            await call(self._client, "ZREM", keys.INVITE_INDEX, *forgotten)
        next_token = shown[-1] if len(names) > page_size else ""
        return [it[1] for it in found.values() if it], next_token

    async def _get_present(self, name: str) -> StoredInvite:
        found = await self.get_invite(name)
        if found is None:
            raise InviteAbsent(f"there is no {name}")
        return found


def _parse_invite(name: str, answer: list[bytes | None]) -> tuple[bytes, StoredInvite] | None:
    secret_hash, *numbers = answer
    if secret_hash is None:
        return None
    return secret_hash, StoredInvite(name, *(int(it or 0) for it in numbers))
