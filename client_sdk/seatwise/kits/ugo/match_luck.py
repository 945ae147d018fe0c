"""Measures of a match of UGO!: what its deal was worth to each seat, the luck of its draws, and the gifts to other seats.

Pages of leagues take the first two off the points, so their figures must never change.

Playouts estimate the mean points of simulated matches with the same hands. The simulated players are those of `counting`: they
lead high and follow low, in an order of the values that is drawn for each round. Nothing depends on how the bots have played.

The luck of draws: a mixed move is several cards with weights, of which the referee drew one. After each of these cards the rest of
the round is played out by `greedy` at all seats, with the hands that the seats really have. The luck of the draw is the points
after the drawn card, less the mean over all choices by their weights. That mean is what the bot declared before the draw, so its
luck is 0 on average, whatever the bot declares and however good `greedy` is.

Gifts: for each card, deals are sampled that fit the view of its seat, as `counting` samples them. In each deal the rest of the
round is played out by the players of `counting`, once with the card that was played and once with each other legal card. The
gift to a seat is its mean points with the played card, less its mean over all legal cards. In that mean a card counts less the
more it costs its player, because players seldom choose it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seatwise import Card
from seatwise.kits.ugo.samples import VALUE, LeadModel, worth_of_card
from seatwise.ugo import View
from seatwise_referee.game import Seat
from seatwise_referee.games.ugo import Arrange, Play, Ugo, UgoMove, UgoState, default_order
from seatwise_referee.games.ugo.state import deal_round
from seatwise_referee.journal import DrawnMove, Moved
from seatwise_referee.record import replay_moves
from seatwise_referee.verify import verify_line
from seatwise_referee.verify.header import setup_of

if TYPE_CHECKING:
    from seatwise_referee.game import Options


PLAYOUTS_OF_ROUND: Final = 32
"""The number of times that each round is simulated."""

PLAYOUT_WHIM: Final = 12.0
"""How much the simulated players deviate from leading high and following low. `counting` has 7 in its place."""


def mean_playout_points(seats: int, seed: bytes, options: Options) -> tuple[float, ...]:
    """Return the mean points of each seat over 32 simulations of every round.

    Args:
        seats: 2 to 4.
        seed: The seed of the deals. The simulations follow from it, too.
        options: The options of the match.

    Example:
        >>> mean_playout_points(2, bytes(32), {"rounds": 1})
        (0.0, 0.0)
    """
    first = Ugo().deal(seats, seed, options)
    chance = Random(seed)
    sums = [0] * seats
    for number in range(1, first.round.rounds + 1):
        state = deal_round(first.round._replace(number=number), seats, first.prompt)
        for seat, points in enumerate(_play_round_out(state, chance)):
            sums[seat] += points
    return tuple(points / PLAYOUTS_OF_ROUND for points in sums)


def _play_round_out(state: UgoState, chance: Random) -> list[int]:
    """Return the points of each seat, added up over all simulations of the round."""
    views = [Ugo().view(state, Seat(seat)) for seat in range(len(state.hands))]
    starter = views[0].leader
    model = LeadModel(views[starter], chance)
    sums = [0] * len(views)
    for _ in range(PLAYOUTS_OF_ROUND):
        wish = [value + PLAYOUT_WHIM * chance.random() for value in VALUE]
        hands = [sorted(view.hand, key=wish.__getitem__) for view in views]
        for seat, points in enumerate(model.play_out_all(hands, hands[starter][-1])):
            sums[seat] += points
    return sums


RoundPoints = tuple[int, ...]
"""The points of one round, by seat."""


def measure_draw_luck(record: Mapping[str, Any]) -> tuple[float, ...]:
    """Return by seat the points that draws brought beyond what was to be expected, in a record that passes verification."""
    luck = [0.0] * len(record["seats"])
    known: dict[UgoState, RoundPoints] = {}
    for state, entry, _, _ in replay_moves(record, setup_of(dict(record))):
        if isinstance(entry, DrawnMove):
            luck = [sum(each) for each in zip(luck, _luck_of_draw(state, entry, known), strict=True)]
    return tuple(luck)


def _luck_of_draw(state: UgoState, entry: DrawnMove, known: dict[UgoState, RoundPoints]) -> list[float]:
    """Return the luck of one draw by seat. Whole numbers are divided once, so that every machine finds the same."""
    game = Ugo()
    after = [game.play(state, entry.seat, game.move_from_json(choice.move)) for choice in entry.choices]
    points = [_play_out_greedily(each, state.round.number, known) for each in after]
    weights = [choice.weight for choice in entry.choices]
    drawn = points[[choice.move for choice in entry.choices].index(entry.move)]
    total = sum(weights)
    return [
        (total * own - sum(weight * each[seat] for weight, each in zip(weights, points, strict=True))) / total
        for seat, own in enumerate(drawn)
    ]


def _play_out_greedily(state: UgoState, number: int, known: dict[UgoState, RoundPoints]) -> RoundPoints:
    """Return the points of round `number` if `greedy` plays the rest of it at all seats. `known` are those that were found before."""
    passed = []
    while len(state.round.points) < number and state not in known:
        passed.append(state)
        assert state.asked is not None
        state = Ugo().play(state, state.asked, _greedy_move(state, state.asked))
    points = known[state] if len(state.round.points) < number else state.round.points[number - 1]
    known.update(dict.fromkeys(passed, points))
    return points


def _greedy_move(state: UgoState, seat: Seat) -> UgoMove:
    if state.table.won:
        return Arrange(default_order(state.table.won))
    view = Ugo().view(state, seat)
    return Play(max(view.legal_cards, key=lambda card: (worth_of_card(view, card), -card.value)))


SAMPLED_DEALS: Final = 32
"""The number of deals in which each card is judged. Four times as many halve the noise that comes from them."""

COST_SCALE: Final = 4.0
"""In points: a card that costs its player so much more than another counts 1 / e as much in the mean of the legal cards."""


class MatchGifts(NamedTuple):
    """The points that the cards of each seat of one match gave to each seat."""

    bots: tuple[str, ...]
    gifts: tuple[tuple[float, ...], ...]
    """By giving seat, then by receiving seat. The figure for the seat itself is what its cards brought it."""


def judge_card(view: View, card: Card, chance: Random, deals: int = SAMPLED_DEALS) -> list[float]:
    """Return the gift of a card to each seat, in points: beside what the legal cards give it on average.

    Args:
        view: The view of the seat when it played the card.
        card: The card that it played, one of `view.legal_cards`.
        chance: Samples the deals.
        deals: The number of deals.
    """
    points = sample_points(view, chance, deals)
    weights = _weigh_cards([made[view.seat or 0] for made in points.values()])
    usual = [
        math.fsum(weight * each for weight, each in zip(weights, made, strict=True))
        for made in zip(*points.values(), strict=True)
    ]
    return [given - mean for given, mean in zip(points[card], usual, strict=True)]


def sample_points(view: View, chance: Random, deals: int = SAMPLED_DEALS) -> dict[Card, list[float]]:
    """Return the mean points of each seat in the round, by the card that the asked seat plays now.

    The arguments are those of `judge_card`.
    """
    model = LeadModel(view, chance)
    points = {each: [0.0] * len(view.hand_sizes) for each in view.legal_cards}
    for _ in range(deals):
        hands = model.sample_hands()
        for each, sums in points.items():
            for place, made in enumerate(model.play_out_all(hands, each)):
                sums[place] += made / deals
    return points


def _weigh_cards(points: Sequence[float]) -> list[float]:
    """Return the weight of each card in the mean, by the points that it brings its player. The sum is 1."""
    best = max(points)
    weights = [math.exp((each - best) / COST_SCALE) for each in points]
    whole = math.fsum(weights)
    return [each / whole for each in weights]


def measure_gifts(line: str | bytes, deals: int = SAMPLED_DEALS) -> MatchGifts:
    """Return the gifts of a recorded match.

    The sampled deals follow from the record's chain, so the same record gives the same figures.

    Args:
        line: The record, one line of a file of records. It must be one of UGO!, and pass verification.
        deals: The number of deals in which each card is judged.

    Raises:
        ValueError: The record is wrong, or of another game.
    """
    verdict = verify_line(line)
    if verdict.setup is None or verdict.setup.game != Ugo.name:
        raise ValueError(f"this is no record of {Ugo.name}: {verdict.fault or 'it is of another game'}")
    bots = verdict.setup.bots
    gifts = [[0.0] * len(bots) for _ in bots]
    chance = Random(verdict.chain)
    for state, entry, seat, move in replay_moves(json.loads(line), verdict.setup):
        if not isinstance(entry, Moved) or not isinstance(move, Play):
            continue
        view = Ugo().view(state, seat)
        if len(view.legal_cards) > 1:
            for other, gift in enumerate(judge_card(view, move.card, chance, deals)):
                gifts[seat][other] += gift
    return MatchGifts(bots, tuple(map(tuple, gifts)))
