"""Tokens, access tokens and invites: their texts, holders, scopes and ends.

A token is `seatwise_<kind>_<body><checksum>`. Scanners for leaked secrets know it by its prefix, and the checksum tells a
typing error from a token that is no longer valid. The bodies:

- of kind `bot`: `<name>.<version>.<secret>`. A version may have dots: it is everything between the first dot and the last.
- of kind `access`: `<id>.<secret>`, as `AccessTokens` issues them. The secret of a ticket is `<contents>.<seal>`.
- of kind `admin`: `<secret>`, in the one local file.
- of kind `invite`: `<id>.<secret>`, as `Invites` issues them.

The store keeps only a hash of each secret.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import re
import secrets
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import ClassVar, Generic, TypeVar

import structlog

from seatwise_server.resource_names import BadBotName, bot_name_for, parse_bot_name
from seatwise_server.store import keys
from seatwise_server.store.errors import (
    AccessTokenAbsent,
    AccessTokenExists,
    BadPageToken,
    InviteAbsent,
    InviteExists,
    StoreError,
    TokenRefused,
)
from seatwise_server.store.keeping import keep_key
from seatwise_server.store.redis.scripts import StorePart, now_ms

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

KEEP_ENDED_MS = 90 * 86_400_000
"""How long a revoked or expired token is listed, in milliseconds. After that its text is unknown."""

_ID_BYTES = 10
_CREATED_BEFORE = 2
_IS_REVOKED = 2
_HAS_EXPIRED = 3


class BadAdminTokenFile(StoreError):
    """The admin token file exists, but its content is not a token."""


def new_text(kind: str, item: str) -> tuple[str, bytes]:
    """Return a new text of this kind, and the hash to store for it. `item` is the id of the access token or the invite."""
    secret = _new_secret()
    return _format_token(kind, f"{item}.{secret}"), hash_secret(secret)


def new_token(bot: str) -> tuple[str, bytes]:
    """Return a new token for the bot, and the hash to store for it."""
    return new_text(BOT_KIND, ".".join(parse_bot_name(bot)))


def seal_ticket(token_id: str, contents: str, key: bytes) -> str:
    """Return a text for an access token that is stored only when it is used. It proves what it says, which is no secret."""
    body = f"{token_id}.{contents.encode().hex()}"
    return _format_token(ACCESS_KIND, f"{body}.{_seal_of(body, key)}")


def open_ticket(text: str, key: bytes) -> str:
    """Return what a ticket says; empty for any text that was not sealed with this key."""
    try:
        body, _, seal = parse_token(text)[1].rpartition(".")
        packed = body.partition(".")[2]
        is_ours = bool(packed) and hmac.compare_digest(seal.encode(), _seal_of(body, key).encode())
        return bytes.fromhex(packed).decode() if is_ours else ""
    except (TokenRefused, ValueError):
        return ""


def _seal_of(body: str, key: bytes) -> str:
    return hmac.new(key, body.encode(), hashlib.sha256).hexdigest()


def parse_token(token: str) -> tuple[str, str]:
    """Return the kind of a token, and its body without the checksum. Raises TokenRefused."""
    if not token.startswith(TOKEN_PREFIX):
        raise TokenRefused("UNKNOWN")
    text, checksum = token[:-CHECKSUM_LENGTH], token[-CHECKSUM_LENGTH:]
    if _checksum_of(text) != checksum:
        raise TokenRefused("UNKNOWN", is_mistyped=True)
    kind, _, body = text.removeprefix(TOKEN_PREFIX).partition("_")
    return kind, body


def split_token(token: str) -> tuple[str, str]:
    """Return the bot that a bot's own token names, and its secret. Raises TokenRefused for any other text."""
    kind, body = parse_token(token)
    name, _, rest = body.partition(".")
    version, _, secret = rest.rpartition(".")
    if kind == BOT_KIND:
        with contextlib.suppress(BadBotName):
            return bot_name_for(name, version), secret
    raise TokenRefused("UNKNOWN")


def _format_token(kind: str, body: str) -> str:
    text = f"{TOKEN_PREFIX}{kind}_{body}"
    return text + _checksum_of(text)


def _checksum_of(text: str) -> str:
    """Return the CRC-32 of the text, in seven letters and digits."""
    return _encode_base32(zlib.crc32(text.encode()).to_bytes(4, "big"))


def hash_secret(secret: str) -> bytes:
    """Return the hash that is stored for a secret. Its 32 random bytes need no salt and no slow hash."""
    return hashlib.sha256(secret.encode()).digest()


