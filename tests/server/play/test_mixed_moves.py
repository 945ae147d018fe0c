"""Mixed moves from end to end: bots of the SDK by each door, at local tables, under the doctor; and the words about the draw."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from doubles.hosted_games import Highest, use_game
from harness import House
from harness.house import house_in
from matches.one_match import nonce, setup_of

import seatwise
from seatwise.cli import main
from seatwise.remote import run_async
from seatwise.v1 import match_service_pb2
from seatwise_referee.game import Seat
from seatwise_referee.mixed_move import draw_choice
from seatwise_referee.verify import verify_line
from seatwise_server.config import HttpSettings

DOCS = Path(__file__).parents[3] / "docs"


class Evenly(seatwise.Bot):
    """Every card is as likely as every other; the first may have a weight of 0, and cards may be texts."""

    def choose(self, view: seatwise.View) -> Any:
        cards = list(view.legal_cards)
        if len(cards) % 2:
            return seatwise.MixedMove({str(card): 2 for card in cards})
        return seatwise.MixedMove([(card, min(place, 1)) for place, card in enumerate(cards)])


class Slowly(seatwise.Bot):
    """The same with a coroutine."""

    async def choose(self, view: seatwise.View) -> Any:
        await asyncio.sleep(0)
        return seatwise.MixedMove([(card, 1 + card.value) for card in view.legal_cards])


def choices_of(record: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return [entry["choices"] for entry in record["entries"] if "choices" in entry]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def doors() -> AsyncIterator[House]:
    """A server with all its doors."""
    with tempfile.TemporaryDirectory(prefix="sw-") as folder:
        async with house_in(Path(folder), ws_port=0, http=HttpSettings(port=0)) as house:
            yield house


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("door", ["grpc", "websocket", "rest"])
async def test_bots_play_mixed_moves_by_each_door(doors: House, door: str) -> None:
    house = doors
    assert house.server is not None
    address = {
        "grpc": house.address, "websocket": house.server.ws_address, "rest": f"rest+{house.server.http_address}",
    }[door]  # fmt: skip
    wires = [await house.bot() for _ in range(2)]
    request = match_service_pb2.CreateMatchRequest(
        game="games/ugo", bots=[wire.bot for wire in wires], options={"rounds": "1"}
    )
    match = (await house.admin.matches.CreateMatch(request, metadata=house.admin.metadata)).match.name
    async with asyncio.timeout(60):
        summaries = await asyncio.gather(*[
            run_async(bot, address=address, token=wire.token, queues=(), matches=1)
            for bot, wire in zip((Evenly, Slowly), wires, strict=True)
        ])  # fmt: skip
    assert [summary.failures for summary in summaries] == [0, 0]
    line = await house.admin.record(match)
    assert verify_line(line).fault is None
    weights = {tuple(choice["weight"] for choice in choices) for choices in choices_of(json.loads(line))}
    assert len(choices_of(json.loads(line))) == 20
    assert (2, 2, 2) in weights or (2,) in weights


def test_a_local_table_draws_as_a_server_does(tmp_path: Path) -> None:
    results = seatwise.play([Evenly, Slowly, "greedy"], matches=3, seed=5, records=tmp_path / "records.jsonl")
    assert [standing.failures for standing in results.standings] == [0, 0, 0]
    lines = (tmp_path / "records.jsonl").read_bytes().splitlines()
    assert [verify_line(line).fault for line in lines] == [None] * 3
    again = tmp_path / "again.jsonl"
    seatwise.play([Evenly, Slowly, "greedy"], matches=3, seed=5, records=again)
    moves = [[entry.get("move") for entry in json.loads(line)["entries"]] for line in lines]
    assert [
        [entry.get("move") for entry in json.loads(line)["entries"]]
        for line in again.read_bytes().splitlines()
    ] == moves


class Wrong(seatwise.Bot):
    """One of its choices is no card of its hand."""

    def choose(self, view: seatwise.View) -> Any:
        return seatwise.MixedMove({view.legal_cards[0]: 1, "Z9": 1})


class Heavy(seatwise.Bot):
    """Its weights are no whole numbers."""

    def choose(self, view: seatwise.View) -> Any:
        return seatwise.MixedMove({view.legal_cards[0]: 0.5})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("bot", "words"), [(Wrong, "choose(view) must return one of view.legal_cards"), (Heavy, "whole number")]
)
def test_a_bot_is_told_what_is_wrong_with_its_choices(
    bot: type[seatwise.Bot], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    results = seatwise.play([bot, "greedy"], matches=1, seed=1)
    assert results.standing(bot.__name__).failures > 0
    assert words in capsys.readouterr().err


class Decides(seatwise.Bot):
    """Evenly, in a game from outside."""

    def decide(self, view: Any) -> Any:
        return seatwise.MixedMove([(move, 1) for move in view.legal_moves])


def test_games_from_outside_take_mixed_moves_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_game(monkeypatch, Highest)
    results = seatwise.play(
        [Decides, "random"], game="highest", matches=2, seed=1, records=tmp_path / "r.jsonl"
    )
    assert results.standing("Decides").failures == 0
    for line in (tmp_path / "r.jsonl").read_bytes().splitlines():
        assert choices_of(json.loads(line))
        assert verify_line(line).fault is None


def test_no_code_of_an_author_runs_for_choices_that_are_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 64 slow steps in one move a bot could have had the process killed, and its match voided."""
    played: list[Any] = []

    class Counted(Highest):
        name = "counted"

        def play_move(self, state: Any, move: Any, chance: Any) -> Any:
            played.append(move)
            return super().play_move(state, move, chance)

    use_game(monkeypatch, Counted)
    results = seatwise.play([Decides, Decides], game="counted", matches=1, seed=1)
    assert len(played) == sum(standing.moves for standing in results.standings) > 0


BOT = """
import sys, seatwise
class Evenly(seatwise.Bot):
    def choose(self, view):
        return seatwise.MixedMove([(card, 1) for card in view.legal_cards])
seatwise.run(Evenly, address=sys.argv[1])
"""


def test_the_doctor_takes_mixed_moves_for_moves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bot.py").write_text(BOT)
    named = ["--only", "plays_legal_moves", "--only", "attends"]
    command = ["--", sys.executable, str(tmp_path / "bot.py"), "{address}"]
    assert main(["doctor", "--json", "--positions", "40", *named, *command]) == 0
    assert [each["outcome"] for each in json.loads(capsys.readouterr().out)["checks"]] == ["passed"] * 2


def test_the_draws_in_the_record_format_are_those_that_are_made() -> None:
    text = (DOCS / "record-format.md").read_text()
    for seat in (0, 1):
        drawn = [
            draw_choice(setup_of(), [nonce(0), nonce(1)], Seat(seat), prompt, (1, 2, 3))
            for prompt in range(1, 9)
        ]
        assert f"seat {seat}, prompts 1 to 8    {' '.join(map(str, drawn))}" in text
