"""The kit of Ubongo: how the steps of its bots become moves, its texts, samples, queue and house bots."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from seatwise.errors import BadAnswerError
from seatwise.kits.game_kit import CasualQueue, DemoKit, GameKit, GuestTable, HouseSeat, RaceMethod, shorten
from seatwise.kits.ubongo_decks import use_deck_files
from seatwise.kits.ubongo_text import describe_move, describe_view, draw_end
from seatwise.race_steps import Thought
from seatwise_referee.game import IllegalMove
from seatwise_referee.games.registry import GAMES
from seatwise_referee.games.ubongo import (
    GOAL,
    Call,
    Lay,
    Layout,
    OfferEnd,
    Placement,
    UbongoCard,
    UbongoView,
)
from seatwise_referee.games.ubongo.legality import check_layout

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
        raise BadAnswerError(
            f"{shorten(answer)}: build(view) yields layouts, OfferEnd(on), Thought(ms) and at last Call()"
        )
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
        "random": "seatwise.samples.ubongo_random:RandomBuilder",
        "first-fit": "seatwise.samples.ubongo_first_fit:FirstFit",
        "patient": "seatwise.samples.ubongo_patient:PatientBuilder",
        "beam": "seatwise.samples.ubongo_beam:Beam",
        "solver": "seatwise.samples.ubongo_solving:Solver",
        "look-ahead": "seatwise.samples.ubongo_look_ahead:LookAhead",
    },
    hint_bot="solver",
    queues=(CasualQueue("casual-ubongo", 4),),
    codec_module="seatwise.codec.ubongo",
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
    frames_module="seatwise.kits.ubongo_frames",
)
