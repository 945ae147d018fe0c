"""OwnerService: invites owners, creates them, and sets their quotas."""

from __future__ import annotations

import asyncio
import math
import re
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from cachetools import LRUCache

from seatwise.v1 import owner_pb2
from seatwise.v1 import owner_service_pb2 as pb
from seatwise_server.background_tasks import cancel_until_ended
from seatwise_server.limits import MOST_BUCKETS, RateLimit, TokenBuckets
from seatwise_server.lobby.lobby import MOST_MATCHES
from seatwise_server.refusal import Refusal, bad_argument
from seatwise_server.resources import timestamp
from seatwise_server.services.access import Access
from seatwise_server.services.authentication import Caller
from seatwise_server.services.id_tokens import ISSUER_OWNER_PREFIX
from seatwise_server.services.request_fields import (
    LONGEST_REQUEST_ID,
    check_text,
    page_size,
    refusing_store_errors,
)
from seatwise_server.store import (
    OWNERS_PREFIX,
    OwnerCreation,
    OwnerLimits,
    Owners,
    Store,
    StoredInvite,
    StoredOwner,
)
from seatwise_server.store.errors import AccessTokenAbsent, OwnerAbsent, StoreUnavailable

CLOSED, INVITE = "closed", "invite"
REGISTRATION_MODES: Final = (CLOSED, INVITE)
"""Closed: only the operator registers bots. Invite: the holder of an invite may become an owner, and owners register bots."""
MOST_OWNED_BOTS: Final = 1000
MOST_INVITE_USES: Final = 1000
MOST_QUOTAS: Final = {
    "most_bots": MOST_OWNED_BOTS, "most_matches": MOST_MATCHES, "most_requests": 10_000, "most_watches": 1000,
    "most_matches_at_once": 100_000, "most_matches_a_day": 100_000,
}  # fmt: skip
"""The largest quotas that an owner may be given, by the fields of the request."""
DEFAULT_OWNED_BOTS: Final = 3
DEFAULT_MATCHES: Final = 8
DEFAULT_INVITE_S: Final = 7 * 86_400
LONGEST_INVITE_S: Final = 366 * 86_400
OWNER_SCOPES: Final = frozenset({"own"})

_OF_ISSUER = "issuer"
"""Stored in place of the invite, for an owner that an OIDC issuer has identified."""
_OWNER_ID = re.compile(r"[a-z][a-z0-9-]{0,39}")


