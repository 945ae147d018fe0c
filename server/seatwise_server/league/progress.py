"""Shows how far a league is, and when it will be over: a bar on a terminal, a line now and then anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatwise_server.league.runner import Runner

EVERY_S = 5.0
"""Between two lines,"""
BAR_EVERY_S = 0.2
"""and between two looks of the bar: how long a season is takes milliseconds to find out where it has thousands of matches."""
KNOWN_AFTER = 4
"""Matches of this run, after which its pace says something about the rest."""


@dataclass(frozen=True, slots=True)
class Screen:
    """Where an operator sees what goes on."""

    show: Callable[[Runner], None]
    """How far it is."""
    tell: Callable[[str], None]
    """A message to the operator."""


class Pace:
    """How quick this run is. What was played before it says nothing: another day, another machine."""

    def __init__(self) -> None:
        self._began = monotonic()

    def per_s(self, played: int) -> float:
        """Return the matches of this run in a second."""
        return played / max(monotonic() - self._began, 0.001)

    def describe_progress(self, runner: Runner) -> str:
        """Return one line: how far the season is, how fast it goes, and how long it will take."""
        done, total = count_done(runner), runner.schedule.expected_matches(runner.so_far)
        parts = [f"{done} of {total} matches", f"{self.per_s(runner.played):.2f} a second"]
        if runner.played >= KNOWN_AFTER and done < total:
            parts.append(f"{_format_duration((total - done) / self.per_s(runner.played))} left")
        if runner.waits_for:
            parts.append(f"waiting for {', '.join(sorted(runner.waits_for))} to attend")
        return ", ".join(parts)


def count_done(runner: Runner) -> int:
    """Count the matches of the season that count, in this run or an earlier one."""
    return len(runner.season_log.season.results)


@contextmanager
def show_progress(is_quiet: bool) -> Iterator[Screen]:
    """Show the progress on standard error while the context lasts."""
    if is_quiet:
        yield Screen(lambda _: None, _print_line)
    elif sys.stderr.isatty():
        with _show_bar() as screen:
            yield screen
    else:
        yield Screen(_make_line_display(), _print_line)


def _print_line(told: str) -> None:
    print(told, file=sys.stderr, flush=True)


def _make_line_display() -> Callable[[Runner], None]:
    pace = Pace()
    return _limit_rate(EVERY_S, lambda runner: _print_line(pace.describe_progress(runner)))


def _limit_rate(every_s: float, show: Callable[[Runner], None]) -> Callable[[Runner], None]:
    """Not before so long, and after each time not before as long again."""
    due_s = monotonic() + every_s

    def show_now_and_then(runner: Runner) -> None:
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

        def show(runner: Runner) -> None:
            total = runner.schedule.expected_matches(runner.so_far)
            bar.update(
                task, total=total, completed=count_done(runner), description=pace.describe_progress(runner)
            )

        yield Screen(_limit_rate(BAR_EVERY_S, show), lambda told: bar.console.print(told, markup=False))


def _format_duration(seconds: float) -> str:
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"about {round(seconds / 60)} min"
    return f"about {seconds / 3600:.1f} h"
