"""A position of a finished match as a picture of 1200 x 630, for sites that show a link: as SVG, and as PNG with the extra `pictures`."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from cachetools import LRUCache
from starlette.requests import Request
from starlette.responses import Response

from seatwise.kits import KITS
from seatwise.kits.frames import INK, PAPER, RULE, SOFT, Frame, SeatPicture, count_totals
from seatwise.kits.hosted.frames import draw_seat as draw_any_seat
from seatwise.replay import MatchReplay
from seatwise_server.league.report.figures import Shape, make_element
from seatwise_server.limits import TokenBuckets
from seatwise_server.pages.match_page import KeptReplay, MatchPage
from seatwise_server.pages.page_responses import game_title, has_png, note_peer
from seatwise_server.play.game_views import ViewsFailed
from seatwise_server.refusal import Refusal
from seatwise_server.rest.http_call import FOREVER, caching_headers, is_unchanged

WIDTH: Final = 1200
HEIGHT: Final = 630
MADE_PER_SECOND: Final = 10.0
KEPT_PICTURES: Final = 128
TYPES: Final = {"svg": "image/svg+xml", "png": "image/png"}
CARD = "#ffffff"


class PositionPictures:
    """Answers /matches/{match}/pictures/{file}, where the file is a step and a type, such as 12.svg or decisive.png."""

    def __init__(self, matches: MatchPage) -> None:
        self._matches = matches
        self._kept: LRUCache[tuple[str, str], bytes] = LRUCache(KEPT_PICTURES)
        self._rate = TokenBuckets(MADE_PER_SECOND, MADE_PER_SECOND, time.monotonic)

    async def answer(self, request: Request, values: list[str]) -> Response:
        """Return the picture, which never changes. Raises `Refusal` where there is none, or where too many are asked for."""
        note_peer(request)
        name, file = f"matches/{values[0]}", values[1]
        step, _, kind = file.partition(".")
        is_made = kind == "svg" or (kind == "png" and has_png())
        if not is_made or not re.fullmatch(r"decisive|[0-9]{1,6}", step):
            raise Refusal("NOT_FOUND", f"there is no picture {file[:80]!r}")
        try:
            kept = await self._matches.find_replay(name)
        except ViewsFailed as failed:
            raise Refusal("NOT_FOUND", f"its steps cannot be shown ({failed})") from None
        replay = kept.replay
        number = kept.decisive_step if step == "decisive" else int(step)
        if number >= len(replay.frames):
            raise Refusal("NOT_FOUND", f"{name} has {len(replay.frames)} steps")
        version, how_long = f"{replay.chain[:32]}-{file}", f"public, {FOREVER}"
        if is_unchanged(request, version):
            return Response(status_code=304, headers=caching_headers(version, how_long))
        picture = self._kept.get((name, file))
        if picture is None:
            if self._rate.measure_wait("", 1):
                why = "the server makes other pictures now; ask again"
                raise Refusal("RATE_EXCEEDED", why, retry_after="1")
            self._rate.take_units("", 1)
            picture = self._kept[name, file] = await asyncio.to_thread(_make_picture, kept, number, kind)
        headers = caching_headers(version, how_long) | {"cross-origin-resource-policy": "cross-origin"}
        return Response(picture, headers=headers, media_type=TYPES[kind])


def _make_picture(kept: KeptReplay, step: int, kind: str) -> bytes:
    svg = draw_position(replace(kept.replay, frames=(kept.read_frame(step),)), 0)
    if kind == "svg":
        return svg.encode()
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=str(svg), width=WIDTH))


def draw_position(replay: MatchReplay, step: int) -> Shape:
    """Return the picture of one step: what it says, and for each seat its name, its points and what lies open before it."""
    frame, seats = replay.frames[step], len(replay.bots)
    totals = count_totals(frame.table, seats)
    columns = min(seats, 2) if seats < 5 else 3
    rows = -(-seats // columns)
    drawn: Any = frame.table.get("drawing", ())
    top = 226 if any(item.get("owner") is None for item in drawn) else 130
    wide, high = (WIDTH - 60) / columns, (HEIGHT - top - 20) / rows
    shapes = [
        make_element("rect", width=WIDTH, height=HEIGHT, fill=PAPER),
        _write(40, 58, game_title(f"games/{replay.game}"), 38, weight="bold"),
        _write(WIDTH - 40, 58, "Seatwise", 26, SOFT, anchor="end"),
        _write(40, 102, _shorten(f"{frame.says} {frame.turn}", 78), 26, SOFT),
        *([_place(draw_any_seat(frame, None), 40, 122, WIDTH - 80, top - 130)] if top > 130 else []),
    ]
    for seat, name in enumerate(replay.names):
        x, y = 30 + seat % columns * wide, top + seat // columns * high
        place, is_first = (x, y, wide, high), totals[seat] == max(totals)
        points = str(totals[seat]) if not drawn or "running" in frame.table else ""
        shapes += _draw_seat(replay.game, frame, seat, name, points, place, is_first=is_first)
    return make_element(
        "svg", make_element("title", frame.says), *shapes, xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {HEIGHT}", width=WIDTH, height=HEIGHT, font_family="DejaVu Sans, Arial, sans-serif",
    )  # fmt: skip


def _draw_seat(
    game: str, frame: Frame, seat: int, name: str, points: str, place: tuple[float, float, float, float], *, is_first: bool
) -> Iterator[Shape]:  # fmt: skip
    x, y, wide, high = place
    yield make_element(
        "rect", x=x + 8, y=y + 4, width=wide - 16, height=high - 12, rx=10, fill=CARD,
        stroke=INK if is_first else RULE, stroke_width=3 if is_first else 1,
    )  # fmt: skip
    yield _write(x + 28, y + 42, _shorten(name, int(wide / 21)), 25, weight="bold")
    yield _write(x + wide - 28, y + 42, points, 28, weight="bold", anchor="end")
    picture = (KITS[game].load_seat_drawer() if game in KITS else draw_any_seat)(frame, seat)
    yield _place(picture, x + 28, y + 56, wide - 56, high - 80)


def _place(picture: SeatPicture, x: float, y: float, wide: float, high: float) -> Shape:
    """Return a picture in the middle of this room."""
    scale = min(wide / picture.width, high / picture.height)
    left = x + (wide - picture.width * scale) / 2
    inner = (
        make_element(each.name, *([each.words] if each.words else []), **each.attributes)
        for each in picture.shapes
    )
    return make_element("g", *inner, transform=f"translate({left:.1f} {y:.1f}) scale({scale:.3f})")


def _write(
    x: float, y: float, words: str, size: float, fill: str = INK, *, weight: str = "normal", anchor: str = "start"
) -> Shape:  # fmt: skip
    look = {"fill": fill, "font_weight": weight, "text_anchor": anchor}
    return make_element("text", words, x=x, y=y, font_size=size, **look)


def _shorten(words: str, most: int) -> str:
    return words.strip() if len(words) <= most else f"{words[: most - 1].strip()}…"
