"""Signs the results of examinations with the Ed25519 key that all processes of one server share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version

from seatwise.doctor.certified_checks import CERTIFICATE_SUITE
from seatwise_referee.journal import canonical_json
from seatwise_server.store import Store, StoredCertificate, now_ms


class CertificateSigner:
    """Makes certificates, and keeps them in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def certify_bot(self, bot: str, results: Mapping[str, str]) -> StoredCertificate:
        """Signs the results of all checks by name, keeps the certificate as the bot's, and returns it."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        fresh = Ed25519PrivateKey.generate().private_bytes_raw()
        key = Ed25519PrivateKey.from_private_bytes(await self._store.certificates.read_or_keep_key(fresh))
        statement = make_statement(bot, results, await now_ms(self._store.client))
        certificate = StoredCertificate(
            statement.decode(), key.sign(statement), key.public_key().public_bytes_raw()
        )
        await self._store.certificates.write_certificate(bot, certificate)
        return certificate


def make_statement(bot: str, results: Mapping[str, str], at_ms: int) -> bytes:
    """Returns what is signed. `at_ms` is the end of the examination in milliseconds since 1970."""
    ended = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return canonical_json(
        {
            "suite": CERTIFICATE_SUITE,
            "version": version("seatwise"),
            "bot": bot,
            "time": ended,
            "results": dict(results),
        }
    )
