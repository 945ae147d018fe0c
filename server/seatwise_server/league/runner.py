"""Plays a league: plays the matches that the schedule says are due, and logs their results.

A run needs no memory of an earlier one. The schedule gives the same matches again, with the same ids. The request
that creates a match contains its id, so the server returns the same match again. The season log holds the matches
that are over. So a run that is killed at any point can be started again.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from seatwise.async_client import AsyncClient
from seatwise.codec.offer import encode_time_control
from seatwise.errors import SeatwiseError, ServerFullError, WrongStateError
from seatwise.v1.match_pb2 import DealSet, Match
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.schedule import ScheduledMatch, follow_attempts
from seatwise_server.league.naming import deal_name, id_without_deal, request_id_of
from seatwise_server.league.players import Players
from seatwise_server.league.progress import SeasonProgress
from seatwise_server.league.rules import is_repeat
from seatwise_server.league.season_log import Void, find_due_matches
from seatwise_server.league.settings import League
from seatwise_server.logged_results import decode_logged_result

SHORTEST_POLL_S = 0.03
POLL_SHARE = 0.05
"""A match is checked again after this share of the time that it has taken so far. So its end is noticed with at most that delay."""
FIRST_LOOK_SHARE = 0.75
"""The first check is after this share of the usual time of a match. Earlier ones took up to a quarter of a league's CPU."""
USUAL_WEIGHT = 0.2
"""The weight of the newest match in the usual time of a match."""
LONGEST_POLL_S = 2.0
FULL_RETRY_S = 1.0
ABSENT_S = 20.0
"""Seconds that a match waits for local bots before they are restarted, because they do not attend."""
TWICE = "did not sit down in a match, nor when it was repeated"
REPEAT_AFTER_S = 60.0
"""Seconds after which a match that bots missed is repeated, at the end of its round."""
LOOK_S = 1.0
"""Seconds between two looks whether a repeat can begin."""
ABSENT_PATIENCE_S = 600.0
"""Seconds that a match waits for a bot that others run; then it is void."""


