"""Plays races between liars and their honest twins, far from the server, and prints one line of JSON for each pair.

It is a program because it changes the namespace of its process: `unshare -rn python tests/distances/play_world.py ROUNDS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import grpc

sys.path.insert(0, str(FilePath(__file__).parents[1]))

from harness.distant_network import Path, address_of, enter_bots_side, open_server_side, start_router
from harness.house import House
from harness.items import item
from harness.process import ServerProcess
from harness.table import Admin, Chair
from harness.ubongo import CALL, build
from harness.wire import Stream, Wire

from seatwise.games.ubongo.v1 import ubongo_pb2
from seatwise.v1 import play_service_pb2
from seatwise_referee.games.ubongo import GOAL

THINK_S = 0.15
LATE_S = 0.095
VERY_LATE_S = 0.3
ROUNDS_A_MATCH = 6
DECISIVE_EVERY = 5
SITS_LATE_S = 1.0
BURST = 20
SMALL_BYTES = 1000
"""No packet of a bot is larger, except the answers of a bot that has large ones."""
LAYS_OF_LARGE = 16
SMALL_WINDOW = (
    ("grpc.http2.lookahead_bytes", 64),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.use_local_subchannel_pool", 1),
)


class LateStream(Stream):
    """Answers its pings late."""

    def __init__(
        self, *args: Any, late_s: float, burst: bool = False, reads_late: bool = False, **more: Any
    ) -> None:
        self._late_s, self._is_burst, self._reads_late = late_s, burst, reads_late
        self._held: list[int] = []
        self._tasks: set[asyncio.Task[None]] = set()
        super().__init__(*args, **more)

    async def _take(self, found: play_service_pb2.PlayResponseItem) -> None:
        if not found.HasField("ping"):
            await super()._take(found)
            if self._reads_late and found.update.to_act:  # while it thinks its window is shut
                await asyncio.sleep(self._late_s)
            return
        task = asyncio.create_task(self._pong_late(found.ping.number))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pong_late(self, number: int) -> None:
        await asyncio.sleep(self._late_s)
        self._held.append(number)
        if self._is_burst and len(self._held) < 3:
            return
        held, self._held = self._held, []
        with contextlib.suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError):
            await self.send(*(item("", 0, pong=play_service_pb2.Pong(number=each)) for each in held))


@dataclass(frozen=True, slots=True)
class Liar:
    """One kind of bot."""

    name: str
    late_s: float = 0.0
    """How late its pongs are."""
    has_bursts: bool = False
    has_small_window: bool = False
    sits_late: bool = False
    has_large_answers: bool = False
    """So that its machine can tell them from all other packets."""
    delays_answers: bool = False
    """All but the decisive ones."""
    network: Callable[[Path], Path] = lambda path: path
    """What its machine does to its packets."""

    def open_stream(self, wire: Wire) -> Stream:
        """Opens a play stream."""
        if not self.late_s:
            return wire.play()
        if self.has_small_window:
            wire.channel = grpc.aio.insecure_channel(wire.address, options=SMALL_WINDOW)
        late = LateStream(
            wire.channel, wire.token, reads=True, pongs=True, late_s=self.late_s, burst=self.has_bursts,
            reads_late=self.has_small_window,
        )  # fmt: skip
        wire._open.append(late)
        return late


HONEST = Liar("honest")
LIARS = (
    HONEST,
    Liar("late pongs", LATE_S),
    Liar("late acknowledgements", LATE_S, network=lambda path: Path(path.one_way_s, late_s=LATE_S)),
    Liar("bursts", LATE_S, has_bursts=True),
    Liar("shut window", LATE_S, has_small_window=True),
    Liar("sits late", LATE_S, sits_late=True),
    Liar("all but the decisive answer", LATE_S, delays_answers=True),
    Liar(
        "all packets but answers",
        LATE_S,
        has_large_answers=True,
        network=lambda path: Path(path.one_way_s, late_s=LATE_S, small_bytes=SMALL_BYTES),
    ),
    Liar(
        "all packets but answers, very late",
        VERY_LATE_S,
        has_large_answers=True,
        network=lambda path: Path(path.one_way_s, late_s=VERY_LATE_S, small_bytes=SMALL_BYTES),
    ),
)
TWINS_S = 0.02
HONEST_PATHS = (
    *(Path(one_way_ms / 1000) for one_way_ms in (0, 20, 40, 80)),
    Path(0.02, jitter_s=0.01),
    Path(0.04, jitter_s=0.02),
)


@dataclass(slots=True)
class Player:
    """A bot of a pair, and what it knows of its own thinking."""

    kind: Liar
    wire: Wire
    thought_ms: dict[tuple[str, int], float] = field(default_factory=dict)
    decisive: set[tuple[str, int]] = field(default_factory=set)
    stream: Stream | None = None
    rounds: int = 0

    async def play(self, chair: Chair) -> None:
        """Plays one match: thinks, lays any seven cards, and calls."""
        if self.kind.sits_late:
            await asyncio.sleep(SITS_LATE_S)
            self.stream = None
        self.stream = self.stream or self.kind.open_stream(self.wire)
        await chair.sit(self.stream)
        asked: set[int] = set()
        while not (found := await chair.receive(30)).HasField("match_ended"):
            update = found.update if found.HasField("update") else None
            if update and update.to_act and update.prompt not in asked:
                asked.add(update.prompt)
                await self._answer(chair, update)

    async def _answer(self, chair: Chair, update: play_service_pb2.Update) -> None:
        loop, key = asyncio.get_running_loop(), (chair.match, update.prompt)
        began = loop.time()
        self.rounds += 1
        apart = ubongo_pb2.Layout(
            cards=update.ubongo.hand[:GOAL],
            xs=[4 * each - 12 for each in range(GOAL)],
            ys=[0] * GOAL,
            turns=[0] * GOAL,
        )
        if self.kind.has_bursts:
            await build(chair, *[ubongo_pb2.Move(lay=apart)] * BURST)
        await asyncio.sleep(THINK_S)
        self.thought_ms[key] = (loop.time() - began) * 1000
        if self.rounds % DECISIVE_EVERY == 0:
            self.decisive.add(key)
        elif self.kind.delays_answers:
            await asyncio.sleep(self.kind.late_s)
        lays = LAYS_OF_LARGE if self.kind.has_large_answers else 1
        await build(chair, *[ubongo_pb2.Move(lay=apart)] * lays, CALL)


async def play_pair(house: House, players: list[Player], rounds: int) -> dict[str, list[list[float]]]:
    """Returns for each of the two, by round, what it was charged beyond its thinking, in ms."""
    beyond: dict[str, list[list[float]]] = {"all": [], "decisive": [], "allowance": []}
    while len(beyond["all"]) < rounds:
        match = await house.seat(
            [player.wire for player in players], game="ubongo", rounds=ROUNDS_A_MATCH, free_ms={"build": 5000}
        )
        chairs = [next(each for each in match.chairs if each.wire is player.wire) for player in players]
        await asyncio.gather(*(player.play(chair) for player, chair in zip(players, chairs, strict=True)))
        calls: dict[int, dict[int, dict[str, int]]] = {}
        for entry in json.loads(await house.admin.record(match.name))["entries"]:
            if entry["kind"] == "called":
                calls.setdefault(entry["prompt"], {}).update({each["seat"]: each for each in entry["calls"]})
        for prompt, by_seat in calls.items():
            if len(by_seat) < len(chairs):
                continue
            key = (match.name, prompt)
            both = [by_seat[chair.seat] for chair in chairs]
            extra = [
                call["charged_ms"] - player.thought_ms[key]
                for call, player in zip(both, players, strict=True)
            ]
            beyond["all"].append(extra)
            beyond["allowance"].append([call["allowance_ms"] for call in both])
            if key in players[0].decisive:
                beyond["decisive"].append(extra)
    return beyond


async def play_world(rounds: int, folder: FilePath) -> None:
    """Plays all pairs at the same time."""
    paths: dict[int, Path] = {1: Path()}
    pairs: list[tuple[str, list[tuple[Liar, int]]]] = []
    for liar in LIARS:
        numbers = [len(paths) + 1, len(paths) + 2]
        paths |= {numbers[0]: liar.network(Path(TWINS_S)), numbers[1]: Path(TWINS_S)}
        pairs.append((liar.name, [(liar, numbers[0]), (HONEST, numbers[1])]))
    for path in HONEST_PATHS:
        number = len(paths) + 1
        paths[number] = path
        pairs.append(
            (
                f"honest at {path.one_way_s * 1000:.0f} ms, jitter {path.jitter_s * 1000:.0f} ms",
                [(HONEST, number), (HONEST, 1)],
            )
        )
    device = open_server_side(len(paths))
    server = ServerProcess(folder)
    server.address = "0.0.0.0:0"
    await server.start()
    router = start_router(device, enter_bots_side(), paths)
    try:
        port = server.address.rpartition(":")[2]
        admin = Admin(f"{address_of(1)}:{port}", server.token)
        house = House(admin.address, admin)

        async def run_pair(name: str, kinds: list[tuple[Liar, int]]) -> None:
            players = []
            for kind, number in kinds:
                bot = await admin.register()
                players.append(Player(kind, Wire(f"{address_of(number)}:{port}", bot.token, bot.bot)))
                await bot.drop()
            print(json.dumps({"pair": name, **await play_pair(house, players, rounds)}), flush=True)
            for player in players:
                await player.wire.drop()

        await asyncio.gather(*(run_pair(*pair) for pair in pairs))
        await admin.drop()
    finally:
        await server.stop()
        assert router.stdin is not None
        router.stdin.close()
        router.wait()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="sw-") as _folder:
        asyncio.run(play_world(int(sys.argv[1]), FilePath(_folder)))
