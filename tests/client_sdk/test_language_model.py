"""The bot around a language model, with models that follow a script."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import seatwise
from seatwise.errors import BadAnswerError, UsageError
from seatwise.kits import KITS
from seatwise.kits.game_kit import check_text_game, list_move_texts, read_move_text
from seatwise.samples.language_model import ModelBudget, find_move_text, make_language_model_bot

LEGAL = "LEGAL MOVES: "


def legal_in(prompt: str) -> list[str]:
    """The legal moves that a prompt names."""
    return prompt.rpartition(LEGAL)[2].partition("\n")[0].split(", ")


def play_with(
    folder: Path, complete: Callable[[str], str], **more: Any
) -> tuple[seatwise.Results, list[dict[str, Any]]]:
    """One short match against random; its results, and the lines of its transcript."""
    bot = make_language_model_bot(complete, transcripts=folder / "transcripts", **more)
    results = seatwise.play([bot, "random"], seed=5, options={"rounds": 1})
    (file,) = (folder / "transcripts").glob("*.jsonl")
    return results, [json.loads(line) for line in file.read_text().splitlines()]


def test_a_model_that_answers_legally_plays_its_moves_and_every_request_is_in_the_transcript(tmp_path):
    asked: list[str] = []

    def last_legal(prompt: str) -> str:
        asked.append(prompt)
        return f"I think about it.\n**MOVE: {legal_in(prompt)[-1].lower()}**"

    results, lines = play_with(tmp_path, last_legal)
    assert results.matches[0].failures == (0, 0)
    assert [line["prompt"] for line in lines[:-1]] == asked
    assert all(line["attempt"] == 1 and not line["error"] for line in lines[:-1])
    assert lines[-1]["points"] == list(results.matches[0].points)
    assert "The highest value wins" in asked[0]
    assert (tmp_path / "transcripts").stat().st_mode & 0o077 == 0


def test_an_illegal_answer_is_repaired_once_and_then_the_first_legal_move_is_played(tmp_path):
    prompts: list[str] = []

    def stubborn(prompt: str) -> str:
        prompts.append(prompt)
        return "MOVE: Z9"

    results, lines = play_with(tmp_path, stubborn)
    assert results.matches[0].failures == (0, 0)
    assert [line["attempt"] for line in lines[:2]] == [1, 2]
    assert "'Z9' is no legal move here; the legal moves are:" in prompts[1]
    assert max(line["attempt"] for line in lines[:-1]) == 2


def test_a_model_that_mends_its_answer_plays_the_mended_one(tmp_path):
    wanted: list[str] = []

    def mends(prompt: str) -> str:
        if "could not be used" not in prompt:
            return "no idea"
        wanted.append(legal_in(prompt)[-1])
        return f"MOVE: {wanted[-1]}"

    _, lines = play_with(tmp_path, mends)
    assert [line["move"] for line in lines[:-1] if line["attempt"] == 2] == wanted
    assert wanted


def test_an_error_of_the_model_costs_an_attempt_and_no_move(tmp_path):
    def fails(_: str) -> str:
        raise TimeoutError("the service is away")

    results, lines = play_with(tmp_path, fails)
    assert results.matches[0].failures == (0, 0)
    assert lines[0]["error"] == "TimeoutError: the service is away"


def test_no_request_is_made_beyond_a_budget(tmp_path):
    def wordy(prompt: str) -> str:
        return f"MOVE: {legal_in(prompt)[0]}"

    results, lines = play_with(tmp_path, wordy, budget=ModelBudget(tokens=2500), count_tokens=lambda _: 1000)
    assert results.matches[0].failures == (0, 0)
    assert [line["tokens"] for line in lines[:-1]] == [2000]
    for none in (ModelBudget(tokens=0), ModelBudget(move_s=-1.0), ModelBudget(match_s=-1.0)):
        folder = tmp_path / str(none)
        _, lines = play_with(folder, wordy, budget=none)
        assert len(lines) == 1


@pytest.mark.parametrize(
    ("answer", "move"),
    [
        ("MOVE: R3", "R3"),
        ("move: r3 \n", "r3"),
        ("MOVE: B1\nno, wait\n`MOVE: R3`", "R3"),
        ("R3 or B1?\nI play R3.", "R3"),
    ],
)
def test_a_move_is_read_from_the_last_line(answer, move):
    assert find_move_text(answer, ("R3", "B1")) == move


@pytest.mark.parametrize("answer", ["", "R3 or B1", "R31", "B1\nthat is all"])
def test_an_answer_that_names_no_move_or_two_is_none(answer):
    with pytest.raises(BadAnswerError, match="no line that begins with MOVE:"):
        find_move_text(answer, ("R3", "B1"))


def test_the_orders_of_won_cards_are_moves_too():
    seen: list[int] = []

    class Looks(seatwise.Bot):
        def choose(self, view):
            assert list_move_texts(KITS["ugo"], view) == tuple(map(str, view.legal_cards))
            return read_move_text(KITS["ugo"], view, str(view.legal_cards[0]).lower())

        def arrange(self, view):
            seen.append(len(list_move_texts(KITS["ugo"], view)))
            text = ", ".join(map(str, view.won_cards))
            return read_move_text(KITS["ugo"], view, text)

    results = seatwise.play([Looks, "random", "random"], seed=3)
    assert sum(results.matches[0].failures) == 0
    assert set(seen) == {6}


def test_a_race_has_no_moves_to_list():
    check_text_game(KITS["ugo"])
    with pytest.raises(UsageError, match="ubongo has too many moves to list"):
        check_text_game(KITS["ubongo"])


def test_a_bot_that_resigns_ranks_last_and_is_asked_no_more():
    asked: list[int] = []

    class Resigns(seatwise.Bot):
        def choose(self, view):
            asked.append(view.round)
            raise seatwise.ResignMatch("enough")

    results = seatwise.play([Resigns, "random"], seed=3)
    assert asked == [1]
    assert [str(ending) for ending in results.matches[0].endings] == ["RESIGNED", "COMPLETED"]
    assert results.matches[0].ranks == (2, 1)
    assert results.matches[0].failures == (0, 0)
