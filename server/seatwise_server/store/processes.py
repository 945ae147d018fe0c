"""Which processes live: heartbeats in Redis, the rule for calling one dead, and orders to each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from seatwise_server.store import keys
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import (
    LONGEST_BLOCK_MS,
    RedisClient,
    as_pairs,
    call,
    call_blocking,
    call_many,
)

PROCESSES_KEPT_MS = 300_000
"""Heartbeats and orders of a process that is no more go after this; it is no rule for who lives."""

_MOST_ORDERS = 10_000


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a process says of itself."""

    count: int
    """Rises with every beat; only its change means anything."""
    address: str
    has_left: bool
    """It has stopped in order and let go of everything."""
    tables: int = 0
    """Matches it has."""
    free: int = 0
    """Matches it could take besides; none while it drains."""
    is_draining: bool = False
    """It takes no new matches."""
    beat_ms: int = field(default=0, compare=False)
    """When it beat last, on Redis's clock; for people to read."""


@dataclass(frozen=True, slots=True)
class Order:
    """Something one process is asked to do; it may come twice."""

    order_id: str
    order: bytes


class Processes:
    """All processes on one Redis. A process has a new name with every start."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def write_heartbeat(
        self, process: str, address: str, tables: int = 0, free: int = 0, *, is_draining: bool = False
    ) -> int:
        """One heartbeat, once a second; answers its count."""
        named = [keys.process_beat(process), keys.PROCESS_INDEX]
        facts = ("address", address, "tables", tables, "free", free, "draining", int(is_draining))
        return int(
            await scripts.run_script(self._client, "process_beat", named, process, PROCESSES_KEPT_MS, *facts)
        )

    async def deregister_process(self, process: str) -> bool:
        """Says that the process has let go of everything, so that others need not wait; False when unknown.

        Others may say it of a process that they know for certain to be dead.
        """
        args = (process, keys.FAREWELLS_CHANNEL)
        return bool(
            await scripts.run_script(self._client, "process_farewell", [keys.process_beat(process)], *args)
        )

    async def read_heartbeats(self) -> dict[str, Heartbeat]:
        """The last heartbeat of every process that beat within the last minutes."""
        answer = await call(self._client, "ZRANGE", keys.PROCESS_INDEX, 0, -1, "WITHSCORES")
        found = [(name.decode(), int(score)) for name, score in as_pairs(answer)]
        commands = [("HMGET", keys.process_beat(name), *_FACTS) for name, _ in found]
        answers = await call_many(self._client, commands) if commands else []
        return {
            name: _parse_heartbeat(beat_ms, *facts)
            for (name, beat_ms), facts in zip(found, answers, strict=True)
            if facts[0] is not None
        }

    async def forget_process(self, process: str) -> None:
        """Takes a dead process off the books, with its orders; nothing happens when it is not on them."""
        gone = (keys.process_beat(process), keys.process_orders(process))
        commands = [("ZREM", keys.PROCESS_INDEX, process), *(("UNLINK", name) for name in gone)]
        await call_many(self._client, commands)

    async def send_order(self, process: str, order: bytes) -> str:
        """Leaves an order for a process and answers its id; one that is no more never reads it."""
        key = keys.process_orders(process)
        added, _ = await call_many(
            self._client,
            [
                ("XADD", key, "MAXLEN", "~", _MOST_ORDERS, "*", "o", order),
                ("PEXPIRE", key, PROCESSES_KEPT_MS),
            ],
        )
        return str(added.decode())

    async def read_orders(self, process: str, after_id: str = "0", block_ms: int = 0) -> list[Order]:
        """The orders behind the last one carried out, which is dropped with all before it; empty when none.

        Waits at most 5 s. An order whose reply was lost comes again, so none is missed.
        """
        key = keys.process_orders(process)
        await call(self._client, "XTRIM", key, "MINID", after_id)
        block = ("BLOCK", min(block_ms, LONGEST_BLOCK_MS)) if block_ms > 0 else ()
        answer = await call_blocking(self._client, "XREAD", *block, "STREAMS", key, after_id)
        found = [entry for _, entries in as_pairs(answer or []) for entry in entries]
        return [Order(order_id.decode(), fields[b"o"]) for order_id, fields in found]


_FACTS = ("count", "address", "left", "tables", "free", "draining")


def _parse_heartbeat(
    beat_ms: int, count: bytes, address: bytes | None, left: bytes | None, *facts: bytes | None
) -> Heartbeat:
    tables, free, draining = (int(fact or 0) for fact in facts)
    return Heartbeat(
        int(count), (address or b"").decode(), left is not None, tables, free, bool(draining), beat_ms
    )


@dataclass(slots=True)
class _Watched:
    count: int | None
    since_s: float
    """When we first saw this count, or later, if Redis was slow since then."""


class DeathWatch:
    """Says which processes are dead, from what this process itself has seen; it has no clock of its own.

    Dead is whose heartbeat stood still for the whole lease while Redis answered promptly all the time: after
    an answer that was slow, or observations that were far apart, everybody gets a whole lease again. A
    process that is only mentioned (it owns a job) and has no heartbeat is treated like one that stands still.
    """

    def __init__(self, lease_s: float = 5.0, prompt_s: float = 1.0, apart_s: float = 2.5) -> None:
        self._lease_s = lease_s
        self._prompt_s = prompt_s
        self._apart_s = apart_s
        self._watched: dict[str, _Watched] = {}
        self._left: frozenset[str] = frozenset()
        self._last_s: float | None = None

    def observe_heartbeats(
        self,
        asked_s: float,
        answered_s: float,
        beats: Mapping[str, Heartbeat],
        mentioned: Collection[str] = (),
    ) -> None:
        """Takes in one look at all heartbeats, with the monotonic times of asking and of the answer."""
        is_prompt = answered_s - asked_s <= self._prompt_s
        is_dense = self._last_s is None or asked_s - self._last_s <= self._apart_s
        counts = {name: beat.count for name, beat in beats.items()} | {
            name: None for name in mentioned if name not in beats
        }
        fresh = answered_s if not (is_prompt and is_dense) else None
        self._watched = {
            name: self._note_seen(name, count, answered_s, fresh) for name, count in counts.items()
        }
        self._left = frozenset(name for name, beat in beats.items() if beat.has_left)
        self._last_s = answered_s

    def _note_seen(self, name: str, count: int | None, now_s: float, fresh_s: float | None) -> _Watched:
        before = self._watched.get(name)
        if before is None or before.count != count:
            return _Watched(count, now_s)
        return before if fresh_s is None else _Watched(count, fresh_s)

    def dead_processes(self) -> frozenset[str]:
        """Those dead at the last observation, and those that have left in order."""
        if self._last_s is None:
            return frozenset()
        still = (name for name, it in self._watched.items() if self._last_s - it.since_s >= self._lease_s)
        return self._left | frozenset(still)
