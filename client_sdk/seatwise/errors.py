"""The errors of this package. An error from the server has its `reason`, for a program to read.

    SeatwiseError
    +-- UsageError, BadAnswerError    before a bot sits down, and in its answers
    +-- MissingTokenError           no token given
    +-- WrongGameError              an offer of another game than the bot plays
    +-- BotFailedError              not even the first bot object could be made
    +-- EncryptionError             the token would travel in clear, or the server is not trusted
    +-- RefusedError                the server refused; a repeat changes nothing
    |   +-- BadTokenError             TOKEN_MISSING, TOKEN_UNKNOWN, TOKEN_REVOKED, TOKEN_EXPIRED
    |   +-- NotAllowedError           NOT_ALLOWED, SCOPE_MISSING
    |   +-- BadRequestError           INVALID_ARGUMENT, MALFORMED
    |   +-- NotFoundError             NOT_FOUND
    |   +-- AlreadyExistsError        ALREADY_EXISTS
    |   +-- WrongStateError           MATCH_NOT_OVER, MATCH_VOIDED
    |   +-- NotSupportedError         no such method: the server is older, or has another role
    |   +-- ReplacedError             REPLACED: a newer stream of the same bot
    +-- TemporaryError              not now; a later attempt may succeed
        +-- UnavailableError          SERVER_STOPPING, STORE_UNAVAILABLE, and errors of the network
        +-- ServerFullError           SERVER_FULL, RATE_EXCEEDED, QUOTA_EXCEEDED; `retry_after` says when to try again
        +-- SlowReaderError           SLOW_READER: messages were not read for too long
        +-- ServerFailedError         INTERNAL, and every other error

A reason that this version does not know is mapped by its gRPC code. So a newer server needs no newer bot.

    >>> try:
    ...     raise ServerFullError("no free tables", "SERVER_FULL", {"retry_after": "5"})
    ... except TemporaryError as error:
    ...     print(error, error.reason, error.retry_after)
    no free tables [SERVER_FULL] SERVER_FULL 5.0
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    import grpc

    from seatwise.v1 import error_pb2


LONGEST_SERVER_TEXT: Final = 1000
"""The most characters that are shown of a text of a server."""


def clean_text(text: str, longest: int = LONGEST_SERVER_TEXT) -> str:
    """Return a text of a server on one line, without control characters, which a terminal would obey.

    No more than `longest` characters of it are kept.
    """
    shown = text if len(text) <= longest else f"{text[: longest - 3]}..."
    if shown.isprintable():
        return shown
    return "".join(letter if letter.isprintable() else "?" for letter in shown)


DETAILS_KEY: Final = "grpc-status-details-bin"
LONGEST_RETRY_S: Final = 300.0
LONGEST_MESSAGE: Final = 4000
"""The most characters of a server's message, and of each fact in it, that are kept."""
LONGEST_REASON_NAME: Final = 100
"""The most characters of a reason, and of the name of a fact, that are kept."""


