"""How many bots wait in each queue, for metrics and for operators."""

from __future__ import annotations

from seatwise_server.lobby.queue import CREATED, QUEUES
from seatwise_server.store import Store


async def read_queue_depths(store: Store) -> dict[str, int]:
    """Returns the number of bots that wait in each queue and ladder, and of created matches that wait for their bots."""
    queues = (*QUEUES, CREATED, *await store.ladders.list_names())
    return {queue: await store.queues.count_waiting(queue) for queue in queues}
