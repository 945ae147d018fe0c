"""Ubongo at a local table: in virtual time, who is quicker wins, whatever the machine."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import seatwise
from seatwise.cli import main
from seatwise.errors import UsageError
from seatwise.kits.game_kit import WORK
from seatwise.kits.race_steps import BURST
from seatwise.kits.ubongo.prices import FITTING_BESIDE_US, LAYOUT_CARD_US, TOUCH_US
from seatwise.kits.ubongo.solver import solve
from seatwise.local import table as local_table
from seatwise.ubongo import (
    CARDS,
    GOAL,
    Call,
    Lay,
    Layout,
    OfferEnd,
    Placement,
    Thought,
    View,
    draw,
    fitting_beside,
    fitting_places,
    is_fitting,
    overlapping,
    touch,
)


def best_of(view: View) -> Layout:
    return max(solve(view.hand), key=len)


class Thinking(seatwise.Bot):
    """Knows its layout at once, and takes so long to say it."""

    ms = 100

    def build(self, view: View) -> Iterator[Any]:
        layout = best_of(view)
        yield Thought(self.ms)
        yield layout
        yield Call() if len(layout) >= GOAL else OfferEnd(on=True)


class ABitLater(Thinking):
    ms = 110


class Later(Thinking):
    ms = 111


def played(*bots: Any, rounds: int = 1, seed: int = 4, **others: Any) -> Any:
    return seatwise.play(
        bots, game="ubongo", seed=seed, options={"rounds": rounds, "deck": "easy"}, **others
    ).matches[0]


def test_a_seat_that_is_quicker_wins_and_the_other_has_what_it_had_laid() -> None:
    assert played(Thinking, Later).points == (10, 0)


def test_a_thought_pays_for_the_answer_after_it_and_any_other_answer_costs_a_millisecond(
    tmp_path: Path,
) -> None:
    played(Thinking, Later, records=tmp_path / "records")
    entries = json.loads((tmp_path / "records").read_text())["entries"]
    (called,) = [entry for entry in entries if entry["kind"] == "called"]
    assert [call["charged_ms"] for call in called["calls"]] == [Thinking.ms + 1]


def test_calls_within_the_tie_window_are_simultaneous() -> None:
    assert played(Thinking, ABitLater).points == (10, 10)


def test_a_layout_counts_as_it_stood_at_the_first_call() -> None:
    class InSteps(seatwise.Bot):
        def build(self, view: View) -> Iterator[Any]:
            layout = best_of(view)
            for cards in range(1, GOAL + 1):
                yield Thought(30)
                yield Lay(layout[:cards])

    assert played(Thinking, InSteps).points == (10, 3)


def test_a_layout_that_waits_is_sent_before_the_offer_that_may_end_the_round() -> None:
    seen = []

    class Hasty(seatwise.Bot):
        def build(self, view: View) -> Iterator[Any]:
            seen.append(view.last_round)
            layout = best_of(view)
            for cards in [1, 2] * BURST + [3]:  # more at once than may be sent at once, so the last ones wait
                yield layout[:cards]
            yield OfferEnd(on=True)

    class Idle(seatwise.Bot):
        def build(self, view: View) -> Iterator[Any]:
            seen.append(view.last_round)
            yield OfferEnd(on=True)

    played(Hasty, Idle, rounds=2)
    assert sorted(len(each.layout) for each in seen[-1]) == [0, 3]


def test_a_bot_may_be_async_and_say_its_cards_by_name() -> None:
    class Async(seatwise.Bot):
        async def build(self, view: View) -> AsyncIterator[Any]:
            yield [(str(card), x, y, turn) for card, x, y, turn in best_of(view)]
            yield Call()

    assert played(Async, Later).points == (10, 0)


def test_the_round_ends_when_nobody_has_anything_to_say_any_more() -> None:
    class Content(seatwise.Bot):
        def build(self, view: View) -> Iterator[Any]:
            yield best_of(view)[:4]

    match = played(Content, Content, Content, rounds=6)
    assert match.rounds == ((4, 4, 4),) * 6


@pytest.mark.parametrize(("sample", "seed", "last"), [("solver", 8, 6), ("random", 6, 5)])
def test_a_sample_that_finds_no_seven_offers_the_end_as_who_has_nothing_to_say(
    sample: str, seed: int, last: int, tmp_path: Path
) -> None:
    class Silent(seatwise.Bot):
        def build(self, _: View) -> Iterator[Any]:
            return iter(())

    match = played(sample, Silent, rounds=6, seed=seed, records=tmp_path / "records")
    entries = json.loads((tmp_path / "records").read_text())["entries"]
    assert match.rounds == (*[(10, 0)] * 5, (last, 0))
    assert [entry["reason"] for entry in entries if entry["kind"] == "agreed"] == ["OFFERED"]
    assert match.failures == (0, 0)


def test_the_round_ends_when_its_time_is_over() -> None:
    class Endless(seatwise.Bot):
        def build(self, view: View) -> Iterator[Any]:
            yield best_of(view)[:2]
            while True:
                yield Thought(1000)
                yield OfferEnd(on=False)

    assert played(Endless, Endless).rounds == ((2, 2),)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("ms", [0, 1000])
def test_a_seat_that_only_thinks_is_not_asked_on_for_ever(ms: int) -> None:
    """As a bot does that waits for the others."""

    class Waiting(seatwise.Bot):
        def build(self, _: View) -> Iterator[Any]:
            while True:
                yield Thought(ms)

    assert played(Thinking, Waiting).points == (10, 0)


def test_thoughts_add_up_and_each_takes_a_millisecond_at_least() -> None:
    class InParts(Thinking):
        ms, left_ms = 10, 0

        def build(self, view: View) -> Iterator[Any]:
            yield from (Thought(0), Thought(60), Thought(self.left_ms))
            yield from super().build(view)

    class JustInTime(InParts):
        left_ms = 39

    class TooLate(InParts):
        left_ms = 40

    assert played(Thinking, JustInTime).points == (10, 10)
    assert played(Thinking, TooLate).points == (10, 0)


# --- Prices, and measured time -------------------------------------------------------------------------


def called_at(record: Path) -> list[int]:
    entries = json.loads(record.read_text())["entries"]
    return [call["charged_ms"] for entry in entries if entry["kind"] == "called" for call in entry["calls"]]


class Searching(seatwise.Bot):
    """Declares nothing, and looks at so many contacts of two cards before it calls."""

    looks = 0

    def build(self, view: View) -> Iterator[Any]:
        one, other = (Placement(side.card, 0, 0, 0) for side in view.hand[:2])
        layout = best_of(view)
        for _ in range(self.looks):
            touch(one, "ABCDEF", other, "ABCDEF")
        yield layout
        yield Call()


class SearchingMore(Searching):
    looks = 100_000


def test_more_search_costs_more_although_nothing_is_declared(tmp_path: Path) -> None:
    assert played(Searching, SearchingMore, is_rotating=False).points == (10, 0)
    played(SearchingMore, SearchingMore, records=tmp_path / "records")
    late = called_at(tmp_path / "records")
    played(Searching, Searching, records=tmp_path / "records")
    assert [more - less for more, less in zip(late, called_at(tmp_path / "records"), strict=True)] == [
        SearchingMore.looks * TOUCH_US // 1000
    ] * 2


@pytest.mark.parametrize("ask", [fitting_places, fitting_beside, is_fitting, overlapping, touch])
def test_each_geometry_call_has_its_price(ask: Any) -> None:
    symbols = dict.fromkeys(CARDS[:4], "ABCDEF")
    layout = tuple(Placement(card, 3 * number, 0, 0) for number, card in enumerate(CARDS[:3]))
    calls = {
        fitting_places: ((layout, CARDS[3], symbols), 3 * FITTING_BESIDE_US),
        fitting_beside: ((layout[0], "ABCDEF", CARDS[3], "ABCDEF"), FITTING_BESIDE_US),
        is_fitting: ((layout, symbols), 3 * LAYOUT_CARD_US),
        overlapping: ((layout,), 3 * LAYOUT_CARD_US),
        touch: ((layout[0], "ABCDEF", layout[1], "ABCDEF"), TOUCH_US),
    }
    arguments, price_us = calls[ask]
    before_us = WORK.spent_us
    ask(*arguments)
    assert WORK.spent_us - before_us == price_us


def test_measured_time_is_charged_in_place_of_prices_and_the_record_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0]
    monkeypatch.setattr(local_table, "perf_counter_ns", lambda: clock[0])

    class Quick(seatwise.Bot):
        ms = 3

        def build(self, view: View) -> Iterator[Any]:
            layout = best_of(view)
            yield Thought(5000)
            clock[0] += self.ms * 1_000_000
            yield layout
            yield Call()

    class Slow(Quick):
        ms = 40

    file = tmp_path / "records"
    assert played(Quick, Slow, records=file, times="measured").points == (10, 0)
    assert (json.loads(file.read_text())["times"], called_at(file)) == ("measured", [Quick.ms])
    assert main(["verify", str(file)]) == 0
    assert played(Quick, Slow, records=file).points == (10, 10)
    assert json.loads(file.read_text())["times"] == "priced"


def test_only_a_race_has_two_kinds_of_times_and_no_third_is_known(tmp_path: Path) -> None:
    seatwise.play(["random"] * 2, options={"rounds": 1}, records=tmp_path / "records")
    assert "times" not in json.loads((tmp_path / "records").read_text())
    with pytest.raises(UsageError, match="times: must be priced or measured, not 'guessed'"):
        played(Thinking, Later, times="guessed")


def test_the_default_deck_tells_the_sample_bots_apart() -> None:
    names = ["solver", "first-fit", "random"]
    solver, *others = seatwise.play(names, game="ubongo", matches=24, seed=5).standings
    assert solver.bot == "solver"
    assert solver.interval[0] > max(other.interval[1] for other in others)


def test_an_error_of_a_bot_costs_it_the_rest_of_that_round_only(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken(seatwise.Bot):
        def build(self, view: View) -> Iterator[Any]:
            yield best_of(view)[:2]
            if view.round == 1:
                raise RuntimeError("broken")
            yield best_of(view)
            yield Call()

    match = played(Broken, Later, rounds=2)
    assert match.rounds == ((2, 10), (10, 0))
    assert match.failures == (1, 0)
    assert "RuntimeError: broken" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("nonsense", "build(view) yields layouts"),
        ([("1-01", 0, 0)], "is no placement"),
        ([("9-99", 0, 0, 0)], "is no placement"),
        (Call(), "Call() with 0 cards laid"),
        (5, "build(view) yields layouts"),
        ([("2-01", 0, 0, 0)], "you do not hold 2-01"),
    ],
    ids=str,
)
def test_an_answer_without_sense_is_told_before_the_referee_has_to(
    answer: Any, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    class Odd(seatwise.Bot):
        def build(self, view: View) -> Iterator[Any]:  # noqa: ARG002  # as it is called
            yield answer

    match = played(Odd, Later)
    assert match.points[1] == 10
    assert match.failures == (1, 0)
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(("offers", "points", "failures"), [((True,), 7, 1), ((True, False), 10, 0)])
def test_a_seat_that_offers_the_end_must_take_that_back_to_call(
    offers: tuple[bool, ...], points: int, failures: int, capsys: pytest.CaptureFixture[str]
) -> None:
    class Undecided(seatwise.Bot):
        def build(self, view: View) -> Iterator[Any]:
            yield best_of(view)
            yield from map(OfferEnd, offers)
            yield Call()

    match = played(Undecided, Later)
    assert (match.points[0], match.failures[0]) == (points, failures)
    assert ("yield OfferEnd(False) first" in capsys.readouterr().err) == bool(failures)


def test_of_layouts_that_come_too_fast_the_newest_is_said_as_soon_as_the_referee_takes_it() -> None:
    class Hasty(seatwise.Bot):
        def build(self, view: View) -> Iterator[Any]:
            layout = best_of(view)
            for number in range(60):
                yield layout[: number % 2]
            yield layout[:6]
            yield Thought(60_000)

    class Patient(Thinking):
        ms = 60 + 50  # the most that the newest has to wait

    assert played(Hasty, Patient).points == (6, 10)


def test_a_generator_is_closed_when_the_round_is_over() -> None:
    closed = []

    class Slow(seatwise.Bot):
        def build(self, view: View) -> Iterator[Any]:
            try:
                while True:
                    yield Thought(1000)
                    yield ()
            finally:
                closed.append(view.round)

    played(Slow, Thinking, rounds=2)
    assert closed == [1, 2]


def test_a_bot_of_another_game_is_refused() -> None:
    class Card(seatwise.Bot):
        def choose(self, view: Any) -> Any:
            return view.legal_cards[0]

    with pytest.raises(UsageError, match=r"has no method build\(self, view\)"):
        played(Card, Card)


def test_the_command_plays_and_the_same_seed_gives_the_same_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / "first.jsonl", tmp_path / "second.jsonl"]
    for file in files:
        arguments = ["--matches", "2", "--seed", "9", "--records", str(file), "--json"]
        assert main(["play", "ubongo", "solver", "random", "random", "solver", *arguments]) == 0
        told = json.loads(capsys.readouterr().out)
        assert [each["failures"] for each in told["standings"]] == [0] * 4
    assert files[0].read_bytes() == files[1].read_bytes()
    assert main(["verify", str(files[0])]) == 0


def test_layouts_are_drawn_as_they_lie() -> None:
    view: list[View] = []

    class Looking(Thinking):
        def build(self, view_: View) -> Iterator[Any]:
            view.append(view_)
            yield ()

    played(Looking, Looking)
    (first, *_), symbols = view[0].hand, dict(view[0].hand)
    assert draw((), symbols) == "(nothing laid)"
    a, b, c, d, e, f = first.symbols
    upright = draw(best_of(view[0])[:1], dict.fromkeys(symbols, first.symbols))
    assert upright.splitlines()[1::2] == [f"| {a}   {b} |", f"| {c}   {d} |", f"| {e}   {f} |"]
