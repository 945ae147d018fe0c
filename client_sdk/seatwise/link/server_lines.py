"""Logs lines that a server causes, at a bounded rate: a server that sends without end must not fill a disk."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

MOST_SERVER_LINES: Final = 20
"""The most lines at once."""
SECONDS_PER_LINE: Final = 5.0
"""After those, one more line is logged each time that so many seconds have passed."""

log = logging.getLogger("seatwise")


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
