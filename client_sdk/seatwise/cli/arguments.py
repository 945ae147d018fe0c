"""The types of arguments, for all commands. Each one says what is wrong with a text that it refuses."""

from __future__ import annotations

import math
import re
from argparse import ArgumentTypeError
from collections.abc import Callable

LAST_PORT = 65535


def parse_count(text: str) -> int:
    """Return a number of things: a whole number of at least 1."""
    if not _is_whole(text) or not 1 <= int(text) <= 10**9:
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def parse_count_or_zero(text: str) -> int:
    """Return a number of things, or 0 for none."""
    return 0 if _is_whole(text) and int(text) == 0 else parse_count(text)


def parse_span(text: str) -> float:
    """Return a span of time in the unit of the option: a number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def parse_port(text: str) -> int:
    """Return a port. gRPC would read 65537 as 1."""
    if not _is_whole(text) or int(text) > LAST_PORT:
        raise ArgumentTypeError(f"{text!r} is not a port: give a whole number from 0 to {LAST_PORT}")
    return int(text)


def parse_address(text: str) -> str:
    """Return HOST:PORT, with or without https:// or http://, as other machines are told it."""
    if not re.fullmatch(r"(https?://)?([^\s:/]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}", text):
        raise ArgumentTypeError(f"{text!r} is not HOST:PORT, such as referee-1.internal:7433")
    return text


def name_parser(collection: str) -> Callable[[str], str]:
    """Return a parser of the names of resources in this collection. The last part of a name is enough."""
    return lambda text: text if text.startswith(f"{collection}/") else f"{collection}/{text}"


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 12
