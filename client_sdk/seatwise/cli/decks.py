"""`--deck FILE`: cards of Ubongo of one's own, beside those of the house."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatwise.bot_errors import UsageError

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Sequence

    from seatwise_referee.games.ubongo import Deck


def add_to(parser: ArgumentParser) -> None:
    """Add the argument `deck`, a list."""
    parser.add_argument(
        "--deck", action="append", default=[], metavar="FILE",
        help="file with your own Ubongo deck; may be repeated. A match uses the deck that its option `deck` names",
    )  # fmt: skip


def use_deck_files(files: Sequence[str]) -> None:
    """Add the decks in these files to those of this process. Raises `UsageError`, which names the file and the line."""
    if not files:
        return
    from seatwise_referee.games.registry import use_decks
    from seatwise_referee.games.ubongo import BadDeck

    decks = [_load_deck(file) for file in files]
    try:
        use_decks(decks)
    except BadDeck as bad:
        raise UsageError(str(bad)) from None


def _load_deck(file: str) -> Deck:
    from seatwise_referee.games.ubongo import BadDeck, parse_deck

    try:
        with open(file, encoding="utf-8") as text:
            return parse_deck(text.read())
    except BadDeck as bad:
        raise UsageError(f"{file}: {bad}") from None
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; name a deck file") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not a text file, so it is not a deck file") from None
