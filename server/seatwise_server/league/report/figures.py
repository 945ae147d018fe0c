"""Draws the plots of a season's page."""

from __future__ import annotations

import math
import struct
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from seatwise_server.competition.numeric.linalg import add_up

# Axes: turn values into positions on paper, and choose round numbers for their labels.

STEPS = (1, 2, 5, 10)


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear axis; `start` and `end` are the positions of `low` and `high`."""

    low: float
    high: float
    start: float
    end: float

    def position_of(self, value: float) -> float:
        """Return the position at which the value is drawn."""
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self, count: int = 5) -> list[float]:
        """Return about `count` round numbers within the axis."""
        step = _round_step((self.high - self.low) / count)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]


def scale_for(values: Iterable[float], start: float, end: float) -> Scale:
    """Make an axis for all values, with a little room at both ends."""
    known = list(values) or [0.0, 1.0]
    low, high = min(known), max(known)
    room = (high - low) * 0.05 or 1.0
    return Scale(low - room, high + room, start, end)


def format_tick(value: float) -> str:
    """Return the label of a tick."""
    digits = next((digits for digits in (0, 1) if value * 10**digits == round(value * 10**digits)), 2)
    return f"{value:.{digits}f}"


def _round_step(about: float) -> float:
    power = 10.0 ** math.floor(math.log10(about))
    return power * next(step for step in STEPS if about <= step * power * 1.0001)


# Draws inline SVG: elements with escaped texts and attributes, in the colours of the page.

Shape = Markup


def make_element(name: str, *inside: str, **attributes: float | str) -> Shape:
    """Make one element. `class_` and `text_anchor` become class and text-anchor, and a number has one digit after the point."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_shorten_number(value))}"'
        for key, value in attributes.items()
    )
    return Markup(f"<{name}{told}>{''.join(escape(each) for each in inside)}</{name}>")


def _shorten_number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{round(value, 1):g}"


def draw_picture(width: float, height: float, title: str, shapes: Iterable[Shape]) -> Shape:
    """Make a whole picture. Screen readers read its title."""
    return make_element(
        "svg", make_element("title", title), *shapes,
        viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=title, width=width, height=height,
    )  # fmt: skip


def draw_line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Shape:
    """Draw a straight line."""
    return make_element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def draw_text(x: float, y: float, words: str, class_: str = "label", anchor: str = "start") -> Shape:
    """Draw a line of text."""
    return make_element("text", words, x=x, y=y, class_=class_, text_anchor=anchor)


def draw_dot(x: float, y: float, class_: str, told: str) -> Shape:
    """Draw a point that shows a description under the pointer."""
    return make_element("circle", make_element("title", told), cx=x, cy=y, r=4, class_=class_)


def draw_bar(x: float, y: float, width: float, height: float, class_: str, told: str) -> Shape:
    """Draw a filled rectangle."""
    size = {"width": max(width, 0), "height": max(height, 0)}
    return make_element("rect", make_element("title", told), x=x, y=y, **size, class_=class_)


def draw_path(places: Iterable[tuple[float, float]], class_: str, told: str) -> Shape:
    """Draw a line through all these points."""
    points = " ".join(f"{_shorten_number(x)},{_shorten_number(y)}" for x, y in places)
    return make_element("polyline", make_element("title", told), points=points, class_=class_)


FIGURE_WIDTH = 720.0
COLUMNS_WIDTH = 480.0
"""Of a figure that a narrow screen shows whole."""
NAMES_WIDTH = 150.0
"""The room for names on the left."""
ROW = 26.0
FOOT = 30.0
SERIES = 8
"""The number of colours. With more entrants they repeat, and the label at the end of a line tells the lines apart."""
MOST_BARS = 24


@dataclass(frozen=True, slots=True)
class Whisker:
    """A value with its interval."""

    name: str
    value: float
    low: float
    high: float


def draw_whiskers(title: str, rows: Sequence[Whisker], unit: str, middle: float | None = None) -> Shape:
    """Draw values with their intervals, one below the other. `middle` is the value of a vertical line, if there is one."""
    height = len(rows) * ROW + FOOT + 14
    foot = len(rows) * ROW
    x = scale_for([end for row in rows for end in (row.low, row.high)], NAMES_WIDTH, FIGURE_WIDTH - 20)
    shapes = [*_draw_grid(x, 0, foot), draw_text(FIGURE_WIDTH - 20, height - 2, unit, "unit", "end")]
    if middle is not None and x.low < middle < x.high:
        shapes.append(draw_line(x.position_of(middle), 0, x.position_of(middle), foot, "middle"))
    for number, row in enumerate(rows):
        y = number * ROW + ROW / 2
        told = f"{row.name}: {row.value:.2f}, 95 % interval {row.low:.2f} to {row.high:.2f}"
        shapes += [
            draw_text(NAMES_WIDTH - 10, y + 4, row.name, anchor="end"),
            draw_line(x.position_of(row.low), y, x.position_of(row.high), y, f"whisker s{number % SERIES}"),
            draw_dot(x.position_of(row.value), y, f"mark s{number % SERIES}", told),
        ]
    return draw_picture(FIGURE_WIDTH, height, title, shapes)


