"""Limits for texts in requests."""

from __future__ import annotations

from seatwise_server.bot_names import unify_owner
from seatwise_server.play.inbound import LONGEST_REQUEST_ID
from seatwise_server.refusal import Refusal

__all__ = ["LONGEST_REQUEST_ID", "check_text", "read_owner"]


def check_text(field: str, text: str, longest: int, *, least: int = 0) -> None:
    """Raises `Refusal` INVALID_ARGUMENT, naming the field, for a wrong length or an unprintable character.

    A text has `least` to `longest` characters. Others than printable ones could control the terminal that shows
    the text, or change the order in which it is shown.
    """
    if not least <= len(text) <= longest:
        wanted = f"{least} to {longest}" if least else f"at most {longest}"
        raise _refusal(field, f"{field} has {len(text)} characters; {wanted} are allowed")
    place = next((place for place, letter in enumerate(text, 1) if not letter.isprintable()), 0)
    if place:
        raise _refusal(
            field,
            f"character {place} of {field} is {text[place - 1]!a}; only printable characters are allowed",
        )


def read_owner(field: str, text: str, longest: int, *, least: int = 0) -> str:
    """Returns the name of a person or team in its one form. Raises `Refusal` INVALID_ARGUMENT as `check_text`."""
    check_text(field, text, longest, least=least)
    name = unify_owner(text)
    if text and not name:
        raise _refusal(field, f"{field} has nothing visible in it")
    return name


def _refusal(field: str, message: str) -> Refusal:
    return Refusal("INVALID_ARGUMENT", message, field=field)
