"""The measurement of the house's decks: what counts, how cards are compared, and the table on the page."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from seatwise.kits.ubongo.figures import compare_cards, main, measure_side, table_lines, time_to_solve
from seatwise.kits.ubongo.solver import hand_of
from seatwise_referee.games.ubongo import CARDS, HOUSE_DECKS, Side

PAGE = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text()


def test_a_search_that_runs_out_of_time_has_not_solved_the_hand() -> None:
    hand = hand_of(bytes(32), 1, HOUSE_DECKS["easy"])
    readings = iter([1.0, 1.25])
    assert time_to_solve(hand, lambda: next(readings)) == 250
    unlike = tuple(Side(card, letter * 6) for card, letter in zip(CARDS[:9], "ABCDEFGHI", strict=True))
    assert time_to_solve(unlike) == float("inf")


def test_cards_that_are_alike_have_no_spread_and_one_that_decides_has() -> None:
    chance = Random(3)
    hands = [[Side(card, "") for card in chance.sample(CARDS[:36], 9)] for _ in range(2000)]
    alike = [chance.random() < 0.5 for _ in hands]
    decided = [any(side.card == CARDS[0] for side in hand) for hand in hands]
    lowest, highest, spread = compare_cards(hands, alike)
    assert 0.4 < lowest < 0.5 < highest < 0.6
    assert spread < 0.01
    assert compare_cards(hands, decided)[1] == 1
    assert compare_cards(hands, decided)[2] > 0.1


def test_the_default_deck_parts_a_search_from_first_fit_and_easy_does_not() -> None:
    gaps = {}
    for name in ("easy", "club"):
        first_fit, _, solver = measure_side(HOUSE_DECKS[name], 1, 60)
        gaps[name] = solver.solved - first_fit.solved
    assert gaps["easy"] <= 3
    assert gaps["club"] >= 8


def test_the_command_prints_a_table_and_names_the_decks_that_it_knows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["master", "--hands", "5"])
    assert len(capsys.readouterr().out.splitlines()) == 2 + 6
    with pytest.raises(SystemExit):
        main(["hard"])
    assert "there is no deck 'hard': name one of easy, club, master" in capsys.readouterr().err


@pytest.mark.slow
def test_the_table_on_the_page_is_what_the_command_prints() -> None:
    """But for the 10 ms, which are of one machine."""
    measured = list(table_lines(list(HOUSE_DECKS), 500))
    printed = [line for line in PAGE.splitlines() if re.match(r"\| (easy|club|master) \| \d \|", line)]
    assert list(map(_without_10_ms, printed)) == list(map(_without_10_ms, measured[2:]))


def _without_10_ms(line: str) -> list[str]:
    return [cell for number, cell in enumerate(line.split("|")) if number != 4]
