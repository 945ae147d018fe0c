"""Limits of texts in requests."""

from __future__ import annotations

from seatwise_server.play.inbound import LONGEST_REQUEST_ID
from seatwise_server.refusal import Refusal

__all__ = ["LONGEST_REQUEST_ID", "check_text"]


def check_text(field: str, text: str, longest: int, *, least: int = 0) -> None:
    """Raises `Refusal` INVALID_ARGUMENT that names the field, unless the text has so many characters, all printable.

    Other characters would be orders to the terminal that shows the text, or would show it in another order.
    """
    if not least <= len(text) <= longest:
        wanted = f"{least} to {longest}" if least else f"at most {longest}"
        raise _refusal(field, f"{field} has {len(text)} characters; {wanted} are taken")
    place = next((place for place, letter in enumerate(text, 1) if not letter.isprintable()), 0)
    if place:
        raise _refusal(
            field, f"character {place} of {field} is {text[place - 1]!a}; only printable ones are taken"
        )


def _refusal(field: str, message: str) -> Refusal:
    return Refusal("INVALID_ARGUMENT", message, field=field)
