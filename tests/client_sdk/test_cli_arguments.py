"""What arguments may be, and what is said of one that may not."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable

import pytest

from seatwise.cli import arguments


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (arguments.count, "1", 1),
        (arguments.count_or_none, "0", 0),
        (arguments.count_or_none, "2", 2),
        (arguments.span, "0.00002", 0.00002),
        (arguments.span, "30", 30.0),
        (arguments.port, "0", 0),
        (arguments.port, "65535", 65535),
        (arguments.address, "referee-1.internal:7433", "referee-1.internal:7433"),
        (arguments.address, "[fd00::1]:7433", "[fd00::1]:7433"),
        (arguments.name_in("matches"), "7f3k", "matches/7f3k"),
        (arguments.name_in("matches"), "matches/7f3k", "matches/7f3k"),
    ],
)
def test_what_is_taken(kind: Callable[[str], object], text: str, value: object) -> None:
    assert kind(text) == value


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (arguments.count, ["0", "-1", "1.5", "x", "", "\u0661", "9" * 5000]),
        (arguments.count_or_none, ["-1", "x", ""]),
        (arguments.span, ["0", "-1", "nan", "inf", "x", ""]),
        (arguments.port, ["-1", "65536", "99999", "x", ""]),
        (arguments.address, ["", "foo", "foo:", ":7433", "fd00::1:7433", "a b:1", "http://foo:1"]),
    ],
)
def test_what_is_refused(kind: Callable[[str], object], texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(ArgumentTypeError, match=r"is no|is not"):
            kind(text)
