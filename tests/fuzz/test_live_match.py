"""A live match at the handler of Play, among lies in every field: nobody innocent is hurt, whatever the bytes say."""

from __future__ import annotations

from random import Random

import pytest

from fuzz.live_match import play_live_match
from seatwise_referee.decision import AcceptMove, Effect
from seatwise_server.play.table import Table

MATCHES = 12
LONGEST = 500
"""Bytes of one match: about 100 steps."""


def program(seed: int) -> bytes:
    """The bytes of one match."""
    return Random(seed).randbytes(LONGEST)


@pytest.mark.parametrize("seed", range(MATCHES))
def test_a_liar_hurts_no_innocent_bot(seed: int) -> None:
    play_live_match(program(seed))


def test_the_matches_have_what_they_are_for() -> None:
    """Owners change, the liar's time runs out or it forfeits, and honest bots are acknowledged."""
    matches = [play_live_match(program(seed)) for seed in (0, 4)]
    kinds = {entry.kind for match in matches for entry in match.room.entries()}
    assert kinds >= {"sat", "dealt", "move", "default", "taken_over", "finished"}
    assert all({seat for seat, _ in match.acknowledged} >= set(range(1, match.seats)) for match in matches)


def play_all() -> None:
    for seed in range(MATCHES):
        play_live_match(program(seed))


def expect_a_find() -> None:
    """One of the matches finds what the test has broken."""
    with pytest.raises(AssertionError):
        play_all()


def test_a_seat_for_which_anybody_may_speak_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Table, "is_seat_of", lambda self, _, seat: 0 <= seat < len(self.match.setup.bots))
    monkeypatch.setattr(Table, "sits_through", lambda *_: True)
    expect_a_find()


@pytest.mark.needs_sources
def test_an_acknowledgement_before_the_journal_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    in_order = Table._append_effects

    def told_early(table: Table, effects: list[Effect]) -> None:
        table.updates.perform_effects([each for each in effects if isinstance(each, AcceptMove)])
        in_order(table, effects)

    monkeypatch.setattr(Table, "_append_effects", told_early)
    expect_a_find()
