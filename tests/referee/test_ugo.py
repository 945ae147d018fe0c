"""UGO! as the leaflet has it: its examples, and the rulings where it is silent.

U1 to U33 are the numbers that the rules carry in `seatwise_referee.games.ugo`.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matches.ugo_positions import (
    SEED,
    UGO,
    cards,
    defaulted,
    farmers,
    kingdom_of,
    pace,
    play,
    play_to_the_end,
    position,
)

from seatwise_referee.game import IllegalMove, Outcome, Prompt, Seat
from seatwise_referee.games.ugo import (
    CARDS,
    Arrange,
    Kingdom,
    Play,
    Trick,
    UgoCard,
    farmers_by_section,
    farmers_gained,
    has_choice,
    lay,
    score_kingdom,
    score_section,
    winner_of,
)

VECTORS = json.loads((Path(__file__).parent / "data" / "ugo-vectors.json").read_text())

# --- The leaflet's examples ----------------------------------------------------------------------------

TRICKS = pytest.mark.parametrize("vector", VECTORS["ugo_tricks"], ids=lambda vector: vector["id"])


@TRICKS
def test_an_example_trick_has_the_printed_winner_and_farmers(vector: dict[str, Any]) -> None:
    names = [name for name, _ in vector["plays"]]
    trick = cards(" ".join(card for _, card in vector["plays"]))
    winner = winner_of(trick)
    gains = dict(zip(names, farmers_gained(trick, winner), strict=True))
    assert names[winner] == vector["winner"]
    if "supply" not in vector:
        assert {name: gain for name, gain in gains.items() if gain} == vector["farmers"]


@TRICKS
def test_an_example_trick_played_at_the_table_has_the_printed_winner_and_farmers(
    vector: dict[str, Any],
) -> None:
    names = [name for name, _ in vector["plays"]]
    played = [card for _, card in vector["plays"]]
    used = {card[0] for card in played}
    spare = next(
        colour for colour in "YKGBR" if colour not in used
    )  # each keeps a card, so the round goes on
    hands = [f"{card} {spare}{seat}" for seat, card in enumerate(played)]
    supply = vector.get("supply", 36)
    state = play(position(*hands, supply=supply), *played)
    gained = {name: count for name, count in zip(names, farmers(state), strict=True) if count}
    assert names[state.table.leader] == vector["winner"]
    assert gained == vector["farmers"]
    assert state.table.supply == vector.get("supply_after", supply - sum(gained.values()))


@pytest.mark.parametrize("vector", VECTORS["ugo_kingdoms"], ids=lambda vector: vector["id"])
def test_an_example_kingdom_has_the_printed_score(vector: dict[str, Any]) -> None:
    stacks = [" ".join(vector["sections"].get(section, [])) for section in "ABCDE"]
    kingdom = kingdom_of(*stacks, farmers=vector["farmers"])
    assert score_kingdom(kingdom) == vector["score"]
    in_parts = map(score_section, range(5), kingdom.tops, farmers_by_section(kingdom.farmers))
    assert [part for part in in_parts if part] == [
        int(part) for part in re.findall(r"-?[1-9]\d*", vector["parts"])
    ]


@pytest.mark.parametrize("farmers", range(10))
def test_example_g_scores_the_same_with_five_to_eight_farmers(farmers: int) -> None:
    score = score_kingdom(kingdom_of("R8", "B6", "G2", farmers=farmers))
    assert (score == 19) == (5 <= farmers <= 8)


@pytest.mark.parametrize(("farmers", "score"), list(enumerate((0, 0, 1, 1, 1, 4, 4, 4, 4, 9))))
def test_an_empty_kingdom_scores_the_printed_points_of_its_full_sections(farmers: int, score: int) -> None:
    assert score_kingdom(Kingdom(farmers=farmers)) == score


@pytest.mark.parametrize(("farmers", "score"), [(0, -29), (9, 40)])
def test_five_eights_are_worth_what_their_farmers_make_of_them(farmers: int, score: int) -> None:
    assert score_kingdom(kingdom_of("R8", "B8", "G8", "Y8", "K8", farmers=farmers)) == score


def test_every_missing_farmer_costs_five() -> None:
    assert score_kingdom(kingdom_of("R4", "B4", "G4", "Y7", farmers=3)) == 4 + 4 + 4 - 10


def test_the_kingdom_on_the_photo_scores_nine() -> None:
    assert score_kingdom(kingdom_of("B6", "Y8", "G2", farmers=1)) == 6 + 8 - 5


def test_the_worst_kingdom_scores_minus_45_and_the_best_40() -> None:
    assert score_kingdom(kingdom_of("R0", "B0", "G5", "Y5", "K5")) == -45
    assert score_kingdom(kingdom_of("R8", "B8", "G8", "Y8", "K8", farmers=9)) == 40


@given(st.permutations(CARDS), st.integers(0, 45), st.integers(0, 9))
def test_no_kingdom_scores_beyond_minus_45_and_40(deck: list[UgoCard], count: int, farmers: int) -> None:
    assert -45 <= score_kingdom(lay(Kingdom(farmers=farmers), deck[:count])) <= 40


def test_two_tricks_of_the_leaflet_played_on_as_far_as_the_rules_allow() -> None:
    """Examples a and b with a yellow 0 for Susan's red one: with it she would have failed to follow in a."""
    state = position("R3 B1", "B5 Y0", "R6 B8", "R4 G6")  # Richard, Susan, Frank, Lucy
    state = play(state, "R3", "B5", "R6", "R4", ">R3 R4 R6 B5", "B8", "G6", "B1", "Y0", ">B1 B8 G6 Y0")
    assert UGO.outcome(state) == Outcome((0, 0, -6, 0), (1, 1, 4, 1), ((0, 0, -6, 0),))
    assert state.table.kingdoms[2] == kingdom_of("R3 R4 R6", "B5 B1 B8", "G6", "Y0", farmers=1)
    assert farmers(state) == [1, 0, 1, 0]


