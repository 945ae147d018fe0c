"""The referee's clock beside the bots' own, on the page of a season."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from seasons.one_season import league_of, played

from seatwise_server.league.publishing import publish_season
from seatwise_server.league.time_reports import read_time_reports

LEAGUE = league_of(rounds=12)
TITLE = "The referee&#39;s clock compared with the bots&#39; own"


@pytest.fixture(scope="module")
def season(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("season")
    played(folder, LEAGUE).close()
    (folder / "logs").mkdir()
    return folder


def charges(folder: Path) -> list[tuple[str, str, int, int]]:
    """Of every turn: name of the bot, match, prompt, and what it was charged."""
    names = {entrant.player: entrant.name for entrant in LEAGUE.entrants}
    lines = map(json.loads, (folder / "season.jsonl").read_text().splitlines())
    records = [json.loads(line["record"]) for line in lines if line.get("kind") == "record"]
    return [
        (names[record["seats"][entry["seat"]]["bot"]], record["match"], entry["prompt"], entry["charged_ms"])
        for record in records
        for entry in record["entries"]
        if entry["kind"] == "move"
    ]


def report(folder: Path, slow: str = "", late_ms: float = 0.0) -> None:
    """All say that they took sixty milliseconds more than they were charged; the slow one says less."""
    lines: dict[str, list[str]] = {}
    for name, match, prompt, charged in charges(folder):
        took = charged + 60 - 0.1 * (prompt % 7) - late_ms * (name == slow)
        lines.setdefault(name, []).append(
            json.dumps({"match": match, "seat": 0, "prompt": prompt, "thought_ms": took})
        )
    for name, told in lines.items():
        (folder / "logs" / f"{name}.times").write_text("\n".join(told) + "\n")


def page(folder: Path) -> str:
    publish_season(folder)
    return (folder / "report.html").read_text()


def test_bots_that_report_nothing_are_not_spoken_of(season):
    for file in (season / "logs").glob("*.times"):
        file.unlink()
    assert TITLE not in page(season)


def test_reported_time_stands_beside_charged_time(season):
    report(season)
    told = page(season)
    assert TITLE in told
    assert "more than it reports" not in told


def test_a_bot_that_is_charged_more_than_it_says_is_named(season):
    report(season, slow="greedy2", late_ms=50.0)
    assert "greedy2 is charged" in page(season)


def test_a_note_that_is_no_report_is_passed_over(season):
    """A bot may write into its file what it likes; the last line of one that was killed has no end."""
    name, match, prompt, _ = charges(season)[0]
    good = {"match": match, "seat": 0, "prompt": prompt, "thought_ms": 3}
    wrong = [
        *({**good, "thought_ms": bad} for bad in ("3", None, True, -1, 1e300, [3])),
        {**good, "prompt": "1"},
        {**good, "match": 5},
        {"match": match},
        [good],
        7,
    ]
    lines = [*map(json.dumps, wrong), json.dumps(good), "", "\x00\ufffd", "[" * 5000, json.dumps(good)[:-5]]
    (season / "logs" / f"{name}.times").write_text("\n".join([*lines, '{"thought_ms": NaN}', "9" * 10**6]))
    (season / "logs" / "nobody.times").write_text(json.dumps(good))
    player = next(entrant.player for entrant in LEAGUE.entrants if entrant.name == name)
    assert {
        key: took for key, took in read_time_reports(season / "logs", LEAGUE).items() if key[0] == player
    } == {(player, match, prompt): 3.0}
