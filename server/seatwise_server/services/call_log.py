"""The one log line of each call, and the refusal that a caller gets when a call fails."""

from __future__ import annotations

import re
import time
from collections import Counter

import structlog

from seatwise_server.counts import COUNTS, Latencies
from seatwise_server.refusal import Refusal
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.tracing import TRACING

log = structlog.get_logger()

QUIET_PREFIXES = ("/grpc.health.", "/grpc.reflection.")
"""Methods that programs call often: they get no log line, and no metric."""

_KNOWN_VERBS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
"""Others are counted as one, so that a stranger cannot make labels."""


class CallLog:
    """The log line of one call, written when the call ends."""

    def __init__(self, method: str, door: str = "") -> None:
        self.method = method
        self._door = {"door": door} if door else {}
        """A field of the line, for any door but gRPC."""
        self.route = ""
        """The path of a request over HTTP, as the table of URLs has it; empty if there is none."""
        self.code = "OK"
        self.reason = ""
        self._start_s = time.monotonic()

    def refusal_for(self, error: Exception) -> Refusal:
        """Return the refusal that the caller gets for this error. Only an error of the server is logged with its traceback."""
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
        """Write the line, unless the method is one of `QUIET_PREFIXES`. `more` are fields that only this door has."""
        took_s = time.monotonic() - self._start_s
        if not self.method.startswith(QUIET_PREFIXES):
            if "status" in more:
                verb = str(more["verb"]) if more["verb"] in _KNOWN_VERBS else "_OTHER"
                TRACING.name_span(
                    f"{verb} {self.route}", **{"http.response.status_code": str(more["status"])}
                )
                COUNTS.http_calls.setdefault((verb, self.route, str(more["status"])), Latencies()).add(took_s)
            else:
                TRACING.name_span(self.method.lstrip("/"), **{"rpc.response.status_code": self.code})
                COUNTS.rpc_calls.setdefault((self.method.lstrip("/"), self.code), Latencies()).add(took_s)
            log.info(
                "rpc_ended",
                method=self.method,
                code=self.code,
                reason=self.reason,
                took_ms=int(took_s * 1000),
                **self._door,
                **more,
            )


# Logs refused tokens: a line for each, but only so many in a second for one address, so that nobody can fill the log.

MOST_REFUSAL_LINES_OF_ADDRESS = 5
MOST_REFUSAL_LINES = 50
"""Lines in a second, for one address and for all together."""

_PEER_PORT = re.compile(r":[0-9]+$")


class RefusedTokenLog:
    """The log lines of the tokens that this process refuses. Those left out are counted in a line of the next second."""

    def __init__(self) -> None:
        self._second = 0
        self._refused: Counter[str] = Counter()
        """Refusals in this second, by address."""
        self._written = 0
        self._left_out = 0

    def write_refusal(self, reason: str, peer: str) -> None:
        """Write the line, unless there were too many."""
        self._begin_second(int(time.monotonic()))
        address = _PEER_PORT.sub("", peer)
        self._refused[address] += 1
        if self._refused[address] > MOST_REFUSAL_LINES_OF_ADDRESS or self._written >= MOST_REFUSAL_LINES:
            self._left_out += 1
        else:
            self._written += 1
            log.info("token_refused", reason=reason, peer=peer)

    def _begin_second(self, second: int) -> None:
        if second == self._second:
            return
        if self._left_out:
            log.info("token_refusals_not_logged", count=self._left_out, addresses=len(self._refused))
        self._second, self._written, self._left_out = second, 0, 0
        self._refused.clear()
