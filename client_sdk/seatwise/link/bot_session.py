"""One run of a bot on a server: it connects the lobby, the referees and the bot's seats."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any

from seatwise.bot import BotFactory
from seatwise.codec.game_codec import MalformedOffer
from seatwise.codec.offer import decode_offer
from seatwise.errors import BotFailedError, WrongGameError
from seatwise.kits import find_server_kit
from seatwise.link.backoff import ServerLines
from seatwise.link.endpoint import check_offered_address
from seatwise.link.lobby_link import LobbyLink
from seatwise.link.referee_link import RefereeLink, SeatKey
from seatwise.link.seat_session import EndedSeat, SeatSession
from seatwise.link.wire import Wire
from seatwise.offer import Offer
from seatwise.result import Result, RunTotals, Summary
from seatwise.v1.lobby_service_pb2 import SeatClosed, SeatOffer

LEAVING_S = 2.0
"""The longest wait, in seconds, for a coroutine of the bot that does not let itself be cancelled."""
SERVER_SILENCE_S = 3.0
"""A referee pings every two seconds. One that has sent nothing for so long, in seconds, is not there."""
GONE_S = 1.5
"""The least time, in seconds, in which a server can answer that it has heard that the bot drains."""
GONE_LOOK_S = 0.1
MOST_EXTRA_SEATS = 100
"""The most seats beyond `max_matches` that are taken. A bot that starts again is offered the seats of its last run."""
MOST_LINKS = 64
"""With as many links to referees, those without a seat are closed."""
REMEMBERED = 4096
"""The number of finished seats to remember. A late offer of one of them must not make a second bot."""

log = logging.getLogger("seatwise")


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The settings of a run."""

    factory: BotFactory
    game: str
    queues: tuple[str, ...]
    max_matches: int
    matches: int | None
    """The number of matches after which the run ends; `None` means that it does not end."""

    on_result: Callable[[Result], Any] | None


