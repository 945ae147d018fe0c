"""Seats for guests: a person without an account plays one unrated match against house bots, from a page.

A page gives out a ticket, of which nothing is stored. A place is taken, and the match is made, when the page attends the lobby with
it. The ticket is the token of the guest's bot then, for this match only. Places are in Redis, so that all lobbies together admit no
more guests than one.
"""

from __future__ import annotations

import asyncio
import json
import random
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import astuple, dataclass
from typing import Final

from seatwise.kits import KITS
from seatwise.kits.game_kit import GuestTable
from seatwise.v1 import match_pb2, match_service_pb2
from seatwise_server import resources
from seatwise_server.limits import GUEST_MATCHES_PER_MINUTE, TokenBuckets
from seatwise_server.refusal import Refusal
from seatwise_server.resource_names import bot_name_for, match_name_for, parse_bot_name
from seatwise_server.services.access import SCOPES_OF_GUESTS, SCOPES_OF_PEOPLE
from seatwise_server.services.authentication import Caller
from seatwise_server.services.operations import Operation
from seatwise_server.services.read_budget import network_of
from seatwise_server.store import Store
from seatwise_server.store.errors import BotExists

GUEST_TOKEN_S: Final = 2 * 3600
"""How long a guest's token is valid: longer than a match lasts in which every seat uses all its time."""
GUEST_COMES_S: Final = 60.0
"""A match that still waits by then is ended when its place is needed: its guest has gone again."""
GUEST_OWNER: Final = "guest"
_PLACE_MS: Final = 30 * 86_400_000
_OVER_STATES: Final = (match_pb2.Match.STATE_FINISHED, match_pb2.Match.STATE_VOIDED)
_GUEST_HOST: Final = Caller(name="guest seats", scopes=SCOPES_OF_PEOPLE)
"""Creates and ends the matches of guests."""


@dataclass(frozen=True, slots=True)
class GuestTicket:
    """The contents of a ticket. All else about the match follows from them."""

    request_id: str
    game: str
    network: str
    """Of the browser that asked for it."""
    expire_s: float
    """By the clock of the machines."""

    @property
    def match(self) -> str:
        """Format: matches/{match}."""
        return match_name_for(self.request_id)

    @property
    def bot(self) -> str:
        """The guest's bot, of the form bots/{bot}/versions/{version}."""
        return bot_name_for(f"guest-{self.request_id[:12]}", "1")

    @property
    def bots(self) -> tuple[str, ...]:
        """Of all seats, in an order that nobody has chosen."""
        bots = [self.bot, *(f"bots/{each}/versions/1" for each in guest_table_of(self.game).house_bots)]
        random.Random(self.request_id).shuffle(bots)
        return tuple(bots)


