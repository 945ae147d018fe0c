"""`--deck FILE`: decks of one's own, for the games that are played with decks from files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Sequence


def add_to(parser: ArgumentParser) -> None:
    """Add the argument `deck`, a list."""
    from seatwise.cli.arguments import InputFile

    parser.add_argument(
        "--deck", action="append", default=[], type=InputFile, metavar="FILE",
        help="file with your own deck, for a game with decks; may be repeated. A match uses the deck that its option `deck` names",
    )  # fmt: skip


def add_default_to(parser: ArgumentParser) -> None:
    """Add the argument `default_deck`."""
    parser.add_argument(
        "--default-deck", default="", metavar="DECK",
        help="deck of matches whose option `deck` is not set: easy, club, master, or the name of a deck of your own "
        "(default: club)",
    )  # fmt: skip


def use_deck_files(files: Sequence[str], default_deck: str = "") -> None:
    """See `seatwise.kits.use_deck_files`. Without files and a default no game is loaded."""
    if files or default_deck:
        from seatwise import kits

        kits.use_deck_files(files, default_deck)