def load_or_create_admin_token(path: Path) -> str:
    """Return the admin token in the file; a missing file is created with a new token, readable only by its owner.

    If several processes create the file at once, all of them get the same token. Raises BadAdminTokenFile if the text of the
    file is too short for a secret, and OSError if the file cannot be read or written.
    """
    if not path.exists():
        _create_whole(path, _format_token(ADMIN_KIND, _new_secret()) + "\n")
    if path.stat().st_mode & 0o077:
        _log.warning("admin_token_exposed", path=str(path), hint=f"chmod 600 {path}")
    token = path.read_text().strip()
    if len(token) < _SHORTEST_ADMIN_TOKEN:
        why = f"{path} holds no admin token; delete it and a new one is made at the next start"
        raise BadAdminTokenFile(why)
    return token


class AdminTokenFile:
    """The admin token of this machine. A token that is written into the file counts within a second, without a restart."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token = load_or_create_admin_token(path)
        self._version = self._read_version()
        self._next_check_s = 0.0

    def read_token(self) -> str:
        """Return the token, a new one if the file was deleted. While the file cannot be read or holds none, the last one counts."""
        if monotonic() >= self._next_check_s:
            self._next_check_s = monotonic() + ADMIN_FILE_CHECK_S
            if self._read_version() != self._version and self._path.parent.is_dir():
                try:
                    self._token = load_or_create_admin_token(self._path)
                    _log.info("admin_token_changed", path=str(self._path))
                except (OSError, BadAdminTokenFile) as error:
                    _log.warning("admin_token_unreadable", path=str(self._path), why=str(error))
                self._version = self._read_version()
        return self._token

    def _read_version(self) -> tuple[int, int, int] | None:
        """Return what changes with the content of the file; None without a file."""
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
    """Create the file at once, complete and with mode 600; a file that another process created stays."""
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


Stored = TypeVar("Stored", "StoredAccessToken", "StoredInvite")


class StoredSecrets(StorePart, Generic[Stored]):
    """All access tokens, or all invites, on one Redis."""

    kind: ClassVar[str]
    collection: ClassVar[str]
    index: ClassVar[str]
    key_of: ClassVar[staticmethod[[str], str]]
    fields: ClassVar[tuple[str, ...]]
    """Those of its hash in Redis. The first one is the hash of the secret."""
    absent: ClassVar[type[StoreError]]

    def _parse(self, name: str, values: Sequence[bytes | None]) -> Stored:
        """Return what these fields hold, which are those after the hash."""
        raise NotImplementedError

    def _is_name(self, name: str) -> bool:
        return re.fullmatch(rf"{self.collection}/[a-z2-7]{{16}}", name) is not None

    async def _read_many(self, names: Sequence[str]) -> list[tuple[bytes, Stored] | None]:
        commands = [("HMGET", self.key_of(name), *self.fields) for name in names]
        answers = await self._call_many(commands)
        return [
            None if values[0] is None else (values[0], self._parse(name, values[1:]))
            for name, values in zip(names, answers, strict=True)
        ]

    async def find(self, name: str) -> Stored | None:
        """Return the token or invite of that name; None if there is none."""
        [found] = await self._read_many([name]) if self._is_name(name) else [None]
        return found[1] if found else None

    async def _get_present(self, name: str) -> Stored:
        found = await self.find(name)
        if found is None:
            raise self.absent(f"there is no {name}")
        return found

    async def authenticate(self, text: str) -> tuple[Stored, int]:
        """Return the token or invite with this text, and the milliseconds that it is still valid; 0 means for ever.

        Raises TokenRefused, with REVOKED or EXPIRED only if the secret is the right one.
        """
        kind, body = parse_token(text)
        item_id, _, secret = body.partition(".")
        name = f"{self.collection}/{item_id}"
        is_name = kind == self.kind and self._is_name(name)
        [found] = await self._read_many([name]) if is_name else [None]
        held, stored = found or (NO_HASH, None)
        is_right = hmac.compare_digest(hash_secret(secret), held)
        if stored is None or not is_right:
            raise TokenRefused("UNKNOWN")
        if stored.revoke_ms:
            raise TokenRefused("REVOKED")
        left_ms = stored.expire_ms - await now_ms(self._client) if stored.expire_ms else 0
        if stored.expire_ms and left_ms <= 0:
            raise TokenRefused("EXPIRED")
        return stored, left_ms

    async def list_page(self, page_size: int, page_token: str = "") -> tuple[list[Stored], str]:
        """Return those in the order of their names, also ended ones, and the next page token. Raises BadPageToken."""
        if page_token and not self._is_name(page_token):
            raise BadPageToken("the page token is not one that this list gave out")
        start = f"({page_token}" if page_token else "-"
        limits = ("BYLEX", "LIMIT", 0, page_size + 1)
        names = [name.decode() for name in await self._call("ZRANGE", self.index, start, "+", *limits)]
        shown = names[:page_size]
        found = dict(zip(shown, await self._read_many(shown), strict=True))
        if forgotten := [name for name, it in found.items() if it is None]:
            await self._call("ZREM", self.index, *forgotten)
        return [it[1] for it in found.values() if it], shown[-1] if len(names) > page_size else ""


@dataclass(frozen=True, slots=True)
class StoredAccessToken:
    """An access token without its secret. All times are milliseconds of Redis's clock since 1970; 0 means never."""

    name: str
    """Format: tokens/{id}."""
    holder: str
    """The name of a person, or bots/{bot}/versions/{version}."""
    scopes: frozenset[str]
    create_ms: int
    expire_ms: int
    revoke_ms: int
    last_use_ms: int


