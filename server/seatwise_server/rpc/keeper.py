"""Who is calling, what he may do, and which streams to end when his token is taken away."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import grpc
import structlog

from seatwise_server.refusal import Refusal
from seatwise_server.store.bots import Bots
from seatwise_server.store.errors import StoreUnavailable, TokenRefused

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

WATCH_S = 0.3
"""How often rotations and revocations are looked for; streams must end within a second."""

log = structlog.get_logger()


class Endable(Protocol):
    """A stream that can be told to end."""

    def end(self, why: Refusal | None) -> None:
        """Ends it soon, telling why."""
        ...


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody with a good token."""

    bot: str
    """Format: bots/{bot}/versions/{version}; empty for an admin."""
    token: str
    is_admin: bool = False


class Keeper:
    """Knows callers by the token in the metadata `authorization: Bearer <token>`."""

    def __init__(self, bots: Bots, admin_token: str) -> None:
        self._bots = bots
        self._admin_token = admin_token
        self._open: dict[Endable, Caller] = {}
        self._fresh: dict[Endable, None] = {}
        """Opened since the last look: their token may have gone after it was read and before they were open."""

    async def caller(self, context: Context) -> Caller:
        """Anybody with a good token. `Refusal` TOKEN_MISSING, TOKEN_UNKNOWN or TOKEN_REVOKED."""
        token = _token(context)
        if hmac.compare_digest(token.encode(), self._admin_token.encode()):
            return Caller("", token, is_admin=True)
        try:
            return Caller((await self._bots.authenticate(token)).bot, token)
        except TokenRefused as refused:
            raise Refusal(f"TOKEN_{refused.reason}", f"this token is {refused.reason.lower()}") from None

    async def bot(self, context: Context) -> Caller:
        """A bot. `Refusal` NOT_ALLOWED for an admin: seats belong to bots."""
        caller = await self.caller(context)
        if caller.is_admin:
            raise Refusal(
                "NOT_ALLOWED", "this call is for bots; call it with a bot's token, not the admin token"
            )
        return caller

    async def anybody(self, context: Context) -> None:
        """Reading is open; but a token that is sent must be good, so that a typing error does not go unnoticed."""
        if any(key == "authorization" for key, _ in context.invocation_metadata() or ()):
            await self.caller(context)

    async def admin(self, context: Context) -> Caller:
        """An admin. `Refusal` NOT_ALLOWED for a bot."""
        caller = await self.caller(context)
        if not caller.is_admin:
            raise Refusal("NOT_ALLOWED", "this call needs the admin token", bot=caller.bot)
        return caller

    @contextmanager
    def open(self, caller: Caller, stream: Endable) -> Iterator[None]:
        """As long as this lasts the stream is ended when the token is taken away."""
        self._open[stream] = caller
        self._fresh[stream] = None
        try:
            yield
        finally:
            del self._open[stream]
            self._fresh.pop(stream, None)

    def end_all(self, why: Refusal) -> None:
        """Ends every open stream."""
        for stream in list(self._open):
            stream.end(why)

    async def watch(self) -> None:
        """Ends streams whose token was rotated or revoked, by whichever process. Runs until cancelled."""
        seen = -1
        while True:
            try:
                revision = await self._bots.tokens_revision()
                for stream in list(self._open if revision != seen else self._fresh):
                    await self._check(stream)
                seen = revision
            except StoreUnavailable:
                log.debug("token_watch_paused")
            await asyncio.sleep(WATCH_S)

    async def _check(self, stream: Endable) -> None:
        caller = self._open.get(stream)
        if caller is not None:
            try:
                await self._bots.authenticate(caller.token)
            except TokenRefused:
                stream.end(Refusal("TOKEN_REVOKED", "this token was rotated or revoked", bot=caller.bot))
        self._fresh.pop(stream, None)


def _token(context: Context) -> str:
    for key, value in context.invocation_metadata() or ():
        if key == "authorization":
            scheme, _, token = str(value).strip().partition(" ")
            if scheme.lower() == "bearer" and token:
                return token.strip()
    raise Refusal("TOKEN_MISSING", "send the token as metadata: authorization: Bearer <token>")
