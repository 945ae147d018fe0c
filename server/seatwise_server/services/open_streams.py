"""Ends open streams when their token is rotated or revoked or expires, and when the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import structlog

from seatwise_server.refusal import Refusal
from seatwise_server.services.authentication import Caller
from seatwise_server.store import Credentials
from seatwise_server.store.errors import StoreUnavailable, TokenRefused

TOKEN_CHECK_S = 0.3
"""Seconds between two checks for rotated and revoked tokens; a stream must end within a second of either."""

log = structlog.get_logger()


class EndableStream(Protocol):
    """A stream that the server can end."""

    def end(self, why: Refusal | None) -> None:
        """Ends the stream soon, and tells its caller the reason."""
        ...


class OpenStreams:
    """The open streams of bots in this process, each with the caller that opened it."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._open: dict[EndableStream, Caller] = {}
        self._unchecked: dict[EndableStream, None] = {}
        """Streams opened since the last check: their token may have been revoked between its check and their opening."""
        self._expiry_s: dict[EndableStream, float] = {}
        """When the tokens of streams expire, on the clock of the event loop."""

    @contextmanager
    def track_stream(self, caller: Caller, stream: EndableStream) -> Iterator[None]:
        """Ends the stream if the caller's token is revoked inside this block."""
        self._open[stream] = caller
        self._unchecked[stream] = None
        if caller.left_ms:
            self._expiry_s[stream] = asyncio.get_running_loop().time() + caller.left_ms / 1000
        try:
            yield
        finally:
            del self._open[stream]
            self._unchecked.pop(stream, None)
            self._expiry_s.pop(stream, None)

    def end_all(self, why: Refusal) -> None:
        """Ends every open stream."""
        for stream in list(self._open):
            stream.end(why)

    async def watch_tokens(self) -> None:
        """Ends each stream whose token was rotated or revoked, in this process or another, or has expired. Runs until cancelled."""
        seen = -1
        while True:
            try:
                revision = await self._credentials.tokens_revision()
                for stream in list(self._open if revision != seen else self._unchecked | self._expired()):
                    await self._check_token(stream)
                seen = revision
            except StoreUnavailable:
                log.debug("token_watch_paused")
            await asyncio.sleep(TOKEN_CHECK_S)

    def _expired(self) -> dict[EndableStream, None]:
        now_s = asyncio.get_running_loop().time()
        return {stream: None for stream, at_s in self._expiry_s.items() if at_s <= now_s}

    async def _check_token(self, stream: EndableStream) -> None:
        caller = self._open.get(stream)
        if caller is not None:
            try:
                await self._credentials.authenticate(caller.token)
            except TokenRefused as refused:
                stream.end(_refusal_of_stream(refused.reason, caller.bot))
        self._unchecked.pop(stream, None)


def _refusal_of_stream(reason: str, bot: str) -> Refusal:
    if reason == "EXPIRED":
        return Refusal("TOKEN_EXPIRED", "this token has expired; ask its issuer for a new one", bot=bot)
    return Refusal("TOKEN_REVOKED", "this token was rotated or revoked, or its bot was deleted", bot=bot)
