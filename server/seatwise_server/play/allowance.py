"""The allowance: how much of a bot's time is not its own, and is taken off its charges.

A bot that answers late looks further away than it is. No bot can look nearer than it is. So the least of all that is known
of its distance counts, over a long time, and never more than its own quickest answers took.

The best measurement is that of the kernel, which the program of a bot cannot delay. Pongs come from the bot's program: they
count only where the kernel sees a proxy in place of the bot, and prove nothing.

The kernel does not see what both ends need to write, read and hand over a message. That is no bot's thinking either, so all bots
have the same `HANDLING_MS` for it. The round trip of a pong contains it.
"""

from __future__ import annotations

import ipaddress
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Collection

from cachetools import LRUCache

from seatwise_server.proxy_networks import ProxyNetworks

HISTORY_S = 6 * 3600.0
"""A round trip counts for at least so long after it was measured, and at most twice as long."""
UNPROVEN_CAP_MS = 100
"""The most that pongs alone can bring, in ms."""
KEPT_ANSWERS = 250
"""The number of a bot's last answers that are looked at."""
HANDLING_MS = 2
"""The handling of a question and its answer by the transports of both ends, in ms, beyond the kernel's round trip. Measured by
`tests/distances`: 1.1 to 1.5 ms in the median, near or far. It is rounded up, so that no bot is charged for what is not its own."""
ONE_IN_ANSWERS = 50
"""One answer in so many may be quicker than the allowance."""
ANSWER_NOISE_MS = 10
"""All others may be quicker by so much, in ms, so that no error of ours is charged to a bot."""
MOST_DISTANCES = 20_000
"""The bots and places that are remembered. A stream keeps its own in any case."""
NETWORK_BITS_V6 = 64
"""All addresses of such a network of IPv6 are one place: a host has as many as it likes."""

ReadKernel = Callable[[], "float | None"]
"""Returns the least round trip of a connection in ms, as the kernel knows it; None if it is not known, or not yet."""


