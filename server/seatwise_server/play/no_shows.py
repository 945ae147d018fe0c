"""Finds the bots that did not sit down in the set-up of a match, decides whether that counts, and requeues the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from seatwise_referee.journal import Dealt, Sat, TakenOver, decode_entry
from seatwise_referee.setup import Setup
from seatwise_server.counts import COUNTS
from seatwise_server.store import MatchMeta, NoShow, Store

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class MissedSeats:
    """The seats that were not taken in the set-up, according to the journal."""

    seats: tuple[int, ...] = ()
    """The seats whose bots did not sit down."""
    is_excused: bool = False
    """Whether a referee died or stopped during the set-up, so that it may be our fault that the bots are absent."""


NO_MISSED_SEATS = MissedSeats()


def find_missed_seats(setup: Setup, journal: Sequence[bytes]) -> MissedSeats:
    """Returns the missed seats of a match whose set-up is over."""
    taken: set[int] = set()
    is_excused = False
    for entry in map(decode_entry, journal):
        if isinstance(entry, Sat):
            taken.add(entry.seat)
        elif isinstance(entry, TakenOver):
            is_excused = True
        elif isinstance(entry, Dealt):
            break
    return MissedSeats(tuple(seat for seat in range(len(setup.bots)) if seat not in taken), is_excused)


@dataclass(frozen=True, slots=True)
class NoShowNotes:
    """Notes in the store what happened to bots that queues seated. Every step may be repeated."""

    store: Store

    async def note_absence(self, setup: Setup, absence: MissedSeats) -> None:
        """Notes the no-shows of a match whose set-up is over; nothing happens for a match that no queue has
        seated.

        They only count if they kept another bot of the queue waiting. If no bot sat down, the fault may be
        ours.
        """
        meta = await self.store.matches.get_meta(setup.match) if absence.seats else None
        if meta is None or not meta.waited_since:
            return
        absent = [(setup.bots[seat], seat) for seat in absence.seats]
        counts = not absence.is_excused and bool(_partners(setup, meta, absence.seats))
        noted = await self.store.no_shows.note_no_shows(setup.match, absent, counts=counts)
        for (bot, _), what in zip(absent, noted, strict=True):
            _log_no_show(setup.match, bot, what)

    async def requeue_partners(self, setup: Setup, absent: Sequence[int]) -> None:
        """Puts the bots that sat down in a void match back to their old places in the queue."""
        meta = await self.store.matches.get_meta(setup.match)
        partners = _partners(setup, meta, absent) if meta else []
        if meta and partners:
            room = await self.store.seats.free_places(partners, meta.queue)
            places = [meta.waited_since[bot] for bot, free in zip(partners, room, strict=True) if free]
            await self.store.queues.return_all(meta.queue, places)


def _partners(setup: Setup, meta: MatchMeta, absent: Sequence[int]) -> list[str]:
    """Returns the bots that came from the queue and sat down, without house bots."""
    queued = meta.waited_since
    return [bot for seat, bot in enumerate(setup.bots) if seat not in absent and bot in queued]


def _log_no_show(match: str, bot: str, what: NoShow) -> None:
    if what in (NoShow.COUNTED, NoShow.OFF):
        COUNTS.no_shows += 1
    if what is NoShow.OFF:
        log.warning("bot_taken_off_queues", match=match, bot=bot)
    elif what is not NoShow.NONE:
        log.info("no_show", match=match, bot=bot, counts=what is NoShow.COUNTED)
