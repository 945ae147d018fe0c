"""Tokens: what proves that a caller is the bot, or the admin, that it says.

A bot's token is `<name>.<version>.<secret>`. Names and secrets have no dots, so a version may: what stands
between the first dot and the last is the version. The store keeps a hash of the secret only.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import secrets
from pathlib import Path

import structlog

from seatwise_server.bot_names import BadBotName, bot_name_for, parse_bot_name
from seatwise_server.store.errors import StoreError, TokenRefused

SECRET_BYTES = 32

_SHORTEST_ADMIN_TOKEN = 32

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class BadAdminTokenFile(StoreError):
    """The admin token file is there, and what is in it is no token."""


def new_token(bot: str) -> tuple[str, bytes]:
    """A fresh token for the bot, and the hash to keep of it."""
    name, version = parse_bot_name(bot)
    secret = _new_secret()
    return f"{name}.{version}.{secret}", hash_secret(secret)


def split_token(token: str) -> tuple[str, str]:
    """The bot that a token claims to be, and its secret; raises TokenRefused for what cannot be a token."""
    name, _, rest = token.partition(".")
    version, _, secret = rest.rpartition(".")
    try:
        return bot_name_for(name, version), secret
    except BadBotName:
        raise TokenRefused("UNKNOWN") from None


def hash_secret(secret: str) -> bytes:
    """What is stored of a secret; 32 random bytes need no salt and no slow hash."""
    return hashlib.sha256(secret.encode()).digest()


def load_or_create_admin_token(path: Path) -> str:
    """The admin token in the file; a missing file is written with a new one, never readable by others.

    Of several processes that create it at once all get the same. Raises BadAdminTokenFile for a file whose
    text is too short to be a secret, and OSError when it can be neither read nor written.
    """
    if not path.exists():
        _create_whole(path, f"admin.{_new_secret()}\n")
    if path.stat().st_mode & 0o077:
        _log.warning("admin_token_exposed", path=str(path), hint=f"chmod 600 {path}")
    token = path.read_text().strip()
    if len(token) < _SHORTEST_ADMIN_TOKEN:
        raise BadAdminTokenFile(
            f"{path} holds no admin token; delete it and a new one is made at the next start"
        )
    return token


def _new_secret() -> str:
    return base64.b32encode(secrets.token_bytes(SECRET_BYTES)).decode().rstrip("=").lower()


def _create_whole(path: Path, text: str) -> None:
    """The file appears at once, complete and with mode 600; one that somebody else made stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    try:
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
