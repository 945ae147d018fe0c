"""The register of bots, and credentials: what a token proves, whichever kind of token it is."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Sequence
from dataclasses import dataclass

from seatwise_server.resource_names import BadBotName, bot_name_for, parse_bot_name
from seatwise_server.store import keys
from seatwise_server.store.errors import (
    BadPageToken,
    BotAbsent,
    BotDeleted,
    BotExists,
    BotShutOut,
    TokenRefused,
)
from seatwise_server.store.keeping import keep_key
from seatwise_server.store.redis.client import RedisClient
from seatwise_server.store.redis.scripts import StorePart
from seatwise_server.store.tokens import (
    ACCESS_KIND,
    INVITE_KIND,
    NO_HASH,
    AccessTokens,
    Invites,
    hash_secret,
    new_token,
    parse_token,
    split_token,
)

_REPEATED = 2
_WAS_DELETED = 3
_WAS_SHUT_OUT = 3

SCOPES_OF_REGISTRATION = frozenset({"attend", "play"})
"""The scopes of the token that a bot gets when it is registered."""

SCOPES_OF_INVITES = frozenset({"join"})


@dataclass(frozen=True, slots=True)
class RegisteredBot:
    """A registered bot, without its token."""

    bot: str
    """Format: bots/{bot}/versions/{version}."""
    owner: str
    create_ms: int
    is_revoked: bool
    is_deleted: bool = False
    """Whether the bot was deleted. Then only its name is left, and the hash of a token that is refused."""
    last_use_ms: int = 0
    """When its token was last used, in milliseconds of Redis's clock since 1970, to the minute; 0 means never."""


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A bot and its new token."""

    bot: str
    token: str | None
    """None for a repeat of an earlier request: a token is shown once. A caller that lost the first answer rotates the token."""


@dataclass(frozen=True, slots=True)
class BotPage:
    """Some bots, in the order of their names."""

    bots: tuple[RegisteredBot, ...]
    next_page_token: str
    """Empty on the last page."""


class Bots(StorePart):
    """The register of bots."""

    async def register_bot(self, name: str, version: str, owner: str, request_id: str) -> IssuedToken:
        """Register a bot and return it with its token, which is shown only this once.

        A repeat of the same request registers nothing and shows no token. The first token stays valid, because
        the sender of the repeat may be somebody else. Raises BadBotName, BotExists if another request has
        registered the bot, and BotDeleted if a bot of this name was deleted.
        """
        bot = bot_name_for(name, version)
        token, token_hash = new_token(bot)
        args = (owner, token_hash, request_id)
        answer = await self._run("bot_register", [keys.bot_registration(bot)], *args)
        if answer == 0:
            raise BotExists(f"{bot} is registered already")
        if answer == _WAS_DELETED:
            raise BotDeleted(f"{bot} was deleted, and no other bot is given its name")
        await self._call("ZADD", keys.BOT_INDEX, "NX", 0, bot)
        return IssuedToken(bot, None if answer == _REPEATED else token)

    async def register_guest(self, name: str, owner: str, keep_ms: int) -> str:
        """Register the bot of a guest, which is forgotten after `keep_ms` milliseconds, and return it.

        It is in no list of bots, and nobody is given the token of its registration. Raises BadBotName and BotExists.
        """
        bot = bot_name_for(name, "1")
        _, token_hash = new_token(bot)
        key = keys.bot_registration(bot)
        if await self._run("bot_register", [key], owner, token_hash, "") != 1:
            raise BotExists(f"{bot} is registered already")
        await keep_key(self._client, key, keep_ms)  # not before: a bot that is no guest may have the name
        return bot

    async def rotate_token(self, bot: str, request_id: str = "", *, by_owner: bool = False) -> IssuedToken:
        """Issue a new token for the bot, also for a revoked one; the old token is no longer valid.

        A repeat of the same request (if it has an id) changes nothing and shows no token. Raises BadBotName,
        BotAbsent, and BotShutOut where an owner asks after an operator has revoked the token.
        """
        token, token_hash = new_token(bot)
        args = (token_hash, request_id, int(by_owner))
        answer = await self._run("bot_token", [keys.bot_registration(bot)], *args)
        if answer == _WAS_SHUT_OUT:
            raise BotShutOut(f"an operator has revoked the token of {bot}")
        await self._note_change(bot, answer)
        return IssuedToken(bot, None if answer == _REPEATED else token)

    async def revoke_token(self, bot: str, *, by_owner: bool = False) -> None:
        """Revoke the bot's token. Repeatable. Raises BadBotName and BotAbsent."""
        parse_bot_name(bot)
        answer = await self._run("bot_token", [keys.bot_registration(bot)], "", "", int(by_owner))
        await self._note_change(bot, answer)

    async def delete_bot(self, bot: str) -> None:
        """Delete the bot for good, and forget its owner. Repeatable. Raises BadBotName and BotAbsent."""
        parse_bot_name(bot)
        answer = await self._run("bot_delete", [keys.bot_registration(bot), keys.bot_attendance(bot)])
        await self._note_change(bot, answer)
        await self._call("ZREM", keys.BOT_INDEX, bot)
        await self._call("HDEL", keys.BOT_KIND_INDEX, bot)

    async def _note_change(self, bot: str, answer: int) -> None:
        """Make all processes check their streams again. A repeat does so too: the first request may have failed before this."""
        if answer == 0:
            raise BotAbsent(f"{bot} is not registered")
        await self._call("INCR", keys.TOKENS_REVISION)

    async def authenticate(self, token: str) -> RegisteredBot:
        """Return the bot that the token belongs to. Raises TokenRefused, with REVOKED only if the secret is the right one."""
        bot, secret = split_token(token)
        found = await self._read_bots(bot)
        held, registered = found or (NO_HASH, None)
        is_right = hmac.compare_digest(hash_secret(secret), held)
        if registered is None or not is_right:
            raise TokenRefused("UNKNOWN")
        if registered.is_revoked:
            raise TokenRefused("REVOKED")
        return registered

    async def get_bot(self, bot: str) -> RegisteredBot | None:
        """Return the bot; None if it is not registered, or was deleted."""
        found = await self._read_bots(bot)
        return found[1] if found and not found[1].is_deleted else None

    async def is_known(self, bot: str) -> bool:
        """Whether the bot is registered, or was and is deleted."""
        return bool(await self._call("EXISTS", keys.bot_registration(bot)))

    async def _read_bots(self, bot: str) -> tuple[bytes, RegisteredBot] | None:
        return _parse_bot(bot, await self._call(*_read_command(bot)))

    async def erase_owner(self, bot: str, owner: str) -> bool:
        """Remove the name of this owner from the bot; returns False if the bot has another owner. Repeatable."""
        return bool(await self._run("owner_erase", [keys.bot_registration(bot)], owner))

    async def set_kind(self, bot: str, kind: int) -> None:
        """Note how the bot finds its moves: a number of the protocol's `BotKind`. With 0 it is forgotten. Repeatable."""
        if kind:
            await self._call("HSET", keys.BOT_KIND_INDEX, bot, kind)
        else:
            await self._call("HDEL", keys.BOT_KIND_INDEX, bot)

    async def suggest_kind(self, bot: str, kind: int) -> None:
        """Note the kind of the bot, like `set_kind`, unless somebody has said one. Repeatable."""
        await self._call("HSETNX", keys.BOT_KIND_INDEX, bot, kind)

    async def kinds_of(self, bots: Sequence[str]) -> tuple[int, ...]:
        """Return the kind of each of these bots; 0 where nobody has said it."""
        answers = await self._call("HMGET", keys.BOT_KIND_INDEX, *bots) if bots else []
        return tuple(int(kind or 0) for kind in answers)

    async def owners_of(self, bots: Sequence[str]) -> dict[str, str]:
        """Return the owner of each of these bots; empty for a bot that is not registered."""
        answers = await self._call_many([("HGET", keys.bot_registration(bot), "owner") for bot in bots])
        return {bot: (owner or b"").decode() for bot, owner in zip(bots, answers, strict=True)}

    async def list_page(self, page_size: int, page_token: str = "", prefix: str = "bots/") -> BotPage:
        """Return the bots whose resource name starts with the prefix, in the order of their names. Raises BadPageToken."""
        start = f"({_parse_page_token(page_token)}" if page_token else f"[{prefix}"
        limits = ("BYLEX", "LIMIT", 0, page_size + 1)
        end = b"(" + prefix.encode() + b"\xff"
        named = [name.decode() for name in await self._call("ZRANGE", keys.BOT_INDEX, start, end, *limits)]
        shown = named[:page_size]
        answers = await self._call_many([_read_command(bot) for bot in shown])
        found = (_parse_bot(bot, answer) for bot, answer in zip(shown, answers, strict=True))
        token = base64.urlsafe_b64encode(shown[-1].encode()).decode() if len(named) > page_size else ""
        return BotPage(tuple(it[1] for it in found if it and not it[1].is_deleted), token)


