"""One run each: a server, a load, and what came of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grpc
from processes import child, program

from seatwise.v1 import bot_service_pb2, bot_service_pb2_grpc
from seatwise_server.embedded import EmbeddedRedis, socket_path

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
    data: Path | None = None,
    by_websocket: bool = False,
    extra: Sequence[object] = (),
) -> Window:
    """The server with everything on, its data in a folder of its own within `data`; bots play by gRPC, or by WebSocket."""
    with _server(data) as (folder, told):
        pids = ("--pids", told["pid"], told["redis"])
        door = ("--ws", told["ws"]) if by_websocket else ()
        what = ("matches", told["address"], "--admin", told["admin"], "--matches", count, *door, *extra)
        return _load(folder, *what, *_window(seconds, rate), *pids)


def peer(
    what: str,
    command: Sequence[str],
    seconds: float,
    count: int,
    extra: Sequence[object],
    *,
    is_durable: bool = True,
) -> Window:
    """A server that is not ours, with as many matches: what `peers_load` has found of it. A durable one gets a Redis as ours."""
    env = {**os.environ, "NODE_ENV": "production"}
    with _folder(None) as folder, ExitStack() as stack:
        redis = stack.enter_context(EmbeddedRedis(folder / "redis")) if is_durable else None
        socket = [str(socket_path(redis.folder))] if redis else []
        log = folder / "server.log"
        told = stack.enter_context(program(what, [*command, *socket], log=log, env=env)).hear()
        pids = ("--pids", told["pid"], *([redis.pid] if redis else []))
        args = (what, told["address"], "--matches", count, *_window(seconds, 0), *pids, *extra)
        with child("peers_load.py", *args, log=folder / "load.log") as load:
            return Window.of(load.hear())


def sdk_bots_us(seconds: float, *, by_websocket: bool = False) -> float:
    """The CPU of a bot of the SDK for each move, in microseconds: a process with four of them, alone on a server."""
    with _server(None) as (folder, told):
        tokens = _register(told["address"], told["admin"])
        address = told["ws" if by_websocket else "address"]
        with child("sdk_bots.py", address, *tokens, "--seconds", seconds, log=folder / "bots.log") as bots:
            return float(bots.hear()["cpu_us"])


@contextmanager
def _folder(within: Path | None) -> Iterator[Path]:
    with TemporaryDirectory(prefix="seatwise-bench-", dir=within) as name:
        yield Path(name)


@contextmanager
def _server(data: Path | None) -> Iterator[tuple[Path, dict[str, Any]]]:
    with _folder(data) as folder:
        log = folder / "server.log"
        with child("match_server.py", folder / "data", log=log) as server:
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
        requests = (bot_service_pb2.RegisterBotRequest(bot=f"sdk-{number}") for number in range(SEATS))
        return [str(stub.RegisterBot(request, metadata=metadata).token) for request in requests]
