"""Pages without a frame of their own: the big screen of a ladder or league, and those that pages of others show in a frame."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from seatwise.v1 import match_pb2, match_service_pb2
from seatwise_server.league.settings import League
from seatwise_server.pages.match_page import LiveFrames, viewer_match
from seatwise_server.pages.page_responses import MakePage, PageCalls, bot_label, game_title, render_page
from seatwise_server.refusal import Refusal

SHOWN_STANDINGS = 8
SHOWN_MATCHES = 12
"""Finished matches that are shown in turn while none is played."""


class CompetitionLines:
    """Reads the first lines of a table."""

    def __init__(self, calls: PageCalls) -> None:
        self._calls = calls

    async def read_lines(self, name: str) -> list[dict[str, Any]]:
        """Return the first lines of a ladder or league."""
        return await (self._read_ladder(name) if name.startswith("ladders/") else self._read_league(name))

    async def _read_ladder(self, name: str) -> list[dict[str, Any]]:
        table = await self._calls.call("LadderService/ListStandings", ladder=name, page_size=SHOWN_STANDINGS)
        return [
            {
                "place": each.place,
                "bot": each.bot,
                "name": bot_label(each.bot),
                "told": f"{each.strength:+.0f}",
            }
            for each in table.standings
        ]

    async def _read_league(self, name: str) -> list[dict[str, Any]]:
        league = (await self._calls.call("LeagueService/GetLeague", name=name)).league
        names = {each.player: each.name for each in League.from_json(json.loads(league.settings)).entrants}
        table = await self._calls.call("LeagueService/ListLeagueStandings", league=name)
        return [
            {"place": line.place, "bot": line.bot, "name": names[line.bot], "told": f"{line.points:.1f}"}
            for line in table.standings[:SHOWN_STANDINGS]
        ]


class ShowPage(CompetitionLines):
    """Answers /show?ladder=... and /show?league=..."""

    def __init__(self, calls: PageCalls, live: LiveFrames) -> None:
        super().__init__(calls)
        self._live = live

    async def make_page(self, request: Request, _values: list[str]) -> bytes:
        """Return the page with the match that follows the one which the query names as `after`."""
        ladder, league, after = (request.query_params.get(key, "") for key in ("ladder", "league", "after"))
        if bool(ladder) == bool(league):
            raise Refusal("NOT_FOUND", "name a ladder or a league: /show?ladder=main")
        name = f"ladders/{ladder}" if ladder else f"leagues/{league}"
        lines = await self.read_lines(name)
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
        wanted: dict[str, Any] = {"competition": competition, "state": state, "page_size": SHOWN_MATCHES}
        found: match_service_pb2.ListMatchesResponse = await self._calls.call(
            "MatchService/ListMatches", **wanted
        )
        return found.matches


def choose_next(
    live: Sequence[match_pb2.Match], finished: Sequence[match_pb2.Match], after: str
) -> match_pb2.Match | None:
    """Return a live match, or else the finished one that is next in the list, after whose end it begins again."""
    if live:
        return next((match for match in live if match.name != after), live[0])
    ended = [match for match in finished if match.HasField("result")]
    places = [place for place, match in enumerate(ended, start=1) if match.name == after]
    return ended[places[0] % len(ended) if places else 0] if ended else None


class EmbedPages(CompetitionLines):
    """Answers the pages that an origin may show in a frame, if the operator allows it. They read no cookie and have no form."""

    @property
    def by_path(self) -> dict[str, MakePage]:
        """The pages by their paths."""
        return {
            "/embed/matches/{match}": self.make_match_page,
            "/embed/ladders/{ladder}": self.make_ladder_page,
            "/embed/leagues/{league}": self.make_league_page,
        }

    async def make_match_page(self, _request: Request, values: list[str]) -> bytes:
        """Return a match: as it is played, as far as spectators may see it, or from shortly before its decisive moment on."""
        match = (await self._calls.call("MatchService/GetMatch", name=f"matches/{values[0]}")).match
        is_shown = match.state != match_pb2.Match.STATE_VOIDED
        if match.HasField("end_time") or match.deal_set.name:
            is_shown = match.HasField("result")
        title = f"{game_title(match.game)}: {', '.join(map(bot_label, match.bots))}"
        return _render_embed(match.name, title, match, is_shown=is_shown)

    async def make_ladder_page(self, _request: Request, values: list[str]) -> bytes:
        """Return the first lines of a ladder."""
        name = f"ladders/{values[0]}"
        return _render_embed(name, values[0], lines=await self.read_lines(name))

    async def make_league_page(self, _request: Request, values: list[str]) -> bytes:
        """Return the first lines of a league."""
        name = f"leagues/{values[0]}"
        return _render_embed(name, values[0], lines=await self.read_lines(name))


def _render_embed(
    name: str, title: str, match: match_pb2.Match | None = None, *, is_shown: bool = False, lines: Sequence[Any] = ()
) -> bytes:  # fmt: skip
    known = {"name": name, "title": title, "match": match, "is_shown": is_shown, "lines": lines}
    return render_page("embed.html.j2", **known, viewer_match=viewer_match(match) if match else "")
