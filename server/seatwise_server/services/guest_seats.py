"""Seats for guests: a person without an account plays one unrated match against house bots, from a page.

Each guest gets a bot of its own, whose token is valid for this match only. Places are counted in Redis, so that all gateways
together admit no more guests than one.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from cachetools import TTLCache

from seatwise.kits import KITS
from seatwise.kits.game_kit import GuestTable
from seatwise.v1 import match_pb2, match_service_pb2
from seatwise_server import resources
from seatwise_server.match_names import match_name_for
from seatwise_server.refusal import Refusal
from seatwise_server.services.access import SCOPES_OF_GUESTS, SCOPES_OF_PEOPLE
from seatwise_server.services.authentication import Caller
from seatwise_server.services.operations import Operation
from seatwise_server.services.read_budget import network_of
from seatwise_server.store import Store
from seatwise_server.token_buckets import TokenBuckets

GUEST_TOKEN_S: Final = 2 * 3600
"""How long a guest's token is valid: longer than a match lasts in which every seat uses all its time."""
GUESTS_OF_NETWORK: Final = 3
"""Matches of guests of one address at the same time."""
GUEST_MATCHES_PER_MINUTE: Final = 6.0
"""Matches that guests of one address may begin in a minute."""
GUEST_COMES_S: Final = 60.0
"""A match is ended whose guest has not come by then."""
MOST_NETWORKS: Final = 10_000
GUEST_OWNER: Final = "guest"
_PLACE_MS: Final = 30 * 86_400_000
_OVER_STATES: Final = (match_pb2.Match.STATE_FINISHED, match_pb2.Match.STATE_VOIDED)
_GUEST_HOST: Final = Caller(name="guest seats", scopes=SCOPES_OF_PEOPLE)
"""Creates and ends the matches of guests."""


@dataclass(frozen=True, slots=True)
class GuestSeat:
    """A match that waits for a guest."""

    match: str
    """Format: matches/{match}."""
    bot: str
    """The guest's bot, of the form bots/{bot}/versions/{version}."""
    token: str


class GuestSeats:
    """Admits guests."""

    def __init__(
        self, store: Store, operations: Iterable[Operation], most: int, now: Callable[[], float]
    ) -> None:
        """At most `most` guests play at once. `now` returns seconds."""
        handlers = {operation.method: operation.handle for operation in operations}
        self._store = store
        self._create = handlers["/seatwise.v1.MatchService/CreateMatch"]
        self._abort = handlers["/seatwise.v1.MatchService/AbortMatch"]
        self._most = most
        self._begun = TokenBuckets(GUEST_MATCHES_PER_MINUTE / 60, GUEST_MATCHES_PER_MINUTE, now)
        self._now = now
        self._turn = asyncio.Lock()
        """One guest is admitted at a time, so that nobody is counted too late."""
        self._played: TTLCache[str, dict[str, float]] = TTLCache(MOST_NETWORKS, GUEST_TOKEN_S, timer=now)
        """The matches of each network that may go on still, with the time at which each was made."""

    async def take_seat(self, peer: str, game: str) -> GuestSeat:
        """Makes a match for a guest who comes from this address. Raises `Refusal` NOT_FOUND, RATE_EXCEEDED, QUOTA_EXCEEDED or
        SERVER_FULL.
        """
        table = guest_table_of(game)
        network = network_of(peer)
        async with self._turn:
            self._check_rate(network)
            await self._check_network(network)
            request_id = secrets.token_hex(16)
            match = match_name_for(request_id)
            await self._take_place(match)
            self._played[network][match] = self._now()
            return await self._make_match(match, request_id, game, table)

    def _check_rate(self, network: str) -> None:
        wait_s = self._begun.measure_wait(network, 1)
        if wait_s > 0:
            retry = str(int(wait_s) + 1)
            raise Refusal(
                "RATE_EXCEEDED", "your address has begun many matches; wait a moment", retry_after=retry
            )
        self._begun.take_units(network, 1)

    async def _check_network(self, network: str) -> None:
        made = self._played.get(network, {})
        going_on = {
            match: at for match, at in made.items() if not await self._end_if_left(match, self._now() - at)
        }
        self._played[network] = going_on
        if len(going_on) >= GUESTS_OF_NETWORK:
            raise Refusal(
                "QUOTA_EXCEEDED", f"{len(going_on)} guests of your address play already; end a match first"
            )

    async def _take_place(self, match: str) -> None:
        """Takes a place for the match. Places of matches that are over are free again. Raises `Refusal` SERVER_FULL."""
        for place in (f"guest-{number}" for number in range(self._most)):
            await self._free_place(place)
            if await self._store.leases.take_lease(place, match, _PLACE_MS):
                return
        raise Refusal(
            "SERVER_FULL", f"{self._most} guests play already; come back in a minute", retry_after="60"
        )

    async def _free_place(self, place: str) -> None:
        """Frees the place if its match is over, or if nobody has come to it."""
        held = await self._store.leases.read_holder(place)
        if held and await self._end_if_left(held[0], (_PLACE_MS - held[1]) / 1000):
            await self._store.leases.release_lease(place, held[0])

    async def _end_if_left(self, match: str, age_s: float) -> bool:
        """Returns whether the match is over. Ends it if its guest has not come within `GUEST_COMES_S`."""
        state = await self._read_state(match)
        if state in _OVER_STATES or age_s <= GUEST_COMES_S:
            return state in _OVER_STATES
        if state == match_pb2.Match.STATE_WAITING:
            await self._abort(_GUEST_HOST, match_service_pb2.AbortMatchRequest(name=match))
        return state in (match_pb2.Match.STATE_WAITING, None)

    async def _read_state(self, match: str) -> int | None:
        """Returns the state of the match; None if it is not created yet, or no longer kept."""
        meta = await self._store.matches.get_meta(match)
        return None if meta is None or "setup" not in meta.fields else resources.match_resource(meta).state

    async def _make_match(self, match: str, request_id: str, game: str, table: GuestTable) -> GuestSeat:
        name = f"guest-{secrets.token_hex(6)}"
        bot = await self._store.bots.register_guest(name, GUEST_OWNER, _PLACE_MS)
        scopes = frozenset(scope.value for scope in SCOPES_OF_GUESTS)
        token = await self._store.access_tokens.create_brief_token(bot, scopes, GUEST_TOKEN_S * 1000)
        bots = [bot, *(f"bots/{each}/versions/1" for each in table.house_bots)]
        secrets.SystemRandom().shuffle(bots)
        request = match_service_pb2.CreateMatchRequest(
            game=f"games/{game}", bots=bots, request_id=request_id, time_control={"free_ms": table.free_ms}
        )
        await self._create(_GUEST_HOST, request)
        return GuestSeat(match, bot, token)


def guest_table_of(game: str) -> GuestTable:
    """Returns the match that a guest plays. Raises `Refusal` NOT_FOUND for a game that no page can play."""
    kit = KITS.get(game)
    if kit is None or kit.guest_table is None:
        raise Refusal("NOT_FOUND", f"no page can play {game[:80]!r}; there are {', '.join(guest_games())}")
    return kit.guest_table


def guest_games() -> tuple[str, ...]:
    """Returns the names of the games that guests can play."""
    return tuple(name for name, kit in KITS.items() if kit.guest_table)
