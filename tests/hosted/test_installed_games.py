"""Packages that name a game in an entry point: found, hosted, or refused with a sentence, and no one stops the others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from doubles.hosted_games import EXAMPLES
from hosted.packages import install_package, run_seatwise

from seatwise.child_process import FACTS_VARIABLE, others_environment
from seatwise.kits.hosted import installed_games
from seatwise_referee.hosted.hosted_game import GameFault

GOOD = """
from seatwise.hosting import HostedGame, HostedKit
class Coin(HostedGame):
    name = "coin"
    def start_match(self, seats, options, chance): return chance.draw_outcome([("heads", 1), ("tails", 1)])
    def find_turn(self, state): return None if state in ("right", "wrong") else 0
    def list_moves(self, state): return ["heads", "tails"]
    def play_move(self, state, move, chance): return "right" if move == state else "wrong"
    def show_state(self, state, seat): return {"over": state in ("right", "wrong")}
    def count_points(self, state): return [1, 0] if state == "right" else [0, 1]
class Second(Coin):
    name = "second-coin"
def family():
    return [Coin, HostedKit(Second()), None]
"""


@pytest.mark.parametrize("line", ["verify out --json", "replay out --json"])
def test_what_a_game_prints_is_no_answer(tmp_path: Path, line: str) -> None:
    loud = "print('imported')" + GOOD.replace(
        "count_points(self, state): ", "count_points(self, state):\n        print('counting')\n        "
    )
    install_package(tmp_path, "loud", loud, "coin = loud:Coin")
    assert run_seatwise(tmp_path, "play", "coin", "random", "random", "--records", "out").returncode == 0
    shown = run_seatwise(tmp_path, *line.split())
    assert json.loads(shown.stdout)
    assert {"imported", "counting"} <= set(shown.stderr.split())


def test_a_process_of_a_game_that_prints_does_not_garble_the_report_of_its_check(tmp_path: Path) -> None:
    loud = "import os\nos.system('echo imported')" + GOOD.replace(
        "count_points(self, state): ",
        "count_points(self, state):\n        os.write(1, b'counting ')\n        ",
    )
    install_package(tmp_path, "loud", loud, "coin = loud:Coin")
    shown = run_seatwise(tmp_path, "check-game", "coin", "--matches", "4", "--json")
    assert json.loads(shown.stdout)["faults"] == []
    assert {"imported", "counting"} <= set(shown.stderr.split())


def test_games_are_found_played_and_verified_and_wrong_packages_are_refused(tmp_path: Path) -> None:
    install_package(tmp_path, "two_coins", GOOD, "coins = two_coins:family")
    install_package(tmp_path, "broken", "raise SystemExit('no')", "broken = broken:Game")
    install_package(tmp_path, "missing", "", "missing = missing:Game")
    install_package(tmp_path, "thief", GOOD.replace('"coin"', '"ugo"'), "thief = thief:Coin")
    listed = run_seatwise(tmp_path, "games", "--json")
    assert listed.returncode == 0, listed.stderr
    told = json.loads(listed.stdout)
    assert [each["game"] for each in told["games"]] == ["ugo", "ubongo", "coin", "second-coin"]
    refused = {each["entry"]: each["why"] for each in told["refused"]}
    assert "SystemExit" in refused["broken = broken:Game"]
    assert "AttributeError" in refused["missing = missing:Game"]
    assert refused["thief = thief:Coin"] == "there is another game ugo"
    assert "neither a class derived from HostedGame" in refused["coins = two_coins:family"]
    played = run_seatwise(tmp_path, "play", "coin", "random", "random", "--matches", "5", "--records", "out")
    assert played.returncode == 0, played.stderr
    assert json.loads((tmp_path / "out").read_text().splitlines()[0])["rules_version"] == "two-coins/1"
    assert run_seatwise(tmp_path, "verify", "out").returncode == 0
    (elsewhere := tmp_path / "elsewhere").mkdir()
    verified = run_seatwise(elsewhere, "verify", "../out")
    assert verified.returncode == 2
    assert (
        "not checked: install two-coins, the package that the record names for the game 'coin'"
        in verified.stdout
    )
    assert "0 of 5 records wrong; 5 not checked" in verified.stdout


def no_folder(**_: object) -> None:
    raise OSError("there is no folder")


def test_a_package_that_hangs_at_its_import_is_refused_in_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_package(tmp_path, "sleeper", "import time\nwhile True: time.sleep(60)", "sleeper = sleeper:Game")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(installed_games, "DESCRIBE_LIMIT_S", 1.0)
    monkeypatch.setenv(FACTS_VARIABLE, "")
    found = installed_games.find_installed_games(())
    [why] = [each.why for each in found.refused if each.entry == "sleeper = sleeper:Game"]
    assert why == "its package was not imported within 1 s"
    assert "sleeper" not in sys.modules
    monkeypatch.setenv(FACTS_VARIABLE, "")
    monkeypatch.setattr(installed_games, "TemporaryDirectory", no_folder)
    found = installed_games.find_installed_games(())
    assert "its games cannot be described: there is no folder" in {each.why for each in found.refused}


def test_facts_are_learned_without_the_code_and_told_to_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_package(tmp_path, "two_coins", GOOD, "coins = two_coins:family")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(FACTS_VARIABLE, "")
    for _ in range(2):
        found = installed_games.find_installed_games(("ugo",))
        kits = {kit.name: kit for kit in found.kits}
        assert kits["coin"].game.rules_version == "two-coins/1"
        assert "two_coins" not in sys.modules
        monkeypatch.setattr(installed_games, "_describe_packages", None)  # the second time it is told
    assert "coin" in others_environment()[FACTS_VARIABLE]  # processes that run its code, too
    monkeypatch.setattr(installed_games, "LOADED_GAMES", installed_games._LoadedGames())
    installed_games.forbid_game_code()
    with pytest.raises(GameFault, match="runs no code of games from outside"):
        kits["coin"].game.deal(2, bytes(32), {})
    monkeypatch.setattr(installed_games, "LOADED_GAMES", installed_games._LoadedGames())
    assert kits["coin"].game.deal(2, bytes(32), {}).asked == 0
    assert "two_coins" in sys.modules
    monkeypatch.delitem(sys.modules, "two_coins")


@pytest.mark.parametrize(("game", "seats"), [("leduc", 2), ("hearts", 4)])
def test_an_example_is_installed_and_played_as_its_page_says(tmp_path: Path, game: str, seats: int) -> None:
    """The example is built and installed as an outside package is."""
    subprocess.run(
        [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-deps", "--no-build-isolation",
         "--target", str(tmp_path), str(EXAMPLES / game)],
        check=True, timeout=120,
    )  # fmt: skip
    played = run_seatwise(tmp_path, "play", game, *["random"] * seats, "--seed", "7", "--records", "out")
    assert played.returncode == 0, played.stderr
    assert run_seatwise(tmp_path, "verify", "out").returncode == 0
