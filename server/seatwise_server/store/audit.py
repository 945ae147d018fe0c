"""The audit log: one hash-chained list of what admins did, with pseudonyms whose meaning can be deleted."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from seatwise.audit_chain import FIRST_LINK, write_audit_line
from seatwise_server.store import keys
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, call, call_many
from seatwise_server.store.redis.clock import now_ms

MOST_ENTRIES = 100_000
"""The log keeps about so many entries (30 MB), and drops older ones."""
KEEP_PEOPLE_MS = 400 * 86_400_000
KEEP_ADDRESSES_MS = 30 * 86_400_000
"""How long the meaning of a pseudonym is kept after its last use, in milliseconds."""
MOST_APPEND_ATTEMPTS = 20

PERSON, ADDRESS = "person", "address"


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One entry to write. `who` and `address` are real: the log gets pseudonyms for them."""

    who: str
    """A bot, or the name of a person; empty if it is not known."""
    address: str
    method: str
    thing: str
    outcome: str


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One entry as it was written."""

    seq: int
    line: str
    """Canonical JSON, with pseudonyms."""
    who: str
    """The name behind the pseudonym; empty if it was deleted."""
    address: str


class AuditLog:
    """The audit log on one Redis. It is append-only: there is no method that changes or removes an entry."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._lock = asyncio.Lock()

    async def append_event(self, event: AuditEvent) -> None:
        """Writes the event; returns when it is in the log. After a lost reply it may be there twice."""
        who = event.who if event.who.startswith("bots/") else await self.pseudonym_of(PERSON, event.who)
        address = await self.pseudonym_of(ADDRESS, event.address)
        await self._note_address(who, address)
        fields = {
            "who": who,
            "from": address,
            "method": event.method,
            "thing": event.thing,
            "outcome": event.outcome,
        }
        async with self._lock:
            for _ in range(MOST_APPEND_ATTEMPTS):
                if await self._append_next(fields):
                    return
        raise StoreUnavailable("too many processes write to the audit log at once")

    async def _append_next(self, fields: dict[str, str]) -> bool:
        """Appends to the entry that is the last one now; returns False if another process was quicker."""
        last = await call(self._client, "XREVRANGE", keys.AUDIT_LOG, "+", "-", "COUNT", 1)
        seq, previous = _read_link(last[0]) if last else (0, FIRST_LINK)
        line, _ = write_audit_line(seq + 1, previous, {"at_ms": await now_ms(self._client), **fields})
        args = (seq, MOST_ENTRIES, line)
        return bool(await scripts.run_script(self._client, "audit_append", [keys.AUDIT_LOG], *args))

    async def pseudonym_of(self, kind: str, value: str) -> str:
        """Returns the pseudonym of a person or an address, and keeps its meaning for a while; empty for an empty value."""
        if not value:
            return ""
        keep_ms = KEEP_PEOPLE_MS if kind == PERSON else KEEP_ADDRESSES_MS
        key, fresh = keys.audit_pseudonym(kind, value), f"{kind}-{_random_text()}"
        await call(self._client, "SET", key, fresh, "PX", keep_ms, "NX")
        pseudonym = (await call(self._client, "GET", key) or fresh.encode()).decode()
        await call(self._client, "PEXPIRE", key, keep_ms)
        await call(self._client, "SET", keys.audit_meaning(pseudonym), value, "PX", keep_ms)
        return pseudonym

    async def _note_address(self, who: str, address: str) -> None:
        if who and address:
            await call(self._client, "SADD", keys.audit_addresses(who), address)
            await call(self._client, "PEXPIRE", keys.audit_addresses(who), KEEP_PEOPLE_MS)

    async def read_page(self, after_seq: int, count: int) -> list[AuditLine]:
        """Returns the entries after that seq, oldest first."""
        args = (f"{after_seq + 1}-0", "+", "COUNT", count)
        found = await call(self._client, "XRANGE", keys.AUDIT_LOG, *args)
        lines = [fields[b"e"].decode() for _, fields in found]
        entries = [json.loads(line) for line in lines]
        pairs = [(entry["who"], entry["from"]) for entry in entries]
        meanings = await self._read_meanings([it for pair in pairs for it in pair])
        return [
            AuditLine(
                entry["seq"], line, who if who.startswith("bots/") else meanings[who], meanings[address]
            )
            for line, entry, (who, address) in zip(lines, entries, pairs, strict=True)
        ]

    async def _read_meanings(self, pseudonyms: Sequence[str]) -> dict[str, str]:
        wanted = sorted(set(pseudonyms))
        commands = [("GET", keys.audit_meaning(it)) for it in wanted]
        answers = await call_many(self._client, commands) if commands else []
        return {it: (answer or b"").decode() for it, answer in zip(wanted, answers, strict=True)}

    async def forget_person(self, name: str, pseudonym: str) -> None:
        """Deletes the meaning of a person's pseudonym, and of the addresses from which the person has called."""
        await call(self._client, "UNLINK", keys.audit_pseudonym(PERSON, name))
        await self.forget_caller(pseudonym)
        await call(self._client, "UNLINK", keys.audit_meaning(pseudonym))

    async def forget_caller(self, who: str) -> None:
        """Deletes the meanings of the addresses from which a bot or a person has called. Repeatable."""
        for pseudonym in await call(self._client, "SMEMBERS", keys.audit_addresses(who)):
            address = await call(self._client, "GET", keys.audit_meaning(pseudonym.decode()))
            if address:
                await call(self._client, "UNLINK", keys.audit_pseudonym(ADDRESS, address.decode()))
            await call(self._client, "UNLINK", keys.audit_meaning(pseudonym.decode()))
        await call(self._client, "UNLINK", keys.audit_addresses(who))


def _read_link(entry: tuple[bytes, dict[bytes, bytes]]) -> tuple[int, str]:
    return int(entry[0].partition(b"-")[0]), json.loads(entry[1][b"e"])["chain"]


def _random_text() -> str:
    return base64.b32encode(secrets.token_bytes(10)).decode().lower()
