"""Registered bots without a store, whose tokens can be revoked."""

from __future__ import annotations

import asyncio

from seatwise_server.store.bots import SCOPES_OF_REGISTRATION, Credential
from seatwise_server.store.errors import StoreUnavailable, TokenRefused

ANN, BOB = "token-of-ann", "token-of-bob"


class FakeBots:
    """Tokens of the form token-of-<name>, until they are refused."""

    def __init__(self) -> None:
        self.refused: dict[str, str] = {}
        self.revision = 0
        self.asked = 0
        self.is_away = False
        self.left_ms = 0

    async def authenticate(self, token: str) -> Credential:
        self.asked += 1
        await self._reach()
        if token in self.refused or not token.startswith("token-of-"):
            raise TokenRefused(self.refused.get(token, "UNKNOWN"))
        bot = f"bots/{token.removeprefix('token-of-')}/versions/1"
        return Credential(bot, SCOPES_OF_REGISTRATION, bot, self.left_ms)

    async def tokens_revision(self) -> int:
        await self._reach()
        return self.revision

    def refuse(self, token: str, reason: str = "REVOKED") -> None:
        self.refused[token] = reason
        self.revision += 1

    async def _reach(self) -> None:
        await asyncio.sleep(0.001)
        if self.is_away:
            raise StoreUnavailable("gone")
