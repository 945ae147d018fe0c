"""Who did not sit down in the set-up of a match, whether that counts, and what becomes of those who did."""

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
    """What the journal says of the set-up."""

    seats: tuple[int, ...] = ()
    """Whose bot did not sit down."""
    is_excused: bool = False
    """A referee died or was stopped in the set-up: bots may have lost their way through our fault."""


NOBODY = MissedSeats()


def absence_of(setup: Setup, journal: Sequence[bytes]) -> MissedSeats:
    """The absence in a match whose set-up is over."""
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
    """Tells the store of the bots that queues seated. Every step may be repeated."""

    store: Store

    async def note_absence(self, setup: Setup, absence: MissedSeats) -> None:
        """Notes the no-shows of a match whose set-up is over; nothing happens for a match that no queue has seated.

        They count only where they kept another bot of the queue waiting: where nobody could sit down the fault may be ours.
        """
        meta = await self.store.matches.get_meta(setup.match) if absence.seats else None
        if meta is None or not meta.waited_since:
            return
        absent = [(setup.bots[seat], seat) for seat in absence.seats]
        counts = not absence.is_excused and bool(_partners(setup, meta, absence.seats))
        noted = await self.store.no_shows.note_no_shows(setup.match, absent, counts=counts)
        for (bot, _), what in zip(absent, noted, strict=True):
            _log_no_show(setup.match, bot, what)

    async def seat_partners_again(self, setup: Setup, absent: Sequence[int]) -> None:
        """Puts the bots that sat down in a void match back to where they stood in their queue."""
        meta = await self.store.matches.get_meta(setup.match)
        partners = _partners(setup, meta, absent) if meta else []
        if meta and partners:
            room = await self.store.seats.free_places(partners, meta.queue)
            places = [meta.waited_since[bot] for bot, free in zip(partners, room, strict=True) if free]
            await self.store.queues.return_all(meta.queue, places)


def _partners(setup: Setup, meta: MatchMeta, absent: Sequence[int]) -> list[str]:
    """The bots that came from the queue and sat down; the house's own bots are not among them."""
    queued = meta.waited_since
    return [bot for seat, bot in enumerate(setup.bots) if seat not in absent and bot in queued]


def _log_no_show(match: str, bot: str, what: NoShow) -> None:
    if what in (NoShow.COUNTED, NoShow.OFF):
        COUNTS.no_shows += 1
    if what is NoShow.OFF:
        log.warning("bot_off_queues", match=match, bot=bot)
    elif what is not NoShow.NONE:
        log.info("no_show", match=match, bot=bot, counts=what is NoShow.COUNTED)
