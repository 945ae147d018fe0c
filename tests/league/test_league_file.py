"""Every kind of mistake in a league file gets one message: where it is, what is wrong, what would be right."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from seatwise.cli import main
from seatwise.errors import UsageError
from seatwise_server.league import season_log
from seatwise_server.league.league_file import read_league
from seatwise_server.league.season import read_league_without
from seatwise_server.league.settings import League
from seatwise_server.league.table_reader import LeagueFileError

BOT = "from seatwise import Bot\n\nclass Mine(Bot):\n    pass\n"

GOOD = """\
name = "summer"
game = "ugo"
format = "round-robin"
seats = 2

[options]
rounds = 2

[time]
bank_ms = 5000

[time.free_ms]
card = 800

[[entrants]]
bot = "greedy"

[[entrants]]
name = "mine"
bot = "mine.py:Mine"
version = "2"

[[entrants]]
registered = "bots/theirs/versions/7"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the league file is to be; a bot lies beside it."""
    (tmp_path / "mine.py").write_text(BOT)
    return tmp_path / "league.toml"


def read(file: Path, text: str) -> League:
    """The league of that text."""
    file.write_text(text)
    return read_league(file)


def mistake(file: Path, text: str) -> str:
    """What is said of that text."""
    with pytest.raises(LeagueFileError) as caught:
        read(file, text)
    return str(caught.value)


def test_a_league_file_says_who_plays_what_and_how(file):
    league = read(file, GOOD)
    assert (league.name, league.game, league.format, league.seats) == ("summer", "ugo", "round-robin", 2)
    assert league.players == ("bots/greedy/versions/1", "bots/mine/versions/2", "bots/theirs/versions/7")
    assert [each.is_local for each in league.entrants] == [True, True, False]
    assert league.entrants[1].bot == f"{file.parent.resolve()}/mine.py:Mine"
    assert league.options == {"rounds": 2}
    assert (league.time.bank_ms, league.time.free_ms) == (5000, {"card": 800, "arrange": 1000})


def test_a_setting_that_is_left_out_has_its_default(file):
    league = read(
        file, 'name = "a"\ngame = "ubongo"\n[[entrants]]\nbot = "random"\n[[entrants]]\nbot = "solver"\n'
    )
    assert (league.format, league.seats, league.deals, league.rounds) == ("round-robin", 2, "travelling", 0)
    assert league.time.free_ms == {"build": 60_000}


def test_settings_survive_the_way_through_json(file):
    import json

    league = read(file, GOOD)
    assert League.from_json(json.loads(json.dumps(league.to_json()))) == league


def test_any_other_setting_is_another_digest(file):
    assert read(file, GOOD).digest == read(file, GOOD).digest
    assert read(file, GOOD).digest != read(file, GOOD.replace("5000", "5001")).digest


MISTAKES = {
    "a syntax error": ("seats = 2", "seats = ", "not TOML", "line 4"),
    "an unknown game": ('"ugo"', '"ugoo"', "line 2: game: there is no 'ugoo'; did you mean 'ugo'?"),
    "an unknown format": ("round-robin", "robin", "line 3: format", "round-robin"),
    "a missing name": (
        'name = "summer"\n',
        "",
        'name: is missing; write it, for example, as name = "summer"',
    ),
    "an impossible name": ('"summer"', '"Summer Cup"', "line 1: name", "a-z"),
    "a text that a log could not hold": (
        "seats = 2",
        'seats = 2\nseed = "a\\nb"',
        "line 5: seed: is 'a\\nb'; all its characters must be printable",
    ),
    "an impossible table size": ("seats = 2", "seats = 5", "line 4: seats: is 5; ugo is played by 2 to 4"),
    "a table for more than there are": (
        "seats = 2",
        "seats = 4",
        "line 4: seats: is 4, but there are 3 entrants",
    ),
    "a text where a number belongs": (
        "seats = 2",
        'seats = "2"',
        "line 4: seats: is '2'; a whole number is needed",
    ),
    "true where a number belongs": (
        "seats = 2",
        "seats = true",
        "line 4: seats: is true; a whole number is needed",
    ),
    "an unknown key": ("seats = 2", "seat = 2", "line 4: seat: there is no such key; did you mean 'seats'?"),
    "an unknown table": (
        "[options]",
        "[optoins]",
        "line 6: optoins: there is no such key; did you mean 'options'?",
    ),
    "an option that the game has not": ("rounds = 2", "turns = 2", "line 7: options.turns", "only rounds"),
    "an option out of bounds": ("rounds = 2", "rounds = 99", "line 7: options.rounds", "1 to 8"),
    "a negative time": (
        "bank_ms = 5000",
        "bank_ms = -1",
        "line 10: time.bank_ms: is -1; it must be from 0 to",
    ),
    "no free time": ("card = 800", "card = 0", "line 13: time.free_ms.card: is 0; it must be from 1 to"),
    "a pace that the game has not": ("card = 800", "build = 800", "line 13: time.free_ms.build", "card"),
    "an unknown limit": (
        "bank_ms",
        "bank",
        "line 10: time.bank: there is no such key; did you mean 'bank_ms'?",
    ),
    "an unknown sample": ('"greedy"', '"greddy"', "line 16: entrants[0].bot: is 'greddy'", "FILE.py:CLASS"),
    "a bot file that is not there": (
        "mine.py:",
        "yours.py:",
        "line 20: entrants[1].bot: cannot read",
        "yours.py",
    ),
    "a class that is not there": (
        ":Mine",
        ":Yours",
        "line 20: entrants[1].bot",
        "has no 'Yours'; it defines Bot, Mine",
    ),
    "a duplicate name": (
        '"mine"\n',
        '"greedy"\n',
        "line 19: entrants[1].name: 'greedy' is entrants[0] already",
    ),
    "an impossible bot name": (
        '"mine"\n',
        '"My Bot"\n',
        "line 19: entrants[1].name: is 'My Bot'",
        "lower-case",
    ),
    "an impossible version": ('version = "2"', 'version = "two!"', "line 21: entrants[1].version", "digits"),
    "a version that is a number": (
        'version = "2"',
        "version = 2",
        "line 21: entrants[1].version",
        "a text in quotes",
    ),
    "a registered bot that is no name": (
        "bots/theirs/versions/7",
        "theirs",
        "line 24",
        "bots/anna/versions/3",
    ),
    "an owner that nobody sees": (
        'versions/7"',
        'versions/7"\nowner = "\\u3164"',
        "line 25: entrants[2].owner",
        "nothing that can be seen",
    ),
    "one name in two forms of Unicode": (
        'versions/7"',
        'versions/7"\nname = "Zo\u00eb"\n[[entrants]]\nregistered = "bots/zoe/versions/1"\nname = " Zoe\u0308"',
        "entrants[3].name",
        "is entrants[2] already",
    ),
    "a bot that is both": (
        'versions/7"',
        'versions/7"\nbot = "greedy"',
        "line 25: entrants[2].bot",
        "write either `bot`",
    ),
    "an unknown key of an entrant": ("version =", "vresion =", "line 21: entrants[1].vresion", "'version'"),
    "rotation with bots of others": (
        "seats = 2",
        'seats = 2\ndeals = "rotation"',
        "line 5: deals",
        "theirs",
        "trust",
    ),
    "trust where nothing is to be trusted": (
        "seats = 2",
        "seats = 2\ntrust = true",
        "line 5: trust",
        "rotation",
    ),
    "challengers outside of a gauntlet": (
        "seats = 2",
        'seats = 2\nchallengers = ["mine"]',
        "line 5: challengers",
        "only a gauntlet",
    ),
    "a challenger who is no entrant": (
        'round-robin"',
        'gauntlet"\nchallengers = ["myne"]',
        "did you mean 'mine'?",
    ),
    "a second bye": ('round-robin"', 'swiss"\nrounds = 9', "line 4: rounds: at most 3"),
    "a knockout that is to go by points": (
        'round-robin"',
        'knockout"\ntie_breaks = ["points"]',
        "line 4: tie_breaks",
        "is ordered by its bracket",
    ),
    "a knockout at whose tables nobody is out": ('round-robin"', 'knockout"\nadvance = 2', "line 4: advance"),
    "a test that is none": ("[options]", "[test]\nalpha = 0.1\n[options]", "line 6: test", "only an ab-test"),
    "tables that are nowhere": (
        "seats = 2",
        'seats = 2\ntables = "here"',
        "line 5: tables: there is no 'here'",
    ),
    "limits that no local table has": (
        "seats = 2",
        'seats = 2\ntables = "local"',
        "line 10: time: at local tables no bot runs out of time",
    ),
    "bots of others at local tables": (
        "seats = 2\n\n[options]\nrounds = 2\n\n[time]\nbank_ms = 5000\n\n[time.free_ms]\ncard = 800\n",
        'seats = 2\ntables = "local"\n',
        "line 5: tables",
        "others run theirs; name a file for each",
    ),
    "a test of more than two": (
        "round-robin",
        "ab-test",
        "line 3: format: an ab-test has 2 entrants, and this league has 3",
    ),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_is_named_with_its_place_and_with_what_would_be_right(file, kind):
    before, after, *expected = MISTAKES[kind]
    assert before in GOOD
    said = mistake(file, GOOD.replace(before, after, 1))
    assert said.startswith(str(file))
    assert "\n" not in said
    for part in expected:
        assert part in said


def test_local_tables_play_a_deal_again_only_with_bots_that_are_trusted(file):
    local = 'name = "a"\ngame = "ugo"\nformat = "ab-test"\ntables = "local"\n'
    entrants = '[[entrants]]\nbot = "random"\n[[entrants]]\nbot = "greedy"\n'
    assert "line 4: tables" in mistake(file, local + entrants)
    assert "trust = true" in mistake(file, local + entrants)
    league = read(file, f"{local}trust = true\n{entrants}")
    assert league.has_local_tables
    assert League.from_json(league.to_json()) == league


TRUSTED = 'name = "a"\ngame = "ugo"\ntrust = true\n[[entrants]]\nbot = "random"\n[[entrants]]\nbot = "mine.py:Mine"\n'


@pytest.mark.parametrize(
    ("before", "after", "is_local"),
    [
        ("", "", True),
        ("trust = true", 'trust = true\ndeals = "rotation"', True),
        ("trust = true\n", "", False),
        ("trust = true", 'trust = true\ntables = "server"', False),
        ("trust = true", "trust = true\ntime = { bank_ms = 1 }", False),
        ('bot = "random"', 'registered = "bots/theirs/versions/1"\n', False),
        ('game = "ugo"', 'game = "ubongo"', False),
    ],
)
def test_trusted_bots_play_at_local_tables_if_nothing_needs_a_server(file, before, after, is_local):
    text = TRUSTED.replace(before, after, 1)
    if "theirs" in text:
        text = text.replace("trust = true", 'trust = true\ndeals = "rotation"')
    assert read(file, text).has_local_tables == is_local
    assert not read_league(file, (), "server").has_local_tables


def test_a_season_goes_on_where_it_began(file):
    file.write_text(TRUSTED)
    began = partial(read_league_without, file, (), file.parent / "out")
    assert [began(has_server=there)[0].has_local_tables for there in (False, True)] == [True, False]
    at_server, _ = began(has_server=True)
    season_log.open_season_log(file.parent / "out", at_server, "leagues/a").close()
    assert not began()[0].has_local_tables


def test_a_league_at_a_server_has_the_settings_that_it_always_had(file):
    assert "tables" not in read(file, GOOD).to_json()


def test_one_entrant_makes_no_league(file):
    said = mistake(file, 'name = "a"\ngame = "ugo"\n[[entrants]]\nbot = "greedy"\n')
    assert "entrants: there is 1; a league has 2 or more, each under [[entrants]]" in said


def test_a_bot_file_that_is_no_python_is_named(file):
    (file.parent / "mine.py").write_text("class Mine(\n")
    assert "line 20: entrants[1].bot" in (said := mistake(file, GOOD))
    assert "is not a Python" in said


def test_a_bot_file_that_may_not_be_read_is_named(file):
    (file.parent / "mine.py").unlink()
    (file.parent / "mine.py").mkdir()
    assert "cannot read" in mistake(file, GOOD)


@pytest.mark.parametrize("text", [b"\xff\xfe", b"\xe9", b"name = \x00", b"rounds = " + b"9" * 5000])
def test_bytes_that_are_no_text_are_no_league(file, text):
    file.write_bytes(text)
    with pytest.raises(UsageError, match=r"league.toml.* is (not )?(text|TOML)"):
        read_league(file)


def test_a_league_file_that_nests_deeply_is_told_so(file):
    file.write_bytes(b"a = " + b"[" * 50_000)
    with pytest.raises(LeagueFileError, match="its brackets are nested too deeply"):
        read_league(file)


def test_the_command_says_it_in_one_line_and_ends_with_2(file, capsys, tmp_path):
    file.write_text(GOOD.replace("seats = 2", "seats = 5"))
    assert main(["league", "run", str(file), "--results", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"{file}: line 4: seats: is 5" in said
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_there_is_named(tmp_path, capsys):
    assert main(["league", "run", str(tmp_path / "none.toml")]) == 2
    assert "cannot read" in capsys.readouterr().err
