"""Writes what admins do to the audit log, before it is done, and what is refused, before the refusal is sent."""

from __future__ import annotations

import functools
import re
import time
from dataclasses import replace
from typing import Any

import structlog

from seatwise_server.refusal import Refusal
from seatwise_server.resource_names import unify_owner
from seatwise_server.services.access import ACCESS, SCOPES_OF_BOTS, Access
from seatwise_server.services.authentication import Caller
from seatwise_server.services.operations import Operation
from seatwise_server.services.read_budget import is_read
from seatwise_server.store import AuditEvent, AuditLog
from seatwise_server.store.errors import StoreUnavailable

ADMITTED = "admitted"
LONGEST_THING = 300
REFUSALS_A_MINUTE = 60
"""More refusals in a minute are only counted, so that nobody can fill the log."""

_THINGS = ("name", "bot", "match", "ladder", "league", "referee", "bots")
_PORT_SUFFIX = re.compile(r":[0-9]+$")

log = structlog.get_logger()


def is_audited(method: str) -> bool:
    """Return whether a method is an action of admins: it needs a scope of people, and does more than read."""
    return ACCESS[method] not in SCOPES_OF_BOTS | {Access.PUBLIC} and not is_read(method)


class AuditTrail:
    """Writes the audit log of this process."""

    def __init__(self, audit: AuditLog) -> None:
        self._audit = audit
        self._minute = 0
        self._written = 0
        self._unwritten = 0

    async def write_action(self, method: str, caller: Caller, request: Any) -> None:
        """Writes that an action begins. Raises StoreUnavailable; then the action must not be done."""
        thing = await self._thing_of(request)
        await self._audit.append_event(_event(caller.name, caller.peer, method, thing, ADMITTED))

    async def write_refusal(
        self, method: str, name: str, peer: str, reason: str, request: Any = None
    ) -> None:
        """Writes that an action was refused; only counts it if there are too many. Never raises: nothing was done."""
        if not self._may_write():
            self._unwritten += 1
            return
        try:
            if self._unwritten:
                count, self._unwritten = self._unwritten, 0
                event = _event("", "", "", f"{count} refusals", "refused: not written singly")
                await self._audit.append_event(event)
            thing = "" if request is None else await self._thing_of(request)
            await self._audit.append_event(_event(name, peer, method, thing, f"refused: {reason}"))
        except StoreUnavailable:
            log.warning("refusal_not_audited", method=method, reason=reason)

    def _may_write(self) -> bool:
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._written = minute, 0
        self._written += 1
        return self._written <= REFUSALS_A_MINUTE

    async def _thing_of(self, request: Any) -> str:
        """Return what a request is about, without the name of a person."""
        for field in ("holder", "owner"):
            person = getattr(request, field, "")
            if person and not hasattr(request, "bot"):
                is_bot = person.startswith("bots/")
                return person if is_bot else await self._audit.pseudonym_of_person(unify_owner(person))
        for field in _THINGS:
            if thing := getattr(request, field, None):
                text = _text_of(thing)[:LONGEST_THING]
                return await self._audit.pseudonym_of_person(text) if text.startswith("owners/") else text
        return ""


def _event(name: str, peer: str, method: str, thing: str, outcome: str) -> AuditEvent:
    return AuditEvent(name, _PORT_SUFFIX.sub("", peer), method, thing, outcome)


def _text_of(thing: Any) -> str:
    if isinstance(thing, str):
        return thing
    return str(thing.name) if hasattr(thing, "name") else " ".join(map(str, thing))


def audit_operation(operation: Operation, trail: AuditTrail) -> Operation:
    """Return the operation, with an entry of the audit log before it is done, and another if it is refused then."""
    if not is_audited(operation.method):
        return operation
    handle = operation.handle

    @functools.wraps(handle)
    async def handle_audited(caller: Caller, request: Any) -> Any:
        await trail.write_action(operation.method, caller, request)
        try:
            return await handle(caller, request)
        except Refusal as refusal:
            await trail.write_refusal(operation.method, caller.name, caller.peer, refusal.reason, request)
            raise

    return replace(operation, handle=handle_audited)
