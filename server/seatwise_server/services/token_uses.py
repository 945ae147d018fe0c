"""Notes when tokens were last used, at most once a minute for each token. No call waits for that."""

from __future__ import annotations

import asyncio
import time

import structlog

from seatwise_server.store import Credentials
from seatwise_server.store.errors import StoreUnavailable

WRITE_EVERY_S = 5.0
USE_RESOLUTION_S = 60.0
"""A use within so many seconds after the last written one is not written."""

log = structlog.get_logger()


class TokenUses:
    """The uses of tokens in this process that are not written yet."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._unwritten: set[str] = set()
        self._written_s: dict[str, float] = {}

    def note_use(self, token_name: str) -> None:
        """Notes that a token was used now; the name is that of `Credential.token_name`."""
        if token_name not in self._written_s:
            self._unwritten.add(token_name)

    async def watch_uses(self) -> None:
        """Writes the uses. Runs until cancelled."""
        while True:
            await asyncio.sleep(WRITE_EVERY_S)
            try:
                await self.write_uses()
            except StoreUnavailable:
                log.debug("token_uses_paused")

    async def write_uses(self) -> None:
        """Writes all uses that are not written yet."""
        now_s = time.monotonic()
        self._written_s = {name: at for name, at in self._written_s.items() if now_s - at < USE_RESOLUTION_S}
        if used := sorted(self._unwritten):
            await self._credentials.write_uses(used)
            self._unwritten.difference_update(used)
            self._written_s |= dict.fromkeys(used, now_s)