@dataclass(frozen=True, slots=True)
class IssuedAccessToken:
    """An access token, and its text, which is shown only once."""

    token: StoredAccessToken
    text: str
    """Empty for a repeat of an earlier request."""


class AccessTokens(StoredSecrets[StoredAccessToken]):
    """The access tokens on one Redis."""

    kind, collection, index = ACCESS_KIND, "tokens", keys.ACCESS_TOKEN_INDEX
    key_of, absent = staticmethod(keys.access_token), AccessTokenAbsent
    fields = ("hash", "holder", "scopes", "create_ms", "expire_ms", "revoke_ms", "last_use_ms")

    def _parse(self, name: str, values: Sequence[bytes | None]) -> StoredAccessToken:
        holder, scopes, *times = values
        held = (holder or b"").decode(), frozenset((scopes or b"").decode().split())
        return StoredAccessToken(name, *held, *(int(time or 0) for time in times))

    async def create_token(
        self, holder: str, scopes: frozenset[str], lifetime_ms: int, request_id: str
    ) -> IssuedAccessToken:
        """Create a token that is valid for `lifetime_ms` milliseconds, or for ever if that is 0.

        A repeat of the same request (if it has an id) creates nothing and shows no text. Raises AccessTokenExists if
        another request has used this id.
        """
        token_id = _new_id(request_id)
        name = f"tokens/{token_id}"
        text, secret_hash = new_text(ACCESS_KIND, token_id)
        args = (holder, " ".join(sorted(scopes)), secret_hash, request_id, lifetime_ms, 0)
        await self._list_token(name)  # first: a token that is in no list could not be erased with its holder
        answer = await self._run("access_token_create", [keys.access_token(name)], *args)
        created = await self.find(name)
        if answer == 0 or created is None or (created.holder, created.scopes) != (holder, scopes):
            raise AccessTokenExists(f"{name} was created by a request of the same id with other contents")
        await self._list_token(name)  # a list may have dropped it, because there was no such token yet
        if created.expire_ms:
            keep_ms = created.expire_ms - created.create_ms + KEEP_ENDED_MS
            await keep_key(self._client, keys.access_token(name), keep_ms)
        return IssuedAccessToken(created, "" if answer == _CREATED_BEFORE else text)

    async def _list_token(self, name: str) -> None:
        await self._call("ZADD", keys.ACCESS_TOKEN_INDEX, "NX", 0, name)

    async def read_ticket_key(self) -> bytes:
        """Return the key with which all processes of this server seal tickets. The first one that asks draws it."""
        return await self._read_secret(keys.TICKET_KEY)

    async def new_ticket(self, contents: str) -> str:
        """Return a ticket that says this. Nothing is stored of it."""
        return seal_ticket(_new_id(""), contents, await self.read_ticket_key())

    async def open_ticket(self, text: str) -> str:
        """Return what a ticket of this server says; empty for any other text."""
        return open_ticket(text, await self.read_ticket_key())

    async def is_used(self, ticket: str) -> bool:
        """Return whether the ticket is a token already."""
        return await self.find(_token_of(ticket)) is not None

    async def use_ticket(self, text: str, holder: str, scopes: frozenset[str], lifetime_ms: int) -> None:
        """Make a token of a ticket. It is in no list, and is forgotten after `lifetime_ms` milliseconds. Repeatable."""
        secret = parse_token(text)[1].partition(".")[2]
        args = (holder, " ".join(sorted(scopes)), hash_secret(secret), "", lifetime_ms, lifetime_ms)
        await self._run("access_token_create", [keys.access_token(_token_of(text))], *args)

    async def rotate_token(self, name: str) -> IssuedAccessToken:
        """Give the token a new text; the old text is no longer valid, and the end stays as it was.

        Raises AccessTokenAbsent, also for a token that is revoked or has expired.
        """
        text, secret_hash = new_text(ACCESS_KIND, name.removeprefix("tokens/"))
        answer = await self._change(name, secret_hash)
        if answer == _IS_REVOKED:
            raise AccessTokenAbsent(f"{name} is revoked; create another token")
        if answer == _HAS_EXPIRED:
            raise AccessTokenAbsent(f"{name} has expired; create another token")
        return IssuedAccessToken(await self._get_present(name), text)

    async def revoke_token(self, name: str) -> StoredAccessToken:
        """Revoke the token. Repeatable. Raises AccessTokenAbsent."""
        await self._change(name, b"")
        return await self._get_present(name)

    async def _change(self, name: str, secret_hash: bytes) -> int:
        if not self._is_name(name):
            raise AccessTokenAbsent(f"there is no {name[:80]!r}")
        key = keys.access_token(name)
        answer = int(await self._run("access_token_change", [key], secret_hash))
        if answer == 0:
            raise AccessTokenAbsent(f"there is no {name}")
        if not secret_hash:
            await keep_key(self._client, key, KEEP_ENDED_MS)
        await self._call("INCR", keys.TOKENS_REVISION)
        return answer

    async def erase_holder(self, name: str, holder: str, pseudonym: str) -> None:
        """Put a pseudonym in the place of this holder of the token. Repeatable."""
        await self._run("holder_erase", [keys.access_token(name)], holder, pseudonym)


