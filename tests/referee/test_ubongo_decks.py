"""What is printed on the cards: the house's deck and those of operators."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
from harness.ubongo import deck_maker
from hypothesis import given
from hypothesis import strategies as st
from matches.ubongo_positions import PLAIN

from seatwise.kits.ubongo.solver import NODES, Search, hand_of
from seatwise_referee.games.ubongo import (
    CARDS,
    GOAL,
    HOUSE_DECK,
    BadDeck,
    Side,
    Ubongo,
    UbongoCard,
    house_decks,
    parse_deck,
)

# --- The house's deck ----------------------------------------------------------------------------------


def test_the_houses_decks_are_made_again_letter_by_letter() -> None:
    assert deck_maker.module_text() == Path(house_decks.__file__).read_text()


def test_the_houses_deck_never_changes() -> None:
    """Records name this digest: another deck needs another name."""
    assert HOUSE_DECK.label == "house-1:79139726b1a7e026b692e87e3d8de662e5eebf1858ea289e1f78e1ecf89d7003"


@pytest.mark.parametrize(("round_number", "kinds"), list(enumerate((5, 5, 6, 6, 7, 8), start=1)))
def test_each_round_has_its_kinds_of_symbols_and_no_two_sides_alike(round_number: int, kinds: int) -> None:
    first = 36 * ((round_number - 1) // 2)
    sides = [HOUSE_DECK.side(card, round_number).symbols for card in CARDS[first : first + 36]]
    assert len(set("".join(sides))) == kinds
    assert len({min(side, side[::-1]) for side in sides}) == 36
    assert all(len(set(side)) == min(kinds, 6) for side in sides)


@pytest.mark.parametrize(
    ("round_number", "solvable"), list(enumerate((1000, 1000, 997, 1000, 991, 834), start=1))
)
def test_so_many_hands_have_seven_cards_that_fit(round_number: int, solvable: int) -> None:
    """All hands that seat 0 is dealt from the seeds 0 to 999 are searched again, each to the end."""
    solved = 0
    for number in range(1000):
        search = Search(hand_of(number.to_bytes(32, "big"), round_number), NODES)
        found = max(map(len, search.find_layouts())) >= GOAL
        assert found or search.nodes_left
        solved += found
    assert solved == solvable


def test_odd_rounds_show_the_white_side_and_even_ones_the_black() -> None:
    card = UbongoCard.parse("2-05")
    white, black = HOUSE_DECK.sides[card]
    assert (HOUSE_DECK.side(card, 3), HOUSE_DECK.side(card, 4)) == (Side(card, white), Side(card, black))


# --- Decks of operators --------------------------------------------------------------------------------

PLAIN_LINES = ["seatwise.ubongo-deck/1 plain", *(f"{card} AAAAAA AAAAAA" for card in CARDS)]


def changed(line: int, text: str) -> str:
    return "\n".join([*PLAIN_LINES[:line], text, *PLAIN_LINES[line + 1 :]])


def test_comments_empty_lines_the_order_of_cards_and_white_space_mean_nothing() -> None:
    head, *cards = PLAIN_LINES
    lines = ["# mine", "", head, "  ", *(f"{card}  " for card in cards[::-1]), "# end"]
    assert parse_deck("\r\n".join(lines)) == PLAIN


def test_the_digest_is_that_of_canonical_json() -> None:
    sides = {str(card): list(HOUSE_DECK.sides[card]) for card in CARDS}
    written = {"format": "seatwise.ubongo-deck/1", "name": "house-1", "cards": sides}
    canonical = json.dumps(written, sort_keys=True, separators=(",", ":"))
    assert HOUSE_DECK.digest == sha256(canonical.encode()).hexdigest()


def test_decks_are_equal_when_name_and_cards_are() -> None:
    again = parse_deck("\n".join(PLAIN_LINES))
    assert again == PLAIN
    assert hash(again) == hash(PLAIN)
    for other in (changed(0, "seatwise.ubongo-deck/1 other"), changed(5, "1-05 AAAAAA AAAAAB")):
        assert parse_deck(other) != PLAIN
        assert parse_deck(other).digest != PLAIN.digest


@pytest.mark.parametrize(
    ("line", "text", "said"),
    [
        (0, "", "line 2: a deck file begins with seatwise.ubongo-deck/1 and the deck's name, not with '1-01 AAAAAA AAAAAA'"),
        (0, "seatwise.ubongo-deck/1", "line 1: a deck file begins with"),
        (0, "seatwise.ubongo-deck/2 plain", "line 1: a deck file begins with"),
        (0, "seatwise.ubongo-deck/1 a b", "line 1: a deck file begins with"),
        (0, "seatwise.ubongo-deck/1 Plain", "line 1: a name has up to 32 of a-z, 0-9, . and -, not 'Plain'"),
        (0, "seatwise.ubongo-deck/1 a:b", "line 1: a name has up to 32"),
        (0, "seatwise.ubongo-deck/1 " + "a" * 33, "line 1: a name has up to 32"),
        (3, "1-02 AAAAAA AAAAAA", "line 4: 1-02 a second time"),
        (3, "1-37 AAAAAA AAAAAA", "line 4: '1-37' is no card: one of 1-01 to 3-36"),
        (3, "1-03 AAAAA AAAAAA", "line 4: a side has six letters from A to Z, not 'AAAAA'"),
        (3, "1-03 AAAAAA AAAAAAA", "line 4: a side has six letters from A to Z, not 'AAAAAAA'"),
        (3, "1-03 AAAAAA AAAaAA", "line 4: a side has six letters from A to Z, not 'AAAaAA'"),
        (3, "1-03 AAAAAA AAA1AA", "line 4: a side has six letters"),
        (3, "1-03 AAAAAA \u0391AAAAA", "line 4: a side has six letters"),
        (3, "1-03 AAAAAA", "line 4: a card and its two sides are wanted, like 1-01 ABCDEA BCDEAB"),
        (3, "1-03 AAAAAA AAAAAA AAAAAA", "line 4: a card and its two sides are wanted"),
        (3, "x" * 60_000, "line 4: a card and its two sides are wanted"),
        (3, "", "cards are missing: 1-03; there are 3 decks of 36"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_deck_is_refused_with_line_and_reason(line: int, text: str, said: str) -> None:
    with pytest.raises(BadDeck) as refused:
        parse_deck(changed(line, text))
    assert str(refused.value).startswith(said)
    assert len(str(refused.value)) < 200


def test_many_missing_cards_are_counted() -> None:
    with pytest.raises(BadDeck, match="cards are missing: 1-10, 1-11, 1-12 and 96 more"):
        parse_deck("\n".join(PLAIN_LINES[:10]))


@pytest.mark.parametrize("text", ["", "\n\n", "# only words", "\0", "x" * 100_000])
def test_a_deck_that_is_no_file_is_refused(text: str) -> None:
    with pytest.raises(BadDeck, match=r"line 1: a deck file begins with|at most 65536 characters$"):
        parse_deck(text)


@given(st.text(max_size=300))
def test_any_text_is_a_deck_or_refused(text: str) -> None:
    with pytest.raises(BadDeck):
        parse_deck(text)


def test_a_deck_may_not_take_the_name_of_another() -> None:
    house = parse_deck("\n".join(["seatwise.ubongo-deck/1 house-1", *PLAIN_LINES[1:]]))
    for decks in ([house], [PLAIN, parse_deck(changed(0, "seatwise.ubongo-deck/1 plain")), house]):
        with pytest.raises(BadDeck, match="two decks here are called house-1: give yours another name"):
            Ubongo(decks)
    assert Ubongo([PLAIN, PLAIN]).complete_options({"deck": "plain"})["deck"] == PLAIN.label
