"""What follows the last journal entry of a match. Every step may be repeated; a crash repeats them all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee import record
from seatwise_referee.ending import VoidReason
from seatwise_referee.journal import Finished, Voided, decode_entry
from seatwise_referee.match_state import MatchState
from seatwise_referee.setup import Setup
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.ladder.ladder_settings import LADDER_PREFIX
from seatwise_server.logged_results import decode_logged_result
from seatwise_server.play.inbound import NotYourSeat
from seatwise_server.play.no_shows import NOBODY, MissedSeats, NoShowNotes, absence_of
from seatwise_server.play.result_messages import encode_match_ended
from seatwise_server.store import Store
from seatwise_server.store.group_commit.writer import AppendResult


@dataclass(frozen=True, slots=True)
class MatchEnd:
    """A match that is over, as all are to be told."""

    message: pb.MatchEnded
    record: bytes
    """One line; empty for a voided match."""
    state: MatchState
    absence: MissedSeats = NOBODY
    """Who did not sit down, if that decided how it was played, or that it was not."""


def end_of(setup: Setup, journal: Sequence[bytes]) -> MatchEnd:
    """The end of a match whose journal is complete.

    Of a match that was voided because its journal cannot be read, only the last entry is looked at.
    """
    seed = b"" if setup.deal_set else setup.seed  # others may play the same deals yet
    last = decode_entry(journal[-1])
    if isinstance(last, Finished):
        written = record.write_record(setup, journal)
        message = encode_match_ended(last, seed, written.chain)
        return MatchEnd(message, written.line, MatchState.FINISHED, absence_of(setup, journal))
    assert isinstance(last, Voided), f"{setup.match} is not over"
    absence = absence_of(setup, journal) if last.reason == VoidReason.TOO_FEW_SAT else NOBODY
    message = encode_match_ended(last, seed)
    message.absent_seats.extend(absence.seats)
    return MatchEnd(message, b"", MatchState.VOIDED, absence)


def logged_result_of(setup: Setup, end: pb.MatchEnded) -> LoggedResult:
    """Return what counts of a finished match; its place in the log is not known yet."""
    deal = setup.deal_set.name if setup.deal_set else ""
    return decode_logged_result(end.result, match=setup.match, bots=setup.bots, deal=deal)


@dataclass(frozen=True, slots=True)
class Delivery:
    """Brings a finished match to where it is kept, and frees its bots."""

    store: Store
    keep_s: int
    """How long a record is kept."""

    async def end_for(self, match: str, bot: str, seat: int) -> pb.MatchEnded | None:
        """The end of a match that is not here, if it is over; NotYourSeat if the seat is not the bot's."""
        meta = await self.store.matches.get_meta(match)
        if meta is None or "setup" not in meta.fields:
            raise NotYourSeat
        bots = Setup.from_json(json.loads(meta.fields["setup"])).bots
        if not (0 <= seat < len(bots) and bots[seat] == bot):
            raise NotYourSeat
        result = meta.fields.get("result")
        return pb.MatchEnded.FromString(result) if result else None

    async def deliver_match(self, setup: Setup, epoch: int, owner: str, end: MatchEnd) -> bool:
        """Keeps the record and frees the bots; False if the match belongs to somebody else now."""
        await self._note_absence(setup, end)  # before the journal goes, from which it is known
        answer = await self.store.journal.retire_match(
            setup.match, epoch, owner, end.record, end.message.SerializeToString(), self.keep_s, end.state
        )
        if answer is AppendResult.FENCED:
            return False
        await self.store.matches.forget_later(setup.match, self.keep_s)
        await self._conclude_match(setup, end.message)
        return True

    async def _note_absence(self, setup: Setup, end: MatchEnd) -> None:
        if not setup.competition.startswith(LADDER_PREFIX):
            await NoShowNotes(self.store).note_absence(setup, end.absence)
        elif end.message.absent_seats:
            absent = [setup.bots[seat] for seat in end.message.absent_seats]
            await self.store.ladders.note_absence(setup.competition, setup.match, absent)

    async def conclude_delivery(self, setup: Setup) -> None:
        """What an owner may have left undone that died after it had delivered the record."""
        meta = await self.store.matches.get_meta(setup.match)
        if meta and "result" in meta.fields:
            await self.store.matches.forget_later(setup.match, self.keep_s)
            await self._conclude_match(setup, pb.MatchEnded.FromString(meta.fields["result"]))
        else:
            await self.store.seats.release_all(setup.match, setup.bots)

    async def _conclude_match(self, setup: Setup, end: pb.MatchEnded) -> None:
        """What is due once the record is kept; each step may be repeated. Last the bots are free for another match.

        Bots that sat down in a match that is void for others wait where they stood before it.
        """
        if setup.competition:
            await self._append_result(setup, end)
        if place := setup.deal_set:
            state = MatchState.VOIDED if end.void_reason else MatchState.FINISHED
            await self.store.sets.end_match(place.name, place.number, setup.match, state, self.keep_s)
        await self.store.seats.release_all(setup.match, setup.bots)
        if end.absent_seats:
            await NoShowNotes(self.store).seat_partners_again(setup, end.absent_seats)

    async def _append_result(self, setup: Setup, end: pb.MatchEnded) -> None:
        """A void match counts for nobody; but a league plays it again, so which they were has to be known."""
        if not end.void_reason:
            await self.store.results.append_result(setup.competition, logged_result_of(setup, end))
        elif not setup.competition.startswith(LADDER_PREFIX):
            await self.store.leagues.note_void(setup.competition, setup.match)
