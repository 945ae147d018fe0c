"""One clock and one queue for all that happens in a world; each process has an event loop of its own on it.

A loop that is killed never runs again: what its tasks would have done next, their `finally` included, does
not happen. A loop that is stopped keeps what is due for it until it goes on. So a process can be killed, or
stand still, between any two steps of its tasks, which is at every await.
"""

from __future__ import annotations

import asyncio
import heapq
import traceback
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, TypeAlias

EPOCH_S = 1000.0
"""What the clock shows at first: not 0, for the clock of a real machine hardly ever does."""

Act: TypeAlias = Callable[[], object]


class OutOfTime(Exception):
    """What was waited for has not happened."""


class Clock:
    """Moves from one event to the next; the same program makes the same moves."""

    def __init__(self) -> None:
        self.now = EPOCH_S
        self.steps = 0
        """Callbacks that have run, of all processes."""
        self.ready: deque[asyncio.Handle] = deque()
        self.faults: list[str] = []
        """What no process foresaw: exceptions that nobody took."""
        self._due: list[tuple[float, int, Act]] = []
        self._number = 0

    def at(self, when: float, act: Act) -> None:
        """Of two events at one time the first that was asked for comes first."""
        self._number += 1
        heapq.heappush(self._due, (when, self._number, act))

    def after(self, seconds: float, act: Act) -> None:
        """See `at`."""
        self.at(self.now + seconds, act)

    def run(self, is_done: Callable[[], bool], limit_s: float) -> None:
        """Until it is done; `OutOfTime` when that takes longer."""
        until = self.now + limit_s
        self._run_ready()
        while not is_done():
            if not self._due or self._due[0][0] > until:
                self.now = until
                raise OutOfTime(f"not done after {limit_s:g} s")
            when, _, act = heapq.heappop(self._due)
            self.now = max(self.now, when)
            act()
            self._run_ready()

    def stop(self) -> None:
        """Nothing of what was to happen happens."""
        self._due.clear()
        self.ready.clear()

    def _run_ready(self) -> None:
        ready = self.ready
        try:
            while ready:
                handle = ready.popleft()
                loop: Loop = handle._loop  # type: ignore[attr-defined]
                if loop.is_dead or handle._cancelled:  # type: ignore[attr-defined]
                    continue
                if loop.stopped is not None:
                    loop.stopped.append(handle)
                    continue
                self.steps += 1
                events._set_running_loop(loop)
                handle._run()  # type: ignore[attr-defined]
                loop.stepped()
        finally:
            events._set_running_loop(None)


class Task(asyncio.Task[Any]):
    """Numbered, so that a set of tasks has the same order in every run."""

    _last: ClassVar[int] = 0
    find_origin: ClassVar[Callable[[], Any] | None] = None
    """Called for each new task, in what starts it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        Task._last += 1
        self.number = Task._last
        self.origin = Task.find_origin() if Task.find_origin else None
        super().__init__(*args, **kwargs)

    def __hash__(self) -> int:
        return self.number

    @classmethod
    def count_anew(cls) -> None:
        """Another world begins."""
        cls._last = 0


class Loop(asyncio.BaseEventLoop):
    """The event loop of one process."""

    def __init__(self, clock: Clock, name: str) -> None:
        super().__init__()
        self.name = name
        self.clock = clock
        self.is_dead = False
        self.stopped: list[asyncio.Handle] | None = None
        """While it stands still: what is due."""
        self._steps_left: int | None = None
        self._strike: Act = _nothing
        self.on_killed: Act = _nothing
        self.connect: Callable[..., Coroutine[Any, Any, tuple[Any, Any]]] | None = None
        """Its way to the network."""
        self.listen: Callable[[Callable[[], Any]], Any] | None = None
        """Opens its port."""
        self.left: list[Any] = []
        """The tasks of the dead: nobody else holds them, and they must not be tidied up."""
        self.set_task_factory(self._new_task)
        self.set_exception_handler(self._take_fault)

    # What asyncio calls

    def time(self) -> float:
        """Seconds on the one clock."""
        return self.clock.now

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:
        """As asyncio's."""
        handle = events.Handle(callback, args, self, context)
        if not self.is_dead:
            self.clock.ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def run_in_executor(self, _executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """At once, without a thread: a thread would answer when it likes, and a fork would take its locks along, held for ever."""
        answer = self.create_future()
        try:
            answer.set_result(func(*args))
        except Exception as error:
            answer.set_exception(error)
        return answer

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:
        """As asyncio's."""
        return self.call_at(self.clock.now + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:
        """As asyncio's."""
        timer = events.TimerHandle(when, callback, args, self, context)
        self.clock.at(when, lambda: None if timer._cancelled else self.clock.ready.append(timer))  # type: ignore[attr-defined]
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is passed over when its time has come."""

    def is_running(self) -> bool:
        """As asyncio's."""
        return events._get_running_loop() is self

    async def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        """As asyncio's, over the network of this world."""
        assert self.connect is not None
        return await self.connect(*args, **kwargs)

    async def create_server(self, new_protocol: Any, *_: Any, **__: Any) -> Any:
        """As asyncio's, at the one port that a process has in this world."""
        assert self.listen is not None
        return self.listen(new_protocol)

    def _new_task(self, loop: asyncio.AbstractEventLoop, coro: Any, **kwargs: Any) -> Task:
        return Task(coro, loop=loop, **kwargs)

    def _take_fault(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not self.is_dead:
            error = context.get("exception")
            told = "".join(traceback.format_exception(error)) if error else ""
            self.clock.faults.append(f"{self.name}: {context['message']}\n{told}")

    # What happens to the process

    def kill(self) -> None:
        """It does nothing any more."""
        if not self.is_dead:
            self.is_dead = True
            self.left = [*asyncio.all_tasks(self), self.stopped]
            self.on_killed()

    def stop_for(self, seconds: float) -> None:
        """It stands still; all that comes meanwhile is there when it goes on."""
        if self.stopped is None and not self.is_dead:
            self.stopped = []
            self.clock.after(seconds, self._go_on)

    def _go_on(self) -> None:
        due, self.stopped = self.stopped or [], None
        self.clock.ready.extend(due)

    def after_steps(self, steps: int, act: Act) -> None:
        """Something happens to the process after so many steps more; it replaces what was to happen before."""
        self._steps_left, self._strike = steps, act

    def stepped(self) -> None:
        """One callback has run."""
        if self._steps_left is not None:
            self._steps_left -= 1
            if self._steps_left < 0:
                self._steps_left = None
                self._strike()


def _nothing() -> None:
    """Nobody wants to know."""
