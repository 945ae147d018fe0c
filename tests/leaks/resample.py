"""Other states that look the same to one seat: all that it cannot know is drawn anew.

Whatever is shown to that seat, by a view, a message or a number of bytes, must be the same for the
state and for its resampled twin. A new game joins by a line in `RESAMPLERS` and one in `HIDDEN`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seatwise_referee.games import ubongo
from seatwise_referee.games.ugo import CARDS, Colour, UgoCard
from seatwise_referee.games.ugo import UgoState as UgoState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from seatwise_referee.game import Seat


def resampled(game_name: str, state: Any, seat: Seat | None, chance: Random) -> Any:
    """A state that the seat cannot tell from this one; `None` is a spectator."""
    return RESAMPLERS[game_name](state, seat, chance)


def hidden_from(game_name: str, state: Any, seat: Seat | None) -> frozenset[str]:
    """The cards, as text, that the seat has no way to know where they are now."""
    return HIDDEN[game_name](state, seat)


ASIDE = -1
"""Who "holds" the cards set aside."""


def resampled_ugo(state: UgoState, seat: Seat | None, chance: Random) -> UgoState:
    """Deals what is hidden from the seat anew, as far as the tricks so far allow, and changes the seed.

    Known are the seat's own hand, the cards played, how many cards each hand holds, and that a seat
    which did not follow a colour has none of it left. Cards change places two by two wherever both may
    lie in the other's place, so each step keeps to what is known.
    """
    hidden = list(hidden_cards(state, seat))
    cards, owners = [card for card, _ in hidden], [owner for _, owner in hidden]
    void = voids(state)
    for _ in range(6 * len(hidden)):
        one, other = chance.randrange(len(hidden)), chance.randrange(len(hidden))
        if cards[one].colour not in void[owners[other]] and cards[other].colour not in void[owners[one]]:
            cards[one], cards[other] = cards[other], cards[one]
    hands = [0 if seat != own else hand for own, hand in enumerate(state.hands)]
    for card, owner in zip(cards, owners, strict=True):
        if owner != ASIDE:
            hands[owner] |= 1 << card
    round_ = state.round._replace(seed=chance.randbytes(32))
    return state._replace(hands=tuple(hands), round=round_)


def hidden_cards(state: UgoState, seat: Seat | None) -> Iterator[tuple[UgoCard, int]]:
    """The cards that the seat has not seen this round, each with who holds it."""
    played = {card for _, cards in _tricks(state) for card in cards}
    for card in CARDS:
        owner = next((holder for holder, hand in enumerate(state.hands) if hand >> card & 1), ASIDE)
        if card not in played and owner != seat:
            yield card, owner


def voids(state: UgoState) -> dict[int, set[Colour]]:
    """The colours that each seat has shown not to hold."""
    void: dict[int, set[Colour]] = {ASIDE: set()} | {seat: set() for seat in range(len(state.hands))}
    for leader, cards in _tricks(state):
        for place, card in enumerate(cards):
            if card.colour is not cards[0].colour:
                void[(leader + place) % len(state.hands)].add(cards[0].colour)
    return void


def _tricks(state: UgoState) -> Iterator[tuple[int, tuple[UgoCard, ...]]]:
    for trick in state.table.tricks:
        yield trick.leader, trick.cards
    yield state.table.leader, state.trick


def hidden_from_ugo(state: UgoState, seat: Seat | None) -> frozenset[str]:
    return frozenset(str(card) for card, _ in hidden_cards(state, seat))


# --- Ubongo ---------------------------------------------------------------------------------------------


def resampled_ubongo(state: ubongo.UbongoState, seat: Seat | None, chance: Random) -> ubongo.UbongoState:
    """Deals and lays what is hidden from the seat anew, and changes the seed.

    Known are the seat's own hand and layout, how many cards each seat has laid, and after the first of two
    rounds with one deck the cards that each seat had laid then.
    """
    round_, hands, layouts = state.round, list(state.round.hands), list(state.layouts)
    hidden = sorted(cards_hidden(state, seat))
    chance.shuffle(hidden)
    for other in range(len(hands)):
        if other != seat and hands[other]:
            known = sorted(cards_told(state, other))
            cards = [*known, *(hidden.pop() for _ in range(ubongo.HAND_SIZE - len(known)))]
            hands[other] = tuple(round_.settings.deck.side(card, round_.number) for card in sorted(cards))
            layouts[other] = scattered(chance.sample(cards, len(layouts[other])), chance)
    settings = round_.settings._replace(seed=chance.randbytes(32))
    opened = round_.opened
    if opened and round_.number in (number + 1 for number in opened.rounds if number % 2):
        # These cards are still in play. The rules open none of them; a fault that does shows in the twin.
        opened = opened._replace(hands=tuple(tuple(side.card for side in hand) for hand in hands))
    return state._replace(
        layouts=tuple(layouts), round=round_._replace(settings=settings, hands=tuple(hands), opened=opened)
    )


def scattered(cards: list[ubongo.UbongoCard], chance: Random) -> ubongo.Layout:
    """So far apart that none overlap, and at random besides."""
    return tuple(
        ubongo.Placement(card, 4 * number + chance.randrange(2), chance.randrange(-5, 6), chance.randrange(4))
        for number, card in enumerate(cards, start=chance.randrange(-7, 0))
    )


def cards_told(state: ubongo.UbongoState, seat: int) -> set[ubongo.UbongoCard]:
    """The cards of the deck in play of which all have seen that the seat holds them."""
    if state.round.number % 2:
        return set()
    return {side.card for side in state.round.last_round[seat].sides}


def cards_hidden(state: ubongo.UbongoState, seat: Seat | None) -> set[ubongo.UbongoCard]:
    """The cards of the deck in play that might be in any other hand, or in none."""
    deck = ubongo.deck_of_round(state.round.number)
    seen = {side.card for side in state.round.hands[seat]} if seat is not None else set()
    for other in range(len(state.layouts)):
        seen |= cards_told(state, other)
    return {card for card in ubongo.CARDS if str(card).startswith(f"{deck}-")} - seen


def hidden_from_ubongo(state: ubongo.UbongoState, seat: Seat | None) -> frozenset[str]:
    return frozenset(map(str, cards_hidden(state, seat)))


RESAMPLERS: dict[str, Callable[[Any, Seat | None, Random], Any]] = {
    "ugo": resampled_ugo,
    "ubongo": resampled_ubongo,
}
"""By the game's name."""

HIDDEN: dict[str, Callable[[Any, Seat | None], frozenset[str]]] = {
    "ugo": hidden_from_ugo,
    "ubongo": hidden_from_ubongo,
}
"""By the game's name."""
