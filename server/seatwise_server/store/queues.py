"""Queues: bots that wait for a match, and created matches that wait for their bots. First come, first served, each name once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from seatwise_server.store import keys
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, as_pairs, call, call_many


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A name in a queue, and when it entered, in milliseconds of Redis's clock.

    The queue of created matches holds matches; every other queue holds bots.
    """

    name: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class Proposal:
    """The entries taken off a queue for a match, in the order in which they entered."""

    match: str
    taken_ms: int
    """When they were taken, on Redis's clock. An old proposal is one whose lobby has died."""
    entries: tuple[QueueEntry, ...]


def counts_no_shows(queue: str) -> bool:
    """Whether no-shows count in this queue.

    Ladders count no-shows themselves. The bots of a created match were chosen by its operator.
    """
    return bool(queue) and not queue.startswith(("ladders/", "~"))


class Queues:
    """All queues on one Redis. A queue exists while bots wait in it."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def enter_queue(self, queue: str, name: str) -> QueueEntry:
        """Enters this name and returns its entry; a name that is entered twice keeps its first place."""
        return await self._enter_since(queue, name, "")

    async def enter_all(self, queue: str, bots: Iterable[str]) -> None:
        """Enters all these bots now, like `enter_queue`."""
        named = [keys.queue_waiting(queue)]
        await scripts.run_script_many(self._client, "queue_enter", [(named, (bot, "")) for bot in bots])

    async def give_back(self, queue: str, entry: QueueEntry) -> QueueEntry:
        """Puts an entry back to its old place; if its name has entered again meanwhile, it keeps the new place."""
        return await self._enter_since(queue, entry.name, str(entry.since_ms))

    async def return_all(self, queue: str, entries: Iterable[QueueEntry]) -> None:
        """Puts entries back to their old places; a name that waits further ahead stays there."""
        named = [keys.queue_waiting(queue)]
        calls = [(named, (entry.name, entry.since_ms)) for entry in entries]
        await scripts.run_script_many(self._client, "queue_return", calls)

    async def _enter_since(self, queue: str, name: str, since: str) -> QueueEntry:
        _, since_ms = await scripts.run_script(
            self._client, "queue_enter", [keys.queue_waiting(queue)], name, since
        )
        return QueueEntry(name, int(since_ms))

    async def change_queues(self, bot: str, entered: Iterable[str], left: Iterable[str]) -> None:
        """Enters the bot in some queues, like `enter_queue`, and takes it out of others, in one message."""
        enter = [("queue_enter", [keys.queue_waiting(queue)], (bot, "")) for queue in entered]
        leave = [("ZREM", keys.queue_waiting(queue), bot) for queue in left]
        await scripts.run_and_call(self._client, enter, leave)

    async def leave_queue(self, queue: str, name: str) -> bool:
        """Takes the entry of this name out; returns False if there is none."""
        return bool(await call(self._client, "ZREM", keys.queue_waiting(queue), name))

    async def propose_first(
        self, queue: str, seats: int, patience_ms: int, match: str, without: Collection[str] = ()
    ) -> Proposal | None:
        """Takes the first `seats` bots off the queue, or fewer if the first has waited `patience_ms`; None
        before that.

        Bots that `without` names keep their places in the queue.

        The proposal is kept until `close_proposal` or `dissolve_proposal`. A repeat for the same match returns
        the same proposal.
        """
        named = [keys.queue_waiting(queue), keys.queue_seating(queue)]
        note = await scripts.run_script(
            self._client, "queue_take", named, match, seats, patience_ms, *sorted(without)
        )
        return _parse_proposal(match, note) if note else None

    async def take_these(self, queue: str, match: str, bots: Sequence[str]) -> Proposal | None:
        """Takes these bots off the queue, in this order, as a proposal; None if one of them does not wait (any
        more).

        A repeat for the same match returns the same proposal.
        """
        named = [keys.queue_waiting(queue), keys.queue_seating(queue)]
        note = await scripts.run_script(self._client, "queue_take_these", named, match, *bots)
        return _parse_proposal(match, note) if note else None

    async def propose_these(self, queue: str, name: str) -> Proposal | None:
        """Takes the entry of this name off the queue, whatever its place, as a proposal of the same name; None
        if it does not wait.
        """
        named = [keys.queue_waiting(queue), keys.queue_seating(queue)]
        note = await scripts.run_script(self._client, "queue_pick", named, name)
        return _parse_proposal(name, note) if note else None

    async def adopt_proposal(self, queue: str, match: str, old_ms: int) -> Proposal | None:
        """Adopts a proposal that no lobby has touched for `old_ms`; only the caller may then seat or dissolve
        it.

        Returns None if it is not that old, or gone, or adopted by another.
        """
        note = await scripts.run_script(
            self._client, "queue_adopt", [keys.queue_seating(queue)], match, old_ms
        )
        return _parse_proposal(match, note) if note else None

    async def close_proposal(self, queue: str, match: str) -> None:
        """Forgets a proposal whose match was seated; nothing happens if there is none."""
        await call(self._client, "HDEL", keys.queue_seating(queue), match)

    async def dissolve_proposal(self, queue: str, match: str, back: Iterable[QueueEntry]) -> bool:
        """Forgets a proposal that failed and puts these entries back, in one step.

        Returns False, and puts none back, if the proposal was gone already.
        """
        named = [keys.queue_waiting(queue), keys.queue_seating(queue)]
        places = [part for entry in back for part in (entry.since_ms, entry.name)]
        return bool(await scripts.run_script(self._client, "queue_dissolve", named, match, *places))

    async def unfinished_proposals(self, queue: str) -> list[Proposal]:
        """Returns the proposals that are neither seated nor dissolved, oldest first: a lobby is seating them,
        or has died.
        """
        answer = await call(self._client, "HGETALL", keys.queue_seating(queue))
        found = [_parse_proposal(match.decode(), note) for match, note in as_pairs(answer)]
        return sorted(found, key=lambda proposal: proposal.taken_ms)

    async def is_under_way(self, queue: str, match: str) -> bool:
        """Whether the match waits in the queue, or is proposed there."""
        commands = [
            ("ZSCORE", keys.queue_waiting(queue), match),
            ("HEXISTS", keys.queue_seating(queue), match),
        ]
        since, is_proposed = await call_many(self._client, commands)
        return since is not None or bool(is_proposed)

    async def list_entries(self, queue: str) -> list[QueueEntry]:
        """Returns all entries, oldest first; they stay in the queue."""
        answer = await call(self._client, "ZRANGE", keys.queue_waiting(queue), 0, -1, "WITHSCORES")
        return [QueueEntry(name.decode(), int(since)) for name, since in as_pairs(answer)]

    async def front_of(self, queue: str, count: int) -> list[str]:
        """Returns the names of the first `count` entries, oldest first; they stay in the queue."""
        answer = await call(self._client, "ZRANGE", keys.queue_waiting(queue), 0, count - 1)
        return [name.decode() for name in answer]

    async def count_waiting(self, queue: str) -> int:
        """Returns the number of entries."""
        return int(await call(self._client, "ZCARD", keys.queue_waiting(queue)))

    async def count_all_waiting(self, queues: Sequence[str]) -> list[int]:
        """Returns the number of entries in each of these queues."""
        commands = [("ZCARD", keys.queue_waiting(queue)) for queue in queues]
        return [int(answer) for answer in await call_many(self._client, commands)]

    async def position_of(self, queue: str, bot: str) -> int | None:
        """Returns the number of bots before this one; None if it does not wait there."""
        rank = await call(self._client, "ZRANK", keys.queue_waiting(queue), bot)
        return None if rank is None else int(rank)


def _parse_proposal(match: str, note: bytes) -> Proposal:
    taken_ms, *places = note.decode().split(" ")
    entries = (QueueEntry(name, int(since)) for since, name in zip(places[::2], places[1::2], strict=True))
    return Proposal(match, int(taken_ms), tuple(entries))
