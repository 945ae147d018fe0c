"""The page of a league: a verdict, the standings as they move, the results of each pair, and its matches."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from cachetools import LRUCache
from starlette.requests import Request

from seatwise.v1 import league_pb2, match_pb2
from seatwise_referee.ending import Ending
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.ratings.strengths import StrengthFit, fit_strengths
from seatwise_server.competition.schedules.schedule import MOST_ATTEMPTS, BadSchedule, attempt_ids
from seatwise_server.competition.schedules.swiss import Swiss
from seatwise_server.competition.standings.scoring import CrosstableCell, build_crosstable
from seatwise_server.competition.standings.tie_breaks import TIE_BREAK_WORDS
from seatwise_server.league.naming import id_without_deal, request_id_of, so_far_of
from seatwise_server.league.report.facts import describe_leaders
from seatwise_server.league.report.figures import draw_heat_map
from seatwise_server.league.rules import criteria_of, schedule_of
from seatwise_server.league.settings import League
from seatwise_server.league.table import describe_verdict, standings_of
from seatwise_server.pages.ladder_page import whiskers_of
from seatwise_server.pages.page_responses import PageCalls, render_page
from seatwise_server.refusal import Refusal
from seatwise_server.resource_names import match_name_for

# The schedule of a league for its page: which matches come next, as far as the published results decide it.

MOST_DRAWN = 64
"""Entrants of a league. The draw of a larger one takes too long for a page."""
MOST_LOOKED_AT = 5000
"""Due matches that are looked at."""


@dataclass(frozen=True, slots=True)
class DueMatch:
    """A match of the schedule that has no published result."""

    round: int
    bots: tuple[str, ...]
    names: tuple[str, ...]
    """The names that its attempts may have on the server: with its shared deal, or with a deal of its own."""


@dataclass(frozen=True, slots=True)
class LeagueSchedule:
    """The matches that are still to be played."""

    expected: int
    """How many matches the season has, as far as is known now."""
    due: tuple[DueMatch, ...]
    byes: tuple[tuple[int, str], ...]
    """Rounds and the bots that sit out."""
    verdict: str = ""
    """The verdict of the test, if the league is a test of A against B."""


def plan_league(
    name: str, settings: League, results: Sequence[LoggedResult], voids: Mapping[str, Sequence[str] | None]
) -> LeagueSchedule | None:
    """Return the schedule of a league after these results and void matches; None if a page cannot draw it."""
    if len(settings.entrants) > MOST_DRAWN:
        return None
    try:
        schedule = schedule_of(settings)
        so_far = so_far_of(name, schedule, results, voids)
        due = [
            DueMatch(each.round, each.bots, _names_of(name, each.id, voids))
            for each in schedule.due_matches(so_far)[:MOST_LOOKED_AT]
        ]
        counted = {result.match for result in results}
        left = tuple(each for each in due if not _is_settled(each, counted, voids))
        verdict = describe_verdict(settings, standings_of(settings, so_far)) if results else ""
        return LeagueSchedule(schedule.expected_matches(so_far), left, schedule.list_byes(so_far), verdict)
    except BadSchedule:
        return None


def _names_of(league: str, match: str, voids: Collection[str]) -> tuple[str, ...]:
    """Return the names of the match's attempts, up to the first that is not void."""
    found: list[str] = []
    for attempt in attempt_ids(match):
        names = [match_name_for(request_id_of(league, each)) for each in (attempt, id_without_deal(attempt))]
        found += names
        if not voids or not set(names) & set(voids):
            break
    return tuple(found)


def rounds_of(
    name: str, settings: League, results: Sequence[LoggedResult], voids: Mapping[str, Sequence[str] | None]
) -> list[list[LoggedResult]]:
    """Return the results of a Swiss tournament by its rounds; none of another format."""
    schedule = schedule_of(settings)
    if not isinstance(schedule, Swiss):
        return []
    by_match = {result.match: result for result in results}
    found: defaultdict[int, list[LoggedResult]] = defaultdict(list)
    for number, match in schedule.first_attempts():
        found[number] += [by_match[each] for each in _names_of(name, match, voids) if each in by_match]
    return [found[number] for number in range(1, max((each for each in found if found[each]), default=0) + 1)]


