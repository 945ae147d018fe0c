"""The seats that bots hold and the offers that tell them so."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from redis.asyncio import Redis

from seatwise_server.store import keys, lua
from seatwise_server.store.client import call, pairs


class Reservation(IntEnum):
    """What became of the wish for a seat."""

    RESERVED = 1
    ALREADY = 2
    """This very seat is the bot's: a reply was lost, or a crash is being made good."""
    FULL = 3
    """The bot has as many seats as it attends for."""
    ABSENT = 4
    """The bot is not present."""

    @property
    def holds(self) -> bool:
        """Whether the bot has the seat now."""
        return self in (Reservation.RESERVED, Reservation.ALREADY)


class SeatOf(NamedTuple):
    """A seat of a match."""

    match: str
    seat: int


@dataclass(frozen=True, slots=True)
class Offer:
    """What a bot is told about a seat of its own."""

    match: str
    seat: int
    epoch: int
    offer: bytes


class Seats:
    """The seats that bots hold: a set for each bot, so that a step may be repeated and nothing is miscounted."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    async def reserve(self, bot: str, match: str, seat: int) -> Reservation:
        """Takes the seat for the bot, within the number of matches that it attends for now.

        Each seat counts as a match. Reserve a table's seats in the order of the bots' names.
        """
        named = [keys.bot_seats(bot), keys.bot_attendance(bot)]
        return Reservation(await lua.run(self._client, "seat_reserve", named, f"{match}/{seat}"))

    async def release(self, bot: str, match: str, seat: int) -> bool:
        """Frees the seat and takes its offer back; False when the bot did not hold it."""
        named = [keys.bot_seats(bot), keys.bot_offers(bot)]
        args = (f"{match}/{seat}", keys.OFFERS_CHANNEL, bot)
        return bool(await lua.run(self._client, "seat_release", named, *args))

    async def held(self, bot: str) -> list[SeatOf]:
        """The seats the bot holds, in order; empty when none."""
        answer = await call(self._client, "SMEMBERS", keys.bot_seats(bot))
        return sorted(_seat(name) for name in answer)

    async def put_offer(self, bot: str, match: str, seat: int, epoch: int, offer: bytes) -> bool:
        """Offers the seat and tells all lobbies so, on keys.OFFERS_CHANNEL.

        False when an offer of a higher epoch stands, or when the bot does not hold the seat (any more).
        """
        named = [keys.bot_offers(bot), keys.bot_seats(bot)]
        args = (f"{match}/{seat}", epoch, offer, keys.OFFERS_CHANNEL, bot)
        return bool(await lua.run(self._client, "offer_put", named, *args))

    async def open_offers(self, bot: str) -> list[Offer]:
        """The bot's offers, in the order of match and seat; empty when none."""
        answer = await call(self._client, "HGETALL", keys.bot_offers(bot))
        found = [(_seat(name), held.partition(b" ")) for name, held in pairs(answer)]
        return [Offer(*seat, int(epoch), offer) for seat, (epoch, _, offer) in sorted(found)]


def _seat(name: bytes) -> SeatOf:
    match, _, seat = name.decode().rpartition("/")
    return SeatOf(match, int(seat))