def test_the_order_of_two_colours_that_open_unfarmed_sections_does_not_matter() -> None:
    state = position("R3 B1", "B5 Y0", "R6 B8", "R4 G6")
    state = play(state, "R3", "B5", "R6", "R4", ">R3 R4 R6 B5", "B8", "G6", "B1", "Y0", ">B1 B8 Y0 G6")
    assert UGO.outcome(state) == Outcome((0, 0, -6, 0), (1, 1, 4, 1), ((0, 0, -6, 0),))


# --- Tricks (U9 to U14, U21, U22) ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trick", "winner"),
    [
        ("R3 B5", 1),  # U11: the highest value, whatever its colour
        ("R5 B5", 0),  # U12: of several the one in the led colour
        ("R2 B5 R5", 2),
        ("R2 B5 G5", 1),  # U13: none in the led colour, so the first
        ("R0 R1 R2 R3", 3),
        ("R0 B0 G0 Y0", 0),
    ],
)
def test_the_trick_goes_to_the_highest_then_the_led_colour_then_the_first(trick: str, winner: int) -> None:
    assert winner_of(cards(trick)) == winner


@given(st.permutations(CARDS), st.integers(2, 4))
def test_the_winner_of_any_trick_is_the_one_the_rules_say_in_words(deck: list[UgoCard], seats: int) -> None:
    trick = tuple(deck[:seats])
    best = [card for card in trick if card.value == max(card.value for card in trick)]  # U11
    following = [card for card in best if card.colour is trick[0].colour]  # U12
    assert trick[winner_of(trick)] == (following or best)[0]  # U13


@pytest.mark.parametrize(("value", "gain"), list(enumerate((0, 0, 0, 2, 2, 2, 1, 1, 0))))
def test_the_winning_card_brings_its_printed_farmers(value: int, gain: int) -> None:
    trick = cards(f"R{value} B0")
    assert farmers_gained(trick, 0) == [gain, 0]


@pytest.mark.parametrize(
    ("lost", "gain"), [("R0", 0), ("R1", 1), ("R2", 0), ("R3", 0), ("B0", 0), ("B1", 2), ("B2", 1), ("B3", 0)]
)
def test_lost_ones_and_twos_bring_farmers_and_more_in_another_colour(lost: str, gain: int) -> None:
    assert farmers_gained(cards(f"R8 {lost}"), 0) == [0, gain]


def test_lost_cards_are_compared_with_the_winning_card_not_with_the_led_one() -> None:
    assert farmers_gained(cards("B3 B1 G8 G1"), 2) == [0, 2, 0, 1]


def test_the_winner_of_a_trick_leads_the_next() -> None:
    state = play(position("R3 Y0", "R5 Y1", "R4 Y2"), "R3", "R5", "R4", ">R3 R4 R5")
    assert (state.asked, state.table.leader, pace(state)) == (1, 1, "card")


