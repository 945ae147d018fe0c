"""A bot that goes on whatever happens to the server, and remembers all that it was told."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Sequence

import grpc

from harness.items import item, legal_move
from harness.table import Chair
from harness.wire import StreamEnded
from seatwise.games.ugo.v1 import ugo_pb2
from seatwise.kits.codecs import CODECS
from seatwise.v1 import play_service_pb2
from seatwise_referee.games.registry import GAMES

AGAIN_S = 0.02
"""How soon it tries to come back."""


class Survivor(Chair):
    """One seat. Comes back after each lost link, and sends again what was not answered, under its first id."""

    def __init__(self, chair: Chair) -> None:
        super().__init__(chair.wire, chair.match, chair.seat)
        self.moves: dict[int, tuple[str, ugo_pb2.Move]] = {}
        """What it answered to each prompt, and under which request id."""
        self.acknowledged: set[int] = set()
        """Prompts whose answer was accepted."""
        self.updates: list[play_service_pb2.Update] = []
        """All that it was shown."""
        self.ended: list[play_service_pb2.MatchEnded] = []
        """Every time it was told the end."""
        self.links = 0
        """How often it sat down."""
        self.hows: list[str] = []
        """How its links ended."""
        self.moved = asyncio.Event()
        """Set at each move that is accepted."""

    async def survive(self, within_s: float = 60.0) -> play_service_pb2.MatchEnded:
        """Plays to the end of the match, by as many links as it takes."""
        async with asyncio.timeout(within_s):
            while not self.ended:
                try:
                    await self._come_back()
                    await self._play()
                except StreamEnded as ended:
                    self.hows.append(ended.how.reason or ended.how.code)
                except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    self.hows.append("BROKEN")
                await asyncio.sleep(AGAIN_S)
        return self.ended[0]

    async def after(self, moves: int, within_s: float = 30.0) -> None:
        """Returns when so many moves of this seat have been accepted."""
        async with asyncio.timeout(within_s):
            while len(self.acknowledged) < moves:
                self.moved.clear()
                await self.moved.wait()

    async def _come_back(self) -> None:
        if self.stream:
            await self.stream.close()
        self.links += 1
        await self.sit()
        for prompt in sorted(self.moves.keys() - self.acknowledged)[-1:]:
            await self._send(prompt)  # those before it stand, or it would not have been asked for

    async def _play(self) -> None:
        while not self.ended:
            self.take(await self.receive(within_s=60.0))
            if self.last and self.last.to_act and self.last.prompt not in self.moves:
                self.moves[self.last.prompt] = (f"{self.seat}/{self.last.prompt}", self._choice(self.last))
                await self._send(self.last.prompt)

    def take(self, found: play_service_pb2.PlayResponseItem) -> None:
        """Notes one item."""
        match found.WhichOneof("event"):
            case "update":
                self.updates.append(found.update)
            case "move_accepted":
                self.acknowledged.add(int(found.move_accepted.request_id.partition("/")[2]))
                self.moved.set()
            case "match_ended":
                self.ended.append(found.match_ended)

    def _choice(self, update: play_service_pb2.Update) -> ugo_pb2.Move:
        return legal_move(update, self.chance)

    async def _send(self, prompt: int) -> None:
        request_id, move = self.moves[prompt]
        self._asked_for[request_id] = prompt
        submit = play_service_pb2.SubmitMove(request_id=request_id, prompt=prompt, ugo=move)
        assert self.stream is not None
        await self.stream.send(item(self.match, self.seat, submit_move=submit))


def check_nothing_lost(line: bytes, survivors: Sequence[Survivor]) -> None:
    """Every acknowledged move is in the record once, as it was sent; nobody was late, and nothing was rejected."""
    entries = json.loads(line)["entries"]
    played = [each for each in entries if each["kind"] == "move"]
    assert max(Counter(each["prompt"] for each in played).values()) == 1
    by_prompt = {each["prompt"]: each for each in played}
    for survivor in survivors:
        for prompt in survivor.acknowledged:
            _, move = survivor.moves[prompt]
            assert by_prompt[prompt]["seat"] == survivor.seat
            assert by_prompt[prompt]["move"] == as_json(move)
        assert not survivor.rejections
    assert {each["kind"] for each in entries} <= {"sat", "dealt", "move", "taken_over", "frozen", "finished"}


def as_json(move: ugo_pb2.Move) -> object:
    """A move as records have it."""
    return GAMES["ugo"].move_to_json(CODECS["ugo"].decode_move(move))


async def survive_all(survivors: Sequence[Survivor]) -> list[play_service_pb2.MatchEnded]:
    """All play to the end."""
    tasks = [asyncio.create_task(survivor.survive()) for survivor in survivors]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
