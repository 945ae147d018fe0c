"""Announces the new owner of a match to its bots, in its job, and in the lists, and notes which bots have sat down."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from seatwise.codec.offer import encode_options, encode_time_control
from seatwise.v1 import lobby_service_pb2
from seatwise_referee.ending import MatchState, VoidReason
from seatwise_referee.setup import Setup
from seatwise_referee.shuffle import commitment_to
from seatwise_server.background_tasks import BackgroundTasks
from seatwise_server.game_choice import GameChoice
from seatwise_server.play.lease import STORE_RETRY_S
from seatwise_server.play.match_claims import UnownedMatch
from seatwise_server.play.no_shows import find_missed_seats, note_no_shows
from seatwise_server.play.table import Table
from seatwise_server.store import Flusher, SeatNews, SeatOf, Store
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.jobs import Job

LOBBY_LOOK_S = 4.0
"""By then every live lobby has checked on all its bots, and told them of their seats."""
UNHEARD_CHECK_S = 1.0
MOST_UNHEARD_S = 30.0
"""The time, in seconds, after which a bot that no lobby knows counts as gone."""
GIVE_BACK_S = 2.0
"""The pause before a match of other games is given back: the referee that plays them asks all the time."""
GATHER_SITS_S = 0.05
"""The time for which seats that bots take are collected, in seconds."""


@dataclass(frozen=True, slots=True)
class RefereeIdentity:
    """The identity of this referee."""

    name: str
    """Unique to this process; the owner in fences."""
    address: str
    """host:port for bots; empty if lobby and referee are one server."""
    most_tables: int
    ws_address: str = ""
    """ws://host:port for bots that come by WebSocket; empty as `address`, or where there is no such port."""
    ws_port: int = 0
    """That of the one server that is lobby and referee, if it takes WebSockets."""
    games: GameChoice = GameChoice.ALL


