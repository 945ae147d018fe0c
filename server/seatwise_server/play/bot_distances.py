"""Remembers the distances of bots, by bot and place, for longer than their streams last."""

from __future__ import annotations

import ipaddress

from cachetools import LRUCache

from seatwise_server.play.allowance import BotDistance

MOST_DISTANCES = 20_000
"""The bots and places that are remembered. A stream keeps its own in any case."""
NETWORK_BITS_V6 = 64
"""All addresses of such a network of IPv6 are one place: a host has as many as it likes."""


class BotDistances:
    """The distances of all bots at this referee."""

    def __init__(self) -> None:
        self._known: LRUCache[tuple[str, str], BotDistance] = LRUCache(MOST_DISTANCES)

    def distance_of(self, bot: str, address: str) -> BotDistance:
        """Returns what is known of the bot at the place of this IP address, which grows as streams measure."""
        key = (bot, place_of(address))
        distance = self._known.get(key)
        if distance is None:
            distance = self._known[key] = BotDistance()
        return distance


def place_of(address: str) -> str:
    """Returns the address, or its network for IPv6; the text itself if it is no address."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, NETWORK_BITS_V6), strict=False))
