"""The page of a ladder: its table with intervals, how it came about, and its newest matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request

from seatwise.v1 import ladder_pb2
from seatwise_server.competition.standings.ranking import format_ranges
from seatwise_server.league.report.facts import join_some
from seatwise_server.league.report.figures import draw_curves
from seatwise_server.pages.page_responses import PageCalls, bot_label, render_page, short_label
from seatwise_server.refusal import Refusal

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
        page, bot = (request.query_params.get(key, "").strip() for key in ("page", "bot"))
        table, refusal = await self._read_table(name, page, bot)
        start = table.standings[0].place - 1 if table.standings else 0
        is_first_page, is_over = bool(table.standings) and not start, ladder.HasField("close_time")
        verdict = ladder_verdict(table.standings, is_over=is_over) if is_first_page else ""
        matches = await self._calls.list_matches(competition=name, page_size=LADDER_MATCHES)
        return render_page(
            "ladder.html.j2",
            ladder=ladder,
            results=table.results,
            update_time=table.update_time if table.HasField("update_time") else None,
            standings=table.standings,
            verdict=verdict,
            asked=bot,
            refusal=refusal,
            whiskers=whiskers_of(table.standings),
            likes=describe_likes(table.standings),
            pages=_list_pages(f"/{name}", start, table.total_size),
            history=await self._draw_history(name, [line.bot for line in table.standings[:CURVES]]),
            history_bots=min(CURVES, len(table.standings)),
            matches=matches.matches,
        )

    async def _read_table(self, ladder: str, page: str, bot: str) -> tuple[Any, str]:
        """Return a page of the table: that of a bot, if one is asked for and has a place, and why there is none."""
        fields: dict[str, Any] = {"ladder": ladder, "page_size": LADDER_PLACES}
        if bot:
            name, _, version = bot.removeprefix("bots/").replace("/versions/", " ").partition(" ")
            asked = f"bots/{name}/versions/{version.strip() or 1}"
            try:
                return await self._calls.call("LadderService/ListStandings", **fields, bot=asked), ""
            except Refusal as refused:
                if refused.reason not in ("NOT_FOUND", "INVALID_ARGUMENT"):
                    raise
                return await self._calls.call("LadderService/ListStandings", **fields), str(refused)
        return await self._calls.call("LadderService/ListStandings", **fields, page_token=page), ""

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
        return f"{bot_label(first.bot)} {verb}, but the results do not{' yet' * (not is_over)} tell it apart from {join_some(others)}."
    return f"{bot_label(first.bot)} {verb}, and the results tell it apart from all others near it."


def whiskers_of(lines: Sequence[Any]) -> dict[str, tuple[int, ...]]:
    """Return for each bot where its interval begins, its strength and where the interval ends, and zero: in thousandths of the width.

    A line is one of a ladder's table, or a fitted `Strength`.
    """
    least = min((line.low for line in lines), default=0.0)
    wide = max((line.high for line in lines), default=0.0) - least or 1.0

    def place_of(strength: float) -> int:
        return round(1000 * min(max((strength - least) / wide, 0.0), 1.0))

    marks = {line.bot: (line.low, (line.low + line.high) / 2, line.high, 0.0) for line in lines}
    return {bot: tuple(map(place_of, each)) for bot, each in marks.items()}


def describe_likes(standings: Sequence[ladder_pb2.Standing]) -> dict[str, str]:
    """Return for each bot the places that the results do not tell apart from its own, such as "2-11".

    An ellipsis stands for places of another page of the table.
    """
    places = {line.bot: line.place for line in standings}
    middle = standings[len(standings) // 2].place if standings else 0
    said = {}
    for line in standings:
        near = sorted(places[bot] for bot in line.not_distinguishable_from if bot in places)
        has_more = len(near) < len(line.not_distinguishable_from)
        told = format_ranges(sorted({*near, line.place})) if near or has_more else "no other"
        is_before = has_more and line.place < middle
        said[line.bot] = f"{'… ' if is_before else ''}{told}{' …' if has_more and not is_before else ''}"
    return said


def _list_pages(path: str, start: int, lines: int) -> list[tuple[str, str]]:
    last = max(0, (lines - 1) // LADDER_PLACES * LADDER_PLACES)
    before = {"First": 0, "Previous": max(0, start - LADDER_PLACES)} if start else {}
    after = {"Next": min(start + LADDER_PLACES, last), "Last": last} if start < last else {}
    return [
        (word, f"{path}?{urlencode({'page': at})}" if at else path) for word, at in (before | after).items()
    ]
