"""A connection of redis-py without its streams: it takes batches of commands, and returns their replies."""

from __future__ import annotations

import asyncio
from typing import Any

import hiredis
from redis.asyncio.connection import DefaultParser
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import InvalidResponse

_NOTICES: Any = getattr(hiredis, "PushNotification", ())


class BatchConnection(asyncio.Protocol):
    """Sends batches, and reads their replies in the turn of the loop in which they come. It takes over a connection of redis-py."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._reader = hiredis.Reader(InvalidResponse, DefaultParser.parse_error)
        self._loop = asyncio.get_running_loop()
        self._replies: list[Any] = []
        self._wanted = 0
        self._done: asyncio.Future[list[Any]] | None = None
        self._lost: Exception | None = None
        transport.set_protocol(self)

    async def send_batch(self, raw: bytes, wanted: int, timeout_s: float) -> list[Any]:
        """Send a batch, and return so many replies, errors among them. Raises TimeoutError, and an error of the connection."""
        if self._lost:
            raise self._lost
        self._replies, self._wanted, self._done = [], wanted, self._loop.create_future()
        timer = self._loop.call_later(timeout_s, self.connection_lost, TimeoutError())
        try:
            self._transport.write(raw)
            return await self._done
        finally:
            timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Take replies. Notices of Redis belong to no command."""
        try:
            self._reader.feed(data)
            while (reply := self._reader.gets()) is not False:
                if isinstance(reply, RedisConnectionError):
                    raise reply
                if not isinstance(reply, _NOTICES):
                    self._replies.append(reply)
        except Exception as error:
            self.connection_lost(error)
        if self._done and not self._done.done() and len(self._replies) >= self._wanted:
            self._done.set_result(self._replies)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the batch that waits, and all later ones."""
        self._lost = self._lost or exc or RedisConnectionError("Redis has closed the connection")
        if self._done and not self._done.done():
            self._done.set_exception(self._lost)
