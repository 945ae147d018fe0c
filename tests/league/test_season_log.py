"""What has happened in a league survives whatever happens to the runner."""

from __future__ import annotations

import pytest
from seasons.one_season import NAME, league_of, played

from seatwise.bot_errors import UsageError
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


def test_what_is_written_after_a_cut_is_read_again(tmp_path):
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
