"""Plays a league: asks the schedule what is due, has it played, and writes down what came of it.

Nothing here has to be remembered. The schedule says the same matches again, under the same ids; the id of
a match is in the request that creates it, so that the server gives the same match again; and the season log holds
what is over. A run that is killed at any point starts again and goes on.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from seatwise.async_client import AsyncClient
from seatwise.codec.time_control import encode_time_control
from seatwise.errors import SeatwiseError, ServerFullError, WrongStateError
from seatwise.v1.match_pb2 import DealSet, Match
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.schedule import Schedule, ScheduledMatch, SoFar
from seatwise_server.league.naming import id_without_deal, request_id_of
from seatwise_server.league.players import Players
from seatwise_server.league.rules import is_repeat
from seatwise_server.league.season_log import SeasonLog, Void
from seatwise_server.league.settings import League
from seatwise_server.logged_results import decode_logged_result

SHORTEST_POLL_S = 0.03
POLL_SHARE = 0.05
"""A match is looked at again after this share of the time that it has taken so far: late by so much at the most."""
LONGEST_POLL_S = 2.0
FULL_RETRY_S = 1.0
ABSENT_S = 20.0
"""A match that waits so long for bots of ours has them started again: they do not attend."""
TWICE = "did not sit down at a table, nor when the match was repeated"
ABSENT_PATIENCE_S = 600.0
"""So long a match waits for a bot that others run; then it is void."""

Progress = Callable[["Runner"], None]


@dataclass
class Runner:
    """One run of one league, until the season is over or it is told to stop."""

    league: League
    schedule: Schedule
    season_log: SeasonLog
    client: AsyncClient
    players: Players
    tables: int
    """How many matches at once."""
    on_progress: Progress = lambda _: None
    patience_s: float = ABSENT_PATIENCE_S
    is_stopping: bool = False
    played: int = 0
    """Matches that this run has seen end."""
    moves: int = 0
    """In the records that have come."""
    waits_for: set[str] = field(default_factory=set)
    """Bots of others that do not attend."""
    _open: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _busy: set[str] = field(default_factory=set)
    _waiting: list[ScheduledMatch] = field(default_factory=list)
    """What was due when the schedule was asked last; it is asked again when all of it is under way, or one was void."""
    _unrecorded: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By deal, matches that count and whose records are not here yet."""

    @property
    def so_far(self) -> SoFar:
        """The results and void matches so far, as the schedule needs them."""
        season = self.season_log.season
        return SoFar(season.results, {void.table for void in season.voids})

    async def run(self) -> bool:
        """Play what is due; return whether the season is over and all its records are here."""
        season = self.season_log.season
        for result in season.results.values():
            if result.match not in season.records:
                self._unrecorded[result.deal].append(result.match)
        try:
            while self._start_due():
                await self._wait_for_one()
        finally:
            for task in self._open.values():
                task.cancel()
            await asyncio.gather(*self._open.values(), return_exceptions=True)
        is_played = not self.schedule.due_matches(self.so_far)
        for deal in list(self._unrecorded):
            await self._fetch_records(deal)
            if is_played and deal in self._unrecorded:
                await self._close_deal(deal)
        return is_played and not self._unrecorded

    def _start_due(self) -> bool:
        """Starts as many as there is room for; whether any is open."""
        if not self._waiting and not self.is_stopping:
            self._waiting = [
                match for match in self.schedule.due_matches(self.so_far) if match.id not in self._open
            ]
        while len(self._open) < self.tables and (match := self._next_match()) is not None:
            self._open[match.id] = asyncio.create_task(self._play_match(match))
            self._busy.update(match.bots)
        return bool(self._open)

    def _next_match(self) -> ScheduledMatch | None:
        """Taken from those that wait, the first that need not wait longer."""
        if self.is_stopping:
            return None
        place = next((at for at, match in enumerate(self._waiting) if not self._must_wait(match)), None)
        return None if place is None else self._waiting.pop(place)

    def _must_wait(self, match: ScheduledMatch) -> bool:
        """A bot that is started afresh for each match plays one at a time."""
        return self.league.is_fresh and not self._busy.isdisjoint(match.bots)

    async def _wait_for_one(self) -> None:
        await asyncio.wait(self._open.values(), return_when=asyncio.FIRST_COMPLETED)
        for name in [name for name, task in self._open.items() if task.done()]:
            self._open.pop(name).result()

    # One match

    async def _play_match(self, scheduled: ScheduledMatch) -> None:
        match = await self._create_match(scheduled)
        if self.league.is_fresh:
            self.players.start_players(scheduled.bots, is_for_one=True)
        match = await self._wait_for_end(match)
        if self.league.is_fresh:
            await self.players.stop_players(scheduled.bots)
        self._busy.difference_update(scheduled.bots)
        await self._write_down(scheduled, match)
        self.played += 1
        self.on_progress(self)

    async def _create_match(self, scheduled: ScheduledMatch) -> Match:
        """The same match for the same id, however often it is asked for."""
        season = self.season_log.season
        request_id = request_id_of(season.league, scheduled.id)
        while True:
            try:
                return await self.client.create_match(
                    self.league.game, scheduled.bots, self.league.options, encode_time_control(self.league.time),
                    self._deal_set_of(scheduled), request_id, season.league,
                )  # fmt: skip
            except ServerFullError:
                await asyncio.sleep(FULL_RETRY_S)
            except SeatwiseError as error:
                if error.reason != "SET_OVER":
                    raise
                return await self._create_match(without_deal(scheduled))

    def _deal_set_of(self, scheduled: ScheduledMatch) -> DealSet | None:
        deal = scheduled.deal
        if deal is None:
            return None
        return DealSet(
            name=deal_name(self.season_log.season.league, deal.set), number=deal.number, size=deal.size
        )

    async def _wait_for_end(self, match: Match) -> Match:
        """Waits for its end, and sees to it that it has a beginning."""
        loop = asyncio.get_running_loop()
        began = acted = loop.time()
        while not match.HasField("end_time"):
            now = loop.time()
            if match.state == Match.STATE_WAITING and now - acted > ABSENT_S:
                acted = now
                await self._look_after_absent(match, is_too_long=now - began > self.patience_s)
            await asyncio.sleep(min(LONGEST_POLL_S, max(SHORTEST_POLL_S, POLL_SHARE * (now - began))))
            match = await self.client.get_match(match.name)
        self.waits_for.difference_update(match.bots)
        return match

    async def _look_after_absent(self, match: Match, *, is_too_long: bool) -> None:
        absent = [bot for bot in match.bots if not (await self.client.get_bot(bot)).attending]
        ours = [bot for bot in absent if self.players.is_ours(bot)]
        await self.players.start_again(ours)
        others = set(absent) - set(ours)
        self.waits_for |= others
        self.on_progress(self)
        if others and is_too_long:
            await self.client.abort_match(match.name)

    # What came of it

    async def _write_down(self, scheduled: ScheduledMatch, match: Match) -> None:
        if match.state == Match.STATE_VOIDED:
            reason = ": ".join(filter(None, (match.void_reason, match.void_message)))
            self.season_log.append_void(Void(scheduled.id, match.name, reason))
            self._waiting.clear()
            if is_repeat(scheduled.id):
                await self.players.give_up((match.bots[seat] for seat in match.absent_seats), TWICE)
            return
        result = logged_result_in(match, seq=len(self.season_log.season.results) + 1)
        self.season_log.append_result(scheduled.id, result)
        self.players.note_completed(result)
        self._unrecorded[result.deal].append(result.match)
        await self._fetch_records(result.deal)

    async def _fetch_records(self, deal: str) -> None:
        """Of all matches of one deal, unless others may still play it."""
        while matches := self._unrecorded.get(deal):
            match = matches.pop()  # ours until it is here: others may ask for the rest meanwhile
            try:
                record = await self.client.get_record(match)
            except WrongStateError:  # SET_RUNNING
                matches.append(match)
                return
            self.season_log.append_record(match, record)
            self.moves += sum(record.count(f'"kind":"{kind}"') for kind in ("move", "called"))
        self._unrecorded.pop(deal, None)

    async def _close_deal(self, deal: str) -> None:
        """A test was decided, and this run interrupted, before all of the deal was played: nobody will play the rest of it."""
        await self.client.close_deal_set(deal)
        await self._fetch_records(deal)


def without_deal(scheduled: ScheduledMatch) -> ScheduledMatch:
    """Return the match without its deal, to be played again where the deal is known because its other matches are over."""
    return ScheduledMatch(id_without_deal(scheduled.id), scheduled.round, scheduled.bots)


def deal_name(league: str, deal: str) -> str:
    """Return what the server calls the deal: no deal of another league has this name."""
    return f"sets/{league.removeprefix('leagues/')}-{deal}"


def logged_result_in(match: Match, seq: int) -> LoggedResult:
    """Return what counts of a finished match; `seq` is its place in the season."""
    return decode_logged_result(
        match.result, match=match.name, bots=match.bots, deal=match.deal_set.name, seq=seq
    )
