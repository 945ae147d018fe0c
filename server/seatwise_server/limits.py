"""The limits of callers: one table, and the two ways to hold them. `Places` bounds what is open at once, in all and for each
address; `TokenBuckets` bound what a caller does in a second.

Both count in the memory of this process. Limits that all processes share are counted in Redis (lobby/owner_quotas.py).
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from seatwise_server.counts import COUNTS
from seatwise_server.proxy_networks import ProxyNetworks
from seatwise_server.refusal import Refusal


@dataclass(slots=True)
class PlaceLimit:
    """How much of one kind may be open in this process at once."""

    when_full: str
    """The words behind the number in a refusal: "callers watch matches already"."""
    most: int = 0
    """In all; 0 where the operator or the machine says how many."""
    most_of_address: int = 0
    """Of one address; 0 for no limit of its own."""
    retry_after_s: int = 5
    keeps_bots_out: bool = False
    """Whether a refusal is a fault of the server that excuses bots which are absent."""


HTTP_CONNECTIONS: Final = PlaceLimit("connections are open", most_of_address=512, keeps_bots_out=True)
HTTP_REQUESTS: Final = PlaceLimit(
    "requests are being answered", most_of_address=256, retry_after_s=1, keeps_bots_out=True
)
"""Open streams among them."""
HTTP_STREAMS: Final = PlaceLimit("streams are open", 4_000, most_of_address=32)
"""A browser opens six connections to a host at most."""
BOT_HTTP_STREAMS: Final = PlaceLimit("streams are open", 4_000, most_of_address=200, keeps_bots_out=True)
"""A bot has two of them, and a machine may run many bots."""
SOCKETS: Final = PlaceLimit("WebSockets are open", most_of_address=1024, keeps_bots_out=True)
"""A machine that runs hundreds of bots has two connections for each."""
SPECTATORS: Final = PlaceLimit("callers watch matches already", 4_000)
PAGE_SPECTATORS: Final = PlaceLimit("callers watch matches already", 4_000)
HEALTH_WATCHERS: Final = PlaceLimit("callers watch the health already", 1_000)
FORWARDED_READS: Final = PlaceLimit("reads are being answered already", 64, retry_after_s=1)
"""In the process beside this one. More callers would only wait, and use memory here."""
FORWARDED_WATCHES: Final = PlaceLimit("callers watch matches already", 500)
OWN_READS: Final = PlaceLimit("reads are being answered already", 2, retry_after_s=1)
"""That this process answers itself, while the other does not run."""
OWN_WATCHES: Final = PlaceLimit("callers watch matches already", 8, retry_after_s=1)

LOGINS_PER_MINUTE: Final = 20
"""Tries of one address to log in at the page of operators."""
LOOKUPS_PER_SECOND: Final = 100.0
"""Items of one bot that name matches of other referees, and are answered."""
GUEST_MATCHES_PER_MINUTE: Final = 6.0
"""Tickets that one address gets in a minute, and matches that it may begin with them."""

NO_PROXIES: Final = ProxyNetworks()


class Places:
    """The places of one limit: what is open now."""

    def __init__(
        self,
        limit: PlaceLimit,
        most: int = 0,
        proxies: ProxyNetworks = NO_PROXIES,
        most_of_proxy: float = math.inf,
    ) -> None:
        """`most` takes the place of the limit's own. Behind each of the `proxies` are many callers with one address, which have
        `most_of_proxy` together.
        """
        self._limit, self._given = limit, most
        self._proxies, self._of_proxy = proxies, most_of_proxy
        self._open: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._open.total()

    def find_refusal(self, address: str = "", *, is_suspect: bool = False) -> Refusal | None:
        """Return why this address gets no further place; None if it gets one. A suspect gets none, unless it is a proxy."""
        most = self._given or self._limit.most or math.inf
        if len(self) >= most:
            return self._refuse(f"{most} {self._limit.when_full}; try again soon")
        held, most = self._open.get(address, 0), min(self._limit.most_of_address or math.inf, self._of_proxy)
        if held < most and not is_suspect:
            return None
        if held < self._of_proxy and self._proxies.has_address(address):
            return None
        return self._refuse(f"{most} {self._limit.when_full} to your address; end one first")

    def take_place(self, address: str = "") -> None:
        """Count one more, whether there is room or not."""
        self._open[address] += 1

    def give_back(self, address: str = "") -> None:
        """The counted one has ended."""
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]

    @contextmanager
    def reserve_place(self, address: str = "") -> Iterator[None]:
        """Count one inside this block. Raises `Refusal` SERVER_FULL if there is no room."""
        if refusal := self.find_refusal(address):
            raise refusal
        with self.hold_place(address):
            yield

    @contextmanager
    def hold_place(self, address: str) -> Iterator[None]:
        """Count one inside this block, whether there is room or not."""
        self.take_place(address)
        try:
            yield
        finally:
            self.give_back(address)

    def _refuse(self, message: str) -> Refusal:
        if self._limit.keeps_bots_out:
            COUNTS.count_fault("LIMIT")
        return Refusal("SERVER_FULL", message, retry_after=str(self._limit.retry_after_s))


MOST_BUCKETS = 10_000
"""Buckets that are kept. Above that the one that was used least recently is dropped, and with it what its caller has used."""
MOST_DEBT_BURSTS = 8
"""No caller gets so many bursts into debt, so a bucket that is further from full tells of a clock that has jumped."""


class RateLimit(NamedTuple):
    """A limit as a caller is shown it."""

    quota: int
    """The units of a full bucket."""
    window_s: int
    """The seconds in which one fills."""
    left: int
    full_s: int
    """The seconds until it is full."""


class TokenBuckets:
    """One bucket for each key. A new bucket is full.

    A bucket is one number: the time at which it is full again (the generic cell rate algorithm, ITU-T I.371). So there is no
    queue: a call that must wait is told at once for how long.
    """

    def __init__(self, rate: float, burst: float, now: Callable[[], float]) -> None:
        """A bucket gets `rate` units a second, and holds `burst` units at most. `now` returns seconds, and may jump."""
        self._rate = rate
        self._burst = burst
        self._now = now
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._full_at)

    def measure_level(self, key: str) -> float:
        """Return how full the bucket is: 1 is full, 0 is empty, and less means that calls wait already."""
        return 1.0 - self._debt_s(key) * self._rate / self._burst

    def show_limit(self, key: str) -> RateLimit:
        """Return the limit as the caller is shown it."""
        debt_s = self._debt_s(key)
        left = max(0, int(self._burst - debt_s * self._rate))
        return RateLimit(int(self._burst), math.ceil(self._burst / self._rate), left, math.ceil(debt_s))

    def measure_wait(self, key: str, units: float) -> float:
        """Return the seconds until so many units are there; a call of more than the bucket holds waits for a full one."""
        return max(0.0, self._debt_s(key) + (min(units, self._burst) - self._burst) / self._rate)

    def take_units(self, key: str, units: float) -> None:
        """Take the units even if the bucket does not hold so many, but never more than a full one holds."""
        full_at = self._now() + self._debt_s(key) + min(units, self._burst) / self._rate
        self._full_at.pop(key, None)
        self._full_at[key] = full_at
        if len(self._full_at) > MOST_BUCKETS:
            self._full_at.popitem(last=False)

    def _debt_s(self, key: str) -> float:
        """Return the seconds until the bucket is full. After a jump of the clock back it counts as just empty."""
        now, full_at = self._now(), self._full_at.get(key, -math.inf)
        debt_s = max(0.0, full_at - now)
        longest_s = MOST_DEBT_BURSTS * self._burst / self._rate
        if debt_s <= longest_s:
            return debt_s
        self._full_at[key] = now + self._burst / self._rate
        return self._burst / self._rate
