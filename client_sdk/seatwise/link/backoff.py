"""Bounds what a server causes: how long to wait before another attempt, and how many lines of the log."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Final

from seatwise.errors import EncryptionError, SeatwiseError, ServerFullError

FIRST_BACKOFF_S = 0.1
LONGEST_BACKOFF_S = 5.0
"""A bot's clock runs while it waits, so it does not wait long."""

log = logging.getLogger("seatwise")


class Backoff:
    """The waits of one link. Each bound is twice the bound before, up to the longest."""

    def __init__(
        self,
        first_s: float = FIRST_BACKOFF_S,
        longest_s: float = LONGEST_BACKOFF_S,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._chance = chance
        self.failures = 0
        """Number of failures since the last `reset`."""

    def reset(self) -> None:
        """Begin again with the first wait."""
        self.failures = 0

    def next_s(self, error: SeatwiseError | None = None) -> float:
        """Return the next wait in seconds. It is never shorter than a full server asks for."""
        bound_s: float = min(self._longest_s, self._first_s * 2 ** min(self.failures, 30))
        self.failures += 1
        asked_s = error.retry_after if isinstance(error, ServerFullError) else 0.0
        return asked_s + bound_s * self._chance()


class Retry:
    """The attempts to keep one link up: it waits between them and logs them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._backoff = Backoff()
        self._up_since: float | None = None
        self._down_since: float | None = None
        self._is_encryption_told = False
        """Whether a failure of the encryption was logged since the link went down."""

    def note_success(self) -> None:
        """Note that something was received, so the link works."""
        if self._up_since is not None:
            return
        self._up_since = asyncio.get_running_loop().time()
        if self._down_since is not None:
            log.info("%s: back after %.1f s", self._name, self._up_since - self._down_since)

    async def wait_after(self, error: SeatwiseError) -> None:
        """Note that the link is down, and return when it is time for the next attempt."""
        now = asyncio.get_running_loop().time()
        if self._up_since is not None or self._down_since is None:
            self._note_failure(now, error)
            self._is_encryption_told = isinstance(error, EncryptionError)
        elif isinstance(error, EncryptionError) and not self._is_encryption_told:
            self._is_encryption_told = True  # it does not mend itself, so an outage does not hide it
            log.warning("%s: %s", self._name, error)
        delay_s = self._backoff.next_s(error)
        log.debug("%s: %s; next try in %.2f s", self._name, error, delay_s)
        await asyncio.sleep(delay_s)

    def _note_failure(self, now: float, error: SeatwiseError) -> None:
        # A link that breaks soon after it is up has not proved to work, so its waits go on growing.
        if self._up_since is not None and now - self._up_since >= LONGEST_BACKOFF_S:
            self._backoff.reset()
        self._up_since, self._down_since = None, now
        log.warning("%s: %s. Trying again until it answers", self._name, error)


# Lines that a server causes, at a bounded rate: a server that sends without end must not fill a disk

MOST_SERVER_LINES: Final = 20
"""The most lines at once."""
SECONDS_PER_LINE: Final = 5.0
"""After those, one more line is logged each time that so many seconds have passed."""


class ServerLines:
    """The lines about one match, or about one lobby."""

    def __init__(self, about: str) -> None:
        """Create it. `about` is the match or the lobby, for the line which says that others are left out."""
        self._about = about
        self._left = float(MOST_SERVER_LINES)
        self._counted_s = asyncio.get_running_loop().time()
        self._is_told = False
        """Whether it was logged that lines are left out."""

    def log(self, level: int, text: str, *args: object) -> None:
        """Log a line, or leave it out because there were too many. Texts of the server must be clean (`clean_text`)."""
        if not log.isEnabledFor(level):
            return
        now_s = asyncio.get_running_loop().time()
        self._left = min(MOST_SERVER_LINES, self._left + (now_s - self._counted_s) / SECONDS_PER_LINE)
        self._counted_s = now_s
        if self._left >= 1:
            self._left -= 1
            log.log(level, text, *args)
        elif not self._is_told:
            self._is_told = True
            told = (
                "%s: its server causes more lines than these. From now on at most one is shown every %.0f s"
            )
            log.error(told, self._about, SECONDS_PER_LINE)
