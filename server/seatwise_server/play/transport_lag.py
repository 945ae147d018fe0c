"""Measures how far the threads of gRPC are behind: bots are not charged for that time.

A loaded machine, or a flood of connections, keeps gRPC's threads from messages that have come. The event loop is in time all
the same, so its lag says nothing of it. So a message goes round through gRPC again and again (`rpc/grpc_echo.py`). Its round
trip is at least as long as the delay of a bot's message that was under way at the same time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from seatwise_server.play.lag import LINK_BREAKING_S, LINK_LOSS_NOTICED_S, STALL_BOUND_S, EventLoopLag

ECHO_BEAT_S = 0.05
"""The time between two echoes. Bots were delayed by so much at most without any echo that was."""
LONGEST_BEHIND_S = 5.0
"""A longer delay breaks connections. So a fault of the measurement gives no bot more than this for a question."""
KEPT_S = 120.0
"""How long delays are remembered: a bot may take so long for its answer."""


class EchoDelay(NamedTuple):
    """An echo that was late; its times are of the event loop, in seconds."""

    sent: float
    returned: float
    delay_s: float
    """Its round trip, without what the event loop did meanwhile, and without its stalls, which count by themselves."""


class TransportLag:
    """Remembers the echoes that were late, and those only."""

    def __init__(self, loop_lag: EventLoopLag, cpu_time: Callable[[], float] = time.thread_time) -> None:
        """`cpu_time` returns the CPU time of the event loop's thread in seconds."""
        self._loop_lag = loop_lag
        self._cpu_time = cpu_time
        self._worked_s = 0.0
        self._sent: float | None = None
        self._stalled_s = 0.0
        self._late: deque[EchoDelay] = deque()

    def note_sent(self, now: float) -> None:
        """Notes that an echo was sent. At most one is under way."""
        self._sent, self._stalled_s, self._worked_s = now, self._loop_lag.note_stall(now), self._cpu_time()

    def note_returned(self, now: float) -> None:
        """Notes that the echo is back."""
        echo = self._under_way(now)
        self._sent = None
        if echo:
            self._late.append(echo)
        while self._late and self._late[0].returned < now - KEPT_S:
            self._late.popleft()

    def note_lost(self) -> None:
        """Notes that the echo will not come back: its connection was lost."""
        self._sent = None

    def is_known(self, now: float) -> bool:
        """Whether any delay is known; nearly always there is none."""
        return bool(self._late) or self._under_way(now) is not None

    def exchange_delay_s(self, asked_at: float, now: float) -> float:
        """Returns by how much a question that was sent at `asked_at`, and its answer, may have been late at `now`, in seconds.

        The question was late until the end of an echo at most, and the answer as long as an echo. An
        echo that was late in between delayed neither.
        """
        late = self._late_echoes(now)
        answer = max(
            (echo for echo in late if _is_at(echo, now)), key=lambda echo: echo.delay_s, default=None
        )
        question_s = (
            min(echo.delay_s, echo.returned - asked_at)
            for echo in late
            if echo is not answer and _is_at(echo, asked_at)
        )
        behind_s = max(question_s, default=0.0) + (answer.delay_s if answer else 0.0)
        return max(0.0, min(LONGEST_BEHIND_S, behind_s))

    def broke_links(self, now: float) -> bool:
        """Whether links that are lost now were lost because gRPC was behind: bots drop a server that answers no pings."""
        return any(
            echo.delay_s >= LINK_BREAKING_S and now - echo.returned < LINK_LOSS_NOTICED_S
            for echo in self._late_echoes(now)
        )

    def _late_echoes(self, now: float) -> list[EchoDelay]:
        """Returns all that are remembered, and the one that is under way."""
        under_way = self._under_way(now)
        return [*self._late, under_way] if under_way else list(self._late)

    def _under_way(self, now: float) -> EchoDelay | None:
        """Returns the echo that is under way if it is late."""
        if self._sent is None or now - self._sent <= STALL_BOUND_S:
            return None
        stalled_s = self._loop_lag.note_stall(now) - self._stalled_s
        worked_s = self._cpu_time() - self._worked_s  # a busy loop is slow too: that is no delay of gRPC
        delay_s = now - self._sent - max(stalled_s, worked_s)
        return EchoDelay(self._sent, now, delay_s) if delay_s > STALL_BOUND_S else None


def _is_at(echo: EchoDelay, at: float) -> bool:
    return echo.sent - ECHO_BEAT_S <= at <= echo.returned + ECHO_BEAT_S
