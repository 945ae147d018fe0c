"""The process of the house bots, started by `house`.

It reads one line of JSON from standard input and ends when standard input closes. The line is {"link": {"address",
"insecure", "tls_pin"}, "players": [{"game", "sample", "token"}]}.
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
    """Runs the bots until standard input closes."""
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server handles Ctrl-C
    told = json.loads(sys.stdin.readline())
    threading.Thread(target=_exit_with_server, daemon=True).start()
    asyncio.run(_run(told["link"], told["players"]))


def _exit_with_server() -> None:
    """Ends the process at once, even while bots compute a move: their matches wait in the store."""
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
