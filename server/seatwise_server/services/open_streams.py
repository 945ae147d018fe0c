"""Ends open streams when their token is rotated or revoked or expires, and when the server stops."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, Protocol

import structlog

from seatwise_server.background_tasks import cancel_until_ended
from seatwise_server.refusal import Refusal
from seatwise_server.services.authentication import LOCAL_ADMIN, Caller
from seatwise_server.store import Credentials
from seatwise_server.store.errors import StoreUnavailable, TokenRefused

TOKEN_CHECK_S = 0.3
"""Seconds between two checks for rotated and revoked tokens; a stream must end within a second of either."""

log = structlog.get_logger()


class EndableStream(Protocol):
    """A stream that the server can end."""

    def end(self, why: Refusal | None) -> None:
        """End the stream soon, and tell its caller the reason."""


class OpenStreams:
    """The open streams of this process that were opened with a token, each with its caller."""

    def __init__(self, credentials: Credentials, read_admin_token: Callable[[], str] = str) -> None:
        self._credentials = credentials
        self._read_admin_token = read_admin_token
        self._open: dict[EndableStream, Caller] = {}
        self._unchecked: dict[EndableStream, None] = {}
        """Streams opened since the last check: their token may have been revoked between its check and their opening."""
        self._expiry_s: dict[EndableStream, float] = {}
        """When the tokens of streams expire, on the clock of the event loop."""
        self._local: dict[EndableStream, None] = {}
        """Streams of the admin token of the local file. The store does not know when that changes."""

    @contextmanager
    def track_stream(self, caller: Caller, stream: EndableStream) -> Iterator[None]:
        """End the stream if the caller's token is revoked inside this block."""
        self._open[stream] = caller
        self._unchecked[stream] = None
        if caller.name == LOCAL_ADMIN:
            self._local[stream] = None
        if caller.left_ms:
            self._expiry_s[stream] = asyncio.get_running_loop().time() + caller.left_ms / 1000
        try:
            yield
        finally:
            del self._open[stream]
            self._unchecked.pop(stream, None)
            self._expiry_s.pop(stream, None)
            self._local.pop(stream, None)

    async def end_with_token(
        self, caller: Caller, items: AsyncGenerator[Any, None]
    ) -> AsyncGenerator[Any, None]:
        """Yield these items, and close them. Raises `Refusal` when the token of the caller is taken away."""
        ending = _Ending()
        with self.track_stream(caller, ending):
            async with aclosing(items):
                while (item := await _next_until(ending.why, items)) is not None:
                    yield item

    def end_all(self, why: Refusal) -> None:
        for stream in list(self._open):
            stream.end(why)

    async def watch_tokens(self) -> None:
        """End each stream whose token was rotated or revoked, in this process or another, or have expired. Runs until cancelled."""
        seen = -1
        while True:
            try:
                revision = await self._credentials.tokens_revision()
                await self._check_tokens(
                    list(self._open if revision != seen else self._unchecked | self._expired() | self._local)
                )
                seen = revision
            except StoreUnavailable:
                log.debug("token_watch_paused")
            await asyncio.sleep(TOKEN_CHECK_S)

    def _expired(self) -> dict[EndableStream, None]:
        now_s = asyncio.get_running_loop().time()
        return {stream: None for stream, at_s in self._expiry_s.items() if at_s <= now_s}

    async def _check_tokens(self, streams: list[EndableStream]) -> None:
        """End those of the streams whose tokens are refused. Asks once for each token: many watchers may share one."""
        verdicts: dict[str, str] = {}
        for stream in streams:
            caller = self._open.get(stream)
            if caller is not None:
                if caller.token not in verdicts:
                    verdicts[caller.token] = await self._reason_against(caller)
                if reason := verdicts[caller.token]:
                    stream.end(_refusal_of_stream(reason, caller.bot))
            self._unchecked.pop(stream, None)

    async def _reason_against(self, caller: Caller) -> str:
        """Why the token of the caller is refused now; empty if it is not."""
        if caller.name == LOCAL_ADMIN:
            is_same = hmac.compare_digest(caller.token.encode(), self._read_admin_token().encode())
            return "" if is_same else "REVOKED"
        try:
            await self._credentials.authenticate(caller.token)
        except TokenRefused as refused:
            return refused.reason
        return ""


class _Ending:
    """The end of a stream of items, as `OpenStreams` orders it."""

    def __init__(self) -> None:
        self.why: asyncio.Future[Refusal] = asyncio.get_running_loop().create_future()

    def end(self, why: Refusal | None) -> None:
        if why and not self.why.done():
            self.why.set_result(why)


async def _next_until(why: asyncio.Future[Refusal], items: AsyncGenerator[Any, None]) -> Any:
    """Return the next item; None at the end. Raises the refusal as soon as there is one."""
    news = asyncio.ensure_future(anext(items, None))
    try:
        await asyncio.wait((news, why), return_when=asyncio.FIRST_COMPLETED)
        if why.done():
            raise why.result()
        return news.result()
    finally:
        await cancel_until_ended([news])
        news.cancelled() or news.exception()  # if it failed in the same moment, nobody else asks why


def _refusal_of_stream(reason: str, bot: str) -> Refusal:
    if reason == "EXPIRED":
        return Refusal("TOKEN_EXPIRED", "this token has expired; ask its issuer for a new one", bot=bot)
    return Refusal("TOKEN_REVOKED", "this token was rotated or revoked, or its bot was deleted", bot=bot)
