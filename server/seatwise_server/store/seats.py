"""The seats that bots hold with their offers, their no-shows, and the notices of changes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, IntEnum
from typing import NamedTuple

from seatwise_server.store import keys
from seatwise_server.store.errors import ProposalExpired
from seatwise_server.store.owners import OWNERS_PREFIX, OwnerMatches
from seatwise_server.store.queues import LATE_MS, counts_no_shows
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, as_pairs
from seatwise_server.store.redis.scripts import ScriptCall, ScriptRun, StorePart

_BOT_ABSENT = -1
"""The answer of `seat_room.lua` for a bot that is not present."""
_BOT_OFF = -2
"""Its answer for a bot that is off the queues."""

MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS
MOST_UNTAKEN = 4
"""The most untaken seats of one bot, however many it has taken before, and so the most tables that it can keep waiting."""

SLOW_MS = 2000
"""A bot that sits down later than this after the offer keeps others waiting; it may again have only one untaken seat."""

REMEMBERED_MS = 20 * MINUTE_MS
"""For how long a no-show is remembered. Several are forgotten one after the other."""

FORGIVEN_MS = 2 * MINUTE_MS
"""How much sooner a no-show is forgotten for each seat that the bot takes."""

MOST_REMEMBERED = 2
"""The no-shows that a bot may have. With one more it is off the queues."""

PAUSE_MS = 10 * MINUTE_MS
"""The first time off the queues. It doubles each time, until a day has passed since the last one."""

LONGEST_PAUSE_MS = DAY_MS
FAULT_KEPT_MS = MINUTE_MS
"""A fault excuses for so long bots that do not sit down: they may have to connect again."""

EXCUSE_MS = DAY_MS
"""A bot may fill the server to void what it is about to lose: so often that brings it something."""

NO_SHOWS_KEPT_MS = 2 * DAY_MS
"""How long after the last change everything is forgotten."""


KEYS_OF_SCRIPTS: dict[str, tuple[Callable[[str], str], ...]] = {
    "seat_reserve": (
        keys.bot_seats,
        keys.bot_attendance,
        keys.bot_untaken,
        keys.bot_no_shows,
        keys.bot_other_seats,
    ),
    "seat_room": (keys.bot_seats, keys.bot_attendance, keys.bot_untaken, keys.bot_no_shows),
    "seat_release": (
        keys.bot_seats,
        keys.bot_offers,
        keys.bot_untaken,
        keys.bot_registration,
        keys.bot_other_seats,
    ),
    "offer_put": (keys.bot_offers, keys.bot_seats, keys.bot_untaken, keys.bot_other_seats),
    "seat_told": (keys.bot_untaken, keys.bot_other_seats),
    "seat_taken": (keys.bot_untaken, keys.bot_no_shows),
    "no_show": (keys.bot_untaken, keys.bot_no_shows, keys.bot_attendance),
}
"""The keys of each script of one bot, in the order that the head of the script names."""


class Reservation(IntEnum):
    """The result of a reservation."""

    RESERVED = 1
    ALREADY = 2
    """The bot has this very seat already: a reply was lost, or the work of a dead process is being finished."""
    FULL = 3
    """The bot has as many seats as it attends for."""
    ABSENT = 4
    """The bot is not present."""
    LATE = 5
    """The lobby's time to seat the match is over."""
    BARRED = 6
    """The bot is off the queues, or has reached its limit of seats of queues in which it has not sat down."""

    @property
    def holds(self) -> bool:
        """Whether the bot has the seat now."""
        return self in (Reservation.RESERVED, Reservation.ALREADY)


class QueueRoom(NamedTuple):
    """How many more seats a bot may take in a queue."""

    free: int
    is_absent: bool
    """Whether the bot is not present at all."""
    is_off: bool
    """Whether it is off the queues for its no-shows."""


class SeatOf(NamedTuple):
    """A seat of a match."""

    match: str
    seat: int


