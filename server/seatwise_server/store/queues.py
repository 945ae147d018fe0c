"""Queues: bots that wait for a match, and created matches that wait for their bots. First come, first served, each name once."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from seatwise_server.store import keys
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import Argument, as_pairs
from seatwise_server.store.redis.scripts import StorePart
from seatwise_server.timings import ATTENDANCE_LEASE_MS

LATE_MS = 1000
"""A bot that is told of its seat so long after the offer is told too late: it lost set-up time, and that was our fault."""

PROMPT_NUMBER_S = 0.1
"""Seconds in which Redis numbers a stream when nothing holds it up."""


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
    """Whether no-shows count in this queue. Ladders count them themselves; the operator chose the bots of a created match."""
    return bool(queue) and not queue.startswith(("ladders/", "~"))


class Queues(StorePart):
    """All queues on one Redis. A queue exists while bots wait in it."""

    async def enter_queue(self, queue: str, name: str) -> QueueEntry:
        """Enter this name and return its entry; a name that is entered twice keeps its first place."""
        return QueueEntry(name, int(await self._run("queue_enter", [keys.queue_waiting(queue)], name)))

    async def enter_all(self, queue: str, bots: Iterable[str]) -> None:
        """Enter all these bots now, like `enter_queue`."""
        named = [keys.queue_waiting(queue)]
        await self._run_many("queue_enter", [(named, (bot,)) for bot in bots])

    async def return_all(self, queue: str, entries: Iterable[QueueEntry]) -> None:
        """Put entries back to their old places; a name that waits further ahead stays there."""
        named = [keys.queue_waiting(queue)]
        await self._run_many("queue_return", [(named, (entry.name, entry.since_ms)) for entry in entries])

    async def change_queues(self, bot: str, entered: Iterable[str], left: Iterable[str]) -> None:
        """Enter the bot in some queues, like `enter_queue`, and take it out of others, in one message."""
        enter = [("queue_enter", [keys.queue_waiting(queue)], (bot,)) for queue in entered]
        leave = [("ZREM", keys.queue_waiting(queue), bot) for queue in left]
        await scripts.run_and_call(self._client, enter, leave)

    async def leave_queue(self, queue: str, name: str) -> bool:
        """Take the entry of this name out; returns False if there is none."""
        return bool(await self._call("ZREM", keys.queue_waiting(queue), name))

    async def propose_first(
        self, queue: str, seats: int, patience_ms: int, match: str, without: Collection[str] = ()
    ) -> Proposal | None:
        """Take the first `seats` bots off the queue, or fewer if the first has waited `patience_ms`; None before that.

        Bots that `without` names keep their places in the queue. The proposal is kept until `close_proposal` or
        `dissolve_proposal`. A repeat for the same match returns the same proposal.
        """
        return await self._propose("queue_take", queue, match, seats, patience_ms, *sorted(without))

    async def take_these(self, queue: str, match: str, bots: Sequence[str]) -> Proposal | None:
        """Take these bots off the queue, in this order, as a proposal; None if one does not wait. Repeatable, with the same answer."""
        return await self._propose("queue_take_these", queue, match, *bots)

    async def propose_these(self, queue: str, name: str) -> Proposal | None:
        """Take the entry of this name off the queue, whatever its place, as a proposal of that name; None if it does not wait."""
        return await self._propose("queue_pick", queue, name)

    async def _propose(self, script: str, queue: str, match: str, *args: Argument) -> Proposal | None:
        named = [keys.queue_waiting(queue), keys.queue_seating(queue)]
        note = await self._run(script, named, match, *args)
        return _parse_proposal(match, note) if note else None

    async def adopt_proposal(self, queue: str, match: str, old_ms: int) -> Proposal | None:
        """Adopt a proposal that no lobby has touched for `old_ms`; only the caller may then seat or dissolve it.

        Return None if it is not that old, or gone, or adopted by another.
        """
        note = await self._run("queue_adopt", [keys.queue_seating(queue)], match, old_ms)
        return _parse_proposal(match, note) if note else None

    async def close_proposal(self, queue: str, match: str) -> None:
        """Forget a proposal whose match was seated; nothing happens if there is none."""
        await self._call("HDEL", keys.queue_seating(queue), match)

    async def dissolve_proposal(self, queue: str, match: str, back: Iterable[QueueEntry]) -> bool:
        """Forget a proposal that failed and puts these entries back, in one step.

        Return False, and puts none back, if the proposal was gone already.
        """
        named = [keys.queue_waiting(queue), keys.queue_seating(queue)]
        places = [part for entry in back for part in (entry.since_ms, entry.name)]
        return bool(await self._run("queue_dissolve", named, match, *places))

    async def unfinished_proposals(self, queue: str) -> list[Proposal]:
        """Return the proposals that are neither seated nor dissolved, oldest first: a lobby is seating them, or has died."""
        answer = await self._call("HGETALL", keys.queue_seating(queue))
        found = [_parse_proposal(match.decode(), note) for match, note in as_pairs(answer)]
        return sorted(found, key=lambda proposal: proposal.taken_ms)

    async def is_under_way(self, queue: str, match: str) -> bool:
        """Whether the match waits in the queue, or is proposed there."""
        waits = ("ZSCORE", keys.queue_waiting(queue), match)
        since, is_proposed = await self._call_many([waits, ("HEXISTS", keys.queue_seating(queue), match)])
        return since is not None or bool(is_proposed)

    async def list_entries(self, queue: str) -> list[QueueEntry]:
        """Return all entries, oldest first; they stay in the queue."""
        answer = await self._call("ZRANGE", keys.queue_waiting(queue), 0, -1, "WITHSCORES")
        return [QueueEntry(name.decode(), int(since)) for name, since in as_pairs(answer)]

    async def front_of(self, queue: str, count: int) -> list[str]:
        """Return the names of the first `count` entries, oldest first; they stay in the queue."""
        answer = await self._call("ZRANGE", keys.queue_waiting(queue), 0, count - 1)
        return [name.decode() for name in answer]

    async def count_waiting(self, queue: str) -> int:
        """Return the number of entries."""
        return int(await self._call("ZCARD", keys.queue_waiting(queue)))

    async def count_all_waiting(self, queues: Sequence[str]) -> list[int]:
        """Return the number of entries in each of these queues."""
        return list(map(int, await self._call_many([("ZCARD", keys.queue_waiting(it)) for it in queues])))

    async def position_of(self, queue: str, bot: str) -> int | None:
        """Return the number of bots before this one; None if it does not wait there."""
        rank = await self._call("ZRANK", keys.queue_waiting(queue), bot)
        return None if rank is None else int(rank)


def _parse_proposal(match: str, note: bytes) -> Proposal:
    taken_ms, *places = note.decode().split(" ")
    entries = (QueueEntry(name, int(since)) for since, name in zip(places[::2], places[1::2], strict=True))
    return Proposal(match, int(taken_ms), tuple(entries))


@dataclass(frozen=True, slots=True)
class Attendance:
    """A bot's presence at one lobby."""

    lobby: str
    attend_id: str
    """Unique to each stream."""
    max_matches: int
    """How many matches at once the bot takes; 0 while it drains."""
    queues: tuple[str, ...]
    turn: int = 0
    """The number of this stream of the bot, from `Attendances.number_stream`. A late write of an older stream is ignored."""

    @property
    def facts(self) -> tuple[str, str, int, str]:
        """The values of its fields in Redis, as the scripts take them."""
        return self.lobby, self.attend_id, self.max_matches, "\n".join(self.queues)


