"""The seats that bots hold, and the offers that tell them so."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from seatwise_server.store import keys
from seatwise_server.store.errors import ProposalExpired
from seatwise_server.store.owner_matches import OWNERS_PREFIX, OwnerMatches
from seatwise_server.store.queues import counts_no_shows
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import Argument, RedisClient, as_pairs, call
from seatwise_server.store.redis.scripts import ScriptCall

_BOT_ABSENT = -1
"""The answer of `seat_room.lua` for a bot that is not present."""
_BOT_OFF = -2
"""Its answer for a bot that is off the queues."""


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


class Seats:
    """The seats that bots hold: one set for each bot, so that a repeated step is not counted twice."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def reserve_seat(self, bot: str, match: str, seat: int) -> Reservation:
        """Reserves the seat for the bot, within the number of matches that it attends for now.

        Each seat counts as a match.
        """
        [answer] = await self.reserve_all(match, [(bot, seat)])
        return answer

    async def reserve_all(
        self,
        match: str,
        bots: Sequence[tuple[str, int]],
        until_ms: int | None = None,
        queued: Collection[str] = (),
    ) -> list[Reservation]:
        """Reserves a seat for each bot, like `reserve_seat`, in one round trip; the caller gives the bots in
        the order of their names.

        For the `queued` bots the seat is one of a queue in which no-shows count. Raises ProposalExpired if it
        is `until_ms`, in milliseconds of Redis's clock, or later. Seats that were reserved before that moment
        stay reserved.
        """
        calls = [_reserve_call(bot, match, seat, until_ms, bot in queued) for bot, seat in bots]
        answers = await scripts.run_script_many(self._client, "seat_reserve", calls)
        found = [Reservation(answer) for answer in answers]
        if Reservation.LATE in found:
            raise ProposalExpired(match)
        return found

    async def release_seat(self, bot: str, match: str, seat: int) -> bool:
        """Frees the seat and withdraws its offer; returns False if the bot did not hold it."""
        [[answer, _]] = await scripts.run_in_order(self._client, _release_call(bot, match, seat))
        return bool(answer)

    async def release_all(self, match: str, bots: Sequence[str], until_ms: int | None = None) -> None:
        """Frees every seat of a match that comes to nothing; `bots` is in the order of the seats. Withdraws the offers, and
        does not count the match for the owners of the bots any more.

        Raises ProposalExpired if it is `until_ms`, in milliseconds of Redis's clock, or later.
        """
        [answers] = await scripts.run_phases(self._client, release_calls(match, bots, until_ms))
        if min((answer for answer, _ in answers), default=0) < 0:
            raise ProposalExpired(match)
        owners = owners_in(answers)
        await OwnerMatches(self._client).close_match(match, owners, is_void=True, until_ms=until_ms)

    async def held_seats(self, bot: str) -> list[SeatOf]:
        """Returns the seats that the bot holds, in order; empty if it holds none."""
        answer = await call(self._client, "SMEMBERS", keys.bot_seats(bot))
        return sorted(seat_of(name.decode()) for name in answer)

    async def count_seats(self, bot: str) -> int:
        """Returns the number of seats that the bot holds."""
        return int(await call(self._client, "SCARD", keys.bot_seats(bot)))

    async def free_places(self, bots: Sequence[str], queue: str = "") -> list[int]:
        """Returns how many more seats each bot may take; 0 if it is not present, or may not be seated from the queue."""
        calls = [_room_call(bot, queue) for bot in bots]
        answers = await scripts.run_script_many(self._client, "seat_room", calls)
        return [max(0, int(answer)) for answer in answers]

    async def room_in(self, bot: str, queues: Sequence[str]) -> list[QueueRoom]:
        """Returns how many more seats the bot may take in each of these queues, like `free_places`."""
        calls = [_room_call(bot, queue) for queue in queues]
        answers = await scripts.run_script_many(self._client, "seat_room", calls)
        return [QueueRoom(max(0, answer), answer == _BOT_ABSENT, answer == _BOT_OFF) for answer in answers]

    async def put_offer(self, bot: str, match: str, seat: int, epoch: int, offer: bytes) -> bool:
        """Offers the seat and notifies all lobbies on `keys.OFFERS_CHANNEL`.

        Returns False if there is an offer of a higher epoch, or if the bot does not hold the seat (any more).
        """
        named, args = _offer_call(bot, match, seat, epoch, offer)
        return bool(await scripts.run_script(self._client, "offer_put", named, *args))

    async def put_offers(self, match: str, epoch: int, offers: Sequence[tuple[str, bytes]]) -> None:
        """Offers every seat of the match, like `put_offer`; `offers` has each seat's bot and offer, in the
        order of the seats.
        """
        calls = [_offer_call(bot, match, seat, epoch, offer) for seat, (bot, offer) in enumerate(offers)]
        await scripts.run_script_many(self._client, "offer_put", calls)

    async def open_offers(self, bot: str) -> list[SeatOffer]:
        """Returns the bot's offers, in the order of match and seat; empty if it has none."""
        answer = await call(self._client, "HGETALL", keys.bot_offers(bot))
        return sorted(_parse_offer(seat_of(name.decode()), held) for name, held in as_pairs(answer))

    async def offers_of(self, bot: str, seats: Iterable[SeatOf]) -> list[SeatOffer]:
        """Returns the bot's offers of these seats, in the order of match and seat. A seat without an offer is left out."""
        asked = sorted(seats)
        names = [f"{match}/{seat}" for match, seat in asked]
        answer = await call(self._client, "HMGET", keys.bot_offers(bot), *names)
        return [
            _parse_offer(seat, held) for seat, held in zip(asked, answer, strict=True) if held is not None
        ]


