"""Pages without a frame of their own: the big screen of a ladder or league, and those that pages of others show in a frame."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from seatwise.v1 import match_pb2
from seatwise_server.league.settings import League
from seatwise_server.pages.match_page import LiveFrames, viewer_match
from seatwise_server.pages.page_responses import MakePage, PageCalls, bot_label, game_title, render_page
from seatwise_server.refusal import Refusal

SHOWN_STANDINGS = 8
SHOWN_MATCHES = 12
"""Finished matches that are shown in turn while none is played."""


async def read_lines(calls: PageCalls, name: str) -> list[dict[str, Any]]:
    """Return the first lines of the table of a ladder or league."""
    if name.startswith("ladders/"):
        table = await calls.call("LadderService/ListStandings", ladder=name, page_size=SHOWN_STANDINGS)
        told = [(line, bot_label(line.bot), f"{line.strength:+.0f}") for line in table.standings]
    else:
        league = (await calls.call("LeagueService/GetLeague", name=name)).league
        names = {each.player: each.name for each in League.from_json(json.loads(league.settings)).entrants}
        table = await calls.call("LeagueService/ListLeagueStandings", league=name)
        told = [(line, names[line.bot], f"{line.points:.1f}") for line in table.standings[:SHOWN_STANDINGS]]
    return [{"place": line.place, "name": who, "told": text} for line, who, text in told]


class ShowPage:
    """Answers /show?ladder=... and /show?league=..."""

    def __init__(self, calls: PageCalls, live: LiveFrames) -> None:
        self._calls = calls
        self._live = live

    async def make_page(self, request: Request, _values: list[str]) -> bytes:
        """Return the page with the match that follows the one which the query names as `after`."""
        ladder, league, after = (request.query_params.get(key, "") for key in ("ladder", "league", "after"))
        if bool(ladder) == bool(league):
            raise Refusal("NOT_FOUND", "name a ladder or a league: /show?ladder=main")
        name = f"ladders/{ladder}" if ladder else f"leagues/{league}"
        lines = await read_lines(self._calls, name)
        running = await self._list_matches(name, match_pb2.Match.STATE_RUNNING)
        shown = await self._live.find_positions(running)
        live = [match for match in running if match.name in shown]
        finished = await self._list_matches(name, match_pb2.Match.STATE_FINISHED)
        match = choose_next(live, finished, after)
        told = {"ladder": ladder} if ladder else {"league": league}
        return render_page(
            "show.html.j2",
            name=name,
            lines=lines,
            match=match,
            viewer_match=viewer_match(match) if match else "",
            next=f"/show?{urlencode(told | ({'after': match.name} if match else {}))}",
        )

    async def _list_matches(self, competition: str, state: int) -> Sequence[match_pb2.Match]:
        found = await self._calls.list_matches(competition=competition, state=state, page_size=SHOWN_MATCHES)
        matches: Sequence[match_pb2.Match] = found.matches
        return matches


def choose_next(
    live: Sequence[match_pb2.Match], finished: Sequence[match_pb2.Match], after: str
) -> match_pb2.Match | None:
    """Return a live match, or else the finished one that is next in the list, after whose end it begins again."""
    if live:
        return next((match for match in live if match.name != after), live[0])
    ended = [match for match in finished if match.HasField("result")]
    places = [place for place, match in enumerate(ended, start=1) if match.name == after]
    return ended[places[0] % len(ended) if places else 0] if ended else None


class EmbedPages:
    """Answers the pages that an origin may show in a frame, if the operator allows it. They read no cookie and have no form."""

    def __init__(self, calls: PageCalls) -> None:
        self._calls = calls

    @property
    def by_path(self) -> dict[str, MakePage]:
        """The pages by their paths."""
        return {
            "/embed/matches/{match}": self._make_match_page,
            "/embed/ladders/{ladder}": partial(self._make_table_page, "ladders"),
            "/embed/leagues/{league}": partial(self._make_table_page, "leagues"),
        }

    async def _make_match_page(self, _request: Request, values: list[str]) -> bytes:
        """Return a match: as it is played, as far as spectators may see it, or from shortly before its decisive moment on."""
        match = (await self._calls.call("MatchService/GetMatch", name=f"matches/{values[0]}")).match
        is_shown = match.state != match_pb2.Match.STATE_VOIDED
        if match.HasField("end_time") or match.deal_set.name:
            is_shown = match.HasField("result")
        title = f"{game_title(match.game)}: {', '.join(map(bot_label, match.bots))}"
        told = {"match": match, "is_shown": is_shown, "viewer_match": viewer_match(match)}
        return render_page("embed.html.j2", name=match.name, title=title, **told)

    async def _make_table_page(self, kind: str, _request: Request, values: list[str]) -> bytes:
        """Return the first lines of a ladder or league."""
        name = f"{kind}/{values[0]}"
        lines, told = await read_lines(self._calls, name), {"match": None, "is_shown": False}
        return render_page("embed.html.j2", name=name, title=values[0], lines=lines, **told)
