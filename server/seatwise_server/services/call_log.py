"""The one log line of each call, and what a caller is told when a call fails."""

from __future__ import annotations

import time

import structlog

from seatwise_server.refusal import Refusal
from seatwise_server.store.errors import StoreUnavailable

log = structlog.get_logger()

QUIET_PREFIXES = ("/grpc.health.", "/grpc.reflection.")
"""Methods that machines call often: they get no log line."""


class CallLog:
    """The log line of one call, written when the call ends."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.code = "OK"
        self.reason = ""
        self._start_s = time.monotonic()

    def refusal_for(self, error: Exception) -> Refusal:
        """Returns what the caller is told of this error. Only an error of ours is logged with its traceback."""
        match error:
            case Refusal():
                refusal = error
            case StoreUnavailable():
                refusal = Refusal("STORE_UNAVAILABLE", "the store does not answer just now; try again")
            case _:
                log.exception("rpc_failed", method=self.method)
                refusal = Refusal("INTERNAL", "the fault is ours; it has been logged")
        self.code, self.reason = refusal.code, refusal.reason
        return refusal

    def write_line(self) -> None:
        """Writes the line."""
        took_ms = int((time.monotonic() - self._start_s) * 1000)
        if not self.method.startswith(QUIET_PREFIXES):
            log.info("rpc_ended", method=self.method, code=self.code, reason=self.reason, took_ms=took_ms)