@dataclass(slots=True)
class SeatOffers:
    """The announcements of one referee, and its notes of which bots have sat down."""

    referee: RefereeIdentity
    store: Store
    flusher: Flusher
    work: BackgroundTasks = field(default_factory=BackgroundTasks)
    """Tasks that must finish before the referee stops."""
    _taken: list[tuple[str, SeatOf]] = field(default_factory=list)
    """Bots that have just sat down in a seat of a queue, which is not noted yet."""

    async def offer_new_owner(self, table: Table, unowned: UnownedMatch, *, is_listed: bool = False) -> None:
        """Offer the seats and record the new owner; retries until it is done or no longer needed.

        `is_listed` says that the lists show the match as SEATING already.
        """
        is_new = unowned.fence is None and not is_listed
        while not (table.is_closed or table.match.is_over):
            with suppress(StoreUnavailable):
                await self._offer_seats(table)
                if unowned.holder != table.owner:
                    await self.store.jobs.move_job(unowned.job.job_id, unowned.holder, table.owner)
                if is_new:
                    await self._set_state(table, MatchState.SEATING)
                return
            await asyncio.sleep(STORE_RETRY_S)

    async def wait_for_lobbies(self, table: Table) -> None:
        """Let a table wait for bots that cannot know of their seats, because no lobby has checked on them since the offer.

        Void a match of a ladder or a league if a bot cannot know of its seat even then: it would count as absent. Call it
        `LOBBY_LOOK_S` after the seats were offered.
        """
        opened_s = asked_s = _now() - LOBBY_LOOK_S
        while table.awaited_bots and not table.is_closed and _now() - opened_s < MOST_UNHEARD_S:
            with suppress(StoreUnavailable):
                unheard, since_s, asked_s = await self._bots_without_lobby(table, opened_s), asked_s, _now()
                if unheard:
                    table.wait_for_bots(unheard, int((asked_s - since_s) * 1000))
            await asyncio.sleep(UNHEARD_CHECK_S)
        if table.match.setup.competition:
            await self._void_if_untold(table)

    async def _void_if_untold(self, table: Table) -> None:
        while table.awaited_bots and not table.is_closed:
            with suppress(StoreUnavailable):
                if SeatNews.UNTOLD in (await self._news_of_seats(table)).values():
                    table.void_match(VoidReason.BOT_NOT_TOLD)
                return
            await asyncio.sleep(STORE_RETRY_S)

    async def void_without(self, table: Table, shut_out: Sequence[str], *, is_own: bool) -> None:
        """Void a match that goes on without bots that cannot connect, if that is the server's own fault, or one of them has not had
        this in the last 24 hours.

        A bot can fill the server itself, so it must not be able to void what it is about to lose again and again.
        """
        with suppress(StoreUnavailable):
            for bot in shut_out:
                if is_own or await self.store.no_shows.take_excuse(bot):
                    table.void_match(VoidReason.NO_ROOM)
                    return

    async def _bots_without_lobby(self, table: Table, since_s: float) -> list[str]:
        kept_ms = await self.store.attendances.kept_ms(table.awaited_bots)
        # A lobby may stand still behind a renewal, with the offer not yet sent.
        silent_ms = 1000 * min(_now() - since_s, LOBBY_LOOK_S)
        news = await self._news_of_seats(table)
        return [
            bot
            for bot in table.awaited_bots
            if _is_unheard(news.get(bot), kept_ms.get(bot, silent_ms) >= silent_ms)
        ]

    async def _news_of_seats(self, table: Table) -> dict[str, SeatNews | None]:
        """Return what the bots of a match know; empty after a takeover, when none of them may know the new address."""
        if table.epoch > 1:
            return {}
        seats = [(bot, seat) for seat, bot in enumerate(table.match.setup.bots) if bot in table.awaited_bots]
        news = await self.store.no_shows.seat_news(table.name, seats)
        return {bot: each for (bot, _), each in zip(seats, news, strict=True)}

    async def _offer_seats(self, table: Table) -> None:
        setup, epoch, own = table.match.setup, table.epoch, self.referee
        where = (epoch, own.address, own.ws_address, own.ws_port)
        offers = [encode_offer(setup, seat, *where).SerializeToString() for seat in range(len(setup.bots))]
        named = list(zip(setup.bots, offers, strict=True))
        await self.store.seats.put_offers(setup.match, epoch, named)

    async def _set_state(self, table: Table, state: MatchState) -> None:
        await self.store.matches.set_state(table.name, table.epoch, table.owner, state)

    async def _note_running(self, table: Table) -> None:
        """Record that the match runs; only lists need it, the journal has it already."""
        with suppress(StoreUnavailable):
            await self._set_state(table, MatchState.RUNNING)

    def on_sit(self, table: Table, seat: int) -> None:
        """Have it noted that the bot of this seat has sat down."""
        if not self._taken:
            self.work.start_task(self._note_taken())
        self._taken.append((table.match.setup.bots[seat], SeatOf(table.name, seat)))

    async def _note_taken(self) -> None:
        """Note the seats that bots take within a short time in one message; most bots of a match sit down together."""
        await asyncio.sleep(GATHER_SITS_S)
        taken, self._taken = self._taken, []
        with suppress(StoreUnavailable):  # the ends of the matches make up for it
            await self.store.no_shows.note_all_taken(taken)

    def on_dealt(self, table: Table) -> None:
        """Have it noted that the match runs, and which bots are absent."""
        self.work.start_task(self._note_running(table))
        if any(not own.has_sat for own in table.match.position.seats):
            self.work.start_task(self._note_absence(table))

    async def _note_absence(self, table: Table) -> None:
        """Note absent bots at once; the delivery repeats it, in case this fails."""
        setup = table.match.setup
        with suppress(StoreUnavailable):
            absence = find_missed_seats(setup, self.flusher.tail_entries(table.name))
            await note_no_shows(self.store, setup, absence)

    async def give_back_later(self, job: Job) -> None:
        """Give back a job whose match this version does not know: after a time that varies, so that another referee comes first."""
        await asyncio.sleep(random.uniform(GIVE_BACK_S / 2, GIVE_BACK_S))
        await self.give_back(job)

    async def give_back(self, job: Job) -> None:
        """Put the job back for other referees. It retries, because no other process would notice that the job was dropped here."""
        while True:
            with suppress(StoreUnavailable):
                await self.store.jobs.give_back(job.job_id)
                return
            await asyncio.sleep(STORE_RETRY_S)


def _is_unheard(news: SeatNews | None, has_no_lobby: bool) -> bool:
    """Whether the bot cannot know of its seat. A bot that has left by itself is not waited for."""
    if news in (SeatNews.UNTOLD, SeatNews.LEFT):
        return news is SeatNews.UNTOLD
    return has_no_lobby


def _now() -> float:
    return asyncio.get_running_loop().time()


def encode_offer(
    setup: Setup, seat: int, epoch: int, address: str, ws_address: str = "", ws_port: int = 0
) -> lobby_service_pb2.SeatOffer:
    """Return the offer of a seat. It has the commitment of the match's seed, and never the seed."""
    return lobby_service_pb2.SeatOffer(
        match=setup.match,
        seat=seat,
        epoch=epoch,
        address=address,
        ws_address=ws_address,
        ws_port=ws_port,
        game=f"games/{setup.game}",
        commitment=commitment_to(setup.seed),
        bots=setup.bots,
        time_control=encode_time_control(setup.time_control),
        options=encode_options(setup.options),
    )
