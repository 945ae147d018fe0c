"""Hearts of docs/examples/hearts: each hand goes as in OpenSpiel, nothing is told, and the better house bots win."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from doubles.hosted_games import load_example

from seatwise.hosting import Chance, HostedOption
from seatwise.testing import check_game

hearts = load_example("hearts")
GAME = hearts.HeartsRules()
DEFAULTS = {name: option.default for name, option in GAME.options.items()} | {"hands": 1}
HANDS = (Path(__file__).parent / "hearts_hands.jsonl").read_text().splitlines()

ORDER = tuple(rank + suit for rank in "23456789TJQKA" for suit in "CDHS")
"""The cards by OpenSpiel's number."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""The cards by OpenSpiel's number, as the file of hands writes them."""

Choose = Callable[[int, list[str]], str]
"""Chooses one of some cards for an action, which has its number in OpenSpiel's order: the passes by seat, then the plays."""


def first_state(options: dict[str, Any], deck: list[str]) -> Any:
    """The state after the deal of this deck: one card to each seat in turn."""
    hands = tuple(hearts.rules.sort_cards(deck[seat::4]) for seat in range(4))
    return hearts.HeartsState(options, options["passing"], hands)


def play_here(state: Any, choose: Choose) -> Iterator[tuple[int, list[str]]]:
    """Play a hand; yield who is to play what, and at last the penalty points."""
    chance, number = Chance(bytes(32)), 0
    while state.is_passing:
        places = {seat: 3 * seat + number for seat in range(4)}
        moves = {seat: choose(place, GAME.list_choices(state, seat)) for seat, place in places.items()}
        state, number = GAME.play_choices(state, moves, chance), number + 1
    place = 12 if number else 0
    while not state.is_over:
        legal = sorted(GAME.list_moves(state), key=ORDER.index)
        yield GAME.find_turn(state), legal
        state, place = GAME.play_move(state, choose(place, legal), chance), place + 1
    yield -1, [str(points) for points in state.results[0]]


def play_in_openspiel(
    options: dict[str, Any], deck: list[str], choose: Choose
) -> Iterator[tuple[int, list[str]]]:
    """The same in OpenSpiel."""
    pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed: pip install open-spiel")
    parameters = {"qs_breaks_hearts": options["queen_breaks_hearts"], "jd_bonus": options["jack_of_diamonds"]}
    state = pyspiel.load_game(
        "hearts", {key: value == "yes" for key, value in parameters.items()}
    ).new_initial_state()
    for action in (hearts.rules.DIRECTIONS[options["passing"]], *map(ORDER.index, deck)):
        state.apply_action(action)
    passes, place = (0 if options["passing"] == "hold" else 12), 0
    while not state.is_terminal():
        legal = [ORDER[action] for action in state.legal_actions()]
        if place >= passes:
            yield state.current_player(), legal
        state.apply_action(ORDER.index(choose(place, legal)))
        place += 1
    yield -1, [str(26 - int(points)) for points in state.returns()]


def digest_of(steps: Iterator[tuple[int, list[str]]]) -> str:
    return sha256(json.dumps(list(steps)).encode()).hexdigest()[:12]


@pytest.mark.parametrize("play", ["here", pytest.param("in OpenSpiel", marks=pytest.mark.slow)])
def test_stored_hands_of_openspiel(play: str) -> None:
    """Their legal cards and penalty points are stored as a digest, so the fast test needs no OpenSpiel."""
    assert len(HANDS) >= 36
    for line in HANDS:
        hand = json.loads(line)
        options = DEFAULTS | hand["options"]
        deck, actions = (
            [ORDER[LETTERS.index(letter)] for letter in hand[key]] for key in ("deck", "actions")
        )
        replay = lambda place, legal: actions[place]  # noqa: E731, B023
        steps = (
            play_here(first_state(options, deck), replay)
            if play == "here"
            else play_in_openspiel(options, deck, replay)
        )
        assert digest_of(steps) == hand["digest"], line


def draw_match(number: int) -> tuple[dict[str, Any], list[str], Choose]:
    """The options, the deck and the moves of a random match. In some, seat 0 wants every trick, and so shoots the moon at times."""
    draw = random.Random(number)
    options = DEFAULTS | {
        "passing": draw.choice(["left", "across", "right", "hold"]),
        "queen_breaks_hearts": draw.choice(["yes", "no"]),
        "jack_of_diamonds": draw.choice(["no", "yes"]),
    }
    deck = draw.sample(ORDER, 52)
    if number % 10 == 0:  # seat 0 is dealt the high cards, or seat 1 the penalty cards
        first = (
            ORDER[-13:] if number % 20 else [card for card in ORDER if card in hearts.rules.PENALTIES][-13:]
        )
        others = [card for card in deck if card not in first]
        places = iter(draw.sample(first, 13))
        at = 0 if number % 20 else 1
        deck = [next(places) if place % 4 == at else others.pop() for place in range(52)]
    chosen: dict[int, str] = {}

    def choose(place: int, legal: list[str]) -> str:
        """Choose once for each action, so that both games are played alike."""
        if place not in chosen:
            chosen[place] = (
                max(legal, key=ORDER.index) if number % 5 == 0 and place >= 12 else draw.choice(legal)
            )
        return chosen[place]

    return options, deck, choose


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_random_matches_go_as_in_openspiel() -> None:
    seen = Counter[str]()
    for number in range(10_000):
        options, deck, choose = draw_match(number)
        here = list(play_here(first_state(options, deck), choose))
        assert here == list(play_in_openspiel(options, deck, choose)), number
        points = sorted(map(int, here[-1][1]))
        seen["moon"] += points[-2] >= 26 and sum(points) > 26
        seen["points first"] += any(
            card in hearts.rules.PENALTIES for _, legal in here[1:4] for card in legal
        )
        seen[options["passing"]] += 1
    assert min(seen.values()) > 20, seen


