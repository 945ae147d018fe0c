"""The times that are taken off all charges of a match: stalls of our event loop, delays of gRPC, and outages of the store."""

from __future__ import annotations

from typing import NamedTuple

from seatwise_referee.effects import Effect
from seatwise_referee.match import Match
from seatwise_server.play.lag import EventLoopLag
from seatwise_server.play.match_clock import MatchClock
from seatwise_server.play.transport_lag import TransportLag


class AskedPrompt(NamedTuple):
    """The prompt that was sent last."""

    number: int
    sent_at: float
    """When it was sent first, on the clock of the loop."""
    taken_off_ms: int = 0
    """The delay of gRPC that was taken off its charges so far."""


class Standstills:
    """The standstills of one match, each of which is journaled once."""

    __slots__ = ("_asked", "_clock", "_lag", "_stalled_s", "_transport")

    def __init__(self, clock: MatchClock, lag: EventLoopLag, transport: TransportLag | None) -> None:
        self._clock = clock
        self._lag = lag
        self._transport = transport
        self._stalled_s = lag.note_stall(clock.now)
        """The stalls of this process, in seconds, up to the last that the match was told of."""
        self._asked = AskedPrompt(0, clock.opened_s)

    def note_sent(self, prompt: int) -> None:
        """Notes that the prompt was sent; only the first time counts."""
        if prompt > self._asked.number:
            self._asked = AskedPrompt(prompt, self._clock.now)

    def broke_links(self) -> bool:
        """Whether a link that breaks now may be broken by a stall of ours, or by gRPC that was behind."""
        transport = self._transport
        return self._lag.broke_links() or (transport is not None and transport.broke_links(self._clock.now))

    def find_effects(self, match: Match) -> list[Effect]:
        """Returns the entries of all that is not journaled yet. They come before the next command."""
        return [*self._stall_effects(match), *self._transport_effects(match)]

    def outage_ms(self, gap_s: float) -> int:
        """Returns how much of an outage of the store that ends now, of `gap_s`, is to be taken off, in ms."""
        return int((gap_s - self._count_stalls_as_gap(gap_s)) * 1000)

    def _count_stalls_as_gap(self, gap_s: float) -> float:
        """Leaves the stalls in an outage that ends now to the outage, so that no time is taken off twice.

        Returns how much of them is in the journal already, in seconds.
        """
        now = self._clock.now
        pending_s = self._lag.note_stall(now) - self._stalled_s
        within_s = self._lag.stalled_since(now - gap_s)
        self._stalled_s += min(pending_s, within_s)
        return max(0.0, within_s - pending_s)

    def _stall_effects(self, match: Match) -> list[Effect]:
        """Takes stalls since the last command off the charges of all bots, whenever they were."""
        now = self._clock.now
        stalled_s, self._stalled_s = self._lag.note_stall(now) - self._stalled_s, self._lag.stalled_s
        match.note_lag(self._lag.recent_ms(now))
        if not stalled_s:
            return []
        return note_standstill(
            match, int(stalled_s * 1000), "STALL", self._clock.ms_at(self._lag.stalled_until)
        )

    def _transport_effects(self, match: Match) -> list[Effect]:
        """Takes off what gRPC was behind when the open prompt was sent, and is now. Each prompt has this once."""
        transport = self._transport
        if transport is None:
            return []
        now = self._clock.now
        prompt = match.position.prompt
        if not (transport.is_known(now) and prompt and prompt.number == self._asked.number):
            return []
        behind_ms = int(transport.exchange_delay_s(self._asked.sent_at, now) * 1000)
        more_ms = behind_ms - self._asked.taken_off_ms
        if more_ms <= 0:
            return []
        self._asked = self._asked._replace(taken_off_ms=behind_ms)
        return note_standstill(match, more_ms, "STALL", self._clock.ms_at(now))


def note_standstill(match: Match, ms: int, why: str, now: int) -> list[Effect]:
    """Tells the match of a standstill; if it began before the match was opened, only of the rest."""
    return match.note_standstill(min(ms, now), why, now)
