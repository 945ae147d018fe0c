"""A whole Seatwise server in a process of its own, with everything on."""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path
from typing import Any

from processes import say, wait_for_end

from seatwise_server import app, log
from seatwise_server.config import Config


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
    parser.add_argument("--house-bots", action="store_true")
    args = parser.parse_args()
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
