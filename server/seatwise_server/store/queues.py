"""Queues of bots that wait for a table: first come, first served, each bot once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seatwise_server.store import keys
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, as_pairs, call, call_many


@dataclass(frozen=True, slots=True)
class Waiting:
    """A bot and when it entered the queue, in milliseconds of Redis's clock."""

    bot: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class Proposal:
    """Bots taken off a queue for a match, in the order of their entry."""

    match: str
    taken_ms: int
    """When they were taken, on Redis's clock: an old proposal is one whose lobby died."""
    bots: tuple[Waiting, ...]


def counts_no_shows(queue: str) -> bool:
    """Whether no-shows count in this queue.

    Ladders count for themselves. The bots of a match by name were chosen by the operator.
    """
    return bool(queue) and not queue.startswith(("ladders/", "~"))


class Queues:
    """All queues on one Redis; a queue is there when somebody waits in it."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def enter_queue(self, queue: str, bot: str) -> Waiting:
        """The bot's place, from its first entry on: who enters twice keeps the first."""
        return await self._enter(queue, bot, "")

    async def enter_all(self, queue: str, bots: Iterable[str]) -> None:
        """As `enter` for each of them, now."""
        named = [keys.queue_waiting(queue)]
        await scripts.run_script_many(self._client, "queue_enter", [(named, (bot, "")) for bot in bots])

    async def give_back(self, queue: str, waiting: Waiting) -> Waiting:
        """Puts a bot back to where it stood; one that has entered anew keeps its new place."""
        return await self._enter(queue, waiting.bot, str(waiting.since_ms))

    async def return_all(self, queue: str, places: Iterable[Waiting]) -> None:
        """Puts bots back to where they stood; one that waits further ahead stays there."""
        named = [keys.queue_waiting(queue)]
        calls = [(named, (place.bot, place.since_ms)) for place in places]
        await scripts.run_script_many(self._client, "queue_return", calls)

    async def _enter(self, queue: str, bot: str, since: str) -> Waiting:
        _, since_ms = await scripts.run_script(
            self._client, "queue_enter", [keys.queue_waiting(queue)], bot, since
        )
        return Waiting(bot, int(since_ms))

    async def leave_queue(self, queue: str, bot: str) -> bool:
        """Takes the bot out; False when it did not wait there."""
        return bool(await call(self._client, "ZREM", keys.queue_waiting(queue), bot))

    async def propose_first(self, queue: str, seats: int, patience_ms: int, match: str) -> Proposal | None:
        """The first `seats` bots, or those there are when the first has waited `patience_ms`; None before that.

        The proposal stays noted until `seated` or `dissolve`. Asked again for the same match it is the same.
        """
        named = [keys.queue_waiting(queue), keys.queue_seating(queue)]
        note = await scripts.run_script(self._client, "queue_take", named, match, seats, patience_ms)
        return _parse_proposal(match, note) if note else None

    async def take_these(self, queue: str, match: str, bots: Sequence[str]) -> Proposal | None:
        """These bots, in this order, as a proposal; None when one of them does not wait (any more).

        Asked again for the same match it is the same.
        """
        named = [keys.queue_waiting(queue), keys.queue_seating(queue)]
        note = await scripts.run_script(self._client, "queue_take_these", named, match, *bots)
        return _parse_proposal(match, note) if note else None

    async def propose_these(self, queue: str, name: str) -> Proposal | None:
        """The one of this name, out of its order, as a proposal of the same name; None when it does not wait."""
        named = [keys.queue_waiting(queue), keys.queue_seating(queue)]
        note = await scripts.run_script(self._client, "queue_pick", named, name)
        return _parse_proposal(name, note) if note else None

    async def adopt_proposal(self, queue: str, match: str, old_ms: int) -> Proposal | None:
        """A proposal that nobody has touched for so long, to be seated or dissolved by the caller alone.

        None when it is not that old, or gone, or another has adopted it.
        """
        note = await scripts.run_script(
            self._client, "queue_adopt", [keys.queue_seating(queue)], match, old_ms
        )
        return _parse_proposal(match, note) if note else None

    async def close_proposal(self, queue: str, match: str) -> None:
        """Forgets a proposal whose match stands; nothing happens when there is none."""
        await call(self._client, "HDEL", keys.queue_seating(queue), match)

    async def dissolve_proposal(self, queue: str, match: str, back: Iterable[Waiting]) -> bool:
        """Forgets a proposal that came to nothing and puts these bots back, in one step.

        False, and nobody is put back, when the proposal was gone already.
        """
        named = [keys.queue_waiting(queue), keys.queue_seating(queue)]
        places = [part for waiting in back for part in (waiting.since_ms, waiting.bot)]
        return bool(await scripts.run_script(self._client, "queue_dissolve", named, match, *places))

    async def unfinished_proposals(self, queue: str) -> list[Proposal]:
        """Proposals neither seated nor dissolved: in work, or left by a lobby that died. Oldest first."""
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

    async def waiting_bots(self, queue: str) -> list[Waiting]:
        """All that wait, oldest first; they stay where they are."""
        answer = await call(self._client, "ZRANGE", keys.queue_waiting(queue), 0, -1, "WITHSCORES")
        return [Waiting(bot.decode(), int(since)) for bot, since in as_pairs(answer)]

    async def front_of(self, queue: str, count: int) -> list[str]:
        """The first that wait, oldest first; they stay where they are."""
        answer = await call(self._client, "ZRANGE", keys.queue_waiting(queue), 0, count - 1)
        return [name.decode() for name in answer]

    async def count_waiting(self, queue: str) -> int:
        """How many wait."""
        return int(await call(self._client, "ZCARD", keys.queue_waiting(queue)))

    async def position_of(self, queue: str, bot: str) -> int | None:
        """How many stand before the bot; None when it does not wait there."""
        rank = await call(self._client, "ZRANK", keys.queue_waiting(queue), bot)
        return None if rank is None else int(rank)


def _parse_proposal(match: str, note: bytes) -> Proposal:
    taken_ms, *places = note.decode().split(" ")
    bots = (Waiting(bot, int(since)) for since, bot in zip(places[::2], places[1::2], strict=True))
    return Proposal(match, int(taken_ms), tuple(bots))
