"""Seasons that began under older versions of the schedule and of the statistics: they still verify, and are played to their end by its rules."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from seasons.one_season import league_of, played

from seatwise.cli import main
from seatwise_referee.games.registry import GAMES
from seatwise_referee.time_control import TimeControl
from seatwise_server.league import season_log
from seatwise_server.league.publishing import publish_season
from seatwise_server.league.settings import League

OLD_BUNDLES = sorted((Path(__file__).parents[1] / "seasons" / "version_1").glob("*.bundle"))
"""Bundles that the program wrote before it counted versions. In each of them version 2 would draw other tables."""


def test_there_is_an_old_bundle_of_each_format_that_was_changed() -> None:
    assert [path.stem for path in OLD_BUNDLES] == ["knockout-1", "round-robin-1", "swiss-1"]


@pytest.mark.parametrize("bundle", OLD_BUNDLES, ids=lambda path: path.stem)
def test_an_old_bundle_verifies(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(bundle)]) == 0
    assert "follow from the records" in capsys.readouterr().out


def test_settings_without_a_version_are_of_version_1() -> None:
    plain = league_of().to_json()
    del plain["schedule_version"], plain["statistics_version"]
    league = League.from_json(plain)
    assert (league.schedule_version, league.statistics_version) == (1, 1)
    assert league.to_json() == plain


@pytest.mark.parametrize(("key", "unknown"), [("schedule_version", 4), ("statistics_version", 4)])
def test_settings_of_an_unknown_version_are_refused(key: str, unknown: int) -> None:
    with pytest.raises(ValueError, match=f"{key} is {unknown}, which this program does not know"):
        League.from_json(league_of().to_json() | {key: unknown})


def test_a_season_is_continued_by_the_version_with_which_it_began(tmp_path: Path) -> None:
    names = ("greedy",) * 5
    old = league_of(
        *names, format="knockout", seats=4, advance=2, deals="none", schedule_version=1, statistics_version=1
    )
    played(tmp_path, old, most=1).close()
    head = json.loads((tmp_path / "season.jsonl").read_text().splitlines()[0])
    assert not {"schedule_version", "statistics_version"} & head["settings"].keys()
    new = league_of(*names, format="knockout", seats=4, advance=2, deals="none")
    league = season_log.keep_versions(tmp_path, new)
    assert league == old
    played(tmp_path, league).close()
    assert publish_season(tmp_path).digest
    assert main(["verify", str(tmp_path / "season.bundle")]) == 0


@pytest.mark.parametrize(("named_ms", "kept_ms"), [(300, 100), (50, 50)])
def test_a_season_keeps_the_former_default_of_a_limit_unless_its_file_names_another(
    tmp_path: Path, named_ms: int, kept_ms: int
) -> None:
    played(tmp_path, league_of(time=replace(league_of().time, allowance_cap_ms=100)), most=1).close()
    new = league_of(time=replace(league_of().time, allowance_cap_ms=named_ms))
    assert TimeControl().allowance_cap_ms == 300
    assert season_log.keep_versions(tmp_path, new).time.allowance_cap_ms == kept_ms


@pytest.mark.parametrize(("named", "kept"), [("club", "house-1"), ("master", "master-1")])
def test_a_season_keeps_the_deck_that_was_the_default_unless_its_file_names_another(
    tmp_path: Path, named: str, kept: str
) -> None:
    def options(deck: str) -> dict[str, int | str]:
        return GAMES["ubongo"].complete_options({"deck": deck})

    old = league_of(game="ubongo", options=options("easy"))
    season_log.open_season_log(tmp_path, old, "leagues/old").close()
    league = season_log.keep_versions(tmp_path, replace(old, options=options(named)))
    assert str(league.options["deck"]).partition(":")[0] == kept


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


def test_a_new_season_has_the_newest_version(tmp_path: Path) -> None:
    assert season_log.keep_versions(tmp_path, league_of()) == league_of()
    assert (league_of().schedule_version, league_of().statistics_version) == (3, 3)
