"""Cards of Ubongo of one's own: from a file, into the record, and checked by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness.ubongo import deck_file

from seatwise.cli import main
from seatwise_referee.games.registry import GAMES
from seatwise_referee.games.ubongo import CARDS, parse_deck

MINE = deck_file("mine")
PLAY = "play ubongo solver random --seed 3 --option rounds=2"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With some decks; whatever is used here is forgotten afterwards."""
    monkeypatch.setitem(GAMES, "ubongo", GAMES["ubongo"])
    files = {
        "mine": MINE,
        "changed": MINE.replace("ABABAB", "ABABAC"),
        "house": MINE.replace("mine", "house-1"),
        "short": MINE.rpartition("3-36")[0],
        "wrong": MINE.replace("ABABAB", "ABABA"),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    code = main(line.split())
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_match_is_played_with_ones_own_deck_and_its_record_has_name_hash_and_symbols(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    code, out, _ = said(capsys, f"{PLAY} --deck mine --option deck=mine --records out")
    assert code == 0
    assert "check them: seatwise verify out --deck mine\n" in out
    record = json.loads((folder / "out").read_text())
    deck = parse_deck(MINE)
    assert record["options"]["deck"] == f"mine:{deck.digest}"
    (first, second) = record["deals"]
    for deal, side in ((first, 0), (second, 1)):
        printed = {str(card): sides[side] for card, sides in zip(map(str, CARDS), deck.sides, strict=True)}
        assert deal["symbols"] == {card: printed[card] for card in deal["symbols"]}
    assert said(capsys, "verify out --deck mine")[:2] == (0, "out: 1 record verified, nothing wrong\n")


def test_without_the_option_the_houses_deck_is_played(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert said(capsys, f"{PLAY} --deck mine --records out")[0] == 0
    assert json.loads((folder / "out").read_text())["options"]["deck"].startswith("club-1:")


def test_a_record_is_wrong_to_who_does_not_have_its_deck_or_another_of_that_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    houses = GAMES["ubongo"]
    assert said(capsys, f"{PLAY} --deck mine --option deck=mine --records out")[0] == 0
    for deck in ("", "--deck changed"):
        monkeypatch.setitem(GAMES, "ubongo", houses)
        code, out, _ = said(capsys, f"verify out {deck}")
        assert code == 1
        assert (
            "options: deck: must be the name or the digest of a deck here (easy, club, master, house-1, "
            in out
        )


@pytest.mark.parametrize(
    ("decks", "why"),
    [
        ("--deck nowhere", "nowhere: No such file or directory"),
        ("--deck binary", "binary is text in UTF-16: save it as UTF-8"),
        ("--deck wrong", "wrong: line 2: a side has six letters from A to Z, not 'ABABA'"),
        ("--deck short", "short: cards are missing: 3-36"),
        ("--deck house", "two decks here are called house-1: give yours another name"),
        ("--deck mine --deck changed", "two decks here are called mine: give yours another name"),
    ],
)
@pytest.mark.parametrize("command", ["play", "verify", "serve"])
def test_a_deck_that_cannot_be_played_is_usage(
    capsys: pytest.CaptureFixture[str], command: str, decks: str, why: str
) -> None:
    line = {"play": PLAY, "verify": "verify out", "serve": "serve --port 0 --data data"}[command]
    code, out, err = said(capsys, f"{line} {decks}")
    assert (code, out) == (2, "")
    assert why in err


def test_a_deck_that_is_not_here_is_named_beside_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, f"{PLAY} --option deck=mine")
    assert code == 2
    assert (
        "must be the name or the digest of a deck here (easy, club, master, house-1, club-1, master-1), not 'mine'"
        in err
    )
