"""What the referee charges bots beyond their thinking, while 18 processes open connections without end.

python tests/bench/flood_charges.py [--quick]

The bots run with the priority of real time where this user may set it. In earnest they have machines of their own, so what
they wait for a core here would count as a charge.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).parents[1]))

from serving import serving
from table import Row, at_most, show

import seatwise
from seatwise.async_client import AsyncClient

BOTS = 4
MATCHES_EACH = 8
FLOODERS = 18
THINK_S = 0.02
SECONDS, QUICK_SECONDS = 60.0, 20.0
KEPT_OPEN = 20
"""Connections that a flooder holds at once; it closes the oldest for a new one."""
WORST_MS = 300.0
"""The bar. The allowance for the way is capped at the same figure."""
HALF_A_REQUEST = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(
    [0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 6, 6, 0, 0, 0, 0, 0]
)
"""The preface of HTTP/2, its settings, and the head of a PING that never comes."""

Thoughts = dict[str, dict[str, list[tuple[str, float]]]]
"""By match and seat: each card that was played, and the ms that the bot thought about it."""


class Noting(seatwise.Bot):
    """Thinks for the same time about each card, and notes how long that was."""

    thoughts: ClassVar[Thoughts] = defaultdict(lambda: defaultdict(list))
    finished: ClassVar[set[str]] = set()

    async def choose(self, view: Any) -> Any:
        """The first card."""
        began = time.monotonic()
        await asyncio.sleep(THINK_S)
        card = view.legal_cards[0]
        self.thoughts[self.match][str(self.seat)].append((str(card), (time.monotonic() - began) * 1000))
        return card

    def ended(self, result: seatwise.Result) -> None:
        """Only these matches have a record."""
        if not result.is_void:
            self.finished.add(self.match)


async def play_for(address: str, token: str, seconds: float) -> Thoughts:
    """Plays for so long, and returns the thoughts of the matches that came to their end."""
    async with AsyncClient(address, token) as admin:
        stamp = f"{time.time_ns():x}"[-10:]
        bots = [await admin.register_bot(f"f{stamp}-{number}") for number in range(BOTS)]
    runs = [
        asyncio.create_task(
            seatwise.run_async(Noting, address=address, token=bot.token, max_matches=MATCHES_EACH)
        )
        for bot in bots
    ]
    await asyncio.sleep(seconds)
    for run in runs:
        run.cancel()
    await asyncio.gather(*runs, return_exceptions=True)
    return {match: Noting.thoughts[match] for match in Noting.finished}


def open_connections(port: int, seconds: float) -> int:
    """Opens connections, sends half a request on each, and returns how many there were."""
    until, opened = time.monotonic() + seconds, 0
    kept: list[socket.socket] = []
    while time.monotonic() < until:
        with suppress(OSError):
            connection = socket.create_connection(("127.0.0.1", port), timeout=2)
            kept.append(connection)
            connection.sendall(HALF_A_REQUEST)
            opened += 1
        if len(kept) > KEPT_OPEN:
            kept.pop(0).close()
    return opened


def charges_beyond(record: dict[str, Any], thoughts: dict[str, list[tuple[str, float]]]) -> Iterator[float]:
    """Yields for each card how many ms its bot was charged beyond its thinking."""
    cards = [entry for entry in record["entries"] if entry["kind"] == "move" and "play" in entry["move"]]
    for seat, thought in thoughts.items():
        played = [entry for entry in cards if str(entry["seat"]) == seat]
        names = [entry["move"]["play"] for entry in played]
        if names != [name for name, _ in thought]:
            others = sorted({entry["kind"] for entry in record["entries"]} - {"move"})
            raise RuntimeError(f"seat {seat} played {names} and thought about {thought}; entries: {others}")
        yield from (entry["charged_ms"] - ms for entry, (_, ms) in zip(played, thought, strict=True))


async def _child(*args: object) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, __file__, *map(str, args), stdout=asyncio.subprocess.PIPE, limit=1 << 26
    )


async def measure(address: str, token: str, seconds: float) -> tuple[list[float], int]:
    """Returns what bots were charged beyond their thinking, in ms and rising order, and how many connections came."""
    port = address.rpartition(":")[2]
    playing = await _child("--play", address, "--token", token, "--seconds", seconds)
    flooding = [await _child("--flood", port, "--seconds", seconds) for _ in range(FLOODERS)]
    told, _ = await playing.communicate()
    opened = sum([int((await flooder.communicate())[0]) for flooder in flooding])
    found: list[float] = []
    async with AsyncClient(address, token) as admin:
        for match, thoughts in json.loads(told).items():
            found += charges_beyond(json.loads(await admin.get_record(match)), thoughts)
    return sorted(found), opened


def rows(*, quick: bool = False, data: Path | None = None) -> list[Row]:
    """For the table."""
    seconds = QUICK_SECONDS if quick else SECONDS
    with serving(data) as served:
        server = served.start("--role", "all", "--no-house-bots")
        flooded, opened = asyncio.run(measure(server.address, server.token, seconds))
    name = f"charged beyond thinking in a flood of {opened / seconds:,.0f} connections a second, the most of one move"
    return [at_most(name, flooded[-1], WORST_MS, "ms")]


def main() -> None:
    """Measures, or is one of the two loads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_SECONDS:g} s in place of {SECONDS:g} s")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--play", metavar="ADDRESS", help=argparse.SUPPRESS)
    parser.add_argument("--flood", type=int, metavar="PORT", help=argparse.SUPPRESS)
    parser.add_argument("--token", default="", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.play:
        with suppress(PermissionError, AttributeError):  # AttributeError: not on Linux
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
        print(json.dumps(asyncio.run(play_for(args.play, args.token, args.seconds))), flush=True)
    elif args.flood:
        print(open_connections(args.flood, args.seconds), flush=True)
    else:
        show(rows(quick=args.quick, data=args.data))


if __name__ == "__main__":
    main()
