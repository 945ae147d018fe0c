"""Sets of duplicate deals: which matches may join, and what stays hidden until the last match is over."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from seatwise.v1 import league_pb2, match_pb2
from seatwise.v1 import match_service_pb2 as pb
from seatwise_referee.game import Json
from seatwise_referee.journal import canonical_json
from seatwise_referee.setup import DealSet, Setup
from seatwise_referee.shuffle import SEED_BYTES, seed_in_set
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.refusal import Refusal, bad_argument
from seatwise_server.services.authentication import Caller
from seatwise_server.services.request_fields import ResourceName
from seatwise_server.store import Store
from seatwise_server.store.errors import SetRefused

LARGEST_SET = 1000

_NAMES = ResourceName("sets", "set of deals", "deal_set")


@dataclass(frozen=True, slots=True)
class DealSetRegistry:
    """The deal sets, as the match service uses them."""

    store: Store
    keep_s: int
    """Seconds that a set is kept after its last match: as long as records are kept."""

    async def join_set(self, setup: Setup, wanted: match_pb2.DealSet) -> Setup:
        """Add the match to the set, and return it with a seed of its own. Raises `Refusal` if it cannot join."""
        _check_place(wanted)
        fresh = secrets.token_bytes(SEED_BYTES)
        args = (wanted.name, wanted.number, setup.match, wanted.size, _deals_kind(setup), fresh)
        try:
            seed = await self.store.sets.join_set(*args)
        except SetRefused as why:
            raise _refusal_to_join(wanted, why) from None
        place = DealSet(wanted.name, wanted.number, wanted.size, seed)
        return replace(setup, seed=seed_in_set(seed, place.number), deal_set=place)

    async def check_is_over(self, match: match_pb2.Match) -> None:
        """Raise `Refusal` SET_RUNNING if other bots may still play the deals of this match."""
        name = match.deal_set.name
        if name and not await self.store.sets.is_over(name):
            why = f"{match.name} shares its deals with other matches of {name}; it can be read when the last of them is over"
            raise Refusal("SET_RUNNING", why, deal_set=name)

    async def get_set(self, name: str) -> pb.GetDealSetResponse:
        """Return the present state of the set. Raises `Refusal` NOT_FOUND if there is none."""
        found = await _NAMES.find_resource(name, self.store.sets.get_set)
        return pb.GetDealSetResponse(size=found.size, matches=found.matches, over=found.is_over)

    async def close_set(self, name: str) -> pb.CloseDealSetResponse:
        """Close the set, so that no more matches can join. Raises `Refusal` NOT_FOUND if there is none."""
        is_over = await _NAMES.find_resource(name, partial(self.store.sets.close_set, keep_s=self.keep_s))
        return pb.CloseDealSetResponse(over=is_over)


def _check_place(wanted: match_pb2.DealSet) -> None:
    _NAMES.check_name(wanted.name, "deal_set.name")
    if not 1 <= wanted.size <= LARGEST_SET:
        raise bad_argument("deal_set.size", f"deal_set.size is {wanted.size}; it must be 1 to {LARGEST_SET}")
    if not 1 <= wanted.number <= wanted.size:
        why = f"deal_set.number is {wanted.number}; it must be 1 to the size, {wanted.size}"
        raise bad_argument("deal_set.number", why)


def _deals_kind(setup: Setup) -> str:
    """Return the properties that all matches of a set must share, because the deals depend on them."""
    kind: dict[str, Json] = {"game": setup.game, "rules_version": setup.rules_version}
    kind |= {"options": dict(setup.options.items()), "seats": len(setup.bots)}
    return canonical_json(kind).decode()


def _refusal_to_join(wanted: match_pb2.DealSet, why: SetRefused) -> Refusal:
    name = wanted.name
    if why.reason == "SIZE":
        return bad_argument(
            "deal_set.size", f"deal_set.size is {wanted.size}; {name} has {why.instead} matches"
        )
    if why.reason == "KIND":
        return bad_argument("deal_set.name", f"the matches of {name} are all of the kind {why.instead}")
    if why.reason == "TAKEN":
        message = f"match {wanted.number} of {name} is already {why.instead}"
        return Refusal("ALREADY_EXISTS", message, match=why.instead)
    message = f"{name} is over or closed: use another set, because its deals may be public"
    return Refusal("SET_OVER", message, deal_set=name)


# Withholds results of matches whose deals others may yet play: they show what a seat can make of its cards.


@dataclass(frozen=True, slots=True)
class FinishedMatch:
    """A finished match, with the results of its bots."""

    match: str
    game: str
    """Format: games/{game}."""
    bots: tuple[str, ...]
    points: tuple[int, ...]
    ranks: tuple[int, ...]
    deal_set: str
    """Empty for a match with a deal of its own."""
    end_ms: int
    """0 if it is not known."""


Result = TypeVar("Result", FinishedMatch, league_pb2.LeagueResult)


@dataclass(frozen=True, slots=True)
class WithheldResults:
    """Decides which callers may see which results while deal sets run."""

    store: Store

    async def withhold_from(self, caller: Caller, matches: Sequence[match_pb2.Match]) -> int:
        """Remove the results that the caller may not see yet from these messages, and return how many."""
        ended = [match for match in matches if match.HasField("result") and match.deal_set.name]
        hidden = [match for match in ended if not _is_exempt(caller, match.bots)]
        running = await self.store.sets.running_among(match.deal_set.name for match in hidden)
        withheld = [match for match in hidden if match.deal_set.name in running]
        for match in withheld:
            match.ClearField("result")
            match.result_withheld = True
        return len(withheld)

    async def withhold_logged(self, caller: Caller, results: Sequence[league_pb2.LeagueResult]) -> int:
        """Remove points, ranks, endings and chain that the caller may not see yet, and return from how many results."""
        withheld = await self._find_withheld(caller, results)
        for each in withheld:
            for field in ("points", "ranks", "endings", "chain"):
                each.ClearField(field)
            each.withheld = True
        return len(withheld)

    async def withhold_played(self, caller: Caller, played: Sequence[FinishedMatch]) -> list[FinishedMatch]:
        """Return the matches of which the caller may see the result."""
        withheld = {each.match for each in await self._find_withheld(caller, played)}
        return [each for each in played if each.match not in withheld]

    async def _find_withheld(self, caller: Caller, results: Sequence[Result]) -> list[Result]:
        hidden = [each for each in results if each.deal_set and not _is_exempt(caller, each.bots)]
        running = await self.store.sets.running_among(each.deal_set for each in hidden)
        return [each for each in hidden if each.deal_set in running]

    async def running_sets(self, results: Iterable[LoggedResult]) -> frozenset[str]:
        """Return the deal sets of these results that are not over: what follows from such results is withheld too."""
        return await self.store.sets.running_among(result.deal for result in results if result.deal)


def _is_exempt(caller: Caller, bots: Iterable[str]) -> bool:
    return caller.is_operator or (bool(caller.bot) and caller.bot in bots)
