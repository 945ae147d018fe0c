"""Hold'em of docs/examples/holdem: each step is that of OpenSpiel's universal_poker, nothing is told, the better house bots win."""

from __future__ import annotations

import random

import pytest
from doubles.hosted_games import load_example

from seatwise.hosting import Chance, HostedOption
from seatwise.testing import check_game
from seatwise_referee.game import IllegalMove, Seat
from seatwise_referee.hosted.hosted_rules import HostedRules
from seatwise_referee.hosted.payload import HostedMove

pytest.importorskip("pokerkit", reason="pokerkit is not installed: pip install ./docs/examples/holdem")
holdem = load_example("holdem")
rules = holdem.rules
GAME = holdem.Holdem()

UNIVERSAL_POKER = {
    "betting": "nolimit", "bettingAbstraction": "fullgame", "blind": "100 50", "firstPlayer": "2 1 1 1",
    "numBoardCards": "0 3 1 1", "numHoleCards": 2, "numPlayers": 2, "numRanks": 13, "numRounds": 4, "numSuits": 4,
    "stack": "20000 20000",
}  # fmt: skip
"""The same game for OpenSpiel. Its player 1 has the button; it names a raise by all chips that a player has then paid."""


PLAIN = {"fold": 0, "call": 1}
"""OpenSpiel's numbers of these moves."""


class Few(holdem.Holdem):  # type: ignore[misc, name-defined]
    """Short matches."""

    options = {"hands": HostedOption(3, range(1, 5))}  # noqa: RUF012


def draw_move(legal: list[str], raises: tuple[int, int] | None, draw: random.Random) -> str:
    """Fold seldom, and raise any legal amount, mostly a small one."""
    move = draw.choice(legal)
    if move == "fold" and draw.random() < 0.8:
        return "call"
    if move.startswith("raise") and raises and draw.random() < 0.7:
        return f"raise {draw.randint(raises[0], min(raises[1], raises[0] * draw.choice((1, 2, 4, 100))))}"
    return move


