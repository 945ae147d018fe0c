"""What the arithmetic of competition/ has to say beyond the table: statistics, fairness, and their plots."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from seatwise_server.competition.schedule import SoFar
from seatwise_server.league.report.facts import Facts
from seatwise_server.league.settings import League


@dataclass(frozen=True, slots=True)
class Part:
    """Words, a plot, a table, notes: whichever of them there are."""

    title: str = ""
    words: tuple[str, ...] = ()
    plot: Markup | None = None
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """One of the page."""

    id: str
    title: str
    parts: tuple[Part, ...]


def extra_sections(league: League, facts: Facts, so_far: SoFar) -> list[Section]:  # noqa: ARG001
    """Those for which there is something to say."""
    return []
