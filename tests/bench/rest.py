"""What a request costs the server over HTTP and JSON, beside the same call over gRPC.

python tests/bench/rest.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import grpc
from google.protobuf.message import Message
from processes import cpu_now_s
from readers import store_matches
from serving import serving
from table import Row, at_most, show

from seatwise.v1 import game_service_pb2, match_service_pb2

STORED = 60
PASSES = 3
ROUNDS = 8
CALLS = 15
"""Of each kind in a round. Rounds are short, so that other work on the machine slows all kinds alike."""
MATCH = "matches/stored-1"
V1 = "seatwise.v1"


@dataclass(frozen=True, slots=True)
class Pair:
    """One call by both doors."""

    name: str
    method: str
    request: Message
    path: str


PAIRS = (
    Pair("a game", "GameService/GetGame", game_service_pb2.GetGameRequest(name="games/ugo"), "games/ugo"),
    Pair("a match", "MatchService/GetMatch", match_service_pb2.GetMatchRequest(name=MATCH), MATCH),
    Pair("a record", "MatchService/GetRecord", match_service_pb2.GetRecordRequest(name=MATCH), f"{MATCH}/record"),
    Pair("50 matches", "MatchService/ListMatches", match_service_pb2.ListMatchesRequest(), "matches"),
)  # fmt: skip
GET_BAR, LIST_BAR = 1.3, 1.6


class HttpCaller:
    """One connection that is kept open."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition("//")[2].rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._file = self._socket.makefile("rb")

    def get(self, path: str) -> int:
        """The status."""
        self._socket.sendall(f"GET /v1/{path} HTTP/1.1\r\nhost: bench\r\n\r\n".encode())
        status, headers = int(self._file.readline().split()[1]), {}
        while (line := self._file.readline().strip()) != b"":
            name, _, value = line.decode().partition(": ")
            headers[name] = value
        self._file.read(int(headers.get("content-length", "0")))
        return status

    def close(self) -> None:
        """Closes it."""
        self._file.close()
        self._socket.close()


class Doors:
    """Both doors of one gateway."""

    def __init__(self, pid: int, grpc_address: str, http_address: str) -> None:
        self._pid = pid
        self._channel = grpc.insecure_channel(grpc_address)
        self._http = HttpCaller(http_address)

    def by_grpc(self, pair: Pair) -> Callable[[], object]:
        """One call."""
        call = self._channel.unary_unary(f"/{V1}.{pair.method}", None, None)
        request = pair.request.SerializeToString()
        return lambda: call(request)

    def by_http(self, pair: Pair) -> Callable[[], object]:
        """One request."""

        def get() -> None:
            status = self._http.get(pair.path)
            assert status == 200, f"{pair.path} gives {status}"

        return get

    def cost_us(self, call: Callable[[], object], calls: int) -> float:
        """Microseconds of the server's CPU for one call."""
        before = cpu_now_s(self._pid)
        for _ in range(calls):
            call()
        return 1e6 * (cpu_now_s(self._pid) - before) / calls

    def close(self) -> None:
        """Closes both."""
        self._channel.close()
        self._http.close()


@contextmanager
def doors(data: Path | None) -> Iterator[Doors]:
    """A gateway with matches in its store."""
    with serving(data) as served:
        asyncio.run(store_matches(served.redis.url, STORED))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        free_of_charge = ("--reads-per-second", "0", "--anonymous-reads-per-second", "0")
        server = served.start("--role", "gateway", "--http-port", str(port), *free_of_charge)
        both = Doors(server.process.pid, server.address, f"http://127.0.0.1:{port}")
        try:
            yield both
        finally:
            both.close()


@dataclass(frozen=True, slots=True)
class Costs:
    """Of one kind of call in one pass, in microseconds."""

    grpc: float
    http: float


def measure(both: Doors, pair: Pair) -> Costs:
    """Both, in turns."""
    plain, call = both.by_http(pair), both.by_grpc(pair)
    found: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for costs_us, kind in zip(found, (call, plain), strict=True):
            costs_us.append(both.cost_us(kind, CALLS))
    return Costs(*map(statistics.median, found))


def costs(data: Path | None, *, quick: bool) -> dict[str, list[Costs]]:
    """By name of the pair: one for each pass."""
    found: dict[str, list[Costs]] = {pair.name: [] for pair in PAIRS}
    with doors(data) as both:
        for pair in PAIRS:
            measure(both, pair)  # what is done once is not counted
        for _ in range(1 if quick else PASSES):
            for pair in PAIRS:
                found[pair.name].append(measure(both, pair))
    return found


def rows(*, quick: bool = False, data: Path | None = None) -> list[Row]:
    """For the table."""
    return [
        at_most(
            f"GET of {name}: server CPU, times the call over gRPC",
            statistics.median(each.http / each.grpc for each in passes),
            LIST_BAR if "50" in name else GET_BAR,
            "x",
        )
        for name, passes in costs(data, quick=quick).items()
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one pass")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    args = parser.parse_args()
    show(rows(quick=args.quick, data=args.data))
