"""Bots as their authors write them, through the SDK: four in this process, each in many matches at once."""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import time
from collections import Counter
from collections.abc import Coroutine
from typing import Any

from processes import cpu_s, say

from seatwise.link.referee_link import RefereeLink
from seatwise.link.wire import GrpcStream
from seatwise.remote import run_async
from seatwise.samples.random import RandomCard
from seatwise.ugo import Card, View


class Counted(RandomCard):
    """Counts what it plays; orders of cards, which the SDK has a default for, are not counted."""

    moves = 0

    def choose(self, view: View) -> Card:
        """Any card."""
        Counted.moves += 1
        return super().choose(view)


class Count:
    """Counts what gRPC carries on the streams of matches, and tasks. It costs some microseconds for each message."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()

    def watch_streams(self) -> None:
        """Counts from now on, in this process."""
        dispatch, write = RefereeLink._dispatch_response, GrpcStream.write

        def count_read(link: RefereeLink, response: Any) -> None:
            self.found.update(read=1, bytes=response.ByteSize())
            dispatch(link, response)

        async def count_written(stream: GrpcStream[Any, Any], message: Any) -> None:
            self.found.update(written=1, bytes=message.ByteSize())
            await write(stream, message)

        RefereeLink._dispatch_response = count_read  # type: ignore[method-assign]
        GrpcStream.write = count_written  # type: ignore[method-assign]
        asyncio.get_running_loop().set_task_factory(self._make_task)

    def read_all(self) -> Counter[str]:
        """What there was so far, and how often a thread of this process waited."""
        waits = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        return Counter({**self.found, "waits": waits})

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **others: Any
    ) -> asyncio.Task[Any]:
        self.found["tasks"] += 1
        return asyncio.Task(work, loop=loop, **others)


async def main(args: argparse.Namespace) -> None:
    """Plays, measures, tells."""
    count = Count()
    if args.count:
        count.watch_streams()
    for token in args.tokens:
        bot = run_async(Counted, game="ugo", address=args.address, token=token, max_matches=args.matches)
        task = asyncio.create_task(bot)
        task.add_done_callback(lambda done: done.result())
    await asyncio.sleep(args.warm)
    before = count.read_all()
    began, moves, cpu = time.perf_counter(), Counted.moves, cpu_s(os.getpid())
    await asyncio.sleep(args.seconds)
    moves = Counted.moves - moves
    spent = cpu_s(os.getpid()) - cpu
    after = count.read_all()
    found = {name: (after[name] - before[name]) / max(1, moves) for name in after}
    say(
        {"rate": moves / (time.perf_counter() - began), "cpu_us": 1e6 * spent / max(1, moves), "count": found}
    )
    os._exit(0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("tokens", nargs="+")
    parser.add_argument("--matches", type=int, default=16, help="of one bot at once")
    parser.add_argument("--count", action="store_true", help="messages, bytes and tasks too")
    parser.add_argument("--warm", type=float, default=4)
    parser.add_argument("--seconds", type=float, default=5)
    asyncio.run(main(parser.parse_args()))
