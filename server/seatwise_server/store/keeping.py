"""How long matches that are over, tokens, invites and guests are kept, and their removal.

If Redis expired them by itself, a clock that is set wrong would delete all of them at once. So they have no expiry. They are
removed by the *time of keeping*, which passes as Redis's clock does, but stands still while that clock leaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import structlog

from seatwise_referee.ending import MatchState
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.store import keys
from seatwise_server.store.errors import SetRefused
from seatwise_server.store.matches import forget_call
from seatwise_server.store.owners import OwnerMatches
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, as_pairs
from seatwise_server.store.redis.scripts import ScriptCall, StorePart
from seatwise_server.store.results import append_call
from seatwise_server.store.seats import owners_in, release_calls

_LONGEST_STEP_MS = 86_400_000
"""A clock that has moved further since the last look has leapt, or no server has run. That time counts for nothing."""

_REMOVED_AT_ONCE = 500
"""The most matches, and the most other keys, that one message removes."""

_log = structlog.get_logger()


async def keep_key(client: RedisClient, key: str, keep_ms: int) -> None:
    """Schedule the removal of a key; a later call replaces the time."""
    await scripts.run_script(client, "kept_note", [keys.KEEPING_TIME, keys.KEPT_KEYS], key, keep_ms)


class Keeping(StorePart):
    """Everything on one Redis that is kept for a while. Any number of processes may remove what is due."""

    async def remove_due(self) -> int:
        """Let the time of keeping pass, and remove what is due; returns how much that was. Call it every minute."""
        removed = 0
        while found := await self._remove_some():
            removed += found
        return removed

    async def _remove_some(self) -> int:
        named = [keys.KEEPING_TIME, keys.MATCH_EXPIRY, keys.KEPT_KEYS]
        args = (_LONGEST_STEP_MS, _REMOVED_AT_ONCE)
        clock_ms, leap_ms, matches, others = await self._run("kept_advance", named, *args)
        if leap_ms:
            why = "or no server has run; what is kept stays as much longer"
            _log.warning("redis_clock_leapt", by_s=leap_ms // 1000, why=why)
        removed = await self._remove_matches([name.decode() for name in matches], clock_ms)
        return removed + await self._remove_keys(others)

    async def _remove_matches(self, matches: list[str], clock_ms: int) -> int:
        if not matches:
            return 0
        parts = (keys.match_fence, keys.match_meta, keys.match_record)
        calls = [("match_remove", [part(match) for part in parts], (clock_ms,)) for match in matches]
        [answers] = await scripts.run_phases(self._client, calls)
        gone = [match for match, answer in zip(matches, answers, strict=True) if answer]
        named = [keys.MATCH_INDEX, keys.MATCH_EXPIRY, keys.MATCH_FACETS, keys.KEEPING_TIME]
        return int(await self._run("match_expire", named, keys.MATCH_SETS, *gone))

    async def _remove_keys(self, found: list[bytes]) -> int:
        if found:
            await self._call_many([("UNLINK", key) for key in found])
            await self._call_many([("ZREM", keys.KEPT_KEYS, *found)])
        return len(found)


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
    """Return the script of `DealSets.end_match`."""
    return "set_end", [keys.deal_set(name)], (number, match, state)


class DealSets(StorePart):
    """All sets on one Redis. The name of a set is used only once."""

    async def join_set(self, name: str, number: int, match: str, size: int, kind: str, seed: bytes) -> bytes:
        """Add the match to the set with this number, and return the set's seed; it is `seed` if this creates the set.

        A repeat for the same match has the same answer. A number may be used again after its match was voided. Raises
        SetRefused if the set has another size or kind, if the number is taken, and if the set is over.
        """
        args = (number, match, size, kind, seed.hex())
        answer, found, instead = await self._run("set_join", [keys.deal_set(name)], *args)
        if answer != b"OK":
            raise SetRefused(answer.decode(), instead.decode())
        return bytes.fromhex(found.decode())

    async def close_set(self, name: str, keep_s: int) -> bool | None:
        """Close the set, so that no more matches can join; returns whether the set is over, and is removed after `keep_s` seconds.

        None if there is no such set.
        """
        answer = await self._run("set_end", [keys.deal_set(name)], "", "", "")
        if answer == 1:
            await keep_key(self._client, keys.deal_set(name), keep_s * 1000)
        return None if answer == -1 else answer == 1

    async def is_over(self, name: str) -> bool:
        """Whether all matches of the set are over, so that their records may be shown; False if the set is unknown."""
        return bool(await self._call("HEXISTS", keys.deal_set(name), "over"))

    async def running_among(self, names: Iterable[str]) -> frozenset[str]:
        """Those of the sets that are known and not over. A set that is not known any more was over, and its time is up."""
        asked = sorted(set(names))
        answers = await self._call_many([("HMGET", keys.deal_set(name), "size", "over") for name in asked])
        known = zip(asked, answers, strict=True)
        return frozenset(name for name, (size, over) in known if size is not None and over is None)

    async def get_set(self, name: str) -> SetOfDeals | None:
        """Return the set; None if it never existed, or has expired."""
        answer = await self._call("HGETALL", keys.deal_set(name))
        fields = {field.decode(): value.decode() for field, value in as_pairs(answer)}
        if "size" not in fields:
            return None
        numbered = (field.partition("/") for field in fields)
        numbers = sorted(int(number) for kind, _, number in numbered if kind == "match")
        matches = tuple(fields[f"match/{number}"] for number in numbers)
        awaited = tuple(fields[f"match/{number}"] for number in numbers if f"end/{number}" not in fields)
        return SetOfDeals(int(fields["size"]), matches, "over" in fields, awaited)


@dataclass(frozen=True, slots=True)
class EndedMatch:
    """A match whose record is stored."""

    match: str
    bots: Sequence[str]
    """In the order of the seats."""
    state: MatchState
    keep_s: int
    """For how many seconds the record is kept."""
    competition: str = ""
    """The ladder or league; empty if there is none."""
    result: LoggedResult | None = None
    """The result, if it counts in the competition."""
    deal_set: tuple[str, int] | None = None
    """The set of duplicate deals, and the match's number in it."""


class Deliveries(StorePart):
    """The last changes of a match. Each may be repeated."""

    async def conclude_match(self, ended: EndedMatch) -> None:
        """List the match as over, log its result and end its part of its set; then free its bots for other matches.

        Call it after `Journal.retire_match`.
        """
        noted = [forget_call(ended.match, ended.keep_s, ended.state)]
        if ended.competition and ended.result:
            noted.append(append_call(ended.competition, ended.result))
        if ended.deal_set:
            noted.append(end_call(*ended.deal_set, ended.match, ended.state))
        answers, freed = await scripts.run_phases(self._client, noted, release_calls(ended.match, ended.bots))
        if ended.deal_set and answers[-1] == 1:  # it was the last match of the set
            await keep_key(self._client, keys.deal_set(ended.deal_set[0]), ended.keep_s * 1000)
        is_void = ended.state is MatchState.VOIDED
        await OwnerMatches(self._client).close_match(ended.match, owners_in(freed), is_void=is_void)
