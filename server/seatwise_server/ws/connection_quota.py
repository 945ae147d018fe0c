"""Limits of the WebSocket port: connections in all and of one address, and addresses that it refuses for a while."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from seatwise_server.proxy_networks import ProxyNetworks

MOST_SOCKETS_OF_ADDRESS = 1024
"""A machine that runs hundreds of bots has two connections for each."""
MOST_BAD_TOKENS = 100
"""Connections of one address with a bad token within `BAD_TOKENS_S`. With more the address is hung up on until the time is over."""
BAD_TOKENS_S = 60.0


class ConnectionQuota:
    """Bounds connections, in all and for each address."""

    def __init__(self, most: int, now: Callable[[], float], proxies: Collection[str] = ()) -> None:
        """`proxies` are addresses or networks of proxies: behind one of them all bots have one address."""
        self._most = most
        self._most_of_proxy = max(1, most // 2)
        """Half, so that no single machine keeps the others out."""
        self._most_of_one = min(self._most_of_proxy, MOST_SOCKETS_OF_ADDRESS)
        self._now = now
        self._proxies = ProxyNetworks(proxies)
        self._open: Counter[str] = Counter()
        self._bad_tokens: Counter[str] = Counter()
        self._counted_from = now()

    def __len__(self) -> int:
        return self._open.total()

    def has_room(self, address: str) -> bool:
        """Whether one more connection of this address may be open."""
        if len(self) >= self._most:
            return False
        if self._open[address] < self._most_of_one and not self._has_guessed(address):
            return True
        return self._proxies.has_address(address) and self._open[address] < self._most_of_proxy

    def note_bad_token(self, address: str) -> None:
        """A connection of this address was refused for its token."""
        self._start_next_span()
        self._bad_tokens[address] += 1

    @contextmanager
    def hold_place(self, address: str) -> Iterator[None]:
        """Counts a connection inside this block."""
        self._open[address] += 1
        try:
            yield
        finally:
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]

    def _has_guessed(self, address: str) -> bool:
        self._start_next_span()
        return self._bad_tokens[address] >= MOST_BAD_TOKENS

    def _start_next_span(self) -> None:
        if self._now() - self._counted_from >= BAD_TOKENS_S:
            self._bad_tokens.clear()
            self._counted_from = self._now()
