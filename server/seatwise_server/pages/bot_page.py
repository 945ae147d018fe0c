"""The page of a bot: its places, its ratings over time, its form, its results by seat and by opponent, its clocks and matches."""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cachetools import LRUCache
from markupsafe import Markup
from starlette.requests import Request

from seatwise.replay import charges_in
from seatwise.v1 import match_pb2
from seatwise_referee.game import Seat
from seatwise_referee.journal import Agreed, Defaulted, DefaultReason, Entry, entry_from_json
from seatwise_server.league.report.figures import draw_columns, draw_interval_curve
from seatwise_server.pages.page_responses import PageCalls, ending_words, last_part, render_page
from seatwise_server.refusal import Refusal

CLOCKED_MATCHES = 8
"""Matches whose records the page of a bot reads."""
KEPT_CLOCKS = 4_000


@dataclass(frozen=True, slots=True)
class SeatClock:
    """The times that one seat of a match was charged."""

    charged_ms: tuple[int, ...]
    """Of each answer, in milliseconds."""
    timeouts: int

    @property
    def total_ms(self) -> int:
        """All that the seat was charged."""
        return sum(self.charged_ms)


class BotClocks:
    """Reads the clocks of finished matches, which never change, and keeps those of the last ones."""

    def __init__(self, calls: PageCalls) -> None:
        self._calls = calls
        self._kept: LRUCache[str, tuple[SeatClock, ...]] = LRUCache(KEPT_CLOCKS)
        """By match, in the order of the seats."""

    async def read_clocks(self, bot: str, matches: Sequence[match_pb2.Match]) -> list[dict[str, Any]]:
        """Return a line for each seat of the bot in these matches. A match whose record cannot be read now has none."""
        return [
            _clock_line(match, clock)
            for match in matches
            for seat, clock in enumerate(await self._find_clocks(match.name))
            if match.bots[seat] == bot
        ]

    async def _find_clocks(self, match: str) -> tuple[SeatClock, ...]:
        kept = self._kept.get(match)
        if kept is None:
            try:
                record = (await self._calls.call("MatchService/GetRecord", name=match)).record
            except Refusal:
                return ()
            kept = self._kept[match] = await asyncio.to_thread(lambda: clocks_of(json.loads(record)))
        return kept


def clocks_of(record: Mapping[str, Any]) -> tuple[SeatClock, ...]:
    """Return what each seat was charged, by a record that is known to be genuine."""
    charged: list[list[int]] = [[] for _ in record["seats"]]
    timeouts = [0] * len(charged)
    for entry in map(entry_from_json, record["entries"]):
        for seat, ms in charges_in(entry):
            charged[seat].append(ms)
        for seat in _late_seats(entry):
            timeouts[seat] += 1
    return tuple(SeatClock(tuple(each), late) for each, late in zip(charged, timeouts, strict=True))


def _late_seats(entry: Entry) -> list[Seat]:
    match entry:
        case Defaulted(reason=DefaultReason.TIMED_OUT):
            return [each.seat for each in entry.moves if each.charge]
        case Agreed():
            return list(entry.silent)
    return []


def _clock_line(match: match_pb2.Match, clock: SeatClock) -> dict[str, Any]:
    answers = len(clock.charged_ms)
    return {
        "match": match,
        "charged_ms": clock.charged_ms,
        "answers": answers,
        "total_ms": clock.total_ms,
        "mean_ms": clock.total_ms / answers if answers else 0,
        "longest_ms": max(clock.charged_ms, default=0),
        "timeouts": clock.timeouts,
    }


CLOCK_EDGES_MS = tuple(digit * 10**power for power in range(5) for digit in (1, 2, 5))
"""Where the columns of a histogram of answers begin; the first one is of what took less than a millisecond."""
LEAST_COLUMNS = 7


def draw_answer_times(charged_ms: Sequence[int]) -> Markup | None:
    """Draw how many answers took how long; nothing if there are none."""
    if not charged_ms:
        return None
    counts = Counter(bisect_right(CLOCK_EDGES_MS, ms) for ms in charged_ms)
    labels = [f"{ms // 1000} s" if ms >= 1000 else str(ms) for ms in (0, *CLOCK_EDGES_MS)]
    first = min(*counts, len(CLOCK_EDGES_MS) - LEAST_COLUMNS)
    last = max(*counts, first + LEAST_COLUMNS)
    columns = [(labels[number], counts[number]) for number in range(first, last + 1)]
    text = "at least so many milliseconds, or seconds (s)"
    return draw_columns("Answers by the time charged for them", columns, text)


JUDGED_MATCHES = 100
FORM_MATCHES = 20
LISTED_MATCHES = 30
LISTED_OPPONENTS = 30
LOOKED_LEAGUES = 50
"""Leagues, in the order of their names, that are looked at beside those of the newest matches."""
SHOWN_PLACES = 8
CURVES = 2
"""Ladders of which the page draws the strength over time."""
MOST_POINTS = 60


