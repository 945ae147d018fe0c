"""Logs refused tokens: a line for each, but only so many in a second for one address, so that nobody can fill the log."""

from __future__ import annotations

import re
import time
from collections import Counter

import structlog

MOST_REFUSAL_LINES_OF_ADDRESS = 5
MOST_REFUSAL_LINES = 50
"""Lines in a second, for one address and for all together."""

_PEER_PORT = re.compile(r":[0-9]+$")

log = structlog.get_logger()


class RefusedTokenLog:
    """The log lines of the tokens that this process refuses. Those left out are counted in a line of the next second."""

    def __init__(self) -> None:
        self._second = 0
        self._refused: Counter[str] = Counter()
        """Refusals in this second, by address."""
        self._written = 0
        self._left_out = 0

    def write_refusal(self, reason: str, peer: str) -> None:
        """Writes the line, unless there were too many."""
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
