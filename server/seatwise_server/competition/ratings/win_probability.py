"""The probability that one bot finishes ahead of another, from the difference of their strengths."""

from __future__ import annotations

import math

LEAST_DIFFERENCE = -700.0
"""At this difference of two strengths and below, the probability is 0. `math.exp` of its opposite is still a float."""


def probability_ahead(difference: float) -> float:
    """Return the probability that belongs to these log-odds: the logistic function."""
    return 1 / (1 + math.exp(-difference)) if difference > LEAST_DIFFERENCE else 0.0
