"""The kit of UGO!: how the answers of its bots become moves, its texts, samples, queues and house bots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import permutations
from typing import Final

from seatwise.errors import BadAnswerError
from seatwise.kits.game_kit import (
    CasualQueue,
    DemoKit,
    GameKit,
    GuestTable,
    HouseSeat,
    TurnMethod,
    is_search_installed,
    shorten,
)
from seatwise_referee.games.registry import GAMES
from seatwise_referee.games.ugo import Arrange, Play, UgoCard, UgoMove, UgoView
from seatwise_referee.games.ugo.moves import PLAYS

MODEL_FREE_MS: Final = {"card": 180_000, "arrange": 180_000}
"""The free times in the queue `slow`, in milliseconds: most language models answer within a minute or two."""


def read_card(answer: object, view: UgoView) -> UgoMove:
    given = answer.card if isinstance(answer, Play) else answer
    card = given if isinstance(given, UgoCard) else _parse_card(given, _cards_to_choose(view))
    if card not in view.legal_cards:
        raise BadAnswerError(f"{card} may not be played here: {_cards_to_choose(view)}")
    return PLAYS[card]


def _cards_to_choose(view: UgoView) -> str:
    return "choose(view) must return one of view.legal_cards, here " + _list_cards(view.legal_cards)


def read_order(answer: object, view: UgoView) -> UgoMove:
    given = answer.cards if isinstance(answer, Arrange) else answer
    if isinstance(given, tuple | list):  # nearly always
        cards = tuple(given)
        if {*map(type, cards)} == {UgoCard} and sorted(cards) == sorted(view.won_cards):
            return Arrange(cards)
    return _read_order_carefully(given, view)


def _read_order_carefully(given: object, view: UgoView) -> UgoMove:
    """Return the order of cards that may be texts. Raises `BadAnswerError`, which lists the cards that were won."""
    where = "arrange(view) must return each of view.won_cards once, here " + _list_cards(view.won_cards)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise BadAnswerError(f"{shorten(given)} is no list of cards: {where}")
    cards = tuple(_parse_card(each, where) for each in given)
    if sorted(cards) != sorted(view.won_cards):
        raise BadAnswerError(f"{_list_cards(cards) or 'nothing'} was returned: {where}")
    return Arrange(cards)


def _parse_card(answer: object, where: str) -> UgoCard:
    if isinstance(answer, UgoCard):
        return answer
    if not isinstance(answer, str):
        raise BadAnswerError(f"{shorten(answer)} is no card: {where}")
    try:
        return UgoCard.parse(answer)
    except ValueError as error:
        raise BadAnswerError(f"{error}. {where}") from None


def _list_cards(cards: Iterable[UgoCard]) -> str:
    return ", ".join(map(str, cards))


def list_moves(view: UgoView) -> Mapping[str, UgoCard | tuple[UgoCard, ...]]:
    """Return the cards that may be played, or the orders in which the won cards may be laid, by their text."""
    if view.arranger is not None and view.arranger == view.seat:
        return {_name_cards(order): order for order in permutations(view.won_cards)}
    return {str(card): card for card in view.legal_cards}


def describe_view(view: UgoView) -> str:
    trick = _name_cards(view.trick or view.won_cards) or "-"
    farmers = " ".join(str(kingdom.farmers) for kingdom in view.kingdoms)
    points = " ".join(str(sum(each)) for each in zip(*view.points, strict=True)) or "-"
    return f"round {view.round}  trick {trick:<12} farmers {farmers}  points {points}"


def describe_move(move: UgoMove) -> str:
    return str(move.card) if isinstance(move, Play) else _name_cards(move.cards)


def _name_cards(cards: Iterable[UgoCard]) -> str:
    return " ".join(map(str, cards))


SEARCHING_SAMPLES: Final = {
    "search-500": "seatwise.kits.ugo.samples:Search500",
    "search-2000": "seatwise.kits.ugo.samples:Search2000",
    "search-time": "seatwise.kits.ugo.samples:SearchTime",
}
"""The samples that need `seatwise_fast`."""

KIT: Final = GameKit(
    game=GAMES["ugo"],
    title="UGO!",
    methods={"card": TurnMethod("choose", read_card), "arrange": TurnMethod("arrange", read_order)},
    samples={
        "random": "seatwise.kits.ugo.samples:RandomCard",
        "half-greedy": "seatwise.kits.ugo.samples:HalfGreedy",
        "greedy": "seatwise.kits.ugo.samples:Greedy",
        "counting": "seatwise.kits.ugo.samples:Counting",
        "counting-ahead": "seatwise.kits.ugo.samples:CountingAhead",
        **(SEARCHING_SAMPLES if is_search_installed() else {}),
    },
    hint_bot="counting",
    queues=(
        CasualQueue("casual", 4),
        CasualQueue("casual-2", 2),
        CasualQueue("casual-3", 3),
        CasualQueue("slow", 2, {"rounds": 1}, MODEL_FREE_MS, patience_ms=15_000),
    ),
    codec_module="seatwise.kits.ugo.codec",
    viewer_script="ugo.js",
    describe_view=describe_view,
    describe_move=describe_move,
    list_moves=list_moves,
    house_bots=(
        HouseSeat("house-counting", "counting"),
        HouseSeat("house-greedy", "greedy"),
        HouseSeat("house-random", "random"),
    ),
    other_house_bots=tuple(
        HouseSeat(f"house-{name}", name) for name in ("half-greedy", "counting-ahead", *SEARCHING_SAMPLES)
    ),
    searching_samples=frozenset(SEARCHING_SAMPLES),
    par_bot="greedy",
    playouts_module="seatwise.kits.ugo.match_luck",
    draws_module="seatwise.kits.ugo.match_luck",
    demo=DemoKit({name: name for name in ("half-greedy", "greedy", "counting", "counting-ahead")}),
    guest_table=GuestTable(
        ("house-counting", "house-greedy", "house-random"), {"card": 90_000, "arrange": 90_000}
    ),
    gifts_module="seatwise.kits.ugo.match_luck",
    frames_module="seatwise.kits.ugo.frames",
)
