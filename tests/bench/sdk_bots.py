"""Bots as their authors write them, through the SDK: four in this process, each in many matches at once."""

from __future__ import annotations

import argparse
import asyncio
import os

from processes import cpu_s, say

from seatwise.kits.ugo.samples import RandomCard
from seatwise.remote import run_async
from seatwise.ugo import Card, View

MATCHES = 16
"""Of one bot at once."""


class Counted(RandomCard):
    """Counts what it plays; orders of cards, which the SDK has a default for, are not counted."""

    moves = 0

    def choose(self, view: View) -> Card:
        """Any card."""
        Counted.moves += 1
        return super().choose(view)


async def main(args: argparse.Namespace) -> None:
    """Plays, measures, tells."""
    for token in args.tokens:
        bot = run_async(Counted, game="ugo", address=args.address, token=token, max_matches=MATCHES)
        task = asyncio.create_task(bot)
        task.add_done_callback(lambda done: done.result())
    await asyncio.sleep(args.warm)
    moves, spent = Counted.moves, cpu_s(os.getpid())
    await asyncio.sleep(args.seconds)
    say({"cpu_us": 1e6 * (cpu_s(os.getpid()) - spent) / max(1, Counted.moves - moves)})
    os._exit(0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("tokens", nargs="+")
    parser.add_argument("--warm", type=float, default=4)
    parser.add_argument("--seconds", type=float, default=5)
    asyncio.run(main(parser.parse_args()))
