"""Finds the bots that did not sit down in the set-up of a match, decides whether that counts, and requeues the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import structlog

from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee.ending import VoidReason
from seatwise_referee.journal import Dealt, Sat, TakenOver, decode_entry
from seatwise_referee.setup import Setup
from seatwise_server.counts import COUNTS
from seatwise_server.store import MatchMeta, NoShow, Store
from seatwise_server.store.errors import StoreUnavailable

log = structlog.get_logger()

ABSENT_BOTS = "absent: "
"""Begins the reason of an abort that names the bots for which a match has waited in vain."""
FAULT_BEAT_S = 1.0
"""The time between two looks for faults of a process."""


@dataclass(frozen=True, slots=True)
class MissedSeats:
    """The seats that were not taken in the set-up, according to the journal."""

    seats: tuple[int, ...] = ()
    """The seats whose bots did not sit down."""
    is_excused: bool = False
    """Whether a referee died or stopped during the set-up, so that it may be our fault that the bots are absent."""


NO_MISSED_SEATS = MissedSeats()


def find_missed_seats(setup: Setup, journal: Sequence[bytes]) -> MissedSeats:
    """Return the missed seats of a match whose set-up is over."""
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


async def note_no_shows(store: Store, setup: Setup, absence: MissedSeats) -> None:
    """Note the no-shows of a match whose set-up is over; nothing happens for a match that no queue has seated.

    They only count if they kept another bot of the queue waiting. If no bot sat down, the fault may be ours.
    """
    meta = await store.matches.get_meta(setup.match) if absence.seats else None
    if meta is None or not meta.waited_since:
        return
    absent = [(setup.bots[seat], seat) for seat in absence.seats]
    counts = not absence.is_excused and bool(_partners(setup, meta, absence.seats))
    counts = counts and await store.no_shows.recent_fault() != "DESCRIPTORS"
    noted = await store.no_shows.note_no_shows(setup.match, absent, counts=counts)
    for (bot, _), what in zip(absent, noted, strict=True):
        _log_no_show(setup.match, bot, what)


async def requeue_partners(store: Store, setup: Setup, absent: Sequence[int]) -> None:
    """Put the bots that sat down in a void match back to their old places in the queue."""
    meta = await store.matches.get_meta(setup.match)
    partners = _partners(setup, meta, absent) if meta else []
    if meta and partners:
        room = await store.seats.free_places(partners, meta.queue)
        places = [meta.waited_since[bot] for bot, free in zip(partners, room, strict=True) if free]
        await store.queues.return_all(meta.queue, places)


async def explain_absence(store: Store, setup: Setup, end: pb.MatchEnded, absence: MissedSeats) -> None:
    """Complete the end of a void match of a league: the seats of absent bots, and the fault of ours that excuses them. Repeatable."""
    if end.void_reason == VoidReason.ABORTED and not end.absent_seats:
        end.absent_seats.extend(await _seats_named_in_abort(store, setup))
    if end.void_reason == VoidReason.BOT_NOT_TOLD:
        end.absence_excuse = "NOT_TOLD"
    elif end.void_reason == VoidReason.NO_ROOM:
        end.absence_excuse = "DESCRIPTORS"
    elif end.absent_seats:
        end.absence_excuse = await _find_excuse(store, setup, end, absence)


async def _seats_named_in_abort(store: Store, setup: Setup) -> list[int]:
    meta = await store.matches.get_meta(setup.match)
    why = meta.fields.get("abort", b"").decode() if meta else ""
    named = why.removeprefix(ABSENT_BOTS).split() if why.startswith(ABSENT_BOTS) else []
    return [seat for seat, bot in enumerate(setup.bots) if bot in named]


async def _find_excuse(store: Store, setup: Setup, end: pb.MatchEnded, absence: MissedSeats) -> str:
    if absence.is_excused:
        return "TAKEOVER"
    if end.void_reason == VoidReason.TOO_FEW_SAT:
        absent = [(setup.bots[seat], seat) for seat in end.absent_seats]
        if not all(await store.no_shows.read_who_knew(setup.match, absent)):
            return "NOT_TOLD"
    await asyncio.sleep(2 * FAULT_BEAT_S)  # by then every process that runs has noted what it has seen
    return await store.no_shows.recent_fault()


class FaultWatch:
    """Notes in the store what this process sees of its own faults that may keep bots from their seats."""

    def __init__(
        self, store: Store, lacks_connections: Callable[[], bool], has_broken_links: Callable[[], bool]
    ) -> None:
        self._store = store
        self._lacks_connections = lacks_connections
        self._has_broken_links = has_broken_links
        self._seen = COUNTS.faults.total()
        self._fault = "RESTART"

    async def watch_faults(self) -> None:
        """Look every second, and first notes that the process has started. Runs until cancelled."""
        while True:
            with suppress(StoreUnavailable):
                if self._fault:
                    await self._store.no_shows.note_fault(self._fault)
                self._fault = ""
            await asyncio.sleep(FAULT_BEAT_S)
            self._fault = self._find_fault() or self._fault

    def _find_fault(self) -> str:
        total, seen = COUNTS.faults.total(), self._seen
        self._seen = total
        if total > seen:
            return COUNTS.last_fault
        if self._lacks_connections():
            return "DESCRIPTORS"
        return "STALL" if self._has_broken_links() else ""


def _partners(setup: Setup, meta: MatchMeta, absent: Sequence[int]) -> list[str]:
    """Return the bots that came from the queue and sat down, without house bots."""
    queued = meta.waited_since
    return [bot for seat, bot in enumerate(setup.bots) if seat not in absent and bot in queued]


def _log_no_show(match: str, bot: str, what: NoShow) -> None:
    if what in (NoShow.COUNTED, NoShow.OFF):
        COUNTS.no_shows += 1
    if what is NoShow.OFF:
        log.warning("bot_taken_off_queues", match=match, bot=bot)
    elif what is not NoShow.NONE:
        log.info("no_show", match=match, bot=bot, counts=what is NoShow.COUNTED)