@dataclass(frozen=True, slots=True, order=True)
class SeatOffer:
    """A message that tells a bot about a seat of its own."""

    match: str
    seat: int
    epoch: int
    offer: bytes


class Seats(StorePart):
    """The seats that bots hold: one set for each bot, so that a repeated step is not counted twice."""

    async def reserve_all(
        self,
        match: str,
        bots: Sequence[tuple[str, int]],
        until_ms: int | None = None,
        queued: Collection[str] = (),
    ) -> list[Reservation]:
        """Reserve a seat for each bot, in one round trip; the caller gives the bots in the order of their names.

        For the `queued` bots the seat is one of a queue in which no-shows count. Raises ProposalExpired if it is `until_ms`, in
        milliseconds of Redis's clock, or later. Seats that were reserved before that moment stay reserved.
        """
        calls = [_reserve_call(bot, match, seat, until_ms, bot in queued) for bot, seat in bots]
        answers = await self._run_many("seat_reserve", calls)
        found = [Reservation(answer) for answer in answers]
        if Reservation.LATE in found:
            raise ProposalExpired(match)
        return found

    async def release_all(self, match: str, bots: Sequence[str], until_ms: int | None = None) -> None:
        """Free every seat of a match that comes to nothing, withdraw the offers, and count the match for no owner any more.

        `bots` is in the order of the seats. Raises ProposalExpired if it is `until_ms`, in milliseconds of Redis's clock, or later.
        """
        [answers] = await scripts.run_phases(self._client, release_calls(match, bots, until_ms))
        if min((answer for answer, _ in answers), default=0) < 0:
            raise ProposalExpired(match)
        owners = owners_in(answers)
        await OwnerMatches(self._client).close_match(match, owners, is_void=True, until_ms=until_ms)

    async def held_seats(self, bot: str) -> list[SeatOf]:
        """Return the seats that the bot holds, in order; empty if it holds none."""
        answer = await self._call("SMEMBERS", keys.bot_seats(bot))
        return sorted(seat_of(name.decode()) for name in answer)

    async def free_places(self, bots: Sequence[str], queue: str = "") -> list[int]:
        """Return how many more seats each bot may take; 0 if it is not present, or may not be seated from the queue."""
        answers = await self._run_many("seat_room", [_room_call(bot, queue) for bot in bots])
        return [max(0, int(answer)) for answer in answers]

    async def room_in(self, bot: str, queues: Sequence[str]) -> list[QueueRoom]:
        """Return how many more seats the bot may take in each of these queues, like `free_places`."""
        answers = await self._run_many("seat_room", [_room_call(bot, queue) for queue in queues])
        return [QueueRoom(max(0, answer), answer == _BOT_ABSENT, answer == _BOT_OFF) for answer in answers]

    async def put_offers(self, match: str, epoch: int, offers: Sequence[tuple[str, bytes]]) -> None:
        """Offer every seat of the match; `offers` has each seat's bot and offer, in the order of the seats."""
        calls = [offer_call(bot, match, seat, epoch, offer) for seat, (bot, offer) in enumerate(offers)]
        await self._run_many("offer_put", calls)

    async def open_offers(self, bot: str) -> list[SeatOffer]:
        """Return the bot's offers, in the order of match and seat; empty if it has none."""
        answer = await self._call("HGETALL", keys.bot_offers(bot))
        return sorted(_parse_offer(seat_of(name.decode()), held) for name, held in as_pairs(answer))

    async def offers_of(self, bot: str, seats: Iterable[SeatOf]) -> list[SeatOffer]:
        """Return the bot's offers of these seats, in the order of match and seat. A seat without an offer is left out."""
        asked = sorted(seats)
        names = [f"{match}/{seat}" for match, seat in asked]
        answer = await self._call("HMGET", keys.bot_offers(bot), *names)
        found = zip(asked, answer, strict=True)
        return [_parse_offer(seat, held) for seat, held in found if held is not None]


def _keys_of(script: str, bot: str) -> list[str]:
    return [key(bot) for key in KEYS_OF_SCRIPTS[script]]


