"""The referee role: owns the tables of its matches, and plays them until they are delivered."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

import structlog

from seatwise_referee.ending import VoidReason
from seatwise_server.game_choice import GameChoice, GameKind
from seatwise_server.play.delivery import Delivery
from seatwise_server.play.distance_meter import DistanceMeters
from seatwise_server.play.inbound import InboundItems
from seatwise_server.play.lag import EventLoopLag
from seatwise_server.play.lease import Lease
from seatwise_server.play.match_admission import MatchAdmission
from seatwise_server.play.match_claims import MatchClaims
from seatwise_server.play.match_ownership import MatchOwnership
from seatwise_server.play.open_tables import ANSWER_S, OpenTables
from seatwise_server.play.seat_offers import SeatOffers
from seatwise_server.play.stream_registry import PlayStreams
from seatwise_server.play.transport_lag import TransportLag
from seatwise_server.store import Flusher, Store
from seatwise_server.store.errors import StoreUnavailable

DEREGISTER_TIMEOUT_S = 1.0
"""The longest time to deregister at the store when this referee stops, in seconds; the store may be gone."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RefereeIdentity:
    """The identity of this referee."""

    name: str
    """Unique to this process; the owner in fences."""
    address: str
    """host:port for bots; empty if lobby and referee are one server."""
    most_tables: int
    ws_address: str = ""
    """ws://host:port for bots that come by WebSocket; empty as `address`, or where there is no such port."""
    games: GameChoice = GameChoice.ALL


class Referee:
    """The referee of one process."""

    def __init__(
        self,
        place: RefereeIdentity,
        store: Store,
        flusher: Flusher,
        lag: EventLoopLag,
        delivery: Delivery,
        proxies: Collection[str] = (),
    ) -> None:
        """`proxies` are addresses or networks of proxies, behind which bots may be at any distance."""
        self.place = place
        self.lease = Lease(asyncio.get_running_loop().time)
        self.streams = PlayStreams()
        self.meters = DistanceMeters(proxies)
        self.transport_lag = TransportLag(lag)
        """How far gRPC is behind, as far as somebody measures it."""
        self._store = store
        claims = MatchClaims(place.name, store, flusher, delivery, place.games)
        offers = SeatOffers(place.name, place.address, store, place.ws_address)
        self.open_tables = OpenTables(claims, offers, self.lease, lag, self.transport_lag, self.streams)
        self.tables = self.open_tables.tables
        self.admission = MatchAdmission(claims, offers, self.lease, self.open_tables, place.most_tables)
        self.intake = InboundItems(self.tables, delivery.end_for)
        self.ownership = MatchOwnership(self.tables, self.streams, self.lease)

    @property
    def name(self) -> str:
        """The name of this referee, unique to this process."""
        return self.place.name

    @property
    def address(self) -> str:
        """The address at which bots reach it."""
        return self.place.address

    @property
    def game_kinds(self) -> Sequence[GameKind]:
        """The kinds of games that it plays."""
        return self.place.games.kinds

    @property
    def is_draining(self) -> bool:
        """Whether it takes no new matches."""
        return self.admission.is_draining

    @property
    def free_tables(self) -> int:
        """The number of further matches that it takes."""
        return self.admission.free_tables

    def obey_order(self, order: str) -> None:
        """Executes an order of a gateway; one that does not apply (any more) is ignored."""
        verb, _, match = order.partition(" ")
        log.info("order_executed", order=order)
        if verb == "drain":
            self.admission.is_draining = True
        elif verb == "abort" and match in self.tables and not self.admission.is_opening(match):
            self.tables[match].void_match(VoidReason.ABORTED)

    async def hand_over_matches(self) -> None:
        """Hands all matches over: they wait in the store for their next owner, which is notified at once."""
        self.admission.stop_admission()
        await self.open_tables.stop_tables()
        await self._stop_speaking()
        with suppress(StoreUnavailable, TimeoutError):
            async with asyncio.timeout(DEREGISTER_TIMEOUT_S):
                await self._store.processes.deregister_process(self.name)

    async def _stop_speaking(self) -> None:
        """Sends all acknowledged entries at once; after the lease is given up even they may not be sent."""
        self.streams.wake_writers()
        await asyncio.sleep(ANSWER_S)
        self.lease.give_up()
