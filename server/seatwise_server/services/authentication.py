"""Finds the caller by its token, and refuses callers without the right that a method needs."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from seatwise_server.refusal import Refusal
from seatwise_server.services.access import (
    ACCESS,
    OWN_METHODS,
    SCOPES_OF_BOTS,
    SCOPES_OF_PEOPLE,
    Access,
    expand_scopes,
)
from seatwise_server.services.call_log import RefusedTokenLog
from seatwise_server.services.id_tokens import IdTokens, looks_like_id_token
from seatwise_server.store import Credentials
from seatwise_server.store.errors import StoreUnavailable, TokenRefused

# Notes when tokens were last used, at most once a minute for each token. No call waits for that.

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
        """Write the uses. Runs until cancelled."""
        while True:
            await asyncio.sleep(WRITE_EVERY_S)
            try:
                await self.write_uses()
            except StoreUnavailable:
                log.debug("token_uses_paused")

    async def write_uses(self) -> None:
        """Write all uses that are not written yet."""
        now_s = time.monotonic()
        self._written_s = {name: at for name, at in self._written_s.items() if now_s - at < USE_RESOLUTION_S}
        if used := sorted(self._unwritten):
            await self._credentials.write_uses(used)
            self._unwritten.difference_update(used)
            self._written_s |= dict.fromkeys(used, now_s)


LOCAL_ADMIN = "admin"
"""The name of the holder of the admin token of the local file."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a call: with a token that was checked, or without a token."""

    bot: str = ""
    """Format: bots/{bot}/versions/{version}; empty for a person and for a caller without a token."""
    token: str = ""
    scopes: frozenset[Access] = frozenset()
    name: str = ""
    """The bot, or the name of the person; empty for a caller without a token."""
    left_ms: int = 0
    """Milliseconds for which the token is still valid; 0 means for ever."""
    peer: str = field(default="", compare=False)
    """The address that the transport saw."""

    @property
    def owner(self) -> str:
        """The owner that calls, of the form owners/{owner}; empty for any other caller."""
        return self.name if Access.OWN in self.scopes else ""

    @property
    def is_guest(self) -> bool:
        """Whether the caller is the bot of a guest, which plays one match only."""
        return Access.GUEST in self.scopes

    @property
    def is_operator(self) -> bool:
        """Whether the caller may see and change what only operators may."""
        return Access.OPERATE in self.scopes


ANONYMOUS = Caller()


def read_bearer_token(header: str | None) -> str | None:
    """Return the token of an `authorization` header, whose form is `Bearer <token>`; None without a header.

    Raises `Refusal` TOKEN_MISSING for a header of another form.
    """
    if header is None:
        return None
    scheme, _, token = header.strip().partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise _token_missing()
    return token.strip()


RefusalListener = Callable[[str, str, str, str], Awaitable[None]]
"""Takes the method, the name of the caller, its address and the reason."""


class Authenticator:
    """Finds callers by their tokens. It does not depend on a transport."""

    def __init__(
        self,
        credentials: Credentials,
        read_admin_token: Callable[[], str],
        uses: TokenUses | None = None,
        id_tokens: IdTokens | None = None,
    ) -> None:
        """`id_tokens` checks the tokens of an OIDC issuer; None if there is no issuer."""
        self._credentials = credentials
        self._read_admin_token = read_admin_token
        self._uses = uses
        self._id_tokens = id_tokens
        self._refused_tokens = RefusedTokenLog()
        self.on_refusal: RefusalListener | None = None
        """Is told of each refusal before it is sent."""

    async def authorize(self, method: str, token: str | None, peer: str = "") -> Caller:
        """Return the caller if it may call the method, of the form /seatwise.v1.MatchService/GetMatch.

        `peer` is the address that the transport saw; it is logged when a token is refused. Raises `Refusal`
        TOKEN_MISSING, TOKEN_UNKNOWN, TOKEN_REVOKED, TOKEN_EXPIRED, NOT_ALLOWED, SCOPE_MISSING or ISSUER_UNAVAILABLE.
        """
        access, caller = ACCESS[method], Caller(peer=peer)
        if token is None and access is Access.PUBLIC:
            return caller
        try:
            if token is None:
                raise _token_missing()
            if access is Access.JOIN and self._id_tokens and looks_like_id_token(token):
                return await self._authenticate_id_token(self._id_tokens, token, peer)
            caller = await self._authenticate_token(token, peer)
            _check_access(caller, access, method)
        except Refusal as refusal:
            if self.on_refusal:
                await self.on_refusal(method, caller.name, peer, refusal.reason)
            raise
        return caller

    async def _authenticate_id_token(self, id_tokens: IdTokens, token: str, peer: str) -> Caller:
        """Return a caller that may become the owner that its ID token names, and nothing else."""
        try:
            owner = await id_tokens.read_owner(token)
        except Refusal as refusal:
            self._refused_tokens.write_refusal(refusal.reason.removeprefix("TOKEN_"), peer)
            raise
        return Caller("", token, frozenset({Access.JOIN}), owner, peer=peer)

    async def _authenticate_token(self, token: str, peer: str) -> Caller:
        admin_token = self._read_admin_token()
        if admin_token and hmac.compare_digest(token.encode(), admin_token.encode()):
            return Caller("", token, SCOPES_OF_PEOPLE, LOCAL_ADMIN, peer=peer)
        try:
            found = await self._credentials.authenticate(token)
        except TokenRefused as refused:
            self._refused_tokens.write_refusal(refused.reason, peer)
            raise Refusal(f"TOKEN_{refused.reason}", str(refused)) from None
        if self._uses:
            self._uses.note_use(found.token_name)
        return Caller(found.bot, token, expand_scopes(found.scopes), found.holder, found.left_ms, peer)


def _check_access(caller: Caller, access: Access, method: str) -> None:
    if access in (Access.PUBLIC, Access.TOKEN) or access in caller.scopes:
        return
    if Access.OWN in caller.scopes and method in OWN_METHODS:
        return
    if access is Access.JOIN:
        why = "this call needs an invite: send the token of the invite, or an ID token of the server's issuer"
        raise Refusal("NOT_ALLOWED", why)
    if access in SCOPES_OF_BOTS and not caller.bot:
        raise Refusal("NOT_ALLOWED", "this call is for bots; call it with a bot's token, not the admin token")
    if access in SCOPES_OF_PEOPLE and caller.bot:
        why = "this call needs the admin token or an access token, not the token of a bot"
        raise Refusal("NOT_ALLOWED", why, bot=caller.bot)
    why = f"this call needs a token with the scope {access.value}"
    raise Refusal("SCOPE_MISSING", why, scope=access.value)


def _token_missing() -> Refusal:
    why = "send the token as a header (over gRPC as metadata): authorization: Bearer <token>"
    return Refusal("TOKEN_MISSING", why)
