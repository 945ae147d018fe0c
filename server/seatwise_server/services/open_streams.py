"""Ends open streams when their token is rotated or revoked, and when the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import structlog

from seatwise_server.refusal import Refusal
from seatwise_server.services.authentication import Caller
from seatwise_server.store import Bots
from seatwise_server.store.errors import StoreUnavailable, TokenRefused

TOKEN_CHECK_S = 0.3
"""How often rotations and revocations are looked for; a stream must end within a second of them."""

log = structlog.get_logger()


class EndableStream(Protocol):
    """A stream that can be told to end."""

    def end(self, why: Refusal | None) -> None:
        """Ends it soon, and tells its caller why."""
        ...


class OpenStreams:
    """The streams of bots that are open in this process, each with the caller that opened it."""

    def __init__(self, bots: Bots) -> None:
        self._bots = bots
        self._open: dict[EndableStream, Caller] = {}
        self._unchecked: dict[EndableStream, None] = {}
        """Opened since the last check: their token may have been revoked between its check and their opening."""

    @contextmanager
    def track_stream(self, caller: Caller, stream: EndableStream) -> Iterator[None]:
        """Inside this block the stream is ended when the caller's token is revoked."""
        self._open[stream] = caller
        self._unchecked[stream] = None
        try:
            yield
        finally:
            del self._open[stream]
            self._unchecked.pop(stream, None)

    def end_all(self, why: Refusal) -> None:
        """Ends every open stream."""
        for stream in list(self._open):
            stream.end(why)

    async def watch_tokens(self) -> None:
        """Ends each stream whose token was rotated or revoked, by whichever process. Runs until it is cancelled."""
        seen = -1
        while True:
            try:
                revision = await self._bots.tokens_revision()
                for stream in list(self._open if revision != seen else self._unchecked):
                    await self._check_token(stream)
                seen = revision
            except StoreUnavailable:
                log.debug("token_watch_paused")
            await asyncio.sleep(TOKEN_CHECK_S)

    async def _check_token(self, stream: EndableStream) -> None:
        caller = self._open.get(stream)
        if caller is not None:
            try:
                await self._bots.authenticate(caller.token)
            except TokenRefused:
                stream.end(
                    Refusal(
                        "TOKEN_REVOKED",
                        "this token was rotated or revoked, or its bot was deleted",
                        bot=caller.bot,
                    )
                )
        self._unchecked.pop(stream, None)
