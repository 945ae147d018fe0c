"""`seatwise ctl` as a process, as an operator runs it."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from harness.house import House
from harness.wire import SOON_S


async def ctl(house: House, *args: str, token: str | None = None) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    named = ["--address", house.address, "--token", token or house.admin.token]
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, "-m", "seatwise", "ctl", *args, *named]
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    async with asyncio.timeout(SOON_S):
        said, complained = await process.communicate()
    return process.returncode or 0, said.decode(), complained.decode()


async def told(house: House, *args: str) -> list[dict[str, Any]]:
    """What `seatwise ctl --json` tells a program."""
    code, said, complained = await ctl(house, *args, "--json")
    assert code == 0, complained
    return [json.loads(line) for line in said.splitlines()]
