"""The steps after the last journal entry of a match. Each step may be repeated; after a crash all of them are."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from seatwise.v1 import match_pb2
from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee import record
from seatwise_referee.ending import Ending, MatchState, VoidReason
from seatwise_referee.journal import Finished, Voided, decode_entry
from seatwise_referee.setup import Setup
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.ladder.ladder_settings import LADDER_PREFIX
from seatwise_server.logged_results import decode_logged_result
from seatwise_server.play.inbound import NotYourSeat
from seatwise_server.play.no_shows import (
    NO_MISSED_SEATS,
    MissedSeats,
    explain_absence,
    find_missed_seats,
    note_no_shows,
    requeue_partners,
)
from seatwise_server.store import EndedMatch, Store
from seatwise_server.store.group_commit.writer import AppendResult
from seatwise_server.tracing import TRACING

_ENDING_NUMBERS: Final[dict[Ending, Any]] = {
    ending: match_pb2.Ending.Value(f"ENDING_{ending.name}") for ending in Ending
}


@dataclass(frozen=True, slots=True)
class MatchEnd:
    """The end of a match, as everyone is told."""

    message: pb.MatchEnded
    record: bytes
    """One line; empty for a voided match."""
    state: MatchState
    absence: MissedSeats = NO_MISSED_SEATS
    """The seats whose bots did not sit down, if that influenced the play or voided the match."""


def end_of(setup: Setup, journal: Sequence[bytes]) -> MatchEnd:
    """Return the end of a match whose journal is complete.

    For a match that was voided because its journal cannot be read, only the last entry is read.
    """
    seed = b"" if setup.deal_set else setup.seed  # others may still play the same deals
    last = decode_entry(journal[-1])
    if isinstance(last, Finished):
        written = record.write_record(setup, journal)
        message = encode_match_ended(last, seed, written.chain)
        return MatchEnd(message, written.line, MatchState.FINISHED, find_missed_seats(setup, journal))
    assert isinstance(last, Voided), f"{setup.match} is not over"
    absence = find_missed_seats(setup, journal) if last.reason == VoidReason.TOO_FEW_SAT else NO_MISSED_SEATS
    message = encode_match_ended(last, seed)
    message.absent_seats.extend(absence.seats)
    return MatchEnd(message, b"", MatchState.VOIDED, absence)


def logged_result_of(setup: Setup, end: pb.MatchEnded) -> LoggedResult:
    """Return the result of a finished match as it is logged; its place in the log is not known yet."""
    deal = setup.deal_set.name if setup.deal_set else ""
    return decode_logged_result(end.result, match=setup.match, bots=setup.bots, deal=deal)


@dataclass(frozen=True, slots=True)
class Delivery:
    """Stores the record of a finished match, logs its result, and frees its bots."""

    store: Store
    keep_s: int
    """For how many seconds a record is kept."""

    async def end_for(self, match: str, bot: str, seat: int) -> pb.MatchEnded | None:
        """Return the end of a match without a table here, None if it is not over. Raises NotYourSeat."""
        meta = await self.store.matches.get_meta(match)
        if meta is None or "setup" not in meta.fields:
            raise NotYourSeat
        bots = Setup.from_json(json.loads(meta.fields["setup"])).bots
        if not (0 <= seat < len(bots) and bots[seat] == bot):
            raise NotYourSeat
        result = meta.fields.get("result")
        return pb.MatchEnded.FromString(result) if result else None

    async def deliver_match(
        self, setup: Setup, epoch: int, owner: str, end: MatchEnd, on_stored: Callable[[], None] | None = None
    ) -> bool:
        """Store the record and free the bots; returns False if the match belongs to another owner now.

        `on_stored` is called as soon as anyone can read the record.
        """
        with TRACING.open_span("delivery", match=setup.match):
            await self._note_absence(setup, end)  # before its source, the journal, is dropped
            answer = await self.store.journal.retire_match(
                setup.match, epoch, owner, end.record, end.message.SerializeToString(), end.state
            )
            if answer is AppendResult.FENCED:
                return False
            if on_stored:
                on_stored()
            await self._conclude_match(setup, end.message)
            return True

    async def _note_absence(self, setup: Setup, end: MatchEnd) -> None:
        if _is_void_in_league(setup, end.message):
            await explain_absence(self.store, setup, end.message, end.absence)
        if not setup.competition.startswith(LADDER_PREFIX):
            await note_no_shows(self.store, setup, end.absence)
        elif end.message.absent_seats and not end.absence.is_excused:
            await self._note_absence_on_ladder(setup, end.message.absent_seats)

    async def _note_absence_on_ladder(self, setup: Setup, seats: Sequence[int]) -> None:
        """Leave out the bots that no lobby told of their seats in time: that they are absent is our fault."""
        absent = [(setup.bots[seat], seat) for seat in seats]
        knew = await self.store.no_shows.read_who_knew(setup.match, absent)
        if noted := [bot for (bot, _), bot_knew in zip(absent, knew, strict=True) if bot_knew]:
            await self.store.ladders.note_absence(setup.competition, setup.match, noted)

    async def conclude_delivery(self, setup: Setup) -> None:
        """Repeat the last steps for a match whose owner died after it had stored the record."""
        meta = await self.store.matches.get_meta(setup.match)
        if meta and "result" in meta.fields:
            await self._conclude_match(setup, pb.MatchEnded.FromString(meta.fields["result"]))
        else:
            await self.store.seats.release_all(setup.match, setup.bots)

    async def _conclude_match(self, setup: Setup, end: pb.MatchEnded) -> None:
        """Do what follows the storing of the record; each step may be repeated. The last ones free the bots for other matches.

        If the match was void because other bots were absent, the bots that sat down get their places in the queue back.
        """
        if _is_void_in_league(setup, end):  # which plays it again
            absent = [setup.bots[seat] for seat in end.absent_seats]
            blamed = [] if end.absence_excuse else absent or None
            await self.store.leagues.note_void(setup.competition, setup.match, blamed)
        await self.store.deliveries.conclude_match(_ended_match(setup, end, self.keep_s))
        if end.absent_seats:
            await requeue_partners(self.store, setup, end.absent_seats)


def _is_void_in_league(setup: Setup, end: pb.MatchEnded) -> bool:
    return bool(end.void_reason and setup.competition) and not setup.competition.startswith(LADDER_PREFIX)


def _ended_match(setup: Setup, end: pb.MatchEnded, keep_s: int) -> EndedMatch:
    is_void, place = bool(end.void_reason), setup.deal_set
    return EndedMatch(
        match=setup.match,
        bots=setup.bots,
        state=MatchState.VOIDED if is_void else MatchState.FINISHED,
        keep_s=keep_s,
        competition=setup.competition,
        result=None if is_void or not setup.competition else logged_result_of(setup, end),
        deal_set=(place.name, place.number) if place else None,
    )


def encode_ending(ending: Ending) -> match_pb2.Ending:
    """Return the number of an ending in the protocol."""
    number: match_pb2.Ending = _ENDING_NUMBERS[ending]
    return number


def encode_result(finished: Finished, chain: bytes = b"") -> match_pb2.Result:
    """Return the result that the journal's last entry holds; `chain` is the last link of the record's chain."""
    outcome = cast("dict[str, Any]", finished.outcome)
    return match_pb2.Result(
        points=outcome["points"],
        outcome_ranks=outcome["ranks"],
        ranks=cast("Any", finished.result["ranks"]),
        endings=map(encode_ending, finished.endings),
        rounds=[match_pb2.RoundResult(points=points) for points in outcome["rounds"]],
        chain=chain,
    )


def encode_match_ended(end: Finished | Voided, seed: bytes, chain: bytes = b"") -> pb.MatchEnded:
    """Return the message that every seat gets at the end. Leave `seed` empty while a set of duplicate deals runs."""
    if isinstance(end, Voided):
        return pb.MatchEnded(void_reason=end.reason, seed=seed)
    return pb.MatchEnded(result=encode_result(end, chain), seed=seed)
