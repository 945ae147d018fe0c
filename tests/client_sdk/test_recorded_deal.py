"""`seatwise play --from RECORD`: a recorded deal again, from a move on or up to one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import seatwise
from seatwise.cli import main
from seatwise.errors import UsageError
from seatwise.local.recorded_deal import read_recorded_deal
from seatwise_referee.verify import verify_line


@pytest.fixture
def record(tmp_path: Path) -> Path:
    file = tmp_path / "lost.jsonl"
    seatwise.play(["greedy", "random"], seed=5, options={"rounds": 1}, records=file)
    return file


def moves_of(line: bytes) -> list[Any]:
    entries = json.loads(line)["entries"]
    return [(each["seat"], each["move"]) for each in entries if each["kind"] == "move"]


def play_again(record: Path, tmp_path: Path, bots: list[Any], **where: int) -> bytes:
    again = tmp_path / "again.jsonl"
    seatwise.play(bots, records=again, deal=read_recorded_deal(record.read_bytes(), **where))
    return again.read_bytes()


def test_the_same_bots_play_the_same_match_again_and_its_record_verifies(
    record: Path, tmp_path: Path
) -> None:
    line = play_again(record, tmp_path, ["greedy", "greedy"])
    first, again = json.loads(record.read_bytes()), json.loads(line)
    assert (again["deals"], again["seed"], again["match"]) == (first["deals"], first["seed"], first["match"])
    assert verify_line(line).fault is None


def test_another_bot_sits_in_the_same_seat_with_the_same_cards(record: Path) -> None:
    hands: list[Any] = []

    class Looking(seatwise.Bot):
        def choose(self, view: seatwise.View) -> Any:
            hands.append((view.seat, view.hand))
            return view.legal_cards[0]

    deal = read_recorded_deal(record.read_bytes())
    results = seatwise.play([Looking, "greedy"], deal=deal, matches=2)
    assert {seat for seat, _ in hands} == {0}
    assert len(results) == 2
    rounds = len(hands) // 2
    assert hands[0] == hands[rounds]


@pytest.mark.parametrize("number", [2, 7])
def test_the_moves_before_are_those_of_the_record(record: Path, tmp_path: Path, number: int) -> None:
    line = play_again(record, tmp_path, ["random", "greedy"], from_move=number)
    wanted = moves_of(record.read_bytes())[: number - 1]
    assert moves_of(line)[: number - 1] == wanted
    assert verify_line(line).fault is None


def test_it_stops_after_a_move(record: Path) -> None:
    asked: list[int] = []

    class Counting(seatwise.Bot):
        def choose(self, view: seatwise.View) -> Any:
            asked.append(len(view.hand))
            return view.legal_cards[0]

        def arrange(self, view: seatwise.View) -> Any:
            asked.append(len(view.hand))
            return view.won_cards

    deal = read_recorded_deal(record.read_bytes(), from_move=3, to_move=4)
    [match] = seatwise.play([Counting, Counting], deal=deal)
    assert match.void_reason == "ABORTED"
    assert len(asked) == 2


def test_a_record_with_a_forged_move_is_refused(record: Path) -> None:
    with pytest.raises(UsageError, match="the record is wrong"):
        read_recorded_deal(record.read_bytes().replace(b'"seat":0', b'"seat":1', 1))


def test_the_command_plays_it(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["play", "ugo", "random", "counting", "--from", str(record), "--from-move", "5", "--json"]
    assert main(command) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["matches"]
    name = json.loads(record.read_bytes())["match"].removeprefix("matches/")
    assert main(["play", "ugo", "random", "random", "--from", f"{record}:{name[:6]}", "--to-move", "3"]) == 0
    assert "ABORTED" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["ugo", "random", "random", "random", "--from", "{file}"],
            "the recorded match has 2 seats, and 3 bots",
        ),
        (["ubongo", "random", "random", "--from", "{file}"], "it is a match of ugo"),
        (["ugo", "random", "random", "--from-move", "3"], "need --from RECORD"),
        (["ugo", "random", "random", "--from", "none.jsonl"], "cannot read none.jsonl"),
    ],
)
def test_mistakes_are_told(
    record: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["play", *(each.format(file=record) for each in arguments)]) == 2
    assert said in capsys.readouterr().err


def test_a_race_is_played_again_from_its_start_only(tmp_path: Path) -> None:
    file = tmp_path / "race.jsonl"
    seatwise.play(["random", "random"], game="ubongo", seed=5, records=file)
    line = play_again(file, tmp_path, ["solver", "random"])
    assert json.loads(line)["deals"] == json.loads(file.read_bytes())["deals"]
    with pytest.raises(UsageError, match="ubongo has no moves to count"):
        read_recorded_deal(file.read_bytes(), from_move=2)
