"""Tells the operator if bots are sent to an address where TLS is spoken on one side only."""

from __future__ import annotations

import asyncio

import structlog

from seatwise.link.dialing import speaks_tls
from seatwise.link.endpoint import resolve_endpoint

LOOK_AGAIN_S = 60.0
"""A proxy that stands before this process may start later, and may be out of its reach."""

log = structlog.get_logger()


async def check_announced_address(address: str) -> None:
    """Returns when the address has been reached once, and whether it fits has been told. Runs until then, or cancelled."""
    while True:
        wrong = await asyncio.to_thread(find_mismatch, address)
        if wrong:
            log.warning("address_unfit", address=address, why=wrong)
        if wrong is not None:
            return
        await asyncio.sleep(LOOK_AGAIN_S)


def find_mismatch(address: str) -> str | None:
    """What is wrong with the scheme of an address at which bots are to reach this server; empty if nothing is.

    `None` if the address cannot be reached from here. Blocks for some seconds at most.
    """
    is_promised = address.lower().startswith("https://")
    target = resolve_endpoint(address).target
    found = speaks_tls(resolve_endpoint(f"https://{target}"))
    if found is None or found == is_promised:
        return None if found is None else ""
    if is_promised:
        return (
            f"bots are told to use TLS there, but no TLS is spoken: name a certificate, or announce {target}"
        )
    return f"TLS is spoken there, and bots are not told so: announce https://{target} with --address"
