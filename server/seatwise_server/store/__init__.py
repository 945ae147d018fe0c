"""All access of the server to Redis.

`Store.of(new_client(url))` has every part of it. Each part documents what it returns when a thing does not exist.
All of them raise only StoreError. Fenced appends go through a `Flusher`, of which each process has one.
"""

from __future__ import annotations

from dataclasses import dataclass

from seatwise_server.store.audit import AuditEvent, AuditLine, AuditLog
from seatwise_server.store.bots import BotPage, Bots, Credential, Credentials, IssuedToken, RegisteredBot
from seatwise_server.store.group_commit.writer import AppendResult, AppendTimeouts, Flusher, Listeners
from seatwise_server.store.jobs import Job, Jobs, Tables
from seatwise_server.store.journal import Death, Fence, Journal
from seatwise_server.store.keeping import DealSets, Deliveries, EndedMatch, Keeping, SetOfDeals
from seatwise_server.store.matches import Matches, MatchMeta, StoredMatchPage
from seatwise_server.store.owners import (
    OWNERS_PREFIX,
    OwnerCount,
    OwnerCreation,
    OwnerLimits,
    OwnerMatches,
    OwnerRoom,
    Owners,
    StoredOwner,
)
from seatwise_server.store.processes import DeathWatch, Heartbeat, Leases, Order, Processes
from seatwise_server.store.queues import (
    Attendance,
    Attendances,
    Proposal,
    QueueEntry,
    Queues,
    counts_no_shows,
)
from seatwise_server.store.redis.client import RedisClient
from seatwise_server.store.redis.cluster import new_client
from seatwise_server.store.redis.durability import (
    NodeFacts,
    ReplicaWait,
    ServerFacts,
    check_server,
    check_settings,
)
from seatwise_server.store.redis.scripts import now_ms
from seatwise_server.store.results import (
    Event,
    LadderExclusion,
    LadderMeta,
    Ladders,
    LeagueMeta,
    Leagues,
    ResultLogs,
    Shown,
)
from seatwise_server.store.seats import (
    NoShow,
    NoShows,
    OffQueues,
    QueueRoom,
    Reservation,
    SeatNews,
    SeatOf,
    SeatOffer,
    Seats,
)
from seatwise_server.store.tokens import (
    AccessTokenPage,
    AccessTokens,
    Invites,
    IssuedAccessToken,
    IssuedInvite,
    StoredAccessToken,
    StoredInvite,
)

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
        """Return the store behind this client. The caller closes the client."""
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