def draw_interval_curve(
    title: str, points: Sequence[tuple[float, float, float, float]], unit: str, below: str
) -> Shape:
    """Draw one line with the interval around it. A point is where it stands, its value, and where the interval begins and ends."""
    height, foot, right = 220.0, 180.0, COLUMNS_WIDTH - 12
    x = scale_for([at for at, *_ in points], 50, right)
    y = scale_for([value for _, *values in points for value in values], foot, 22)
    edge = [(at, high) for at, _, _, high in points] + [(at, low) for at, _, low, _ in reversed(points)]
    return draw_picture(COLUMNS_WIDTH, height, title, (
        *_draw_grid(x, 22, foot, 5), *_draw_rungs(y, 50, right),
        draw_path(((x.position_of(at), y.position_of(value)) for at, value in edge), "interval s0", "95 % interval"),
        draw_path(((x.position_of(at), y.position_of(value)) for at, value, *_ in points), "curve s0", unit),
        draw_text(16, 11, unit, "unit"), draw_text(right, height - 2, below, "unit", "end"),
    ))  # fmt: skip


def draw_columns(title: str, columns: Sequence[tuple[str, int]], below: str) -> Shape:
    """Draw a column for each label and its number."""
    height, foot = 180.0, 130.0
    each, most = COLUMNS_WIDTH / max(1, len(columns)), max((count for _, count in columns), default=1)
    y = Scale(0, most, foot, 18)
    shapes = [draw_line(0, foot, COLUMNS_WIDTH, foot, "axis")]
    for place, (label, count) in enumerate(columns):
        middle, top = (place + 0.5) * each, y.position_of(count)
        shapes.append(draw_text(middle, foot + 18, label, "tick", "middle"))
        if count:
            shapes += [
                draw_bar(place * each + 2, top, each - 4, foot - top, "mark s0", f"{label}: {count}"),
                draw_text(middle, top - 4, str(count), "tick", "middle"),
            ]
    shapes.append(draw_text(COLUMNS_WIDTH, height - 8, below, "unit", "end"))
    return draw_picture(COLUMNS_WIDTH, height, title, shapes)


def draw_curves(
    title: str, series: Mapping[str, Sequence[tuple[float, float]]], unit: str, below: str
) -> Shape:
    """Draw lines over the matches of a season, each labelled at its end."""
    height, foot, right = 300.0, 260.0, FIGURE_WIDTH - NAMES_WIDTH
    places = [place for line_ in series.values() for place in line_]
    x = scale_for([each for each, _ in places], 50, right)
    y = scale_for([each for _, each in places], foot, 22)
    shapes = [*_draw_grid(x, 22, foot), *_draw_rungs(y, 50, right)]
    ends = _spread_labels({name: y.position_of(line_[-1][1]) for name, line_ in series.items() if line_}, 14)
    for number, (name, line_) in enumerate(series.items()):
        if line_:
            class_ = f"s{number % SERIES}"
            drawn = [(x.position_of(a), y.position_of(b)) for a, b in line_]
            shapes += [
                draw_path(drawn, f"curve {class_}", name),
                draw_text(drawn[-1][0] + 6, ends[name] + 4, name, f"end {class_}"),
            ]
    words = draw_text(16, 11, unit, "unit"), draw_text(right, height - 2, below, "unit", "end")
    return draw_picture(FIGURE_WIDTH, height, title, [*shapes, *words])


