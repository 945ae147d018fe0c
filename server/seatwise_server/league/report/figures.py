"""Draws the plots of a season's page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seatwise_server.competition.numeric.linalg import add_up
from seatwise_server.league.report.scale import Scale, format_tick, scale_for
from seatwise_server.league.report.svg import (
    Shape,
    draw_bar,
    draw_dot,
    draw_line,
    draw_path,
    draw_picture,
    draw_text,
)

FIGURE_WIDTH = 720.0
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
    told: str = ""
    """A text beside the value."""


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


def draw_curves(
    title: str, series: Mapping[str, Sequence[tuple[float, float]]], unit: str, below: str
) -> Shape:
    """Draw lines over the matches of a season, each labelled at its end."""
    height, foot = 300.0, 260.0
    places = [place for line_ in series.values() for place in line_]
    x = scale_for([each for each, _ in places], 50, FIGURE_WIDTH - NAMES_WIDTH)
    y = scale_for([each for _, each in places], foot, 22)
    shapes = [*_draw_grid(x, 22, foot), *_draw_rungs(y, 50, FIGURE_WIDTH - NAMES_WIDTH)]
    ends = _spread_labels({name: y.position_of(line_[-1][1]) for name, line_ in series.items() if line_}, 14)
    for number, (name, line_) in enumerate(series.items()):
        if line_:
            class_ = f"s{number % SERIES}"
            drawn = [(x.position_of(a), y.position_of(b)) for a, b in line_]
            shapes += [
                draw_path(drawn, f"curve {class_}", name),
                draw_text(drawn[-1][0] + 6, ends[name] + 4, name, f"end {class_}"),
            ]
    shapes += [
        draw_text(16, 11, unit, "unit"),
        draw_text(FIGURE_WIDTH - NAMES_WIDTH, height - 2, below, "unit", "end"),
    ]
    return draw_picture(FIGURE_WIDTH, height, title, shapes)


def draw_histogram(title: str, values: Sequence[int], low: int, high: int, most: int, series: int) -> Shape:
    """Draw how often a bot made each number of points.

    All histograms of a page have the same axes, so that they can be compared.
    """
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
            shapes.append(
                draw_bar(30 + column * each + 0.5, top, each - 1, foot - top, f"bar s{series % SERIES}", told)
            )
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


def _draw_column_labels(low: int, high: int, step: int, each: float, foot: float) -> list[Shape]:
    marks = Scale(low, max(high, low + 1), 0, 1).ticks(6)
    return [
        draw_text(30 + ((mark - low) // step + 0.5) * each, foot + 18, format_tick(mark), "tick", "middle")
        for mark in marks
        if mark == round(mark)
    ]


def _draw_grid(x: Scale, top: float, foot: float) -> list[Shape]:
    return [
        shape
        for mark in x.ticks(8)
        for shape in (
            draw_line(x.position_of(mark), top, x.position_of(mark), foot, "grid"),
            draw_text(x.position_of(mark), foot + 16, format_tick(mark), "tick", "middle"),
        )
    ]


def _draw_rungs(y: Scale, left: float, right: float) -> list[Shape]:
    return [
        shape
        for mark in y.ticks(5)
        for shape in (
            draw_line(left, y.position_of(mark), right, y.position_of(mark), "grid"),
            draw_text(left - 6, y.position_of(mark) + 4, format_tick(mark), "tick", "end"),
        )
    ]


def _spread_labels(places: Mapping[str, float], least: float) -> dict[str, float]:
    """Return the same labels in the same order, moved so that they do not overlap."""
    moved: dict[str, float] = {}
    last = -least
    for name, place in sorted(places.items(), key=lambda named: named[1]):
        last = moved[name] = max(place, last + least)
    return moved
