"""How far a league is: told as it goes on, and never at the cost of the league."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from seatwise_server.competition.schedules.schedule import SoFar
from seatwise_server.league import progress


class Season:
    """Counts how often it is asked how long it is: of thousands of matches that takes milliseconds."""

    def __init__(self) -> None:
        self.asked = 0
        self.results: dict[str, None] = {}

    def expected_matches(self, _: SoFar) -> int:
        self.asked += 1
        return 10_000


@pytest.mark.parametrize(("is_terminal", "most"), [(True, 2 * 10 / progress.BAR_EVERY_S), (False, 2)])
def test_a_long_season_is_looked_at_now_and_then(monkeypatch, is_terminal, most):
    now = 0.0
    monkeypatch.setattr(progress, "monotonic", lambda: now)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    season = Season()
    runner: Any = SimpleNamespace(
        schedule=season, so_far=SoFar(), season_log=SimpleNamespace(season=season), played=9, waits_for=()
    )
    with progress.show_progress(is_quiet=False) as screen:
        for _ in range(1000):
            now += 0.01
            screen.show(runner)
    assert 1 <= season.asked <= most
