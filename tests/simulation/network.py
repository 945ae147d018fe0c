"""Links between processes: in order within one, each with delays of its own, cut and held up by the seed.

A `Link` is one connection as TCP has it. Between two of its ends nothing is lost, doubled or put out of
order as long as it lasts; when it is cut, what is under way is lost, and either end hears of it in its own
time. Between links every order is possible. While a path is blocked nothing gets through on it and nobody
hears of that, as when a cable is pulled: keep-alives give such a link up after a while.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simulation.chance import Chance
from simulation.clock import Clock, Loop

CABLE_S = 0.001
"""The shortest way."""


@dataclass(eq=False)
class End:
    """One end of a link."""

    host: str
    loop: Loop | None
    """Of the process that has it; none for what is no process of ours."""
    patience_s: float
    """How long it takes silence for life."""
    on_message: Callable[[Any], None] = lambda _: None
    on_lost: Callable[[], None] = lambda: None
    is_open: bool = True
    arrives: float = 0.0
    """When the last message to it is there."""

    def hand(self, act: Callable[..., None], *args: Any) -> None:
        """Does it in the process's own time."""
        if self.loop is None:
            act(*args)
        elif not self.loop.is_dead:
            self.loop.call_soon(act, *args)


class Link:
    """One connection."""

    def __init__(self, net: Network, near: End, far: End, chance: Chance) -> None:
        self.net = net
        self.ends = near, far
        self.near, self.far = near, far
        self.is_cut = False
        self._chance = chance

    def other(self, end: End) -> End:
        """The end that is not this one."""
        return self.far if end is self.near else self.near

    def send(self, end: End, message: Any) -> None:
        """From this end to the other."""
        if self.is_cut or not end.is_open:
            return
        to = self.other(end)
        to.arrives = max(to.arrives, self.net.clock.now + self.net.delay_s(end.host, to.host, self._chance))
        self.net.clock.at(to.arrives, lambda: self._arrive(end, to, message))

    def _arrive(self, end: End, to: End, message: Any) -> None:
        if self.is_cut or not to.is_open:
            return
        if freed := self.net.blocked_until(end.host, to.host):
            to.arrives = max(to.arrives, freed)
            self.net.clock.at(freed, lambda: self._arrive(end, to, message))
            return
        to.hand(self._take, to, message)

    @staticmethod
    def _take(to: End, message: Any) -> None:
        if to.is_open:
            to.on_message(message)

    def close(self, end: End) -> None:
        """This end hangs up in order: what it has sent still arrives, and then that it has hung up."""
        if end.is_open:
            end.is_open = False
            to = self.other(end)
            at = max(to.arrives, self.net.clock.now + self.net.delay_s(end.host, to.host, self._chance))
            self.net.clock.at(at, lambda: self._hear(end, to))

    def cut(self) -> None:
        """It breaks: what is under way is lost."""
        if not self.is_cut:
            self.is_cut = True
            for end in self.ends:
                delay_s = self._chance.uniform(0, 0.05)
                self.net.clock.after(delay_s, lambda end=end: self._lose(end))  # type: ignore[misc]

    def _hear(self, end: End, to: End) -> None:
        if freed := self.net.blocked_until(end.host, to.host):
            self.net.clock.at(freed, lambda: self._hear(end, to))
        else:
            self._lose(to)

    def _lose(self, end: End) -> None:
        if end.is_open:
            end.hand(self._lost, end)

    @staticmethod
    def _lost(end: End) -> None:
        if end.is_open:
            end.is_open = False
            end.on_lost()

    def give_up(self, silent_host: str) -> None:
        """Nothing gets through to that host: the keep-alives of the other end will notice, if that lasts."""
        for end in self.ends:
            if self.other(end).host == silent_host or end.host == silent_host:
                self.net.clock.after(end.patience_s, lambda end=end: self._check(end))  # type: ignore[misc]

    def _check(self, end: End) -> None:
        to = self.other(end)
        is_gone = not to.is_open or (to.loop is not None and to.loop.is_dead)
        if is_gone or self.net.blocked_until(end.host, to.host):
            self._lose(end)


class Network:
    """All links of a world."""

    def __init__(self, clock: Clock, chance: Chance) -> None:
        self.clock = clock
        self.links: dict[Link, None] = {}
        self.slowness_s: dict[str, float] = {}
        """What every message from or to a host takes longer."""
        self._chance = chance
        self._number = 0
        self._blocked: dict[frozenset[str], float] = {}

    def link(self, near: End, far: End) -> Link:
        """A new connection, whose two ends know of it."""
        self._number += 1
        link = Link(self, near, far, self._chance.of(f"{near.host} {far.host} {self._number}"))
        self.links[link] = None
        return link

    def delay_s(self, one: str, other: str, chance: Chance) -> float:
        """What a message takes: mostly little, now and then much."""
        jitter_s = chance.expovariate(1000) if chance.random() > 0.01 else chance.uniform(0, 0.2)
        return CABLE_S + jitter_s + self.slowness_s.get(one, 0.0) + self.slowness_s.get(other, 0.0)

    # Faults

    def block(self, one: str, other: str, seconds: float) -> None:
        """For so long nothing gets through between two hosts."""
        self._blocked[frozenset((one, other))] = self.clock.now + seconds
        for link in self._between(one, other):
            link.give_up(other)

    def blocked_until(self, one: str, other: str) -> float:
        """When something gets through again; 0 if it does now."""
        until = self._blocked.get(frozenset((one, other)), 0.0)
        return until if until > self.clock.now else 0.0

    def cut(self, one: str, other: str) -> int:
        """Breaks all links between two hosts; how many there were."""
        links = self._between(one, other)
        for link in links:
            link.cut()
        return len(links)

    def died(self, host: str, *, is_heard: bool) -> None:
        """A process has died: its machine says so to those who were linked to it, or is gone with it."""
        for link in [link for link in self.links if host in (link.near.host, link.far.host)]:
            if is_heard:
                link.cut()
            else:
                link.give_up(host)

    def _between(self, one: str, other: str) -> list[Link]:
        self.links = {link: None for link in self.links if any(end.is_open for end in link.ends)}
        hosts = {one, other}
        return [link for link in self.links if {link.near.host, link.far.host} == hosts and not link.is_cut]
