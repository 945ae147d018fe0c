"""The page with the rules of a game."""

from __future__ import annotations

from markupsafe import Markup
from starlette.requests import Request

from seatwise.kits import KITS
from seatwise.rules import read_rules
from seatwise_server.pages.page_responses import render_page
from seatwise_server.refusal import Refusal


async def make_rules_page(_request: Request, values: list[str]) -> bytes:
    """Returns the page of one game. Raises `Refusal` for a game of which no rules are written here."""
    game = values[0]
    rules = read_rules(game) if game in KITS else ""
    if not rules:
        raise Refusal("NOT_FOUND", f"the rules of {game[:80]!r} are not written here")
    return render_page("rules.html.j2", game=f"games/{game}", rules=Markup(rules))
