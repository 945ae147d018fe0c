"""What arguments may be, and what is said of one that may not."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable

import pytest

from seatwise.cli import arguments


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (arguments.parse_count, "1", 1),
        (arguments.parse_count_or_zero, "0", 0),
        (arguments.parse_count_or_zero, "2", 2),
        (arguments.parse_span, "0.00002", 0.00002),
        (arguments.parse_span, "30", 30.0),
        (arguments.parse_port, "0", 0),
        (arguments.parse_port, "65535", 65535),
        (arguments.parse_host, "::1", "[::1]"),
        (arguments.parse_host, "[::]", "[::]"),
        (arguments.parse_host, "fe80::1%lo", "[fe80::1%lo]"),
        (arguments.parse_host, "0.0.0.0", "0.0.0.0"),
        (arguments.parse_host, "localhost", "localhost"),
        (arguments.parse_address, "referee-1.internal:7433", "referee-1.internal:7433"),
        (arguments.parse_address, "[fd00::1]:7433", "[fd00::1]:7433"),
        (arguments.parse_address, "https://referee-1.internal:7433", "https://referee-1.internal:7433"),
        (arguments.name_parser("matches"), "7f3k", "matches/7f3k"),
        (arguments.name_parser("matches"), "matches/7f3k", "matches/7f3k"),
    ],
)
def test_arguments_with_sense_are_taken(kind: Callable[[str], object], text: str, value: object) -> None:
    assert kind(text) == value


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (arguments.parse_count, ["0", "-1", "1.5", "x", "", "\u0661", "9" * 5000]),
        (arguments.parse_count_or_zero, ["-1", "x", ""]),
        (arguments.parse_span, ["0", "-1", "nan", "inf", "x", ""]),
        (arguments.parse_port, ["-1", "65536", "99999", "x", ""]),
        (
            arguments.parse_host,
            [
                "",
                "127.0.0.1:7433",
                "http://localhost",
                "a b",
                "[::1]:7433",
                "nosuch.invalid",
                "fe80::1%nosuch",
            ],
        ),
        (arguments.parse_address, ["", "foo", "foo:", ":7433", "fd00::1:7433", "a b:1", "ftp://foo:1"]),
    ],
)
def test_arguments_without_sense_are_refused(kind: Callable[[str], object], texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(ArgumentTypeError, match=r"is no|is not|knows no"):
            kind(text)
