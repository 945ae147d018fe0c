"""The time of one match at its table, and the times that are taken off its charges: stalls of our event loop, delays of gRPC, outages."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from math import ceil, inf
from operator import attrgetter
from typing import Final, NamedTuple

from seatwise_referee.decision import Effect
from seatwise_referee.match import Match

TIMER_MARGIN_MS: Final = 0.1
"""Timers are set this much later, in ms: floats and the loop round, and a timer that is too early would fire again at once."""

LAG_BEAT_S = 0.02
STALL_BOUND_S: Final = 0.05
"""Shorter delays are the usual jitter of a busy loop, and are covered by the grace."""
KEPT_STALLS = 1000
"""The number of stalls whose times are kept."""
SECOND_S: Final = 1.0
LINK_BREAKING_S = 2.0
"""A stall of this length breaks links: pings were not answered in time, or bots dropped their connections."""
LINK_LOSS_NOTICED_S = 2.0
"""The time after such a stall, in seconds, during which lost links are attributed to it."""

ECHO_BEAT_S = 0.05
"""The time between two echoes. Bots were delayed by so much at most without any echo that was."""
LONGEST_BEHIND_S = 5.0
"""A longer delay breaks connections. So a fault of the measurement gives no bot more than this for a question."""
KEPT_S = 120.0
"""How long delays are remembered: a bot may take so long for its answer."""


class MatchClock:
    """The clock of one match, and the standstills that are taken off its charges. `at` is a time on the clock of the loop, in seconds."""

    __slots__ = (
        "_asked", "_asked_at", "_lag", "_loop", "_on_timer", "_read_clock", "_stalled_s", "_taken_off_ms", "_timer",
        "_transport", "opened_s",
    )  # fmt: skip

    def __init__(
        self, at_ms: int, on_timer: Callable[[], None], lag: EventLoopLag, transport: TransportLag | None
    ) -> None:
        """The match is `at_ms` old now; `on_timer` is called when the timer is due."""
        self._loop = asyncio.get_running_loop()
        is_plain = type(self._loop).time is asyncio.BaseEventLoop.time
        self._read_clock = time.monotonic if is_plain else self._loop.time  # the same, by a shorter way
        self._on_timer = on_timer
        self._timer: asyncio.TimerHandle | None = None
        self.opened_s = self._loop.time() - at_ms / 1000
        """When the match was opened."""
        self._lag = lag
        self._transport = transport
        self._stalled_s = lag.note_stall(self.now)
        """The stalls of this process, in seconds, up to the last that the match was told of."""
        self._asked, self._asked_at, self._taken_off_ms = 0, self.opened_s, 0
        """The prompt that was sent last, when it was sent first, and the delay of gRPC that was taken off its charges."""

    @property
    def now(self) -> float:
        """The present time on the clock of the loop."""
        return self._read_clock()

    @property
    def now_ms(self) -> int:
        """The present time of the match."""
        return self.ms_at(self._read_clock())

    def ms_at(self, at: float) -> int:
        """Return the time of the match at `at`."""
        return max(0, int((at - self.opened_s) * 1000))

    def set_timer(self, at_ms: int | None) -> None:
        """Set the timer. Deadlines mostly move back, so a timer that is early enough stays."""
        if at_ms is None:
            return
        when = self.opened_s + (at_ms + TIMER_MARGIN_MS) / 1000
        if self._timer is None or self._timer.when() > when:
            self.stop_timer()
            self._timer = self._loop.call_at(when, self.let_time_pass)

    def stop_timer(self) -> None:
        """Stop the timer, if it is set."""
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def close_clock(self) -> None:
        """Stop the timer, and forget the table. They hold each other, and so both are freed without the garbage collector."""
        self.stop_timer()
        self._on_timer = lambda: None

    def let_time_pass(self) -> None:
        """Reports that time has passed, as the timer does."""
        self._timer = None
        self._on_timer()

    # Standstills: each is journaled once

    def note_sent(self, prompt: int, now: float) -> None:
        """Notes that the prompt was sent; only the first time counts."""
        if prompt > self._asked:
            self._asked, self._asked_at, self._taken_off_ms = prompt, now, 0

    def broke_links(self) -> bool:
        """Whether a link that breaks now may be broken by a stall of ours, or by gRPC that was behind."""
        transport = self._transport
        return self._lag.broke_links() or (transport is not None and transport.broke_links(self.now))

    @property
    def is_short(self) -> bool:
        """Whether a link that breaks now cannot be made again, because the process has no free connection."""
        return self._lag.is_short

    def find_standstills(self, match: Match, now: float) -> list[Effect]:
        """Return the entries of all that is not journaled yet. They come before the next command."""
        return self._stall_effects(match, now) + self._transport_effects(match, now)

    def outage_ms(self, gap_s: float) -> int:
        """Return how much of an outage of the store that ends now, of `gap_s`, is to be taken off, in ms."""
        return int((gap_s - self._count_stalls_as_gap(gap_s)) * 1000)

    def _count_stalls_as_gap(self, gap_s: float) -> float:
        """Leave the stalls in an outage that ends now to the outage, so that no time is taken off twice.

        Return how much of them is in the journal already, in seconds.
        """
        now = self.now
        pending_s = self._lag.note_stall(now) - self._stalled_s
        within_s = self._lag.stalled_since(now - gap_s)
        self._stalled_s += min(pending_s, within_s)
        return max(0.0, within_s - pending_s)

    def _stall_effects(self, match: Match, now: float) -> list[Effect]:
        """Take stalls since the last command off the charges of all bots, whenever they were."""
        stalled_s, self._stalled_s = self._lag.note_stall(now) - self._stalled_s, self._lag.stalled_s
        match.note_lag(self._lag.recent_ms(now))
        if not stalled_s:
            return []
        return _note_standstill(match, int(stalled_s * 1000), self.ms_at(self._lag.stalled_until))

    def _transport_effects(self, match: Match, now: float) -> list[Effect]:
        """Take off what gRPC was behind when the open prompt was sent, and is now. Each prompt has this once."""
        transport = self._transport
        if transport is None or not transport.is_known(now):
            return []
        prompt = match.position.prompt
        if prompt is None or prompt.number != self._asked:
            return []
        behind_ms = int(transport.exchange_delay_s(self._asked_at, now) * 1000)
        more_ms = behind_ms - self._taken_off_ms
        if more_ms <= 0:
            return []
        self._taken_off_ms = behind_ms
        return _note_standstill(match, more_ms, self.ms_at(now))


def _note_standstill(match: Match, ms: int, now: int) -> list[Effect]:
    """Tell the match of a stall; if it began before the match was opened, only of the rest."""
    return match.note_standstill(min(ms, now), "STALL", now)


class EventLoopLag:
    """Adds up the stalls of one event loop, which are charged to no bot, and measures its usual lag.

    A timer that fires late proves nothing about a bot, whose move may be unread. So a beat runs through the event
    loop. If it is late by more than the bound, the delay is a stall.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._expected = loop.time() + LAG_BEAT_S
        self._timer: asyncio.TimerHandle | None = None
        self.stalled_s = 0.0
        """The sum of all stalls so far, in seconds. A user remembers the last value and takes the difference."""
        self.stalled_until = 0.0
        """The end of the last stall, on the clock of the loop."""
        self.broke_at = -inf
        """The end of the last stall that breaks links."""
        self.short_at = -inf
        """When bots could not connect last, for want of connections."""
        self._stalls: deque[tuple[float, float]] = deque(maxlen=KEPT_STALLS)
        """The beginning and the end of each of the last stalls."""
        self._delays: deque[tuple[float, float]] = deque()
        """The time and the length of each delay, in seconds; none is longer than the one before it."""

    def start_beat(self) -> None:
        """Start the beat; it runs until `stop_beat`."""
        self._expected = self._loop.time() + LAG_BEAT_S
        self._timer = self._loop.call_at(self._expected, self._on_beat)

    def stop_beat(self) -> None:
        """Stop the beat."""
        if self._timer:
            self._timer.cancel()

    def note_stall(self, now: float) -> float:
        """Return the sum of all stalls so far in seconds, including one that no beat has seen yet."""
        late = now - self._expected
        if late > STALL_BOUND_S:
            self.stalled_s += late
            self._stalls.append((self._expected, now))
            self.stalled_until = now
            self.broke_at = now if late >= LINK_BREAKING_S else self.broke_at
            self._note_delay(now, late)
            self._expected = now + LAG_BEAT_S
        return self.stalled_s

    def stalled_since(self, at: float) -> float:
        """Return for how long the process stood still after `at`, in seconds, as far as `note_stall` has seen it."""
        return sum(max(0.0, ended - max(began, at)) for began, ended in self._stalls)

    def broke_links(self) -> bool:
        """Whether links that are lost now were lost because this process stalled."""
        now = self._loop.time()
        self.note_stall(now)
        return now - self.broke_at < LINK_LOSS_NOTICED_S

    def note_shortage(self) -> None:
        """Notes that no bot can connect now."""
        self.short_at = self._loop.time()

    @property
    def is_short(self) -> bool:
        """Whether no bot can connect now."""
        return self._loop.time() - self.short_at < LINK_LOSS_NOTICED_S

    @property
    def longest_s(self) -> float:
        """The longest delay of about the last second, in seconds; only for display."""
        return max((delay for _, delay in list(self._delays)), default=0.0)

    def recent_ms(self, now: float) -> int:
        """Return the longest delay of the last second in ms, including one that no beat has seen yet.

        Of a stall only the part within the bound counts: the rest is not charged anyway.
        """
        while self._delays and self._delays[0][0] < now - SECOND_S:
            self._delays.popleft()
        longest_s = max(now - self._expected, self._delays[0][1] if self._delays else 0.0)
        return ceil(min(longest_s, STALL_BOUND_S) * 1000)

    def _note_delay(self, now: float, late: float) -> None:
        while self._delays and self._delays[-1][1] <= late:
            self._delays.pop()
        self._delays.append((now, late))

    def _on_beat(self) -> None:
        now = self._loop.time()
        self.note_stall(now)
        self._note_delay(now, max(0.0, now - self._expected))
        self._expected = now + LAG_BEAT_S
        self._timer = self._loop.call_at(self._expected, self._on_beat)


