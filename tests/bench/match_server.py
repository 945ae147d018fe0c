"""A whole Seatwise server in a process of its own, with everything on; `--journal none` answers appends at once."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from processes import say, wait_for_end

from seatwise_server import app, log
from seatwise_server.config import Config
from seatwise_server.store.group_commit.writer import AppendResult
from seatwise_server.store.journal import Journal


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


async def serve(config: Config, embedded: Any) -> None:
    """Serves until the parent lets go."""
    async with app.running(config, embedded) as server:
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
    args = parser.parse_args()
    if args.journal == "none":
        app.Flusher = NoJournal  # type: ignore[assignment,misc]
    log.configure("info", is_terminal=False)
    config = Config(port=0, ws_port=0, proxies=("127.0.0.0/8",), data=args.data, house_bots=args.house_bots)
    embedded = app.embedded_redis(config)
    assert embedded
    try:
        asyncio.run(serve(config, embedded))
    finally:
        embedded.stop()


if __name__ == "__main__":
    main()
