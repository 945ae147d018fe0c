"""The proxies that the operator has named: what comes from one of them comes from somebody else, further away."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable


class ProxyNetworks:
    """Addresses and networks of proxies."""

    def __init__(self, proxies: Collection[str] = ()) -> None:
        """`proxies` are addresses, or networks such as 10.0.0.0/8."""
        self._networks = [ipaddress.ip_network(each, strict=False) for each in proxies]

    def has_address(self, address: str) -> bool:
        """Whether a proxy has this address; False for a text that is no address."""
        parsed = _parse_address(address) if self._networks else None
        return parsed is not None and any(parsed in network for network in self._networks)

    def caller_behind(self, address: str, forwarded: Iterable[str]) -> str:
        """Return the address of the caller behind a connection from `address`; empty if no proxy of ours tells of one.

        `forwarded` are the values of X-Forwarded-For. Each proxy adds the address of its client at the end. So the last address
        that is no proxy of ours is the caller, who may have invented those before it.
        """
        caller = ""
        if self.has_address(address):
            for text in reversed([each for value in forwarded for each in value.split(",")]):
                told = _parse_address(_without_port(text.strip()))
                if told is None:
                    break
                caller = str(told)
                if not self.has_address(caller):
                    break
        return caller


def _parse_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address; an IPv4 address also where a port for both kinds writes it as one of IPv6."""
    try:
        parsed = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return mapped or parsed


def _without_port(text: str) -> str:
    """Some proxies write 192.0.2.1:5123 or [2001:db8::1]:5123."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text
