"""Drawing inline SVG: elements whose texts and attributes are escaped, and colours that follow the page's."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape

Shape = Markup


def element(name: str, *inside: str, **attributes: float | str) -> Shape:
    """One element; `class_` and `text_anchor` become class and text-anchor."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items()
    )
    return Markup(f"<{name}{told}>{''.join(escape(each) for each in inside)}</{name}>")


def picture(width: float, height: float, title: str, shapes: Iterable[Shape]) -> Shape:
    """A whole picture; its title is what is read out where it is not seen."""
    return element(
        "svg", element("title", title), *shapes,
        viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=title, width=width, height=height,
    )  # fmt: skip


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Shape:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def text(x: float, y: float, words: str, class_: str = "label", anchor: str = "start") -> Shape:
    """A line of text."""
    return element("text", words, x=x, y=y, class_=class_, text_anchor=anchor)


def dot(x: float, y: float, class_: str, told: str) -> Shape:
    """A point that tells what it is when pointed at."""
    return element("circle", element("title", told), cx=x, cy=y, r=4, class_=class_)


def bar(x: float, y: float, width: float, height: float, class_: str, told: str) -> Shape:
    """A filled rectangle."""
    return element(
        "rect", element("title", told), x=x, y=y, width=max(width, 0), height=max(height, 0), class_=class_
    )


def path(places: Iterable[tuple[float, float]], class_: str, told: str) -> Shape:
    """A line through all of them."""
    points = " ".join(f"{x:g},{y:g}" for x, y in places)
    return element("polyline", element("title", told), points=points, class_=class_)
