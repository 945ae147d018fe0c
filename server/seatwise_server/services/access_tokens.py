"""AccessService: issues access tokens and takes them away, shows the audit log, and erases owners."""

from __future__ import annotations

from collections.abc import Iterable

from seatwise.v1 import access_service_pb2 as pb
from seatwise.v1 import access_token_pb2
from seatwise_server import resources
from seatwise_server.refusal import Refusal, bad_argument
from seatwise_server.resource_names import former_owner_forms, unify_owner
from seatwise_server.services.access import SCOPES_OF_BOTS, SCOPES_OF_OWNERS, SCOPES_OF_PEOPLE, Access
from seatwise_server.services.authentication import LOCAL_ADMIN, Caller
from seatwise_server.services.bots import LONGEST_OWNER, find_bot
from seatwise_server.services.owners import owner_not_found
from seatwise_server.services.request_fields import (
    LONGEST_REQUEST_ID,
    check_text,
    page_size,
    parse_position,
    read_owner,
    refusing_store_errors,
)
from seatwise_server.store import OWNERS_PREFIX, Store, StoredAccessToken
from seatwise_server.store.redis.durability import rewrite_files

LONGEST_HOLDER = 80
LONGEST_LIFETIME_S = 10 * 366 * 86_400

_SCOPE_NAMES = {
    number: name.removeprefix("SCOPE_").lower() for name, number in access_token_pb2.AccessToken.Scope.items()
}


