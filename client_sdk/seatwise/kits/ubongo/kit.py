"""The kit of Ubongo: how the steps of its bots become moves, its texts, samples, queue and house bots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from seatwise.errors import BadAnswerError, UsageError
from seatwise.kits.game_kit import CasualQueue, DemoKit, GameKit, GuestTable, HouseSeat, RaceMethod, shorten
from seatwise.kits.race_steps import Thought
from seatwise.kits.ubongo.text import describe_move, describe_view, draw_end
from seatwise.output import read_text_file
from seatwise_referee.game import IllegalMove
from seatwise_referee.games.registry import GAMES, use_decks
from seatwise_referee.games.ubongo import (
    DEFAULT_DIFFICULTY,
    GOAL,
    MAX_CHARACTERS,
    BadDeck,
    Call,
    Deck,
    Lay,
    Layout,
    OfferEnd,
    Placement,
    UbongoCard,
    UbongoView,
    parse_deck,
)
from seatwise_referee.games.ubongo.moves import check_layout


def use_deck_files(files: Sequence[str], default_deck: str = "") -> None:
    """Add the decks in these files to those of this process. `default_deck` is used where no deck is named.

    Raises `UsageError`, which names the file and the line.
    """
    decks = [_load_deck(file) for file in files]
    try:
        use_decks(decks, default_deck or DEFAULT_DIFFICULTY)
    except BadDeck as bad:
        raise UsageError(str(bad)) from None


def _load_deck(file: str) -> Deck:
    try:
        return parse_deck(read_text_file(file, MAX_CHARACTERS + 1))
    except BadDeck as bad:
        raise UsageError(f"{file}: {bad}") from None


Step: TypeAlias = Lay | OfferEnd | Call | Thought


class BuildReader:
    """Reads the answers of one bot in one round. It finds an illegal layout before the referee does."""

    def __init__(self, view: UbongoView) -> None:
        self._view = view
        self._laid: Layout = view.layout
        self._is_offering = view.seat in view.offers

    def read_step(self, answer: object) -> Step:
        """Return the move, or the thought."""
        match answer:
            case Thought(int(ms)) if ms >= 0:
                return Thought(ms)
            case OfferEnd(bool(on)):
                self._is_offering = on
                return OfferEnd(on)
            case Call():
                return self._read_call(answer)
            case Thought() | OfferEnd():
                raise BadAnswerError(f"{answer!r}: a thought has milliseconds, and an offer is True or False")
        return self._read_layout(answer)

    def _read_call(self, call: Call) -> Call:
        if self._is_offering:
            raise BadAnswerError("Call() while it offers the end: yield OfferEnd(False) first")
        if len(self._laid) < GOAL:
            raise BadAnswerError(f"Call() with {len(self._laid)} cards laid: it takes {GOAL}")
        return call

    def _read_layout(self, answer: object) -> Lay:
        layout = answer.layout if isinstance(answer, Lay) else _parse_layout(answer)
        try:
            check_layout(self._view.hand, layout)
        except IllegalMove as illegal:
            raise BadAnswerError(f"build(view) yielded a layout that cannot lie: {illegal}") from None
        self._laid = layout
        return Lay(layout)


def _parse_layout(answer: object) -> Layout:
    if isinstance(answer, str) or not isinstance(answer, Iterable):
        told = "build(view) yields layouts, OfferEnd(on), Thought(ms) and at last Call()"
        raise BadAnswerError(f"{shorten(answer)}: {told}")
    return tuple(map(_parse_placement, answer))


def _parse_placement(answer: Any) -> Placement:
    if type(answer) is Placement:
        return answer
    try:
        card, x, y, turn = answer
        return Placement(UbongoCard.parse(card) if isinstance(card, str) else UbongoCard(card), x, y, turn)
    except (TypeError, ValueError) as error:
        raise BadAnswerError(
            f"{shorten(answer)} is no placement: write (card, x, y, turn), as in ('1-01', 0, 0, 1) ({error})"
        ) from None


KIT: Final = GameKit(
    game=GAMES["ubongo"],
    title="Ubongo - Das Kartenspiel",
    methods={
        "build": RaceMethod(
            "build",
            new_reader=BuildReader,
            last_move=OfferEnd(on=True),
            usage="yield layouts, and at last Call()",
        )
    },
    samples={
        "random": "seatwise.kits.ubongo.samples:RandomBuilder",
        "first-fit": "seatwise.kits.ubongo.samples:FirstFit",
        "patient": "seatwise.kits.ubongo.samples:PatientBuilder",
        "beam": "seatwise.kits.ubongo.samples:Beam",
        "solver": "seatwise.kits.ubongo.samples:Solver",
        "look-ahead": "seatwise.kits.ubongo.samples:LookAhead",
    },
    hint_bot="solver",
    queues=(CasualQueue("casual-ubongo", 4),),
    codec_module="seatwise.kits.ubongo.codec",
    viewer_script="ubongo.js",
    describe_view=describe_view,
    describe_move=describe_move,
    house_bots=(
        HouseSeat("house-solver", "solver"),
        HouseSeat("house-builder", "random"),
        HouseSeat("house-builder-twin", "random"),
        HouseSeat("house-patient", "patient", is_paced=True),
    ),
    demo=DemoKit(
        {"random": "random", "random-twin": "random", "solver": "solver", "solver-twin": "solver"},
        free_ms={"build": 10_000},
    ),
    guest_table=GuestTable(("house-patient",), {"build": 300_000}),
    draw_end=draw_end,
    use_deck_files=use_deck_files,
    frames_module="seatwise.kits.ubongo.frames",
)
