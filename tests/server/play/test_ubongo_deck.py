"""An operator's own cards, from the command line to the record."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from harness import Chair, refusal_of, server_process
from harness.ubongo import builds_out, deck_file

from seatwise.v1 import match_pb2, match_service_pb2
from seatwise_referee.games.registry import GAMES
from seatwise_referee.games.ubongo import Deck, Ubongo, parse_deck

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def deck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Deck]:
    """A deck file, and the deck; who verifies here knows it."""
    file = tmp_path / "mine"
    file.write_text(deck_file("mine"))
    mine = parse_deck(file.read_text())
    monkeypatch.setitem(GAMES, "ubongo", Ubongo([mine]))
    return file, mine


def wanted(bots: list[str], **deck: str) -> match_service_pb2.CreateMatchRequest:
    return match_service_pb2.CreateMatchRequest(
        game="games/ubongo", bots=bots, options={"rounds": "1", **deck}
    )


async def test_a_match_is_played_with_the_operators_deck_and_its_record_names_it(deck):
    file, mine = deck
    async with server_process("--deck", str(file), "--default-deck", "mine") as (_, house):
        bots = [await house.bot() for _ in range(2)]
        attending = [await bot.attend() for bot in bots]
        names = [bot.bot for bot in bots]
        refused = await refusal_of(
            house.admin.matches.CreateMatch(wanted(names, deck="theirs"), metadata=house.admin.metadata)
        )
        assert (refused.reason, "house-1, club-1, master-1, mine" in refused.message) == (
            "INVALID_ARGUMENT",
            True,
        )
        made = await house.admin.matches.CreateMatch(
            wanted(names, deck="mine"), metadata=house.admin.metadata
        )
        match: match_pb2.Match = made.match
        assert match.options["deck"] == mine.label
        chairs = [
            Chair(bot, match.name, (await each.offer(match.name)).seat)
            for bot, each in zip(bots, attending, strict=True)
        ]
        for chair in chairs:
            await chair.sit()
        await asyncio.gather(*map(builds_out, chairs))
        await house.admin.over(match.name)
        record = json.loads(await house.admin.record(match.name))
        made = await house.admin.matches.CreateMatch(wanted(names), metadata=house.admin.metadata)
        assert made.match.options["deck"] == mine.label
        await house.admin.abort(made.match.name)
    assert record["options"]["deck"] == mine.label
    (deal,) = record["deals"]
    assert all(deal["symbols"][card] == symbols for card, symbols in sides_of(mine, deal["symbols"]))


def sides_of(deck: Deck, cards: dict[str, str]) -> list[tuple[str, str]]:
    """What is printed on the white sides of these cards."""
    by_text = {
        f"{1 + number // 36}-{1 + number % 36:02}": side for number, (side, _) in enumerate(deck.sides)
    }
    return [(card, by_text[card]) for card in cards]
