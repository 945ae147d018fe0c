"""The link to the lobby: one Attend stream, which is opened again whenever it breaks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from seatwise.errors import EncryptionError, SeatwiseError, TemporaryError, UnavailableError, clean_text
from seatwise.link.backoff import Retry, ServerLines
from seatwise.link.wire import Wire, WireStream
from seatwise.v1.lobby_service_pb2 import (
    AttendRequest,
    AttendResponse,
    Queued,
    SeatClosed,
    SeatOffer,
    TakenOff,
    Welcome,
)

SLOW_ANSWER_S = 1.0
"""After so many seconds without the lobby's answer a bot that drains says in the log what it waits for."""
AWAITED_S = 30.0
"""The longest time, in seconds, for which a bot that drains waits for the lobby: for its answer, and then for the offers of seats that
it has announced. The answer is late when the lobby or its store is away, and the bot may have been paired just before.
"""

FIRST_WORD_S = 60.0
"""The longest time, in seconds, until the lobby answers the first request. After it another link is opened."""
LONGEST_QUEUE = 200
"""The most characters of the name of a queue or a bot that are shown."""
MOST_QUEUES_OFF = 64
"""The most queues for which it is noted why the bot is not paired: twice as many as a bot may name."""

WHAT_TO_DO = {
    TakenOff.CAUSE_NO_SHOWS: "Your bot was offered seats and did not sit down in time. Is setup() slower than "
    "offer.time_control.setup_ms? Can this machine reach the referee? The bot stays, and waits in its queues again when the "
    "time is over. The operator can let it back earlier, with `seatwise ctl forgive`.",
    TakenOff.CAUSE_FORFEITS: "Look at what it did there: `seatwise match show MATCH`, with the bot's own token. Fix the bot. "
    "From the time that is named above, if one is, `seatwise ladder reinstate {ladder} {bot}` readmits it with its own token; the operator can do it at any "
    "time. A new version (--version) is a new player. Until then the bot stays, and waits in its other queues.",
    TakenOff.CAUSE_LADDER_CLOSED: "No match is played on it any more. Ask the operator for the ladder of the next season. The bot stays, and "
    "waits in its other queues.",
    TakenOff.CAUSE_OWNER_QUOTA: "This is a quota of all bots of its owner together: see `seatwise ctl owner show OWNER`. The bot stays, "
    "and waits in its queues again when the quota allows another match. The operator can raise it.",
}
"""Advice for the author of the bot, by the cause for which the bot is not paired."""

log = logging.getLogger("seatwise")

AttendStream = WireStream[AttendRequest, AttendResponse]