def _reserve_call(bot: str, match: str, seat: int, until_ms: int | None, is_queued: bool) -> ScriptRun:
    args = (f"{match}/{seat}", "1" if is_queued else "", *_deadline_args(until_ms))
    return _keys_of("seat_reserve", bot), args


def _room_call(bot: str, queue: str) -> ScriptRun:
    return _keys_of("seat_room", bot), (queue, "1" if counts_no_shows(queue) else "")


def release_calls(match: str, bots: Sequence[str], until_ms: int | None = None) -> list[ScriptCall]:
    """Return the scripts of `Seats.release_all`."""
    script, channel, deadline = "seat_release", keys.OFFERS_CHANNEL, _deadline_args(until_ms)
    return [
        (script, _keys_of(script, bot), (f"{match}/{seat}", channel, bot, *deadline))
        for seat, bot in enumerate(bots)
    ]


def owners_in(answers: Iterable[tuple[int, bytes]]) -> set[str]:
    """Return the owners, with quotas, that the answers of these scripts name."""
    return {name for _, owner in answers if (name := owner.decode()).startswith(OWNERS_PREFIX)}


def _deadline_args(until_ms: int | None) -> tuple[int, ...]:
    return () if until_ms is None else (until_ms,)


def offer_call(bot: str, match: str, seat: int, epoch: int, offer: bytes) -> ScriptRun:
    return _keys_of("offer_put", bot), (f"{match}/{seat}", epoch, offer, keys.OFFERS_CHANNEL, bot)


def seat_of(name: str) -> SeatOf:
    """Parse `<match>/<seat>`."""
    match, _, seat = name.rpartition("/")
    return SeatOf(match, int(seat))


def _parse_offer(seat: SeatOf, held: bytes) -> SeatOffer:
    epoch, _, offer = held.partition(b" ")
    return SeatOffer(*seat, int(epoch), offer)


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


