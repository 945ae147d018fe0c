"""The texts of tokens. A token proves that a caller is the bot, or the person, that it claims to be.

A token is `seatwise_<kind>_<body><checksum>`. Scanners for leaked secrets know it by its prefix, and the checksum tells a
typing error from a token that is no longer valid. The bodies:

- of kind `bot`: `<name>.<version>.<secret>`. A version may have dots: it is everything between the first dot and the last.
- of kind `access`: `<id>.<secret>`, as `store/access_tokens.py` issues them. The secret of a ticket is `<contents>.<seal>`.
- of kind `admin`: `<secret>`, in the one local file.
- of kind `invite`: `<id>.<secret>`, as `store/invites.py` issues them.

Before version 0.2.0 a bot's token was its body alone, and the admin token was `admin.<secret>`. Both still work.
The store keeps only a hash of each secret.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import secrets
import zlib
from pathlib import Path
from time import monotonic

import structlog

from seatwise_server.resource_names import BadBotName, bot_name_for, parse_bot_name
from seatwise_server.store.errors import StoreError, TokenRefused

TOKEN_PREFIX = "seatwise_"
BOT_KIND = "bot"
ACCESS_KIND = "access"
ADMIN_KIND = "admin"
INVITE_KIND = "invite"

CHECKSUM_LENGTH = 7
SECRET_BYTES = 32

NO_HASH = bytes(32)
"""Stands for the hash of an unknown holder, so that its comparison takes equally long. No secret has this hash."""

ADMIN_FILE_CHECK_S = 0.3
"""Seconds between two looks at the file of the admin token: a change is noticed within a second."""

_SHORTEST_ADMIN_TOKEN = 32

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class BadAdminTokenFile(StoreError):
    """The admin token file exists, but its content is not a token."""


def new_token(bot: str) -> tuple[str, bytes]:
    """Returns a new token for the bot, and the hash to store for it."""
    name, version = parse_bot_name(bot)
    secret = _new_secret()
    return _format_token(BOT_KIND, f"{name}.{version}.{secret}"), hash_secret(secret)


def new_access_token(token_id: str) -> tuple[str, bytes]:
    """Returns a new text for the access token of that id, and the hash to store for it."""
    secret = _new_secret()
    return _format_token(ACCESS_KIND, f"{token_id}.{secret}"), hash_secret(secret)


def seal_ticket(token_id: str, contents: str, key: bytes) -> str:
    """Returns a text for an access token that is stored only when it is used. It proves what it says, which is no secret."""
    body = f"{token_id}.{contents.encode().hex()}"
    return _format_token(ACCESS_KIND, f"{body}.{_seal_of(body, key)}")


def open_ticket(text: str, key: bytes) -> str:
    """Returns what a ticket says; empty for any text that was not sealed with this key."""
    try:
        body, _, seal = parse_token(text)[1].rpartition(".")
        packed = body.partition(".")[2]
        is_ours = bool(packed) and hmac.compare_digest(seal.encode(), _seal_of(body, key).encode())
        return bytes.fromhex(packed).decode() if is_ours else ""
    except (TokenRefused, ValueError):
        return ""


def _seal_of(body: str, key: bytes) -> str:
    return hmac.new(key, body.encode(), hashlib.sha256).hexdigest()


def new_invite_text(invite_id: str) -> tuple[str, bytes]:
    """Returns a new text for the invite of that id, and the hash to store for it."""
    secret = _new_secret()
    return _format_token(INVITE_KIND, f"{invite_id}.{secret}"), hash_secret(secret)


def parse_token(token: str) -> tuple[str, str]:
    """Returns the kind of a token, and its body without the checksum. A text without our prefix may be a bot's old token.

    Raises TokenRefused for a text whose checksum does not fit.
    """
    if not token.startswith(TOKEN_PREFIX):
        return BOT_KIND, token
    text, checksum = token[:-CHECKSUM_LENGTH], token[-CHECKSUM_LENGTH:]
    if _checksum_of(text) != checksum:
        raise TokenRefused("UNKNOWN", is_mistyped=True)
    kind, _, body = text.removeprefix(TOKEN_PREFIX).partition("_")
    return kind, body


def split_token(token: str) -> tuple[str, str]:
    """Returns the bot that a bot's own token names, and its secret. Raises TokenRefused for any other text."""
    kind, body = parse_token(token)
    name, _, rest = body.partition(".")
    version, _, secret = rest.rpartition(".")
    try:
        if kind == BOT_KIND:
            return bot_name_for(name, version), secret
    except BadBotName:
        pass
    raise TokenRefused("UNKNOWN")


def _format_token(kind: str, body: str) -> str:
    text = f"{TOKEN_PREFIX}{kind}_{body}"
    return text + _checksum_of(text)


def _checksum_of(text: str) -> str:
    """Returns the CRC-32 of the text, in seven letters and digits."""
    return _encode_base32(zlib.crc32(text.encode()).to_bytes(4, "big"))


def hash_secret(secret: str) -> bytes:
    """Returns the hash that is stored for a secret. Its 32 random bytes need no salt and no slow hash."""
    return hashlib.sha256(secret.encode()).digest()


def load_or_create_admin_token(path: Path) -> str:
    """Returns the admin token in the file; a missing file is created with a new token, readable only by its
    owner.

    If several processes create the file at once, all of them get the same token. Raises BadAdminTokenFile if
    the text of the file is too short for a secret, and OSError if the file cannot be read or written.
    """
    if not path.exists():
        _create_whole(path, _format_token(ADMIN_KIND, _new_secret()) + "\n")
    if path.stat().st_mode & 0o077:
        _log.warning("admin_token_exposed", path=str(path), hint=f"chmod 600 {path}")
    token = path.read_text().strip()
    if len(token) < _SHORTEST_ADMIN_TOKEN:
        raise BadAdminTokenFile(
            f"{path} holds no admin token; delete it and a new one is made at the next start"
        )
    return token


class AdminTokenFile:
    """The admin token of this machine. A token that is written into the file counts within a second, without a restart."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token = load_or_create_admin_token(path)
        self._version = self._read_version()
        self._next_check_s = 0.0

    def read_token(self) -> str:
        """Returns the token. A file that was deleted is created again, with a new token.

        While the file cannot be read or holds no token, the last token counts, and the log says so.
        """
        if monotonic() >= self._next_check_s:
            self._next_check_s = monotonic() + ADMIN_FILE_CHECK_S
            if self._read_version() != self._version and self._path.parent.is_dir():
                self._load_again()
        return self._token

    def _load_again(self) -> None:
        try:
            self._token = load_or_create_admin_token(self._path)
            _log.info("admin_token_changed", path=str(self._path))
        except (OSError, BadAdminTokenFile) as error:
            _log.warning("admin_token_unreadable", path=str(self._path), why=str(error))
        self._version = self._read_version()

    def _read_version(self) -> tuple[int, int, int] | None:
        """Returns what changes with the content of the file; None without a file."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size


def _new_secret() -> str:
    return _encode_base32(secrets.token_bytes(SECRET_BYTES))


def _encode_base32(raw: bytes) -> str:
    return base64.b32encode(raw).decode().rstrip("=").lower()


def _create_whole(path: Path, text: str) -> None:
    """Creates the file at once, complete and with mode 600; a file that another process created stays."""
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