def _is_settled(match: DueMatch, counted: Collection[str], voids: Collection[str]) -> bool:
    """Whether an attempt of the match counts, or every attempt was void. Not every format looks at that itself."""
    voided = sum(name in voids for name in match.names)
    return voided >= MOST_ATTEMPTS or any(name in counted for name in match.names)


RESULTS_A_PAGE = 1000
MOST_FITTED = 3000
"""Results of a league. Of more the page shows standings and crosstable, and the league's own report the strengths."""
KEPT_LEAGUES = 16
LEAGUE_MATCHES = 15
SHOWN_DUE = 20
MOST_CROSSED = 40
"""Entrants of a crosstable. That of more is too large for a page, and nobody could read it: a heat map stands in its place."""
NAMED_RIVALS = 6
"""Entrants that a line names among those that it is not told apart from."""
_STATE_ORDER = ("played now", "to come", "result withheld")


@dataclass(frozen=True, slots=True)
class LeagueFigures:
    """All that follows from the results of a league that may be shown."""

    crosstable: Mapping[tuple[str, str], CrosstableCell]
    fit: StrengthFit | None
    schedule: LeagueSchedule | None
    withheld: frozenset[str] = frozenset()
    """The matches whose results are withheld."""
    is_over: bool = False
    """Whether no match is left whose result could change the table. Of a league with too many results that is not known."""
    likes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By bot, those from which the results do not tell it apart."""
    rounds: Sequence[Sequence[LoggedResult]] = ()
    """Of a Swiss tournament."""


class LeaguePage:
    """Answers /leagues/{league} and /leagues/{league}/matches."""

    def __init__(self, calls: PageCalls) -> None:
        self._calls = calls
        self._figures: LRUCache[str, tuple[tuple[int, ...], LeagueFigures]] = LRUCache(KEPT_LEAGUES)
        """By league, with the numbers of results, of withheld ones and of void matches from which they were computed."""
        self._pages: LRUCache[str, tuple[list[bytes], bytes]] = LRUCache(KEPT_LEAGUES)
        """By league, with all that the page shows."""
        self._results: LRUCache[str, list[league_pb2.LeagueResult]] = LRUCache(KEPT_LEAGUES)
        """By league, the results that were read, if none of them is withheld: they do not change any more."""
        self._turn = asyncio.Lock()

    async def make_page(self, _request: Request, values: list[str]) -> bytes:
        """Return the page of one league. It is made again when something that it shows has changed."""
        name = f"leagues/{values[0]}"
        league = (await self._calls.call("LeagueService/GetLeague", name=name)).league
        table = await self._calls.call("LeagueService/ListLeagueStandings", league=name)
        states = match_pb2.Match.STATE_VOIDED, match_pb2.Match.STATE_RUNNING, match_pb2.Match.STATE_FINISHED
        lists = [
            await self._calls.list_matches(competition=name, state=state, page_size=LEAGUE_MATCHES)
            for state in states
        ]
        shown = [each.SerializeToString(deterministic=True) for each in (league, table, *lists)]
        kept = self._pages.get(name)
        if kept is None or kept[0] != shown:
            kept = self._pages[name] = shown, await self._render(league, table, *lists)
        return kept[1]

    async def _render(
        self, league: league_pb2.League, table: Any, voided: Any, live: Any, newest: Any
    ) -> bytes:
        settings = League.from_json(json.loads(league.settings))
        voids = {each.name: _blamed_bots(each) for each in voided.matches}
        figures = await self._work_out_figures(league.name, settings, voids, (table.results, table.withheld))
        names = {entrant.player: entrant.name for entrant in settings.entrants}
        order = [line.bot for line in table.standings]
        is_large = len(order) > MOST_CROSSED
        shares = {pair: cell.share for pair, cell in figures.crosstable.items()}
        return render_page(
            "league.html.j2",
            league=league,
            format=settings.format.replace("-", " "),
            names=names,
            verdict=(figures.schedule and figures.schedule.verdict) or league_verdict(table, figures, names),
            podium=[line for line in table.standings if line.place <= 3] if figures.is_over else [],
            results=table.results,
            withheld=table.withheld,
            update_time=table.update_time if table.HasField("update_time") else None,
            rule=_describe_rule(settings),
            standings=table.standings,
            has_byes=any(line.byes for line in table.standings),
            indistinct={
                bot: _name_some([names[like] for like in likes], len(names) - 1)
                for bot, likes in figures.likes.items()
            },
            strengths={each.bot: each for each in figures.fit.strengths} if figures.fit else {},
            whiskers=whiskers_of(figures.fit.strengths) if figures.fit else {},
            order=order,
            crosstable={} if is_large else figures.crosstable,
            heat_map=draw_heat_map("Ahead and behind", order, shares) if is_large and shares else None,
            rounds=round_rows(order, figures),
            schedule=schedule_rows(figures, [match.name for match in live.matches]),
            live=live.matches,
            more_live=bool(live.next_page_token),
            newest=newest.matches,
            settings=json.dumps(json.loads(league.settings), indent=2, ensure_ascii=False),
        )

    async def make_matches_page(self, request: Request, values: list[str]) -> bytes:
        """Return the matches of two entrants, which the query names."""
        name = f"leagues/{values[0]}"
        bot, opponent = (request.query_params.get(key, "") for key in ("bot", "opponent"))
        league = (await self._calls.call("LeagueService/GetLeague", name=name)).league
        if bot == opponent or not {bot, opponent} <= set(league.bots):
            why = f"name two entrants of {name}: ?bot=bots/A/versions/1&opponent=bots/B/versions/1"
            raise Refusal("NOT_FOUND", why)
        results = [result for result in await self._read_results(name) if {bot, opponent} <= set(result.bots)]
        return render_page("league_matches.html.j2", league=name, bot=bot, opponent=opponent, results=results)

    async def _work_out_figures(
        self, name: str, settings: League, voids: Mapping[str, Sequence[str] | None], counts: tuple[int, int]
    ) -> LeagueFigures:
        """Return the figures. It computes those of one league at a time, and only when there are new results."""
        async with self._turn:
            kept, stage = self._figures.get(name), (*counts, len(voids))
            if kept is None or kept[0] != stage:
                results = await self._read_results(name)
                shown = [_logged_result(each) for each in results if not each.withheld]
                figures = await asyncio.to_thread(_figures_of, name, settings, shown, voids, counts[1])
                withheld = frozenset(each.match for each in results if each.withheld)
                kept = self._figures[name] = stage, replace(figures, withheld=withheld)
            return kept[1]

    async def _read_results(self, name: str) -> list[league_pb2.LeagueResult]:
        known = self._results.pop(name, [])
        # The last one is read again: after a failover of Redis another may have its place.
        results = known[:-1]
        last = str(results[-1].place) if results else ""
        wanted: dict[str, Any] = {"league": name, "page_size": RESULTS_A_PAGE, "page_token": last}
        while True:
            page = await self._calls.call("LeagueService/ListLeagueResults", **wanted)
            results += page.results
            wanted["page_token"] = page.next_page_token
            if not page.next_page_token:
                break
        if known and known[-1] not in results[len(known) - 1 : len(known)]:
            return await self._read_results(name)
        if len(results) <= MOST_FITTED and not any(each.withheld for each in results):
            self._results[name] = results
        return results


def _logged_result(result: league_pb2.LeagueResult) -> LoggedResult:
    return LoggedResult(
        seq=result.place,
        match=result.match,
        bots=tuple(result.bots),
        points=tuple(result.points),
        ranks=tuple(result.ranks),
        endings=tuple(map(Ending, result.endings)),
        deal=result.deal_set,
    )


def _figures_of(
    name: str, settings: League, results: Sequence[LoggedResult], voids: Mapping[str, Sequence[str] | None], withheld: int
) -> LeagueFigures:  # fmt: skip
    fit = fit_strengths(results) if 0 < len(results) <= MOST_FITTED else None
    schedule = plan_league(name, settings, results, voids) if len(results) <= MOST_FITTED else None
    is_over = bool(schedule and results and not schedule.due and not withheld)
    is_last_look = is_over and settings.format != "ab-test"
    return LeagueFigures(
        build_crosstable(results),
        fit if fit is None or is_last_look else fit.widen_for_every_look(),
        schedule,
        is_over=is_over,
        likes=_find_likes(fit, is_last_look=is_last_look) if fit else {},
        rounds=rounds_of(name, settings, results, voids),
    )


def _find_likes(fit: StrengthFit, *, is_last_look: bool) -> dict[str, list[str]]:
    """Return for each bot those that the results do not tell apart from it, the strongest first."""
    found: dict[str, list[str]] = {strength.bot: [] for strength in fit.strengths}
    for one, other in combinations(found, 2):
        if fit.is_indistinct(one, other, at_every_look=not is_last_look):
            found[one].append(other)
            found[other].append(one)
    return found


def round_rows(order: Sequence[str], figures: LeagueFigures) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return for each entrant the ones that it met in each round of a Swiss tournament, as places in the table, and how it did."""
    places = {bot: place for place, bot in enumerate(order, start=1)}
    byes = set(figures.schedule.byes) if figures.schedule else set()
    cells: dict[str, list[tuple[str, str]]] = {bot: [] for bot in order}
    for number, results in enumerate(figures.rounds, start=1):
        met = build_crosstable(results)
        others: defaultdict[str, list[str]] = defaultdict(list)
        for bot, other in met:
            others[bot].append(other)
        for bot in order:
            shares = [met[bot, other].share for other in others[bot]]
            mean = sum(shares) / len(shares) if shares else 0.5
            told = " ".join(map(str, sorted(places[other] for other in others[bot])))
            sign, kind = ("+", "up") if mean > 0.5 else ("-", "down") if mean < 0.5 else ("=", "")
            bye = "bye" if (number, bot) in byes else ""
            cells[bot].append((f"{sign}{told}", kind) if told else (bye, ""))
    return list(cells.items()) if figures.rounds else []


