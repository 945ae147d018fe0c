"""The page of a ladder: its table with intervals, how it came about, and its newest matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request

from seatwise.v1 import ladder_pb2
from seatwise_server.league.report.figures import Whisker, draw_curves, draw_whiskers
from seatwise_server.pages.page_responses import PageCalls, bot_label, render_page, short_label

LADDER_PLACES = 50
LADDER_MATCHES = 15
CURVES = 8
MOST_POINTS = 200


class LadderPage:
    """Answers /ladders/{ladder}."""

    def __init__(self, calls: PageCalls) -> None:
        self._calls = calls

    async def make_page(self, request: Request, values: list[str]) -> bytes:
        """Return the page of one ladder."""
        name = f"ladders/{values[0]}"
        ladder = (await self._calls.call("LadderService/GetLadder", name=name)).ladder
        page = request.query_params.get("page", "")
        table = await self._calls.call(
            "LadderService/ListStandings", ladder=name, page_size=LADDER_PLACES, page_token=page
        )
        matches = await self._calls.call(
            "MatchService/ListMatches", competition=name, page_size=LADDER_MATCHES
        )
        token = table.next_page_token
        return render_page(
            "ladder.html.j2",
            ladder=ladder,
            results=table.results,
            update_time=table.update_time if table.HasField("update_time") else None,
            standings=table.standings,
            verdict=ladder_verdict(table.standings, is_over=ladder.HasField("close_time"))
            if table.standings and not page
            else "",
            whiskers=draw_strengths(table.standings) if table.standings else "",
            next_url=f"/{name}?{urlencode({'page': token})}" if token else "",
            history=await self._draw_history(name, [line.bot for line in table.standings[:CURVES]]),
            history_bots=min(CURVES, len(table.standings)),
            matches=matches.matches,
        )

    async def _draw_history(self, ladder: str, bots: Sequence[str]) -> Markup | None:
        """Draw how the first bots of the table came to their strengths; nothing while there is only one point."""
        if not bots:
            return None
        history = await self._calls.call(
            "LadderService/ListStandingsHistory", ladder=ladder, bots=bots, page_size=MOST_POINTS
        )
        lines: dict[str, list[tuple[float, float]]] = {short_label(bot): [] for bot in bots}
        for point in history.points:
            for line in point.standings:
                lines[short_label(line.bot)].append((point.results, line.strength))
        if len(history.points) < 2:
            return None
        return draw_curves("Strength by number of results", lines, "strength", "results")


def ladder_verdict(standings: Sequence[ladder_pb2.Standing], *, is_over: bool = False) -> str:
    """Return in one sentence what the table says, and how sure it is."""
    first = standings[0]
    others = [bot_label(name) for name in first.not_distinguishable_from]
    if first.provisional:
        verb = "is first" if is_over else "leads so far"
        return f"{bot_label(first.bot)} {verb}, but has played too few matches for a judgement."
    verb = "wins" if is_over else "leads"
    if others:
        return f"{bot_label(first.bot)} {verb}, but the results do not{' yet' * (not is_over)} tell it apart from {_join(others)}."
    return f"{bot_label(first.bot)} {verb}, and the results tell it apart from all others near it."


def _join(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def draw_strengths(standings: Sequence[Any]) -> Markup:
    """Draw the strength of each line of the table with its interval."""
    rows = [Whisker(short_label(line.bot), line.strength, line.low, line.high) for line in standings]
    return draw_whiskers("Strength with its 95 % interval, at every look", rows, "strength", 0.0)
