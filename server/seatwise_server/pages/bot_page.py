"""The page of a bot: its form, its record by seat and by opponent, and its newest matches."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request

from seatwise.v1 import match_pb2
from seatwise_server.game_choice import is_hosted_game
from seatwise_server.pages.bot_clocks import CLOCKED_MATCHES, BotClocks
from seatwise_server.pages.page_calls import PageCalls
from seatwise_server.pages.page_filters import ending_words
from seatwise_server.pages.page_responses import render_page

JUDGED_MATCHES = 100
FORM_MATCHES = 20
LISTED_MATCHES = 30
LISTED_OPPONENTS = 30


class BotPageContent:
    """Answers /bots/{bot}/versions/{version}."""

    def __init__(self, calls: PageCalls) -> None:
        self._calls = calls
        self._clocks = BotClocks(calls)

    async def make_page(self, _request: Request, values: list[str]) -> bytes:
        """Returns the page of one bot."""
        name = f"bots/{values[0]}/versions/{values[1]}"
        bot = (await self._calls.call("BotService/GetBot", name=name)).bot
        found = await self._calls.call("BotService/ListOpponents", name=name, page_size=LISTED_OPPONENTS)
        matches = (
            await self._calls.call("MatchService/ListMatches", bot=name, page_size=JUDGED_MATCHES)
        ).matches
        clocked = [match for match in matches if match.HasField("result") and not is_hosted_game(match.game)]
        return render_page(
            "bot.html.j2",
            bot=bot,
            clocks=await self._clocks.read_clocks(name, clocked[:CLOCKED_MATCHES]),
            form=recent_form(name, matches),
            opponents=found.opponents,
            withheld=found.withheld,
            matches=matches[:LISTED_MATCHES],
        )


def recent_form(name: str, matches: Sequence[match_pb2.Match]) -> dict[str, Any]:
    """Returns how the bot did in these matches, of which those count that show a result."""
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
        "endings": endings.most_common(),
    }


def _form_sentence(played: Sequence[tuple[match_pb2.Match, int]]) -> str:
    if not played:
        return ""
    first = sum(match.result.ranks[seat] == 1 for match, seat in played)
    left = sum(match.result.endings[seat] != match_pb2.ENDING_COMPLETED for match, seat in played)
    sentence = f"It came first in {first} of its {len(played)} newest finished matches"
    return (
        f"{sentence}, and did not play {left} of them to the end."
        if left
        else f"{sentence}, and played all to the end."
    )


def _form_item(match: match_pb2.Match, seat: int) -> dict[str, Any]:
    rank = match.result.ranks[seat]
    kind = "won" if rank == 1 else "lost" if rank == len(match.bots) else "between"
    told = f"rank {rank} of {len(match.bots)}, {match.result.points[seat]} points"
    return {"match": match.name, "rank": rank, "kind": kind, "told": told}


def _by_seat(played: Sequence[tuple[match_pb2.Match, int]]) -> list[dict[str, Any]]:
    results: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for match, seat in played:
        results[seat].append((match.result.ranks[seat], match.result.points[seat]))
    return [
        {
            "seat": seat,
            "matches": len(each),
            "rank": sum(rank for rank, _ in each) / len(each),
            "points": sum(points for _, points in each) / len(each),
        }
        for seat, each in sorted(results.items())
    ]