class Attendances(StorePart):
    """The attendances of all bots. An attendance ends with its lease."""

    async def number_stream(self, bot: str, arrival_s: float) -> int:
        """Return the number of a stream of the bot that arrived at this time, on the clock of the event loop.

        It is higher than the numbers of all streams of the bot that arrived earlier, at whichever lobby. An answer that was long
        in coming may count the wait as if the stream had arrived later, so it is asked for once more.
        """
        loop, named = asyncio.get_running_loop(), [keys.bot_registration(bot)]
        asked_s = loop.time()
        turn = await self._run("stream_turn", named, _age_us(asked_s, arrival_s))
        if loop.time() - asked_s > PROMPT_NUMBER_S:
            turn = await self._run("stream_turn", named, _age_us(loop.time(), arrival_s))
        return int(turn)

    async def write_attendance(self, bot: str, attendance: Attendance, lease_ms: int) -> bool:
        """Notes that the bot is present; with the same attend id, notes what it takes from now on.

        A newer attendance replaces an older one, and is published on `keys.ATTENDS_CHANNEL`. Returns False, and changes
        nothing, if a newer stream of the bot attends.
        """
        args = (*attendance.facts, lease_ms, keys.ATTENDS_CHANNEL, bot, attendance.turn)
        return bool(await self._run("attend", [keys.bot_attendance(bot)], *args))

    async def renew_attendance(self, bot: str, attendance: Attendance, lease_ms: int) -> bool:
        """Extend the lease, with what the bot takes from now on; returns False if a newer attendance replaced it."""
        args = (*attendance.facts, lease_ms, attendance.turn)
        return bool(await self._run("attend_keep", [keys.bot_attendance(bot)], *args))

    async def remove_attendance(self, bot: str, attend_id: str, *, by_itself: bool = False) -> bool:
        """End the attendance; returns False, and changes nothing, if a newer one replaced it.

        A bot that leaves `by_itself` must still take the seats that it was just given, whether it was told of them or not.
        """
        named = [keys.bot_attendance(bot), keys.bot_untaken(bot), keys.bot_other_seats(bot)]
        args = (attend_id, "1" if by_itself else "", LATE_MS)
        return bool(await self._run("attend_leave", named, *args))

    async def kept_ms(self, bots: Collection[str]) -> dict[str, int]:
        """Return how many milliseconds ago a lobby last renewed the attendance of each of these bots, without absent ones."""
        answers = await self._call_many([("PTTL", keys.bot_attendance(bot)) for bot in bots])
        left = zip(bots, answers, strict=True)
        return {bot: ATTENDANCE_LEASE_MS - left_ms for bot, left_ms in left if left_ms > 0}

    async def most_matches(self, bots: Collection[str]) -> dict[str, int]:
        """Return how many matches at once each of these bots takes; bots that are not present are left out."""
        answers = await self._call_many([("HGET", keys.bot_attendance(bot), "max_matches") for bot in bots])
        return {bot: int(most) for bot, most in zip(bots, answers, strict=True) if most is not None}

    async def present_bots(self, bots: Collection[str]) -> set[str]:
        """Return those of these bots that are present."""
        answers = await self._call_many([("EXISTS", keys.bot_attendance(bot)) for bot in bots])
        return {bot for bot, is_there in zip(bots, answers, strict=True) if is_there}


def _age_us(now_s: float, arrival_s: float) -> int:
    return int((now_s - arrival_s) * 1_000_000)
