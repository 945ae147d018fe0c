"""The lobby role: bots attend here, wait in queues, and are told of their seats."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager

import structlog

from seatwise.v1 import lobby_service_pb2 as pb
from seatwise_server.background_tasks import BackgroundTasks, gather_limited
from seatwise_server.counts import COUNTS
from seatwise_server.ladder.ladder_settings import LADDER_PREFIX
from seatwise_server.lobby.attendance import AttendanceStream
from seatwise_server.lobby.pairing import Pairing
from seatwise_server.lobby.seating import QUEUES
from seatwise_server.refusal import Refusal, bad_argument
from seatwise_server.store import (
    OWNERS_PREFIX,
    OwnerLimits,
    OwnerRoom,
    QueueRoom,
    SeatOf,
    SeatOffer,
    Store,
)
from seatwise_server.store import Attendance as Presence
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.seats import LobbyNotice, lobby_notices
from seatwise_server.timings import ATTENDANCE_LEASE_MS, LOBBY_HEARTBEAT_S

GATHER_S = 0.01
"""The time, in seconds, for which changes are collected before they are handled together."""
MOST_PRESENT = 20_000
"""The most bots that attend at one lobby."""
LOBBY_FULL_RETRY_AFTER_S = "5"
FEWEST_LOST, LOST_AT_ONCE_S = 3, 2.0
"""So many bots are lost at once, and at least half of all, if no fault of a bot is the reason."""
MOST_QUEUES = 32
"""The most queues and ladders that a bot may name."""
MOST_MATCHES = 1000
"""The highest limit that a bot may set."""

log = structlog.get_logger()


class Lobby:
    """The lobby of one process."""

    def __init__(
        self,
        name: str,
        store: Store,
        pairing: Pairing,
        has_broken_links: Callable[[], bool] = lambda: False,
        owner_limits: OwnerLimits | None = None,
    ) -> None:
        """`has_broken_links` says whether bots may have lost their streams by a fault of this process.

        `owner_limits` are the quotas of owners that have none of their own.
        """
        self.name = name
        self._store = store
        self._pairing = pairing
        self._owner_limits = owner_limits or OwnerLimits()
        self._has_broken_links = has_broken_links
        self._lost: dict[str, float] = {}
        """When the bots that were lost last have left."""
        self._present: dict[str, AttendanceStream] = {}
        self._leaving = BackgroundTasks()
        self._changed: defaultdict[str, set[SeatOf]] = defaultdict(set)
        """The bots with a change, and for each the seats that were named by notices."""
        self._doubtful: set[str] = set()
        """Those of them that may attend elsewhere by now."""
        self._news = asyncio.Event()

    async def known_queues(self, named: list[str], *, is_guest: bool = False) -> tuple[str, ...]:
        """Return the queues and ladders, each once. Raises `Refusal` for an unknown or closed one, for too many, and for guests."""
        queues = tuple(dict.fromkeys(named))
        if is_guest and queues:
            raise Refusal("NOT_ALLOWED", "a guest plays only the match that was made for it; name no queue")
        if len(queues) > MOST_QUEUES:
            raise bad_argument("queues", f"{len(queues)} queues are named; at most {MOST_QUEUES} are allowed")
        for queue in queues:
            if not await self._is_known(queue):
                known = ", ".join(sorted(QUEUES))
                why = f"there is no queue {queue[:80]!r}; the queues are {known}, and ladders such as ladders/main"
                raise Refusal("NOT_FOUND", why, queue=queue[:80])
        if closed := await self._store.ladders.closed_among(_ladders_in(queues)):
            raise Refusal("NOT_FOUND", f"{closed[0]} is closed; its final table stays", queue=closed[0])
        return queues

    async def _is_known(self, queue: str) -> bool:
        if not queue.startswith(LADDER_PREFIX):
            return queue in QUEUES
        return await self._store.ladders.find(queue) is not None

    def __len__(self) -> int:
        return len(self._present)

    @asynccontextmanager
    async def attend_lobby(self, attendance: AttendanceStream) -> AsyncIterator[None]:
        """Keep the bot present through this stream while the context lasts; replaces an older stream.

        Raises `Refusal` SERVER_FULL if too many bots attend here, and REPLACED if a stream that arrived later, here or at another lobby, was quicker.
        """
        bot = attendance.bot
        attendance.owner, attendance.most_matches = await self._read_owner(bot)
        attendance.max_matches = min(attendance.max_matches, attendance.most_matches)
        older = self._present.get(bot)
        if older is None and len(self._present) >= MOST_PRESENT:
            COUNTS.count_fault("LIMIT")
            full = f"{MOST_PRESENT} bots attend here; try again soon"
            raise Refusal("SERVER_FULL", full, retry_after=LOBBY_FULL_RETRY_AFTER_S)
        if older and older.arrival > attendance.arrival:
            raise _replaced(bot)
        if older:
            older.end(_replaced(bot))
        self._present[bot] = attendance
        by_itself = True
        try:
            await self._register_attendance(attendance)
            # Schedule a second look at offers that were queued on arrival: they are delivered only when the stream has its
            # writer.
            if attendance.to_note:
                self._changed[attendance.bot].update(())
                self._news.set()
            yield
        except StoreUnavailable:
            by_itself = False
            raise
        finally:
            if self._present.get(bot) is attendance:
                del self._present[bot]
                by_itself = by_itself and not (attendance.was_ended_by_us or self._has_broken_links())
                self._note_lost(bot)
                # gRPC cancels the call when a bot disconnects.
                await asyncio.shield(self._leaving.start_task(self._remove_attendance(attendance, by_itself)))

    async def set_limit(self, attendance: AttendanceStream, max_matches: int) -> None:
        """Set how many matches at once the bot takes from now on; 0 drains."""
        attendance.max_matches = min(check_limit(max_matches), attendance.most_matches)
        if await self._renew_attendance(attendance):
            await self._wait_in_queues(attendance)
            attendance.confirm_limit(await self._count_pending_seats(attendance))

    async def _read_owner(self, bot: str) -> tuple[str, int]:
        """Return the bot's owner, and its quota of matches of each bot. A bot that an operator has registered has neither."""
        owner = (await self._store.bots.owners_of([bot]))[bot]
        if not owner.startswith(OWNERS_PREFIX):
            return "", MOST_MATCHES
        most = await self._store.owners.read_most_matches(owner)
        return owner, MOST_MATCHES if most is None else most

    async def _register_attendance(self, attendance: AttendanceStream) -> None:
        attendances, bot = self._store.attendances, attendance.bot
        attendance.turn = await attendances.number_stream(bot, attendance.arrival.time_s)
        if attendance.is_ending:  # a newer one is here, which may have the lower number if Redis was slow
            return
        stored = self._stored_attendance(attendance)
        if not await attendances.write_attendance(bot, stored, ATTENDANCE_LEASE_MS):
            raise _replaced(bot)
        attendance.is_written = True
        all_queues = QUEUES.keys() | set(await self._store.ladders.list_names())
        await self._leave_queues(attendance.bot, all_queues - set(attendance.queues))
        attendance.confirm_limit(await self._count_pending_seats(attendance))
        await self._tell_open_seats(attendance)
        await self._wait_in_queues(attendance)
        await self._tell_places(attendance)

    async def _tell_places(self, attendance: AttendanceStream) -> None:
        for queue in attendance.queues:
            before = await self._store.queues.position_of(queue, attendance.bot)
            attendance.wait_at(queue, None if before is None else before + 1)

    def _note_lost(self, bot: str) -> None:
        """Count a fault if many bots are lost at once: more likely a network than each of them."""
        now = asyncio.get_running_loop().time()
        self._lost = {each: at for each, at in self._lost.items() if now - at < LOST_AT_ONCE_S} | {bot: now}
        if len(self._lost) >= max(FEWEST_LOST, len(self._present)):
            COUNTS.count_fault("BOTS_LOST")

    async def _remove_attendance(self, attendance: AttendanceStream, by_itself: bool) -> None:
        bot, attend_id = attendance.bot, attendance.attend_id
        try:
            if await self._store.attendances.remove_attendance(bot, attend_id, by_itself=by_itself):
                await self._leave_queues(bot, attendance.queues)
        except StoreUnavailable:
            log.debug("attendance_left_to_expire", bot=bot)

    def _stored_attendance(self, attendance: AttendanceStream) -> Presence:
        it = attendance
        return Presence(self.name, it.attend_id, it.max_matches, it.queues, it.turn)

    async def _renew_attendance(self, attendance: AttendanceStream) -> bool:
        """Extend the lease; ends the stream if the bot attends at another lobby now."""
        bot, stored = attendance.bot, self._stored_attendance(attendance)
        kept = await self._store.attendances.renew_attendance(bot, stored, ATTENDANCE_LEASE_MS)
        if not kept:
            attendance.end(_replaced(bot))
        return kept

    async def _wait_in_queues(self, attendance: AttendanceStream) -> None:
        """Enter the bot in each queue in which it may take a seat, and remove it from the others."""
        room = await self._room_in_queues(attendance)
        await self._tell_off_queues(attendance, room)
        has_room = {queue for queue, found in room.items() if found.free}
        enters = [queue for queue in attendance.queues if queue in has_room and queue not in attendance.off]
        leaves = [queue for queue in attendance.queues if queue not in enters]
        await self._store.queues.change_queues(attendance.bot, enters, leaves)
        if attendance.bot not in self._present:  # it has left meanwhile
            await self._leave_queues(attendance.bot, attendance.queues)
        self._pairing.wake_pairing()

    async def _room_in_queues(self, attendance: AttendanceStream) -> dict[str, QueueRoom]:
        """Return the room in each queue of the bot. Renews a lease that ran out while Redis was away."""
        bot, queues = attendance.bot, attendance.queues
        room = await self._store.seats.room_in(bot, queues)
        if any(found.is_absent for found in room):
            await self._renew_attendance(attendance)
            room = await self._store.seats.room_in(bot, queues)
        return dict(zip(queues, room, strict=True))

    async def _tell_off_queues(self, attendance: AttendanceStream, room: Mapping[str, QueueRoom]) -> None:
        """Tell the bot which of its ladders and queues it is off. A bot that is off the queues has no room in them."""
        off: list[pb.TakenOff] = []
        if named := _ladders_in(attendance.queues):
            closed = await self._store.ladders.closed_among(named)
            over = (pb.TakenOff.CAUSE_LADDER_CLOSED, "the ladder is closed; its final table stays")
            off += [_taken_off(name, *over) for name in closed]
            ladders = await self._store.ladders.ladders_off(attendance.bot)
            off += [
                _taken_off(name, pb.TakenOff.CAUSE_FORFEITS, why.reason, why.back_ms)
                for name, why in ladders.items()
                if name in named and name not in closed
            ]
        barred = [queue for queue, found in room.items() if found.is_off]
        if barred and (found_off := await self._store.no_shows.read_off_queues(attendance.bot)):
            told = (pb.TakenOff.CAUSE_NO_SHOWS, found_off.reason, found_off.until_ms)
            off += [_taken_off(queue, *told) for queue in barred]
        if attendance.owner:
            off += await self._off_for_owner(attendance, {each.queue for each in off})
        attendance.take_off(off)

    async def _off_for_owner(self, attendance: AttendanceStream, off: Collection[str]) -> list[pb.TakenOff]:
        """Return a message for each queue, except those of `off`, if the bot's owner may begin no match for a longer time.

        An owner whose bots only play as many matches at once as they may is soon below its limit, so its bots keep their places.
        """
        [room] = await self._store.owner_matches.measure_room([attendance.owner], self._owner_limits)
        if not room.is_spent and not (room.is_full and not room.open_matches):
            return []
        return [_off_for_owner(queue, room) for queue in attendance.queues if queue not in off]

    async def _leave_queues(self, bot: str, queues: Iterable[str]) -> None:
        await self._store.queues.change_queues(bot, (), queues)

    async def _tell_open_seats(
        self, attendance: AttendanceStream, only: Collection[SeatOf] | None = None
    ) -> None:
        """Offer all open seats, or only those of `only`; closes the seats that were offered and are not open any more.

        Only one call runs at a time: an older answer of the store would close a seat that a newer one has opened.
        """
        async with attendance.looking:
            standing = await self._read_offers(attendance.bot, only)
            _tell_seats(attendance, standing, attendance.told if only is None else only)
        await self._note_told(attendance)
        if attendance.pending_seats and not await self._count_pending_seats(attendance):
            attendance.confirm_limit()

    async def _count_pending_seats(self, attendance: AttendanceStream) -> int:
        """Return how many seats of a bot that drains were not offered through this stream yet; 0 for every other bot.

        A seat is reserved a moment before it is offered. A bot that left in this moment would miss its match.
        """
        if attendance.max_matches:
            return 0
        held = await self._store.seats.held_seats(attendance.bot)
        return sum(seat not in attendance.told for seat in held)

    async def _note_told(self, attendance: AttendanceStream) -> None:
        """Notes in the store which offers were delivered to the stream; without a writer they are noted later.

        A bot that does not read counts as told, because its offers are queued behind what it has not read.
        """
        if attendance.to_note:
            await asyncio.sleep(0)  # let the writer run first
        if attendance.to_note and attendance.is_open:
            seats, attendance.to_note = attendance.to_note, []
            await self._store.no_shows.note_told(attendance.bot, seats)

    async def _read_offers(self, bot: str, only: Collection[SeatOf] | None) -> list[SeatOffer]:
        """Read all offers of the bot, or only those of these seats, because a bot may have a thousand seats."""
        if only is None:
            return await self._store.seats.open_offers(bot)
        return await self._store.seats.offers_of(bot, only) if only else []

    async def renew_attendances(self) -> None:
        """Renew all attendances, and find changes whose notice was lost. Runs until cancelled."""
        while True:
            await asyncio.sleep(LOBBY_HEARTBEAT_S)
            try:
                await self._beat_once()
            except StoreUnavailable:
                log.debug("lobby_paused")

    async def _beat_once(self) -> None:
        """Renew the attendances, many at a time, so that they share their messages to the store."""
        await gather_limited(self._beat_for(attendance) for attendance in self._written_attendances())

    async def _beat_for(self, attendance: AttendanceStream) -> None:
        await self._update_bot(attendance, None, is_doubtful=True)
        if not attendance.is_ending:
            await self._tell_places(attendance)

    def _written_attendances(self) -> list[AttendanceStream]:
        """Until an attendance is written, an older one may hold the bot's lease, and the store would call the newer one replaced."""
        return [attendance for attendance in self._present.values() if attendance.is_written]

    async def listen_for_notices(self) -> None:
        """Listen for changed offers, from all referees, and for bots that attend elsewhere. Runs until cancelled."""
        while True:
            try:
                async for notice in lobby_notices(self._store.client):
                    self._note_notice(notice)
            except StoreUnavailable:
                await asyncio.sleep(LOBBY_HEARTBEAT_S)

    def _note_notice(self, notice: LobbyNotice) -> None:
        """Record a notice. It may be late: only the store knows whether the bot attends elsewhere by now."""
        attendance = self._present.get(notice.bot)
        if attendance and attendance.is_written:
            if notice.attend_id not in ("", attendance.attend_id):
                self._doubtful.add(notice.bot)
            self._changed[notice.bot].update([notice.seat] if notice.seat else [])
            self._news.set()

    async def _update_bot(
        self, attendance: AttendanceStream, seats: Collection[SeatOf] | None, is_doubtful: bool
    ) -> None:
        if not is_doubtful or await self._renew_attendance(attendance):
            await asyncio.gather(self._tell_open_seats(attendance, seats), self._wait_in_queues(attendance))

    async def look_after_changed(self) -> None:
        """Update the bots that had a notice, in passes: all changes of a bot during one are handled in the next. Runs until cancelled."""
        while True:
            await self._news.wait()
            await asyncio.sleep(GATHER_S)
            self._news.clear()
            try:
                await self._update_changed_bots()
            except StoreUnavailable:
                log.debug("lobby_paused")

    async def _update_changed_bots(self) -> None:
        changed, self._changed = self._changed, defaultdict(set)
        doubtful, self._doubtful = self._doubtful, set()
        written = [each for each in self._written_attendances() if each.bot in changed]
        await gather_limited(
            self._update_bot(each, changed[each.bot], each.bot in doubtful)
            for each in sorted(written, key=lambda attendance: attendance.bot)
        )


