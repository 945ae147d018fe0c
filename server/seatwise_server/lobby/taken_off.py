"""What a bot is told when it is not paired in a queue or ladder that it named."""

from __future__ import annotations

from seatwise.v1 import lobby_service_pb2 as pb
from seatwise_server.store import OffQueues


def off_ladder(ladder: str, reason: str) -> pb.TakenOff:
    """Until it is reinstated."""
    return pb.TakenOff(queue=ladder, reason=reason, cause=pb.TakenOff.CAUSE_FORFEITS)


def off_queue(queue: str, off: OffQueues) -> pb.TakenOff:
    """Until the time that is told."""
    taken_off = pb.TakenOff(queue=queue, reason=off.reason, cause=pb.TakenOff.CAUSE_NO_SHOWS)
    taken_off.back_time.FromMilliseconds(off.until_ms)
    return taken_off
