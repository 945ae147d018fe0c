"""Messages that tell a bot that it is not paired in a queue or ladder that it named."""

from __future__ import annotations

from seatwise.v1 import lobby_service_pb2 as pb
from seatwise_server.store import OffQueues


def off_ladder(ladder: str, reason: str) -> pb.TakenOff:
    """Returns the message for a ladder that the bot is off until it is reinstated."""
    return pb.TakenOff(queue=ladder, reason=reason, cause=pb.TakenOff.CAUSE_FORFEITS)


def off_queue(queue: str, off: OffQueues) -> pb.TakenOff:
    """Returns the message for a queue that the bot is off until a certain time."""
    taken_off = pb.TakenOff(queue=queue, reason=off.reason, cause=pb.TakenOff.CAUSE_NO_SHOWS)
    taken_off.back_time.FromMilliseconds(off.until_ms)
    return taken_off