def _tell_seats(
    attendance: AttendanceStream, standing: Iterable[SeatOffer], asked: Collection[tuple[str, int]]
) -> None:
    """Offer the seats that were not told yet; closes those asked for that were told and are not open any more."""
    for each in standing:
        if each.epoch > attendance.told.get((each.match, each.seat), 0):
            attendance.queue_offer(pb.SeatOffer.FromString(each.offer))
    for match, seat in sorted(set(asked) - {(each.match, each.seat) for each in standing}):
        attendance.close_seat(match, seat)


def _replaced(bot: str) -> Refusal:
    return Refusal("REPLACED", "a newer stream of this bot attends", bot=bot)


def check_limit(max_matches: int) -> int:
    """Return the limit; raises `Refusal` if it is out of range."""
    if not 0 <= max_matches <= MOST_MATCHES:
        raise bad_argument("max_matches", f"max_matches is {max_matches}; it must be 0 to {MOST_MATCHES}")
    return max_matches


def _ladders_in(queues: Iterable[str]) -> list[str]:
    return [queue for queue in queues if queue.startswith(LADDER_PREFIX)]


def _taken_off(queue: str, cause: pb.TakenOff.Cause, reason: str, back_ms: int = 0) -> pb.TakenOff:
    taken_off = pb.TakenOff(queue=queue, reason=reason, cause=cause)
    if back_ms:
        taken_off.back_time.FromMilliseconds(back_ms)
    return taken_off


def _off_for_owner(queue: str, room: OwnerRoom) -> pb.TakenOff:
    back_ms = room.back_ms if room.is_spent else 0
    if not room.is_spent:
        reason = "the quota of matches at once of your owner is 0; ask the operator for more"
    elif not back_ms:
        reason = "the quota of matches in 24 hours of your owner is 0; ask the operator for more"
    else:
        reason = f"the bots of your owner have begun as many matches in 24 hours as its quota allows ({room.day_matches})"
    return _taken_off(queue, pb.TakenOff.CAUSE_OWNER_QUOTA, reason, back_ms)