def schedule_rows(figures: LeagueFigures, live: Sequence[str]) -> dict[str, Any] | None:
    """Return what the page says of the schedule: the matches that come next, those that are played now first."""
    schedule = figures.schedule
    if schedule is None:
        return None
    states = dict.fromkeys(figures.withheld, "result withheld") | dict.fromkeys(live, "played now")
    rows = []
    for each in schedule.due:
        match = next((name for name in each.names if name in states), "")
        state = states.get(match, "to come")
        rows.append({"round": each.round, "bots": each.bots, "match": match, "state": state})
    rows.sort(key=lambda row: _STATE_ORDER.index(row["state"]))
    return {
        "expected": schedule.expected,
        "open": len(rows),
        "rows": rows[:SHOWN_DUE],
        "byes": [
            {"round": number, "bots": [bot for each, bot in schedule.byes if each == number]}
            for number in sorted({number for number, _ in schedule.byes})
        ],
    }


def league_verdict(table: Any, figures: LeagueFigures, names: Mapping[str, str]) -> str:
    """Return in one sentence what the results say, and how sure that is: at every look, until the league is over."""
    leaders = [line.bot for line in table.standings if line.place == 1] if table.results else []
    likes = figures.likes.get(leaders[0]) if len(leaders) == 1 else None
    rivals = None if likes is None else [names[bot] for bot in likes]
    return describe_leaders([names[bot] for bot in leaders], rivals, is_over=figures.is_over)


def _describe_rule(league: League) -> str:
    criteria = [TIE_BREAK_WORDS[each] for each in criteria_of(league)]
    return f"Ordered by {', then '.join(criteria) or 'the round that each entrant reached'}."


def _name_some(others: Sequence[str], possible: int) -> str:
    if len(others) == possible > 1:
        return "any other"
    if possible >= MOST_CROSSED and len(others) > 2:  # rows of a long table stay one line high
        return f"{len(others)} others"
    if len(others) > NAMED_RIVALS + 1:
        return f"{', '.join(others[:NAMED_RIVALS])} and {len(others) - NAMED_RIVALS} more"
    return ", ".join(others) or "none"


def _blamed_bots(match: match_pb2.Match) -> Sequence[str] | None:
    """Return the bots against which it is held that they missed a void match; None if it was void for another reason."""
    if match.absence_excuse:
        return ()
    return [match.bots[seat] for seat in match.absent_seats] or None
