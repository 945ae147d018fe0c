"""Sends the moves of one seat in one race, at a rate that the referee accepts.

Layouts and offers get no answer, and only the newest one counts. So a newer one replaces one that is not yet sent. A call
is sent at once, after the layout that it belongs to, and again over each new link.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from seatwise.race_steps import SendRate, StepKind, kind_of_step
from seatwise_referee.game import RaceGame


class RaceLayouts:
    """The moves of one seat in one round."""

    def __init__(self, rules: RaceGame[Any, Any, Any], send_move: Callable[[str, Any], None]) -> None:
        """Create it for a round. `send_move(request_id, move)` sends a move."""
        self._rules = rules
        self._send_move = send_move
        self._name = uuid4().hex[:12]
        self._ids_given = 0
        self._last: dict[StepKind, Any] = {}
        """The newest layout and the newest offer."""
        self._unsent: set[StepKind] = set()
        self._call: tuple[str, Any] | None = None
        self._rate = SendRate()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def call_id(self) -> str:
        """Return the request id of the call; empty while there is none."""
        return self._call[0] if self._call else ""

    def owns_request(self, request_id: str) -> bool:
        """Return whether this is the request id of a move of this round."""
        return request_id.startswith(self._name)

    def send_step(self, move: Any) -> None:
        """Send a move of the bot: a layout, an offer or a call."""
        kind = kind_of_step(self._rules, move)
        if kind is StepKind.CALL:
            self._send_pending()
            self._call = self._new_id(), move
            self._send_move(*self._call)
            return
        self._last[kind] = move
        self._unsent.add(kind)
        self._send_soon()

    def resend_all(self) -> None:
        """Send all moves that still count again, because the link or the referee is new."""
        self._unsent |= self._last.keys()
        self._send_pending()
        if self._call:
            self._send_move(*self._call)

    def resend_all_later(self, wait_s: float) -> None:
        """Send all moves that still count again after this time, because the referee rejected some as too many."""
        loop = asyncio.get_running_loop()
        self._rate.pause_for(1000 * loop.time(), 1000 * wait_s)
        self._cancel_timer()
        self._timer = loop.call_later(wait_s, self.resend_all)

    def end_round(self) -> None:
        """Send nothing more, because the round is over."""
        self._cancel_timer()
        self._unsent.clear()
        self._call = None

    def _send_soon(self) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            return
        ready_s = self._rate.ready_ms(1000 * loop.time()) / 1000
        if ready_s <= loop.time():
            self._send_pending()
        else:
            self._timer = loop.call_at(ready_s, self._send_pending)

    def _send_pending(self) -> None:
        self._cancel_timer()
        now_ms = 1000 * asyncio.get_running_loop().time()
        for kind in sorted(self._unsent):
            self._rate.count_layout(now_ms)
            self._send_move(self._new_id(), self._last[kind])
        self._unsent.clear()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _new_id(self) -> str:
        self._ids_given += 1
        return f"{self._name}-{self._ids_given}"
