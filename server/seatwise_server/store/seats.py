"""The seats that bots hold and the offers that tell them so."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from seatwise_server.store import keys
from seatwise_server.store.errors import ProposalExpired
from seatwise_server.store.queues import counts_no_shows
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import Argument, RedisClient, as_pairs, call


class Reservation(IntEnum):
    """What became of the wish for a seat."""

    RESERVED = 1
    ALREADY = 2
    """This very seat is the bot's: a reply was lost, or a crash is being made good."""
    FULL = 3
    """The bot has as many seats as it attends for."""
    ABSENT = 4
    """The bot is not present."""
    LATE = 5
    """The lobby's time to seat the match is over."""
    BARRED = 6
    """The bot is off the queues, or has as many seats of queues in which it has not sat down as it may have."""

    @property
    def holds(self) -> bool:
        """Whether the bot has the seat now."""
        return self in (Reservation.RESERVED, Reservation.ALREADY)


class SeatOf(NamedTuple):
    """A seat of a match."""

    match: str
    seat: int


@dataclass(frozen=True, slots=True, order=True)
class SeatOffer:
    """What a bot is told about a seat of its own."""

    match: str
    seat: int
    epoch: int
    offer: bytes


class Seats:
    """The seats that bots hold: a set for each bot, so that a step may be repeated and nothing is miscounted."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def reserve_seat(self, bot: str, match: str, seat: int) -> Reservation:
        """Takes the seat for the bot, within the number of matches that it attends for now.

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
        """As `reserve` for each bot and its seat, sent at once; a table's in the order of the bots' names.

        For the `queued` bots the seat is one of a queue in which no-shows count. Raises ProposalExpired when it is
        `until_ms`, in milliseconds of Redis's clock, or later: what was reserved before that moment stays so.
        """
        calls = [_reserving(bot, match, seat, until_ms, is_queued=bot in queued) for bot, seat in bots]
        answers = await scripts.run_script_many(self._client, "seat_reserve", calls)
        found = [Reservation(answer) for answer in answers]
        if Reservation.LATE in found:
            raise ProposalExpired(match)
        return found

    async def release_seat(self, bot: str, match: str, seat: int) -> bool:
        """Frees the seat and takes its offer back; False when the bot did not hold it."""
        named, args = _releasing(bot, match, seat)
        return bool(await scripts.run_script(self._client, "seat_release", named, *args))

    async def release_all(self, match: str, bots: Sequence[str], until_ms: int | None = None) -> None:
        """Frees every seat of the match and takes its offer back; the bots are given by seat.

        Raises ProposalExpired when it is `until_ms`, in milliseconds of Redis's clock, or later.
        """
        calls = [_releasing(bot, match, seat, until_ms) for seat, bot in enumerate(bots)]
        if min(await scripts.run_script_many(self._client, "seat_release", calls), default=0) < 0:
            raise ProposalExpired(match)

    async def held_seats(self, bot: str) -> list[SeatOf]:
        """The seats the bot holds, in order; empty when none."""
        answer = await call(self._client, "SMEMBERS", keys.bot_seats(bot))
        return sorted(seat_of(name.decode()) for name in answer)

    async def count_seats(self, bot: str) -> int:
        """How many seats the bot holds."""
        return int(await call(self._client, "SCARD", keys.bot_seats(bot)))

    async def free_places(self, bots: Sequence[str], queue: str = "") -> list[int]:
        """How many seats more each bot may take; 0 when it is not present, or may not be seated from the queue."""
        calls = [_asking_for_room(bot, queue) for bot in bots]
        return [int(answer) for answer in await scripts.run_script_many(self._client, "seat_room", calls)]

    async def room_in(self, bot: str, queues: Sequence[str]) -> list[int]:
        """As `room` for one bot in each of these queues."""
        calls = [_asking_for_room(bot, queue) for queue in queues]
        return [int(answer) for answer in await scripts.run_script_many(self._client, "seat_room", calls)]

    async def put_offer(self, bot: str, match: str, seat: int, epoch: int, offer: bytes) -> bool:
        """Offers the seat and tells all lobbies so, on keys.OFFERS_CHANNEL.

        False when an offer of a higher epoch stands, or when the bot does not hold the seat (any more).
        """
        named, args = _offering(bot, match, seat, epoch, offer)
        return bool(await scripts.run_script(self._client, "offer_put", named, *args))

    async def put_offers(self, match: str, epoch: int, offers: Sequence[tuple[str, bytes]]) -> None:
        """As `put_offer` for every seat of the match: its bot and what it is told, by seat."""
        calls = [_offering(bot, match, seat, epoch, offer) for seat, (bot, offer) in enumerate(offers)]
        await scripts.run_script_many(self._client, "offer_put", calls)

    async def open_offers(self, bot: str) -> list[SeatOffer]:
        """The bot's offers, in the order of match and seat; empty when none."""
        answer = await call(self._client, "HGETALL", keys.bot_offers(bot))
        return sorted(_parse_offer(seat_of(name.decode()), held) for name, held in as_pairs(answer))

    async def offers_of(self, bot: str, seats: Iterable[SeatOf]) -> list[SeatOffer]:
        """The bot's offers of these seats, as far as there are any, in the order of match and seat."""
        asked = sorted(seats)
        names = [f"{match}/{seat}" for match, seat in asked]
        answer = await call(self._client, "HMGET", keys.bot_offers(bot), *names)
        return [
            _parse_offer(seat, held) for seat, held in zip(asked, answer, strict=True) if held is not None
        ]


def _reserving(
    bot: str, match: str, seat: int, until_ms: int | None, *, is_queued: bool
) -> tuple[list[str], tuple[Argument, ...]]:
    return _seat_keys(bot), (f"{match}/{seat}", "1" if is_queued else "", *_given(until_ms))


def _asking_for_room(bot: str, queue: str) -> tuple[list[str], tuple[Argument, ...]]:
    return _seat_keys(bot), (queue, "1" if counts_no_shows(queue) else "")


def _seat_keys(bot: str) -> list[str]:
    return [keys.bot_seats(bot), keys.bot_attendance(bot), keys.bot_untaken(bot), keys.bot_no_shows(bot)]


def _releasing(
    bot: str, match: str, seat: int, until_ms: int | None = None
) -> tuple[list[str], tuple[Argument, ...]]:
    named = [keys.bot_seats(bot), keys.bot_offers(bot), keys.bot_untaken(bot)]
    return named, (f"{match}/{seat}", keys.OFFERS_CHANNEL, bot, *_given(until_ms))


def _given(until_ms: int | None) -> tuple[int, ...]:
    return () if until_ms is None else (until_ms,)


def _offering(
    bot: str, match: str, seat: int, epoch: int, offer: bytes
) -> tuple[list[str], tuple[Argument, ...]]:
    named = [keys.bot_offers(bot), keys.bot_seats(bot), keys.bot_untaken(bot)]
    return named, (f"{match}/{seat}", epoch, offer, keys.OFFERS_CHANNEL, bot)


def seat_of(name: str) -> SeatOf:
    """Of `<match>/<seat>`."""
    match, _, seat = name.rpartition("/")
    return SeatOf(match, int(seat))


def _parse_offer(seat: SeatOf, held: bytes) -> SeatOffer:
    epoch, _, offer = held.partition(b" ")
    return SeatOffer(*seat, int(epoch), offer)
