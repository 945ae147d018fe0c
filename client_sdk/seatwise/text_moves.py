"""Moves as text, for bots that read and write text: language models, and people."""

from __future__ import annotations

from typing import Any

from seatwise.bot_errors import BadAnswerError, UsageError
from seatwise.kits.game_kit import GameKit

SHOWN_MOVES = 60
"""The most legal moves that an error names."""


def check_text_game(kit: GameKit) -> None:
    """Raise `UsageError` if the moves of a game cannot be listed."""
    if kit.list_moves is None:
        raise UsageError(
            f"{kit.name} has too many moves to list, so no bot that answers with text can play it here; choose another game"
        )


def list_move_texts(kit: GameKit, view: Any) -> tuple[str, ...]:
    """Return the legal moves of a view by their text; none if the seat is not asked."""
    return tuple(kit.list_moves(view)) if kit.list_moves is not None else ()


def read_move_text(kit: GameKit, view: Any, text: str) -> Any:
    """Return what a bot's method returns for the text of a move. Spaces, commas and case do not matter.

    Raises `BadAnswerError` if it is no legal move. The message names the legal moves.
    """
    moves = kit.list_moves(view) if kit.list_moves is not None else {}
    wanted = _normalize_text(text)
    for each, answer in moves.items():
        if _normalize_text(each) == wanted:
            return answer
    shown = ", ".join(list(moves)[:SHOWN_MOVES]) + (", ..." if len(moves) > SHOWN_MOVES else "")
    raise BadAnswerError(
        f"{text.strip()[:60]!r} is no legal move here; the legal moves are: {shown or 'none'}"
    )


def _normalize_text(text: str) -> str:
    return " ".join(text.replace(",", " ").lower().split())