def test_seats_play_clockwise_from_the_leader() -> None:
    state = position("R3 Y0", "R4 Y1", "R5 Y2", leader=2)
    assert [play(state, *moves).asked for moves in ((), ("R5",), ("R5", "R3"))] == [2, 0, 1]


def test_a_seat_that_holds_the_led_colour_must_play_it_and_need_not_beat() -> None:
    state = play(position("R3", "R0 R5 B8"), "R3")
    assert list(UGO.legal_moves(state, Seat(1))) == [Play(card) for card in cards("R0 R5")]


def test_a_seat_that_has_none_of_the_led_colour_may_play_anything() -> None:
    state = play(position("R3", "B8 G0 K4"), "R3")
    assert list(UGO.legal_moves(state, Seat(1))) == [Play(card) for card in cards("B8 G0 K4")]


def test_example_b_cannot_follow_example_a_because_susan_would_not_have_followed() -> None:
    state = play(position("R3 B1", "B5 R0", "R6 B8", "R4 G6"), "R3")
    with pytest.raises(IllegalMove, match="B5 does not follow R3: you must play red, and hold R0"):
        play(state, "B5")


# --- Laying (U15 to U20) -------------------------------------------------------------------------------


def test_colours_open_sections_from_the_left_in_the_order_laid() -> None:
    assert lay(Kingdom(), cards("B5 R3 R4 R6")) == kingdom_of("B5", "R3 R4 R6")


def test_a_colour_that_lies_there_already_goes_on_its_own_stack() -> None:
    assert lay(kingdom_of("R6", "B5"), cards("G6 B1 B8")) == kingdom_of("R6", "B5 B1 B8", "G6")


def test_new_colours_take_the_next_free_sections_in_the_winners_order() -> None:
    assert lay(kingdom_of("R6", "B5"), cards("Y0 B1 G6")) == kingdom_of("R6", "B5 B1", "Y0", "G6")


def test_the_winner_chooses_freely_which_card_of_a_colour_ends_on_top() -> None:
    state = play(position("R3 Y0", "R5 Y1"), "R3", "R5", ">R5 R3")
    assert state.table.kingdoms[1].tops == (UgoCard.parse("R3"), None, None, None, None)


@given(st.permutations(CARDS))
def test_sections_fill_from_the_left_without_gaps_and_hold_one_colour_each(deck: list[UgoCard]) -> None:
    kingdom = Kingdom()
    for card in deck:
        kingdom = lay(kingdom, [card])
        used = [bool(stack) for stack in kingdom.sections]
        assert used == sorted(used, reverse=True)
        assert all(len({card.colour for card in stack}) <= 1 for stack in kingdom.sections)
        assert card in kingdom.tops
    assert sorted(card for stack in kingdom.sections for card in stack) == list(CARDS)


@pytest.mark.parametrize(
    ("kingdom", "won", "choice"),
    [
        (kingdom_of(), "R3 B5", True),  # two new colours
        (kingdom_of("R6"), "R3 B5", False),
        (kingdom_of("R6", "B1"), "R3 B5 G0", False),
        (kingdom_of("R6", "B1"), "K3 B5 G0", True),
        (kingdom_of("R6"), "R3 R4", True),  # two cards of one colour
        (kingdom_of("R6", "B1", "G1", "Y1", "K1"), "R3 B5 G0 Y0", False),
        (kingdom_of("R6", "B1", "G1", "Y1", "K1"), "R3 B5 G0 R0", True),
    ],
)
def test_there_is_a_choice_where_two_ways_of_laying_differ(kingdom: Kingdom, won: str, choice: bool) -> None:
    assert has_choice(kingdom, cards(won)) is choice


@given(st.permutations(CARDS), st.integers(0, 12), st.integers(2, 4))
def test_the_choice_is_just_that_some_other_order_gives_another_kingdom(
    deck: list[UgoCard], laid: int, won: int
) -> None:
    kingdom, trick = lay(Kingdom(), deck[:laid]), tuple(deck[-won:])
    state = position(*["R0"] * won)
    state = state._replace(table=state.table._replace(won=trick))
    ways = {lay(kingdom, move.cards) for move in UGO.legal_moves(state, Seat(0)) if isinstance(move, Arrange)}
    assert has_choice(kingdom, trick) == (len(ways) > 1)