class BotSession:
    """A run, from the first request to the lobby to the end of the last match."""

    def __init__(self, plan: RunPlan, wire: Wire) -> None:
        self._plan = plan
        self._wire = wire
        self._lobby = LobbyLink(
            wire, plan.queues, _seats_wanted(plan, 0, 0), self._handle_offer, self._handle_seat_closed
        )
        self._lines = ServerLines(f"lobby {wire.address}")
        self._totals = RunTotals()
        self._seats: dict[SeatKey, SeatSession] = {}
        self._links: dict[str, RefereeLink] = {}
        self._epochs: dict[str, int] = {}
        self._past: dict[SeatKey, bytes] = {}
        """Seats of matches that are over, and the receipts of their ends."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._empty = asyncio.Event()
        self._empty.set()
        self._is_draining = False
        self._has_set_up = False

    # The run

    async def run_session(self) -> Summary:
        """Attend the lobby and play, until `drain_matches` is done or `leave_matches` is called. Raises errors that a retry cannot mend."""
        self._start_task(self._lobby.keep_attending())
        try:
            await self._end
        finally:
            left = len(self._seats)
            await self._cancel_tasks()
        return self._totals.make_summary(left)

    def drain_matches(self, *, leaves_dead_server: bool = False) -> None:
        """Take no more seats, finish the open matches, and end.

        If `leaves_dead_server`, the open matches are left as soon as no server answers.
        """
        if not self._is_draining:
            self._is_draining = True
            self._lobby.set_limit(0)
            self._start_task(self._finish_open_matches())
        if leaves_dead_server:
            self._start_task(self._leave_dead_server())

    def leave_matches(self) -> None:
        """End at once, and leave the open matches."""
        if not self._end.done():
            self._end.set_result(None)

    @property
    def open_seats(self) -> int:
        """Number of matches that are not over."""
        return len(self._seats)

    async def _finish_open_matches(self) -> None:
        await self._lobby.wait_until_drained()
        await self._empty.wait()
        self.leave_matches()

    async def _leave_dead_server(self) -> None:
        """Leave the open matches when neither the lobby nor a referee has sent anything for a while."""
        loop = asyncio.get_running_loop()
        asked_s = loop.time()
        # Silence is no event, so it looks again and again.
        while self._lobby.has_drained or loop.time() < self._last_heard_s(asked_s) + SERVER_SILENCE_S:  # noqa: ASYNC110
            await asyncio.sleep(GONE_LOOK_S)
        log.warning("open matches: %d, left, because no server answers", self.open_seats)
        self.leave_matches()

    def _last_heard_s(self, asked_s: float) -> float:
        heard_s = max((link.heard_s for link in self._links.values()), default=0.0)
        # A server that is known to be gone is given a moment more, and a living one the whole time from the question.
        return max(heard_s, asked_s - SERVER_SILENCE_S + GONE_S)

    async def _cancel_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LEAVING_S)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._handle_task_end)

    def _handle_task_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail_session(error)

    def _fail_session(self, error: BaseException) -> None:
        if not self._end.done():
            self._end.set_exception(error)

    # Messages of the lobby

    def _handle_offer(self, message: SeatOffer) -> None:
        """Take the seat that is offered. An offer that cannot be one is logged, and the run goes on without that seat."""
        try:
            offer = decode_offer(message)
            self._check_seats(offer)
            address = self._wire.address_in(message)
            check_offered_address(address)
        except MalformedOffer as error:
            told = "the lobby has sent a malformed offer: %s. The seat is not taken; tell its operator"
            self._lines.log(logging.ERROR, told, error)
        else:
            self._follow_offer(offer, message.epoch, address)

    def _check_seats(self, offer: Offer) -> None:
        """Raise `MalformedOffer` if the game of this bot is not played by so many."""
        sizes = find_server_kit(self._plan.game).game.table_sizes
        if offer.game == self._plan.game and len(offer.bots) not in sizes:
            raise MalformedOffer(
                f"bots has {len(offer.bots)} names, and {sizes[0]} to {sizes[-1]} play {offer.game}"
            )

    def _follow_offer(self, offer: Offer, epoch: int, address: str) -> None:
        key = (offer.match, offer.seat)
        seen = self._epochs.get(offer.match, 0)
        if epoch < seen:
            return
        if key in self._past:
            if self._past[key] and address:
                EndedSeat(key, self._past[key], self._link_to(address))
            return
        if not address:
            told = "%s: its referee takes no WebSockets; connect by gRPC instead"
            self._lines.log(logging.ERROR, told, offer.match)
            return
        seat = self._seats.get(key)
        if seat is None and len(self._seats) >= self._plan.max_matches + MOST_EXTRA_SEATS:
            told = "the lobby offers more seats than max_matches allows: %s is not taken; tell its operator"
            self._lines.log(logging.ERROR, told, offer.match)
            return
        self._epochs[offer.match] = epoch
        if seat is None:
            seat = self._take_seat(offer, epoch)
        elif epoch == seat.epoch:
            return  # the lobby repeats all offers over each new link
        if seat is not None:
            seat.epoch = epoch
            seat.move_to(self._link_to(address))

    def _handle_seat_closed(self, closed: SeatClosed) -> None:
        seat = self._seats.get((closed.match, closed.seat))
        if seat is not None and not seat.is_asking_how:
            self._start_task(seat.wait_for_last_word())

    def _take_seat(self, offer: Offer, epoch: int) -> SeatSession | None:
        if offer.game != self._plan.game:
            told = f"{offer.match} is a match of {offer.game!r}, and this bot plays {self._plan.game!r}"
            self._fail_session(WrongGameError(f"{told}: attend queues of its game only"))
            return None
        seat = SeatSession(offer, epoch, self._plan.factory, self._epochs)
        self._seats[seat.key] = seat
        self._empty.clear()
        self._start_task(self._play_seat(seat))
        self._adjust_limit()
        others = [bot for number, bot in enumerate(seat.offer.bots) if number != offer.seat]
        log.info("seated in %s against %s", seat.place, ", ".join(others))
        return seat

    def _link_to(self, address: str) -> RefereeLink:
        link = self._links.get(address)
        if link is None:
            if len(self._links) >= MOST_LINKS:
                self._close_idle_links()
            link = self._links[address] = RefereeLink(address, self._wire, self._forget_link)
            self._start_task(link.keep_link())
        return link

    def _close_idle_links(self) -> None:
        """Close the links that no seat needs. Otherwise each stays up until its referee ends it."""
        for link in [each for each in self._links.values() if each.is_idle]:
            link.close()
            self._forget_link(link)

    def _forget_link(self, link: RefereeLink) -> None:
        if self._links.get(link.address) is link:
            del self._links[link.address]

    # Seats

    async def _play_seat(self, seat: SeatSession) -> None:
        try:
            if await self._set_up_seat(seat):
                await seat.questions.answer_questions()
                self._count_match(seat)
                await seat.tell_end()
                await self._report_result(seat)
        finally:
            self._leave_seat(seat)

    async def _set_up_seat(self, seat: SeatSession) -> bool:
        try:
            await seat.set_up()
        except Exception as error:
            seat.questions.log_failure("set up", error, "its seat is not taken")
            if not self._has_set_up:
                raise BotFailedError(f"the bot could not be set up: {error!r}") from error
            return False
        self._has_set_up = True
        return True

    async def _report_result(self, seat: SeatSession) -> None:
        if seat.result is None or self._plan.on_result is None:
            return
        try:
            told = self._plan.on_result(seat.result)
            if isawaitable(told):
                await told
        except Exception:
            log.exception("on_result failed for %s", seat.place)

    def _count_match(self, seat: SeatSession) -> None:
        self._totals.add_match(seat.result)
        self._totals.moves += seat.moves
        self._totals.failures += seat.questions.failures
        log.info("%s", _result_line(seat))

    def _leave_seat(self, seat: SeatSession) -> None:
        seat.leave_match()
        del self._seats[seat.key]
        self._past[seat.key] = seat.end_receipt
        if len(self._past) > REMEMBERED:
            del self._past[next(iter(self._past))]
        if all(match != seat.offer.match for match, _ in self._seats):
            self._epochs.pop(seat.offer.match, None)
        if not self._seats:
            self._empty.set()
        self._adjust_limit()

    def _adjust_limit(self) -> None:
        """Tell the lobby how many seats are still wanted. Seats that it gives before it hears of it are played too."""
        if self._is_draining:
            return
        counted = self._totals.matches + self._totals.unknown
        self._lobby.set_limit(_seats_wanted(self._plan, counted, len(self._seats)))
        if self._plan.matches is not None and counted >= self._plan.matches:
            self.drain_matches()


def _seats_wanted(plan: RunPlan, counted: int, open_seats: int) -> int:
    """Return how many seats to have open at once, so that the run plays the wanted number of matches and no more."""
    if plan.matches is None:
        return plan.max_matches
    wanted = plan.matches - counted - open_seats
    return min(plan.max_matches, open_seats + wanted) if wanted > 0 else 0


def _result_line(seat: SeatSession) -> str:
    """Return the line of a match for the log."""
    result, own = seat.result, seat.offer.seat
    if result is None:
        return f"{seat.place}: over, result unknown"
    if result.is_void:
        return f"{seat.place}: counts for nobody ({result.void_reason})"
    all_points = " ".join(map(str, result.points))
    return (
        f"{seat.place}: rank {result.ranks[own]} with {result.points[own]} points of {all_points}; "
        f"{result.endings[own]}, {seat.moves} moves, {seat.questions.failures} failures"
    )