class BotPageContent:
    """Answers /bots/{bot}/versions/{version}."""

    def __init__(self, calls: PageCalls) -> None:
        self._calls = calls
        self._clocks = BotClocks(calls)

    async def make_page(self, _request: Request, values: list[str]) -> bytes:
        """Return the page of one bot."""
        name = f"bots/{values[0]}/versions/{values[1]}"
        bot = (await self._calls.call("BotService/GetBot", name=name)).bot
        found = await self._calls.call("BotService/ListOpponents", name=name, page_size=LISTED_OPPONENTS)
        matches = (await self._calls.list_matches(bot=name, page_size=JUDGED_MATCHES)).matches
        clocked = [match for match in matches if match.HasField("result")]
        clocks = await self._clocks.read_clocks(name, clocked[:CLOCKED_MATCHES])
        places = await self._read_places(name, matches)
        ladders = [place["competition"] for place in places if place["competition"].startswith("ladders/")]
        return render_page(
            "bot.html.j2",
            bot=bot,
            places=places,
            curves=[(ladder, await self._draw_strength(ladder, name)) for ladder in ladders[:CURVES]],
            clocks=clocks,
            answer_times=draw_answer_times([ms for line in clocks for ms in line["charged_ms"]]),
            form=recent_form(name, matches),
            opponents=found.opponents,
            withheld=found.withheld,
            matches=matches[:LISTED_MATCHES],
        )

    async def _read_places(self, bot: str, matches: Sequence[match_pb2.Match]) -> list[dict[str, Any]]:
        """Return the places of the bot: of its newest matches' ladders and leagues first, then of other leagues."""
        leagues = (await self._calls.call("LeagueService/ListLeagues", page_size=LOOKED_LEAGUES)).leagues
        played = [match.competition for match in matches if match.competition]
        entered = [league.name for league in leagues if bot in league.bots]
        names = list(dict.fromkeys((*played, *entered)))[:SHOWN_PLACES]
        found = [await self._find_place(name, bot) for name in names]
        return [place for place in found if place]

    async def _find_place(self, competition: str, bot: str) -> dict[str, Any] | None:
        is_ladder = competition.startswith("ladders/")
        method = "LadderService/ListStandings" if is_ladder else "LeagueService/ListLeagueStandings"
        wanted: dict[str, Any] = {"league": competition}
        if is_ladder:
            wanted = {"ladder": competition, "bot": bot, "page_size": 1}
        try:
            table = await self._calls.call(method, **wanted)
        except Refusal as refused:
            if refused.reason != "NOT_FOUND":
                raise
            return None
        size = table.total_size if is_ladder else len(table.standings)
        lines = [line for line in table.standings if line.bot == bot]
        place = {"competition": competition, "of": size, "is_ladder": is_ladder}
        return place | {"line": lines[0]} if lines else None

    async def _draw_strength(self, ladder: str, bot: str) -> Markup | None:
        """Draw the strength of the bot on a ladder over its matches; nothing while there is only one point."""
        history = await self._calls.call(
            "LadderService/ListStandingsHistory", ladder=ladder, bots=[bot], page_size=MOST_POINTS
        )
        lines = [each for point in history.points for each in point.standings]
        lines.sort(key=lambda each: each.matches)
        points = [(each.matches, each.strength, each.low, each.high) for each in lines]
        if len({matches for matches, *_ in points}) < 2:
            return None
        title = f"Strength on {last_part(ladder)}"
        return draw_interval_curve(title, points, "strength", "matches of the bot")


def recent_form(name: str, matches: Sequence[match_pb2.Match]) -> dict[str, Any]:
    """Return how the bot did in these matches, of which those count that show a result."""
    played = [
        (match, seat)
        for match in matches
        if match.HasField("result")
        for seat, bot in enumerate(match.bots)
        if bot == name
    ]
    endings = Counter(ending_words(match.result.endings[seat]) for match, seat in played)
    return {
        "played": len(played),
        "sentence": _form_sentence(played),
        "last": [_form_item(match, seat) for match, seat in played[:FORM_MATCHES]],
        "seats": _by_seat(played),
        "endings": ", ".join(f"{count} {words}" for words, count in endings.most_common()),
    }


def _form_sentence(played: Sequence[tuple[match_pb2.Match, int]]) -> str:
    if not played:
        return ""
    first = sum(match.result.ranks[seat] == 1 for match, seat in played)
    return f"It came first in {first} of its {len(played)} newest finished matches."


def _form_item(match: match_pb2.Match, seat: int) -> dict[str, Any]:
    rank = match.result.ranks[seat]
    kind = "won" if rank == 1 else "lost" if rank == len(match.bots) else "between"
    told = f"rank {rank} of {len(match.bots)}, {match.result.points[seat]} points"
    return {"match": match.name, "rank": rank, "kind": kind, "told": told}


def _by_seat(played: Sequence[tuple[match_pb2.Match, int]]) -> list[dict[str, Any]]:
    results: defaultdict[int, list[match_pb2.Match]] = defaultdict(list)
    for match, seat in played:
        results[seat].append(match)
    return [
        {
            "seat": seat,
            "matches": len(each),
            "first": sum(match.result.ranks[seat] == 1 for match in each),
            "last": sum(match.result.ranks[seat] == max(match.result.ranks) > 1 for match in each),
            "points": sum(match.result.points[seat] for match in each) / len(each),
        }
        for seat, each in sorted(results.items())
    ]