def test_cards_that_can_lie_only_one_way_are_laid_without_a_question() -> None:
    kingdoms = (kingdom_of("R6"), kingdom_of())
    state = play(position("R8 Y0", "B5 Y1", kingdoms=kingdoms), "R8", "B5")
    assert pace(state) == "card"
    assert state.table.kingdoms[0] == kingdom_of("R6 R8", "B5")
    assert state.table.tricks == (Trick(Seat(0), cards("R8 B5"), Seat(0), cards("R8 B5")),)


def test_a_question_that_is_not_put_takes_no_number() -> None:
    kingdoms = (kingdom_of("R6"), kingdom_of())
    state = play(position("R8 Y0", "B5 Y1", kingdoms=kingdoms), "R8", "B5")
    assert UGO.prompt(state) == Prompt(3, frozenset({Seat(0)}), "card")


def test_the_winner_lays_before_he_leads() -> None:
    state = play(position("R8 Y0", "B5 Y1"), "R8", "B5")
    assert UGO.prompt(state) == Prompt(3, frozenset({Seat(0)}), "arrange")
    assert UGO.prompt(play(state, ">B5 R8")) == Prompt(4, frozenset({Seat(0)}), "card")


def test_the_last_trick_is_laid_before_the_round_is_scored() -> None:
    state = play(position("R8", "B5"), "R8", "B5")
    assert (pace(state), UGO.view(state, None).points) == ("arrange", ())
    assert UGO.view(play(state, ">B5 R8"), None).points == ((13, 0),)


def test_every_order_of_the_won_cards_is_legal_and_the_default_comes_first() -> None:
    state = play(position("R3 K0", "B5 K1", "R6 K2", "R4 K3"), "R3", "B5", "R6", "R4")
    ways = [move.cards for move in UGO.legal_moves(state, Seat(2)) if isinstance(move, Arrange)]
    assert len(ways) == len(set(ways)) == 24
    assert ways[0] == cards("R3 R4 R6 B5")
    assert all(UGO.play(state, Seat(2), Arrange(way)).asked == 2 for way in ways)


# --- Farmers (U4, U21 to U26) --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("farmers", "standing"),
    [
        (0, (0, 0, 0, 0, 0)),
        (1, (0, 0, 1, 0, 0)),
        (2, (0, 0, 2, 0, 0)),
        (4, (0, 0, 2, 2, 0)),
        (9, (0, 0, 2, 3, 4)),
    ],
)
def test_farmers_fill_c_then_d_then_e(farmers: int, standing: tuple[int, ...]) -> None:
    assert farmers_by_section(farmers) == standing


def test_a_seat_with_one_free_place_takes_one_of_two_farmers_and_leaves_the_other() -> None:
    kingdoms = (kingdom_of(farmers=8), kingdom_of())
    state = play(position("R5 Y0", "R0 Y1", kingdoms=kingdoms, supply=4), "R5", "R0")
    assert (farmers(state), state.table.supply) == ([9, 0], 3)


def test_a_full_kingdom_takes_no_farmers() -> None:
    kingdoms = (kingdom_of(farmers=9), kingdom_of())
    state = play(position("R5 Y0", "R0 Y1", kingdoms=kingdoms, supply=3), "R5", "R0")
    assert (farmers(state), state.table.supply) == ([9, 0], 3)


def test_the_loser_takes_the_cards_that_a_full_winner_leaves() -> None:
    kingdoms = (kingdom_of(farmers=8), kingdom_of(farmers=2))
    state = play(position("R5 Y0", "B1 Y1", kingdoms=kingdoms, supply=2), "R5", "B1")
    assert (farmers(state), state.table.supply) == ([9, 3], 1 - 1)


@pytest.mark.parametrize("leader", [0, 1])
def test_of_a_short_supply_the_winner_takes_first_whoever_led(leader: int) -> None:
    moves = ["R5", "B1"] if leader == 0 else ["B1", "R5"]
    state = play(position("R5 Y0", "B1 Y1", leader=leader, supply=1), *moves)
    assert (farmers(state), state.table.supply) == ([1, 0], 0)


def test_of_a_short_supply_losers_take_clockwise_from_the_winner() -> None:
    state = play(position("B1 K0", "G1 K1", "R8 K2", "Y1 K3", supply=3), "B1", "G1", "R8", "Y1")
    assert (farmers(state), state.table.supply) == ([1, 0, 0, 2], 0)


@pytest.mark.parametrize(("seats", "supply"), [(2, 12), (3, 36), (4, 36)])
def test_every_round_starts_with_all_farmers_in_the_supply(seats: int, supply: int) -> None:
    state = UGO.deal(seats, SEED, {"rounds": 2})
    while state.asked is not None:
        if not state.table.tricks:
            assert (farmers(state), state.table.supply) == ([0] * seats, supply)
        assert sum(farmers(state)) + state.table.supply == supply
        state = defaulted(state)


