"""Rounds of Ubongo at the wire."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from harness.house import House
from harness.items import item
from harness.table import Chair, Table
from harness.wire import Wire
from seatwise.games.ubongo.v1 import ubongo_pb2
from seatwise.kits.ubongo.codec import decode_view, encode_layout
from seatwise.kits.ubongo.solver import solve
from seatwise.v1 import play_service_pb2
from seatwise_referee.games.ubongo import CARDS, HOUSE_DECK, Layout, UbongoView

CALL = ubongo_pb2.Move(call=ubongo_pb2.Call())
BUILD_MS = 20_000
"""A round's time that no test waits for."""

_numbers = itertools.count(1)


def load_deck_maker() -> Any:
    """The program that has made the house's decks."""
    spec = spec_from_file_location("deck_maker", Path(__file__).parents[2] / "docs/rules/deck_maker.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


deck_maker = load_deck_maker()


def deck_file(name: str) -> str:
    """The cards of `house-1` as the file of another deck; the first has another white side."""
    sides = ["ABABAB BCDAED", *(f"{white} {black}" for white, black in HOUSE_DECK.sides[1:])]
    cards = (f"{card} {printed}" for card, printed in zip(CARDS, sides, strict=True))
    return "\n".join([f"seatwise.ubongo-deck/1 {name}", *cards, ""])


def offer(*, on: bool = True) -> ubongo_pb2.Move:
    """Agrees to end the round, or no longer does."""
    return ubongo_pb2.Move(offer_end=ubongo_pb2.OfferEnd(on=on))


def lay(layout: Layout) -> ubongo_pb2.Move:
    """Lays these cards."""
    return ubongo_pb2.Move(lay=encode_layout(layout))


def said(prompt: int, move: ubongo_pb2.Move, request_id: str = "") -> play_service_pb2.SubmitMove:
    """A move of Ubongo for a prompt, with a new request id."""
    name = request_id or f"u{next(_numbers)}"
    return play_service_pb2.SubmitMove(request_id=name, prompt=prompt, ubongo=move)


def view_of(chair: Chair) -> UbongoView:
    """What the seat was shown last."""
    assert chair.last is not None
    return decode_view(chair.last.ubongo)


def best(chair: Chair) -> Layout:
    """The best layout of the seat's hand."""
    return max(solve(view_of(chair).hand), key=len)


async def build(chair: Chair, *moves: ubongo_pb2.Move, prompt: int | None = None) -> list[str]:
    """All these moves in one message; their request ids."""
    assert chair.last is not None
    assert chair.stream is not None
    asked = [said(chair.last.prompt if prompt is None else prompt, move) for move in moves]
    chair._asked_for.update({each.request_id: each.prompt for each in asked})
    await chair.stream.send(*(item(chair.match, chair.seat, submit_move=each) for each in asked))
    return [each.request_id for each in asked]


async def builds_out(chair: Chair) -> play_service_pb2.MatchEnded:
    """Offers the end of each round, to the end of the match."""
    if chair.last is not None and chair.last.to_act:
        await build(chair, offer())
    while True:
        found = await chair.receive()
        if found.HasField("match_ended"):
            return found.match_ended
        if found.HasField("update") and found.update.to_act:
            await build(chair, offer())


async def builds_on(house: House, table: Table) -> None:
    """All go on to the end, none the worse for what happened; the record verifies."""
    await asyncio.gather(*map(builds_out, table.chairs))
    match = await house.admin.over(table.name)
    assert set(match.result.endings) == {1}  # COMPLETED
    await house.admin.record(table.name)


@asynccontextmanager
async def building(
    house: House, seats: int = 2, rounds: int = 2, wires: Sequence[Wire] = (), **limits: Any
) -> AsyncIterator[Table]:
    """A match of Ubongo in which all are asked to build."""
    bots = list(wires) or [await house.bot() for _ in range(seats)]
    free = {"free_ms": {"build": BUILD_MS}, **limits}
    table = await house.seat(bots, game="ubongo", rounds=rounds, **free)
    await table.sit()
    for chair in table.chairs:
        await chair.asked("build")
    yield table
