"""One bot in a process of its own, through the SDK, which writes down all that it says and is told.

    python -m chaos.bot ADDRESS GAME HISTORY [QUEUE ...]        with the token in SEATWISE_TOKEN

It goes on until SIGTERM; then it plays what it has begun to the end. It thinks a moment over each move.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from chaos.history import History, Line
from seatwise import Bot, Card, ubongo
from seatwise.kits.codecs import CODECS
from seatwise.kits.ubongo.samples import RandomBuilder
from seatwise.link.bot_session import BotSession, RunPlan
from seatwise.link.security import Security
from seatwise.link.wire import Wire, WireStream
from seatwise.remote import choose_wire
from seatwise.ugo import View
from seatwise.v1 import lobby_service_pb2, play_service_pb2
from seatwise.v1.play_service_pb2 import MoveRejected
from seatwise_referee.games.registry import GAMES

Sent = TypeVar("Sent")
Received = TypeVar("Received")

AT_ONCE = 3
"""Matches."""
THINKS_S = (0.01, 0.04)


class Slow(Bot):
    """Draws a card, and takes its time over it."""

    async def choose(self, view: View) -> Card:
        """Any legal card."""
        await asyncio.sleep(self.chance.uniform(*THINKS_S))
        return self.chance.choice(view.legal_cards)


class SlowBuilder(RandomBuilder):
    """Builds at random, and takes its time over each card."""

    async def build(self, view: ubongo.View) -> AsyncIterator[Any]:  # type: ignore[override]
        """As `Bot.build`."""
        for step in super().build(view):
            await asyncio.sleep(self.chance.uniform(*THINKS_S) / 4)
            yield step


BOTS = {"ugo": Slow, "ubongo": SlowBuilder}


class Noted(Generic[Sent, Received]):
    """A stream of which nothing is passed on before it is written down."""

    def __init__(
        self,
        stream: WireStream[Sent, Received],
        history: History,
        said: Callable[[Sent], Iterable[Line]],
        heard: Callable[[Received], Iterable[Line]],
    ) -> None:
        self._stream = stream
        self._history = history
        self._said = said
        self._heard = heard

    async def write(self, message: Sent) -> None:
        """As `Stream.write`."""
        self._history.note(self._said(message))
        await self._stream.write(message)

    async def read(self) -> Received | None:
        """As `Stream.read`."""
        message = await self._stream.read()
        if message is not None:
            self._history.note(self._heard(message))
        return message


class NotedWire:
    """A wire of the SDK, listened in."""

    def __init__(self, wire: Wire, history: History) -> None:
        self.address = wire.address
        self.address_in = wire.address_in
        self._wire = wire
        self._history = history

    @asynccontextmanager
    async def attend(self) -> AsyncIterator[Any]:
        """As `Wire.attend`."""
        async with self._wire.attend() as stream:
            yield Noted(stream, self._history, lambda _: (), lobby_lines)

    @asynccontextmanager
    async def play(self, address: str) -> AsyncIterator[Any]:
        """As `Wire.play`."""
        async with self._wire.play(address) as stream:
            yield Noted(stream, self._history, said_lines, heard_lines)


def lobby_lines(response: lobby_service_pb2.AttendResponse) -> Iterable[Line]:
    """What the lobby says of seats."""
    if response.HasField("offer"):
        offer = response.offer
        yield {"what": "offer", "match": offer.match, "seat": offer.seat, "epoch": offer.epoch}
    elif response.HasField("closed"):
        yield {"what": "closed", "match": response.closed.match, "seat": response.closed.seat}


def said_lines(request: play_service_pb2.PlayRequest) -> Iterable[Line]:
    """The moves in a message to a referee."""
    for item in request.items:
        if item.HasField("submit_move"):
            move = item.submit_move
            yield {
                "what": "said",
                "match": item.match,
                "seat": item.seat,
                "prompt": move.prompt,
                "request_id": move.request_id,
                "move": _move(move),
            }


def _move(asked: play_service_pb2.SubmitMove) -> Any:
    field = asked.WhichOneof("move")
    return GAMES[field].move_to_json(CODECS[field].decode_move(getattr(asked, field)))


def heard_lines(response: play_service_pb2.PlayResponse) -> Iterable[Line]:
    """What a referee says, but for its pings."""
    for item in response.items:
        body = _heard(item)
        if body:
            yield {"match": item.match, "seat": item.seat, "epoch": item.epoch, **body}


def _heard(item: play_service_pb2.PlayResponseItem) -> Line | None:
    match item.WhichOneof("event"):
        case "update":
            update = item.update
            field = update.WhichOneof("view")
            view = base64.b64encode(getattr(update, field).SerializeToString()).decode() if field else ""
            return {"what": "shown", "prompt": update.prompt, "to_act": update.to_act, "view": view}
        case "move_accepted":
            told = item.move_accepted
            return {"what": "accepted", "request_id": told.request_id, "charged_ms": told.charged_ms}
        case "move_rejected":
            reason = MoveRejected.Reason.Name(item.move_rejected.reason).removeprefix("REASON_")
            return {"what": "rejected", "request_id": item.move_rejected.request_id, "reason": reason}
        case "match_ended":
            return {"what": "ended", **ended(item.match_ended)}
    return None


def ended(end: play_service_pb2.MatchEnded) -> Line:
    """How a match ended."""
    return {"ranks": list(end.result.ranks), "seed": end.seed.hex(), "void": end.void_reason}


async def play(args: argparse.Namespace) -> None:
    """Attends until it is told to stop."""
    history = History(args.history)
    history.note([{"what": "born", "pid": os.getpid()}])
    plan = RunPlan(BOTS[args.game], args.game, tuple(args.queues), AT_ONCE, None, None)
    wire = choose_wire(args.address, os.environ["SEATWISE_TOKEN"], False, Security.resolve_options())
    session = BotSession(plan, NotedWire(wire, history))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, session.drain_matches)
    summary = await session.run_session()
    history.note([{"what": "left", "summary": str(summary)}])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("game", choices=BOTS)
    parser.add_argument("history", type=Path)
    parser.add_argument("queues", nargs="*")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    asyncio.run(play(parser.parse_args()))
