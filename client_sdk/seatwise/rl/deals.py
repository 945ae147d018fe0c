"""Deals of UGO! as bytes, and a batch of matches that are dealt from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatwise_referee.games.ugo.state import deal_hands

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from seatwise_fast.fast_batch import UgoBatch


def deals_of_seed(seed: bytes, rounds: int = 4) -> bytes:
    """Return what the referee deals from a seed.

    Args:
        seed: 32 bytes.
        rounds: Number of rounds.

    Returns:
        45 bytes for each round, each a card: the hands by seat, ten cards each, then the cards set aside.
    """
    dealt = bytearray()
    for number in range(1, rounds + 1):
        hands, aside = deal_hands(number, 4, seed)
        dealt += bytes(card for hand in hands for card in hand) + bytes(aside)
    return bytes(dealt)


def random_deals(count: int, rounds: int, chance: np.random.Generator) -> NDArray[np.uint8]:
    """Return random deals of shape (count, rounds, 45), drawn from `chance`."""
    import numpy as np

    cards = np.tile(np.arange(45, dtype=np.uint8), (count * rounds, 1))
    return chance.permuted(cards, axis=1).reshape(count, rounds, 45)


def open_batch(deals: NDArray[np.uint8], seats: int) -> UgoBatch:
    """Begin a match of UGO! at each of many compiled tables, and return the tables.

    Args:
        deals: The cards of each round at each table: (tables, rounds, 45). The first ten are the hand of seat 0.
        seats: The number of seats at each table, 2 to 4.

    Raises:
        ValueError: The deals or the seats cannot be.
        ImportError: `seatwise_fast` is not installed.
    """
    try:
        from seatwise_fast.fast_batch import UgoBatch
    except ModuleNotFoundError as missing:
        raise ImportError(
            "batches need the compiled rules; from a clone: pip install ./client_sdk/seatwise_fast"
        ) from missing
    return UgoBatch(deals, seats)
