"""Finds out who calls, from the token that was sent, and refuses callers that may not."""

from __future__ import annotations

import hmac
from dataclasses import dataclass

import structlog

from seatwise_server.refusal import Refusal
from seatwise_server.services.access import Access
from seatwise_server.store import Bots
from seatwise_server.store.errors import TokenRefused

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller whose token was checked, or who sent none."""

    bot: str = ""
    """Format: bots/{bot}/versions/{version}; empty for an admin and for a caller without a token."""
    token: str = ""
    is_admin: bool = False


ANONYMOUS = Caller()


def read_bearer_token(header: str | None) -> str | None:
    """Takes the token out of an `authorization` header, whose form is `Bearer <token>`; None where there is no header.

    Raises `Refusal` TOKEN_MISSING for a header of another form.
    """
    if header is None:
        return None
    scheme, _, token = header.strip().partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise _token_missing()
    return token.strip()


class Authenticator:
    """Knows every caller by its token; knows no transport."""

    def __init__(self, bots: Bots, admin_token: str) -> None:
        self._bots = bots
        self._admin_token = admin_token

    async def authorize(self, access: Access, token: str | None, peer: str = "") -> Caller:
        """Returns the caller if it may do what needs this access.

        `peer` is the address that the transport saw; it is logged when a token is refused. Raises `Refusal`
        TOKEN_MISSING, TOKEN_UNKNOWN, TOKEN_REVOKED or NOT_ALLOWED.
        """
        if token is None:
            if access is Access.PUBLIC:
                return ANONYMOUS
            raise _token_missing()
        caller = await self._authenticate_token(token, peer)
        _check_access(caller, access)
        return caller

    async def _authenticate_token(self, token: str, peer: str) -> Caller:
        if hmac.compare_digest(token.encode(), self._admin_token.encode()):
            return Caller("", token, is_admin=True)
        try:
            return Caller((await self._bots.authenticate(token)).bot, token)
        except TokenRefused as refused:
            log.info("token_refused", reason=refused.reason, peer=peer)
            raise Refusal(f"TOKEN_{refused.reason}", f"this token is {refused.reason.lower()}") from None


def _check_access(caller: Caller, access: Access) -> None:
    if access is Access.BOT and caller.is_admin:
        raise Refusal("NOT_ALLOWED", "this call is for bots; call it with a bot's token, not the admin token")
    if access is Access.ADMIN and not caller.is_admin:
        raise Refusal("NOT_ALLOWED", "this call needs the admin token", bot=caller.bot)


def _token_missing() -> Refusal:
    return Refusal("TOKEN_MISSING", "send the token as metadata: authorization: Bearer <token>")
