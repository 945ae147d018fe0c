"""A position of a finished match as a picture of 1200 x 630, for sites that show a link: as SVG, and as PNG with the extra `pictures`."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from typing import Any, Final, cast

from cachetools import LRUCache
from starlette.requests import Request
from starlette.responses import Response

from seatwise.kits.frames import Frame, count_totals
from seatwise.replay import MatchReplay
from seatwise_referee.games.ubongo.geometry import cells as cells_of
from seatwise_referee.hosted.drawing import describe_drawing
from seatwise_server.league.report.figures import Shape, make_element
from seatwise_server.limits import TokenBuckets
from seatwise_server.pages.match_page import MatchPage
from seatwise_server.pages.page_responses import game_title, has_png, note_peer
from seatwise_server.play.game_views import ViewsFailed
from seatwise_server.refusal import Refusal
from seatwise_server.rest.http_call import FOREVER, caching_headers, is_unchanged, unchanged_response

WIDTH: Final = 1200
HEIGHT: Final = 630
MADE_PER_SECOND: Final = 10.0
KEPT_PICTURES: Final = 128
TYPES: Final = {"svg": "image/svg+xml", "png": "image/png"}
INK, SOFT, PAPER, CARD, RULE = "#1d2327", "#545e65", "#fbfaf7", "#ffffff", "#cfcfc6"
CARD_COLOURS = {"R": "#c8452f", "B": "#2f66b8", "G": "#3f7d2e", "Y": "#d9ab1f", "K": "#6d7379"}
SYMBOL_COLOURS = dict(
    zip(
        "ABCDEFGH",
        ("#c8452f", "#2f66b8", "#3f7d2e", "#a87f00", "#8148b8", "#0a7f7b", "#b03a76", INK),
        strict=True,
    )
)
MOST_LINES: Final = 7
Drawing = tuple[float, float, list[Shape]]
"""Its width, its height and its shapes."""


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
        if (
            kind not in TYPES
            or (kind == "png" and not has_png())
            or not re.fullmatch(r"decisive|[0-9]{1,6}", step)
        ):
            raise Refusal("NOT_FOUND", f"there is no picture {file[:80]!r}")
        try:
            replay = (await self._matches.find_replay(name)).replay
        except ViewsFailed as failed:
            raise Refusal("NOT_FOUND", f"its steps cannot be shown ({failed})") from None
        number = replay.decisive_step if step == "decisive" else int(step)
        if number >= len(replay.frames):
            raise Refusal("NOT_FOUND", f"{name} has {len(replay.frames)} steps")
        version, how_long = f"{replay.chain[:32]}-{file}", f"public, {FOREVER}"
        if is_unchanged(request, version):
            return unchanged_response(version, how_long)
        picture = self._kept.get((name, file))
        if picture is None:
            if self._rate.measure_wait("", 1):
                raise Refusal(
                    "RATE_EXCEEDED", "the server makes other pictures now; ask again", retry_after="1"
                )
            self._rate.take_units("", 1)
            picture = self._kept[name, file] = await asyncio.to_thread(_make_picture, replay, number, kind)
        headers = caching_headers(version, how_long) | {"cross-origin-resource-policy": "cross-origin"}
        return Response(picture, headers=headers, media_type=TYPES[kind])


def _make_picture(replay: MatchReplay, step: int, kind: str) -> bytes:
    svg = draw_position(replay, step)
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
    wide, high = (WIDTH - 60) / columns, (HEIGHT - 150) / rows
    shapes = [
        make_element("rect", width=WIDTH, height=HEIGHT, fill=PAPER),
        _write(40, 58, game_title(f"games/{replay.game}"), 38, weight="bold"),
        _write(WIDTH - 40, 58, "Seatwise", 26, SOFT, anchor="end"),
        _write(40, 102, _shorten(f"{frame.says} {frame.turn}", 78), 26, SOFT),
    ]
    for seat, name in enumerate(replay.names):
        x, y = 30 + seat % columns * wide, 130 + seat // columns * high
        shapes += _draw_seat(
            replay.game,
            frame,
            seat,
            name,
            totals[seat],
            (x, y, wide, high),
            is_first=totals[seat] == max(totals),
        )
    return make_element(
        "svg", make_element("title", frame.says), *shapes, xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {HEIGHT}", width=WIDTH, height=HEIGHT, font_family="DejaVu Sans, Arial, sans-serif",
    )  # fmt: skip


def _draw_seat(
    game: str,
    frame: Frame,
    seat: int,
    name: str,
    points: int,
    place: tuple[float, float, float, float],
    *,
    is_first: bool,
) -> Iterator[Shape]:
    x, y, wide, high = place
    yield make_element(
        "rect", x=x + 8, y=y + 4, width=wide - 16, height=high - 12, rx=10, fill=CARD,
        stroke=INK if is_first else RULE, stroke_width=3 if is_first else 1,
    )  # fmt: skip
    yield _write(x + 28, y + 42, _shorten(name, int(wide / 21)), 25, weight="bold")
    yield _write(x + wide - 28, y + 42, str(points), 28, weight="bold", anchor="end")
    width, height, shapes = draw_table_of(game, frame, seat)
    scale = min((wide - 56) / width, (high - 80) / height)
    left = x + (wide - width * scale) / 2
    yield make_element("g", *shapes, transform=f"translate({left:.1f} {y + 56:.1f}) scale({scale:.3f})")


def draw_table_of(game: str, frame: Frame, seat: int) -> Drawing:
    """Return what lies before a seat; of a game from outside the first lines of its drawing as text."""
    table, own = cast("Any", frame.table), cast("Any", frame.own[seat])
    if game == "ugo":
        return _draw_kingdom(table["kingdoms"][seat]["sections"])
    if game == "ubongo" and table.get("built"):
        return _draw_layout(table["built"][seat]["layout"], dict(table["built"][seat]["sides"]))
    if game == "ubongo":
        return _draw_layout(own["layout"], dict(own["hand"])) if own else (1.0, 1.0, [])
    items = [*table.get("drawing", ()), *((own or {}).get("drawing", ()))]
    lines = describe_drawing([item for item in items if item.get("owner") == seat])[:MOST_LINES]
    told = (_write(0, 20 + 24 * line, _shorten(words, 46), 17, SOFT) for line, words in enumerate(lines))
    return 480.0, 24.0 * MOST_LINES, list(told)


def _draw_kingdom(sections: list[list[str]]) -> Drawing:
    shapes = []
    for place, stack in enumerate(sections):
        shapes.append(
            make_element("rect", x=place * 63.5, width=56, height=116, rx=5, fill="none", stroke=RULE)
        )
        gap = min(15, 56 / max(1, len(stack) - 1))
        for number, card in enumerate(stack):
            x, y = place * 63.5 + 13, 8 + number * gap
            colour = INK if card[0] == "Y" else CARD
            shapes += [
                make_element(
                    "rect",
                    x=x,
                    y=y,
                    width=30,
                    height=44,
                    rx=4,
                    fill=CARD_COLOURS.get(card[0], SOFT),
                    stroke="#00000066",
                ),
                _write(x + 15, y + 18, card[1:], 17, colour, weight="bold", anchor="middle"),
                _write(x + 9, y + 38, card[0], 10, colour, weight="bold", anchor="middle"),
            ]
    return 310.0, 116.0, shapes


def _draw_layout(layout: list[list[Any]], sides: dict[str, str]) -> Drawing:
    cells = {
        (cell, symbol)
        for card, *at in layout
        for cell, symbol in zip(cells_of(*at), sides[card], strict=True)
    }
    if not cells:
        return 1.0, 1.0, []
    left, top = (min(cell[axis] for cell, _ in cells) for axis in (0, 1))
    right, bottom = (max(cell[axis] for cell, _ in cells) + 1 for axis in (0, 1))
    shapes = []
    for _, x, y, turn in layout:
        wide, high = (3, 2) if turn % 2 else (2, 3)
        shapes.append(
            make_element(
                "rect", x=(x - left) * 20 + 1, y=(y - top) * 20 + 1, width=wide * 20 - 2, height=high * 20 - 2, rx=4,
                fill=PAPER, stroke=INK,
            )
        )  # fmt: skip
    for (x, y), symbol in sorted(cells):
        colour = SYMBOL_COLOURS.get(symbol, INK)
        shapes.append(
            _write(
                (x - left) * 20 + 10, (y - top) * 20 + 16, symbol, 15, colour, weight="bold", anchor="middle"
            )
        )
    return max((right - left) * 20.0, 120.0), max((bottom - top) * 20.0, 80.0), shapes


def _write(
    x: float,
    y: float,
    words: str,
    size: float,
    fill: str = INK,
    *,
    weight: str = "normal",
    anchor: str = "start",
) -> Shape:
    return make_element(
        "text", words, x=x, y=y, font_size=size, fill=fill, font_weight=weight, text_anchor=anchor
    )


def _shorten(words: str, most: int) -> str:
    return words.strip() if len(words) <= most else f"{words[: most - 1].strip()}…"
