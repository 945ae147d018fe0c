"""One run each: a server, a load, and what came of it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grpc
from processes import Child, child, program

from seatwise.v1 import bot_service_pb2, bot_service_pb2_grpc

SDK_PROCESSES = 4
SDK_BOTS = 16
SEATS = 4


@dataclass(frozen=True, slots=True)
class Window:
    """What a load has found."""

    rate: float
    """Echoes or durable moves a second."""
    server_us: float
    """CPU of the server process for each of them."""
    redis_us: float
    """CPU of the embedded Redis, which is a process of its own."""
    p50_ms: float
    p99_ms: float
    matches: float
    """At the table, on average."""
    matches_ended: int
    other_cores: float
    """What processes that are not of the bench had meanwhile."""
    rejections: tuple[str, ...]

    @classmethod
    def of(cls, heard: dict[str, Any]) -> Window:
        """From the line of JSON that the load says."""
        server_us, *others = heard["cpu_us"]
        return cls(
            rate=heard["rate"],
            server_us=server_us,
            redis_us=others[0] if len(others) > 1 else 0.0,  # the last is the load itself
            p50_ms=heard["p50_ms"],
            p99_ms=heard["p99_ms"],
            matches=heard["matches"],
            matches_ended=heard["matches_ended"],
            other_cores=heard["other_cores"],
            rejections=tuple(heard["rejections"]),
        )


def echo(seconds: float, rate: float = 0) -> Window:
    """The yardstick."""
    with _folder(None) as folder, child("echo_server.py", log=folder / "server.log") as server:
        told = server.hear()
        return _load(folder, "echo", told["address"], "--pids", told["pid"], *_window(seconds, rate))


def matches(
    seconds: float,
    count: int,
    rate: float = 0,
    *,
    journal: str = "always",
    data: Path | None = None,
    by_websocket: bool = False,
    extra: Sequence[object] = (),
) -> Window:
    """The server with everything on, its data in a folder of its own within `data`; bots play by gRPC, or by WebSocket."""
    with _server(data, journal) as (folder, told):
        pids = ("--pids", told["pid"], told["redis"])
        door = ("--ws", told["ws"]) if by_websocket else ()
        what = ("matches", told["address"], "--admin", told["admin"], "--matches", count, *door, *extra)
        return _load(folder, *what, *_window(seconds, rate), *pids)


def peer(what: str, command: Sequence[str], seconds: float, count: int, extra: Sequence[object]) -> Window:
    """A server that is not ours, with as many matches: what `peers_load` has found of it."""
    env = {**os.environ, "NODE_ENV": "production"}
    with _folder(None) as folder, program(what, command, log=folder / "server.log", env=env) as server:
        told = server.hear()
        args = (
            what,
            told["address"],
            "--matches",
            count,
            *_window(seconds, 0),
            "--pids",
            told["pid"],
            *extra,
        )
        with child("peers_load.py", *args, log=folder / "load.log") as load:
            return Window.of(load.hear())


def store_calls(seconds: float, count: int, rate: float = 0) -> float:
    """How often the server awaits Redis for one match, from its pairing to its delivery, in the middle of a load."""
    with _folder(None) as folder:
        found = folder / "calls.json"
        server_args = ("match_server.py", folder / "data", "--calls", found)
        with child(*server_args, log=folder / "server.log") as server:
            told = server.hear()
            what = ("matches", told["address"], "--admin", told["admin"], "--matches", count)
            _load(folder, *what, *_window(seconds, rate), "--pids", told["pid"])
        return float(json.loads(found.read_text()))


def builders(seconds: float, count: int, data: Path | None = None) -> dict[str, Any]:
    """Ubongo: what `ubongo_load` has found."""
    with _server(data, "always") as (folder, told):
        pids = ("--pids", told["pid"], told["redis"])
        what = (told["address"], "--admin", told["admin"], "--matches", count, "--seconds", seconds)
        with child("ubongo_load.py", *what, *pids, log=folder / "load.log") as load:
            heard: dict[str, Any] = load.hear()
            return heard


def sdk_bots(seconds: float) -> tuple[float, float]:
    """Durable moves a second by bots of the SDK, and the CPU of a bot for each, in microseconds."""
    with _server(None, "always") as (folder, told), ExitStack() as stack:
        tokens = _register(told["address"], told["admin"])
        bots: list[Child] = []
        for number in range(SDK_PROCESSES):
            args = (told["address"], *tokens[number::SDK_PROCESSES], "--seconds", seconds)
            bots.append(stack.enter_context(child("sdk_bots.py", *args, log=folder / f"bots-{number}.log")))
        heard = [bot.hear() for bot in bots]
    rate = sum(each["rate"] for each in heard)
    return rate, sum(each["rate"] * each["cpu_us"] for each in heard) / max(1.0, rate)


def sdk_moves(seconds: float, matches: int, *, by_web_socket: bool = False) -> dict[str, Any]:
    """One process with four bots of so many matches each, alone on a server: what `sdk_bots` has found."""
    with _server(None, "always") as (folder, told):
        tokens = _register(told["address"], told["admin"])[:SEATS]
        address = told["ws"] if by_web_socket else told["address"]
        what = (address, *tokens, "--matches", matches, "--seconds", seconds, "--count")
        with child("sdk_bots.py", *what, log=folder / "bots.log") as bots:
            heard: dict[str, Any] = bots.hear()
            return heard


def fdatasync_ms(data: Path | None, times: int = 50) -> float:
    """How long this disk takes to keep 4 kB; the median, without anything of ours."""
    took = []
    with _folder(data) as folder, (folder / "file").open("ab", buffering=0) as file:
        sync = getattr(os, "fdatasync", os.fsync)
        for _ in range(times):
            file.write(bytes(4096))
            began = time.perf_counter()
            sync(file.fileno())
            took.append(time.perf_counter() - began)
    return 1e3 * sorted(took)[times // 2]


@contextmanager
def _folder(within: Path | None) -> Iterator[Path]:
    with TemporaryDirectory(prefix="seatwise-bench-", dir=within) as name:
        yield Path(name)


@contextmanager
def _server(data: Path | None, journal: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    with _folder(data) as folder:
        log = folder / "server.log"
        with child("match_server.py", folder / "data", "--journal", journal, log=log) as server:
            yield folder, server.hear()


def _window(seconds: float, rate: float) -> tuple[object, ...]:
    return ("--seconds", seconds, "--rate", rate)


def _load(folder: Path, *args: object) -> Window:
    with child("load.py", *args, log=folder / "load.log") as load:
        return Window.of(load.hear())


def _register(address: str, admin: str) -> list[str]:
    with grpc.insecure_channel(address) as channel:
        stub = bot_service_pb2_grpc.BotServiceStub(channel)  # type: ignore[no-untyped-call]  # generated
        metadata = (("authorization", f"Bearer {admin}"),)
        requests = (bot_service_pb2.RegisterBotRequest(bot=f"sdk-{number}") for number in range(SDK_BOTS))
        return [str(stub.RegisterBot(request, metadata=metadata).token) for request in requests]
