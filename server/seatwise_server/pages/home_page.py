"""The home page: the matches that are played now, ladders, leagues, and how to connect a bot."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.requests import Request

from seatwise.kits import KITS
from seatwise.kits.frames import Frame, count_totals
from seatwise.rules import read_rules
from seatwise.v1 import ladder_pb2, match_pb2
from seatwise_referee.hosted.hosted_rules import HostedRules
from seatwise_server.pages.match_page import LiveFrames, viewer_match
from seatwise_server.pages.page_responses import (
    PageCalls,
    address_of,
    is_private_connection,
    last_part,
    render_page,
)
from seatwise_server.pages.static_files import Downloads
from seatwise_server.refusal import Refusal
from seatwise_server.services.guest_seats import guest_games

LIVE_MATCHES = 12
SCORED_MATCHES = 6
"""Live matches of which the page shows the score."""
FINISHED_MATCHES = 8
SHOWN_LADDERS = 6
LISTED_LADDERS = 50
"""The ladders that are looked at, closed ones and others, in the order of their names."""
SHOWN_LEAGUES = 20
LEADERS = 3


class HomePage:
    """Answers /."""

    def __init__(self, calls: PageCalls, live: LiveFrames, downloads: Downloads, *, has_guests: bool) -> None:
        self._calls = calls
        self._live = live
        self._downloads = downloads
        self._guest_games = guest_games() if has_guests else ()

    async def make_page(self, request: Request, _values: list[str]) -> bytes:
        """Return the page."""
        states = match_pb2.Match.State
        live = await self._calls.list_matches(state=states.STATE_RUNNING, page_size=LIVE_MATCHES)
        ladders = (await self._calls.call("LadderService/ListLadders", page_size=LISTED_LADDERS)).ladders
        running = [ladder for ladder in ladders if not ladder.HasField("close_time")]
        ended = await self._calls.list_matches(state=states.STATE_FINISHED, page_size=FINISHED_MATCHES)
        finished = ended.matches
        scores = await self._read_scores(live.matches)
        featured = find_featured(live.matches, finished, scores)
        return render_page(
            "home.html.j2",
            featured=featured,
            viewer_match=viewer_match(featured) if featured else "",
            scores=scores,
            games=[name for name in KITS if render_rules(name)],
            guest_games=self._guest_games,
            live=live.matches,
            more_live=bool(live.next_page_token),
            finished=finished,
            ladders=[await self._with_leaders(ladder) for ladder in running[:SHOWN_LADDERS]],
            archive=[ladder for ladder in ladders if ladder.HasField("close_time")],
            leagues=(await self._calls.call("LeagueService/ListLeagues", page_size=SHOWN_LEAGUES)).leagues,
            address=address_of(request),
            downloads=self._downloads,
            is_private=is_private_connection(request),
        )

    async def _read_scores(self, matches: Sequence[match_pb2.Match]) -> dict[str, dict[str, Any]]:
        """Return the round and the points of the first live matches that spectators are shown, by their names."""
        open_to_all = [match for match in matches if not match.deal_set.name][:SCORED_MATCHES]
        found = await self._live.find_positions(open_to_all)
        seats = {match.name: len(match.bots) for match in open_to_all}
        return {name: describe_score(frame, seats[name]) for name, frame in found.items()}

    async def _with_leaders(self, ladder: ladder_pb2.Ladder) -> dict[str, Any]:
        table = await self._calls.call("LadderService/ListStandings", ladder=ladder.name, page_size=LEADERS)
        return {"ladder": ladder, "leaders": table.standings}


def describe_score(frame: Frame, seats: int) -> dict[str, Any]:
    """Return what a small board tells of a position: the round, or the first text of a drawing, and the points if it has them."""
    table: Any = frame.table
    drawn = table.get("drawing", ())
    texts = [item["text"] for item in drawn if "text" in item and item.get("owner") is None]
    told = f"Round {table['round']} of {table['rounds']}" if table.get("round") else "".join(texts[:1])
    return {"told": told, "points": () if drawn and "running" not in table else count_totals(table, seats)}


def find_featured(
    live: Sequence[match_pb2.Match], finished: Sequence[match_pb2.Match], shown: Collection[str]
) -> match_pb2.Match | None:
    """Return the match that the home page plays: the first live one of those that are shown, or else the closest of those that ended last."""
    ended = [match for match in finished if match.HasField("result") and last_part(match.game) in KITS]
    return next((match for match in live if match.name in shown), min(ended, key=_lead_of, default=None))


def _lead_of(match: match_pb2.Match) -> int:
    first, second = sorted(match.result.points, reverse=True)[:2]
    return first - second


# The page with the rules of a game.


@cache
def render_rules(game: str) -> str:
    """Return the rules of a game as HTML; "" where none are written here. Those of a game from outside are Markdown without HTML."""
    kit = KITS.get(game)
    if kit is None or not isinstance(kit.game, HostedRules):
        return read_rules(game) if kit else ""
    text = kit.game.rules_text.strip()
    if not text:
        return ""
    markdown = MarkdownIt("js-default").disable("image")
    tokens = markdown.parse(text if text.startswith("# ") else f"# The rules of {kit.title}\n\n{text}")
    for token in tokens:
        token.attrs.pop("style", None)  # of the cells of a table, which the policy of the page blocks
    rendered: str = markdown.renderer.render(tokens, markdown.options, {})
    return rendered


async def make_rules_page(_request: Request, values: list[str]) -> bytes:
    """Return the page of one game. Raises `Refusal` for a game of which no rules are written here."""
    game = values[0]
    rules = render_rules(game)
    if not rules:
        raise Refusal("NOT_FOUND", f"the rules of {game[:80]!r} are not written here")
    return render_page("rules.html.j2", game=f"games/{game}", rules=Markup(rules))
