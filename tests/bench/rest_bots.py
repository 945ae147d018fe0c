"""What a move of bots over HTTP costs the server and its relay, beside the same bots over gRPC.

python tests/bench/rest_bots.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

from processes import child, cpu_s
from serving import Server, serving
from table import Row, show

from seatwise.async_client import AsyncClient

PASSES = 3
BOTS = 8
AT_ONCE = 8
"""Matches of one bot."""
WARM_S = 4.0
SECONDS = 6.0


async def tokens_of_new_bots(server: Server) -> list[str]:
    """Registers bots."""
    stamp = f"{time.time_ns():x}"[-8:]
    async with AsyncClient(server.address, server.token) as admin:
        return [(await admin.register_bot(f"r{stamp}-{number}")).token for number in range(BOTS)]


def pids_of(server: Server) -> list[int]:
    """The server and the processes that it has started; Redis is none of them."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    return [server.pid, *map(int, children)]


def cost_us(server: Server, address: str, folder: Path) -> float:
    """Microseconds of CPU of server and relay for one move."""
    tokens = asyncio.run(tokens_of_new_bots(server))
    timing = ("--matches", str(AT_ONCE), "--warm", str(WARM_S), "--seconds", str(SECONDS))
    with child("sdk_bots.py", address, *tokens, *timing, log=folder / "bots.log") as bots:
        time.sleep(WARM_S + 1)
        pids = pids_of(server)
        before, began = sum(map(cpu_s, pids)), time.monotonic()
        time.sleep(SECONDS - 2)
        spent_s, took_s = sum(map(cpu_s, pids)) - before, time.monotonic() - began
        moves = bots.hear()["rate"] * took_s
    return 1e6 * spent_s / moves


def rows(*, quick: bool = False, data: Path | None = None) -> list[Row]:
    """For the table: information, without a bar."""
    with TemporaryDirectory() as folder, serving(data) as served:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = served.start("--role", "all", "--no-house-bots", "--http-port", str(port))
        ways = (server.address, f"rest+http://127.0.0.1:{port}")
        pairs = [
            [cost_us(server, address, Path(folder)) for address in ways]
            for _ in range(1 if quick else PASSES)
        ]
    by_grpc, by_http = (statistics.median(pair[way] for pair in pairs) for way in (0, 1))
    ratio = statistics.median(http / grpc for grpc, http in pairs)
    return [
        Row("server CPU per move of bots over gRPC", by_grpc, "us"),
        Row("server and relay CPU per move of bots over HTTP", by_http, "us"),
        Row("... times that over gRPC", ratio, "x"),
    ]


def main() -> None:
    """Shows the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one pass")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    args = parser.parse_args()
    show(rows(quick=args.quick, data=args.data))


if __name__ == "__main__":
    main()
