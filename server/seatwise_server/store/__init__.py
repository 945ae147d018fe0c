"""All access of the server to Redis.

`Store.of(new_client(url))` has every part of it. Each part documents what it returns when a thing does not exist.
All of them raise only StoreError. Fenced appends go through a `Flusher`, of which each process has one.
"""

from __future__ import annotations

from dataclasses import dataclass

from seatwise_server.store.access_tokens import (
    AccessTokenPage,
    AccessTokens,
    IssuedAccessToken,
    StoredAccessToken,
)
from seatwise_server.store.attendance import Attendance, Attendances
from seatwise_server.store.audit import AuditEvent, AuditLine, AuditLog
from seatwise_server.store.bots import BotPage, Bots, IssuedToken, RegisteredBot
from seatwise_server.store.credentials import Credential, Credentials
from seatwise_server.store.deliveries import Deliveries, EndedMatch
from seatwise_server.store.group_commit.writer import AppendResult, AppendTimeouts, Flusher, Listeners
from seatwise_server.store.invites import Invites, IssuedInvite, StoredInvite
from seatwise_server.store.jobs import Job, Jobs, Tables
from seatwise_server.store.journal import Death, Fence, Journal
from seatwise_server.store.keeping import Keeping
from seatwise_server.store.ladders import Event, LadderExclusion, LadderMeta, Ladders, Shown
from seatwise_server.store.leagues import LeagueMeta, Leagues
from seatwise_server.store.leases import Leases
from seatwise_server.store.matches import Matches, MatchMeta, StoredMatchPage
from seatwise_server.store.no_shows import NoShow, NoShows, OffQueues, SeatNews
from seatwise_server.store.owner_matches import (
    OWNERS_PREFIX,
    OwnerCount,
    OwnerLimits,
    OwnerMatches,
    OwnerRoom,
)
from seatwise_server.store.owners import OwnerCreation, Owners, StoredOwner
from seatwise_server.store.processes import DeathWatch, Heartbeat, Order, Processes
from seatwise_server.store.queues import Proposal, QueueEntry, Queues, counts_no_shows
from seatwise_server.store.redis.client import RedisClient
from seatwise_server.store.redis.clock import now_ms
from seatwise_server.store.redis.durability import NodeFacts, ServerFacts, check_server, check_settings
from seatwise_server.store.redis.new_client import new_client
from seatwise_server.store.redis.replica_wait import ReplicaWait
from seatwise_server.store.results import ResultLogs
from seatwise_server.store.seats import QueueRoom, Reservation, SeatOf, SeatOffer, Seats
from seatwise_server.store.sets import DealSets, SetOfDeals

__all__ = [
    "OWNERS_PREFIX",
    "AccessTokenPage",
    "AccessTokens",
    "AppendResult",
    "AppendTimeouts",
    "Attendance",
    "Attendances",
    "AuditEvent",
    "AuditLine",
    "AuditLog",
    "BotPage",
    "Bots",
    "Credential",
    "Credentials",
    "DealSets",
    "Death",
    "DeathWatch",
    "Deliveries",
    "EndedMatch",
    "Event",
    "Fence",
    "Flusher",
    "Heartbeat",
    "Invites",
    "IssuedAccessToken",
    "IssuedInvite",
    "IssuedToken",
    "Job",
    "Jobs",
    "Journal",
    "Keeping",
    "LadderExclusion",
    "LadderMeta",
    "Ladders",
    "LeagueMeta",
    "Leagues",
    "Leases",
    "Listeners",
    "MatchMeta",
    "Matches",
    "NoShow",
    "NoShows",
    "NodeFacts",
    "OffQueues",
    "Order",
    "OwnerCount",
    "OwnerCreation",
    "OwnerLimits",
    "OwnerMatches",
    "OwnerRoom",
    "Owners",
    "Processes",
    "Proposal",
    "QueueEntry",
    "QueueRoom",
    "Queues",
    "RedisClient",
    "RegisteredBot",
    "ReplicaWait",
    "Reservation",
    "ResultLogs",
    "SeatNews",
    "SeatOf",
    "SeatOffer",
    "Seats",
    "ServerFacts",
    "SetOfDeals",
    "Shown",
    "Store",
    "StoredAccessToken",
    "StoredInvite",
    "StoredMatchPage",
    "StoredOwner",
    "Tables",
    "check_server",
    "check_settings",
    "counts_no_shows",
    "new_client",
    "now_ms",
]


@dataclass(frozen=True, slots=True)
class Store:
    """All parts of the store on one Redis."""

    client: RedisClient
    journal: Journal
    matches: Matches
    bots: Bots
    access_tokens: AccessTokens
    invites: Invites
    owners: Owners
    owner_matches: OwnerMatches
    credentials: Credentials
    audit: AuditLog
    attendances: Attendances
    seats: Seats
    no_shows: NoShows
    queues: Queues
    jobs: Jobs
    processes: Processes
    leases: Leases
    sets: DealSets
    results: ResultLogs
    ladders: Ladders
    leagues: Leagues
    deliveries: Deliveries
    keeping: Keeping

    @classmethod
    def of(cls, client: RedisClient) -> Store:
        """Returns the store behind this client. The caller closes the client."""
        return cls(
            client,
            Journal(client),
            Matches(client),
            Bots(client),
            AccessTokens(client),
            Invites(client),
            Owners(client),
            OwnerMatches(client),
            Credentials(client),
            AuditLog(client),
            Attendances(client),
            Seats(client),
            NoShows(client),
            Queues(client),
            Jobs(client),
            Processes(client),
            Leases(client),
            DealSets(client),
            ResultLogs(client),
            Ladders(client),
            Leagues(client),
            Deliveries(client),
            Keeping(client),
        )
