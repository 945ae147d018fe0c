"""Shows the progress of a league and the remaining time: a bar on a terminal, and lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

from seatwise.output import PROGRESS_EVERY_S
from seatwise_server.competition.schedules.schedule import Schedule, SoFar

BAR_EVERY_S = 0.2
"""Seconds between two updates of the bar. In a season of thousands of matches, computing its length takes milliseconds."""
MATCHES_BEFORE_ESTIMATE = 4
"""The number of matches of this run after which its pace is used for an estimate."""


class SeasonProgress(Protocol):
    """A run of a league, as far as its progress is shown."""

    @property
    def schedule(self) -> Schedule:
        """The schedule of the league."""

    @property
    def so_far(self) -> SoFar:
        """The results so far."""

    @property
    def played(self) -> int:
        """The number of matches that ended in this run."""

    @property
    def waits_for(self) -> Collection[str]:
        """Bots of other owners that do not attend."""


@dataclass(frozen=True, slots=True)
class Screen:
    """Shows an operator the progress of a league."""

    show: Callable[[SeasonProgress], None]
    """Shows the progress."""
    print_message: Callable[[str], None]
    """Shows a message."""


class Pace:
    """The pace of this run. Matches of earlier runs are not counted, because they may have run on another machine."""

    def __init__(self) -> None:
        self._began = monotonic()

    def per_s(self, played: int) -> float:
        """Return the matches per second of this run."""
        return played / max(monotonic() - self._began, 0.001)

    def describe_progress(self, runner: SeasonProgress) -> str:
        """Return one line: the progress of the season, its pace, and the estimated time left."""
        done, total = count_done(runner), runner.schedule.expected_matches(runner.so_far)
        parts = [f"{done} of {total} matches", f"{self.per_s(runner.played):.2f} a second"]
        if runner.played >= MATCHES_BEFORE_ESTIMATE and done < total:
            parts.append(f"{_format_duration((total - done) / self.per_s(runner.played))} left")
        if runner.waits_for:
            parts.append(f"waiting for {', '.join(sorted(runner.waits_for))} to attend")
        return ", ".join(parts)


def count_done(runner: SeasonProgress) -> int:
    """Return the number of matches with a result, in this run or an earlier one."""
    return len(runner.so_far.results)


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
    pace = Pace()
    return _limit_rate(PROGRESS_EVERY_S, lambda runner: _print_line(pace.describe_progress(runner)))


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

    pace = Pace()
    columns = (BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting")

        def show(runner: SeasonProgress) -> None:
            total = runner.schedule.expected_matches(runner.so_far)
            completed = count_done(runner)
            bar.update(task, total=total, completed=completed, description=pace.describe_progress(runner))

        yield Screen(_limit_rate(BAR_EVERY_S, show), lambda text: bar.console.print(text, markup=False))


def _format_duration(seconds: float) -> str:
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"about {round(seconds / 60)} min"
    return f"about {seconds / 3600:.1f} h"
