"""One seat or one bot at a time, where the product asks for many."""

from __future__ import annotations

from seatwise_server.store import Attendance, Reservation, Store, keys, seats
from seatwise_server.store.redis import scripts


async def reserve_seat(store: Store, bot: str, match: str, seat: int) -> Reservation:
    """Reserve a seat that is no queue's."""
    [answer] = await store.seats.reserve_all(match, [(bot, seat)])
    return answer


async def put_offer(store: Store, bot: str, match: str, seat: int, epoch: int, offer: bytes) -> bool:
    """Offer the seat; False if there is an offer of a higher epoch, or if the bot does not hold the seat."""
    asked = seats.offer_call(bot, match, seat, epoch, offer)
    [answer] = await scripts.run_script_many(store.client, "offer_put", [asked])
    return bool(answer)


async def get_attendance(store: Store, bot: str) -> Attendance | None:
    """Return the bot's attendance; None if it is absent."""
    fields = ("lobby", "attend_id", "max_matches", "queues")
    lobby, attend_id, most, queues = await store.client.call("HMGET", keys.bot_attendance(bot), *fields)
    if lobby is None:
        return None
    return Attendance(lobby.decode(), attend_id.decode(), int(most), tuple(queues.decode().split()))
