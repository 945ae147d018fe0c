"""The program `seatwise` at a terminal, in a thread of this process: a process for each command takes most of a second."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from threading import Lock
from typing import Any
from unittest.mock import patch

from harness.house import House
from harness.wire import SOON_S
from seatwise.cli import main

_terminal = Lock()
"""The output of a process is one, so commands take turns."""


async def seatwise(*args: str, data: Path | None = None) -> tuple[int, str, str]:
    """Exit code, standard output, standard error. `data` is the folder in which the user keeps tokens."""
    async with asyncio.timeout(SOON_S * 3):
        return await asyncio.to_thread(_run, args, data)


def _run(args: tuple[str, ...], data: Path | None) -> tuple[int, str, str]:
    said, complained = StringIO(), StringIO()
    own = {"SEATWISE_DATA": str(data)} if data else {}
    with _terminal, patch.dict(os.environ, own), redirect_stdout(said), redirect_stderr(complained):
        return main(args), said.getvalue(), complained.getvalue()


async def ctl(house: House, *args: str, token: str | None = None) -> tuple[int, str, str]:
    """`seatwise ctl`, as an operator runs it."""
    return await seatwise("ctl", *args, "--address", house.address, "--token", token or house.admin.token)


async def told(house: House, *args: str) -> list[dict[str, Any]]:
    """What `seatwise ctl --json` tells a program."""
    code, said, complained = await ctl(house, *args, "--json")
    assert code == 0, complained
    return [json.loads(line) for line in said.splitlines()]
