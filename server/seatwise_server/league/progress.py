"""Shows the progress of a league and the remaining time: a bar on a terminal, and lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from seatwise.output import PROGRESS_EVERY_S
from seatwise_server.competition.schedules.schedule import Schedule, SoFar
from seatwise_server.league.season_log import SeasonLog

BAR_EVERY_S = 0.2
"""Seconds between two updates of the bar. In a season of thousands of matches, computing its length takes milliseconds."""
MATCHES_BEFORE_ESTIMATE = 4
"""The number of matches of this run after which its pace is used for an estimate."""


@dataclass
class SeasonProgress:
    """A run of a league, as far as its progress is shown. Those that play it derive from this class."""

    schedule: Schedule
    season_log: SeasonLog
    played: int = field(default=0, kw_only=True)
    """Matches that ended in this run."""
    moves: int = field(default=0, kw_only=True)
    """Moves in the records that have arrived."""
    waits_for: set[str] = field(default_factory=set, kw_only=True)
    """Bots of other owners that do not attend."""

    @property
    def so_far(self) -> SoFar:
        """The season so far, in the form that the schedule needs."""
        return self.season_log.season.so_far


@dataclass(frozen=True, slots=True)
class Screen:
    """Shows an operator the progress of a league."""

    show: Callable[[SeasonProgress], None]
    print_message: Callable[[str], None]


def _describe_progress(runner: SeasonProgress, began_s: float) -> tuple[int, int, str]:
    """Return the matches that are over, those of the season, and a line with both, the pace of this run and the time left.

    Matches of earlier runs are not in the pace, because they may have run on another machine.
    """
    so_far = runner.so_far
    done, total = len(so_far.results), runner.schedule.expected_matches(so_far)
    per_s = runner.played / max(monotonic() - began_s, 0.001)
    parts = [f"{done} of {total} matches", f"{per_s:.2f} a second"]
    if runner.played >= MATCHES_BEFORE_ESTIMATE and done < total:
        parts.append(f"{_format_duration((total - done) / per_s)} left")
    if runner.waits_for:
        parts.append(f"waiting for {', '.join(sorted(runner.waits_for))} to attend")
    return done, total, ", ".join(parts)


@contextmanager
def show_progress(is_quiet: bool) -> Iterator[Screen]:
    """Show the progress on standard error inside the context."""
    if is_quiet:
        yield Screen(lambda _: None, _print_line)
    elif sys.stderr.isatty():
        with _show_bar() as screen:
            yield screen
    else:
        yield Screen(_make_line_display(), _print_line)


def _print_line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _make_line_display() -> Callable[[SeasonProgress], None]:
    began_s = monotonic()
    return _limit_rate(PROGRESS_EVERY_S, lambda runner: _print_line(_describe_progress(runner, began_s)[2]))


def _limit_rate(every_s: float, show: Callable[[SeasonProgress], None]) -> Callable[[SeasonProgress], None]:
    """Return a function that calls `show` at most once in `every_s` seconds, and not before the first of these spans is over."""
    due_s = monotonic() + every_s

    def show_now_and_then(runner: SeasonProgress) -> None:
        nonlocal due_s
        if monotonic() >= due_s:
            show(runner)
            due_s = monotonic() + every_s

    return show_now_and_then


@contextmanager
def _show_bar() -> Iterator[Screen]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    began_s = monotonic()
    columns = (BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting")

        def show(runner: SeasonProgress) -> None:
            done, total, text = _describe_progress(runner, began_s)
            bar.update(task, total=total, completed=done, description=text)

        yield Screen(_limit_rate(BAR_EVERY_S, show), lambda text: bar.console.print(text, markup=False))


def _format_duration(seconds: float) -> str:
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"about {round(seconds / 60)} min"
    return f"about {seconds / 3600:.1f} h"