# --- Rounds and the end (U5 to U8, U27 to U33) ---------------------------------------------------------


def test_a_section_with_all_its_farmers_counts_only_its_top_card() -> None:
    assert score_section(2, UgoCard.parse("G6"), 2) == 6  # and not the printed 1 besides


def test_a_top_zero_with_all_its_farmers_counts_nothing() -> None:
    assert score_section(4, UgoCard.parse("G0"), 4) == 0


def test_a_card_short_of_farmers_counts_nothing_and_each_missing_one_costs_five() -> None:
    assert [score_section(3, UgoCard.parse("G8"), standing) for standing in range(4)] == [-15, -10, -5, 8]


def test_an_empty_section_short_of_farmers_costs_nothing() -> None:
    assert [score_section(4, None, standing) for standing in range(5)] == [0, 0, 0, 0, 5]


def in_clear(text: str) -> list[str]:
    return list(map(str, cards(text)))


def test_ten_cards_go_to_each_seat_in_the_order_of_the_shuffle() -> None:
    deals: list[Any] = UGO.deals_in_clear(3, SEED, {"rounds": 2})
    assert deals[0] == {
        "round": 1,
        "starter": 0,
        "hands": [
            in_clear("G3 Y7 R4 K2 Y8 B6 G4 B3 R1 G2"),
            in_clear("K7 B2 R3 K1 B7 R5 G8 Y5 K4 Y0"),
            in_clear("B8 K8 R2 B5 R8 Y3 R0 Y4 R7 G7"),
        ],
        "aside": in_clear("G1 B1 K5 Y2 Y6 K6 Y1 B4 G0 R6 G6 B0 K3 G5 K0"),
    }
    assert deals[1]["hands"][0] == in_clear("R0 K8 G0 Y7 G5 G4 R3 K3 Y2 K6")
    assert (deals[1]["round"], deals[1]["starter"]) == (2, 1)


def test_every_card_of_a_round_is_in_one_place() -> None:
    deals: list[Any] = UGO.deals_in_clear(4, SEED, {"rounds": 8})
    for deal in deals:
        places = [*deal["hands"], deal["aside"]]
        assert Counter(card for place in places for card in place) == Counter(map(str, CARDS))


@pytest.mark.parametrize(("seats", "starters"), [(2, [0, 1, 0, 1]), (3, [0, 1, 2, 0]), (4, [0, 1, 2, 3])])
def test_the_start_goes_round_the_table(seats: int, starters: list[int]) -> None:
    state, seen = UGO.deal(seats, SEED, {"rounds": 4}), []
    while state.asked is not None:
        view = UGO.view(state, None)
        if view.round > len(seen):
            assert view.starter == view.leader == state.asked
            seen.append(view.starter)
        state = defaulted(state)
    assert seen == starters


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_a_match_has_its_rounds_of_ten_tricks_and_adds_up_their_points(seats: int) -> None:
    state = play_to_the_end(UGO.deal(seats, SEED, {"rounds": 3}), random.Random(1))
    outcome, view = UGO.outcome(state), UGO.view(state, None)
    assert outcome is not None
    assert len(outcome.rounds) == 3
    assert outcome.points == tuple(map(sum, zip(*outcome.rounds, strict=True)))
    assert len(view.tricks) == len(view.last_round) == 10


def test_when_the_match_is_over_the_last_kingdoms_and_tricks_stay_to_be_seen() -> None:
    state = play_to_the_end(UGO.deal(3, SEED, {"rounds": 2}), random.Random(1))
    view = UGO.view(state, Seat(0))
    assert (view.round, view.rounds, view.hand, view.legal_cards, view.trick) == (2, 2, (), (), ())
    assert view.points[-1] == tuple(map(score_kingdom, view.kingdoms))
    assert sum(len(stack) for kingdom in view.kingdoms for stack in kingdom.sections) == 30


def test_equal_points_share_a_rank() -> None:
    state = play(position("R8", "B0", "G0"), "R8", "B0", "G0", ">R8 B0 G0")
    assert UGO.outcome(state) == Outcome((-2, 0, 0), (3, 1, 1), ((-2, 0, 0),))


def test_there_is_no_outcome_before_the_end() -> None:
    assert UGO.outcome(UGO.deal(2, SEED, {"rounds": 1})) is None
