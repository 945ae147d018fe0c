"""How long matches stand still when their referee is killed, and when it is stopped in order.

python tests/bench/takeover.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import signal
import time
from pathlib import Path
from statistics import median

from serving import FRONT, REFEREE, Server, serving
from sitters import Admin, Sitter, asked_since, until
from table import Row, at_most, show

from seatwise_server.timings import REFEREE_LEASE_S

MATCHES, QUICK_MATCHES = 400, 60
"""At three referees together."""
BOTS = 16
SOON_S = 120.0
PASSES, QUICK_PASSES = 3, 1


class Crew:
    """Bots at their tables, who wait for what happens to their referees."""

    def __init__(self, front: Server) -> None:
        self._admin = Admin(front.address, front.token)
        self._front = front
        self._bots: list[Sitter] = []

    async def sit(self, matches: int) -> None:
        """So many matches, dealt; in each somebody is asked."""
        for number in range(BOTS):
            name = f"sitter-{number}"
            self._bots.append(Sitter(name, await self._admin.register(name), self._front.address))
            self._bots[-1].start()
        pairs = itertools.cycle(itertools.combinations([bot.name for bot in self._bots], 2))
        for _ in range(matches):
            await self._admin.create(*next(pairs))
        await until(lambda: sum(len(bot.asked) for bot in self._bots) == matches, SOON_S)

    def at(self, address: str) -> set[str]:
        """The matches that are there."""
        return {match for bot in self._bots for match, at in bot.addresses.items() if at == address}

    async def lose(self, referee: Server, number: signal.Signals) -> float:
        """Sends the signal, and returns how many seconds it takes until all its matches are asked again somewhere else."""
        lost = self.at(referee.address)
        epochs = {match: epoch for bot in self._bots for match, epoch in bot.epochs.items() if match in lost}
        began = time.monotonic()
        referee.process.send_signal(number)
        await until(lambda: lost <= asked_since(self._bots, epochs).keys(), SOON_S)
        again = asked_since(self._bots, epochs)
        return max(again[match] - began for match in lost)

    async def go(self) -> None:
        """All leave."""
        await asyncio.gather(*[bot.stop() for bot in self._bots])


async def _gaps(front: Server, doomed: Server, leaving: Server, matches: int) -> tuple[float, float]:
    crew = Crew(front)
    try:
        await crew.sit(matches)
        killed = await crew.lose(doomed, signal.SIGKILL)
        stopped = await crew.lose(leaving, signal.SIGTERM)
    finally:
        await crew.go()
    return killed, stopped


def takeover(matches: int, data: Path | None = None) -> tuple[float, float]:
    """After a kill, and after a stop in order: once each."""
    with serving(data) as all_of_it:
        front = all_of_it.start(*FRONT)
        doomed, leaving, _ = (all_of_it.start(*REFEREE) for _ in range(3))
        return asyncio.run(_gaps(front, doomed, leaving, matches))


def rows(*, quick: bool = False, data: Path | None = None) -> list[Row]:
    """For the table: medians over the passes, of the last match."""
    matches, passes = (QUICK_MATCHES, QUICK_PASSES) if quick else (MATCHES, PASSES)
    found = [takeover(matches, data) for _ in range(passes)]
    killed, stopped = ([each[at] for each in found] for at in (0, 1))
    return [
        at_most(
            "takeover after a kill, the last match of it", median(killed), REFEREE_LEASE_S + 1, "s"
        ),
        at_most("handover when a referee is stopped, the last match of it", median(stopped), 1, "s"),
    ]  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help=f"once, {QUICK_MATCHES} matches, a quarter of a minute"
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    args = parser.parse_args()
    show(rows(quick=args.quick, data=args.data))
