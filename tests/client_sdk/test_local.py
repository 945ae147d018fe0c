"""Matches without a server: fair, repeatable, and safe from what bots do."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import seatwise
from seatwise import Bot, Offer, Result, UsageError, View
from seatwise.cli import main
from seatwise.local import table as local_table
from seatwise.standings import interval_of
from seatwise_referee.ending import Ending

OF_TIME = {"asked_ms", "at_ms", "charged_ms", "allowance_ms", "chain"}
"""What a seed does not decide."""


class First(Bot):
    def choose(self, view: View) -> Any:
        return view.legal_cards[0]


class Lucky(Bot):
    """Draws from the module, as people do."""

    def choose(self, view: View) -> Any:
        return random.choice(view.legal_cards)


class Fails(Bot):
    """Cannot count to five."""

    def choose(self, view: View) -> Any:
        if len(view.hand) == 5:
            raise ValueError("five")
        return view.legal_cards[0]


def without_time(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_time(each) for key, each in value.items() if key not in OF_TIME}
    return [without_time(each) for each in value] if isinstance(value, list) else value


def records_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def played(file: Path, bots: list[Any], **others: Any) -> list[Any]:
    """The records of a series, but for what time decides."""
    seatwise.play(bots, records=file, **{"matches": 4, "seed": 7, **others})
    return [without_time(record) for record in records_of(file)]


# Repeatable


def test_the_same_seed_gives_the_same_records(tmp_path: Path) -> None:
    bots = ["random", "counting", Lucky]
    options = {"rounds": 1}
    first = played(tmp_path / "a", bots, options=options)
    assert played(tmp_path / "b", bots, options=options) == first
    assert played(tmp_path / "c", bots, options=options, seed="7") == first
    assert played(tmp_path / "d", bots, options=options, seed=8) != first


def test_a_longer_series_begins_as_the_shorter_one(tmp_path: Path) -> None:
    short = played(tmp_path / "a", ["random", "greedy"], matches=2)
    assert played(tmp_path / "b", ["random", "greedy"], matches=3)[:2] == short


def test_without_a_seed_no_two_series_are_the_same(tmp_path: Path) -> None:
    one = played(tmp_path / "a", [First, First], seed=None)
    two = played(tmp_path / "b", [First, First], seed=None)
    assert {record["match"] for record in one}.isdisjoint(record["match"] for record in two)
    assert {record["seed"] for record in one}.isdisjoint(record["seed"] for record in two)


def test_a_series_leaves_the_module_random_as_it_was() -> None:
    random.seed(3)
    wanted = random.random()
    random.seed(3)
    seatwise.play([Lucky, Lucky], seed=1, options={"rounds": 1})
    assert random.random() == wanted


def test_a_slow_machine_changes_nothing_but_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = played(tmp_path / "a", ["greedy", First, Fails])
    hours = count(step=3600 * 10**9)
    monkeypatch.setattr(local_table, "perf_counter_ns", lambda: next(hours))
    assert played(tmp_path / "b", ["greedy", First, Fails]) == usual
    assert main(["verify", str(tmp_path / "b")]) == 0


def test_the_records_are_as_the_verifier_wants_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for bots in ([First, "random"], [First, Fails, "random"], ["greedy", "greedy", Fails, Lucky]):
        seatwise.play(bots, matches=3, records=tmp_path / "records")
        assert main(["verify", str(tmp_path / "records")]) == 0
    assert "3 records" in capsys.readouterr().out


# Fair


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_everybody_sits_everywhere_equally_often(seats: int) -> None:
    class Others(First):
        pass

    bots = [First, Others, "random", "greedy"][:seats]
    matches = seatwise.play(bots, matches=24, options={"rounds": 1}).matches
    assert Counter(bot for match in matches[:seats] for bot in match.bots[:1]).most_common(1)[0][1] == 1
    orders = Counter(match.bots for match in matches)
    assert len(orders) == {2: 2, 3: 6, 4: 24}[seats]
    assert set(orders.values()) == {24 // len(orders)}


def test_without_rotation_bots_keep_their_seats() -> None:
    matches = seatwise.play([First, "random"], matches=3, options={"rounds": 1}, is_rotating=False)
    assert {match.bots for match in matches} == {("First", "random")}


def test_bots_of_one_name_are_told_apart() -> None:
    results = seatwise.play(["greedy", "greedy", First], options={"rounds": 1})
    assert results.bots == ("greedy", "greedy 2", "First")
    assert results.standing("greedy 2").matches == 1


def test_a_match_tells_how_often_each_seat_was_asked(tmp_path: Path) -> None:
    (match,) = seatwise.play([First, Fails], options={"rounds": 1}, records=tmp_path / "records")
    (record,) = records_of(tmp_path / "records")
    answered = Counter(entry["seat"] for entry in record["entries"] if entry["kind"] == "move")
    assert match.failures == (0, 1)
    assert match.moves == (answered[0], answered[1] + 1)


def test_each_match_is_told_as_soon_as_it_is_over() -> None:
    told: list[Any] = []
    results = seatwise.play(["random", "random"], matches=3, options={"rounds": 1}, on_match=told.append)
    assert told == list(results)


def test_the_standings_add_the_matches_up() -> None:
    results = seatwise.play(["greedy", "random"], matches=10, seed=1)
    greedy = results.standing("greedy")
    points = [match.points[match.bots.index("greedy")] for match in results]
    assert greedy.mean_points == pytest.approx(sum(points) / 10)
    assert greedy.interval == interval_of(points)
    assert greedy.interval[0] < greedy.mean_points < greedy.interval[1]
    assert (len(results), greedy.matches, greedy.failures) == (10, 10, 0)
    assert "greedy" in str(results).splitlines()[1]


# Bots


def test_a_bot_is_told_all_that_it_needs() -> None:
    told: list[Any] = []

    class Curious(First):
        def setup(self, offer: Offer) -> None:
            told.append((offer, self.name, self.match, self.seat))

        def ended(self, result: Result) -> None:
            told.append(result)

    results = seatwise.play([Curious, "greedy"], options={"rounds": 2}, seed=5)
    (offer, name, match, seat), result = told
    assert (offer.game, offer.options, offer.seat, offer.match) == ("ugo", {"rounds": 2}, seat, match)
    assert offer.bots[seat] == name == "bots/curious/versions/local"
    (played,) = results
    assert (result.match, result.seat, result.points, result.ranks) == (match, 0, played.points, played.ranks)
    assert result.endings == (Ending.COMPLETED, Ending.COMPLETED)
    assert len(result.rounds) == 2


def test_async_bots_play_too_and_keep_their_loop() -> None:
    loops = set()

    class Later(Bot):
        async def setup(self, offer: Offer) -> None:  # noqa: ARG002
            self.queue: asyncio.Queue[int] = asyncio.Queue()

        async def choose(self, view: View) -> Any:
            loops.add(id(asyncio.get_running_loop()))
            await asyncio.sleep(0)
            return view.legal_cards[0]

        async def ended(self, result: Result) -> None:
            await self.queue.put(result.points[0])

    results = seatwise.play([Later, First], matches=2, options={"rounds": 1})
    assert results.standing("Later").failures == 0
    assert len(loops) == 1


async def test_a_series_can_be_played_from_async_code_as_in_a_notebook() -> None:
    class Later(Bot):
        async def choose(self, view: View) -> Any:
            return view.legal_cards[0]

    results = seatwise.play([Later, First], options={"rounds": 1})
    assert results.standing("Later").failures == 0


def test_an_exception_costs_the_move_and_is_shown_with_its_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (match,) = seatwise.play([Fails, First], options={"rounds": 2}, is_rotating=False)
    assert match.failures == (2, 0)
    assert match.endings == (Ending.COMPLETED, Ending.COMPLETED)
    shown = capsys.readouterr().err
    assert 'raise ValueError("five")' in shown
    assert "local/table.py" not in shown
    assert shown.count("Traceback") == 1
    assert "1 more like it" in shown


def test_with_the_third_exception_the_seat_is_forfeited() -> None:
    (match,) = seatwise.play([Fails, First], options={"rounds": 4}, is_rotating=False)
    assert match.failures == (3, 0)
    assert match.endings == (Ending.TIMED_OUT, Ending.COMPLETED)
    assert match.ranks == (2, 1)


def test_nonsense_costs_the_move_and_is_shown_without_our_frames(capsys: pytest.CaptureFixture[str]) -> None:
    class Nothing(Bot):
        def choose(self, view: View) -> Any: ...

    (match,) = seatwise.play([Nothing, First])
    assert match.endings[0] is Ending.TIMED_OUT
    shown = capsys.readouterr().err
    assert "None is no card: choose(view) must return one of view.legal_cards" in shown
    assert "Traceback" not in shown


def test_a_bot_that_wants_to_end_the_process_does_not() -> None:
    class Exits(Bot):
        def choose(self, view: View) -> Any:  # noqa: ARG002
            sys.exit("enough")

    (match,) = seatwise.play([Exits, First], is_rotating=False)
    assert match.endings[0] is Ending.TIMED_OUT


def test_a_bot_that_cannot_be_set_up_does_not_sit() -> None:
    class Broken(First):
        def __init__(self) -> None:
            raise RuntimeError("no model")

    (match,) = seatwise.play([Broken, First, "random"], is_rotating=False)
    assert match.endings == (Ending.NEVER_SAT, Ending.COMPLETED, Ending.COMPLETED)
    (match,) = seatwise.play([Broken, First])
    assert match.void_reason == "TOO_FEW_SAT"


def test_where_nobody_is_left_the_match_is_void_and_has_no_record(tmp_path: Path) -> None:
    results = seatwise.play([Fails, Fails], matches=2, records=tmp_path / "records")
    assert [match.void_reason for match in results] == ["ABANDONED"] * 2
    assert (tmp_path / "records").read_bytes() == b""
    assert results.standing("Fails").matches == 0
    assert "Fails" in str(results)


def test_an_interrupt_comes_through() -> None:
    class Interrupts(Bot):
        def choose(self, view: View) -> Any:  # noqa: ARG002
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        seatwise.play([Interrupts, First])


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"game": "chess"}, "chess: no such game; there is ugo"),
        ({"bots": [First]}, "ugo is played by 2 to 4 bots, not by 1"),
        ({"bots": [First] * 5}, "ugo is played by 2 to 4 bots, not by 5"),
        ({"bots": [First, First()]}, "give the class First, not an object of it"),
        ({"bots": "greedy"}, "bots: a list is wanted"),
        (
            {"bots": ["greedy", "nobody"]},
            "nobody: no such sample; the samples are random, half-greedy, greedy, counting",
        ),
        ({"matches": 0}, "matches: must be 1 or more, not 0"),
        ({"options": {"round": 1}}, "option round: UGO! has no such option"),
        ({"options": {"rounds": 9}}, "option rounds: must be a whole number from 1 to 8"),
        ({"records": "/no/such/folder/file"}, "records: cannot write to /no/such/folder/file: No such file"),
    ],
)
def test_a_match_that_cannot_be_played_is_refused_before_any_is_played(
    arguments: dict[str, Any], why: str
) -> None:
    with pytest.raises(UsageError) as usage:
        seatwise.play(**{"bots": [First, First], **arguments})
    assert why in str(usage.value)
