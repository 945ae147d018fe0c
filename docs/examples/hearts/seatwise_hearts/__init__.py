"""Hearts for four seats: `rules` has the rules, `bots` the house bots, and `hooks` all that people see."""

from seatwise_hearts.hooks import Hearts
from seatwise_hearts.rules import HeartsRules, HeartsState

__all__ = ["Hearts", "HeartsRules", "HeartsState"]
