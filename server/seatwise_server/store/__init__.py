"""All access of the server to Redis.

`Store(new_client(url))` has every part of it. Each part documents what it returns when a thing does not exist.
All of them raise only StoreError. Fenced appends go through a `Flusher`, of which each process has one.
"""

from __future__ import annotations

from seatwise_server.store.audit import AuditEvent as AuditEvent
from seatwise_server.store.audit import AuditLog as AuditLog
from seatwise_server.store.bots import Bots as Bots
from seatwise_server.store.bots import Credential as Credential
from seatwise_server.store.bots import Credentials as Credentials
from seatwise_server.store.bots import RegisteredBot as RegisteredBot
from seatwise_server.store.group_commit.node_writer import AppendTimeouts as AppendTimeouts
from seatwise_server.store.group_commit.router import Listeners as Listeners
from seatwise_server.store.group_commit.writer import AppendResult as AppendResult
from seatwise_server.store.group_commit.writer import Flusher as Flusher
from seatwise_server.store.jobs import Job as Job
from seatwise_server.store.jobs import Jobs
from seatwise_server.store.jobs import Tables as Tables
from seatwise_server.store.journal import Death as Death
from seatwise_server.store.journal import Fence as Fence
from seatwise_server.store.journal import Journal as Journal
from seatwise_server.store.keeping import DealSets, Deliveries, Keeping
from seatwise_server.store.keeping import EndedMatch as EndedMatch
from seatwise_server.store.keeping import SetOfDeals as SetOfDeals
from seatwise_server.store.matches import Matches as Matches
from seatwise_server.store.matches import MatchMeta as MatchMeta
from seatwise_server.store.matches import StoredMatchPage as StoredMatchPage
from seatwise_server.store.owners import OWNERS_PREFIX as OWNERS_PREFIX
from seatwise_server.store.owners import OwnerCount as OwnerCount
from seatwise_server.store.owners import OwnerCreation as OwnerCreation
from seatwise_server.store.owners import OwnerLimits as OwnerLimits
from seatwise_server.store.owners import OwnerMatches as OwnerMatches
from seatwise_server.store.owners import OwnerRoom as OwnerRoom
from seatwise_server.store.owners import Owners as Owners
from seatwise_server.store.owners import StoredOwner as StoredOwner
from seatwise_server.store.processes import DeathWatch as DeathWatch
from seatwise_server.store.processes import Heartbeat as Heartbeat
from seatwise_server.store.processes import Leases, Processes
from seatwise_server.store.queues import Attendance as Attendance
from seatwise_server.store.queues import Attendances, Queues
from seatwise_server.store.queues import Proposal as Proposal
from seatwise_server.store.queues import QueueEntry as QueueEntry
from seatwise_server.store.queues import counts_no_shows as counts_no_shows
from seatwise_server.store.redis.client import RedisClient as RedisClient
from seatwise_server.store.redis.cluster import new_client as new_client
from seatwise_server.store.redis.durability import ReplicaWait as ReplicaWait
from seatwise_server.store.redis.durability import check_server as check_server
from seatwise_server.store.redis.durability import check_settings as check_settings
from seatwise_server.store.redis.scripts import now_ms as now_ms
from seatwise_server.store.results import CompetitionMeta as CompetitionMeta
from seatwise_server.store.results import Event as Event
from seatwise_server.store.results import LadderExclusion as LadderExclusion
from seatwise_server.store.results import Ladders, Leagues
from seatwise_server.store.results import ResultLogs as ResultLogs
from seatwise_server.store.seats import NoShow as NoShow
from seatwise_server.store.seats import NoShows, Seats
from seatwise_server.store.seats import OffQueues as OffQueues
from seatwise_server.store.seats import QueueRoom as QueueRoom
from seatwise_server.store.seats import Reservation as Reservation
from seatwise_server.store.seats import SeatNews as SeatNews
from seatwise_server.store.seats import SeatOf as SeatOf
from seatwise_server.store.seats import SeatOffer as SeatOffer
from seatwise_server.store.tokens import AccessTokens, Invites
from seatwise_server.store.tokens import IssuedAccessToken as IssuedAccessToken
from seatwise_server.store.tokens import StoredAccessToken as StoredAccessToken
from seatwise_server.store.tokens import StoredInvite as StoredInvite


class Store:
    """All parts of the store on one Redis. The caller closes the client."""

    def __init__(self, client: RedisClient) -> None:
        self.client = client
        self.journal = Journal(client)
        self.matches = Matches(client)
        self.bots = Bots(client)
        self.access_tokens = AccessTokens(client)
        self.invites = Invites(client)
        self.owners = Owners(client)
        self.owner_matches = OwnerMatches(client)
        self.credentials = Credentials(client)
        self.audit = AuditLog(client)
        self.attendances = Attendances(client)
        self.seats = Seats(client)
        self.no_shows = NoShows(client)
        self.queues = Queues(client)
        self.jobs = Jobs(client)
        self.processes = Processes(client)
        self.leases = Leases(client)
        self.sets = DealSets(client)
        self.results = ResultLogs(client)
        self.ladders = Ladders(client)
        self.leagues = Leagues(client)
        self.deliveries = Deliveries(client)
        self.keeping = Keeping(client)
