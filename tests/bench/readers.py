"""How much callers without a token that ask for long lists stretch the matches of paced bots.

python tests/bench/readers.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[1]))

import grpc
from matches.one_match import Desk
from serving import serving
from table import Row, at_most, show

import seatwise
from seatwise.async_client import AsyncClient
from seatwise.v1 import match_service_pb2
from seatwise_referee.journal import canonical_json, encode_entry
from seatwise_server.play.delivery import Delivery, end_of
from seatwise_server.store import Store, new_client
from seatwise_server.store.matches import facets_of

CALLERS_NICENESS = 15
"""In earnest callers are on machines of their own."""
STORED = 500
CALLERS = 6
RUNS = 3
MATCHES = 6
SEATS = 2
PAGE = 50
PACE_S = 0.008
KEEP_S = 3600
LIST = "/seatwise.v1.MatchService/ListMatches"


async def store_matches(url: str, count: int) -> None:
    """Writes matches that are over, as a server has left them."""
    desk = Desk()
    desk.sit_all()
    desk.play_out(ms_each=7)
    client = new_client(url)
    store = Store(client)
    for number in range(count):
        setup = replace(desk.setup, match=f"matches/stored-{number}")
        fields: dict[str, Any] = {"format": "seatwise.journal/1", "setup": canonical_json(setup.to_json())}
        meta = {**fields, "state": "SEATING", "queue": "created"}
        await store.matches.create_match(setup.match, meta, facets=facets_of(setup))
        epoch, _ = await store.journal.claim_match(setup.match, "bench", 0)
        end = end_of(setup, [encode_entry(entry) for entry in desk.journal])
        await Delivery(store, KEEP_S).deliver_match(setup, epoch, "bench", end)
    await client.close_connections()


async def call_lists(address: str) -> None:
    """Asks for lists in a closed loop until it is cancelled; prints how many it got."""
    request = match_service_pb2.ListMatchesRequest(page_size=PAGE).SerializeToString()
    counts, refused = [0], [0]

    async def ask_over_http() -> None:
        url = urlsplit(address)
        assert url.hostname
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        while True:
            writer.write(f"GET /v1/matches?pageSize={PAGE} HTTP/1.1\r\nhost: bench\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.split()[1]))
            (counts if b" 200 " in head.split(b"\r\n")[0] else refused)[0] += 1

    async def ask() -> None:
        async with grpc.aio.insecure_channel(
            address, options=[("grpc.use_local_subchannel_pool", 1)]
        ) as channel:
            call: Any = channel.unary_unary(LIST)
            while True:
                try:
                    await call(request)
                    counts[0] += 1
                except grpc.aio.AioRpcError:
                    refused[0] += 1
                    await asyncio.sleep(0.1)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(CALLERS):
                group.create_task(ask_over_http() if "://" in address else ask())
    finally:
        print(f"{counts[0]} {refused[0]}", flush=True)


class Paced(seatwise.Bot):
    """Thinks for the same time about each card."""

    async def choose(self, view: Any) -> Any:
        """The first card."""
        await asyncio.sleep(PACE_S)
        return view.legal_cards[0]


async def play_matches(address: str, token: str, bot: type[seatwise.Bot] = Paced) -> float:
    """Plays all matches at once with such bots, and returns the seconds from start to end."""
    async with AsyncClient(address, token) as admin:
        stamp = f"{time.time_ns():x}"
        bots = [await admin.register_bot(f"p{stamp[-10:]}-{number}") for number in range(MATCHES * SEATS)]
        running = [
            asyncio.create_task(
                seatwise.run_async(bot, address=address, token=registered.token, queues=(), max_matches=1)
            )
            for registered in bots
        ]
        await asyncio.sleep(1.0)
        began = time.monotonic()
        made = [
            await admin.create_match("ugo", [each.bot for each in bots[at : at + SEATS]], {"rounds": 4})
            for at in range(0, len(bots), SEATS)
        ]
        left = {match.name for match in made}
        while left:
            await asyncio.sleep(0.05)
            for name in list(left):
                if (await admin.get_match(name)).HasField("end_time"):
                    left.discard(name)
        took_s = time.monotonic() - began
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return took_s


async def _child(*args: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, __file__, *args, stdout=asyncio.subprocess.PIPE
    )


async def measure(address: str, token: str, door: str = "") -> tuple[float, str]:
    """Returns how long the matches took with callers at this door, or without any, and how many lists these got."""
    asking = None
    if door:
        asking = await _child("--call", door)
        await asyncio.sleep(2.0)
    playing = await _child("--play", address, "--token", token)
    told, _ = await playing.communicate()
    lists = "0"
    if asking:
        with suppress(ProcessLookupError):
            asking.terminate()
        lists = (await asking.communicate())[0].decode().strip()
    return float(told), lists


async def compare(address: str, token: str, runs: int, doors: Sequence[str]) -> list[list[float]]:
    """Returns for each door the ratio of each run to one without callers, in turn."""
    ratios: list[list[float]] = [[] for _ in doors]
    for _ in range(runs):
        alone_s, _ = await measure(address, token)
        for door, its in zip(doors, ratios, strict=True):
            beside_s, lists = await measure(address, token, door)
            its.append(beside_s / alone_s)
            said = f"alone {alone_s:.2f} s, beside callers at {door} {beside_s:.2f} s"
            print(f"{said} ({lists} lists got and refused): {its[-1]:.2f} times", file=sys.stderr, flush=True)
    return ratios


def rows(*, quick: bool = False, data: Path | None = None) -> list[Row]:
    """For the table."""
    with serving(data) as served:
        asyncio.run(store_matches(served.redis.url, STORED))
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        server = served.start("--role", "all", "--no-house-bots", "--http-port", str(port))
        doors = (server.address, f"http://127.0.0.1:{port}")
        found = asyncio.run(compare(server.address, server.token, 1 if quick else RUNS, doors))
    named = f"{MATCHES} matches of paced bots beside {CALLERS} callers that list {PAGE} of {STORED} matches"
    slowest = max(map(statistics.median, found))
    return [at_most(f"{named} over gRPC or HTTP: time, times that without them", slowest, 1.2, "x")]


def main() -> None:
    """Measures, or is one of the two loads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one pair of runs")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--call", metavar="ADDRESS", help=argparse.SUPPRESS)
    parser.add_argument("--play", metavar="ADDRESS", help=argparse.SUPPRESS)
    parser.add_argument("--token", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.call:
        asyncio.run(_call_until_terminated(args.call))
    elif args.play:
        print(asyncio.run(play_matches(args.play, args.token)), flush=True)
    else:
        show(rows(quick=args.quick, data=args.data))


async def _call_until_terminated(address: str) -> None:
    os.nice(CALLERS_NICENESS)
    task = asyncio.create_task(call_lists(address))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with suppress(asyncio.CancelledError):
        await task


if __name__ == "__main__":
    main()
