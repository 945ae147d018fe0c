"""Deals of UGO! as bytes: what a referee would deal from a seed, or random ones for training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatwise_referee.games.ugo.state import deal_hands

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