def _new_id(request_id: str) -> str:
    raw = hashlib.sha256(request_id.encode()).digest() if request_id else secrets.token_bytes(_ID_BYTES)
    return _encode_base32(raw[:_ID_BYTES])


def _token_of(ticket: str) -> str:
    return f"tokens/{parse_token(ticket)[1].partition('.')[0]}"


@dataclass(frozen=True, slots=True)
class StoredInvite:
    """An invite without its secret. All times are milliseconds of Redis's clock since 1970; 0 means never."""

    name: str
    """Format: invites/{invite}."""
    most_bots: int
    uses: int
    used: int
    create_ms: int
    expire_ms: int
    revoke_ms: int
    most_matches: int
    """The most matches that each bot of these owners plays at once."""


@dataclass(frozen=True, slots=True)
class IssuedInvite:
    """An invite, and its text, which is shown only once."""

    invite: StoredInvite
    text: str


class Invites(StoredSecrets[StoredInvite]):
    """The invites on one Redis."""

    kind, collection, index = INVITE_KIND, "invites", keys.INVITE_INDEX
    key_of, absent = staticmethod(keys.invite), InviteAbsent
    fields = ("hash", "most_bots", "uses", "used", "create_ms", "expire_ms", "revoke_ms", "most_matches")

    def _parse(self, name: str, values: Sequence[bytes | None]) -> StoredInvite:
        return StoredInvite(name, *(int(value or 0) for value in values))

    async def create_invite(
        self, most_bots: int, uses: int, lifetime_ms: int, most_matches: int = 8, request_id: str = ""
    ) -> IssuedInvite:
        """Create an invite for `uses` owners with `most_bots` bots each, which play `most_matches` at once each.

        A repeat of the same request (if it has an id) creates nothing and shows no text. Raises InviteExists if another
        request has used this id.
        """
        invite_id = _new_id(request_id)
        name = f"invites/{invite_id}"
        text, secret_hash = new_text(INVITE_KIND, invite_id)
        await keep_key(self._client, keys.invite(name), lifetime_ms + KEEP_ENDED_MS)
        args = (secret_hash, most_bots, uses, lifetime_ms, most_matches)
        answer = await self._run("invite_create", [keys.invite(name)], *args)
        await self._call("ZADD", keys.INVITE_INDEX, "NX", 0, name)
        made = await self._get_present(name)
        wanted = (most_bots, uses, lifetime_ms, most_matches)
        if (made.most_bots, made.uses, made.expire_ms - made.create_ms, made.most_matches) != wanted:
            raise InviteExists(f"{name} was created by a request of the same id with other contents")
        return IssuedInvite(made, "" if answer == _CREATED_BEFORE else text)

    async def revoke_invite(self, name: str) -> StoredInvite:
        """Revoke the invite. Repeatable. Raises InviteAbsent."""
        if not self._is_name(name) or not await self._run("invite_revoke", [keys.invite(name)]):
            raise InviteAbsent(f"there is no {name[:80]!r}")
        await self._call("INCR", keys.TOKENS_REVISION)
        return await self._get_present(name)

    async def use_invite(self, name: str, owner: str) -> bool:
        """Use the invite for an owner, once; returns False if it is used up or no longer valid. Only a hash of the owner is kept."""
        return bool(await self._run("invite_use", [keys.invite(name)], keys.owner_hash(owner)))
