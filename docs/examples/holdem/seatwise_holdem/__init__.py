"""Heads-up no-limit hold'em: `rules` has the rules, `bots` the house bots, and `hooks` all that people see."""

from seatwise_holdem.hooks import Holdem
from seatwise_holdem.rules import HoldemRules, HoldemState

__all__ = ["Holdem", "HoldemRules", "HoldemState"]