@dataclass
class Runner(SeasonProgress):
    """One run of one league, until the season is over or until it must stop."""

    league: League
    client: AsyncClient
    players: Players
    tables: int
    """The most matches at once."""
    on_progress: Callable[[SeasonProgress], None] = lambda _: None
    stops_at_walk_over: bool = False
    """Whether the run ends at a walk-over, so that the organiser can annul it before the next round is drawn."""
    is_stopping: bool = False
    usual_s: float = 0.0
    """Seconds from the creation of a match to its end, as an average that forgets old matches; 0 before the first end."""
    _open: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _scheduled: dict[str, ScheduledMatch] = field(default_factory=dict)
    """The matches that are open."""
    _busy: set[str] = field(default_factory=set)
    _waiting: list[ScheduledMatch] = field(default_factory=list)
    """Due matches that are not started. The schedule is asked again when the list is empty, and after a void match."""
    _unrecorded: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By deal, the matches that count and whose records have not arrived."""

    async def run(self) -> bool:
        """Play the due matches. Return whether the season is over and all its records have arrived."""
        season = self.season_log.season
        for result in season.results.values():
            if result.match not in season.records:
                self._unrecorded[result.deal].append(result.match)
        try:
            while self._start_due() or self._waiting:
                await (self._wait_for_one() if self._open else asyncio.sleep(min(LOOK_S, REPEAT_AFTER_S)))
        finally:
            for task in self._open.values():
                task.cancel()
            await asyncio.gather(*self._open.values(), return_exceptions=True)
        is_played = not self.schedule.due_matches(self.so_far)
        for deal in list(self._unrecorded):
            await self._fetch_records(deal)
            if is_played and deal in self._unrecorded:
                # Close the deal set of a deal whose other matches are never played. That happens if a test was decided, and
                # this run interrupted, before all matches of the deal were played.
                await self.client.close_deal_set(deal)
                await self._fetch_records(deal)
        return is_played and not self._unrecorded

    def _start_due(self) -> bool:
        """Start as many matches as there is room for, and return whether any is open."""
        if self.is_stopping:
            self._waiting.clear()
        elif not self._waiting:
            due = find_due_matches(self.schedule, self.season_log)
            self._waiting = [match for match in due if match.id not in self._open]
        while len(self._open) < self.tables and (match := self._next_match()) is not None:
            self._open[match.id] = asyncio.create_task(self._play_match(match))
            self._scheduled[match.id] = match
            self._busy.update(match.bots)
        return bool(self._open)

    def _next_match(self) -> ScheduledMatch | None:
        """Take the first waiting match that can start now. None if there is none."""
        place = next((at for at, match in enumerate(self._waiting) if not self._must_wait(match)), None)
        return None if place is None else self._waiting.pop(place)

    def _must_wait(self, match: ScheduledMatch) -> bool:
        """Return whether a bot that plays one match at a time is busy, or bots missed the match and its repeat is not due yet."""
        is_busy = self.league.is_fresh and not self._busy.isdisjoint(match.bots)
        return is_busy or (is_repeat(match.id) and self._is_too_early(match))

    def _is_too_early(self, match: ScheduledMatch) -> bool:
        """Return whether a repeat waits for the end of its round, or for the time after the attempt that bots missed."""
        first = match.id.partition(".")[0]
        voids = [each for each in self.season_log.season.voids if each.table.partition(".")[0] == first]
        if not any(each.absent or each.excuse for each in voids):
            return False
        others = (*self._waiting, *self._scheduled.values())
        is_round_over = not any(each.round == match.round and not is_repeat(each.id) for each in others)
        return not is_round_over or time.time() < max(each.at_s for each in voids) + REPEAT_AFTER_S

    async def _wait_for_one(self) -> None:
        timeout = LOOK_S if self._waiting else None
        await asyncio.wait(self._open.values(), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        for name in [name for name, task in self._open.items() if task.done()]:
            del self._scheduled[name]
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
        """Create the match. The same id always gives the same match."""
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
                # its set is over, so the deal is known: it is played with other cards
                return await self._create_match(
                    replace(scheduled, id=id_without_deal(scheduled.id), deal=None)
                )

    def _deal_set_of(self, scheduled: ScheduledMatch) -> DealSet | None:
        if (deal := scheduled.deal) is None:
            return None
        name = deal_name(self.season_log.season.league, deal.set)
        return DealSet(name=name, number=deal.number, size=deal.size)

    async def _wait_for_end(self, match: Match) -> Match:
        """Wait for the end of the match. If it does not start, restart absent bots, or abort it after too long."""
        loop = asyncio.get_running_loop()
        began = acted = loop.time()
        while not match.HasField("end_time"):
            now = loop.time()
            if match.state == Match.STATE_WAITING and now - acted > ABSENT_S:
                acted = now
                await self._look_after_absent(match, is_too_long=now - began > ABSENT_PATIENCE_S)
            await asyncio.sleep(self._choose_pause(now - began))
            match = await self.client.get_match(match.name)
        if match.state == Match.STATE_FINISHED:
            took = loop.time() - began
            self.usual_s += USUAL_WEIGHT * (took - self.usual_s) if self.usual_s else took
        self.waits_for.difference_update(match.bots)
        return match

    def _choose_pause(self, open_s: float) -> float:
        """Return the seconds until the next check of a match that has been open for `open_s` seconds."""
        if open_s < SHORTEST_POLL_S and self.usual_s:
            # A bot may be absent, so that the match does not start: that must be seen in time.
            return max(SHORTEST_POLL_S, min(ABSENT_S / 2, FIRST_LOOK_SHARE * self.usual_s))
        return min(LONGEST_POLL_S, max(SHORTEST_POLL_S, POLL_SHARE * open_s))

    async def _look_after_absent(self, match: Match, *, is_too_long: bool) -> None:
        absent = [bot for bot in match.bots if not (await self.client.get_bot(bot)).attending]
        ours = [bot for bot in absent if self.players.is_ours(bot)]
        await self.players.start_again(ours)
        others = set(absent) - set(ours)
        self.waits_for |= others
        self.on_progress(self)
        if others and is_too_long:
            seats = [seat for seat, bot in enumerate(match.bots) if bot in others]
            await self.client.abort_match(match.name, seats)

    # The outcome

    async def _write_down(self, scheduled: ScheduledMatch, match: Match) -> None:
        if match.state == Match.STATE_VOIDED:
            reason = ": ".join(filter(None, (match.void_reason, match.void_message)))
            absent = tuple(match.bots[seat] for seat in match.absent_seats)
            void = Void(scheduled.id, match.name, reason, absent, match.absence_excuse, int(time.time()))
            self.season_log.append_void(void)
            self._waiting.clear()
            lost = follow_attempts(scheduled.id.partition(".")[0], self.so_far).absent
            if lost:
                self.is_stopping |= self.stops_at_walk_over
                await self.players.give_up(lost, TWICE)
            return
        result = logged_result_in(match, seq=len(self.season_log.season.results) + 1)
        self.season_log.append_result(scheduled.id, result)
        self.players.note_completed(result)
        self._unrecorded[result.deal].append(result.match)
        await self._fetch_records(result.deal)

    async def _fetch_records(self, deal: str) -> None:
        """Fetch the records of all matches of one deal, unless other bots may still play it."""
        while matches := self._unrecorded.get(deal):
            match = matches.pop()  # another task may fetch the rest meanwhile
            try:
                record = await self.client.get_record(match)
            except WrongStateError:  # the reason is SET_RUNNING
                matches.append(match)
                return
            self.season_log.append_record(match, record)
            self.moves += sum(record.count(f'"kind":"{kind}"') for kind in ("move", "called"))
        self._unrecorded.pop(deal, None)


def logged_result_in(match: Match, seq: int) -> LoggedResult:
    """Return the logged result of a finished match; `seq` is its number in the season."""
    return decode_logged_result(
        match.result, match=match.name, bots=match.bots, deal=match.deal_set.name, seq=seq
    )