def _read_command(bot: str) -> tuple[str, ...]:
    fields = ("token_hash", "owner", "create_ms", "revoked", "deleted_ms", "last_use_ms")
    return ("HMGET", keys.bot_registration(bot), *fields)


def _parse_bot(bot: str, answer: list[bytes | None]) -> tuple[bytes, RegisteredBot] | None:
    token_hash, owner, create_ms, revoked, deleted_ms, last_use_ms = answer
    if token_hash is None or owner is None or create_ms is None:
        return None
    is_revoked, is_deleted = revoked is not None, deleted_ms is not None
    return token_hash, RegisteredBot(
        bot, owner.decode(), int(create_ms), is_revoked, is_deleted, int(last_use_ms or 0)
    )


def _parse_page_token(page_token: str) -> str:
    try:
        bot = base64.urlsafe_b64decode(page_token.encode()).decode()
        parse_bot_name(bot)
        return bot
    except (binascii.Error, ValueError, BadBotName) as error:
        raise BadPageToken("the page token is not one that this list gave out") from error


@dataclass(frozen=True, slots=True)
class Credential:
    """The proof of a valid token."""

    holder: str
    """The name of a person, bots/{bot}/versions/{version}, owners/{owner} or invites/{invite}."""
    scopes: frozenset[str]
    token_name: str
    """tokens/{id}, invites/{invite}, or the bot's name for the token of its registration."""
    left_ms: int = 0
    """Milliseconds for which the token is still valid; 0 means for ever."""

    @property
    def bot(self) -> str:
        """The bot that holds the token; empty for a person."""
        return self.holder if self.holder.startswith("bots/") else ""


