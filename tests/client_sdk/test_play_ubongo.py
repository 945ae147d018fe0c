"""Ubongo at a local table: in virtual time, who is quicker wins, whatever the machine."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import seatwise
from seatwise.bot_errors import UsageError
from seatwise.cli import main
from seatwise.rate import BURST
from seatwise.samples.ubongo_solver import solve
from seatwise.ubongo import GOAL, Call, Lay, Layout, OfferEnd, Thought, View, draw


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


def test_who_is_quicker_wins_and_the_other_has_what_it_had_laid() -> None:
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


@pytest.mark.parametrize(("sample", "seed"), [("solver", 8), ("random", 6)])
def test_a_sample_that_finds_no_seven_offers_the_end_as_who_has_nothing_to_say(
    sample: str, seed: int, tmp_path: Path
) -> None:
    class Silent(seatwise.Bot):
        def build(self, _: View) -> Iterator[Any]:
            return iter(())

    match = played(sample, Silent, rounds=6, seed=seed, records=tmp_path / "records")
    entries = json.loads((tmp_path / "records").read_text())["entries"]
    assert match.rounds == (*[(10, 0)] * 5, (6, 0))
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
def test_who_only_thinks_is_not_asked_on_for_ever(ms: int) -> None:
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


def test_what_a_bot_raises_costs_it_the_rest_of_that_round_only(capsys: pytest.CaptureFixture[str]) -> None:
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
def test_who_offers_the_end_must_take_that_back_to_call(
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
