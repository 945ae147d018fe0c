"""No-shows in queues: bots that did not sit down where they were offered a seat.

The count lies with the bot, so a new stream of the bot changes nothing. A bot that is new, or has missed a seat, may have one
seat of a queue in which it has not sat down yet, and one more for each seat that it takes in good time. The third no-show in
a short time takes it off the queues for a while.
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
"""So many seats may be untaken at once, however many the bot has taken: so many tables one bot can keep waiting."""
SLOW_MS = 2000
"""A bot that sits down so long after the offer keeps others waiting: it may have one untaken seat again."""
REMEMBERED_MS = 20 * MINUTE_MS
"""So long a no-show is remembered; several one after the other."""
FORGIVEN_MS = 2 * MINUTE_MS
"""So much sooner a no-show is forgiven for each seat that the bot takes."""
MOST_REMEMBERED = 2
"""With more no-shows than these a bot is off the queues."""
PAUSE_MS = 10 * MINUTE_MS
"""For so long the first time; each time for twice as long, until a day has passed since the last."""
LONGEST_PAUSE_MS = DAY_MS
NO_SHOWS_KEPT_MS = 2 * DAY_MS
"""So long after the last change all is forgotten."""


class NoShow(IntEnum):
    """What became of a seat that was not taken."""

    NONE = 0
    """It was noted before, or is not a seat of a queue."""
    EXCUSED = 1
    """It does not count: the bot was not told in time, its lobby has died, or the fault was ours otherwise."""
    COUNTED = 2
    """The bot may have one untaken seat from now on."""
    OFF = 3
    """The bot is off the queues from now on."""


class SeatNews(Enum):
    """What a bot knows of a seat of a queue that it has not taken."""

    UNTOLD = "untold"
    TOLD = "told"
    LEFT = "left"
    """The bot has closed its stream since."""


@dataclass(frozen=True, slots=True)
class OffQueues:
    """A bot may not be paired in queues for a while."""

    until_ms: int
    """When it may be paired again, in milliseconds of Redis's clock since 1970."""
    matches: tuple[str, ...]
    """Its last no-shows."""

    @property
    def reason(self) -> str:
        """Why, for the bot's owner."""
        until = datetime.fromtimestamp(self.until_ms / 1000, UTC)
        return f"it did not sit down in {', '.join(self.matches)}; it is paired again from {until:%Y-%m-%d %H:%M:%S} UTC on"


class NoShows:
    """The no-shows of all bots on one Redis."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def note_told(self, bot: str, seats: Sequence[SeatOf]) -> int:
        """Notes that the offers of these seats were handed to the bot's stream.

        Answers for how many of them the bot has to sit down: those of queues that it was told of in time.
        """
        names = [f"{match}/{seat}" for match, seat in seats]
        return int(
            await scripts.run_script(self._client, "seat_told", [keys.bot_untaken(bot)], LATE_MS, *names)
        )

    async def seat_news(self, match: str, seats: Sequence[tuple[str, int]]) -> list[SeatNews | None]:
        """What each bot knows of its seat; None for a seat that is taken, or is not one of a queue."""
        commands = [("HGET", keys.bot_untaken(bot), f"{match}/{seat}") for bot, seat in seats]
        return [_news(answer) for answer in await call_many(self._client, commands)]

    async def note_taken(self, bot: str, match: str, seat: int) -> bool:
        """Notes that the bot has sat down; False when that is known already, or the seat is not one of a queue.

        All lobbies are told when it may be seated again for that, on keys.OFFERS_CHANNEL.
        """
        more = (keys.OFFERS_CHANNEL, bot, MOST_UNTAKEN - 1, FORGIVEN_MS, NO_SHOWS_KEPT_MS, SLOW_MS)
        return bool(
            await scripts.run_script(self._client, "seat_taken", _keys(bot), f"{match}/{seat}", *more)
        )

    async def note_no_shows(
        self, match: str, seats: Sequence[tuple[str, int]], *, counts: bool
    ) -> list[NoShow]:
        """Notes for each bot and seat that the bot did not sit down; excused unless it `counts`. May be repeated.

        All lobbies are told, on keys.OFFERS_CHANNEL.
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

    async def off(self, bot: str) -> OffQueues | None:
        """Until when the bot is off the queues, and why; None when it is not."""
        found = await scripts.run_script(self._client, "no_shows_off", [keys.bot_no_shows(bot)])
        if not found:
            return None
        until_ms, matches = found
        return OffQueues(int(until_ms), tuple(matches.decode().split(" ")))

    async def forgive(self, bot: str) -> bool:
        """Forgets all no-shows of the bot, and lets it back on the queues; False when there are none."""
        return bool(await call(self._client, "UNLINK", keys.bot_no_shows(bot)))


def _keys(bot: str) -> list[str]:
    return [keys.bot_untaken(bot), keys.bot_no_shows(bot)]


def _news(held: bytes | None) -> SeatNews | None:
    if held is None:
        return None
    state = held.partition(b" ")[0]
    return {b"told": SeatNews.TOLD, b"late": SeatNews.TOLD, b"left": SeatNews.LEFT}.get(
        state, SeatNews.UNTOLD
    )