class SeatwiseError(Exception):
    """The base of all errors that this package raises on purpose.

    Args:
        message: The text for a person to read.
        reason: The reason in UPPER_SNAKE_CASE; empty if there is none.
        metadata: The facts of the message, by name.
    """

    def __init__(self, message: str, reason: str = "", metadata: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        """The text for a person to read."""
        self.reason = reason
        """The reason in UPPER_SNAKE_CASE, for a program to read; empty if there is none. docs/protocol.md lists them."""
        self.metadata: Mapping[str, str] = dict(metadata or {})
        """The facts of the message, by name."""

    def __str__(self) -> str:
        return f"{self.message} [{self.reason}]" if self.reason else self.message


class MissingTokenError(SeatwiseError):
    """No token was given, and none is in the environment."""


class WrongGameError(SeatwiseError):
    """The server offers a seat in another game than the bot plays."""


class BotFailedError(SeatwiseError):
    """The bot's own `__init__` or `setup` failed before its first match. `__cause__` is its exception."""


class EncryptionError(SeatwiseError):
    """The token would travel in clear, TLS is spoken on one side only, or the server's certificate is not trusted."""


class RefusedError(SeatwiseError):
    """The server refused the request. A repeat changes nothing."""


class BadTokenError(RefusedError):
    """The token is missing, unknown or revoked."""


class NotAllowedError(RefusedError):
    """The token is valid, but does not allow this call."""


class BadRequestError(RefusedError):
    """The request itself is wrong. The message says what would be right."""


class NotFoundError(RefusedError):
    """The request names something that does not exist, e.g. a match or a bot."""


class AlreadyExistsError(RefusedError):
    """The request creates something that already exists, e.g. a bot version."""


class WrongStateError(RefusedError):
    """The state of the match does not allow the request, e.g. for the record of a match that is not over."""


class NotSupportedError(RefusedError):
    """This server does not have the method: it is older, or has another role."""


class ReplacedError(RefusedError):
    """A newer stream of the same bot has replaced this one: another process uses the same token."""


class TemporaryError(SeatwiseError):
    """The server cannot do this now. A later attempt may succeed."""


class UnavailableError(TemporaryError):
    """The server cannot be reached, is stopping, or did not answer in time."""


class ServerFullError(TemporaryError):
    """The server has no room now, e.g. for another stream."""

    @property
    def retry_after(self) -> float:
        """Seconds to wait before the next attempt, at most 300; 0 if the server named no time."""
        return _seconds(self.metadata.get("retry_after", ""))


class SlowReaderError(TemporaryError):
    """The server ended the stream because the bot did not read its messages for too long."""


class ServerFailedError(TemporaryError):
    """The server failed; the fault is its own."""


_BY_REASON: Final[dict[str, type[SeatwiseError]]] = {
    "REPLACED": ReplacedError,
    "SLOW_READER": SlowReaderError,
}
"""Reasons that say more than their gRPC code."""

_BY_CODE: Final[dict[str, type[SeatwiseError]]] = {
    "ABORTED": UnavailableError,
    "ALREADY_EXISTS": AlreadyExistsError,
    "CANCELLED": UnavailableError,
    "DEADLINE_EXCEEDED": UnavailableError,
    "FAILED_PRECONDITION": WrongStateError,
    "INVALID_ARGUMENT": BadRequestError,
    "NOT_FOUND": NotFoundError,
    "OUT_OF_RANGE": BadRequestError,
    "PERMISSION_DENIED": NotAllowedError,
    "RESOURCE_EXHAUSTED": ServerFullError,
    "UNAUTHENTICATED": BadTokenError,
    "UNAVAILABLE": UnavailableError,
    "UNIMPLEMENTED": NotSupportedError,
}


class Failed(Protocol):
    """An exception of gRPC: `grpc.aio.AioRpcError` or `grpc.RpcError`."""

    def code(self) -> grpc.StatusCode: ...
    def details(self) -> str | None: ...
    def trailing_metadata(self) -> Any: ...


def error_class(reason: str, code: str) -> type[SeatwiseError]:
    """Return the class of the errors with this reason, or with this gRPC code if the reason is empty or not known."""
    return _BY_REASON.get(reason) or _BY_CODE.get(code, ServerFailedError)


def from_rpc(error: Failed) -> SeatwiseError:
    """Return the typed error of a failed RPC, by its reason or else its gRPC code. Its `__cause__` is the exception of gRPC."""
    info = _info_of(error)
    message = error.details() or error.code().name
    if not info.reason:
        plain = (told for text, told in _TEXTS_OF_GRPC if re.search(text, message, re.IGNORECASE))
        message = next(plain, message)
    typed = _make_error(error.code().name, message, info.reason, info.metadata)
    typed.__cause__ = error if isinstance(error, BaseException) else None
    return typed


_TEXTS_OF_GRPC = (
    ("handshake|certificate|ssl", "cannot connect: the TLS handshake failed"),
    ("dns|name resolution|resolving|lookup", "its host name is not known"),
    ("failed to connect|refused|unreachable|empty address list", "cannot connect"),
    ("larger than max", "a message is too large"),
    ("method not found", "the server does not know this call; it may be older"),
    ("http2 header|content-type|http status", "no server of Seatwise answers there"),
    ("deadline", "no answer in time"),
    (
        "reset|closed|goaway|rst_stream|broken pipe|stream removed|ping timeout|recvmsg",
        "the connection was lost",
    ),
)
"""Patterns of gRPC's own texts, each with a plain sentence for it."""


def from_json(body: bytes) -> SeatwiseError:
    """Return the typed error that a body in the form of AIP-193 tells of, as REST and WebSocket send it. It may hold anything."""
    try:
        error = json.loads(body)["error"]
        [info] = error["details"]
        return _make_error(error["status"], error["message"], info["reason"], info["metadata"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return UnavailableError("the server has sent an error that cannot be read")


def _make_error(code: str, message: str, reason: str, metadata: Mapping[str, str]) -> SeatwiseError:
    """Return the error with the texts of a server, which may hold anything. Raises `TypeError` or `AttributeError` if one is no text."""
    facts = {
        clean_text(name, LONGEST_REASON_NAME): clean_text(fact, LONGEST_MESSAGE)
        for name, fact in metadata.items()
    }
    make = error_class(reason, code)
    return make(clean_text(message, LONGEST_MESSAGE), clean_text(reason, LONGEST_REASON_NAME), facts)


def _info_of(error: Failed) -> error_pb2.ErrorInfo:
    """Return the error's details; empty if it has none that can be read, e.g. when a proxy made it."""
    from google.protobuf.message import DecodeError

    from seatwise.v1 import error_pb2

    info = error_pb2.ErrorInfo()
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY:
            try:
                for detail in error_pb2.Status.FromString(value).details[:1]:
                    info.ParseFromString(detail.value)
            except DecodeError:
                info.Clear()
    return info


def _seconds(text: str) -> float:
    """Return the seconds of "1.5" or "1.5s", within limits; 0 for any other text."""
    try:
        return min(max(0.0, float(text.removesuffix("s"))), LONGEST_RETRY_S)
    except ValueError:
        return 0.0


class UsageError(SeatwiseError, ValueError):
    """The caller asked for something that cannot be done. The message says what, where, and what to do instead."""


class BadAnswerError(SeatwiseError):
    """A bot's answer is no legal move. The message has the answer, and says what would be right."""


class ResignMatch(SeatwiseError):
    """Raise it in a method that answers a question, to resign the match: the referee plays the default moves to the end.

    Args:
        message: A text for a person to read. The server does not get it.
    """

    def __init__(self, message: str = "the bot resigns") -> None:
        super().__init__(message)


def first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first exception of a group, however deep it lies in groups within groups."""
    first = group.exceptions[0]
    return first_error(first) if isinstance(first, BaseExceptionGroup) else first
