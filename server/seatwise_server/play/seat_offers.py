"""Tells the world whose a match is now: its bots, its job, and the lists."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from seatwise_referee.match_state import MatchState
from seatwise_server.play.lease import STORE_RETRY_S
from seatwise_server.play.offer_messages import encode_offer
from seatwise_server.play.table import Table
from seatwise_server.play.takeover import UnownedMatch
from seatwise_server.store import SeatNews, Store
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.jobs import Job

LOBBY_LOOK_S = 4.0
"""By then a lobby that lives has looked after all its bots, and told them of their seats."""
UNHEARD_CHECK_S = 1.0
MOST_UNHEARD_S = 30.0
"""A bot of which no lobby knows for so long is gone."""
GIVE_BACK_S = 2.0


@dataclass(frozen=True, slots=True)
class SeatOffers:
    """What one referee tells."""

    owner: str
    address: str
    store: Store

    async def offer_new_owner(self, table: Table, estate: UnownedMatch) -> None:
        """Offers the seats, and notes whose the match is: until it is done, or there is no need."""
        is_new = estate.fence is None
        while not (table.is_closed or table.match.is_over):
            with suppress(StoreUnavailable):
                await self._offer_seats(table)
                if estate.holder != self.owner:
                    await self.store.jobs.move_job(estate.job.job_id, estate.holder, self.owner)
                if is_new:
                    await self.store.matches.set_state(
                        table.name, table.epoch, self.owner, MatchState.SEATING
                    )
                return
            await asyncio.sleep(STORE_RETRY_S)

    async def wait_for_lobbies(self, table: Table) -> None:
        """Lets a table wait for bots that cannot know of their seats, because no lobby has looked after them since.

        To be begun `HEARD_S` after the seats were offered.
        """
        opened_s = asked_s = _now() - LOBBY_LOOK_S
        while table.awaited_bots and not table.is_closed and _now() - opened_s < MOST_UNHEARD_S:
            with suppress(StoreUnavailable):
                unheard, since_s, asked_s = await self._bots_without_lobby(table, opened_s), asked_s, _now()
                if unheard:
                    table.wait_for_bots(unheard, int((asked_s - since_s) * 1000))
            await asyncio.sleep(UNHEARD_CHECK_S)

    async def _bots_without_lobby(self, table: Table, since_s: float) -> list[str]:
        kept_ms = await self.store.attendances.kept_ms(table.awaited_bots)
        age_ms = (_now() - since_s) * 1000
        news = await self._news_of_queue(table)
        return [
            bot
            for bot in table.awaited_bots
            if _is_unheard(news.get(bot), kept_ms.get(bot, age_ms) >= age_ms)
        ]

    async def _news_of_queue(self, table: Table) -> dict[str, SeatNews | None]:
        """What bots know that a queue has seated; after a takeover none of them may know the new address."""
        if table.epoch > 1:
            return {}
        seats = [(bot, seat) for seat, bot in enumerate(table.match.setup.bots) if bot in table.awaited_bots]
        news = await self.store.no_shows.seat_news(table.name, seats)
        return {bot: each for (bot, _), each in zip(seats, news, strict=True)}

    async def _offer_seats(self, table: Table) -> None:
        setup, epoch = table.match.setup, table.epoch
        offers = [
            (bot, encode_offer(setup, seat, epoch, self.address).SerializeToString())
            for seat, bot in enumerate(setup.bots)
        ]
        await self.store.seats.put_offers(setup.match, epoch, offers)

    async def note_running(self, table: Table) -> None:
        """For lists only: whoever reads the journal knows already."""
        with suppress(StoreUnavailable):
            await self.store.matches.set_state(table.name, table.epoch, self.owner, MatchState.RUNNING)

    async def note_taken(self, table: Table, seat: int) -> None:
        """The bot of this seat of a queue's match has sat down; if it is not noted the match's end makes up for it."""
        with suppress(StoreUnavailable):
            await self.store.no_shows.note_taken(table.match.setup.bots[seat], table.name, seat)

    async def give_back_later(self, job: Job) -> None:
        """For a referee that knows the rules of it; not at once, or this one would take it again and again."""
        await asyncio.sleep(GIVE_BACK_S)
        await self.give_back(job)

    async def give_back(self, job: Job) -> None:
        """Any other referee may have it; nobody else would see that it is forgotten here."""
        while True:
            with suppress(StoreUnavailable):
                await self.store.jobs.give_back(job.job_id)
                return
            await asyncio.sleep(STORE_RETRY_S)


def _is_unheard(news: SeatNews | None, has_no_lobby: bool) -> bool:
    """Whether the bot cannot know of its seat. One that has left by itself keeps nobody waiting for longer."""
    if news in (SeatNews.UNTOLD, SeatNews.LEFT):
        return news is SeatNews.UNTOLD
    return has_no_lobby


def _now() -> float:
    return asyncio.get_running_loop().time()
