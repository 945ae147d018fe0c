"""Harms a server from within, at a step that it takes with Redis or a bot, when it is ordered to.

The order is a few bytes in a file that all servers of a run have mapped: which harm comes next. The first server that meets a
step at which this harm was not done before claims the order, says where it is, and does the harm to itself or to Redis. Steps
have the names that failpoints have in virtual time (`simulation.paths`), but that here a command says of itself whether it is
about a ladder or a league.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import time
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from simulation.paths import MESSAGE, READS, Failpoint, name_of, path_here

from seatwise_server.lobby.attendance import AttendanceStream
from seatwise_server.play.play_stream import PlayStream
from seatwise_server.store.group_commit.node_writer import NodeWriter
from seatwise_server.store.redis.client import SingleClient
from seatwise_server.store.redis.shared_messages import SharedMessages


class StepHarm(NamedTuple):
    """What is done at a step."""

    name: str
    is_after: bool
    """Whether Redis has carried the command out, or the message is on its way."""
    at_messages: bool
    signal: signal.Signals
    is_at_redis: bool


STEP_HARMS: Final = (
    StepHarm("killed before", False, False, signal.SIGKILL, is_at_redis=False),
    StepHarm("killed after", True, True, signal.SIGKILL, is_at_redis=False),
    StepHarm("asleep after", True, True, signal.SIGSTOP, is_at_redis=False),
    StepHarm("Redis lost before", False, False, signal.SIGKILL, is_at_redis=True),
    StepHarm("Redis lost after", True, False, signal.SIGKILL, is_at_redis=True),
)
"""The harms of failpoints, by the number that an order has; 0 is no order."""

REST_S: Final = 15.0
"""A process that has slept is not put to sleep again for so long. A lobby that sleeps twice in a row is away for longer than the 30 s
for which a referee waits for bots that nobody tells of their seats."""
COMPETITIONS: Final = ("ladders", "leagues")

_ORDER = struct.Struct("<II")
ORDERS = "orders"


class Orders:
    """The orders of a run, in a folder that all its processes know."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = folder / ORDERS
        if not path.exists():
            path.write_bytes(bytes(_ORDER.size))
        with path.open("r+b") as file:
            self._bytes = mmap.mmap(file.fileno(), _ORDER.size)

    def give(self, harm: StepHarm, number: int) -> None:
        """Has that harm done at the next step at which it was not done before; each order has a new number."""
        _ORDER.pack_into(self._bytes, 0, STEP_HARMS.index(harm) + 1, number)

    def withdraw(self) -> None:
        """There is no order any more."""
        _ORDER.pack_into(self._bytes, 0, 0, 0)

    @property
    def is_given(self) -> bool:
        """Whether there is an order."""
        return self._bytes[0] != 0

    @property
    def next(self) -> tuple[StepHarm, int] | None:
        """The harm and the number of the order."""
        harm, number = _ORDER.unpack_from(self._bytes)
        return (STEP_HARMS[harm - 1], number) if harm else None

    def claim(self, harm: StepHarm, number: int, step: Failpoint) -> bool:
        """Takes the order for this step; returns False if this harm was done here before, or another process was quicker."""
        name = f"{STEP_HARMS.index(harm)}-{sha256(str(step).encode()).hexdigest()}"
        if not self._create(name, str(step)):
            return False
        if self._create(f"claim-{number}", ""):
            self.withdraw()
            return True
        (self.folder / name).unlink()
        return False

    def tell(self, number: int, step: Failpoint) -> None:
        """Says who does the harm of this order, and where; whole or not at all."""
        new = self.folder / f"new-{number}"
        new.write_text(f"{os.getpid()}\n{step}")
        new.rename(self.folder / f"done-{number}")

    def told(self, number: int) -> tuple[int, str] | None:
        """The process and the step of this order, if it was carried out."""
        path = self.folder / f"done-{number}"
        if not path.exists():
            return None
        pid, _, step = path.read_text().partition("\n")
        return int(pid), step

    def _create(self, name: str, text: str) -> bool:
        try:
            with (self.folder / name).open("x") as file:
                file.write(text)
        except FileExistsError:
            return False
        return True


