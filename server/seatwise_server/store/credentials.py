"""Credentials: what a token proves, whichever kind of token it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seatwise_server.store import keys
from seatwise_server.store.access_tokens import AccessTokens
from seatwise_server.store.bots import Bots
from seatwise_server.store.errors import TokenRefused
from seatwise_server.store.invites import Invites
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient
from seatwise_server.store.tokens import ACCESS_KIND, INVITE_KIND, parse_token

SCOPES_OF_REGISTRATION = frozenset({"attend", "play"})
"""The scopes of the token that a bot gets when it is registered, and of the tokens of older versions."""


SCOPES_OF_INVITES = frozenset({"join"})


@dataclass(frozen=True, slots=True)
class Credential:
    """The proof of a valid token."""

    holder: str
    """The name of a person, bots/{bot}/versions/{version}, owners/{owner} or invites/{invite}."""
    scopes: frozenset[str]
    token_name: str
    """tokens/{token}, invites/{invite}, or the bot's name for the token of its registration."""
    left_ms: int = 0
    """Milliseconds for which the token is still valid; 0 means for ever."""

    @property
    def bot(self) -> str:
        """The bot that holds the token; empty for a person."""
        return self.holder if self.holder.startswith("bots/") else ""


class Credentials:
    """All tokens on one Redis."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._bots = Bots(client)
        self._access_tokens = AccessTokens(client)
        self._invites = Invites(client)

    async def authenticate(self, token: str) -> Credential:
        """Returns what the token proves. Raises TokenRefused."""
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
            await self._check_bot(credential.bot)
        return credential

    async def _check_bot(self, bot: str) -> None:
        """Refuses an access token of a bot that was deleted, or whose own token was revoked: both shut the bot out."""
        registered = await self._bots.get_bot(bot)
        if registered is None or registered.is_revoked:
            raise TokenRefused("REVOKED")

    async def tokens_revision(self) -> int:
        """Returns a number that rises with every rotation, revocation and deletion."""
        return await self._bots.tokens_revision()

    async def write_uses(self, token_names: Sequence[str]) -> None:
        """Notes that these tokens were used just now. Names are those of `Credential.token_name`."""
        calls = [([_key_of(name)], ()) for name in token_names]
        await scripts.run_script_many(self._client, "token_used", calls)


def _key_of(token_name: str) -> str:
    if token_name.startswith("invites/"):
        return keys.invite(token_name)
    is_access = token_name.startswith("tokens/")
    return keys.access_token(token_name) if is_access else keys.bot_registration(token_name)
