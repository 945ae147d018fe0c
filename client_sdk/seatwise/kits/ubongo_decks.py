"""Cards of Ubongo of one's own, beside those of the house: reads the files of `--deck FILE`."""

from __future__ import annotations

from collections.abc import Sequence

from seatwise.errors import UsageError
from seatwise_referee.games.registry import use_decks
from seatwise_referee.games.ubongo import DEFAULT_DIFFICULTY, MAX_CHARACTERS, BadDeck, Deck, parse_deck


def use_deck_files(files: Sequence[str], default_deck: str = "") -> None:
    """Add the decks in these files to those of this process. `default_deck` is used where no deck is named.

    Raises `UsageError`, which names the file and the line.
    """
    decks = [_load_deck(file) for file in files]
    try:
        use_decks(decks, default_deck or DEFAULT_DIFFICULTY)
    except BadDeck as bad:
        raise UsageError(str(bad)) from None


def _load_deck(file: str) -> Deck:
    try:
        with open(file, encoding="utf-8-sig") as text:
            return parse_deck(text.read(MAX_CHARACTERS + 1))
    except BadDeck as bad:
        raise UsageError(f"{file}: {bad}") from None
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; name a deck file") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not a text file, so it is not a deck file") from None
