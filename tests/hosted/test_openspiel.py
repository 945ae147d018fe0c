"""The family of docs/examples/openspiel: each registered game is hosted or refused, and a league is played, verified, reported."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from doubles.hosted_games import EXAMPLES, use_game
from hosted.packages import install_package, run_seatwise

import seatwise
from seatwise.testing import check_game
from seatwise_referee.hosted.hosted_rules import HostedRules
from seatwise_referee.verify import verify_lines

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed: pip install open-spiel")

FOLDER = EXAMPLES / "openspiel"
sys.path.insert(0, str(FOLDER))
import seatwise_openspiel  # noqa: E402

sys.path.remove(str(FOLDER))

GAMES = {game.name: game for game in seatwise_openspiel.list_games()}
WANTED = ("hearts", "gin-rummy", "leduc-poker", "cribbage")


def test_every_registered_game_is_hosted_or_refused_with_a_sentence() -> None:
    games = {
        game.name: game for game in seatwise_openspiel.list_games()
    }  # other tests may have registered more by now
    told = {kind.short_name: seatwise_openspiel.why_refused(kind) for kind in pyspiel.registered_games()}
    hosted = {f"openspiel-{name.replace('_', '-')}" for name, why in told.items() if not why}
    assert hosted == set(games)
    assert len(hosted) >= 24
    assert {f"openspiel-{name}" for name in WANTED} <= hosted
    assert all(len(why.split()) > 3 for why in told.values() if why)
    assert set(seatwise_openspiel.NOT_SUITABLE) <= told.keys()
    for game in games.values():
        HostedRules(game)


@pytest.mark.parametrize("name", WANTED)
def test_a_game_is_played_and_verified(monkeypatch: Any, tmp_path: Path, name: str) -> None:
    kit = use_game(monkeypatch, GAMES[f"openspiel-{name}"])
    seats = kit.game.table_sizes[0]
    seatwise.play(["random"] * seats, game=kit.name, seed=2, records=tmp_path / "out")
    [verdict] = verify_lines((tmp_path / "out").read_bytes().splitlines())
    assert verdict.fault is None


def test_spectators_see_nothing_before_the_end() -> None:
    rules = HostedRules(GAMES["openspiel-hearts"])
    state = rules.deal(4, bytes(32), {})
    while state.asked is not None:
        assert rules.view(state, None).text == "{}"
        state = rules.play(state, state.asked, rules.default_move(state, state.asked))
    assert rules.view(state, None).data.keys() == {"end"}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", GAMES)
def test_every_game_of_the_family_is_right(name: str) -> None:
    report = check_game(GAMES[name], matches=2)
    assert [fault for fault in report.faults if "slowest steps" not in fault] == []
    assert report.secrets == "not checked: the game has no resample_state"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_league_at_hearts_is_played_verified_and_reported(tmp_path: Path) -> None:
    install_package(
        tmp_path,
        "seatwise_openspiel",
        (FOLDER / "seatwise_openspiel.py").read_text(),
        "openspiel = seatwise_openspiel:list_games",
    )
    shutil.copy(FOLDER / "hearts.toml", tmp_path)
    played = run_seatwise(tmp_path, "league", "run", "hearts.toml", "--results", "results", timeout_s=300)
    assert played.returncode == 0, played.stderr
    assert run_seatwise(tmp_path, "verify", "results/season.bundle").returncode == 0
    (elsewhere := tmp_path / "elsewhere").mkdir()
    verified = run_seatwise(elsewhere, "verify", "../results/season.bundle")
    assert verified.returncode == 2
    assert "not checked: install seatwise-openspiel" in verified.stdout
    page, *_ = (tmp_path / "results").rglob("*.html")
    assert "OpenSpiel" in page.read_text() or "Hearts" in page.read_text()
