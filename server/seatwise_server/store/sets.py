"""Sets of duplicate deals: their seeds, their matches, and whether all their matches are over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from seatwise_referee.ending import MatchState
from seatwise_server.store import keys
from seatwise_server.store.errors import SetRefused
from seatwise_server.store.keeping import keep_key
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, as_pairs, call, call_many
from seatwise_server.store.redis.scripts import ScriptCall


@dataclass(frozen=True, slots=True)
class SetOfDeals:
    """A set of duplicate deals in its present state."""

    size: int
    matches: tuple[str, ...]
    """The matches that have joined, in the order of their numbers."""
    is_over: bool
    awaited: tuple[str, ...]
    """The matches that have joined and are not over."""


def end_call(name: str, number: int, match: str, state: MatchState) -> ScriptCall:
    """Returns the script of `DealSets.end_match`."""
    return "set_end", [keys.deal_set(name)], (number, match, state)


class DealSets:
    """All sets on one Redis. The name of a set is used only once."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def join_set(self, name: str, number: int, match: str, size: int, kind: str, seed: bytes) -> bytes:
        """Adds the match to the set with this number, and returns the set's seed; it is `seed` if this creates
        the set.

        A repeat for the same match has the same answer. A number may be used again after its match was voided.
        Raises SetRefused if the set has another size or kind, if the number is taken, and if the set is over.
        """
        args = (number, match, size, kind, seed.hex())
        answer, found, instead = await scripts.run_script(
            self._client, "set_join", [keys.deal_set(name)], *args
        )
        if answer != b"OK":
            raise SetRefused(answer.decode(), instead.decode())
        return bytes.fromhex(found.decode())

    async def end_match(self, name: str, number: int, match: str, state: MatchState) -> bool:
        """Notes that a match is FINISHED or VOIDED; returns whether the set is over. Repeatable.

        Call it after `Journal.retire_match`. Returns False if there is no such set. A match that has lost its number to
        another match does not count.
        """
        [answer] = await scripts.run_in_order(self._client, end_call(name, number, match, state))
        return bool(answer == 1)

    async def close_set(self, name: str, keep_s: int) -> bool | None:
        """Closes the set, so that no more matches can join; returns whether the set is over, and is removed after `keep_s` seconds.

        None if there is no such set.
        """
        answer = await scripts.run_script(self._client, "set_end", [keys.deal_set(name)], "", "", "")
        if answer == 1:
            await keep_key(self._client, keys.deal_set(name), keep_s * 1000)
        return None if answer == -1 else answer == 1

    async def is_over(self, name: str) -> bool:
        """Whether all matches of the set are over, so that their records may be shown; False if the set is unknown."""
        return bool(await call(self._client, "HEXISTS", keys.deal_set(name), "over"))

    async def running_among(self, names: Iterable[str]) -> frozenset[str]:
        """Those of the sets that are known and not over. A set that is not known any more was over, and its time is up."""
        asked = sorted(set(names))
        commands = [("HMGET", keys.deal_set(name), "size", "over") for name in asked]
        answers = await call_many(self._client, commands) if commands else []
        known = zip(asked, answers, strict=True)
        return frozenset(name for name, (size, over) in known if size is not None and over is None)

    async def get_set(self, name: str) -> SetOfDeals | None:
        """Returns the set; None if it never existed, or has expired."""
        answer = await call(self._client, "HGETALL", keys.deal_set(name))
        fields = {field.decode(): value.decode() for field, value in as_pairs(answer)}
        if "size" not in fields:
            return None
        numbered = (field.partition("/") for field in fields)
        numbers = sorted(int(number) for kind, _, number in numbered if kind == "match")
        matches = tuple(fields[f"match/{number}"] for number in numbers)
        awaited = tuple(fields[f"match/{number}"] for number in numbers if f"end/{number}" not in fields)
        return SetOfDeals(int(fields["size"]), matches, "over" in fields, awaited)
