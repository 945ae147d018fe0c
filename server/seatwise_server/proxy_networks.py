"""The proxies that the operator has named: what comes from one of them comes from somebody else, further away."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection


class ProxyNetworks:
    """Addresses and networks of proxies."""

    def __init__(self, proxies: Collection[str] = ()) -> None:
        """`proxies` are addresses, or networks such as 10.0.0.0/8."""
        self._networks = [ipaddress.ip_network(each, strict=False) for each in proxies]

    def has_address(self, address: str) -> bool:
        """Whether a proxy has this address; False for a text that is no address."""
        if not self._networks:
            return False
        try:
            parsed = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
        return any((mapped or parsed) in network for network in self._networks)
