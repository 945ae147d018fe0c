"""`--deck FILE`: decks of one's own, for the games that are played with decks from files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Sequence


def add_to(parser: ArgumentParser) -> None:
    """Add the argument `deck`, a list."""
    parser.add_argument(
        "--deck", action="append", default=[], metavar="FILE",
        help="file with your own deck, for a game with decks; may be repeated. A match uses the deck that its option `deck` names",
    )  # fmt: skip


def use_deck_files(files: Sequence[str]) -> None:
    """Add the decks in these files to those of this process. Raises `UsageError`, which names the file and the line."""
    if not files:
        return
    from seatwise.kits import OWN_KITS

    for kit in OWN_KITS:
        if kit.use_deck_files is not None:
            kit.use_deck_files(files)
