"""Sets of duplicate deals: their seeds, their matches, and whether all of them are over."""

from __future__ import annotations

from dataclasses import dataclass

from seatwise_referee.match_state import MatchState
from seatwise_server.store import keys
from seatwise_server.store.errors import SetRefused
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, as_pairs, call


@dataclass(frozen=True, slots=True)
class SetOfDeals:
    """A set as it stands."""

    size: int
    matches: tuple[str, ...]
    """Those that have joined, in the order of their numbers."""
    is_over: bool
    awaited: tuple[str, ...]
    """Those that have joined and are not over."""


class DealSets:
    """All sets on one Redis. The name of a set is used once."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def join_set(self, name: str, number: int, match: str, size: int, kind: str, seed: bytes) -> bytes:
        """The set's seed, now that the match is number `number` of it; `seed` if that makes the set.

        A repeat for the same match has the same answer. A number may be given again when its match was voided.
        Raises SetRefused when the set has another size or kind, when the number is taken, and when it is over.
        """
        args = (number, match, size, kind, seed.hex())
        answer, found, instead = await scripts.run_script(
            self._client, "set_join", [keys.deal_set(name)], *args
        )
        if answer != b"OK":
            raise SetRefused(answer.decode(), instead.decode())
        return bytes.fromhex(found.decode())

    async def end_match(self, name: str, number: int, match: str, state: MatchState, keep_s: int) -> bool:
        """Notes that a match is FINISHED or VOIDED; whether that was the last. May be repeated.

        What is known of a set that is over goes after `keep_s`: call it after `Journal.retire`, with the same
        time. Nothing happens when there is no such set, or when the number has been given to another match.
        """
        args = (number, match, state, max(1, keep_s * 1000))
        answer: int = await scripts.run_script(self._client, "set_end", [keys.deal_set(name)], *args)
        return answer == 1

    async def close_set(self, name: str, keep_s: int) -> bool | None:
        """No more join; whether the set is over by that. None when there is no such set."""
        args = ("", "", "", max(1, keep_s * 1000))
        answer = await scripts.run_script(self._client, "set_end", [keys.deal_set(name)], *args)
        return None if answer == -1 else answer == 1

    async def is_over(self, name: str) -> bool:
        """Whether what its matches hold may be given; False when nothing is known of it."""
        return bool(await call(self._client, "HEXISTS", keys.deal_set(name), "over"))

    async def get_set(self, name: str) -> SetOfDeals | None:
        """The set; None when it was never made, or its time is over."""
        answer = await call(self._client, "HGETALL", keys.deal_set(name))
        fields = {field.decode(): value.decode() for field, value in as_pairs(answer)}
        if "size" not in fields:
            return None
        numbered = (field.partition("/") for field in fields)
        numbers = sorted(int(number) for kind, _, number in numbered if kind == "match")
        matches = tuple(fields[f"match/{number}"] for number in numbers)
        awaited = tuple(fields[f"match/{number}"] for number in numbers if f"end/{number}" not in fields)
        return SetOfDeals(int(fields["size"]), matches, "over" in fields, awaited)
