"""One stream between a bot and the scripted server, whichever door it comes by."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import StrEnum
from typing import Any, Protocol


class NothingCame(Exception):  # it is an outcome, which a check may expect
    """The bot has not done what was due, within the patience."""


class UnreadableMessage(NothingCame):
    """The bot has sent bytes that are no message."""


class Door(StrEnum):
    """How the bot connects."""

    GRPC = "grpc"
    WEBSOCKET = "websocket"


class StreamLink(Protocol):
    """Carries the messages of one stream."""

    metadata: dict[str, str]

    def read_requests(self, kind: Any) -> AsyncIterator[Any]:
        """Yield the messages of the bot, which are of this kind."""

    async def write(self, message: Any) -> None:
        """Send a message; to nowhere if the bot has closed the stream."""

    async def refuse(self, number: int, code: str, reason: str, metadata: dict[str, str]) -> None:
        """End the stream with this gRPC code and reason."""