# The game as a server hosts it


class OneHand(hearts.Hearts):  # type: ignore[misc, name-defined]
    """A short match."""

    options = {**GAME.options, "hands": HostedOption(1, range(1, 2))}  # noqa: RUF012


def test_the_game_is_right() -> None:
    report = check_game(OneHand, matches=1)
    assert (report.faults, report.secrets) == ((), "checked")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_game_is_right_with_all_options() -> None:
    report = check_game(hearts.Hearts, matches=8)
    assert (report.faults, report.secrets) == ((), "checked")


def play_levels(levels: list[str], seed: int, options: dict[str, Any]) -> list[int]:
    """Play a match of house bots; return the points."""
    chance, own = Chance(seed.to_bytes(32)), [Chance(bytes([seat]) * 32) for seat in range(4)]
    state = GAME.start_match(4, options, chance)

    def ask(seat: int, legal: list[str]) -> str:
        move = hearts.Hearts.house_bots[levels[seat]](GAME.show_state(state, seat), legal, own[seat])
        assert move in legal
        return str(move)

    while (turn := GAME.find_turn(state)) is not None:
        if state.is_passing:
            moves = {seat: ask(seat, GAME.list_choices(state, seat)) for seat in turn}
            state = GAME.play_choices(state, moves, chance)
        else:
            state = GAME.play_move(state, ask(turn, GAME.list_moves(state)), chance)
    return GAME.count_points(state)


@pytest.mark.parametrize(
    ("better", "worse", "deals"),
    [
        ("club", "beginner", 20),
        ("master", "club", 4),
        pytest.param("master", "club", 60, marks=pytest.mark.slow),
    ],
)
def test_a_better_house_bot_wins(better: str, worse: str, deals: int) -> None:
    """Two of each sit at a table, and play each deal from both pairs of seats."""
    lead = 0
    for deal in range(deals):
        first = play_levels([better, worse] * 2, deal, DEFAULTS)
        second = play_levels([worse, better] * 2, deal, DEFAULTS)
        lead += sum(first[::2]) - sum(first[1::2]) + sum(second[1::2]) - sum(second[::2])
    assert lead > 4 * deals


def test_people_see_the_cards_that_they_may_know() -> None:
    state = GAME.start_match(4, DEFAULTS | {"passing": "hold"}, Chance(bytes(32)))
    leader = GAME.find_turn(state)
    table = hearts.Hearts().draw(GAME.show_state(state, None), None)
    backs = [item["cards"] for item in table if item.get("zone") == "Hand"]
    assert backs == [[{"face": "down"}] * 13] * 4
    after = GAME.play_move(state, "2C", Chance(bytes(32)))
    before, view = GAME.show_state(state, None), GAME.show_state(after, None)
    assert hearts.Hearts().narrate(before, None, leader, view) == f"{{{leader}}} plays the 2 of clubs."
    own = hearts.Hearts().draw(GAME.show_state(after, leader), leader)
    [hand] = [item["cards"] for item in own if item.get("zone") == "Hand" and item["owner"] == leader]
    assert len(hand) == 12
    assert {"zone": "Plays", "owner": leader, "cards": [{"text": "2♣", "colour": "black", "rank": 0}]} in own


def test_a_trick_of_thirteen_points_and_a_moon_are_told() -> None:
    hands = (("2C", "3C"), ("QS", "4C"), ("5C", "6C"), ("7C", "AC"))
    hearts_taken = tuple(hearts.rules.Trick(3, (card, "2D", "3D", "4D")) for card in ORDER if card[1] == "H")
    state = (
        first_state(DEFAULTS | {"passing": "hold"}, list(ORDER))
        ._replace(
            hands=tuple((card,) for card, _ in hands), tricks=(*hearts_taken, hearts.rules.Trick(3, ("AC",)))
        )
        ._replace(hands=(("3C",), ("QS",), ("6C",), ()))
    )
    game, views, chance = hearts.Hearts(), [], Chance(bytes(32))
    for card in ("3C", "QS", "6C"):
        views.append(game.show_state(state, None))
        state = game.play_move(state, card, chance)
    views.append(game.show_state(state, None))
    assert game.narrate(views[1], "QS", 1, views[2]) == "{1} plays the queen of spades."
    told = "{2} plays the 6 of clubs. {3} takes the trick and 13 points. {3} shoots the moon!"
    assert game.narrate(views[2], "6C", 2, views[3]) == told
    assert game.count_points(state) == [-26, -26, -26, 0]
