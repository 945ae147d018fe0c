"""The certificates of bots, and the key that signs them."""

from __future__ import annotations

import json
from dataclasses import dataclass

from seatwise_server.store import keys
from seatwise_server.store.redis.client import RedisClient, call


@dataclass(frozen=True, slots=True)
class StoredCertificate:
    """The signed result of the last examination of one version of a bot."""

    statement: str
    """JSON: suite, version, bot, time, and results by check."""
    signature: bytes
    public_key: bytes

    @property
    def passes(self) -> bool:
        """Whether every check is passed."""
        results = json.loads(self.statement)["results"]
        return bool(results) and set(results.values()) == {"passed"}


class Certificates:
    """The certificates of all bots."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def read_or_keep_key(self, fresh: bytes) -> bytes:
        """Returns the private key of this server. If there is none yet, it is `fresh` from now on."""
        await call(self._client, "SET", keys.CERTIFICATE_KEY, fresh, "NX")
        return bytes(await call(self._client, "GET", keys.CERTIFICATE_KEY))

    async def write_certificate(self, bot: str, certificate: StoredCertificate) -> None:
        """Keeps the certificate in the place of an older one of the same version of the bot."""
        parts = (certificate.statement, certificate.signature.hex(), certificate.public_key.hex())
        await call(self._client, "HSET", keys.BOT_CERTIFICATE_INDEX, bot, json.dumps(parts))

    async def read_certificate(self, bot: str) -> StoredCertificate | None:
        """Returns the certificate of this version; None if it was never examined."""
        held = await call(self._client, "HGET", keys.BOT_CERTIFICATE_INDEX, bot)
        if held is None:
            return None
        statement, signature, public_key = json.loads(held)
        return StoredCertificate(statement, bytes.fromhex(signature), bytes.fromhex(public_key))
