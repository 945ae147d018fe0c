"""The plots of a season's page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seatwise_server.league.report.scale import Scale, scale_for, shown
from seatwise_server.league.report.svg import Shape, bar, dot, line, path, picture, text

WIDTH = 720.0
NAMES = 150.0
"""Room for names at the left."""
ROW = 26.0
FOOT = 30.0
SERIES = 8
"""Colours; with more entrants they are used again, and the label at the end of a line tells which it is."""
MOST_BARS = 24


@dataclass(frozen=True, slots=True)
class Whisker:
    """A value with its interval."""

    name: str
    value: float
    low: float
    high: float
    told: str = ""
    """Beside it."""


def whiskers(title: str, rows: Sequence[Whisker], unit: str, middle: float | None = None) -> Shape:
    """Values with their intervals, one below the other."""
    height = len(rows) * ROW + FOOT + 14
    foot = len(rows) * ROW
    x = scale_for([end for row in rows for end in (row.low, row.high)], NAMES, WIDTH - 20)
    shapes = [*_draw_grid(x, 0, foot), text(WIDTH - 20, height - 2, unit, "unit", "end")]
    if middle is not None and x.low < middle < x.high:
        shapes.append(line(x.at(middle), 0, x.at(middle), foot, "middle"))
    for number, row in enumerate(rows):
        y = number * ROW + ROW / 2
        told = f"{row.name}: {row.value:.2f}, 95 % interval {row.low:.2f} to {row.high:.2f}"
        shapes += [
            text(NAMES - 10, y + 4, row.name, anchor="end"),
            line(x.at(row.low), y, x.at(row.high), y, f"whisker s{number % SERIES}"),
            dot(x.at(row.value), y, f"mark s{number % SERIES}", told),
        ]
    return picture(WIDTH, height, title, shapes)


def curves(title: str, series: Mapping[str, Sequence[tuple[float, float]]], unit: str, below: str) -> Shape:
    """Lines over the matches of a season, each named at its end."""
    height, foot = 300.0, 260.0
    places = [place for line_ in series.values() for place in line_]
    x = scale_for([each for each, _ in places], 50, WIDTH - NAMES)
    y = scale_for([each for _, each in places], foot, 22)
    shapes = [*_draw_grid(x, 22, foot), *_draw_rungs(y, 50, WIDTH - NAMES)]
    ends = _spread_labels({name: y.at(line_[-1][1]) for name, line_ in series.items() if line_}, 14)
    for number, (name, line_) in enumerate(series.items()):
        if line_:
            class_ = f"s{number % SERIES}"
            drawn = [(x.at(a), y.at(b)) for a, b in line_]
            shapes += [
                path(drawn, f"curve {class_}", name),
                text(drawn[-1][0] + 6, ends[name] + 4, name, f"end {class_}"),
            ]
    shapes += [text(16, 11, unit, "unit"), text(WIDTH - NAMES, height - 2, below, "unit", "end")]
    return picture(WIDTH, height, title, shapes)


def histogram(title: str, values: Sequence[int], low: int, high: int, most: int, series: int) -> Shape:
    """How often how many points; all of a page have the same axes, so that they can be compared."""
    width, height, foot = 340.0, 130.0, 100.0
    step = max(1, -(-(high - low + 1) // MOST_BARS))
    counts = Counter((value - low) // step for value in values)
    columns = (high - low) // step + 1
    each = (width - 40) / columns
    y = Scale(0, most, foot, 14)
    shapes = [
        line(30, foot, width - 10, foot, "axis"),
        text(24, foot + 4, "0", "tick", "end"),
        text(24, 18, str(most), "tick", "end"),
    ]
    for column in range(columns):
        least, top = low + column * step, y.at(counts[column])
        told = f"{least}{f' to {least + step - 1}' if step > 1 else ''} points: {counts[column]} matches"
        if counts[column]:
            shapes.append(
                bar(30 + column * each + 0.5, top, each - 1, foot - top, f"bar s{series % SERIES}", told)
            )
    shapes += _draw_column_labels(low, high, step, each, foot)
    if values:
        mean = 30 + (sum(values) / len(values) - low + 0.5) / step * each
        shapes.append(line(mean, 14, mean, foot, "mean"))
    return picture(width, height, title, shapes)


def fullest(values: Sequence[Sequence[int]], low: int, high: int) -> int:
    """The highest column of all histograms."""
    step = max(1, -(-(high - low + 1) // MOST_BARS))
    tops = (max(Counter((value - low) // step for value in each).values(), default=0) for each in values)
    return max(tops, default=1) or 1


def _draw_column_labels(low: int, high: int, step: int, each: float, foot: float) -> list[Shape]:
    marks = Scale(low, max(high, low + 1), 0, 1).ticks(6)
    return [
        text(30 + ((mark - low) // step + 0.5) * each, foot + 18, shown(mark), "tick", "middle")
        for mark in marks
        if mark == round(mark)
    ]


def _draw_grid(x: Scale, top: float, foot: float) -> list[Shape]:
    return [
        shape
        for mark in x.ticks(8)
        for shape in (
            line(x.at(mark), top, x.at(mark), foot, "grid"),
            text(x.at(mark), foot + 16, shown(mark), "tick", "middle"),
        )
    ]


def _draw_rungs(y: Scale, left: float, right: float) -> list[Shape]:
    return [
        shape
        for mark in y.ticks(5)
        for shape in (
            line(left, y.at(mark), right, y.at(mark), "grid"),
            text(left - 6, y.at(mark) + 4, shown(mark), "tick", "end"),
        )
    ]


def _spread_labels(places: Mapping[str, float], least: float) -> dict[str, float]:
    """The same in the same order, moved so that labels do not lie upon each other."""
    moved: dict[str, float] = {}
    last = -least
    for name, place in sorted(places.items(), key=lambda named: named[1]):
        last = moved[name] = max(place, last + least)
    return moved
