"""The process of the hostile bots: apart, so that their work does not delay what the honest bots measure.

It reads its orders as one line of JSON from standard input, obeys them until the time is over or standard input ends, and
writes what it did as one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from seatwise import grpc_log_lines  # noqa: F401  # before anything that imports grpc
from seatwise.link.security import Security
from seatwise.stress.hostile import HOSTILE_KINDS, HostileBot


def main() -> int:
    """Obey the orders. Returns the exit code."""
    logging.disable()  # the SDK's own lines about refused streams: the server is meant to refuse them
    print(json.dumps(asyncio.run(obey_orders(json.loads(sys.stdin.readline())))), flush=True)
    return 0


async def obey_orders(orders: dict[str, Any]) -> list[dict[str, Any]]:
    """Play the hostile bots.

    Args:
        orders: `address`, `seconds`, `security` (the options of `seatwise.run`), and `bots`: a list of [kind, token].

    Returns:
        For each bot its `kind`, `acts` and `ends` (the statuses with which the server ended something), and `failure`:
        what went wrong in the bot itself, or an empty text.
    """
    security = Security.resolve_options(**orders["security"])
    bots = [(kind, HostileBot(orders["address"], token, security)) for kind, token in orders["bots"]]
    tasks = [asyncio.create_task(_act(kind, bot)) for kind, bot in bots]
    parent = asyncio.create_task(_await_parent_end())
    try:
        await asyncio.wait([parent], timeout=orders["seconds"])
    finally:
        for task in (*tasks, parent):
            task.cancel()
        await asyncio.gather(*tasks, parent, return_exceptions=True)
    failures = [_describe_failure(task) for task in tasks]
    return [_report(*each, failure) for each, failure in zip(bots, failures, strict=True)]


async def _act(kind: str, bot: HostileBot) -> None:
    await HOSTILE_KINDS[kind](bot)


async def _await_parent_end() -> None:
    """Return when standard input ends: the parent has gone, or wants an early end."""
    reader = asyncio.StreamReader()
    with suppress(OSError, ValueError):
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )
        await reader.read()


def _describe_failure(task: asyncio.Task[None]) -> str:
    if task.cancelled() or task.exception() is None:
        return ""
    return f"{type(task.exception()).__name__}: {task.exception()}"


def _report(kind: str, bot: HostileBot, failure: str) -> dict[str, Any]:
    found = asdict(bot)
    return {"kind": kind, "acts": found["acts"], "ends": found["ends"], "failure": failure}


if __name__ == "__main__":
    raise SystemExit(main())
