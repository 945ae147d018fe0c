"""Estimates the luck of the draws in a match of UGO!: what each drawn card brought, less what its mixed move was worth.

A mixed move is several cards with weights, of which the referee drew one. After each of these cards the rest of the round is
played out by `greedy` at all seats, with the hands that the seats really have. The luck of the draw is the points after the drawn
card, less the mean over all choices by their weights. That mean is what the bot declared before the draw, so its luck is 0 on
average, whatever the bot declares and however good `greedy` is. Pages of leagues take it off. So its figures must never change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatwise.samples.greedy import worth_of_card
from seatwise_referee.game import Seat
from seatwise_referee.games.ugo import Arrange, Play, Ugo, UgoMove, UgoState, default_order
from seatwise_referee.journal import Defaulted, DrawnMove, Moved, entry_from_json
from seatwise_referee.shuffle import deal_seed, deal_seed_of_set

RoundPoints = tuple[int, ...]
"""The points of one round, by seat."""


def measure_draw_luck(record: Mapping[str, Any]) -> tuple[float, ...]:
    """Return by seat the points that the draws of a recorded match brought beyond what was to be expected.

    Args:
        record: A record of UGO! that passes verification.
    """
    game, seats = Ugo(), len(record["seats"])
    state = game.deal(seats, _seed_of_deals(record), record["options"])
    luck = [0.0] * seats
    known: dict[UgoState, RoundPoints] = {}
    for entry in map(entry_from_json, record["entries"]):
        match entry:
            case DrawnMove(seat=seat, move=move):
                for other, points in enumerate(_luck_of_draw(state, entry, known)):
                    luck[other] += points
                state = game.play(state, seat, game.move_from_json(move))
            case Moved(seat=seat, move=move):
                state = game.play(state, seat, game.move_from_json(move))
            case Defaulted(moves=moves):
                for each in moves:
                    state = game.play(state, each.seat, game.move_from_json(each.move))
    return tuple(luck)


def _seed_of_deals(record: Mapping[str, Any]) -> bytes:
    if in_set := record.get("deal_set"):
        return deal_seed_of_set(bytes.fromhex(in_set["seed"]))
    nonces = [nonce and bytes.fromhex(nonce) for nonce in record["nonces"]]
    return deal_seed(bytes.fromhex(record["seed"]), nonces)


def _luck_of_draw(state: UgoState, entry: DrawnMove, known: dict[UgoState, RoundPoints]) -> list[float]:
    """Return the luck of one draw by seat. Whole numbers are divided once, so that every machine finds the same."""
    game = Ugo()
    after = [game.play(state, entry.seat, game.move_from_json(choice.move)) for choice in entry.choices]
    points = [_play_round_out(each, state.round.number, known) for each in after]
    weights = [choice.weight for choice in entry.choices]
    drawn = points[[choice.move for choice in entry.choices].index(entry.move)]
    total = sum(weights)
    return [
        (total * own - sum(weight * each[seat] for weight, each in zip(weights, points, strict=True))) / total
        for seat, own in enumerate(drawn)
    ]


def _play_round_out(state: UgoState, number: int, known: dict[UgoState, RoundPoints]) -> RoundPoints:
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
