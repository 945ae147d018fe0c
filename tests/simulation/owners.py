"""Owners of bots, whose quotas bind in a world: they play no more than they may, and nothing that is over holds them back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seatwise_server.lobby.seating import CREATED, QUEUES
from seatwise_server.store import OwnerCount, keys
from seatwise_server.store.redis import scripts
from simulation.redis_model import Redis, Refused

MOST_BOTS = 100
OPEN, ROOM, RESERVE = "owner_match_open", "owner_room", "seat_reserve"
RESERVED = 1


@dataclass(frozen=True)
class OwnerPlan:
    """An owner, and what it may do."""

    name: str
    hosts: tuple[str, ...]
    """Of its bots."""
    at_once: int
    a_day: int
    """Matches in 24 hours; a world is shorter than that."""

    @property
    def bots(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(f"bots/{host}/versions/1" for host in self.hosts)


def run_script(redis: Redis, name: str, named: Sequence[str], *args: str | bytes) -> Any:
    """Runs a script of the store, as if before the world began."""
    words: tuple[str | bytes, ...] = (str(len(named)), *named, *args)
    return redis.call(
        b"EVAL",
        scripts.script_named(name).source,
        *(word if isinstance(word, bytes) else word.encode() for word in words),
    )


class OwnerChecks:
    """Looks at the counts of owners whenever a lobby has asked for one, and at the end."""

    def __init__(
        self,
        owners: Iterable[OwnerPlan],
        redis: Redis,
        wrong: Callable[[str], None],
        count: Callable[[str], None],
    ) -> None:
        self._owners = {keys.owner(it.name).encode(): it for it in owners}
        self._of_seats = {keys.bot_seats(bot).encode(): it for it in owners for bot in it.bots}
        self._redis = redis
        self._wrong = wrong
        self._count = count
        self._proposed_in = [CREATED, *QUEUES]
        """The queues in which a match may be proposed."""
        self._register_all()

    def _register_all(self) -> None:
        for owner in self._owners.values():
            key, held = keys.owner(owner.name), keys.owner_bots(owner.name)
            run_script(self._redis, "owner_create", [key], str(MOST_BOTS), "invites/all", "", str(MOST_BOTS))
            quotas = {"most_matches_at_once": owner.at_once, "most_matches_a_day": owner.a_day}
            run_script(
                self._redis, "owner_set_quotas", [key], *(str(it) for pair in quotas.items() for it in pair)
            )
            for bot in owner.bots:
                run_script(self._redis, "owner_add_bot", [key, held], bot)

    def owner_of(self, bot: str) -> str:
        """The owner with which the bot is registered."""
        return next((it.name for it in self._owners.values() if bot in it.bots), "the operator")

    def forget(self, name: str) -> None:
        """The owner is erased from here on: nothing is counted for it."""
        self._owners.pop(keys.owner(name).encode())
        self._of_seats = {seats: it for seats, it in self._of_seats.items() if it.name != name}

    def also_pairs_in(self, queue: str) -> None:
        """A ladder of the world."""
        self._proposed_in.append(queue)

    # While the world lasts

    def saw(self, command: list[bytes], answer: Any) -> None:
        """Redis has run a script."""
        if isinstance(answer, Refused):
            return
        name = _SCRIPTS.get(command[1])
        if name == RESERVE and answer == RESERVED and (owner := self._of_seats.get(command[3])):
            self._check_seat(owner, command[3 + int(command[2])].decode().rpartition("/")[0])
        elif name in (OPEN, ROOM) and (owner := self._owners.get(command[3])):
            self._saw_answer(owner, answer if name == ROOM else _AS_ROOM.get(answer, (1, 1)))

    def _saw_answer(self, owner: OwnerPlan, room: Sequence[int]) -> None:
        """An owner without room really has as many matches as it may."""
        at_once, today = room[:2]
        if at_once == 0:
            self._count("an owner plays as many matches at once as it may")
            counted = self._names(keys.owner_open_matches(owner.name))
            gone = [match for match in counted if not self._is_under_way(match)]
            self._check_refusal(owner.at_once, counted, f"{owner.name} has no room at once", gone)
        if today == 0:
            self._count("an owner has begun as many matches in 24 hours as it may")
            counted = self._names(keys.owner_day_matches(owner.name))
            gone = [match for match in counted if not (self._is_under_way(match) or self._is_finished(match))]
            self._check_refusal(owner.a_day, counted, f"{owner.name} has no room today", gone)

    def _check_refusal(self, most: int, counted: Sequence[str], what: str, gone: Sequence[str]) -> None:
        if len(counted) - len(gone) < most:
            self._wrong(
                f"{what} for {most}: of {len(counted)} matches that are counted {gone} come to nothing"
            )

    def _is_under_way(self, match: str) -> bool:
        """Whether a lobby has proposed the match, or a referee has not done with it."""
        return self._is_proposed(match) or match.encode() in (self._redis.peek(keys.JOB_MARKERS) or {})

    def _is_finished(self, match: str) -> bool:
        return (self._redis.peek(keys.match_meta(match)) or {}).get(b"state") == b"FINISHED"

    def _is_proposed(self, match: str) -> bool:
        return any(
            match.encode() in (self._redis.peek(keys.queue_seating(queue)) or {})
            for queue in self._proposed_in
        )

    def _check_seat(self, owner: OwnerPlan, match: str) -> None:
        """The bots of an owner hold seats only in matches that are counted, and in no more than they may."""
        played = {seat.rpartition("/")[0] for bot in owner.bots for seat in self._names(keys.bot_seats(bot))}
        if match not in self._names(keys.owner_open_matches(owner.name)):
            self._wrong(f"a bot of {owner.name} has a seat in {match}, which is not counted")
        if len(played) > owner.at_once:
            self._wrong(f"{owner.name} may play {owner.at_once} matches at once, and plays {sorted(played)}")

    def _names(self, key: str) -> list[str]:
        return [name.decode() for name in self._redis.peek(key) or ()]

    # When all is over

    def find_wrongs(self, over: Mapping[str, str]) -> Iterator[str]:
        """What is wrong with the counts; `over` has FINISHED or VOIDED of each match."""
        for owner in self._owners.values():
            if left := self._names(keys.owner_open_matches(owner.name)):
                yield f"{owner.name} plays nothing, and is counted to play {left}"
            own = {match for match in over if self._has_bot_of(owner, match)}
            finished = {match for match in own if over[match] == "FINISHED"}
            counted = {*self._names(keys.owner_day_matches(owner.name))}
            if finished - counted:
                yield f"{owner.name} has finished {sorted(finished - counted)}, which are not counted"
            if counted - finished:
                yield f"{owner.name} has not finished {sorted(counted - finished)}, which are counted"
            if len(paired := [match for match in finished if self._was_paired(match)]) > owner.a_day:
                yield f"{owner.name} may begin {owner.a_day} matches, and has begun {len(paired)}"

    def _has_bot_of(self, owner: OwnerPlan, match: str) -> bool:
        meta = self._redis.peek(keys.match_meta(match)) or {}
        setup = json.loads(meta.get(b"setup", b"{}"))
        bots = {seat["bot"] for seat in setup["seats"]} if "seats" in setup else {*setup.get("bots", ())}
        return not bots.isdisjoint(owner.bots)

    def _was_paired(self, match: str) -> bool:
        """In a queue or on a ladder: a created match is played whatever has been played today."""
        return (self._redis.peek(keys.match_meta(match)) or {}).get(b"queue") != CREATED.encode()


_AS_ROOM = {OwnerCount.FULL: (0, 1), OwnerCount.SPENT: (1, 0)}
"""An answer to a count, as an answer to the question how many more may begin."""
_SCRIPTS = {
    key: name
    for name in (OPEN, ROOM, RESERVE)
    for it in [scripts.script_named(name)]
    for key in (it.sha.encode(), it.source)
}
"""By hash, and by text: the first after a restart of Redis comes with its text."""
