"""The page of a match: what is known of it, its result, and every step of it when it is over."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from cachetools import LRUCache
from starlette.requests import Request
from starlette.responses import Response

from seatwise.replay import MatchReplay, build_replay
from seatwise.replay.sentences import short_names
from seatwise.v1 import match_pb2
from seatwise_server.game_choice import is_hosted_game
from seatwise_server.pages.live_frames import LiveFrames
from seatwise_server.pages.page_calls import PageCalls, address_of, note_peer
from seatwise_server.pages.page_filters import last_part
from seatwise_server.pages.page_responses import render_page
from seatwise_server.refusal import Refusal
from seatwise_server.rest.caching import FOREVER, caching_headers, is_unchanged, unchanged_response
from seatwise_server.rest.http_errors import JSON_TYPE

KEPT_REPLAYS = 64
"""Replays of finished matches in memory: to make one takes some 10 ms, and everybody looks at the same."""


@dataclass(frozen=True, slots=True)
class KeptReplay:
    """A finished match, as pages show it."""

    replay: MatchReplay
    json: bytes
    """The replay as the viewer in the browser reads it."""


class MatchPage:
    """Answers /matches/{match} and /matches/{match}/frames."""

    def __init__(self, calls: PageCalls, live: LiveFrames) -> None:
        self._calls = calls
        self._live = live
        self._kept: LRUCache[str, KeptReplay] = LRUCache(KEPT_REPLAYS)

    async def make_page(self, request: Request, values: list[str]) -> bytes:
        """Returns the page of one match."""
        name = f"matches/{values[0]}"
        match = (await self._calls.call("MatchService/GetMatch", name=name)).match
        is_hosted = is_hosted_game(match.game)
        kept = await self._find_replay(name) if match.HasField("result") and not is_hosted else None
        is_live = match.state == match_pb2.Match.STATE_RUNNING
        return render_page(
            "match.html.j2",
            match=match,
            replay=kept.replay if kept else None,
            seats=_seat_lines(match, kept),
            rounds=match.result.rounds,
            chain=kept.replay.chain if kept else match.result.chain.hex(),
            is_hosted=is_hosted,
            is_live=is_live,
            position=await self._find_position(match) if is_live and not is_hosted else "",
            address=address_of(request),
            viewer_match=_viewer_match(match),
        )

    async def _find_position(self, match: match_pb2.Match) -> str:
        """Returns the position of a live match as text; empty if spectators may see none."""
        return "" if match.deal_set.name else await self._live.describe_position(match.name)

    async def answer_frames(self, request: Request, values: list[str]) -> Response:
        """Returns the steps of a finished match as JSON. They never change."""
        note_peer(request)
        kept = await self._find_replay(f"matches/{values[0]}")
        cache_control = f"public, {FOREVER}"
        if is_unchanged(request, kept.replay.chain):
            return unchanged_response(kept.replay.chain, cache_control)
        headers = caching_headers(kept.replay.chain, cache_control)
        return Response(kept.json, headers=headers, media_type=JSON_TYPE)

    async def _find_replay(self, name: str) -> KeptReplay:
        """Returns the replay. Raises `Refusal` where the record cannot be read yet."""
        kept = self._kept.get(name)
        if kept is None:
            match = (await self._calls.call("MatchService/GetMatch", name=name)).match
            if is_hosted_game(match.game):
                raise Refusal(
                    "NOT_FOUND", "the server shows no steps of games from outside; download the record"
                )
            record = (await self._calls.call("MatchService/GetRecord", name=name)).record
            kept = self._kept[name] = await asyncio.to_thread(_make_replay, record)
        return kept


def _make_replay(record: str) -> KeptReplay:
    replay = build_replay(json.loads(record))
    return KeptReplay(replay, json.dumps(replay.to_json(), separators=(",", ":")).encode())


def _viewer_match(match: match_pb2.Match) -> str:
    """Returns what the viewer must know of a match before its first position, as JSON."""
    known = {"match": match.name, "game": last_part(match.game), "bots": list(match.bots)}
    return json.dumps(known | {"names": list(short_names(tuple(match.bots)))})


def _seat_lines(match: match_pb2.Match, kept: KeptReplay | None) -> list[dict[str, Any]]:
    """Returns a line for each seat: its bot, its result, and how long it thought."""
    times = kept.replay.frames[-1].times if kept and kept.replay.frames else ()
    lines = []
    for seat, bot in enumerate(match.bots):
        line: dict[str, Any] = {"seat": seat, "bot": bot, "times": times[seat] if times else None}
        if match.HasField("result"):
            result = match.result
            line |= {
                "points": result.points[seat],
                "rank": result.ranks[seat],
                "ending": result.endings[seat],
            }
            line["rounds"] = [each.points[seat] for each in result.rounds]
        lines.append(line)
    return lines