class GuestTickets:
    """Gives tickets to guests, and reads them."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        """`now` returns seconds."""
        self._tokens = store.access_tokens
        self._asked = _new_rate(now)

    async def new_ticket(self, peer: str, game: str) -> tuple[GuestTicket, str]:
        """Return a ticket for a guest who comes from this address, and its text. Raises `Refusal` NOT_FOUND or RATE_EXCEEDED."""
        guest_table_of(game)
        network = network_of(peer)
        _check_rate(self._asked, network)
        ticket = GuestTicket(secrets.token_hex(16), game, network, time.time() + GUEST_TOKEN_S)
        return ticket, await self._tokens.new_ticket(json.dumps(astuple(ticket)))

    async def read_ticket(self, text: str) -> GuestTicket | None:
        """Return the ticket; None for a text that is no ticket of this server, or no longer valid."""
        contents = await self._tokens.open_ticket(text)
        ticket = GuestTicket(*json.loads(contents)) if contents else None
        return ticket if ticket and ticket.expire_s > time.time() else None


class GuestSeats:
    """Seats the guests that come to a lobby with a ticket."""

    def __init__(
        self, store: Store, operations: Iterable[Operation], most: int, now: Callable[[], float]
    ) -> None:
        """At most `most` guests play at once, a quarter of them from one address. `now` returns seconds."""
        handlers = {operation.method: operation.handle for operation in operations}
        self._store = store
        self._create = handlers["/seatwise.v1.MatchService/CreateMatch"]
        self._abort = handlers["/seatwise.v1.MatchService/AbortMatch"]
        self._most = most
        self._most_of_network = max(1, most // 4)
        self._tickets = GuestTickets(store, now)
        self._begun = _new_rate(now)
        self._turn = asyncio.Lock()
        """One guest is admitted at a time, so that nobody is counted too late."""

    async def admit_guest(self, token: str) -> None:
        """Take a place and make the match if the token is a ticket that was not used yet. Raises `Refusal` RATE_EXCEEDED,
        QUOTA_EXCEEDED or SERVER_FULL.

        It may be repeated after a crash between any two of its steps: the token, by which a guest is known, is stored last.
        """
        ticket = await self._tickets.read_ticket(token)
        if ticket is None or await self._store.access_tokens.is_used(token):
            return
        async with self._turn:
            if not await self._store.access_tokens.is_used(token):
                _check_rate(self._begun, ticket.network)
                await self._take_place(ticket)
                await self._make_match(ticket)
                scopes = frozenset(scope.value for scope in SCOPES_OF_GUESTS)
                await self._store.access_tokens.use_ticket(token, ticket.bot, scopes, GUEST_TOKEN_S * 1000)

    async def _take_place(self, ticket: GuestTicket) -> None:
        """Take a place for the match, unless it has one. Places of matches that are over are free again."""
        holder, free, of_network = f"{ticket.match} {ticket.network}", [], 0
        for place in (f"guest-{number}" for number in range(self._most)):
            held = await self._find_holder(place)
            if held == holder:
                return
            if not held:
                free.append(place)
            of_network += held.endswith(f" {ticket.network}")
        if free and of_network >= self._most_of_network:
            why = f"your address has {of_network} of the {self._most} places for guests; end a match first"
            raise Refusal("QUOTA_EXCEEDED", why, retry_after="60")
        for place in free:
            if await self._store.leases.take_lease(place, holder, _PLACE_MS):
                return
        why = f"all {self._most} places for guests are taken; come back in a minute"
        raise Refusal("SERVER_FULL", why, retry_after="60")

    async def _find_holder(self, place: str) -> str:
        """Return who has the place; empty if it is free. Frees it if its match is over, or if its guest has gone again."""
        held = await self._store.leases.read_holder(place)
        if held is None:
            return ""
        holder, left_ms = held
        if not await self._end_if_left(holder.partition(" ")[0], (_PLACE_MS - left_ms) / 1000):
            return holder
        await self._store.leases.release_lease(place, holder)
        return ""

    async def _end_if_left(self, match: str, age_s: float) -> bool:
        """Return whether the match is over. Ends it if it still waits after `GUEST_COMES_S`."""
        meta = await self._store.matches.get_meta(match)
        state = None if meta is None or "setup" not in meta.fields else resources.match_resource(meta).state
        if state in _OVER_STATES or age_s <= GUEST_COMES_S:
            return state in _OVER_STATES
        if state == match_pb2.Match.STATE_WAITING:
            await self._abort(_GUEST_HOST, match_service_pb2.AbortMatchRequest(name=match))
        return state in (match_pb2.Match.STATE_WAITING, None)

    async def _make_match(self, ticket: GuestTicket) -> None:
        with suppress(BotExists):
            await self._store.bots.register_guest(parse_bot_name(ticket.bot)[0], GUEST_OWNER, _PLACE_MS)
        request = match_service_pb2.CreateMatchRequest(
            game=f"games/{ticket.game}",
            bots=ticket.bots,
            request_id=ticket.request_id,
            time_control={"free_ms": guest_table_of(ticket.game).free_ms},
        )
        await self._create(_GUEST_HOST, request)


def _new_rate(now: Callable[[], float]) -> TokenBuckets:
    return TokenBuckets(GUEST_MATCHES_PER_MINUTE / 60, GUEST_MATCHES_PER_MINUTE, now)


def _check_rate(rate: TokenBuckets, network: str) -> None:
    wait_s = rate.measure_wait(network, 1)
    if wait_s > 0:
        retry = str(int(wait_s) + 1)
        why = "your address has begun many matches; wait a moment"
        raise Refusal("RATE_EXCEEDED", why, retry_after=retry)
    rate.take_units(network, 1)


def guest_table_of(game: str) -> GuestTable:
    """Return the match that a guest plays. Raises `Refusal` NOT_FOUND for a game that no page can play."""
    kit = KITS.get(game)
    if kit is None or kit.guest_table is None:
        raise Refusal("NOT_FOUND", f"no page can play {game[:80]!r}; there are {', '.join(guest_games())}")
    return kit.guest_table


def guest_games() -> tuple[str, ...]:
    return tuple(name for name, kit in KITS.items() if kit.guest_table)