class Credentials(StorePart):
    """All tokens on one Redis."""

    def __init__(self, client: RedisClient) -> None:
        super().__init__(client)
        self._bots = Bots(client)
        self._access_tokens = AccessTokens(client)
        self._invites = Invites(client)

    async def authenticate(self, token: str) -> Credential:
        """Return what the token proves. Raises TokenRefused."""
        kind, _ = parse_token(token)
        if kind == INVITE_KIND:
            invite, left_ms = await self._invites.authenticate(token)
            return Credential(invite.name, SCOPES_OF_INVITES, invite.name, left_ms)
        if kind != ACCESS_KIND:
            bot = (await self._bots.authenticate(token)).bot
            return Credential(bot, SCOPES_OF_REGISTRATION, bot)
        found, left_ms = await self._access_tokens.authenticate(token)
        credential = Credential(found.holder, found.scopes, found.name, left_ms)
        if credential.bot:
            # A bot that was deleted, or whose own token was revoked, is shut out.
            registered = await self._bots.get_bot(credential.bot)
            if registered is None or registered.is_revoked:
                raise TokenRefused("REVOKED")
        return credential

    async def tokens_revision(self) -> int:
        """Return a number that rises with every rotation, revocation and deletion: check again whether open streams may stay."""
        return int(await self._call("GET", keys.TOKENS_REVISION) or 0)

    async def write_uses(self, token_names: Sequence[str]) -> None:
        """Notes that these tokens were used just now. Names are those of `Credential.token_name`."""
        await self._run_many("token_used", [([_key_of(name)], ()) for name in token_names])


def _key_of(token_name: str) -> str:
    kinds = {"invites": keys.invite, "tokens": keys.access_token}
    return kinds.get(token_name.partition("/")[0], keys.bot_registration)(token_name)