class AccessService:
    """See access_service.proto."""

    def __init__(self, store: Store) -> None:
        self._bots = store.bots
        self._access_tokens = store.access_tokens
        self._audit = store.audit
        self._owners = store.owners
        self._client = store.client

    async def create_access_token(
        self, caller: Caller, request: pb.CreateAccessTokenRequest
    ) -> pb.CreateAccessTokenResponse:
        check_text("request_id", request.request_id, LONGEST_REQUEST_ID)
        request.holder = read_owner("holder", request.holder, LONGEST_HOLDER, least=1)
        if not 0 <= request.lifetime_s <= LONGEST_LIFETIME_S:
            why = f"lifetime_s is {request.lifetime_s}; 0 to {LONGEST_LIFETIME_S} are allowed"
            raise bad_argument("lifetime_s", why)
        scopes = await self._check_scopes(request.holder, request.scopes)
        with refusing_store_errors():
            issued = await self._access_tokens.create_token(
                request.holder, scopes, request.lifetime_s * 1000, request.request_id
            )
        access_token = resources.access_token_resource(issued.token)
        return pb.CreateAccessTokenResponse(access_token=access_token, token=issued.text)

    async def list_access_tokens(
        self, caller: Caller, request: pb.ListAccessTokensRequest
    ) -> pb.ListAccessTokensResponse:
        """See access_service.proto. A page token is the name of the last token looked at: an owner is shown its own only."""
        with refusing_store_errors():
            tokens, token = await self._access_tokens.list_page(
                page_size(request.page_size), request.page_token
            )
        access_tokens = [resources.access_token_resource(it) for it in tokens if _may_manage(caller, it)]
        return pb.ListAccessTokensResponse(access_tokens=access_tokens, next_page_token=token)

    async def rotate_access_token(
        self, caller: Caller, request: pb.RotateAccessTokenRequest
    ) -> pb.RotateAccessTokenResponse:
        await self._check_holder(caller, request.name)
        with refusing_store_errors():
            issued = await self._access_tokens.rotate_token(request.name)
        access_token = resources.access_token_resource(issued.token)
        return pb.RotateAccessTokenResponse(access_token=access_token, token=issued.text)

    async def revoke_access_token(
        self, caller: Caller, request: pb.RevokeAccessTokenRequest
    ) -> pb.RevokeAccessTokenResponse:
        await self._check_holder(caller, request.name)
        with refusing_store_errors():
            revoked = await self._access_tokens.revoke_token(request.name)
        return pb.RevokeAccessTokenResponse(access_token=resources.access_token_resource(revoked))

    async def _check_holder(self, caller: Caller, name: str) -> None:
        """Raise `Refusal` NOT_FOUND if the caller is an owner, and the token is not its own."""
        if caller.owner:
            token = await self._access_tokens.find(name)
            if token is None or not _may_manage(caller, token):
                raise Refusal("NOT_FOUND", f"you have no {name[:80]!r}")

    async def list_audit_entries(
        self, caller: Caller, request: pb.ListAuditEntriesRequest
    ) -> pb.ListAuditEntriesResponse:
        """See access_service.proto. A page token is the seq of the last entry shown."""
        size = page_size(request.page_size)
        found = await self._audit.read_page(parse_position(request.page_token), size + 1)
        return pb.ListAuditEntriesResponse(
            entries=[pb.AuditEntry(line=it.line, who=it.who, address=it.address) for it in found[:size]],
            next_page_token=str(found[size - 1].seq) if len(found) > size else "",
        )

    async def erase_owner(self, caller: Caller, request: pb.EraseOwnerRequest) -> pb.EraseOwnerResponse:
        """See access_service.proto. Each step may be repeated. The mapping goes last, and all of it at once."""
        owner = read_owner("owner", request.owner, LONGEST_OWNER, least=1)
        forms = former_owner_forms(request.owner)
        pseudonym = await self._audit.pseudonym_of_person(owner)
        tokens = await self._erase_holder(owner, pseudonym)
        bots = set()
        if owner.startswith(OWNERS_PREFIX):
            bots = await self._erase_owner_at(owner, await self._owners.list_bots(owner))
            await self._owners.erase_owner(owner)  # it registers no bot from here on
        bots |= await self._erase_owner_of_bots(owner)
        for form in forms:
            await self._audit.forget_person(form)
        await rewrite_files(self._client)
        return pb.EraseOwnerResponse(bots=sorted(bots), access_tokens=tokens)

    async def _erase_holder(self, holder: str, pseudonym: str) -> list[str]:
        names, page_token = [], ""
        while True:
            tokens, page_token = await self._access_tokens.list_page(1000, page_token)
            for token in tokens:
                if unify_owner(token.holder) == holder:
                    await self._access_tokens.revoke_token(token.name)
                    await self._access_tokens.erase_holder(token.name, token.holder, pseudonym)
                    await self._audit.forget_person(token.holder)
                    names.append(token.name)
            if not page_token:
                return names

    async def _erase_owner_at(self, owner: str, bots: Iterable[str]) -> set[str]:
        """Erase the owner at those of the bots that are its. Also at one that is in no list: its registration was cut off."""
        stored = await self._bots.owners_of([*bots])
        named = {bot: form for bot, form in stored.items() if unify_owner(form) == owner}
        for bot, form in named.items():
            await self._audit.forget_bot(bot)
            await self._bots.erase_owner(bot, form)
        return {*named}

    async def _erase_owner_of_bots(self, owner: str) -> set[str]:
        names, page_token = set[str](), ""
        while True:
            page = await self._bots.list_page(1000, page_token)
            names |= await self._erase_owner_at(owner, [it.bot for it in page.bots])
            if not page_token:
                return names

    async def _check_scopes(self, holder: str, numbers: Iterable[int]) -> frozenset[str]:
        """Return the names of the scopes. Raises `Refusal` for scopes that this holder cannot have, and for unknown bots."""
        if holder == LOCAL_ADMIN:
            why = f"holder is {holder}, the holder of the local admin token; choose another"
            raise bad_argument("holder", why)
        kind, fitting = await self._scopes_for(holder)
        scopes = {_SCOPE_NAMES.get(number, "") for number in numbers}
        names = {it.value for it in fitting}
        if not scopes or scopes - names:
            why = f"scopes must be one or more of {', '.join(sorted(names))} for {kind}"
            raise bad_argument("scopes", why)
        return frozenset(scopes)

    async def _scopes_for(self, holder: str) -> tuple[str, frozenset[Access]]:
        """Return what the holder is, and the scopes that it may have. Raises `Refusal` if there is no such bot or owner."""
        if holder.startswith("bots/"):
            await find_bot(self._bots, holder)
            return "a bot", SCOPES_OF_BOTS
        if holder.startswith(OWNERS_PREFIX):
            if await self._owners.get_owner(holder) is None:
                raise owner_not_found(holder)
            return "an owner", SCOPES_OF_OWNERS
        return "a person", SCOPES_OF_PEOPLE


def _may_manage(caller: Caller, token: StoredAccessToken) -> bool:
    """Whether the caller is an admin, or an owner and this is its own token."""
    return not caller.owner or token.holder == caller.owner
