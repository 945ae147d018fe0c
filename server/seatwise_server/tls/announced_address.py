"""Warns the operator if bots are sent to an address whose scheme does not fit: TLS is spoken on one side only."""

from __future__ import annotations

import asyncio

import structlog

from seatwise.link.dialing import speaks_tls
from seatwise.link.endpoint import resolve_endpoint

LOOK_AGAIN_S = 60.0
"""Seconds between two tries. A proxy in front of this process may start later, or may not be reachable from here."""

log = structlog.get_logger()


async def check_announced_address(address: str) -> None:
    """Log a warning if the scheme of the address does not fit.

    Return once the address has been reached, or runs until cancelled.
    """
    while True:
        wrong = await asyncio.to_thread(find_mismatch, address)
        if wrong:
            log.warning("announced_address_wrong", address=address, why=wrong)
        if wrong is not None:
            return
        await asyncio.sleep(LOOK_AGAIN_S)


def find_mismatch(address: str) -> str | None:
    """Return what is wrong with the scheme of an address at which bots are to reach this server; empty if nothing is.

    Return `None` if the address cannot be reached from here. Blocks for some seconds at most.
    """
    is_promised = address.lower().startswith("https://")
    target = resolve_endpoint(address).target
    found = speaks_tls(resolve_endpoint(f"https://{target}"))
    if found is None or found == is_promised:
        return None if found is None else ""
    if is_promised:
        return (
            "bots are told to use TLS there, but the server there speaks plain text: "
            f"name a certificate, or announce {target}"
        )
    return f"the server there speaks TLS, but bots are not told so: announce https://{target} with --address"