@pytest.mark.parametrize(
    "hands", [30, pytest.param(2_000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
def test_hands_go_as_in_openspiel(hands: int) -> None:
    pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed: pip install open-spiel")
    poker = pyspiel.load_game("universal_poker", UNIVERSAL_POKER)
    seen = {"fold": 0, "showdown": 0, "all in": 0, "shared": 0}
    for number in range(hands):
        draw, chance = random.Random(number), Chance(number.to_bytes(32))
        state, other = GAME.start_match(2, {"hands": 2}, chance), poker.new_initial_state()
        if number % 2:  # the second hand, in which seat 1 has the button
            state = GAME.play_move(state, "fold", chance)
        button, deal = state.hand.button, state.deal
        cards = iter([*deal.holes[1 - button], *deal.holes[button], *deal.board])
        while not other.is_terminal():
            if other.is_chance_node():
                other.apply_action(rules.DECK.index(next(cards)))
                continue
            hand, legal = state.hand, other.legal_actions()
            assert (hand.turn == button) == other.current_player()
            listed, amounts = GAME.list_moves(state), [action for action in legal if action > 1]
            assert [listed.count(move) for move in PLAIN] == [
                legal.count(action) for action in PLAIN.values()
            ]
            paid = rules.STACK - hand.stacks[hand.turn] - hand.bets[hand.turn]  # on the streets before
            least, most = hand.raises or (0, -1)
            assert amounts == list(range(least + paid, most + paid + 1))
            move = draw_move(listed, hand.raises, draw)
            assert GAME.check_move(state, hand.turn, move) == ""
            other.apply_action(PLAIN[move] if move in PLAIN else int(move.split()[1]) + paid)
            seen["all in"] += move == f"raise {most}"
            state = GAME.play_move(state, move, chance)
            last = move
        net = state.results[number % 2]
        assert [net[seat] for seat in (1 - button, button)] == [int(each) for each in other.returns()], number
        seen["fold" if last == "fold" else "showdown"] += 1
        seen["shared"] += net == (0, 0)
    assert min(seen.values()) > hands // 100, seen


def test_a_seat_may_raise_any_amount_and_nothing_else() -> None:
    hosted = HostedRules(GAME)
    state = hosted.deal(2, bytes(32), hosted.complete_options({}))
    assert state.views[0].legal_moves == [
        "fold",
        "call",
        "raise 200",
        "raise 300",
        "raise 500",
        "raise 20000",
    ]
    assert hosted.play(state, Seat(0), HostedMove('"raise 201"')).views[1].data["owed"] == 101
    for wrong in (
        "raise 199",
        "raise 20001",
        "raise 0201",
        "raise 201 ",
        "raise",
        "check",
        201,
        None,
        ["call"],
    ):
        with pytest.raises(IllegalMove, match='"raise N" with N from 200 to 20000'):
            hosted.play(state, Seat(0), hosted.move_from_json(wrong))


def test_two_matches_with_one_seed_have_the_same_cards_whatever_is_bet() -> None:
    """So a pair plays each deck from both sides, in two matches that know nothing of each other."""
    deals = []
    for move in ("fold", "call"):
        chance = Chance(bytes(32))
        state, dealt = GAME.start_match(2, {"hands": 5}, chance), []
        while GAME.find_turn(state) is not None:
            if not dealt or state.deal != dealt[-1]:
                dealt.append(state.deal)
            state = GAME.play_move(state, move if move in GAME.list_moves(state) else "call", chance)
        deals.append(dealt)
    assert deals[0] == deals[1]
    assert len(deals[0]) == 5


def test_cards_are_shown_after_a_showdown_alone() -> None:
    game, chance = Few(), Chance(bytes(32))
    state = game.start_match(2, {"hands": 2}, chance)
    deal = state.deal
    views = [game.show_state(state, None)]
    for move in ("raise 20000", "call"):
        state = game.play_move(state, move, chance)
        views.append(game.show_state(state, None))
    assert "hole" not in views[0]
    assert views[2]["last"][0]["holes"] == [list(hole) for hole in deal.holes]
    told = game.narrate(views[1], None, 1, views[2])
    assert told.startswith("{1} calls 19900. The board is ")
    assert " wins 20000 with " in told or told.endswith("Both share the pot.")
    folded = game.play_move(state, "fold", chance)
    assert game.show_state(folded, 0)["last"][1]["holes"] is None
    backs = [
        item["cards"]
        for item in game.draw(game.show_state(folded, None), None)
        if "Hand" in item.get("zone", "")
    ]
    assert backs == [[{"face": "down"}] * 2] * 2


@pytest.mark.parametrize("matches", [2, pytest.param(12, marks=[pytest.mark.slow, pytest.mark.timeout(600)])])
def test_the_game_is_right(matches: int) -> None:
    report = check_game(Few, matches=matches)
    assert (report.faults, report.secrets) == ((), "checked")


def play_levels(levels: tuple[str, str], seed: int, hands: int) -> int:
    """Play a match of house bots; return the points of seat 0."""
    chance, own = Chance(seed.to_bytes(32)), [Chance(bytes([seat]) * 32) for seat in (0, 1)]
    state = GAME.start_match(2, {"hands": hands}, chance)
    while (seat := GAME.find_turn(state)) is not None:
        moves = GAME.list_moves(state)
        move = GAME.house_bots[levels[seat]](GAME.show_state(state, seat), moves, own[seat])
        assert move in moves
        state = GAME.play_move(state, move, chance)
    return int(GAME.count_points(state)[0])


@pytest.mark.parametrize(
    ("better", "worse", "matches"),
    [
        ("club", "beginner", 2),
        pytest.param("master", "club", 20, marks=[pytest.mark.slow, pytest.mark.timeout(1800)]),
    ],
)
def test_a_better_house_bot_wins(better: str, worse: str, matches: int) -> None:
    """They play each deck from both sides."""
    hands = 100 if matches > 5 else 25
    won = sum(
        play_levels((better, worse), seed, hands) - play_levels((worse, better), seed, hands)
        for seed in range(matches)
    )
    assert won > 0
