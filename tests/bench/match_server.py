"""A whole Seatwise server in a process of its own, with everything on; `--journal none` answers appends at once."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from processes import say, wait_for_end
from redis.asyncio import Redis

from seatwise_server import app, log
from seatwise_server.config import Config
from seatwise_server.play.delivery import Delivery
from seatwise_server.store.group_commit.writer import AppendResult
from seatwise_server.store.journal import Journal
from seatwise_server.store.redis.shared_messages import SharedMessages

IDLE_S = 2.0
BLOCKING = ("XREADGROUP", "XREAD")


class NoJournal:
    """Stands in for the flusher: what is appended stays in memory and is answered with the next turn of the loop."""

    healthy = True

    def __init__(self) -> None:
        self.entries: dict[str, list[bytes]] = defaultdict(list)
        self._unanswered: list[Callable[[AppendResult], None]] = []

    @classmethod
    def of(cls, *_: Any) -> Self:
        """As `Flusher.of`; and the ends of matches are read from here too."""
        it = cls()

        async def read(_: Journal, match: str, after_seq: int = 0) -> list[bytes]:
            return it.entries.pop(match, [])[after_seq:]

        Journal.read_entries = read  # type: ignore[method-assign]
        return it

    def start(self) -> None:
        """As `Flusher.start`."""

    async def close(self, timeout_s: float = 0.0) -> None:
        """As `Flusher.close`."""

    def append_entries(
        self,
        match: str,
        _epoch: int,
        _owner: str,
        _first_seq: int,
        entries: Sequence[bytes],
        done: Callable[[AppendResult], None],
    ) -> None:
        """As `Flusher.append_entries`."""
        self.entries[match] += entries
        if not self._unanswered:
            asyncio.get_running_loop().call_soon(self._answer)
        self._unanswered.append(done)

    async def wait_for_replicas(self, _match: str) -> None:
        """As `Flusher.wait_for_replicas`."""

    def keep_tail(self, match: str, _epoch: int, _owner: str, entries: Sequence[bytes]) -> None:
        """As `Flusher.keep_tail`."""
        self.entries[match] = list(entries)

    def tail_entries(self, match: str) -> list[bytes]:
        """As `Flusher.tail_entries`."""
        return self.entries[match]

    def drop_tail(self, match: str) -> None:
        """As `Flusher.drop_tail`."""
        self.entries.pop(match, None)

    def _answer(self) -> None:
        answered, self._unanswered = self._unanswered, []
        for done in answered:
            done(AppendResult.OK)


class StoreCalls:
    """Counts what the server awaits of Redis: single commands, and a message with the commands of many as one. Appends and blocking reads are not counted."""

    def __init__(self) -> None:
        self.count = 0
        self.at_delivery: list[tuple[float, int]] = []
        """When each delivery was done, and the count by then."""
        self.idle_rate = 0.0
        """Calls a second without bots."""

    async def measure_idle(self) -> None:
        """Measures the calls of a server that has no bots."""
        before = self.count
        await asyncio.sleep(IDLE_S)
        self.idle_rate = (self.count - before) / IDLE_S

    def for_each_match(self) -> float:
        """Calls for each delivery of the second half, without those that the server makes at any time."""
        skipped = len(self.at_delivery) // 2  # until then more matches are opened than delivered
        first, last = self.at_delivery[skipped], self.at_delivery[-1]
        if last[1] == first[1]:
            raise RuntimeError(
                "matches were delivered and no call to Redis was counted: the server sends them another way"
            )
        idle = self.idle_rate * (last[0] - first[0])
        return (last[1] - first[1] - idle) / (len(self.at_delivery) - 1 - skipped)

    def watch_calls(self) -> None:
        """Counts from now on, in this process."""
        execute, ask, deliver = Redis.execute_command, SharedMessages._ask_redis, Delivery.deliver_match

        async def execute_command(redis: Redis, *command: Any, **options: Any) -> Any:
            self.count += command[0] not in BLOCKING
            return await execute(redis, *command, **options)  # type: ignore[no-untyped-call]

        async def ask_redis(messages: SharedMessages, commands: Any) -> Any:
            self.count += 1
            return await ask(messages, commands)

        async def deliver_match(*args: Any) -> bool:
            is_done = await deliver(*args)
            self.at_delivery.append((time.monotonic(), self.count))
            return is_done

        Redis.execute_command = execute_command  # type: ignore[method-assign]
        SharedMessages._ask_redis = ask_redis  # type: ignore[method-assign]
        Delivery.deliver_match = deliver_match  # type: ignore[method-assign]


async def serve(config: Config, embedded: Any, calls: StoreCalls | None) -> None:
    """Serves until the parent lets go."""
    async with app.running(config, embedded) as server:
        if calls:
            await calls.measure_idle()
        token = config.admin_token_file.read_text().strip()
        say(
            {
                "address": server.address,
                "ws": server.ws_address,
                "pid": os.getpid(),
                "redis": embedded.pid,
                "admin": token,
            }
        )
        await asyncio.to_thread(wait_for_end)


def main() -> None:
    """The process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--journal", choices=["always", "none"], default="always")
    parser.add_argument("--house-bots", action="store_true")
    parser.add_argument("--calls", type=Path, metavar="FILE", help="where to write how often Redis was asked")
    args = parser.parse_args()
    calls = StoreCalls() if args.calls else None
    if calls:
        calls.watch_calls()
    if args.journal == "none":
        app.Flusher = NoJournal  # type: ignore[assignment,misc]
    log.configure("info", is_terminal=False)
    config = Config(port=0, ws_port=0, proxies=("127.0.0.0/8",), data=args.data, house_bots=args.house_bots)
    embedded = app.embedded_redis(config)
    assert embedded
    try:
        asyncio.run(serve(config, embedded, calls))
    finally:
        embedded.stop()
    if calls:
        args.calls.write_text(json.dumps(calls.for_each_match()))


if __name__ == "__main__":
    main()
