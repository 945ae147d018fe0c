"""Writes the positions of UGO! for replays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import sub
from typing import TYPE_CHECKING, Any, Final

from seatwise.kits.frames import (
    INK,
    RULE,
    SOFT,
    SeatPicture,
    count_totals,
    describe_lead,
    draw_box,
    draw_words,
)
from seatwise_referee.game import Json
from seatwise_referee.games.ugo import (
    MOST_FARMERS,
    Kingdom,
    Trick,
    UgoView,
    farmers_by_section,
    farmers_gained,
    lay,
    score_kingdom,
    score_section,
)
from seatwise_referee.games.ugo.kingdoms import EMPTY_KINGDOM, FARMER_PLACES

if TYPE_CHECKING:
    from seatwise.kits.frames import Frame, FrameWriter, TableFacts


SECTION_NAMES: Final = "ABCDE"

MUCH: Final = 15
"""Points of a kingdom that are told when one step changes them by so many."""


class UgoFrameWriter:
    """Writes views of UGO!: the trick, the kingdoms with their farmers, and at the end of a round what each section scores."""

    def write_table(self, view: UgoView) -> TableFacts:
        """Return the trick, the last trick, and the kingdoms."""
        last = view.tricks[-1] if view.tricks else None
        return {
            "round": view.round,
            "rounds": view.rounds,
            "points": [list(each) for each in view.points],
            "running": list(map(score_kingdom, view.kingdoms)),
            "leader": view.leader,
            "trick": _texts_of(view.trick),
            "tricks": len(view.tricks),
            "last": _write_trick(last) if last else None,
            "hand_sizes": list(view.hand_sizes),
            "supply": view.supply,
            "kingdoms": list(map(_write_kingdom, view.kingdoms)),
            "scores": None,
        }

    def write_own(self, view: UgoView) -> Json:
        """Return the hand."""
        return {"hand": list(_texts_of(view.hand))}

    def write_round_end(self, before: UgoView, after: UgoView) -> TableFacts | None:
        """Return the last trick of the round, the kingdoms, and the points of each section."""
        if len(after.points) == len(before.points):
            return None
        tricks = after.tricks if after.round == before.round else after.last_round
        had = before.supply + sum(kingdom.farmers for kingdom in before.kingdoms)
        kingdoms, supply = rebuild_kingdoms(tricks, len(after.kingdoms), had)
        return {
            "round": before.round,
            "rounds": after.rounds,
            "points": [list(each) for each in after.points],
            "leader": tricks[-1].winner,
            "trick": [],
            "tricks": len(tricks),
            "last": _write_trick(tricks[-1]),
            "hand_sizes": [0] * len(kingdoms),
            "supply": supply,
            "kingdoms": list(map(_write_kingdom, kingdoms)),
            "scores": list(map(section_scores, kingdoms)),
        }

    def write_own_at_round_end(self, before: UgoView) -> Json:  # noqa: ARG002  # the protocol has it
        """Return an empty hand: all cards are played."""
        return {"hand": []}

    def write_open_move(self, move: Json) -> Json:
        """Return the move: all cards are played openly."""
        return move

    def describe_move(self, move: Json) -> str:
        """Return "plays R3" or "lays R3, R4"."""
        match move:
            case {"play": str(card)}:
                return f"plays {card}"
            case {"arrange": [*cards]}:
                return f"lays {', '.join(map(str, cards))}"
        return "moves"

    def describe_change(self, before: UgoView, after: UgoView, names: Sequence[str]) -> str:
        """Say who has won the trick, and what the round has brought."""
        said = []
        is_same_round = after.round == before.round
        tricks = after.tricks if is_same_round else after.last_round
        if len(tricks) > len(before.tricks):
            said.append(f"{names[tricks[-1].winner]} wins the trick.")
        if len(after.points) > len(before.points):
            scored = ", ".join(f"{name} {own}" for name, own in zip(names, after.points[-1], strict=True))
            said.append(f"Round {before.round} is over: {scored}.")
        return " ".join(said)

    def describe_seen_moves(self, before: UgoView, after: UgoView, names: Sequence[str]) -> str:
        """Say which cards were played, or who laid its cards, if no more than one trick has ended in between."""
        tricks = after.tricks if after.round == before.round else after.last_round
        if len(tricks) > len(before.tricks) + 1 or after.round > before.round + 1:
            return ""
        is_won = len(tricks) > len(before.tricks)
        cards = tricks[-1].cards if is_won else after.trick
        leader = tricks[-1].leader if is_won else after.leader
        played = [(names[(leader + place) % len(names)], card) for place, card in enumerate(cards)]
        said = [f"{name} plays {card}." for name, card in played[len(before.trick) :]]
        return " ".join(said) or _describe_laying(before, after, names)

    def describe_turn(self, before: TableFacts, after: TableFacts, names: Sequence[str]) -> str:
        """Say whose kingdom gains or loses much by one trick, and who takes the lead."""
        old, new = (count_totals(table, len(names)) for table in (before, after))
        changes = zip(names, map(sub, new, old), strict=True)
        said = [
            f"{name} {'gains' if change > 0 else 'loses'} {abs(change)} points at one stroke."
            for name, change in changes
            if abs(change) >= MUCH
        ]
        return " ".join((*said, describe_lead(before, after, names))).strip()

    def draw_text(self, frame: Frame, names: Sequence[str]) -> str:
        """Draw the trick, and for each seat its hand and its kingdom."""
        table = frame.table
        lines = [
            f"Round {table['round']} of {table['rounds']}, trick {_trick_number(table)}, "
            f"{table['supply']} farmers left",
            _draw_trick(table, names),
        ]
        for seat, name in enumerate(names):
            lines += ["", *_draw_seat(frame, seat, name)]
        return "\n".join(lines)


def rebuild_kingdoms(tricks: Iterable[Trick], seats: int, farmers_in_all: int) -> tuple[list[Kingdom], int]:
    """Return the kingdoms, and the farmers left in the supply, after these tricks of one round (U14 to U25).

    The referee clears the table when a round is over; its tricks say what lay there.
    """
    kingdoms, supply = [EMPTY_KINGDOM] * seats, farmers_in_all
    for trick in tricks:
        gains = farmers_gained(trick.cards, (trick.winner - trick.leader) % seats)
        for step in range(seats):
            seat = (trick.winner + step) % seats
            sections, farmers = kingdoms[seat]
            gained = min(gains[(seat - trick.leader) % seats], MOST_FARMERS - farmers, supply)
            kingdoms[seat] = Kingdom(sections, farmers + gained)
            supply -= gained
        kingdoms[trick.winner] = lay(kingdoms[trick.winner], trick.laid)
    return kingdoms, supply


def section_scores(kingdom: Kingdom) -> list[int]:
    """Return what each section of a kingdom scores (U27 to U30)."""
    farmers = farmers_by_section(kingdom.farmers)
    return [score_section(number, top, farmers[number]) for number, top in enumerate(kingdom.tops)]


def _write_kingdom(kingdom: Kingdom) -> dict[str, Any]:
    return {"sections": [_texts_of(stack) for stack in kingdom.sections], "farmers": kingdom.farmers}


def _write_trick(trick: Trick) -> dict[str, Any]:
    return {"leader": trick.leader, "cards": _texts_of(trick.cards), "winner": trick.winner}


def _texts_of(cards: Iterable[Any]) -> list[str]:
    return list(map(str, cards))


def _describe_laying(before: UgoView, after: UgoView, names: Sequence[str]) -> str:
    if after.round != before.round:
        return ""
    kingdoms = zip(names, before.kingdoms, after.kingdoms, strict=True)
    return " ".join(f"{name} lays its cards." for name, old, new in kingdoms if old.sections != new.sections)


def _trick_number(table: TableFacts) -> int:
    """Return the number of the trick that lies on the table: the one being played, or else the last one."""
    return int(table["tricks"]) + bool(table["trick"]) or 1


def _draw_trick(table: TableFacts, names: Sequence[str]) -> str:
    trick = {"leader": table["leader"], "cards": table["trick"]} if table["trick"] else table["last"]
    if not trick:
        return f"{names[table['leader']]} leads"
    seats = len(names)
    played = [
        f"{names[(trick['leader'] + place) % seats]} {card}" for place, card in enumerate(trick["cards"])
    ]
    won = f"; {names[trick['winner']]} wins" if "winner" in trick else ""
    return f"Trick: {', '.join(played)}{won}"


def _draw_seat(frame: Frame, seat: int, name: str) -> list[str]:
    own, table = frame.own[seat], frame.table
    kingdom = table["kingdoms"][seat]
    size = table["hand_sizes"][seat]
    hand = " ".join(map(str, own["hand"])) if isinstance(own, dict) else f"{size} cards"  # type: ignore[arg-type]
    mark = ">" if seat in frame.asked else " "
    lines = [f"{mark} {name}, {frame.points[seat]} points", f"    hand  {hand or 'empty'}"]
    farmers = farmers_by_section(kingdom["farmers"])
    for number, stack in enumerate(kingdom["sections"]):
        places = FARMER_PLACES[number]
        standing = f"{'o' * farmers[number]}{'.' * (places - farmers[number])}"
        score = f"  {table['scores'][seat][number]:+d}" if table["scores"] else ""
        lines.append(f"    {SECTION_NAMES[number]} {standing:<4}  {' '.join(stack) or '-'}{score}")
    return lines


FRAME_WRITER: Final[FrameWriter] = UgoFrameWriter()


CARD_COLOURS = {"R": "#c8452f", "B": "#2f66b8", "G": "#3f7d2e", "Y": "#d9ab1f", "K": "#6d7379"}


def draw_seat(frame: Frame, seat: int) -> SeatPicture:
    """Return the picture of a kingdom: its five sections, with all cards of a stack in sight."""
    table: Any = frame.table
    shapes = []
    for place, stack in enumerate(table["kingdoms"][seat]["sections"]):
        shapes.append(draw_box(place * 63.5, 0, 56, 116, rx=5, fill="none", stroke=RULE))
        gap = min(15, 56 / max(1, len(stack) - 1))
        for number, card in enumerate(stack):
            x, y = place * 63.5 + 13, 8 + number * gap
            colour = INK if card[0] == "Y" else "#ffffff"
            middle = {"font_weight": "bold", "text_anchor": "middle"}
            shapes += [
                draw_box(x, y, 30, 44, rx=4, fill=CARD_COLOURS.get(card[0], SOFT), stroke="#00000066"),
                draw_words(x + 15, y + 18, card[1:], 17, colour, **middle),
                draw_words(x + 9, y + 38, card[0], 10, colour, **middle),
            ]
    return SeatPicture(310, 116, shapes)
