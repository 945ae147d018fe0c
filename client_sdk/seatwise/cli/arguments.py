"""What arguments may be, for all commands: each type says what is wrong with a text that it does not take."""

from __future__ import annotations

import math
import re
from argparse import ArgumentTypeError
from collections.abc import Callable

LAST_PORT = 65535


def parse_count(text: str) -> int:
    """How many: a whole number from 1 up."""
    if not _is_whole(text) or not 1 <= int(text) <= 10**9:
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def parse_count_or_zero(text: str) -> int:
    """How many, or 0 for none."""
    return 0 if _is_whole(text) and int(text) == 0 else parse_count(text)


def parse_span(text: str) -> float:
    """A span of time, in whatever unit the option has: a number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def parse_port(text: str) -> int:
    """gRPC would take 65537 for 1."""
    if not _is_whole(text) or int(text) > LAST_PORT:
        raise ArgumentTypeError(f"{text!r} is not a port: give a whole number from 0 to {LAST_PORT}")
    return int(text)


def parse_address(text: str) -> str:
    """Return HOST:PORT, with or without https:// or http://, as other machines are told it."""
    if not re.fullmatch(r"(https?://)?([^\s:/]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}", text):
        raise ArgumentTypeError(f"{text!r} is not HOST:PORT, such as referee-1.internal:7433")
    return text


def name_parser(collection: str) -> Callable[[str], str]:
    """A resource's name; its last part is enough."""
    return lambda text: text if text.startswith(f"{collection}/") else f"{collection}/{text}"


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 12
