"""Sets of duplicate deals: which matches may join, and what stays hidden until the last match is over."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from functools import partial

from seatwise.v1 import match_pb2
from seatwise.v1 import match_service_pb2 as pb
from seatwise_referee.journal import canonical_json
from seatwise_referee.setup import DealSet, Setup
from seatwise_referee.shuffle import SEED_BYTES, seed_in_set
from seatwise_server.refusal import Refusal
from seatwise_server.services.resource_names import ResourceName
from seatwise_server.store import Store
from seatwise_server.store.errors import SetRefused

LARGEST_SET = 1000
"""The most matches of one set."""

_NAMES = ResourceName("sets", "set of deals", "deal_set")


@dataclass(frozen=True, slots=True)
class DealSetRegistry:
    """The deal sets, as the match service uses them."""

    store: Store
    keep_s: int
    """Seconds that a set is kept after its last match: as long as records are kept."""

    async def join_set(self, setup: Setup, wanted: match_pb2.DealSet) -> Setup:
        """Adds the match to the set, and returns it with a seed of its own. Raises `Refusal` if it cannot join."""
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
        """Raises `Refusal` SET_RUNNING if other bots may still play the deals of this match."""
        name = match.deal_set.name
        if name and not await self.store.sets.is_over(name):
            raise Refusal(
                "SET_RUNNING",
                f"{match.name} shares its deals with other matches of {name}; "
                "it can be read when the last of them is over",
                deal_set=name,
            )

    async def get_set(self, name: str) -> pb.GetDealSetResponse:
        """Returns the present state of the set. Raises `Refusal` NOT_FOUND if there is none."""
        found = await _NAMES.find_resource(name, self.store.sets.get_set)
        return pb.GetDealSetResponse(size=found.size, matches=found.matches, over=found.is_over)

    async def close_set(self, name: str) -> pb.CloseDealSetResponse:
        """Closes the set, so that no more matches can join. Raises `Refusal` NOT_FOUND if there is none."""
        is_over = await _NAMES.find_resource(name, partial(self.store.sets.close_set, keep_s=self.keep_s))
        return pb.CloseDealSetResponse(over=is_over)


def _check_place(wanted: match_pb2.DealSet) -> None:
    _NAMES.check_name(wanted.name, "deal_set.name")
    if not 1 <= wanted.size <= LARGEST_SET:
        raise Refusal("INVALID_ARGUMENT", f"deal_set.size is {wanted.size}; it must be 1 to {LARGEST_SET}")
    if not 1 <= wanted.number <= wanted.size:
        raise Refusal(
            "INVALID_ARGUMENT", f"deal_set.number is {wanted.number}; it must be 1 to the size, {wanted.size}"
        )


def _deals_kind(setup: Setup) -> str:
    """Returns the properties that all matches of a set must share, because the deals depend on them."""
    return canonical_json(
        {
            "game": setup.game,
            "rules_version": setup.rules_version,
            "options": dict(setup.options.items()),
            "seats": len(setup.bots),
        }
    ).decode()


def _refusal_to_join(wanted: match_pb2.DealSet, why: SetRefused) -> Refusal:
    name = wanted.name
    if why.reason == "SIZE":
        return Refusal(
            "INVALID_ARGUMENT", f"deal_set.size is {wanted.size}; {name} has {why.instead} matches"
        )
    if why.reason == "KIND":
        return Refusal("INVALID_ARGUMENT", f"the matches of {name} are all of the kind {why.instead}")
    if why.reason == "TAKEN":
        message = f"match {wanted.number} of {name} is already {why.instead}"
        return Refusal("ALREADY_EXISTS", message, match=why.instead)
    return Refusal(
        "SET_OVER",
        f"{name} is over or closed: use another set, because its deals may be public",
        deal_set=name,
    )
