"""How much callers may read: a token bucket for each address and each token, and one for all callers without a token.

A read above the rate waits for its turn, so a program that asks again and again is only slowed down. It is refused when the
wait would be long. The buckets are in the memory of this process: a read asks no store, and each process counts by itself.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

from seatwise_server.limits import RateLimit, TokenBuckets
from seatwise_server.refusal import Refusal
from seatwise_server.services.authentication import Caller
from seatwise_server.services.declarations import method_rules
from seatwise_server.services.request_fields import DEFAULT_PAGE_SIZE, LARGEST_PAGE_SIZE

BURST_S: Final = 3.0
"""A bucket holds the units of so many seconds: a page that reads many things at once need not wait."""
LONGEST_READ_WAIT_S: Final = 3.0
"""A read that would have to wait longer for its turn is refused."""
ROWS_OF_UNIT: Final = 5
"""Rows of a list that cost as much as one read of one thing."""
ALL_POSITIONS_COST: Final = 5
"""Units of all positions of a match, in addition to those of a watch."""
ALL_ANONYMOUS: Final = "all"
OWN_PEER: Final = "unix:"
"""The peer of calls that the server itself has forwarded to its read process. They were counted there."""
_SITE_BITS: Final = 64
"""A customer of IPv6 has a network of so many bits at least, so one machine may call from any address in it."""


@dataclass(frozen=True, slots=True)
class ReadRates:
    """The rates of a process, in units a second; 0 for no limit. A read of one thing costs one unit."""

    of_caller: float = 0.0
    """Of each token, and of each address of callers without one."""
    of_anonymous: float = 0.0
    """Of all callers without a token together."""


class ReadBudget:
    """The budget of reads of one process, whichever doors it has."""

    def __init__(self, rates: ReadRates, now: Callable[[], float]) -> None:
        """`now` returns seconds; it is best the clock of the event loop."""
        self._callers = _new_buckets(rates.of_caller, now)
        self._anonymous = _new_buckets(rates.of_anonymous, now)

    async def admit_read(self, caller: Caller, units: float) -> None:
        """Return when it is the turn of this read. Raises `Refusal` RATE_EXCEEDED if that would take too long.

        Reads of operators, and those that the server has forwarded, wait for nothing and cost nothing.
        """
        wait_s = self.reserve_turn(caller, units)
        if wait_s:
            await asyncio.sleep(wait_s)

    def show_limit(self, caller: Caller) -> RateLimit | None:
        """Return the caller's limit; `None` for a caller without one."""
        if self._callers is None or caller.is_operator or caller.peer == OWN_PEER:
            return None
        return self._callers.show_limit(_key_of(caller))

    def reserve_turn(self, caller: Caller, units: float) -> float:
        """Take the units, and return the seconds to wait for them. Raises as `admit_read`."""
        if caller.is_operator or caller.peer == OWN_PEER:
            return 0.0
        wait_s, patience_s = 0.0, LONGEST_READ_WAIT_S
        if self._callers is not None:
            key = _key_of(caller)
            wait_s = _check_wait(self._callers.measure_wait(key, units), patience_s)
            # Where all together read too much, one that has read little may wait longer than one that asks again and again:
            # a read that is refused below has taken its units here.
            patience_s *= 0.5 + 0.5 * max(0.0, self._callers.measure_level(key))
            self._callers.take_units(key, units)
        if self._anonymous is not None and not caller.name:
            wait_s = max(wait_s, _check_wait(self._anonymous.measure_wait(ALL_ANONYMOUS, units), patience_s))
            self._anonymous.take_units(ALL_ANONYMOUS, units)
        return wait_s


def _key_of(caller: Caller) -> str:
    return f"token {caller.name}" if caller.name else f"address {network_of(caller.peer)}"


def _new_buckets(rate: float, now: Callable[[], float]) -> TokenBuckets | None:
    return TokenBuckets(rate, max(1.0, rate * BURST_S), now) if rate else None


def _check_wait(wait_s: float, patience_s: float) -> float:
    if wait_s <= patience_s:
        return wait_s
    why = (
        "you read more than this server allows, or too many others do; ask less often, and for shorter lists"
    )
    raise Refusal("RATE_EXCEEDED", why, retry_after=str(math.ceil(wait_s)))


def is_read(method: str) -> bool:
    """Return whether a method only reads."""
    return method.rpartition("/")[2].startswith(("Get", "List", "Watch"))


def cost_of_read(method: str, request: Any) -> float:
    """Return the units of a read: one, and one for each `ROWS_OF_UNIT` rows of a page.

    `method` has the form /seatwise.v1.MatchService/GetMatch.
    """
    units = float(method_rules()[method].cost)
    asked = getattr(request, "page_size", None)
    if asked is not None:
        rows = min(asked, LARGEST_PAGE_SIZE) if asked > 0 else DEFAULT_PAGE_SIZE
        units += rows / ROWS_OF_UNIT
    if getattr(request, "all_positions", False):
        units += ALL_POSITIONS_COST
    return units


@lru_cache(maxsize=4_096)
def network_of(peer: str) -> str:
    """Return the network whose reads are counted together: an IPv4 address, or the first half of an IPv6 address."""
    text = address_of_peer(peer)
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address) >> _SITE_BITS << _SITE_BITS, _SITE_BITS)))


def address_of_peer(peer: str) -> str:
    """Return the address in `ipv4:192.0.2.1:5123` or `ipv6:%5B2001:db8::1%5D:5123`, as gRPC writes them, or in host:port."""
    text = unquote(peer).removeprefix("ipv4:").removeprefix("ipv6:")
    host, _, port = text.rpartition(":")
    is_bare = not port.isdigit() or (":" in host and not host.endswith("]"))
    return (text if is_bare else host).strip("[]").partition("%")[0]
