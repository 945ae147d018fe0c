"""An entrant that was given up comes back when it is mended; what it lost stays lost, and anybody can see it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from seasons.one_season import NAME, files_in, forged, league_of, played

from seatwise.cli import main
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.league import season_log
from seatwise_server.league.league_file import read_league
from seatwise_server.league.publishing import publish_season
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.table import standings_of

LEAGUE = """\
name = "small"
game = "ugo"
seats = 2
rounds = 2
options = { rounds = 1 }
[[entrants]]
bot = "random"
[[entrants]]
bot = "greedy"
"""
GREEDY = "bots/greedy/versions/1"
WHY = "its library is installed now"


def said_of(capsys: pytest.CaptureFixture[str], *command: object) -> tuple[int, str]:
    """What `seatwise league` says, on both of its outputs."""
    code = main(["league", *map(str, command)])
    return code, "".join(capsys.readouterr())


@pytest.mark.slow
def test_a_bot_that_was_let_back_plays_again_and_its_turns_are_published(tmp_path, capsys):
    file, out = tmp_path / "league.toml", tmp_path / "out"
    file.write_text(LEAGUE)
    book = season_log.open_season_log(out, read_league(file), NAME)
    book.give_up_entrant(GREEDY, "its process ended with 1")
    book.close()
    assert said_of(capsys, "reinstate", "greedy", out, "--why", WHY)[0] == 0
    assert said_of(capsys, "run", file, "--results", out)[0] == 0
    _, season = season_log.read_season(out)
    assert len(season.results) == 2
    assert {ending for result in season.results.values() for ending in result.endings} == {"COMPLETED"}
    assert f"readmitted after 0 results: {WHY}" in (out / "report.html").read_text()
    turns = [json.loads(line) for line in files_in(out / "season.bundle")["entrants.jsonl"].splitlines()]
    assert [(turn["player"], turn["kind"]) for turn in turns] == [(GREEDY, "given_up"), (GREEDY, "let_back")]
    assert main(["verify", str(out / "season.bundle")]) == 0


def test_only_who_was_given_up_is_let_back(tmp_path, capsys):
    book = played(tmp_path, league_of(), most=1)
    book.close()
    code, said = said_of(capsys, "reinstate", "greedy2", tmp_path, "--why", WHY)
    assert (code, "no entrant is given up" in said) == (2, True)
    book = played(tmp_path, league_of(), most=1)
    book.give_up_entrant(league_of().players[1], "it would not start")
    book.close()
    code, said = said_of(capsys, "reinstate", "nobody", tmp_path, "--why", WHY)
    assert (code, "given up: greedy2" in said) == (2, True)
    assert said_of(capsys, "reinstate", "greedy2", tmp_path, "--why", WHY)[0] == 0
    assert not season_log.read_season(tmp_path)[1].given_up


def test_no_bot_comes_back_while_the_league_runs_or_when_it_is_over(tmp_path, capsys):
    book = played(tmp_path, league_of())
    book.give_up_entrant(league_of().players[1], "it would not start")
    code, said = said_of(capsys, "reinstate", "greedy2", tmp_path, "--why", WHY)
    assert (code, "interrupt it" in said) == (2, True)
    book.close()
    code, said = said_of(capsys, "reinstate", "greedy2", tmp_path, "--why", WHY)
    assert (code, "the season is over" in said) == (2, True)


# What is published of it


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a season in which one was given up and let back."""
    folder = tmp_path_factory.mktemp("season")
    book = played(folder, league_of(), most=2)
    book.give_up_entrant(league_of().players[1], "it would not start")
    book.let_entrant_back(league_of().players[1], WHY)
    book.close()
    played(folder, league_of()).close()
    assert publish_season(folder).digest
    return folder / "season.bundle"


FORGERIES: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "let back first": lambda turns: turns.pop(0),
    "given up twice": lambda turns: turns.insert(0, turns[0]),
    "somebody else": lambda turns: turns[0].update(player="bots/x/versions/1"),
    "what nobody is": lambda turns: turns[0].update(kind="praised"),
    "after all results": lambda turns: turns[1].update(results=7),
    "before the one before": lambda turns: turns[1].update(results=1),
    "no number": lambda turns: turns[0].update(results=True),
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_turns_that_cannot_have_been_are_named(bundle, tmp_path, capsys, kind):
    turns = [json.loads(line) for line in files_in(bundle)["entrants.jsonl"].splitlines()]
    FORGERIES[kind](turns)
    lines = "".join(json.dumps(turn) + "\n" for turn in turns).encode()
    assert main(["verify", str(bundle)]) == 0
    capsys.readouterr()
    assert main(["verify", str(forged(bundle, tmp_path, {"entrants.jsonl": lines}))]) == 1
    assert "entrants.jsonl: line " in capsys.readouterr().out


def entrant_that_leaves(after: int, **changes: Any) -> tuple[Any, season_log.Season, str]:
    """A round robin of four, one of which leaves after so many matches and beats all before; the others win by their order."""
    league = league_of(deals="none", rounds=6, **changes)
    season, leaver = season_log.Season(NAME), league.players[3]
    played = 0
    for seq, match in enumerate(schedule_of(league).all_matches(), 1):
        has_left = leaver in match.bots and played >= after
        if has_left and not season.entrant_changes:
            season.entrant_changes.append(season_log.EntrantChange(leaver, False, "it crashed", seq - 1))
        played += leaver in match.bots
        merits = [9 if bot == leaver else -league.players.index(bot) for bot in match.bots]
        if has_left:
            merits = [30 * (bot != leaver) for bot in match.bots]
        endings = tuple("RESIGNED" if has_left and bot == leaver else "COMPLETED" for bot in match.bots)
        ranks = tuple(1 + sum(other > own for other in merits) for own in merits)
        season.results[match.id] = LoggedResult(
            seq, f"matches/{seq}", match.bots, tuple(merits), ranks, endings
        )
    return league, season, leaver


def rows_after(league: Any, season: season_log.Season) -> dict[str, dict[str, Any]]:
    """The rows of the table by player."""
    return {row["player"]: row for row in standings_of(league, season.so_far)["rows"]}


@pytest.mark.parametrize("after", [1, 4])
@pytest.mark.parametrize("rule", ["half", "walk-over"])
def test_nobody_gains_points_from_an_entrant_that_leaves(after: int, rule: str) -> None:
    league, season, leaver = entrant_that_leaves(after, withdrawals=rule)
    assert not schedule_of(league).due_matches(season.so_far)
    rows = rows_after(league, season)
    assert all(row["points"] <= 0 for player, row in rows.items() if player != leaver), (
        "30 points were not gained"
    )
    assert rows[leaver]["walk_overs"] == 6 - after
    if rule == "half" and after == 1:
        assert (rows[leaver]["rank"], rows[leaver]["matches"]) == (4, 0), "its results leave the table"
    else:
        assert rows[leaver]["matches"] == after


def test_a_bot_that_is_let_back_loses_only_the_matches_in_between() -> None:
    _, season, leaver = entrant_that_leaves(4)
    last = next(reversed(season.results))
    season.entrant_changes.append(season_log.EntrantChange(leaver, True, "repaired", len(season.results) - 1))
    assert last not in season.so_far.left
