"""One match at a compiled table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from seatwise_fast.compiled import ffi, lib, new_table
from seatwise_referee.games.ugo.cards import subset_reader

if TYPE_CHECKING:
    from seatwise_referee.games.ugo import UgoView

CARDS_DEALT: Final = 45
ILLEGAL: Final = 1 << 63
LAYING: Final = 1 << 62

_actions_of: Final = subset_reader(range(CARDS_DEALT))
_ORDER_ACTIONS: Final = tuple(tuple(range(CARDS_DEALT, CARDS_DEALT + count)) for count in (1, 1, 2, 6, 24))
_act: Final = lib.ugo_act


class FastTable:
    """One match of UGO!, with all hands; a trainer must not show its bot the other seats' hands.

    An action is the number of a card (0 to 44), or 45 + p for the p-th order of the won cards, as the referee lists
    them.

    Example:
        >>> from seatwise.rl.deals import deals_of_seed
        >>> table = FastTable(deals_of_seed(bytes(32), rounds=1), seats=2)
        >>> actions = table.legal_actions()
        >>> while actions:
        ...     actions = table.act(actions[0])
        >>> table.points
        (-6, -6)
    """

    __slots__ = ("_deals", "_deals_memory", "_orders", "_table", "seats")

    def __init__(self, deals: bytes, seats: int) -> None:
        """Deal the first round.

        Args:
            deals: 45 bytes for each round, each a card: the first ten are the hand of seat 0, and so on.
            seats: 2 to 4.

        Raises:
            ValueError: The deals have another length, a round does not have each card once, or there are more seats.
        """
        check_deals(deals, seats)
        self.seats = seats
        self._deals_memory = bytes(deals)
        self._deals = ffi.from_buffer("uint8_t[]", self._deals_memory)
        self._orders = _ORDER_ACTIONS[seats]
        self._table = ffi.new("ugo_table *")
        lib.ugo_deal(self._table, 1, seats, len(deals) // CARDS_DEALT, self._deals)

    @property
    def asked(self) -> int | None:
        """The seat that moves; `None` when the match is over."""
        return None if self._table.is_over else self._table.asked

    @property
    def points(self) -> tuple[int, ...]:
        """The points of all finished rounds, by seat."""
        return tuple(self._table.points[0 : self.seats])

    def legal_actions(self) -> tuple[int, ...]:
        """Return what the seat that is asked may do; nothing when the match is over."""
        choices = lib.ugo_choices(self._table)
        return self._orders if choices == LAYING else _actions_of(choices)

    def act(self, action: int) -> tuple[int, ...]:
        """Take an action of the seat that is asked.

        Args:
            action: One of `legal_actions()`.

        Returns:
            The legal actions that follow.

        Raises:
            ValueError: The action is not legal. The table is unchanged.
        """
        choices = _act(self._table, action, self._deals)
        if choices < LAYING:
            return _actions_of(choices)
        if choices == LAYING:
            return self._orders
        raise ValueError(f"action {action} is not legal; these are: {self.legal_actions()}")

    def copy(self) -> FastTable:
        """Return another table in the same position."""
        other = FastTable.__new__(FastTable)
        other.seats, other._orders = self.seats, self._orders
        other._deals, other._deals_memory = self._deals, self._deals_memory
        other._table = ffi.new("ugo_table *", self._table[0])
        return other

    def set_view(self, view: UgoView, hands: Sequence[int] | None = None) -> None:
        """Set the table to the position that a seat sees.

        Args:
            view: The view of a seat, in a match with the seats and rounds of this table.
            hands: The hand of each seat as 45 bits, as `sample_worlds` gives them; without it only the viewer's
                hand is known, and the table cannot be played on beyond its turn.

        Raises:
            ValueError: The view is a spectator's, or has other seats or rounds.
        """
        self._table = new_table(view, (self.seats, len(self._deals_memory) // CARDS_DEALT), hands)


def check_deals(deals: Sequence[int], seats: int) -> None:
    """Raise `ValueError` where the deals of a match or its seats cannot be."""
    if seats not in (2, 3, 4):
        raise ValueError(f"seats: UGO! is played by 2 to 4, not by {seats}")
    if not 1 <= len(deals) // CARDS_DEALT <= 8 or len(deals) % CARDS_DEALT:
        raise ValueError(f"deals: 45 cards for each of 1 to 8 rounds, not {len(deals)}")
    for first in range(0, len(deals), CARDS_DEALT):
        if len({*deals[first : first + CARDS_DEALT]} & {*range(CARDS_DEALT)}) != CARDS_DEALT:
            raise ValueError(f"deals: round {first // CARDS_DEALT + 1} does not have each card once")