def draw_histogram(title: str, values: Sequence[int], low: int, high: int, most: int, series: int) -> Shape:
    """Draw how often a bot made each number of points. All histograms of a page have the same axes, so that they can be compared."""
    width, height, foot = 340.0, 130.0, 100.0
    step = max(1, -(-(high - low + 1) // MOST_BARS))
    counts = Counter((value - low) // step for value in values)
    columns = (high - low) // step + 1
    each = (width - 40) / columns
    y = Scale(0, most, foot, 14)
    shapes = [
        draw_line(30, foot, width - 10, foot, "axis"),
        draw_text(24, foot + 4, "0", "tick", "end"),
        draw_text(24, 18, str(most), "tick", "end"),
    ]
    for column in range(columns):
        least, top = low + column * step, y.position_of(counts[column])
        told = f"{least}{f' to {least + step - 1}' if step > 1 else ''} points: {counts[column]} matches"
        if counts[column]:
            left, class_ = 30 + column * each + 0.5, f"bar s{series % SERIES}"
            shapes.append(draw_bar(left, top, each - 1, foot - top, class_, told))
    shapes += _draw_column_labels(low, high, step, each, foot)
    if values:
        mean = 30 + (add_up(values) / len(values) - low + 0.5) / step * each
        shapes.append(draw_line(mean, 14, mean, foot, "mean"))
    return draw_picture(width, height, title, shapes)


def highest_column(values: Sequence[Sequence[int]], low: int, high: int) -> int:
    """Return the height of the highest column of all histograms."""
    step = max(1, -(-(high - low + 1) // MOST_BARS))
    tops = (max(Counter((value - low) // step for value in each).values(), default=0) for each in values)
    return max(tops, default=1) or 1


# A heat map: a picture of one point for each pair, because ten thousand elements would make a large page.

HEAT_COLOURS = "000000", "b4471f", "d9976f", "8a8f93", "6fb3bb", "1f8492"
"""Of a pair that has not met, which is transparent, and from always behind to always ahead."""


def draw_heat_map(title: str, order: Sequence[str], shares: Mapping[tuple[str, str], float]) -> Shape:
    """Draw the share of matches in which the row's entrant was ahead of the column's, for all pairs that have met."""
    places, size = {name: place for place, name in enumerate(order)}, len(order)
    rows = [bytearray(size + 1) for _ in order]  # each begins with a zero: the row is not filtered
    for (one, other), share in shares.items():
        if one in places and other in places:
            rows[places[one]][places[other] + 1] = 1 + min(4, int(5 * share))
    ticks = [place for place in Scale(1, size, 0, 1).ticks(6) if place >= 1]
    room, each = 40.0, 540 / size
    source = f"data:image/png;base64,{b64encode(_write_png(size, b''.join(rows))).decode()}"
    return draw_picture(600, 600, title, (
        make_element("image", href=source, x=room, y=room, width=540, height=540, class_="heat"),
        *(draw_text(room + (tick - 0.5) * each, room - 8, format_tick(tick), "tick", "middle") for tick in ticks),
        *(draw_text(room - 8, room + (tick - 0.5) * each + 4, format_tick(tick), "tick", "end") for tick in ticks),
    ))  # fmt: skip


def _write_png(size: int, rows: bytes) -> bytes:
    """Return a square picture of the palette of `HEAT_COLOURS`, of which the first colour is transparent."""
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 3, 0, 0, 0)), (b"PLTE", bytes.fromhex("".join(HEAT_COLOURS))),
        (b"tRNS", b"\0"), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""),
    )  # fmt: skip
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _draw_column_labels(low: int, high: int, step: int, each: float, foot: float) -> list[Shape]:
    marks = Scale(low, max(high, low + 1), 0, 1).ticks(6)
    return [
        draw_text(30 + ((mark - low) // step + 0.5) * each, foot + 18, format_tick(mark), "tick", "middle")
        for mark in marks
        if mark == round(mark)
    ]


def _draw_grid(x: Scale, top: float, foot: float, count: int = 8) -> list[Shape]:
    shapes: list[Shape] = []
    for mark in x.ticks(count):
        at = x.position_of(mark)
        shapes += (
            draw_line(at, top, at, foot, "grid"),
            draw_text(at, foot + 16, format_tick(mark), "tick", "middle"),
        )
    return shapes


def _draw_rungs(y: Scale, left: float, right: float) -> list[Shape]:
    shapes: list[Shape] = []
    for mark in y.ticks(5):
        at = y.position_of(mark)
        shapes += (
            draw_line(left, at, right, at, "grid"),
            draw_text(left - 6, at + 4, format_tick(mark), "tick", "end"),
        )
    return shapes


def _spread_labels(places: Mapping[str, float], least: float) -> dict[str, float]:
    """Return the same labels in the same order, moved so that they do not overlap."""
    moved: dict[str, float] = {}
    last = -least
    for name, place in sorted(places.items(), key=lambda named: named[1]):
        last = moved[name] = max(place, last + least)
    return moved
