"""No-shows in queues: bots that did not sit down where they were offered a seat.

The count belongs to the bot, so a new stream of the bot changes nothing. A bot that is new, or has missed a
seat, may have one untaken seat: a seat of a queue in which it has not sat down yet. It may have one more for
each seat that it takes in time. The third no-show in a short time takes it off the queues for a while.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, IntEnum

from seatwise_server.store import keys
from seatwise_server.store.attendance import LATE_MS
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, call, call_many
from seatwise_server.store.seats import SeatOf

MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS
MOST_UNTAKEN = 4
"""The most untaken seats of one bot, however many seats it has taken before. It is also the most tables that
one bot can keep waiting.
"""
SLOW_MS = 2000
"""A bot that sits down later than this after the offer keeps others waiting; it may again have only one untaken seat."""
REMEMBERED_MS = 20 * MINUTE_MS
"""For how long a no-show is remembered. Several are forgotten one after the other."""
FORGIVEN_MS = 2 * MINUTE_MS
"""How much sooner a no-show is forgotten for each seat that the bot takes."""
MOST_REMEMBERED = 2
"""For how long a bot is off the queues the first time. It doubles each time, until a day has passed since the last one."""
PAUSE_MS = 10 * MINUTE_MS
"""The first time off the queues. It doubles each time, until a day has passed since the last one."""
LONGEST_PAUSE_MS = DAY_MS
FAULT_KEPT_MS = MINUTE_MS
"""A fault excuses for so long bots that do not sit down: they may have to connect again."""
NO_SHOWS_KEPT_MS = 2 * DAY_MS
"""How long after the last change everything is forgotten."""


class NoShow(IntEnum):
    """The result for a seat that was not taken."""

    NONE = 0
    """It was noted before, or the seat is not one of a queue."""
    EXCUSED = 1
    """It does not count: the bot was not told in time, its lobby has died, or there was another fault of ours."""
    COUNTED = 2
    """The bot may have one untaken seat from now on."""
    OFF = 3
    """The bot is off the queues from now on."""


class SeatNews(Enum):
    """The knowledge that a bot has of a seat that it has not taken."""

    UNTOLD = "untold"
    TOLD = "told"
    LEFT = "left"
    """The bot has closed its stream since it was told."""


@dataclass(frozen=True, slots=True)
class OffQueues:
    """A bot may not be paired in queues for a while."""

    until_ms: int
    """When it may be paired again, in milliseconds of Redis's clock since 1970."""
    matches: tuple[str, ...]
    """Its last no-shows."""

    @property
    def reason(self) -> str:
        """The reason, for the bot's owner."""
        until = datetime.fromtimestamp(self.until_ms / 1000, UTC)
        return f"it did not sit down in {', '.join(self.matches)}; it is paired again from {until:%Y-%m-%d %H:%M:%S} UTC on"