class Striker:
    """Carries out the orders in one server."""

    def __init__(self, orders: Orders, role: str, redis_pid: Path) -> None:
        self._orders = orders
        self._role = role
        self._redis_pid = redis_pid
        self._rests_until_s = 0.0

    def meet(self, path: tuple[str, ...], step: str, *, is_after: bool) -> None:
        """The server is just before this step, or has just taken it."""
        order = self._orders.next
        if order is None or not path or step.partition(" ")[0] in READS:
            return
        harm, number = order
        is_met = harm.is_after == is_after and (step != MESSAGE or harm.at_messages)
        if not is_met or time.monotonic() < self._rests_until_s:
            return
        point = Failpoint(self._role, (*path, step))
        if self._orders.claim(harm, number, point):
            self._orders.tell(number, point)
            os.kill(self._victim(harm), harm.signal)
            self._rests_until_s = time.monotonic() + REST_S if harm.signal is signal.SIGSTOP else 0.0

    def _victim(self, harm: StepHarm) -> int:
        return int(self._redis_pid.read_text().split()[0]) if harm.is_at_redis else os.getpid()

    async def around(self, steps: Sequence[str], do: Callable[[], Awaitable[Any]]) -> Any:
        """Does it, and meets these steps before and after."""
        path = path_here() if self._orders.is_given else ()
        for step in steps if path else ():
            self.meet(path, step, is_after=False)
        answer = await do()
        path = path or (path_here() if self._orders.is_given else ())
        for step in steps if path else ():
            self.meet(path, step, is_after=True)
        return answer

    def meet_messages(self, write: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        """Meets a step after each message that it writes."""

        async def noted(message: Any) -> Any:
            written = await write(message)
            if self._orders.is_given:
                self.meet(path_here(), MESSAGE, is_after=True)
            return written

        return noted


def _step_of(words: Sequence[Any]) -> str:
    """Its name, and whether it changes the log or the books of a ladder or of a league: those are different steps."""
    named = [word if isinstance(word, bytes) else str(word).encode() for word in words[:6]]
    competition = next(
        (kind for kind in COMPETITIONS if any(f":{kind}/".encode() in word for word in named)), ""
    )
    return name_of(named) + (f" ({competition})" if competition else "")


def install(folder: str, role: str, redis_folder: str) -> None:
    """Has this process carry out the orders in that folder; for a server, before it starts."""
    striker = Striker(Orders(Path(folder)), role, Path(redis_folder) / "redis.pid")
    send_commands, call_blocking = SharedMessages.send_commands, SingleClient.call_blocking
    try_batch = NodeWriter._try_batch
    write_to_lobby, write_to_player = AttendanceStream.write_all, PlayStream.write_all

    async def send(self: SharedMessages, commands: Sequence[Any]) -> Any:
        steps = [_step_of(words) for words, _ in commands]
        return await striker.around(steps, lambda: send_commands(self, commands))

    async def block(self: SingleClient, *command: Any, **options: Any) -> Any:
        return await striker.around([_step_of(command)], lambda: call_blocking(self, *command, **options))

    async def append(self: NodeWriter, batch: Any) -> Any:
        steps = ["append"] if batch else []
        return await striker.around(steps, lambda: try_batch(self, batch))

    async def offer(self: AttendanceStream, write: Any) -> Any:
        return await write_to_lobby(self, striker.meet_messages(write))

    async def play(self: PlayStream, write: Any) -> Any:
        return await write_to_player(self, striker.meet_messages(write))

    SharedMessages.send_commands = send  # type: ignore[method-assign]
    SingleClient.call_blocking = block  # type: ignore[method-assign]
    NodeWriter._try_batch = append  # type: ignore[method-assign]
    AttendanceStream.write_all = offer  # type: ignore[method-assign]
    PlayStream.write_all = play  # type: ignore[method-assign]
