"""Nobody sees what is not in the journal."""

from __future__ import annotations

from typing import Any

import pytest
from matches.one_match import ALLOWED_MS, Desk, dealt, only

from seatwise_referee.decision import AcceptMove, WakeAt
from seatwise_referee.ending import VoidReason
from seatwise_referee.game import Seat
from seatwise_referee.journal import JournalEntry
from seatwise_referee.match import Match, Unconfirmed


def told(match: Match, now: int = 0) -> list[Any]:
    return [match.update_for(Seat(seat), now) for seat in range(len(match.setup.bots))] + [
        match.view_for(None)
    ]


def test_a_view_is_held_back_until_its_entry_is_confirmed() -> None:
    desk = dealt()
    before = told(desk.match)
    move = desk.default_move()
    effects = desk.match.submit_move(Seat(0), 1, "id", move, 0)
    assert only(JournalEntry, effects)
    assert not desk.match.is_confirmed
    assert told(desk.match) == before
    assert desk.match.reply_to(Seat(0), 1, "id") is None
    desk.match.confirm_entries(0)
    assert desk.match.is_confirmed
    assert told(desk.match) != before
    assert desk.match.view_for(None).trick == (move.card,)


@pytest.mark.parametrize(
    "command",
    [
        lambda match: match.resign(Seat(1), 0),
        lambda match: match.void_match(VoidReason.ABORTED, 0),
        lambda match: match.tick(10**6),
        lambda match: match.submit_move(Seat(0), 1, "id", None, 0),
        lambda match: match.take_over(2, 0),
    ],
)
def test_no_command_shows_anything_before_it_is_confirmed(command: Any) -> None:
    desk = dealt()
    desk.hand()
    before, position, is_over = told(desk.match), desk.match.position, desk.match.is_over
    assert any(isinstance(effect, JournalEntry) for effect in command(desk.match))
    assert (told(desk.match), desk.match.position, desk.match.is_over) == (before, position, is_over)


def test_the_deal_is_seen_only_when_it_is_confirmed() -> None:
    desk = Desk()
    desk.sit(0)
    desk.match.sit(Seat(1), None, 0)
    assert [each.view for each in told(desk.match)[:2]] == [None, None]


def test_the_next_prompt_takes_no_answer_before_it_is_put() -> None:
    desk = dealt()
    desk.match.submit_move(Seat(0), 1, "id", desk.default_move(), 0)
    with pytest.raises(Unconfirmed, match="confirm entry 4"):
        desk.match.submit_move(Seat(1), 2, "guess", None, 0)
    with pytest.raises(Unconfirmed):
        desk.match.resign(Seat(1), 0)


def test_no_time_runs_out_before_the_next_prompt_is_put() -> None:
    desk = dealt()
    desk.match.submit_move(Seat(0), 1, "id", desk.default_move(), 0)
    assert desk.match.tick(10**6) == []
    assert desk.match.confirm_entries(10**6) == [WakeAt(10**6 + 250 + ALLOWED_MS + 1)]


def test_a_prompt_is_put_when_it_is_confirmed_and_not_before() -> None:
    desk = dealt()
    effects = desk.match.submit_move(Seat(0), 1, "id", desk.default_move(), 10)
    desk.now = 4000  # the store was slow
    desk.do(effects)
    desk.hand()
    desk.now = 4030
    assert only(AcceptMove, desk.submit()).charged_ms == 30
