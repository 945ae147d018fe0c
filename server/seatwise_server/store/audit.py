"""The audit log: one hash-chained list of what admins did, with pseudonyms whose meaning can be deleted."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from dataclasses import dataclass

from seatwise.season.audit_chain import FIRST_LINK, write_audit_line
from seatwise_server.store import keys
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.redis.client import RedisClient
from seatwise_server.store.redis.scripts import StorePart, now_ms

MOST_ENTRIES = 100_000
"""The log keeps about so many entries (30 MB), and drops older ones."""
KEEP_PEOPLE_MS = 400 * 86_400_000
KEEP_ADDRESSES_MS = 30 * 86_400_000
"""How long the meaning of a pseudonym is kept after its last use, in milliseconds."""
ERASED_NOTE_MS = 600_000
"""How long it is noted that a person was erased, in milliseconds: no process stands still for longer and goes on."""
MOST_APPEND_ATTEMPTS = 20

PERSON, ADDRESS = "person", "address"
_BOTS = "bots/"


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


class AuditLog(StorePart):
    """The audit log on one Redis. It is append-only: there is no method that changes or removes an entry."""

    def __init__(self, client: RedisClient) -> None:
        super().__init__(client)
        self._lock = asyncio.Lock()

    async def append_event(self, event: AuditEvent) -> None:
        """Write the event; returns when it is in the log. After a lost reply it may be there twice."""
        who, address = await self._name_caller(event.who, event.address)
        told = {"method": event.method, "thing": event.thing, "outcome": event.outcome}
        async with self._lock:
            for _ in range(MOST_APPEND_ATTEMPTS):
                if await self._append_next({"who": who, "from": address, **told}):
                    return
        raise StoreUnavailable("too many processes write to the audit log at once")

    async def _append_next(self, fields: dict[str, str]) -> bool:
        """Append to the entry that is the last one now; returns False if another process was quicker."""
        last = await self._call("XREVRANGE", keys.AUDIT_LOG, "+", "-", "COUNT", 1)
        seq, previous = _read_link(*last[0]) if last else (0, FIRST_LINK)
        line, _ = write_audit_line(seq + 1, previous, {"at_ms": await now_ms(self._client), **fields})
        return bool(await self._run("audit_append", [keys.AUDIT_LOG], seq, MOST_ENTRIES, line))

    async def pseudonym_of_person(self, name: str) -> str:
        """Return the pseudonym of a person, and keep its meaning for a while; empty for an empty name."""
        return (await self._name_caller(name, ""))[0]

    async def _name_caller(self, who: str, address: str) -> tuple[str, str]:
        """Return caller and address as they are written: with pseudonyms, except for a bot."""
        is_bot = who.startswith(_BOTS)
        person = "" if is_bot else who
        of_person = [keys.audit_pseudonym(PERSON, person), keys.audit_erased(person)]
        named = [*of_person, keys.audit_pseudonym(ADDRESS, address)]
        fresh = [
            f"{kind}-{base64.b32encode(secrets.token_bytes(10)).decode().lower()}"
            for kind in (PERSON, ADDRESS)
        ]
        args = (person, fresh[0], KEEP_PEOPLE_MS, address, fresh[1], KEEP_ADDRESSES_MS, who if is_bot else "")
        prefixes = (keys.audit_meaning(""), keys.audit_addresses(""))
        answer = await self._run("audit_caller", named, *args, *prefixes)
        return answer[0].decode(), answer[1].decode()

    async def read_page(self, after_seq: int, count: int) -> list[AuditLine]:
        """Return the entries after that seq, oldest first."""
        found = await self._call("XRANGE", keys.AUDIT_LOG, f"{after_seq + 1}-0", "+", "COUNT", count)
        lines = [fields[b"e"].decode() for _, fields in found]
        entries = [json.loads(line) for line in lines]
        pairs = [(entry["who"], entry["from"]) for entry in entries]
        wanted = sorted({it for pair in pairs for it in pair})
        answers = await self._call_many([("GET", keys.audit_meaning(it)) for it in wanted])
        meanings = {it: (answer or b"").decode() for it, answer in zip(wanted, answers, strict=True)}
        return [
            AuditLine(entry["seq"], line, who if who.startswith(_BOTS) else meanings[who], meanings[address])
            for line, entry, (who, address) in zip(lines, entries, pairs, strict=True)
        ]

    async def forget_person(self, name: str) -> None:
        """Delete the meanings of a person's pseudonym, and of the addresses from which the person has called. Repeatable.

        For some minutes the person gets pseudonyms without a meaning: a process may be about to write of it.
        """
        await self._forget(keys.audit_pseudonym(PERSON, name), keys.audit_erased(name))

    async def forget_bot(self, bot: str) -> None:
        """Delete the meanings of the addresses from which a bot has called. Repeatable."""
        await self._forget(keys.audit_addresses(bot))

    async def _forget(self, *named: str) -> None:
        prefixes = (keys.audit_meaning(""), keys.audit_pseudonym(ADDRESS, ""), keys.audit_addresses(""))
        await self._run("audit_forget", [*named], *prefixes, ERASED_NOTE_MS)


def _read_link(place: bytes, entry: dict[bytes, bytes]) -> tuple[int, str]:
    return int(place.partition(b"-")[0]), json.loads(entry[b"e"])["chain"]