class LeastRecent:
    """The least of the values of the last hours: two spans of `HISTORY_S`, of which the older one is dropped."""

    __slots__ = ("_before", "_began_at", "_value")

    def __init__(self) -> None:
        self._value: float | None = None
        self._before: float | None = None
        self._began_at: float | None = None

    def note_value(self, value: float, now: float) -> bool:
        """Note a value at `now`, in seconds. Return whether it is less than all that are known."""
        least = self.least_value(now)
        self._value = value if self._value is None else min(self._value, value)
        return least is None or value < least

    def least_value(self, now: float) -> float | None:
        """Return the least value at `now`; None if none is known."""
        self._start_next_span(now)
        known = [value for value in (self._value, self._before) if value is not None]
        return min(known, default=None)

    def _start_next_span(self, now: float) -> None:
        if self._began_at is None:
            self._began_at = now
        spans = int((now - self._began_at) // HISTORY_S)
        if spans > 0:
            self._before = self._value if spans == 1 else None
            self._value, self._began_at = None, self._began_at + spans * HISTORY_S


class QuickAnswers:
    """The quickest of a bot's last answers, each from its question to its arrival, in ms."""

    __slots__ = ("_last", "_sorted")

    def __init__(self) -> None:
        self._last: deque[int] = deque()
        self._sorted: list[int] = []

    def note_answer(self, ms: int) -> None:
        """Notes that an answer came so long after its question was sent."""
        if len(self._last) == KEPT_ANSWERS:
            del self._sorted[bisect_left(self._sorted, self._last.popleft())]
        self._last.append(ms)
        insort(self._sorted, ms)

    @property
    def quick_ms(self) -> int | None:
        """The longest distance that the answers allow: all but one in `ONE_IN_ANSWERS` took at least so long."""
        return self._sorted[len(self._sorted) // ONE_IN_ANSWERS] if self._sorted else None


class BotDistance:
    """The distance of one bot at one place, as far as it is known."""

    __slots__ = ("answers", "kernel", "pongs")

    def __init__(self) -> None:
        self.kernel = LeastRecent()
        """The least round trips of its connections in ms, as the kernel knows them."""
        self.pongs = LeastRecent()
        """How long its pongs took, in ms."""
        self.answers = QuickAnswers()

    def proven_ms(self, now: float) -> int | None:
        """Return the allowance by the kernel's measurements, in whole ms; None as long as there are none."""
        least_ms = self.kernel.least_value(now)
        return None if least_ms is None else self._bounded_ms(least_ms + HANDLING_MS)

    def unproven_ms(self, now: float) -> int | None:
        """Return the allowance by pongs alone, in whole ms; None as long as there are none."""
        least_ms = self.pongs.least_value(now)
        if least_ms is None:
            return None
        return min(UNPROVEN_CAP_MS, self._bounded_ms(max(least_ms, HANDLING_MS)))

    def _bounded_ms(self, least_ms: float) -> int:
        quick_ms = self.answers.quick_ms
        return int(least_ms) if quick_ms is None else min(int(least_ms), quick_ms + ANSWER_NOISE_MS)


class DistanceMeter:
    """Measures the distance of one stream's bot."""

    def __init__(self, distance: BotDistance | None = None, read_kernel: ReadKernel | None = None) -> None:
        """Without `read_kernel` there are only pongs, which prove nothing: the peer is a proxy, or the kernel cannot say."""
        self._distance = distance or BotDistance()
        self._read_kernel = read_kernel

    @property
    def needs_pongs(self) -> bool:
        """Whether pongs are all that tells the distance."""
        return self._read_kernel is None

    def measure_kernel(self, now: float) -> bool:
        """Ask the kernel at `now`, in seconds. Return whether the bot is nearer than was known."""
        round_trip_ms = self._read_kernel() if self._read_kernel else None
        return round_trip_ms is not None and self._distance.kernel.note_value(round_trip_ms, now)

    def note_pong(self, round_trip_ms: float, now: float) -> bool:
        """Note how long a pong took. Return whether the bot is nearer than was known."""
        return self._distance.pongs.note_value(round_trip_ms, now) and self.needs_pongs

    def note_answer(self, ms: int) -> None:
        """Notes that an answer came so long after its question was sent."""
        self._distance.answers.note_answer(ms)

    def allowance_ms(self, now: float, *, needs_proof: bool) -> int | None:
        """Return what is taken off a charge in ms; None if nothing was measured yet.

        With `needs_proof` only the kernel's word counts. The handling of messages needs no proof: all bots have it.
        """
        if self.needs_pongs:
            return HANDLING_MS if needs_proof else self._distance.unproven_ms(now)
        allowance_ms = self._distance.proven_ms(now)
        if allowance_ms is None and self.measure_kernel(now):
            return self._distance.proven_ms(now)
        return allowance_ms


class DistanceMeters:
    """Makes the meters of a referee's streams. They share the distances of bots, which are remembered for longer than a stream lasts."""

    def __init__(self, proxies: Collection[str] = ()) -> None:
        """`proxies` are addresses or networks of proxies: the kernel measures the way to them, and not to a bot."""
        self._proxies = ProxyNetworks(proxies)
        self._distances: LRUCache[tuple[str, str], BotDistance] = LRUCache(MOST_DISTANCES)

    def meter_for(self, bot: str, address: str, read_kernel: ReadKernel | None) -> DistanceMeter:
        """Return the meter of a new stream of a bot; `address` is its IP address, as the transport sees it."""
        distance = self._distances.setdefault((bot, place_of(address)), BotDistance())
        return DistanceMeter(distance, None if self._proxies.has_address(address) else read_kernel)


def place_of(address: str) -> str:
    """Return the address, or its network for IPv6; the text itself if it is no address."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, NETWORK_BITS_V6), strict=False))
