"""Tables on terminals: no name is cut short, for it is typed again, and what is not there yet is said."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

import pytest

from seatwise.v1 import ladder_pb2
from seatwise.v1 import ladder_service_pb2 as pb
from seatwise_server.cli import ladder, table
from seatwise_server.cli.check import Findings

COLUMNS = ("match", "game", "state", "bots", "points", "ranks")
BOTS = ("house-random:1", "greedy:1", "house-counting:1", "house-greedy:1")
ROW = ("matches/2atwxrh3actj", "ugo", "finished", " ".join(BOTS), "-44 18 58 41", "2 4 1 3")


def shown(width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """What a terminal of that width shows."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    table.show_table("Matches", COLUMNS, [ROW])
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 200])
def test_nothing_is_cut_short(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = shown(width, capsys, monkeypatch)
    assert "\u2026" not in said
    assert ROW[0] in said
    letters = [each for each in said if each in "".join(BOTS)]
    assert all(letters.count(each) >= "".join(BOTS).count(each) for each in set("".join(BOTS)))


def test_a_frame_that_has_no_room_is_left_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\u2503" in shown(80, capsys, monkeypatch)
    assert "\u2503" not in shown(70, capsys, monkeypatch)


def test_without_rich_there_are_plain_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the author of a bot, who may look at ladders and matches with the bare package."""
    monkeypatch.setitem(sys.modules, "rich.table", None)
    assert shown(100, capsys, monkeypatch).startswith("match ")


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize("name", ["bots/[/x]", "[link=https://example.org]bots/a[/link]", "[bold", ":boom:"])
def test_a_name_is_no_markup(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, is_terminal: bool
) -> None:
    """A file of records may name a bot in any way. Wrong markup ended the command with a traceback."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    table.show_table(name, ("bot", "points"), [(name, "1")])
    said = capsys.readouterr().out
    assert said.count(name) == 1 + is_terminal
    assert "\x1b]8;" not in said  # a link


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_name_gives_no_orders_to_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "200")
    table.show_table("\x1b[2J", ("bot", "points"), [("bots/\x1b[2J\u202e", "1")])
    said = capsys.readouterr().out
    assert "bots/?[2J?" in said
    assert "\x1b[2J" not in said
    assert "\u202e" not in said


@pytest.mark.parametrize(
    ("results", "said"), [(0, "No match on ladders/main is over yet"), (6, "has 6 results, and")]
)
def test_a_ladder_without_a_table_is_not_said_to_be_without_matches(
    capsys: pytest.CaptureFixture[str], results: int, said: str
) -> None:
    """The first table comes seconds after the first results."""

    def ask(method: str, _: object) -> Any:
        if method == "ListStandings":
            return pb.ListStandingsResponse()
        return pb.GetLadderResponse(ladder=ladder_pb2.Ladder(name="ladders/main", results=results))

    assert ladder._show_standings(ask, Namespace(ladder="ladders/main", json=False, recompute=False)) == 0
    assert said in capsys.readouterr().out


def test_the_findings_of_a_check_are_printable(capsys: pytest.CaptureFixture[str]) -> None:
    findings = Findings()
    findings.note_wrong("matches/\x1b[31m", "no\nrecord")
    findings.note_mended("matches/b", "the\x07list")
    assert capsys.readouterr().err == "matches/?[31m: no?record\nmatches/b: mended: the?list\n"
