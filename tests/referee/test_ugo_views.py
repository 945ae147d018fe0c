"""What a seat sees of UGO!, and no more."""

from __future__ import annotations

import random
import re
from dataclasses import astuple, fields
from pathlib import Path

from matches.ugo_positions import SEED, UGO, cards, play, position

from seatwise_referee.game import Seat
from seatwise_referee.games.ugo import CARDS, Kingdom, Trick, UgoView

ROOT = Path(__file__).parents[2]
CARD_ASKED = position("R3 R5 B4 K0", "R8 G1", leader=1, trick="R8")
ARRANGE_ASKED = play(position("R3 Y0", "R5 Y1"), "R3", "R5")


def test_a_view_shows_a_seat_its_own_cards_and_the_table() -> None:
    view = UGO.view(CARD_ASKED, Seat(0))
    assert (view.seat, view.hand, view.hand_sizes) == (0, cards("R3 R5 B4 K0"), (4, 2))
    assert (view.leader, view.trick, view.legal_cards) == (1, cards("R8"), cards("R3 R5"))
    assert (view.round, view.rounds, view.starter, view.supply) == (1, 1, 0, 36)


def test_only_the_asked_seat_has_legal_cards_and_a_spectator_has_no_hand() -> None:
    assert UGO.view(CARD_ASKED, Seat(1)).legal_cards == ()
    spectator = UGO.view(CARD_ASKED, None)
    assert (spectator.seat, spectator.hand, spectator.legal_cards) == (None, (), ())


def test_cards_still_to_be_laid_lie_open_and_their_trick_is_already_told() -> None:
    for seat in (Seat(0), Seat(1), None):
        view = UGO.view(ARRANGE_ASKED, seat)
        assert (view.won_cards, view.arranger, view.trick, view.legal_cards) == (cards("R3 R5"), 1, (), ())
        assert view.tricks == (Trick(Seat(0), cards("R3 R5"), Seat(1), ()),)
        assert view.leader == 1


def test_the_order_of_laying_is_told_once_it_is_done() -> None:
    view = UGO.view(play(ARRANGE_ASKED, ">R5 R3"), None)
    assert (view.won_cards, view.arranger) == ((), None)
    assert view.tricks == (Trick(Seat(0), cards("R3 R5"), Seat(1), cards("R5 R3")),)


def test_a_view_holds_no_card_of_another_hand_nor_one_set_aside() -> None:
    chance, state = random.Random(2), UGO.deal(3, SEED, {"rounds": 1})
    while state.asked is not None:
        for seat in (*map(Seat, range(3)), None):
            view = UGO.view(state, seat)
            shown = set(re.findall(r"[RBGYK][0-8]", repr(astuple(view))))
            played = {str(card) for trick in view.tricks for card in trick.cards} | {*map(str, view.trick)}
            assert shown == {*map(str, view.hand)} | played
            assert view.hand == (
                () if seat is None else tuple(c for c in CARDS if state.hands[seat] >> c & 1)
            )
        state = UGO.play(state, state.asked, chance.choice(list(UGO.legal_moves(state, state.asked))))


def test_the_tricks_of_the_round_before_stay_in_view() -> None:
    chance, state = random.Random(2), UGO.deal(2, SEED, {"rounds": 2})
    while UGO.view(state, None).round == 1:
        before = state
        assert state.asked is not None
        state = UGO.play(state, state.asked, chance.choice(list(UGO.legal_moves(state, state.asked))))
    view = UGO.view(state, None)
    assert len(view.last_round) == 10
    assert view.last_round[:9] == before.table.tricks[:9]
    assert all(sorted(trick.laid) == sorted(trick.cards) for trick in view.last_round)
    assert (view.tricks, view.kingdoms) == ((), (Kingdom(), Kingdom()))


def test_a_view_has_the_fields_of_its_message_in_their_order() -> None:
    proto = (ROOT / "proto/seatwise/games/ugo/v1/ugo.proto").read_text()
    for name, names in [
        ("View", [field.name for field in fields(UgoView)]),
        ("Kingdom", list(Kingdom._fields)),
        ("Trick", list(Trick._fields)),
    ]:
        message = re.search(rf"^message {name} {{\n(.*?)^}}", proto, re.S | re.M)
        assert message is not None
        assert re.findall(r"^  [\w ]+ (\w+) = \d+;", message[1], re.M) == names
