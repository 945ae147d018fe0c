"""Measures how far away the bot at the other end of a stream is, by the best means that its connection has."""

from __future__ import annotations

from collections.abc import Callable, Collection

from seatwise_server.play.allowance import HANDLING_MS, BotDistance
from seatwise_server.play.bot_distances import BotDistances
from seatwise_server.proxy_networks import ProxyNetworks

ReadKernel = Callable[[], "float | None"]
"""Returns the least round trip of a connection in ms, as the kernel knows it; None if it is not known, or not yet."""


class DistanceMeter:
    """Measures the distance of one stream's bot."""

    def __init__(self, distance: BotDistance | None = None, read_kernel: ReadKernel | None = None) -> None:
        """Without `read_kernel` there are only pongs, which prove nothing: the peer is a proxy, or the kernel cannot say."""
        self._distance = distance or BotDistance()
        self._read_kernel = read_kernel

    def measure_kernel(self, now: float) -> bool:
        """Asks the kernel at `now`, in seconds. Returns whether the bot is nearer than was known."""
        round_trip_ms = self._read_kernel() if self._read_kernel else None
        return round_trip_ms is not None and self._distance.note_kernel(round_trip_ms, now)

    def note_pong(self, round_trip_ms: float, now: float) -> bool:
        """Notes how long a pong took. Returns whether the bot is nearer than was known."""
        return self._distance.note_pong(round_trip_ms, now) and self._read_kernel is None

    def note_answer(self, ms: int) -> None:
        """Notes that an answer came so long after its question was sent."""
        self._distance.note_answer(ms)

    def allowance_ms(self, now: float, *, needs_proof: bool) -> int | None:
        """Returns what is taken off a charge in ms; None if nothing was measured yet.

        With `needs_proof` only the kernel's word counts. The handling of messages needs no proof: all bots have it.
        """
        if self._read_kernel is None:
            return HANDLING_MS if needs_proof else self._distance.unproven_ms(now)
        allowance_ms = self._distance.proven_ms(now)
        if allowance_ms is None and self.measure_kernel(now):
            return self._distance.proven_ms(now)
        return allowance_ms


class DistanceMeters:
    """Makes the meters of a referee's streams, which share what is known of each bot."""

    def __init__(self, proxies: Collection[str] = ()) -> None:
        """`proxies` are addresses or networks of proxies: the kernel measures the way to them, and not to a bot."""
        self._proxies = ProxyNetworks(proxies)
        self._distances = BotDistances()

    def meter_for(self, bot: str, address: str, read_kernel: ReadKernel | None) -> DistanceMeter:
        """Returns the meter of a new stream of a bot; `address` is its IP address, as the transport sees it."""
        is_direct = not self._proxies.has_address(address)
        return DistanceMeter(self._distances.distance_of(bot, address), read_kernel if is_direct else None)