class NoShows(StorePart):
    """The no-shows of all bots on one Redis."""

    async def note_told(self, bot: str, seats: Sequence[SeatOf]) -> int:
        """Note that the offers of these seats were delivered to the bot's stream. Return of how many it was told in time."""
        names = [f"{match}/{seat}" for match, seat in seats]
        return int(await self._run("seat_told", _keys_of("seat_told", bot), LATE_MS, *names))

    async def seat_news(self, match: str, seats: Sequence[tuple[str, int]]) -> list[SeatNews | None]:
        """Return what each bot knows of its seat; None for a seat of a queue that is taken, and for one without a note."""
        commands = [
            ("HGET", key, f"{match}/{seat}")
            for bot, seat in seats
            for key in (keys.bot_untaken(bot), keys.bot_other_seats(bot))
        ]
        answers = await self._call_many(commands)
        of_queues, of_others = answers[::2], answers[1::2]
        return [_news(one or other) for one, other in zip(of_queues, of_others, strict=True)]

    async def read_who_knew(self, match: str, seats: Sequence[tuple[str, int]]) -> list[bool]:
        """Return for each bot whether it knew of its seat of a ladder: there is no note, it has left by itself, or it was told in
        time and a lobby still renews its attendance.
        """
        held = [("HGET", keys.bot_other_seats(bot), f"{match}/{seat}") for bot, seat in seats]
        attends = [("EXISTS", keys.bot_attendance(bot)) for bot, _ in seats]
        answers = await self._call_many([*held, *attends])
        return list(map(_knew, answers[: len(seats)], answers[len(seats) :]))

    async def note_all_taken(self, seats: Sequence[tuple[str, SeatOf]]) -> list[bool]:
        """Note that each bot has sat down in its seat. Return whether that is news: the seat is one of a queue."""
        more = (MOST_UNTAKEN - 1, FORGIVEN_MS, NO_SHOWS_KEPT_MS, SLOW_MS)
        calls = [
            (_keys_of("seat_taken", bot), (f"{seat.match}/{seat.seat}", keys.OFFERS_CHANNEL, bot, *more))
            for bot, seat in seats
        ]
        return [bool(answer) for answer in await self._run_many("seat_taken", calls)]

    async def note_no_shows(
        self, match: str, seats: Sequence[tuple[str, int]], *, counts: bool
    ) -> list[NoShow]:
        """Note for each bot and seat that the bot did not sit down, and notify all lobbies; it is excused unless `counts`. Repeatable."""
        most_ms = MOST_REMEMBERED * REMEMBERED_MS
        limits = (REMEMBERED_MS, most_ms, PAUSE_MS, LONGEST_PAUSE_MS, DAY_MS, NO_SHOWS_KEPT_MS)
        how = (match, "1" if counts else "", keys.OFFERS_CHANNEL)
        calls = [(_keys_of("no_show", bot), (f"{match}/{seat}", *how, bot, *limits)) for bot, seat in seats]
        return [NoShow(answer) for answer in await self._run_many("no_show", calls)]

    async def read_off_queues(self, bot: str) -> OffQueues | None:
        """Return until when the bot is off the queues, and why; None if it is not."""
        found = await self._run("no_shows_off", [keys.bot_no_shows(bot)])
        if not found:
            return None
        until_ms, matches = found
        return OffQueues(int(until_ms), tuple(matches.decode().split(" ")))

    async def note_fault(self, kind: str) -> None:
        """Notes that a process had a fault that may keep bots from their seats."""
        await self._call("SET", keys.LAST_FAULT, kind, "PX", FAULT_KEPT_MS)

    async def recent_fault(self) -> str:
        """Return the kind of the last fault of any process in the last `FAULT_KEPT_MS`; "" if there was none."""
        found: bytes | None = await self._call("GET", keys.LAST_FAULT)
        return found.decode() if found else ""

    async def take_excuse(self, bot: str) -> bool:
        """Whether a match may be void because this bot could not connect: once in `EXCUSE_MS` for all its versions."""
        return bool(await self._call("SET", keys.bot_excuse(bot), "", "NX", "PX", EXCUSE_MS))

    async def forgive(self, bot: str) -> bool:
        """Forget all no-shows of the bot, and let it back onto the queues; returns False if there are none."""
        return bool(await self._call("UNLINK", keys.bot_no_shows(bot)))


def _knew(held: bytes | None, attends: int) -> bool:
    state = b"left" if held is None else held.partition(b" ")[0]
    return state == b"left" or (state == b"told" and bool(attends))


def _news(held: bytes | None) -> SeatNews | None:
    if held is None:
        return None
    told = {b"told": SeatNews.TOLD, b"late": SeatNews.TOLD, b"left": SeatNews.LEFT}
    return told.get(held.partition(b" ")[0], SeatNews.UNTOLD)


class LobbyNotice(NamedTuple):
    """A notice that something has changed for a bot."""

    bot: str
    attend_id: str = ""
    """The id of the bot's new attendance; empty if the notice is about a seat."""
    seat: SeatOf | None = None
    """The seat whose offer has changed; None if the notice is about an attendance."""


async def lobby_notices(client: RedisClient) -> AsyncIterator[LobbyNotice]:
    """Yield the notices for lobbies as they are published. Raises `StoreUnavailable` if Redis is away: listen again."""
    async for channel, notice in _notices(client, keys.OFFERS_CHANNEL, keys.ATTENDS_CHANNEL):
        bot, _, what = notice.partition(" ")
        is_attendance = channel == keys.ATTENDS_CHANNEL
        yield LobbyNotice(bot, what) if is_attendance else LobbyNotice(bot, seat=seat_of(what))


async def handover_notices(client: RedisClient) -> AsyncIterator[str]:
    """Yield the names of processes that have given up all their matches. Raises the same errors as `lobby_notices`."""
    async for _, process in _notices(client, keys.HANDOVERS_CHANNEL):
        yield process


async def _notices(client: RedisClient, *channels: str) -> AsyncIterator[tuple[str, str]]:
    async with aclosing(client.listen_to(*channels)) as notices:
        async for notice in notices:
            yield notice