class LobbyLink:
    """Attends the lobby, and passes its offers on. It knows nothing of seats."""

    def __init__(
        self,
        wire: Wire,
        queues: Sequence[str],
        max_matches: int,
        on_offer: Callable[[SeatOffer], None],
        on_closed: Callable[[SeatClosed], None],
    ) -> None:
        self._wire = wire
        self._lines = ServerLines(f"lobby {wire.address}")
        self._queues = tuple(queues)
        self._limit = max_matches
        self._on_offer = on_offer
        self._on_closed = on_closed
        self._changed = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained_at = 0.0
        self._off: dict[str, int] = {}
        """The cause for each queue and ladder in which the bot is not paired."""
        self._bot = ""
        self._is_linked = False

    def set_limit(self, max_matches: int) -> None:
        """Set how many matches at once the bot takes from now on; 0 means none."""
        if max_matches != self._limit:
            self._limit = max_matches
            self._drained.clear()
            self._drained_at = asyncio.get_running_loop().time() + AWAITED_S
            self._changed.set()

    @property
    def has_drained(self) -> bool:
        """Whether the lobby is connected, and has confirmed the limit 0."""
        return self._is_linked and self._drained.is_set()

    async def wait_until_drained(self) -> None:
        """Wait until the lobby has confirmed the limit 0 and offered all seats, so that no more offers can arrive."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SLOW_ANSWER_S):
                await self._drained.wait()
        if not self._drained.is_set():
            told = "waiting for the lobby to say that it offers no more seats, for at most %.0f s"
            log.info(told, AWAITED_S)
        while not (self._drained.is_set() or asyncio.get_running_loop().time() >= self._drained_at):
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._drained_at):
                    await self._drained.wait()
        if not self._drained.is_set():
            log.warning("left, although the lobby did not say that it offers no more seats")

    async def keep_attending(self) -> None:
        """Attend until cancelled. Raises only errors that a retry cannot mend."""
        retry = Retry(f"lobby {self._wire.address}")
        while True:
            error: SeatwiseError
            try:
                await self._attend_once(retry)
                error = UnavailableError("the lobby closed the stream")
            except TemporaryError as temporary:
                error = temporary
            except EncryptionError as untrusted:
                if not self._bot:
                    raise  # never connected yet: the address is wrong, or the certificate is not trusted
                error = untrusted
            await retry.wait_after(error)

    async def _attend_once(self, retry: Retry) -> None:
        async with self._wire.attend() as stream:
            self._changed.set()  # so that the first request is written
            writer = asyncio.create_task(self._write_all(stream))
            try:
                response = await _first_word(stream)
                while response is not None:
                    retry.note_success()
                    self._is_linked = True
                    self._handle_response(response)
                    response = await stream.read()
            finally:
                self._is_linked = False
                writer.cancel()
                await asyncio.wait({writer})

    async def _write_all(self, stream: AttendStream) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await stream.write(AttendRequest(queues=self._queues, max_matches=self._limit))
            except SeatwiseError:
                return  # the reader gets the same error, and raises it

    def _handle_response(self, response: AttendResponse) -> None:
        match response.WhichOneof("event"):
            case "welcome":
                self._handle_welcome(response.welcome)
            case "offer":
                self._on_offer(response.offer)
            case "closed":
                self._on_closed(response.closed)
            case "queued":
                self._handle_queued(response.queued)
            case "taken_off":
                self._handle_taken_off(response.taken_off)

    def _handle_queued(self, queued: Queued) -> None:
        queue = clean_text(queued.queue, LONGEST_QUEUE)
        if self._off.pop(queue, None) is not None:
            self._lines.log(logging.INFO, "back in queue %s", queue)
        log.debug("place %d in queue %s", queued.place, queue)

    def _handle_taken_off(self, off: TakenOff) -> None:
        """Tell the author of the bot, and continue: the bot still waits in its other queues, and for matches that name it."""
        queue = clean_text(off.queue, LONGEST_QUEUE)
        self._lines.log(logging.ERROR, "off %s: %s", queue, clean_text(off.reason))
        if off.cause in WHAT_TO_DO and off.cause not in self._off.values():
            ladder, bot = (name.partition("/")[2] for name in (queue, self._bot))
            advice = WHAT_TO_DO[off.cause].format(ladder=ladder or "LADDER", bot=bot or "BOT")
            self._lines.log(logging.ERROR, "%s", advice)
        if len(self._off) < MOST_QUEUES_OFF:
            self._off[queue] = off.cause

    def _handle_welcome(self, welcome: Welcome) -> None:
        if (bot := clean_text(welcome.bot, LONGEST_QUEUE)) != self._bot:
            self._bot = bot
            queues = (
                f"queue {', '.join(self._queues)}" if self._queues else "no queue, only matches that name it"
            )
            told = "attending as %s: %s, at most %d at once"
            self._lines.log(logging.INFO, told, bot, queues, welcome.max_matches)
        if welcome.max_matches == self._limit == 0:
            self._note_pending(welcome.pending_seats)

    def _note_pending(self, seats: int) -> None:
        """The lobby has confirmed the limit 0; it still has to offer this number of seats."""
        if seats:
            self._drained.clear()
            self._drained_at = asyncio.get_running_loop().time() + AWAITED_S
        else:
            self._drained.set()


async def _first_word(stream: AttendStream) -> AttendResponse | None:
    """Return the first response. Raises `UnavailableError` if the lobby does not answer."""
    try:
        async with asyncio.timeout(FIRST_WORD_S):
            return await stream.read()
    except TimeoutError:
        raise UnavailableError("the lobby does not answer") from None
