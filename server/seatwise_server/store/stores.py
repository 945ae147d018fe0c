"""The stores of one Redis, together."""

from __future__ import annotations

from dataclasses import dataclass

from redis.asyncio import Redis

from seatwise_server.store.attendance import Attendances
from seatwise_server.store.bots import Bots
from seatwise_server.store.jobs import Jobs
from seatwise_server.store.journal import Journal
from seatwise_server.store.matches import Matches
from seatwise_server.store.processes import Processes
from seatwise_server.store.queues import Queues
from seatwise_server.store.seats import Seats


@dataclass(frozen=True, slots=True)
class Stores:
    """What the roles share."""

    client: Redis
    journal: Journal
    matches: Matches
    bots: Bots
    seats: Seats
    attendances: Attendances
    queues: Queues
    jobs: Jobs
    processes: Processes

    @classmethod
    def on(cls, client: Redis) -> Stores:
        """All stores on one client."""
        return cls(
            client,
            Journal(client),
            Matches(client),
            Bots(client),
            Seats(client),
            Attendances(client),
            Queues(client),
            Jobs(client),
            Processes(client),
        )
