"""What has happened in a league survives whatever happens to the runner."""

from __future__ import annotations

import re

import pytest
from seasons.one_season import NAME, league_of, played

from seatwise.errors import UsageError
from seatwise_server.league import season_log
from seatwise_server.league.season_log import Void


def test_a_season_is_read_as_it_was_written(tmp_path):
    league = league_of()
    book = played(tmp_path, league, most=3)
    book.append_void(Void("r9-t9", "matches/x", "ABORTED"))
    book.give_up_entrant("bots/random1/versions/1", "it would not start")
    book.let_entrant_back("bots/random1/versions/1", "it does")
    book.give_up_entrant("bots/random1/versions/1", "it did not")
    book.close()
    again = season_log.open_season_log(tmp_path, league, "leagues/another")
    again.close()
    assert again.season == book.season
    assert again.season.league == NAME
    assert again.season.given_up == {"bots/random1/versions/1": "it did not"}


def test_a_line_that_was_cut_off_is_as_if_it_had_never_been_begun(tmp_path):
    league = league_of()
    book = played(tmp_path, league, most=2)
    book.close()
    file = tmp_path / "season.jsonl"
    whole = file.read_bytes()
    for cut in (1, 20, 400):
        file.write_bytes(whole + whole.splitlines(keepends=True)[1][:-cut])
        again = season_log.open_season_log(tmp_path, league, NAME)
        again.close()
        assert again.season == book.season
        assert file.read_bytes() == whole


def test_lines_written_after_a_cut_are_read_again(tmp_path):
    league = league_of()
    played(tmp_path, league, most=2).close()
    file = tmp_path / "season.jsonl"
    file.write_bytes(file.read_bytes() + b'{"kind": "res')
    played_on = season_log.open_season_log(tmp_path, league, NAME)
    played_on.append_void(Void("r9-t9", "matches/x", "ABORTED"))
    played_on.close()
    again = season_log.open_season_log(tmp_path, league, NAME)
    again.close()
    assert again.season.voids == [Void("r9-t9", "matches/x", "ABORTED")]


def test_one_process_at_a_time_writes_it(tmp_path):
    league = league_of()
    book = season_log.open_season_log(tmp_path, league, NAME)
    with pytest.raises(UsageError, match="another process runs the league"):
        season_log.open_season_log(tmp_path, league, NAME)
    book.close()
    season_log.open_season_log(tmp_path, league, NAME).close()


def test_another_league_is_told_which_settings_differ(tmp_path):
    season_log.open_season_log(tmp_path, league_of(), NAME).close()
    with pytest.raises(UsageError, match=r"other settings \(rounds, seed\)"):
        season_log.open_season_log(tmp_path, league_of(rounds=9, seed="x"), NAME)


def test_no_table_has_two_results(tmp_path):
    book = played(tmp_path, league_of(), most=1)
    [(table, result)] = book.season.results.items()
    with pytest.raises(AssertionError, match="has a result already"):
        book.append_result(table, result)
    book.close()


def test_a_folder_without_a_season_log_holds_no_league(tmp_path):
    with pytest.raises(UsageError, match="holds no league"):
        season_log.read_season(tmp_path)


LOST: dict[str, tuple[str, int, str]] = {
    "a result": ("result", 0, "line 3 is result 2, where result 1 is due: a line is missing"),
    "a record": ("record", 1, "and the line of its record is missing"),
    "a draw": ("draw", 1, "is a result of round 2, and the line of its draw is missing"),
}


@pytest.mark.parametrize("kind", LOST)
def test_the_line_after_a_lost_one_is_named_and_nothing_is_written(tmp_path, kind):
    what, place, expected = LOST[kind]
    league = league_of(tables="local") if what != "draw" else league_of(format="swiss", rounds=2)
    played(tmp_path, league).close()
    file = tmp_path / "season.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    lost = [line for line in lines if line.startswith(f'{{"kind": "{what}"'.encode())][place]
    damaged = b"".join(line for line in lines if line != lost) + b'{"kind'  # and a line that was cut off
    file.write_bytes(damaged)
    for read in (
        lambda: season_log.read_season(tmp_path),
        lambda: season_log.open_season_log(tmp_path, league, NAME),
    ):
        with pytest.raises(UsageError, match=f"season.jsonl: .*{expected}") as caught:
            read()
        assert "Error(" not in str(caught.value)
    assert file.read_bytes() == damaged


def test_a_full_disk_names_the_season_log():
    with open("/dev/full", "ab", buffering=0) as file, pytest.raises(OSError, match="/dev/full"):
        season_log._write_lines(file, [{"kind": "annulled"}])


DAMAGED: dict[str, tuple[bytes, str]] = {
    "zeros": (bytes(4096), "line 2 is no JSON object"),
    "nothing": (b"", "line 2 is no JSON object"),
    "a list": (b"[]", "line 2 is no JSON object"),
    "brackets": (b"[" * 10**5, "line 2 is no JSON object"),
    "no kind": (b"{}", "line 2 is no event of a season: it has no 'kind'"),
    "a kind of later": (
        b'{"kind":"protest"}',
        "line 2 is no event of a season: 'protest' is no kind",
    ),
    "half a result": (
        b'{"kind":"result","table":"r1-t1"}',
        "line 2 is no event of a season: seq: is",
    ),
}


def test_a_result_that_its_record_contradicts_is_named(tmp_path):
    """Or the bundle of the season would be one that `verify` refuses."""
    league = league_of(tables="local")
    played(tmp_path, league).close()
    file = tmp_path / "season.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"points": [', b'"points": [9', 1))
    with pytest.raises(
        UsageError, match=r"season.jsonl: line 2 is the result of .*, and its record has other points"
    ):
        season_log.open_season_log(tmp_path, league, NAME)


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_line_is_named_and_nothing_is_written(tmp_path, kind):
    """Or the season would be played on without what stood there."""
    line, expected = DAMAGED[kind]
    league = league_of()
    played(tmp_path, league, most=2).close()
    file = tmp_path / "season.jsonl"
    first, *rest = file.read_bytes().splitlines(keepends=True)
    damaged = b"".join([first, line + b"\n", *rest])
    file.write_bytes(damaged)
    for read in (
        lambda: season_log.read_season(tmp_path),
        lambda: season_log.open_season_log(tmp_path, league, NAME),
    ):
        with pytest.raises(UsageError, match=re.escape(expected)):
            read()
    assert file.read_bytes() == damaged


def test_a_first_line_without_settings_is_named(tmp_path):
    (tmp_path / "season.jsonl").write_text('{"format":"seatwise.league/1"}\n')
    with pytest.raises(UsageError, match="line 1 is no event of a season"):
        season_log.read_season(tmp_path)
