"""The luck of draws: 0 on average whatever a bot declares, the same for ever, and taken off on a league's page."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from statistics import fmean, stdev, variance
from typing import Any

import pytest
from matches.effort import examples
from seasons.one_season import league_of

import seatwise
from seatwise.kits.ugo.match_luck import measure_draw_luck
from seatwise.kits.ugo.samples import Greedy
from seatwise.ugo import default_order
from seatwise_referee.games.ugo import Arrange, Play, Ugo
from seatwise_referee.shuffle import deal_seed
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.league.par import draw_luck_of
from seatwise_server.league.report import luck
from seatwise_server.league.report.luck import correct_for_luck


class Careless(Greedy):
    """`greedy` that declares a random card with 30 %."""

    def choose(self, view: seatwise.View) -> Any:
        best, cards = super().choose(view), list(view.legal_cards)
        return seatwise.MixedMove([(card, 3 + 7 * len(cards) * (card == best)) for card in cards])


class Liar(Greedy):
    """Declares what it does not want with a tiny weight, so that a draw of it would be great bad luck."""

    def choose(self, view: seatwise.View) -> Any:
        worst = min(view.legal_cards, key=lambda card: card.value)
        return seatwise.MixedMove([(card, 1 if card == worst else 50) for card in view.legal_cards])


def records(tmp_path: Path, *bots: Any, matches: int, seed: int = 3) -> list[dict[str, Any]]:
    file = tmp_path / "records.jsonl"
    seatwise.play(list(bots), matches=matches, seed=seed, records=file)
    return [json.loads(line) for line in file.read_text().splitlines()]


# By the words of docs/statistics.md, with a bot object instead of our shortcut


def points_of_round(state: Any) -> tuple[int, ...]:
    """The rest of the round by `greedy` at all seats."""
    game, number = Ugo(), state.round.number
    while len(state.round.points) < number:
        seat = state.asked
        move = (
            Arrange(default_order(state.table.won))
            if state.table.won
            else Play(Greedy().choose(game.view(state, seat)))
        )
        state = game.play(state, seat, move)
    return tuple(state.round.points[number - 1])


def luck_as_published(record: dict[str, Any]) -> list[float]:
    game = Ugo()
    nonces = [bytes.fromhex(nonce) for nonce in record["nonces"]]
    seats = len(record["seats"])
    state = game.deal(seats, deal_seed(bytes.fromhex(record["seed"]), nonces), record["options"])
    luck = [0.0] * seats
    for entry in record["entries"]:
        if entry["kind"] != "move":
            continue
        seat = entry["seat"]
        if "choices" in entry:
            total = sum(choice["weight"] for choice in entry["choices"])
            for choice in entry["choices"]:
                after = game.play(state, seat, game.move_from_json(choice["move"]))
                part = (choice["move"] == entry["move"]) - choice["weight"] / total
                number = state.round.number
                points = (
                    points_of_round(after) if after.round.number == number and after.asked is not None
                    else after.round.points[number - 1]
                )  # fmt: skip
                luck = [own + part * each for own, each in zip(luck, points, strict=True)]
        state = game.play(state, seat, game.move_from_json(entry["move"]))
    return luck


@pytest.mark.parametrize("seats", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_the_luck_is_that_of_the_published_words(seats: int, tmp_path: Path) -> None:
    for record in records(tmp_path, *[Careless] * seats, matches=2):
        assert measure_draw_luck(record) == pytest.approx(luck_as_published(record), abs=1e-9)


def test_the_luck_of_a_record_is_the_same_for_ever(tmp_path: Path) -> None:
    """Whoever works a page out again finds these digits."""
    found = [measure_draw_luck(record) for record in records(tmp_path, Careless, Careless, matches=2, seed=1)]
    assert [[round(each, 6) for each in luck] for luck in found] == GOLDEN


GOLDEN = [[-20.999405, -43.061548], [-8.101667, 7.254048]]


@pytest.mark.parametrize("bot", [Careless, pytest.param(Liar, marks=pytest.mark.slow)])
@pytest.mark.sampled
def test_the_luck_of_declared_draws_is_zero_on_average(bot: type[Greedy], tmp_path: Path) -> None:
    lucks = [
        measure_draw_luck(record)[0] for record in records(tmp_path, bot, "greedy", matches=examples(30, 15))
    ]
    assert stdev(lucks) > 1
    assert abs(fmean(lucks)) < 4.5 * stdev(lucks) / math.sqrt(len(lucks))


def test_a_match_without_mixed_moves_has_no_luck_of_draws(tmp_path: Path) -> None:
    [record] = records(tmp_path, "greedy", "random", matches=1)
    assert draw_luck_of(record) is None
    assert draw_luck_of({**record, "game": "ubongo"}) is None
    assert measure_draw_luck(record) == (0.0, 0.0)


@pytest.mark.slow
def test_a_page_takes_the_luck_of_draws_off_and_says_so(tmp_path: Path) -> None:
    """The points vary less than with par and playouts alone, and the mean difference stays where it was."""
    lines = records(tmp_path, Careless, "greedy", matches=24)
    results = [
        LoggedResult(
            number, record["match"], ("bots/a/versions/1", "bots/b/versions/1"), tuple(record["outcome"]["points"]),
            tuple(record["outcome"]["ranks"]), ("COMPLETED",) * 2, "", "",
        )
        for number, record in enumerate(lines, 1)
    ]  # fmt: skip
    league = league_of("greedy", "greedy")
    texts = {record["match"]: json.dumps(record) for record in lines}
    plain = {
        match: json.dumps({**json.loads(text), "entries": [
            {key: value for key, value in entry.items() if key != "choices"} for entry in json.loads(text)["entries"]
        ]})
        for match, text in texts.items()
    }  # fmt: skip
    with_draws, without = (correct_for_luck(league, results, found)[-1] for found in (texts, plain))
    assert with_draws.how.endswith("of the luck of draws that bots left to the referee")
    assert "draws" not in without.how
    assert with_draws.left < 0.6 * without.left
    differences = [one - other for one, other in with_draws.points.values]
    assert variance(differences) < variance([one - other for one, other in without.points.values])


@pytest.mark.parametrize("follows", [1.0, 0.0, -1.0])
def test_no_bot_can_steer_the_part_of_the_draws(follows: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bot knows its luck so far, so a part that follows the points could be raised after bad luck and lowered after good."""
    chance, bots = Random(1), ("bots/a/versions/1", "bots/b/versions/1")
    lucks = {f"matches/{number}": (chance.gauss(0, 20), chance.gauss(0, 20)) for number in range(30)}
    results = [
        LoggedResult(
            number, match, bots, (round(50 + follows * one), round(50 + follows * other)), (1, 2), ("COMPLETED",) * 2, "", "",
        )
        for number, (match, (one, other)) in enumerate(lucks.items(), 1)
    ]  # fmt: skip
    records = {match: json.dumps({"match": match}) for match in lucks}
    monkeypatch.setattr(luck, "par_of", lambda record: (float(len(record["match"])), 3.0))
    monkeypatch.setattr(luck, "playouts_of", lambda record: (float(record["match"][-1] in "13"), 1.0))

    def corrected(found: dict[str, tuple[float, ...]]) -> list[tuple[float, ...]]:
        monkeypatch.setattr(luck, "draw_luck_of", lambda record: found.get(record["match"]))
        return correct_for_luck(league_of("greedy", "greedy"), results, records)[-1].points.values

    means = [fmean(own) for own in zip(*lucks.values(), strict=True)]
    for plain, better, own in zip(corrected({}), corrected(lucks), lucks.values(), strict=True):
        taken = [0.8 * (value - mean) for value, mean in zip(own, means, strict=True)]
        assert better == pytest.approx(
            [value - off for value, off in zip(plain, taken, strict=True)], abs=1e-9
        )