class OwnerService:
    """See owner_service.proto."""

    def __init__(self, store: Store, registration: str, limits: OwnerLimits) -> None:
        """`registration` is one of `REGISTRATION_MODES`. `limits` are the quotas of owners that have none of their own."""
        self._registration = registration
        self._limits = limits
        self._owner_matches = store.owner_matches
        self._owners = store.owners
        self._invites = store.invites
        self._access_tokens = store.access_tokens

    async def create_invite(self, caller: Caller, request: pb.CreateInviteRequest) -> pb.CreateInviteResponse:
        most_bots = _check_number("most_bots", request.most_bots or DEFAULT_OWNED_BOTS, 1, MOST_OWNED_BOTS)
        uses = _check_number("uses", request.uses or 1, 1, MOST_INVITE_USES)
        lifetime_s = _check_number("lifetime_s", request.lifetime_s or DEFAULT_INVITE_S, 1, LONGEST_INVITE_S)
        most_matches = _check_number("most_matches", request.most_matches or DEFAULT_MATCHES, 1, MOST_MATCHES)
        check_text("request_id", request.request_id, LONGEST_REQUEST_ID)
        quotas = (most_bots, uses, lifetime_s * 1000, most_matches)
        with refusing_store_errors():
            issued = await self._invites.create_invite(*quotas, request.request_id)
        return pb.CreateInviteResponse(invite=_invite_resource(issued.invite), token=issued.text)

    async def list_invites(self, caller: Caller, request: pb.ListInvitesRequest) -> pb.ListInvitesResponse:
        """See owner_service.proto. A page token is the name of the last invite shown."""
        with refusing_store_errors():
            found, token = await self._invites.list_page(page_size(request.page_size), request.page_token)
        return pb.ListInvitesResponse(invites=map(_invite_resource, found), next_page_token=token)

    async def revoke_invite(self, caller: Caller, request: pb.RevokeInviteRequest) -> pb.RevokeInviteResponse:
        with refusing_store_errors():
            revoked = await self._invites.revoke_invite(request.name)
        return pb.RevokeInviteResponse(invite=_invite_resource(revoked))

    async def create_owner(self, caller: Caller, request: pb.CreateOwnerRequest) -> pb.CreateOwnerResponse:
        """See owner_service.proto. A request with the same id may repeat each step."""
        if self._registration != INVITE:
            raise registration_closed()
        check_text("request_id", request.request_id, LONGEST_REQUEST_ID)
        if caller.name.startswith(OWNERS_PREFIX):
            return await self._sign_in(caller.name, request)
        name = f"owners/{_check_owner_id(request.owner_id)}"
        invite = await self._invites.find(caller.name)
        if invite is None:
            raise Refusal("TOKEN_UNKNOWN", "this invite is kept no longer")
        quotas = (invite.most_bots, invite.most_matches)
        made = await self._owners.create_owner(name, *quotas, invite.name, request.request_id)
        if made is OwnerCreation.TAKEN:
            raise Refusal("ALREADY_EXISTS", f"there is an owner {name}; choose another owner_id")
        if not await self._invites.use_invite(invite.name, name):
            if made is OwnerCreation.CREATED:
                await self._owners.drop_owner(name)
            raise Refusal("NOT_ALLOWED", f"this invite was used {invite.uses} times; ask for a new one")
        owner = await self._find_owner(name)
        request_id = f"{invite.name} {name} {owner.create_ms}"
        issued = await self._access_tokens.create_token(name, OWNER_SCOPES, 0, request_id)
        return pb.CreateOwnerResponse(owner=await self._show_owner(owner), token=issued.text)

    async def _sign_in(self, name: str, request: pb.CreateOwnerRequest) -> pb.CreateOwnerResponse:
        """Create the owner that an ID token names, unless it exists, and give it a token that replaces any earlier one."""
        if request.owner_id and f"owners/{request.owner_id}" != name:
            why = f"with an ID token the server chooses the owner: leave owner_id empty; you are {name}"
            raise bad_argument("owner_id", why)
        quotas = (DEFAULT_OWNED_BOTS, DEFAULT_MATCHES)
        if await self._owners.create_owner(name, *quotas, _OF_ISSUER, name) is OwnerCreation.TAKEN:
            raise Refusal("ALREADY_EXISTS", f"{name} was created with an invite; ask the operator")
        owner = await self._find_owner(name)
        request_id = f"{_OF_ISSUER} {name} {owner.create_ms}"
        issued = await self._access_tokens.create_token(name, OWNER_SCOPES, 0, request_id)
        try:
            text = issued.text or (await self._access_tokens.rotate_token(issued.token.name)).text
        except AccessTokenAbsent:
            why = f"the token of {name} was revoked; ask the operator for another"
            raise Refusal("NOT_ALLOWED", why) from None
        return pb.CreateOwnerResponse(owner=await self._show_owner(owner), token=text)

    async def get_owner(self, caller: Caller, request: pb.GetOwnerRequest) -> pb.GetOwnerResponse:
        if caller.owner and caller.owner != request.name:
            raise Refusal("NOT_FOUND", f"you are {caller.owner}, and can see no other owner")
        return pb.GetOwnerResponse(owner=await self._show_owner(await self._find_owner(request.name)))

    async def set_owner_quotas(
        self, caller: Caller, request: pb.SetOwnerQuotasRequest
    ) -> pb.SetOwnerQuotasResponse:
        quotas = {
            field: _check_number(field, getattr(request, field), 0, limit)
            for field, limit in MOST_QUOTAS.items()
            if request.HasField(field)
        }
        try:
            await self._owners.set_quotas(request.name, quotas)
        except OwnerAbsent:
            raise owner_not_found(request.name) from None
        return pb.SetOwnerQuotasResponse(owner=await self._show_owner(await self._find_owner(request.name)))

    async def _find_owner(self, name: str) -> StoredOwner:
        owner = await self._owners.get_owner(name)
        if owner is None:
            raise owner_not_found(name)
        return owner

    async def _show_owner(self, owner: StoredOwner) -> owner_pb2.Owner:
        [room] = await self._owner_matches.measure_room([owner.name], self._limits)
        return owner_pb2.Owner(
            name=owner.name,
            bots=owner.bots,
            most_bots=owner.most_bots,
            most_matches=owner.most_matches,
            most_requests=owner.most_requests,
            create_time=timestamp(owner.create_ms * 1000),
            most_matches_at_once=_quota_of(owner.most_matches_at_once, self._limits.at_once),
            most_matches_a_day=_quota_of(owner.most_matches_a_day, self._limits.a_day),
            most_watches=_quota_of(owner.most_watches, self._limits.watches),
            matches=room.open_matches,
            day_matches=room.day_matches,
        )


def owner_not_found(name: str) -> Refusal:
    return Refusal("NOT_FOUND", f"there is no owner {name[:80]!r}")


def registration_closed() -> Refusal:
    """Return the refusal where the operator has not turned registration by owners on."""
    why = "only the operator registers bots here; it has not turned --registration invite on"
    return Refusal("NOT_ALLOWED", why)


def _check_owner_id(owner_id: str) -> str:
    if not _OWNER_ID.fullmatch(owner_id):
        message = (
            f"owner_id is {owner_id[:80]!r}; it must be 1 to 40 of a-z, 0-9 and -, and begin with a letter"
        )
        raise bad_argument("owner_id", message)
    if owner_id.startswith(ISSUER_OWNER_PREFIX):
        why = f"owner_id begins with {ISSUER_OWNER_PREFIX}, as only those of owners with an ID token do; choose another"
        raise bad_argument("owner_id", why)
    return owner_id


