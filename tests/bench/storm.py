"""Bots that all come back at once: the server is killed and started again, and each attends and sits as before.

python tests/bench/storm.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from serving import Server, Serving, serving
from sitters import Admin, Sitter, asked_since, until
from table import Row, show

BOTS, QUICK_BOTS = 2000, 300
AT_ONCE = 64
SOON_S = 200.0
ALL = ("--no-house-bots",)


@dataclass(frozen=True, slots=True)
class Storm:
    """What came of it."""

    bots: int
    attending_s: float
    """From the moment at which the server listens again to the last bot that is welcomed."""
    sitting_s: float
    """... to the last that sees its match again."""
    median_s: float
    """... to the median of those."""


async def _storm(server: Server, all_of_it: Serving, bots: int) -> Storm:
    sitters = await _seated(server, bots)
    port = int(server.address.rpartition(":")[2])
    epochs = {match: epoch for sitter in sitters for match, epoch in sitter.epochs.items()}
    try:
        server.end(signal.SIGKILL)
        welcomes = [sitter.welcomes for sitter in sitters]
        await asyncio.to_thread(all_of_it.start, *ALL, port=port)
        began = time.monotonic()
        attending = await until(
            lambda: all(it.welcomes > before for it, before in zip(sitters, welcomes, strict=True)), SOON_S
        )
        await until(lambda: asked_since(sitters, epochs).keys() == epochs.keys(), SOON_S)
    finally:
        await asyncio.gather(*[sitter.stop() for sitter in sitters])
    again = sorted(at - began for at in asked_since(sitters, epochs).values())
    return Storm(bots, attending, again[-1], median(again))


async def _seated(server: Server, bots: int) -> list[Sitter]:
    """Each in one match with its neighbour, dealt."""
    admin, turn = Admin(server.address, server.token), asyncio.Semaphore(AT_ONCE)

    async def arrive(number: int) -> Sitter:
        async with turn:
            sitter = Sitter(f"storm-{number}", await admin.register(f"storm-{number}"), server.address)
        sitter.start()
        return sitter

    async def pair(one: Sitter, other: Sitter) -> None:
        async with turn:
            await admin.create(one.name, other.name)

    sitters = await asyncio.gather(*[arrive(number) for number in range(bots)])
    await until(lambda: all(sitter.welcomes for sitter in sitters), SOON_S)
    await asyncio.gather(*[pair(*couple) for couple in zip(sitters[::2], sitters[1::2], strict=True)])
    await until(lambda: sum(len(sitter.asked) for sitter in sitters) == bots // 2, SOON_S)
    return sitters


def storm(bots: int, data: Path | None = None) -> Storm:
    """Once."""
    with serving(data) as all_of_it:
        return asyncio.run(_storm(all_of_it.start(*ALL), all_of_it, bots))


def rows(*, quick: bool = False, data: Path | None = None) -> list[Row]:
    """For the table. The new process has to wait for the lease of the dead one before it asks anybody anything."""
    found = storm(QUICK_BOTS if quick else BOTS, data)
    return [
        Row(f"{found.bots:,} bots that come back at once, until all attend", found.attending_s, "s"),
        Row("... until all see their matches again, the lease included", found.sitting_s, "s"),
        Row("... the median of them", found.median_s, "s"),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_BOTS} bots, half a minute")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    args = parser.parse_args()
    show(rows(quick=args.quick, data=args.data))
