"""The one log line of each call, and the refusal that a caller gets when a call fails."""

from __future__ import annotations

import time

import structlog

from seatwise_server.refusal import Refusal
from seatwise_server.store.errors import StoreUnavailable

log = structlog.get_logger()

QUIET_PREFIXES = ("/grpc.health.", "/grpc.reflection.")
"""Methods that programs call often: they get no log line."""


class CallLog:
    """The log line of one call, written when the call ends."""

    def __init__(self, method: str, door: str = "") -> None:
        self.method = method
        self._door = {"door": door} if door else {}
        """A field of the line, for any door but gRPC."""
        self.code = "OK"
        self.reason = ""
        self._start_s = time.monotonic()

    def refusal_for(self, error: Exception) -> Refusal:
        """Returns the refusal that the caller gets for this error.

        Only an error of the server is logged with its traceback.
        """
        match error:
            case Refusal():
                refusal = error
            case StoreUnavailable():
                refusal = Refusal("STORE_UNAVAILABLE", "the store does not answer just now; try again")
            case _:
                log.exception("rpc_failed", method=self.method)
                refusal = Refusal("INTERNAL", "this is an error of the server, which has logged it")
        self.code, self.reason = refusal.code, refusal.reason
        return refusal

    def write_line(self, **more: object) -> None:
        """Writes the line, unless the method is one of `QUIET_PREFIXES`. `more` are fields that only this door has."""
        took_ms = int((time.monotonic() - self._start_s) * 1000)
        if not self.method.startswith(QUIET_PREFIXES):
            log.info(
                "rpc_ended",
                method=self.method,
                code=self.code,
                reason=self.reason,
                took_ms=took_ms,
                **self._door,
                **more,
            )
