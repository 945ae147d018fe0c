"""What can go wrong, as types. What the server says carries its `reason`, for a program to read.

    SeatwiseError
    +-- UsageError, BadAnswerError    see bot_errors
    +-- MissingTokenError           no token given
    +-- WrongGameError              an offer of another game than the bot plays
    +-- BotFailedError              not even the first bot object could be made
    +-- RefusedError                the server said no; asking again changes nothing
    |   +-- BadTokenError             TOKEN_MISSING, TOKEN_UNKNOWN, TOKEN_REVOKED
    |   +-- NotAllowedError           NOT_ALLOWED
    |   +-- BadRequestError           INVALID_ARGUMENT, MALFORMED
    |   +-- NotFoundError             NOT_FOUND
    |   +-- AlreadyExistsError        ALREADY_EXISTS
    |   +-- WrongStateError           MATCH_NOT_OVER, MATCH_VOIDED
    |   +-- NotSupportedError         no such method: the server is older, or has another role
    |   +-- ReplacedError             REPLACED: a newer stream of the same bot
    +-- TemporaryError              not now; asking again may help
        +-- UnavailableError          SERVER_STOPPING, STORE_UNAVAILABLE, and what the network says
        +-- ServerFullError           out of tables or the like; `retry_after` says when to come back
        +-- SlowReaderError           SLOW_READER: messages were not taken for too long
        +-- ServerFailedError         INTERNAL, and whatever has no name here

A reason that is not known here goes by its gRPC code, so a newer server needs no newer bot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:  # whoever plays offline waits for neither grpc nor protobuf
    import grpc

    from seatwise.v1 import error_pb2

DETAILS_KEY: Final = "grpc-status-details-bin"
LONGEST_RETRY_S: Final = 300.0


class SeatwiseError(Exception):
    """The root of all errors that this package raises on purpose."""

    def __init__(self, message: str, reason: str = "", metadata: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        """For a person to read."""
        self.reason = reason
        """UPPER_SNAKE_CASE, for a program to read; empty if there is none."""
        self.metadata: Mapping[str, str] = dict(metadata or {})
        """What the message says, in parts."""

    def __str__(self) -> str:
        return f"{self.message} [{self.reason}]" if self.reason else self.message


class MissingTokenError(SeatwiseError):
    """No token was given, and none is in the environment."""


class WrongGameError(SeatwiseError):
    """The server offers a seat in another game than the bot plays."""


class BotFailedError(SeatwiseError):
    """The bot's own `__init__` or `setup` failed before it had ever played; `__cause__` is its exception."""


class RefusedError(SeatwiseError):
    """The server said no; asking again changes nothing."""


class BadTokenError(RefusedError):
    """The token is missing, unknown or revoked."""


class NotAllowedError(RefusedError):
    """The token is good, but not for this."""


class BadRequestError(RefusedError):
    """The request itself is wrong; the message says what would be right."""


class NotFoundError(RefusedError):
    """There is no such thing."""


class AlreadyExistsError(RefusedError):
    """There is such a thing already."""


class WrongStateError(RefusedError):
    """Not in the state in which the thing is, e.g. the record of a match that runs."""


class NotSupportedError(RefusedError):
    """This server does not offer it: it is older, or has another role."""


class ReplacedError(RefusedError):
    """A newer stream of the same bot has taken over: another process uses this token."""


class TemporaryError(SeatwiseError):
    """Not now; asking again may help."""


class UnavailableError(TemporaryError):
    """The server cannot be reached, is stopping, or did not answer in time."""


class ServerFullError(TemporaryError):
    """The server takes no more for now."""

    @property
    def retry_after(self) -> float:
        """Seconds to wait before asking again; 0 if the server did not say."""
        return _seconds(self.metadata.get("retry_after", ""))


class SlowReaderError(TemporaryError):
    """The stream was ended because its messages were not taken for too long."""


class ServerFailedError(TemporaryError):
    """The server failed, and it is its own fault."""


_BY_REASON: Final[dict[str, type[SeatwiseError]]] = {
    "REPLACED": ReplacedError,
    "SLOW_READER": SlowReaderError,
}
"""Where the reason says more than the code."""

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
    """What gRPC raises, be it `grpc.aio.AioRpcError` or its synchronous cousin."""

    def code(self) -> grpc.StatusCode: ...
    def details(self) -> str | None: ...
    def trailing_metadata(self) -> Any: ...


def from_rpc(error: Failed) -> SeatwiseError:
    """The typed error of a failed RPC; the caller raises it `from` the original."""
    info = _info_of(error)
    kind = _BY_REASON.get(info.reason) or _BY_CODE.get(error.code().name, ServerFailedError)
    return kind(error.details() or error.code().name, info.reason, info.metadata)


def _info_of(error: Failed) -> error_pb2.ErrorInfo:
    """The error's details; empty if it has none that can be read, e.g. when a proxy made it."""
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
    """Of "1.5" or "1.5s", within reason; what cannot be read is 0."""
    try:
        return min(max(0.0, float(text.removesuffix("s"))), LONGEST_RETRY_S)
    except ValueError:
        return 0.0
