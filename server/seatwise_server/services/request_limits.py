"""Limits of texts in requests."""

from __future__ import annotations

from seatwise_server.play.inbound import LONGEST_REQUEST_ID
from seatwise_server.refusal import Refusal

__all__ = ["LONGEST_REQUEST_ID", "check_length"]


def check_length(field: str, text: str, longest: int) -> None:
    """Raises `Refusal` INVALID_ARGUMENT that names the field, if the text has more characters than that."""
    if len(text) > longest:
        raise Refusal("INVALID_ARGUMENT", f"{field} has {len(text)} characters; at most {longest} are taken")
