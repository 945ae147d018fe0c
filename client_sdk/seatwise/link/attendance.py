"""One bot, present and playing: it brings together lobby, referees and seats."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any

from seatwise.bot import BotFactory
from seatwise.errors import BotFailedError, WrongGameError
from seatwise.link.lobby import Lobby
from seatwise.link.seat import Seat
from seatwise.link.table import Key, Table
from seatwise.link.wire import Wire
from seatwise.result import Result
from seatwise.summary import Summary, Tally
from seatwise.v1.lobby_service_pb2 import SeatClosed, SeatOffer

LEAVING_S = 2.0
"""A bot's coroutine that does not let itself be cancelled is not waited for longer."""
REMEMBERED = 4096
"""Seats that are over: an offer that was under way when the match ended must not make a second bot."""

log = logging.getLogger("seatwise")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is to do."""

    factory: BotFactory
    game: str
    queues: tuple[str, ...]
    max_matches: int
    matches: int | None
    """Drain after so many; `None` is never."""

    on_result: Callable[[Result], Any] | None


class Attendance:
    """From the first request to the lobby to the end of the last match."""

    def __init__(self, plan: Plan, wire: Wire) -> None:
        self._plan = plan
        self._wire = wire
        self._lobby = Lobby(wire, plan.queues, _limit(plan, 0, 0), self._offered, self._closed)
        self._tally = Tally()
        self._seats: dict[Key, Seat] = {}
        self._tables: dict[str, Table] = {}
        self._epochs: dict[str, int] = {}
        self._past: dict[Key, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._empty = asyncio.Event()
        self._empty.set()
        self._is_draining = False
        self._has_set_up = False

    # Its course

    async def run(self) -> Summary:
        """Attends and plays until drained or left. Raises what makes going on useless."""
        self._start(self._lobby.attend())
        try:
            await self._end
        finally:
            left = len(self._seats)
            await self._stop()
        return self._tally.summary(left)

    def drain(self) -> None:
        """Takes no more seats, finishes the open ones, then ends."""
        if not self._is_draining:
            self._is_draining = True
            self._lobby.set_limit(0)
            self._start(self._wind_up())

    def leave(self) -> None:
        """Ends at once."""
        if not self._end.done():
            self._end.set_result(None)

    @property
    def open_seats(self) -> int:
        """Matches that are not over."""
        return len(self._seats)

    async def _wind_up(self) -> None:
        await self._lobby.drained()
        await self._empty.wait()
        self.leave()

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LEAVING_S)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self._end.done():
            self._end.set_exception(error)

    # What the lobby says

    def _offered(self, offer: SeatOffer) -> None:
        key = (offer.match, offer.seat)
        seen = self._epochs.get(offer.match, 0)
        if offer.epoch < seen or key in self._past:
            return
        self._epochs[offer.match] = offer.epoch
        seat = self._seats.get(key)
        if seat is None:
            seat = self._take_seat(offer, key)
        elif offer.epoch == seat.epoch:
            return  # the lobby says all it knows whenever the link to it is new
        if seat is not None:
            seat.epoch = offer.epoch
            seat.move_to(self._table(offer.address or self._wire.address))

    def _closed(self, closed: SeatClosed) -> None:
        seat = self._seats.get((closed.match, closed.seat))
        if seat is not None:
            self._start(seat.wait_for_last_word())

    def _take_seat(self, offer: SeatOffer, key: Key) -> Seat | None:
        game = offer.game.removeprefix("games/")
        if game != self._plan.game:
            told = f"{offer.match} is a match of {game!r}, and this bot plays {self._plan.game!r}"
            self._fail(WrongGameError(f"{told}: attend queues of its game only"))
            return None
        seat = self._seats[key] = Seat(offer, self._plan.factory, self._epochs)
        self._empty.clear()
        self._start(self._play(seat))
        self._adjust()
        others = [bot for number, bot in enumerate(seat.offer.bots) if number != offer.seat]
        log.info("seated in %s against %s", seat.place, ", ".join(others))
        return seat

    def _table(self, address: str) -> Table:
        table = self._tables.get(address)
        if table is None:
            table = self._tables[address] = Table(address, self._wire, self._forget)
            self._start(table.keep())
        return table

    def _forget(self, table: Table) -> None:
        self._tables.pop(table.address, None)

    # Its seats

    async def _play(self, seat: Seat) -> None:
        try:
            if await self._set_up(seat):
                await seat.play()
                await self._tell(seat)
        finally:
            self._leave(seat)

    async def _set_up(self, seat: Seat) -> bool:
        try:
            await seat.set_up()
        except Exception as error:
            seat.answers.show("set up", error, "its seat is not taken")
            if not self._has_set_up:
                raise BotFailedError(f"the bot could not be set up: {error!r}") from error
            return False
        self._has_set_up = True
        return True

    async def _tell(self, seat: Seat) -> None:
        self._count(seat)
        if seat.result is None or self._plan.on_result is None:
            return
        try:
            told = self._plan.on_result(seat.result)
            if isawaitable(told):
                await told
        except Exception:
            log.exception("on_result failed for %s", seat.place)

    def _count(self, seat: Seat) -> None:
        self._tally.add(seat.result)
        self._tally.moves += seat.moves
        self._tally.failures += seat.answers.failures
        log.info("%s", _line(seat))

    def _leave(self, seat: Seat) -> None:
        seat.leave()
        del self._seats[seat.key]
        self._past[seat.key] = None
        if len(self._past) > REMEMBERED:
            del self._past[next(iter(self._past))]
        if all(match != seat.offer.match for match, _ in self._seats):
            self._epochs.pop(seat.offer.match, None)
        if not self._seats:
            self._empty.set()
        self._adjust()

    def _adjust(self) -> None:
        """Asks for no more seats than are wanted. What the lobby gave before it heard is played as well."""
        if self._is_draining:
            return
        counted = self._tally.matches + self._tally.unknown
        self._lobby.set_limit(_limit(self._plan, counted, len(self._seats)))
        if self._plan.matches is not None and counted >= self._plan.matches:
            self.drain()


def _limit(plan: Plan, counted: int, open_seats: int) -> int:
    """How many seats to have open at once, so that it comes to the matches that are wanted and no more."""
    if plan.matches is None:
        return plan.max_matches
    wanted = plan.matches - counted - open_seats
    return min(plan.max_matches, open_seats + wanted) if wanted > 0 else 0


def _line(seat: Seat) -> str:
    """The one line of a match."""
    result, own = seat.result, seat.offer.seat
    if result is None:
        return f"{seat.place}: over, result unknown"
    if result.is_void:
        return f"{seat.place}: counts for nobody ({result.void_reason})"
    all_points = " ".join(map(str, result.points))
    return (
        f"{seat.place}: rank {result.ranks[own]} with {result.points[own]} points of {all_points}; "
        f"{result.endings[own]}, {seat.moves} moves, {seat.answers.failures} failures"
    )
