"""The draw of Swiss tournaments that began under version 1 of the schedule. It must not change any more."""

from __future__ import annotations

from seatwise_server.competition.schedules.swiss_draw_version_1 import SwissPlayer, draw_round, reduce_repeats


def test_who_was_moved_down_is_not_moved_down_again() -> None:
    players = [
        SwissPlayer("a", 2),
        SwissPlayer("b", 2),
        SwissPlayer("c", 2, has_floated=True),
        SwissPlayer("d", 1),
    ]
    assert draw_round(players, frozenset(), {}, 2).floaters in (("a",), ("b",))


def test_repeats_are_mended_by_swaps() -> None:
    a, b, c, d = (SwissPlayer(name, 1) for name in "abcd")
    [[one, other], [third, last]] = reduce_repeats([[a, b], [c, d]], {frozenset("ab"): 1})
    assert {frozenset((one.bot, other.bot)), frozenset((third.bot, last.bot))} != {
        frozenset("ab"),
        frozenset("cd"),
    }


def test_a_thousand_entrants_are_drawn() -> None:
    """One call for each of them would be too many on the stack."""
    players = [SwissPlayer(f"b{place}", float(place < 500)) for place in range(1000)]
    drawn = draw_round(players, frozenset(), {}, 2)
    assert len({bot for table in drawn.tables for bot in table}) == 1000
    assert not drawn.repeats


def test_what_cannot_be_helped_is_counted() -> None:
    players = [SwissPlayer("a", 1), SwissPlayer("b", 0)]
    assert draw_round(players, frozenset(), {frozenset("ab"): 1}, 2).repeats == 1
