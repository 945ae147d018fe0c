"""What a bot may be, and what it may answer."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from seatwise import BadAnswerError, Bot, Card, UsageError, View
from seatwise.bot import ask_bot, check_bot, is_async, new_bot
from seatwise.kits import KITS
from seatwise.kits.game_kit import TurnMethod
from seatwise.offer import Offer
from seatwise_referee.game import Seat
from seatwise_referee.games.registry import GAMES
from seatwise_referee.games.ugo import Arrange, Play
from seatwise_referee.time_control import TimeControl

CARD, ARRANGE = (
    method for method in map(KITS["ugo"].find_method, ("card", "arrange")) if isinstance(method, TurnMethod)
)
R3, R5, B5, G1 = map(Card.parse, ("R3", "R5", "B5", "G1"))


class Says(Bot):
    """Answers what it is told to."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer

    def choose(self, view: View) -> Any:  # noqa: ARG002
        return self.answer

    def arrange(self, view: View) -> Any:  # noqa: ARG002
        return self.answer


class SaysLater(Says):
    async def choose(self, view: View) -> Any:  # noqa: ARG002
        return self.answer


@pytest.fixture
def view() -> View:
    """One in which R3 and R5 may be played."""
    game = GAMES["ugo"]
    dealt: View = game.view(game.deal(2, bytes(32), {"rounds": 1}), Seat(0))
    return replace(dealt, hand=(R3, R5, G1), legal_cards=(R3, R5))


@pytest.fixture
def won(view: View) -> View:
    """One in which R3, B5 and G1 are to be laid."""
    return replace(view, legal_cards=(), won_cards=(R3, B5, G1), arranger=Seat(0))


@pytest.mark.parametrize("answer", [R3, "R3", Play(R3)])
def test_a_card_is_a_card_its_text_or_its_play(view: View, answer: object) -> None:
    assert ask_bot(Says(answer), CARD, view) == Play(R3)


async def test_the_answer_of_an_async_bot_is_awaited(view: View) -> None:
    assert is_async(SaysLater(), CARD)
    assert not is_async(SaysLater(), ARRANGE)
    assert await ask_bot(SaysLater("R5"), CARD, view) == Play(R5)
    with pytest.raises(BadAnswerError):
        await ask_bot(SaysLater(None), CARD, view)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "None is no card: choose(view) must return one of view.legal_cards, here R3, R5"),
        (3, "3 is no card"),
        ("R9", "'R9' is no card: one of R, B, G, Y, K (grey) and 0 to 8, like R3"),
        ([R3], "[R3] is no card"),
        (G1, "G1 may not be played here: choose(view) must return one of view.legal_cards, here R3, R5"),
        ("x" * 1000, "'xxxxxxxxxx' is no card"),
        (["x" * 1000], "... is no card"),
    ],
)
def test_nonsense_for_a_card_is_told_with_what_would_be_right(view: View, answer: object, why: str) -> None:
    with pytest.raises(BadAnswerError) as bad:
        ask_bot(Says(answer), CARD, view)
    assert why in str(bad.value)
    assert len(str(bad.value)) < 250


@pytest.mark.parametrize(
    "answer", [(B5, R3, G1), [B5, R3, G1], iter([B5, R3, G1]), ["B5", R3, "G1"], Arrange((B5, R3, G1))]
)
def test_an_order_of_laying_is_any_list_of_the_won_cards(won: View, answer: object) -> None:
    assert ask_bot(Says(answer), ARRANGE, won) == Arrange((B5, R3, G1))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "None is no list of cards: arrange(view) must return each of view.won_cards once"),
        ("R3", "'R3' is no list of cards"),
        ([R3, B5], "R3, B5 was returned: arrange(view) must return each of view.won_cards once, here R3, B5, G1"),
        ([R3, B5, R5], "R3, B5, R5 was returned"),
        ([], "nothing was returned"),
        ([R3, B5, None], "None is no card"),
    ],
)  # fmt: skip
def test_nonsense_for_an_order_of_laying_is_told_too(won: View, answer: object, why: str) -> None:
    with pytest.raises(BadAnswerError) as bad:
        ask_bot(Says(answer), ARRANGE, won)
    assert why in str(bad.value)


def test_without_a_method_of_its_own_a_bot_lays_as_the_referee_would(won: View) -> None:
    class Chooses(Bot):
        def choose(self, view: View) -> Any: ...

    assert ask_bot(Chooses(), ARRANGE, won) == Arrange((B5, R3, G1))


def test_a_question_of_a_newer_server_is_a_clear_error() -> None:
    with pytest.raises(BadAnswerError, match="cannot ask a bot for 'dance'"):
        KITS["ugo"].find_method("dance")


def test_a_pace_of_one_game_means_nothing_in_another() -> None:
    with pytest.raises(BadAnswerError, match="cannot ask a bot for 'card'"):
        KITS["ubongo"].find_method("card")


class NoBot:
    def choose(self, view: View) -> Any: ...


class NoChoice(Bot):
    pass


@pytest.mark.parametrize(
    ("factory", "why"),
    [
        (Says(), "give the class Says, not an object of it"),
        (NoBot, r"the class NoBot is no bot: write class NoBot\(seatwise.Bot\)"),
        (NoChoice, "the bot NoChoice has no method choose"),
        (Bot, "the bot Bot has no method choose"),
        (7, "7 is no bot"),
    ],
)
def test_a_value_that_is_no_bot_is_refused(factory: object, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        check_bot(factory)


def test_a_new_bot_knows_its_place() -> None:
    class Empty(Says):
        def __init__(self) -> None:
            assert (self.name, self.match, self.seat) == ("", "", 0)

    chance = random.Random(1)
    offer = Offer(
        "matches/x", Seat(1), "ugo", ("bots/a/versions/1", "bots/b/versions/2"), {}, TimeControl(), b""
    )
    bot = new_bot(Empty, offer, chance)
    assert (bot.name, bot.match, bot.seat, bot.chance) == ("bots/b/versions/2", "matches/x", 1, chance)


def test_a_function_that_makes_no_bot_is_refused() -> None:
    offer = Offer("matches/x", Seat(0), "ugo", ("bots/a/versions/1",), {}, TimeControl(), b"")
    with pytest.raises(UsageError, match=r"which is no seatwise\.Bot"):
        new_bot(lambda: None, offer)  # type: ignore[arg-type,return-value]
