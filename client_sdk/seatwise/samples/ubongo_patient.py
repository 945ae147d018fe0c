"""Builds as slowly as a person: it knows a good layout soon, but lays a card only every ten seconds or so."""

from __future__ import annotations

from collections.abc import Iterator

from seatwise import Bot
from seatwise.samples.ubongo_solver import solve
from seatwise.ubongo import GOAL, Call, Layout, OfferEnd, Thought, View

SHORTEST_LOOK_MS, LONGEST_LOOK_MS = 6_000, 14_000
"""It thinks so long before each card, in milliseconds: a round takes it about 70 s."""
LOOK_STEP_MS = 500
"""It thinks in steps of so many milliseconds, so that it stops soon when the round is over."""


class PatientBuilder(Bot):
    """Lays the cards of the best layout one by one. A server lets it think as long as it declares."""

    def build(self, view: View) -> Iterator[Layout | Call | OfferEnd | Thought]:
        """Yield layouts, each with one card more, then a call or an offer to end the round."""
        best: Layout
        *_, best = ((), *solve(view.hand))
        for laid in range(1, len(best) + 1):
            for _ in range(self.chance.randint(SHORTEST_LOOK_MS, LONGEST_LOOK_MS) // LOOK_STEP_MS):
                yield Thought(LOOK_STEP_MS)
            yield best[:laid]
        yield Call() if len(best) >= GOAL else OfferEnd(on=True)
