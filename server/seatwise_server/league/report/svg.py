"""Draws inline SVG: elements with escaped texts and attributes, in the colours of the page."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape

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
    return make_element(
        "rect",
        make_element("title", told),
        x=x,
        y=y,
        width=max(width, 0),
        height=max(height, 0),
        class_=class_,
    )


def draw_path(places: Iterable[tuple[float, float]], class_: str, told: str) -> Shape:
    """Draw a line through all these points."""
    points = " ".join(f"{_shorten_number(x)},{_shorten_number(y)}" for x, y in places)
    return make_element("polyline", make_element("title", told), points=points, class_=class_)