def _check_number(field: str, number: int, least: int, most: int) -> int:
    if not least <= number <= most:
        raise bad_argument(field, f"{field} is {number}; {least} to {most} are allowed")
    return number


def _quota_of(own: int | None, default: int) -> int | None:
    return own if own is not None else default or None


def _invite_resource(stored: StoredInvite) -> owner_pb2.Invite:
    invite = owner_pb2.Invite(
        name=stored.name,
        most_bots=stored.most_bots,
        most_matches=stored.most_matches,
        uses=stored.uses,
        used=stored.used,
        create_time=timestamp(stored.create_ms * 1000),
        expire_time=timestamp(stored.expire_ms * 1000),
    )
    if stored.revoke_ms:
        invite.revoke_time.CopyFrom(timestamp(stored.revoke_ms * 1000))
    return invite


class OwnerRequests:
    """Limits how often an owner, the holder of an invite, or a bot may change something. The audit log has a line for each change.

    Owners are counted in Redis, for all processes. The others are counted in the memory of this process.
    """

    def __init__(self, owners: Owners, per_minute: float, now: Callable[[], float]) -> None:
        """`per_minute` changes in a minute, all of which may come at once; 0 for no limit. `now` returns seconds."""
        self._owners = owners
        self._per_minute = per_minute
        self._buckets = TokenBuckets(per_minute / 60, per_minute, now) if per_minute else None
        self._shown: LRUCache[str, RateLimit | None] = LRUCache(MOST_BUCKETS)

    def show_limit(self, caller: Caller) -> RateLimit | None:
        """Return the limit of the caller as its last change left it; `None` for a caller without one."""
        return self._shown.get(caller.owner or caller.name)

    async def admit_request(self, caller: Caller, request: Any) -> None:
        """Count one change by the caller. Raises `Refusal` QUOTA_EXCEEDED if its quota is used up, or StoreUnavailable."""
        if caller.owner:
            wait_s, quota, full_s = await self._owners.count_request(caller.owner, self._per_minute)
            left = max(0, int(quota - full_s * quota / 60))
            self._shown[caller.owner] = RateLimit(quota, 60, left, math.ceil(full_s)) if quota else None
        elif caller.bot or Access.JOIN in caller.scopes:
            wait_s = self._count_here(caller.name)
        else:
            return
        if wait_s:
            why = "you have made as many changes in the last minute as your quota allows; wait, and try again"
            raise Refusal("QUOTA_EXCEEDED", why, retry_after=str(math.ceil(wait_s)))

    def _count_here(self, name: str) -> float:
        if self._buckets is None:
            return 0.0
        wait_s = self._buckets.measure_wait(name, 1.0)
        if not wait_s:
            self._buckets.take_units(name, 1.0)
        self._shown[name] = self._buckets.show_limit(name)
        return wait_s


# Counts the watches that an owner and its bots have open, at all processes together.

WATCH_LEASE_MS = 60_000
"""Milliseconds for which a watch is counted after its process has died."""
WATCH_RENEW_S = 20.0
"""Seconds between two renewals of that lease."""


class OwnerWatches:
    """The watches of owners at one process. Callers that are neither an owner nor a bot of one are not counted here."""

    def __init__(self, store: Store, limits: OwnerLimits) -> None:
        """`limits` are the quotas of owners that have none of their own."""
        self._bots = store.bots
        self._owner_matches = store.owner_matches
        self._limits = limits

    @asynccontextmanager
    async def count_watch(self, caller: Caller) -> AsyncIterator[None]:
        """Count a watch inside this block. Raises `Refusal` QUOTA_EXCEEDED if the caller's owner has as many as it may have."""
        owner = await self._owner_of(caller)
        if not owner:
            yield
            return
        watch = secrets.token_hex(8)
        if not await self._open_watch(owner, watch):
            message = (
                "you and your bots watch as many matches as your quota allows; end a watch, and try again"
            )
            raise Refusal("QUOTA_EXCEEDED", message, retry_after="5")
        renewing = asyncio.create_task(self._renew_lease(owner, watch))
        try:
            yield
        finally:
            await cancel_until_ended([renewing])
            with suppress(StoreUnavailable):  # then its lease ends by itself
                await self._owner_matches.close_watch(owner, watch)

    async def _owner_of(self, caller: Caller) -> str:
        if not caller.bot:
            return caller.owner
        owner = (await self._bots.owners_of([caller.bot]))[caller.bot]
        return owner if owner.startswith(OWNERS_PREFIX) else ""

    async def _open_watch(self, owner: str, watch: str) -> bool:
        return await self._owner_matches.open_watch(owner, watch, WATCH_LEASE_MS, self._limits)

    async def _renew_lease(self, owner: str, watch: str) -> None:
        while True:
            await asyncio.sleep(WATCH_RENEW_S)
            with suppress(StoreUnavailable):
                await self._open_watch(owner, watch)
