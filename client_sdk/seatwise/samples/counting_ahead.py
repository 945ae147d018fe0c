"""Counts the cards as `counting` does, but for the lead: its own points, less the mean of the other seats."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from seatwise import Card
from seatwise.samples.counting import COLOUR, FARMERS, STRENGTH, Counting, Lands, RoundModel, complete_trick
from seatwise.ugo import View


class CountingAhead(Counting):
    """Plays the card with the largest lead on average over many sampled deals."""

    def model_round(self, view: View) -> RoundModel:
        """Return a model that keeps the lands of every seat."""
        return LeadModel(view, self.chance)


class LeadModel(RoundModel):
    """The round as one seat knows it, and simulations of its rest that score every seat."""

    def __init__(self, view: View, chance: Random) -> None:
        super().__init__(view, chance)
        self._all_lands = [Lands(view, seat) for seat in range(len(view.hand_sizes))]

    def play_out(self, hands: Sequence[list[Card]], card: Card) -> int:
        """Return the lead at the end of the round, times the number of the other seats, so that it is a whole number."""
        return self.worth_of(self.play_out_all(hands, card))

    def worth_of(self, points: Sequence[int]) -> int:
        """Return the lead that these points by seat are, times the number of the other seats."""
        return points[self._seat] * len(points) - sum(points)

    def play_out_all(self, hands: Sequence[list[Card]], card: Card) -> list[int]:
        """Return the points of the round by seat if the own seat plays this card now and all seats have these hands."""
        leader, lands = int(self._leader), [each.copy() for each in self._all_lands]
        hands = [hand.copy() for hand in hands]
        hands[self._seat].remove(card)
        trick = [*self._trick, card]
        while True:
            complete_trick(trick, leader, hands)
            best = max(trick, key=STRENGTH[COLOUR[trick[0]]].__getitem__)
            gains = FARMERS[best]
            for place, played in enumerate(trick, start=leader - len(hands)):
                lands[place].farmers += gains[played]
            leader = (leader + trick.index(best)) % len(hands)
            lands[leader].lay_trick(trick)
            if not hands[leader]:
                return [each.score_round() for each in lands]
            trick = [hands[leader].pop()]
