"""The process in which the house's bots think; started by `house`, which holds its leash.

Reads one line of JSON from standard input ({"link": {"address", "insecure", "tls_pin"}, "players": [{"game", "sample", "token"}]}), and ends when that closes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import threading
from typing import Any

from seatwise.remote import run_async

MOST_HOUSE_MATCHES = 64


def main() -> None:
    """Runs until the leash is let go."""
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's business
    told = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_leash, daemon=True).start()
    asyncio.run(_run(told["link"], told["players"]))


def _end_with_the_leash() -> None:
    """At once, with whatever the bots are thinking about: their matches wait in the store."""
    sys.stdin.read()
    os._exit(0)


async def _run(link: dict[str, Any], players: list[dict[str, str]]) -> None:
    async with asyncio.TaskGroup() as group:
        for player in players:
            group.create_task(_play(link, **player))


async def _play(link: dict[str, Any], sample: str, game: str, token: str) -> None:
    await run_async(sample, game=game, token=token, queues=(), max_matches=MOST_HOUSE_MATCHES, **link)


if __name__ == "__main__":
    main()
