"""Seasons of older releases are refused with a sentence; and a draw is on disk before its round is played."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from seasons.one_season import league_of, played

from seatwise.cli import main
from seatwise.errors import UsageError
from seatwise_server.league import season_log
from seatwise_server.league.publishing import publish_season
from seatwise_server.league.settings import League

OLD_BUNDLE = Path(__file__).parents[1] / "seasons" / "version_1" / "knockout-1.bundle"
"""A bundle that the program wrote before it counted versions."""
USE = "use version 0.2.0 of seatwise"


def test_a_bundle_of_an_older_release_is_refused_with_the_release_that_verifies_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["verify", str(OLD_BUNDLE)]) == 1
    assert USE in capsys.readouterr().out


@pytest.mark.parametrize(("key", "version"), [("schedule_version", 3), ("statistics_version", 1)])
def test_a_season_of_an_older_release_is_not_continued(tmp_path: Path, key: str, version: int) -> None:
    played(tmp_path, league_of(), most=1).close()
    log = tmp_path / "season.jsonl"
    head, *rest = log.read_text().splitlines(keepends=True)
    line = json.loads(head)
    line["settings"][key] = version
    log.write_text(json.dumps(line) + "\n" + "".join(rest))
    with pytest.raises(UsageError, match=USE):
        played(tmp_path, league_of())
    with pytest.raises(UsageError, match=USE):
        publish_season(tmp_path)


@pytest.mark.parametrize("key", ["schedule_version", "statistics_version"])
def test_settings_of_an_unknown_version_are_refused(key: str) -> None:
    with pytest.raises(ValueError, match=f"{key} is 9, which this program does not know"):
        League.from_json(league_of().to_json() | {key: 9})


def test_a_draw_is_on_disk_before_its_round_is_played(tmp_path: Path) -> None:
    league = league_of(*["greedy"] * 4, format="swiss", rounds=2, deals="none")
    played(tmp_path, league, most=3).close()
    lines = [json.loads(line) for line in (tmp_path / "season.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in lines[1:] if line["kind"] != "record"] == [
        "draw",
        "result",
        "result",
        "draw",
        "result",
    ]
    _, season = season_log.read_season(tmp_path)
    assert json.loads(json.dumps([draw.to_json() for draw in season.draws.values()])) == [
        {key: line[key] for key in ("round", "tables", "byes", "ahead")}
        for line in lines
        if line.get("kind") == "draw"
    ]
