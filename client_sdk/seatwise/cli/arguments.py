"""The types of arguments, for all commands. Each one says what is wrong with a text that it refuses."""

from __future__ import annotations

import math
import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from datetime import datetime, timedelta

LAST_PORT = 65535
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
"""The letters behind a size in bytes."""


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


def parse_time(text: str) -> datetime:
    """Return a time: an ISO date with or without a time of day, local unless it has a time zone, or a span back from now."""
    ago = re.fullmatch(r"(\d{1,6})([mhd])", text)
    try:
        if ago:
            unit = {"m": "minutes", "h": "hours", "d": "days"}[ago[2]]
            return datetime.now().astimezone() - timedelta(**{unit: int(ago[1])})
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise ArgumentTypeError(
            f"{text!r} is not a time, such as 2026-11-22, 2026-11-22T18:00 or 12h"
        ) from None


def parse_size(text: str) -> int:
    """Return a number of bytes: a whole number, with K, M or G for KiB, MiB or GiB."""
    parts = re.fullmatch(r"([0-9]{1,11})([KMG]?)", text)
    if parts is None:
        raise ArgumentTypeError(f"{text!r} is not a size, such as 900M or 2G")
    return int(parts[1]) * UNITS[parts[2]]


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


def parse_ws_address(text: str) -> str:
    """Return the address of a WebSocket port, as other machines are told it. It may have a path, for a proxy."""
    if not re.fullmatch(r"wss?://([^\s:/?#]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?(/[^\s?#]*)?", text):
        raise ArgumentTypeError(
            f"{text!r} is not ws://HOST:PORT or wss://HOST:PORT, such as wss://play.example.org"
        )
    return text.rstrip("/")


def parse_origin(text: str) -> str:
    """Return the origin of a web page, as browsers send it."""
    if not re.fullmatch(r"https?://([^\s:/?#]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?", text):
        raise ArgumentTypeError(f"{text!r} is no origin, such as https://example.org")
    return text.lower()


def parse_game_option(text: str) -> tuple[str, int | str]:
    """Return the name and the value of an option of a game."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as rounds=1")
    return name, int(value) if value.isascii() and value.isdigit() and len(value) < 10 else value


def name_parser(collection: str) -> Callable[[str], str]:
    """Return a parser of the names of resources in this collection. The last part of a name is enough."""
    return lambda text: text if text.startswith(f"{collection}/") else f"{collection}/{text}"


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 12