class NoShows:
    """The no-shows of all bots on one Redis."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def note_told(self, bot: str, seats: Sequence[SeatOf]) -> int:
        """Notes that the offers of these seats were delivered to the bot's stream.

        Returns of how many it was told in time.
        """
        names = [f"{match}/{seat}" for match, seat in seats]
        named = [keys.bot_untaken(bot), keys.bot_other_seats(bot)]
        return int(await scripts.run_script(self._client, "seat_told", named, LATE_MS, *names))

    async def seat_news(self, match: str, seats: Sequence[tuple[str, int]]) -> list[SeatNews | None]:
        """Returns what each bot knows of its seat; None for a seat of a queue that is taken, and for one without a note, which
        an older version has reserved.
        """
        commands = [
            ("HGET", key, f"{match}/{seat}")
            for bot, seat in seats
            for key in (keys.bot_untaken(bot), keys.bot_other_seats(bot))
        ]
        answers = await call_many(self._client, commands)
        return [
            _news(of_queue or of_other)
            for of_queue, of_other in zip(answers[::2], answers[1::2], strict=True)
        ]

    async def read_who_knew(self, match: str, seats: Sequence[tuple[str, int]]) -> list[bool]:
        """Returns for each bot whether it knew of its seat of a ladder: it has left by itself, or it was told in time and a
        lobby still renews its attendance. Of a seat without a note, which an older version has reserved, it knew.
        """
        commands = [
            command
            for bot, seat in seats
            for command in (
                ("HGET", keys.bot_other_seats(bot), f"{match}/{seat}"),
                ("EXISTS", keys.bot_attendance(bot)),
            )
        ]
        answers = await call_many(self._client, commands)
        return [_knew(held, bool(attends)) for held, attends in zip(answers[::2], answers[1::2], strict=True)]

    async def note_taken(self, bot: str, match: str, seat: int) -> bool:
        """Notes that the bot has sat down; returns False if that is noted already, or the seat is not one of a
        queue.

        If the bot may be seated again because of it, all lobbies are notified on `keys.OFFERS_CHANNEL`.
        """
        [is_noted] = await self.note_all_taken([(bot, SeatOf(match, seat))])
        return is_noted

    async def note_all_taken(self, seats: Sequence[tuple[str, SeatOf]]) -> list[bool]:
        """Notes that each bot has sat down in its seat, like `note_taken`, in one message."""
        more = (MOST_UNTAKEN - 1, FORGIVEN_MS, NO_SHOWS_KEPT_MS, SLOW_MS)
        calls = [
            (_keys(bot), (f"{seat.match}/{seat.seat}", keys.OFFERS_CHANNEL, bot, *more))
            for bot, seat in seats
        ]
        return [bool(answer) for answer in await scripts.run_script_many(self._client, "seat_taken", calls)]

    async def note_no_shows(
        self, match: str, seats: Sequence[tuple[str, int]], *, counts: bool
    ) -> list[NoShow]:
        """Notes for each bot and seat that the bot did not sit down; it is excused unless `counts`. Repeatable.

        All lobbies are notified on `keys.OFFERS_CHANNEL`.
        """
        limits = (
            REMEMBERED_MS,
            MOST_REMEMBERED * REMEMBERED_MS,
            PAUSE_MS,
            LONGEST_PAUSE_MS,
            DAY_MS,
            NO_SHOWS_KEPT_MS,
        )
        calls = [
            (
                [*_keys(bot), keys.bot_attendance(bot)],
                (f"{match}/{seat}", match, "1" if counts else "", keys.OFFERS_CHANNEL, bot, *limits),
            )
            for bot, seat in seats
        ]
        return [NoShow(answer) for answer in await scripts.run_script_many(self._client, "no_show", calls)]

    async def read_off_queues(self, bot: str) -> OffQueues | None:
        """Returns until when the bot is off the queues, and why; None if it is not."""
        found = await scripts.run_script(self._client, "no_shows_off", [keys.bot_no_shows(bot)])
        if not found:
            return None
        until_ms, matches = found
        return OffQueues(int(until_ms), tuple(matches.decode().split(" ")))

    async def note_fault(self, kind: str) -> None:
        """Notes that a process had a fault that may keep bots from their seats."""
        await call(self._client, "SET", keys.LAST_FAULT, kind, "PX", FAULT_KEPT_MS)

    async def recent_fault(self) -> str:
        """Returns the kind of the last fault of any process in the last `FAULT_KEPT_MS`; "" if there was none."""
        found: bytes | None = await call(self._client, "GET", keys.LAST_FAULT)
        return found.decode() if found else ""

    async def forgive(self, bot: str) -> bool:
        """Forgets all no-shows of the bot, and lets it back onto the queues; returns False if there are none."""
        return bool(await call(self._client, "UNLINK", keys.bot_no_shows(bot)))


def _keys(bot: str) -> list[str]:
    return [keys.bot_untaken(bot), keys.bot_no_shows(bot)]


def _knew(held: bytes | None, attends: bool) -> bool:
    state = b"left" if held is None else held.partition(b" ")[0]
    return state == b"left" or (state == b"told" and attends)


def _news(held: bytes | None) -> SeatNews | None:
    if held is None:
        return None
    state = held.partition(b" ")[0]
    return {b"told": SeatNews.TOLD, b"late": SeatNews.TOLD, b"left": SeatNews.LEFT}.get(
        state, SeatNews.UNTOLD
    )
