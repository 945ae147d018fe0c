"""Measures what each seat's cards of a match of UGO! gave to the other seats, judged by what the seat could know.

For each card, deals are sampled that fit the view of its seat, as `counting` samples them. In each deal the rest of the round is
played out by the simulated players of `counting`, once with the card that was played and once with each other legal card. The
gift to a seat is its mean points with the played card, less its mean points over all legal cards. In that mean a card counts less
the more it costs its player, because players seldom choose it. The gifts of a match are added up over all cards.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final, NamedTuple

from seatwise import Card
from seatwise.samples.counting_ahead import LeadModel
from seatwise.ugo import View
from seatwise_referee.game import Seat
from seatwise_referee.games.ugo import Play, Ugo
from seatwise_referee.journal import Defaulted, Moved, entry_from_json
from seatwise_referee.setup import Setup
from seatwise_referee.verify import verify_line

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
    for seat, view, card in _cards_played(json.loads(line), verdict.setup):
        if len(view.legal_cards) > 1:
            for other, gift in enumerate(judge_card(view, card, chance, deals)):
                gifts[seat][other] += gift
    return MatchGifts(bots, tuple(map(tuple, gifts)))


def _cards_played(record: Mapping[str, Any], setup: Setup) -> Iterator[tuple[Seat, View, Card]]:
    """Yield each card that a bot chose, with its seat and the view that it had."""
    game = Ugo()
    nonces = [nonce and bytes.fromhex(nonce) for nonce in record["nonces"]]
    state = game.deal(len(setup.bots), setup.deals_from(nonces), setup.options)
    for entry in map(entry_from_json, record["entries"]):
        match entry:
            case Moved(seat=seat, move=written):
                move = game.move_from_json(written)
                if isinstance(move, Play):
                    yield seat, game.view(state, seat), move.card
                state = game.play(state, seat, move)
            case Defaulted(moves=moves):
                for each in moves:
                    state = game.play(state, each.seat, game.move_from_json(each.move))
