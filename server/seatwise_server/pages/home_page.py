"""The home page: the matches that are played now, ladders, leagues, and how to connect a bot."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from seatwise.kits import KITS
from seatwise.rules import read_rules
from seatwise.v1 import match_pb2
from seatwise_server.pages.page_calls import PageCalls, address_of
from seatwise_server.pages.page_responses import render_page
from seatwise_server.services.guest_seats import guest_games

LIVE_MATCHES = 12
FINISHED_MATCHES = 8
SHOWN_LADDERS = 6
SHOWN_LEAGUES = 20
LEADERS = 3


class HomePage:
    """Answers /."""

    def __init__(self, calls: PageCalls, *, has_guests: bool) -> None:
        self._calls = calls
        self._guest_games = guest_games() if has_guests else ()

    async def make_page(self, request: Request, _values: list[str]) -> bytes:
        """Returns the page."""
        live = await self._list_matches(match_pb2.Match.STATE_RUNNING, LIVE_MATCHES)
        return render_page(
            "home.html.j2",
            games=[name for name in KITS if read_rules(name)],
            guest_games=self._guest_games,
            live=live.matches,
            more_live=bool(live.next_page_token),
            finished=(await self._list_matches(match_pb2.Match.STATE_FINISHED, FINISHED_MATCHES)).matches,
            ladders=await self._list_ladders(),
            leagues=(await self._calls.call("LeagueService/ListLeagues", page_size=SHOWN_LEAGUES)).leagues,
            address=address_of(request),
        )

    async def _list_matches(self, state: int, size: int) -> Any:
        return await self._calls.call("MatchService/ListMatches", state=state, page_size=size)

    async def _list_ladders(self) -> list[dict[str, Any]]:
        found = await self._calls.call("LadderService/ListLadders", page_size=SHOWN_LADDERS)
        return [{"ladder": ladder, "leaders": await self._leaders(ladder.name)} for ladder in found.ladders]

    async def _leaders(self, ladder: str) -> Any:
        table = await self._calls.call("LadderService/ListStandings", ladder=ladder, page_size=LEADERS)
        return table.standings
