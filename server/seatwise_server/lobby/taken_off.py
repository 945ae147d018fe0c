"""Messages that tell a bot that it is not paired in a queue or ladder that it named."""

from __future__ import annotations

from seatwise.v1 import lobby_service_pb2 as pb
from seatwise_server.store import LadderExclusion, OffQueues, OwnerRoom


def off_ladder(ladder: str, off: LadderExclusion) -> pb.TakenOff:
    """Returns the message for a ladder that the bot is off until it is reinstated."""
    taken_off = pb.TakenOff(queue=ladder, reason=off.reason, cause=pb.TakenOff.CAUSE_FORFEITS)
    if off.back_ms:
        taken_off.back_time.FromMilliseconds(off.back_ms)
    return taken_off


def off_queue(queue: str, off: OffQueues) -> pb.TakenOff:
    """Returns the message for a queue that the bot is off until a certain time."""
    taken_off = pb.TakenOff(queue=queue, reason=off.reason, cause=pb.TakenOff.CAUSE_NO_SHOWS)
    taken_off.back_time.FromMilliseconds(off.until_ms)
    return taken_off


def off_for_owner(queue: str, room: OwnerRoom) -> pb.TakenOff:
    """Returns the message for a queue in which the bot is not paired because of its owner's quotas of matches."""
    if not room.is_spent:
        reason = "the quota of matches at once of your owner is 0; ask the operator for more"
    elif not room.back_ms:
        reason = "the quota of matches in 24 hours of your owner is 0; ask the operator for more"
    else:
        reason = f"the bots of your owner have begun as many matches in 24 hours as its quota allows ({room.day_matches})"
    taken_off = pb.TakenOff(queue=queue, reason=reason, cause=pb.TakenOff.CAUSE_OWNER_QUOTA)
    if room.is_spent and room.back_ms:
        taken_off.back_time.FromMilliseconds(room.back_ms)
    return taken_off
