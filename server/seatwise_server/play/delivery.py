"""What follows the last journal entry of a match. Every step may be repeated; a crash repeats them all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from seatwise.codec.match import encode_match_ended
from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee import record
from seatwise_referee.journal import Finished, Voided, decode
from seatwise_referee.setup import Setup
from seatwise_server.play.intake import NotYourSeat
from seatwise_server.store.flusher import Answer
from seatwise_server.store.journal import Journal
from seatwise_server.store.matches import Matches
from seatwise_server.store.seats import Seats


@dataclass(frozen=True, slots=True)
class End:
    """A match that is over, as all are to be told."""

    message: pb.MatchEnded
    record: bytes
    """One line; empty for a voided match."""
    state: str
    """FINISHED or VOIDED."""


def end_of(setup: Setup, journal: Sequence[bytes]) -> End:
    """The end of a match whose journal is complete.

    Of a match that was voided because its journal cannot be read, only the last entry is looked at.
    """
    last = decode(journal[-1])
    if isinstance(last, Finished):
        written = record.write(setup, journal)
        return End(encode_match_ended(last, setup.seed, written.chain), written.line, "FINISHED")
    assert isinstance(last, Voided), f"{setup.match} is not over"
    return End(encode_match_ended(last, setup.seed), b"", "VOIDED")


@dataclass(frozen=True, slots=True)
class Delivery:
    """Brings a finished match to where it is kept, and frees its bots."""

    journal: Journal
    matches: Matches
    seats: Seats
    keep_s: int
    """How long a record is kept."""

    async def end_for(self, match: str, bot: str, seat: int) -> pb.MatchEnded | None:
        """The end of a match that is not here, if it is over; NotYourSeat if the seat is not the bot's."""
        meta = await self.matches.get(match)
        if meta is None or "setup" not in meta.fields:
            raise NotYourSeat
        bots = Setup.from_json(json.loads(meta.fields["setup"])).bots
        if not (0 <= seat < len(bots) and bots[seat] == bot):
            raise NotYourSeat
        result = meta.fields.get("result")
        return pb.MatchEnded.FromString(result) if result else None

    async def read_end(self, setup: Setup) -> End:
        """From the journal, which alone is the truth."""
        return end_of(setup, await self.journal.read(setup.match))

    async def deliver(self, setup: Setup, epoch: int, owner: str, end: End) -> bool:
        """Keeps the record and frees the bots; False if the match belongs to somebody else now."""
        answer = await self.journal.retire(
            setup.match, epoch, owner, end.record, end.message.SerializeToString(), self.keep_s, end.state
        )
        if answer is Answer.FENCED:
            return False
        await self.matches.forget_later(setup.match, self.keep_s)
        await self.free_bots(setup)
        return True

    async def free_bots(self, setup: Setup) -> None:
        """Takes the seats of the match off its bots' books."""
        await self.seats.release_all(setup.match, setup.bots)