def _reserve_call(
    bot: str, match: str, seat: int, until_ms: int | None, is_queued: bool
) -> tuple[list[str], tuple[Argument, ...]]:
    named = [*_seat_keys(bot), keys.bot_other_seats(bot)]
    return named, (f"{match}/{seat}", "1" if is_queued else "", *_deadline_args(until_ms))


def _room_call(bot: str, queue: str) -> tuple[list[str], tuple[Argument, ...]]:
    return _seat_keys(bot), (queue, "1" if counts_no_shows(queue) else "")


def _seat_keys(bot: str) -> list[str]:
    return [keys.bot_seats(bot), keys.bot_attendance(bot), keys.bot_untaken(bot), keys.bot_no_shows(bot)]


def release_calls(match: str, bots: Sequence[str], until_ms: int | None = None) -> list[ScriptCall]:
    """Returns the scripts of `Seats.release_all`."""
    return [_release_call(bot, match, seat, until_ms) for seat, bot in enumerate(bots)]


def owners_in(answers: Iterable[tuple[int, bytes]]) -> set[str]:
    """Returns the owners, with quotas, that the answers of these scripts name."""
    return {name for _, owner in answers if (name := owner.decode()).startswith(OWNERS_PREFIX)}


def _release_call(bot: str, match: str, seat: int, until_ms: int | None = None) -> ScriptCall:
    named = [keys.bot_seats(bot), keys.bot_offers(bot), keys.bot_untaken(bot), keys.bot_registration(bot)]
    named.append(keys.bot_other_seats(bot))
    return "seat_release", named, (f"{match}/{seat}", keys.OFFERS_CHANNEL, bot, *_deadline_args(until_ms))


def _deadline_args(until_ms: int | None) -> tuple[int, ...]:
    return () if until_ms is None else (until_ms,)


def _offer_call(
    bot: str, match: str, seat: int, epoch: int, offer: bytes
) -> tuple[list[str], tuple[Argument, ...]]:
    named = [keys.bot_offers(bot), keys.bot_seats(bot), keys.bot_untaken(bot), keys.bot_other_seats(bot)]
    return named, (f"{match}/{seat}", epoch, offer, keys.OFFERS_CHANNEL, bot)


def seat_of(name: str) -> SeatOf:
    """Parses `<match>/<seat>`."""
    match, _, seat = name.rpartition("/")
    return SeatOf(match, int(seat))


def _parse_offer(seat: SeatOf, held: bytes) -> SeatOffer:
    epoch, _, offer = held.partition(b" ")
    return SeatOffer(*seat, int(epoch), offer)