class EchoDelay(NamedTuple):
    """An echo that was late; its times are of the event loop, in seconds."""

    sent: float
    returned: float
    delay_s: float
    """Its round trip, without what the event loop did meanwhile, and without its stalls, which count by themselves."""


class TransportLag:
    """Measures how far the threads of gRPC are behind: bots are not charged for that time. Remembers only the echoes that were late.

    A loaded machine, or a flood of connections, keeps gRPC's threads from messages that have come. The event loop is in time all
    the same, so its lag says nothing of it. So a message goes through gRPC again and again (`rpc/grpc_echo.py`), out and in. That
    takes at least as long as the delay of a bot's message that was under way at the same time.
    """

    def __init__(self, loop_lag: EventLoopLag, cpu_time: Callable[[], float] = time.thread_time) -> None:
        """`cpu_time` returns the CPU time of the event loop's thread in seconds."""
        self._loop_lag = loop_lag
        self._cpu_time = cpu_time
        self._worked_s = 0.0
        self._sent: float | None = None
        self._stalled_s = 0.0
        self._late: list[EchoDelay] = []
        """In the order of their times."""

    def note_sent(self, now: float) -> None:
        """Notes that an echo was sent. At most one is under way."""
        self._sent, self._stalled_s, self._worked_s = now, self._loop_lag.note_stall(now), self._cpu_time()

    def note_returned(self, now: float) -> None:
        """Notes that the echo is back."""
        echo = self._under_way(now)
        self._sent = None
        if echo:
            self._late.append(echo)
        del self._late[: bisect_left(self._late, now - KEPT_S, key=_returned)]

    def note_lost(self) -> None:
        """Notes that the echo will not come back: its connection was lost."""
        self._sent = None

    def is_known(self, now: float) -> bool:
        """Whether any delay is known; nearly always there is none."""
        return bool(self._late) or self._under_way(now) is not None

    def exchange_delay_s(self, asked_at: float, now: float) -> float:
        """Return by how much a question that was sent at `asked_at`, and its answer, may have been late at `now`, in seconds.

        The question was late until the end of an echo at most, and the answer as long as an echo. An
        echo that was late in between delayed neither.
        """
        under_way = self._under_way(now)
        answer = max(self._late_at(now, under_way), key=lambda echo: echo.delay_s, default=None)
        question_s = (
            min(echo.delay_s, echo.returned - asked_at)
            for echo in self._late_at(asked_at, under_way)
            if echo is not answer
        )
        behind_s = max(question_s, default=0.0) + (answer.delay_s if answer else 0.0)
        return max(0.0, min(LONGEST_BEHIND_S, behind_s))

    def broke_links(self, now: float) -> bool:
        """Whether links that are lost now were lost because gRPC was behind: bots drop a server that answers no pings."""
        under_way = self._under_way(now)
        return any(
            echo.delay_s >= LINK_BREAKING_S and now - echo.returned < LINK_LOSS_NOTICED_S
            for echo in ([*self._late, under_way] if under_way else self._late)
        )

    def _late_at(self, at: float, under_way: EchoDelay | None) -> Iterator[EchoDelay]:
        """Yield the late echoes around that time. They do not overlap, so they are few: every command asks."""
        late = self._late
        for number in range(bisect_left(late, at - ECHO_BEAT_S, key=_returned), len(late)):
            if late[number].sent > at + ECHO_BEAT_S:
                return
            yield late[number]
        if under_way and under_way.sent <= at + ECHO_BEAT_S:
            yield under_way

    def _under_way(self, now: float) -> EchoDelay | None:
        """Return the echo that is under way if it is late."""
        if self._sent is None or now - self._sent <= STALL_BOUND_S:
            return None
        stalled_s = self._loop_lag.note_stall(now) - self._stalled_s
        worked_s = self._cpu_time() - self._worked_s  # a busy loop is slow too: that is no delay of gRPC
        delay_s = now - self._sent - max(stalled_s, worked_s)
        return EchoDelay(self._sent, now, delay_s) if delay_s > STALL_BOUND_S else None


_returned = attrgetter("returned")
