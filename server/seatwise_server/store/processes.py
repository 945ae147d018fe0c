"""The processes: their heartbeats and orders, and leases of work that only one of them does at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from seatwise_server.game_choice import ALL_KINDS, GameKind
from seatwise_server.store import keys
from seatwise_server.store.redis.client import LONGEST_BLOCK_MS, as_pairs
from seatwise_server.store.redis.scripts import StorePart

PROCESSES_KEPT_MS = 300_000
"""For how long heartbeats and orders of a dead process are kept. It does not decide which processes are alive."""

_MOST_KEPT_ORDERS = 10_000

_LEFT, _DEAD = "1", "dead"
"""The values of the field `left`: the process has stopped in order, or its parent saw it die."""

_FACTS = ("count", "address", "left", "tables", "free", "draining", "kinds")


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The facts that a process reports about itself."""

    count: int
    """Rises with every heartbeat; it only matters that it changes."""
    address: str
    has_left: bool
    """Whether the process has given up all its matches: it has stopped in an orderly way, or its parent saw it die."""
    tables: int = 0
    """The number of matches that it owns."""
    free: int = 0
    """The number of further matches that it could take; 0 while it drains."""
    is_draining: bool = False
    """Whether it takes no new matches."""
    beat_ms: int = field(default=0, compare=False)
    """The time of its last heartbeat, on Redis's clock; only for display."""
    has_died: bool = False
    """Whether its parent saw it die."""
    kinds: tuple[GameKind, ...] = ALL_KINDS
    """The kinds of games that it plays."""


@dataclass(frozen=True, slots=True)
class Order:
    """Something that a process is asked to do; it may arrive twice."""

    order_id: str
    order: bytes


class Processes(StorePart):
    """All processes on one Redis. A process gets a new name at every start."""

    async def write_heartbeat(
        self,
        process: str,
        address: str,
        tables: int = 0,
        free: int = 0,
        *,
        is_draining: bool = False,
        kinds: Sequence[GameKind] = ALL_KINDS,
    ) -> int:
        """Write one heartbeat, to be called once a second; returns the heartbeat's count."""
        named = [keys.process_beat(process), keys.PROCESS_INDEX]
        facts: list[str | int] = ["address", address, "tables", tables, "free", free]
        facts += ["draining", int(is_draining), "kinds", " ".join(kinds)]
        return int(await self._run("process_beat", named, process, PROCESSES_KEPT_MS, *facts))

    async def deregister_process(self, process: str, *, is_dead: bool = False) -> bool:
        """Publish that the process has given up all its matches, so that others need not wait for its lease to end.

        Return False if the process is unknown. Its parent may call this with `is_dead` when the system has reported its end. A
        process that has stopped in order stays so.
        """
        args = (process, keys.HANDOVERS_CHANNEL, _DEAD if is_dead else _LEFT)
        return bool(await self._run("process_deregister", [keys.process_beat(process)], *args))

    async def read_heartbeats(self) -> dict[str, Heartbeat]:
        """Return the last heartbeat of every process that wrote one within `PROCESSES_KEPT_MS`."""
        answer = await self._call("ZRANGE", keys.PROCESS_INDEX, 0, -1, "WITHSCORES")
        found = [(name.decode(), int(score)) for name, score in as_pairs(answer)]
        answers = await self._call_many([("HMGET", keys.process_beat(name), *_FACTS) for name, _ in found])
        return {
            name: _parse_heartbeat(beat_ms, *facts)
            for (name, beat_ms), facts in zip(found, answers, strict=True)
            if facts[0] is not None
        }

    async def send_order(self, process: str, order: bytes) -> None:
        """Send an order to a process; a dead process never reads it."""
        key = keys.process_orders(process)
        add = ("XADD", key, "MAXLEN", "~", _MOST_KEPT_ORDERS, "*", "o", order)
        await self._call_many([add, ("PEXPIRE", key, PROCESSES_KEPT_MS)])

    async def read_orders(self, process: str, after_id: str = "0", block_ms: int = 0) -> list[Order]:
        """Return the orders after `after_id`, the last one that was carried out, which is dropped with all before it.

        Wait at most 5 s; empty if there are none. An order whose reply was lost is returned again, so none is missed.
        """
        key = keys.process_orders(process)
        await self._call("XTRIM", key, "MINID", after_id)
        block = ("BLOCK", min(block_ms, LONGEST_BLOCK_MS)) if block_ms > 0 else ()
        answer = await self._client.call_blocking("XREAD", *block, "STREAMS", key, after_id)
        found = [entry for _, entries in as_pairs(answer or []) for entry in entries]
        return [Order(order_id.decode(), fields[b"o"]) for order_id, fields in found]


def _parse_heartbeat(
    beat_ms: int, count: bytes, address: bytes | None, left: bytes | None, *facts: bytes | None
) -> Heartbeat:
    *numbers, named = facts
    tables, free, draining = (int(fact or 0) for fact in numbers)
    return Heartbeat(
        int(count),
        (address or b"").decode(),
        has_left=left is not None,
        tables=tables,
        free=free,
        is_draining=bool(draining),
        beat_ms=beat_ms,
        has_died=left == _DEAD.encode(),
        kinds=tuple(kind for kind in GameKind if named is None or kind.encode() in named.split()),
    )


@dataclass(slots=True)
class _Watched:
    count: int | None
    since_s: float
    """The time at which this count was first seen; or a later time, if Redis was slow since then."""


class DeathWatch:
    """Decides which processes are dead, by what this process itself has observed. It has no clock of its own.

    A process is dead if its heartbeat did not change for the whole lease while Redis answered promptly all the time. After a
    slow answer, or observations that were too far apart, every process gets a whole new lease. A process that is only mentioned
    (it owns a job) and has no heartbeat counts as one whose heartbeat does not change.
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
        """Record one reading of all heartbeats, with the monotonic times in seconds of the question and of the answer."""
        is_prompt = answered_s - asked_s <= self._prompt_s
        is_dense = self._last_s is None or asked_s - self._last_s <= self._apart_s
        counts = {**dict.fromkeys(mentioned), **{name: beat.count for name, beat in beats.items()}}
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
        """Return the processes that were dead at the last observation, and those that have stopped in an orderly way."""
        if self._last_s is None:
            return frozenset()
        still = (name for name, it in self._watched.items() if self._last_s - it.since_s >= self._lease_s)
        return self._left | frozenset(still)


class Leases(StorePart):
    """The leases on one Redis. A process can stall and continue after its lease, so the work must tolerate being done twice."""

    async def take_lease(self, work: str, process: str, lease_ms: int) -> bool:
        """Acquire or extend the lease; returns False if another process has it."""
        return bool(await self._run("lease_hold", [keys.work_lease(work)], process, lease_ms))

    async def release_lease(self, work: str, process: str) -> bool:
        """Release the lease, so that others need not wait for its end; returns False if another process has it."""
        return bool(await self._run("lease_hold", [keys.work_lease(work)], process, 0))

    async def read_holder(self, work: str) -> tuple[str, int] | None:
        """Return the holder and the remaining milliseconds; None if the lease is free."""
        process = await self._call("GET", keys.work_lease(work))
        left_ms = await self._call("PTTL", keys.work_lease(work))
        return (process.decode(), max(0, int(left_ms))) if process is not None else None
