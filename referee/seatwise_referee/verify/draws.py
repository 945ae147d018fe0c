"""The draw of a mixed move, made again."""

from __future__ import annotations

from collections.abc import Iterable

from seatwise_referee.journal import DrawnMove, canonical_json, fault_of_choices
from seatwise_referee.mixed_move import MOST_CHOICE_WEIGHT, MOST_MIXED_CHOICES, draw_choice
from seatwise_referee.setup import Setup
from seatwise_referee.verify.fault import BadRecord, quote_value


def check_draw(entry: DrawnMove, setup: Setup, nonces: Iterable[bytes | None]) -> None:
    """Check the number of choices and their weights, and that the move is the one that was drawn. Raises `BadRecord`."""
    choices = entry.choices
    if not 1 <= len(choices) <= MOST_MIXED_CHOICES:
        raise BadRecord(
            f"a mixed move has 1 to {MOST_MIXED_CHOICES} choices, and here are {len(choices)}", entry.seq
        )
    for choice in choices:
        if choice.weight > MOST_CHOICE_WEIGHT:
            raise BadRecord(
                f"the weight {quote_value(choice.weight)} is above {MOST_CHOICE_WEIGHT}", entry.seq
            )
    if fault := fault_of_choices(entry.seq, choices):
        raise BadRecord(fault, entry.seq)
    index = draw_choice(setup, nonces, entry.seat, entry.prompt, (choice.weight for choice in choices))
    if canonical_json(choices[index].move) != canonical_json(entry.move):
        raise BadRecord(
            f"seat {entry.seat} moved {quote_value(entry.move)}, but the draw gives {quote_value(choices[index].move)}",
            entry.seq,
        )
