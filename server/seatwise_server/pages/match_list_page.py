"""The list of matches, narrowed to a bot, a competition, a game or a state."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from seatwise.kits import KITS
from seatwise.v1 import match_pb2
from seatwise_server.pages.page_responses import PageCalls, bot_label, last_part, render_page

MATCHES_OF_PAGE = 50
MATCH_FILTERS = ("bot", "competition", "game")
STATE_FILTERS = {"live": match_pb2.Match.STATE_RUNNING, "finished": match_pb2.Match.STATE_FINISHED}


class MatchListPage:
    """Answers /matches."""

    def __init__(self, calls: PageCalls) -> None:
        self._calls = calls

    async def make_page(self, request: Request, _values: list[str]) -> bytes:
        """Return the page. Its query has the filters of ListMatches."""
        query = {name: value for name, value in request.query_params.items() if value}
        fields: dict[str, Any] = {name: query[name] for name in MATCH_FILTERS if name in query}
        if query.get("state") in STATE_FILTERS:
            fields["state"] = STATE_FILTERS[query["state"]]
        token = query.get("page", "")
        page = await self._calls.list_matches(page_size=MATCHES_OF_PAGE, page_token=token, **fields)
        kept = {name: query[name] for name in (*MATCH_FILTERS, "state") if name in query}
        following = {**kept, "page": page.next_page_token}
        return render_page(
            "matches.html.j2",
            title=_title_of(kept),
            matches=page.matches,
            filters=_filter_links(kept),
            next_url=f"/matches?{urlencode(following)}" if page.next_page_token else "",
        )


def _title_of(kept: dict[str, str]) -> str:
    of_bot = kept.get("bot", "")
    is_bot = of_bot.count("/") == 3
    words = [
        "Live matches" if kept.get("state") == "live" else "Matches",
        f"of {bot_label(of_bot)}" if is_bot else "",
        f"in {last_part(kept['competition'])}" if "competition" in kept else "",
    ]
    return " ".join(filter(None, words))


def _filter_links(kept: dict[str, str]) -> list[dict[str, Any]]:
    choices: list[tuple[str, dict[str, str]]] = [("all", {}), ("live", {"state": "live"})]
    choices.append(("finished", {"state": "finished"}))
    choices += [(kit.title, {"game": f"games/{name}"}) for name, kit in KITS.items()]
    fixed = {name: kept[name] for name in ("bot", "competition") if name in kept}
    return [
        {"text": text, "url": f"/matches?{urlencode(fixed | choice)}", "is_current": fixed | choice == kept}
        for text, choice in choices
    ]
