"""The process that serves HTTP and reads without a token, started by `read_process`: a gateway at a UNIX socket.

It is told its settings first, and then whether the server is ready. It prints one line when it answers.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog

from seatwise.child_process import told_lines
from seatwise.cli import decks
from seatwise.kits.hosted.installed_games import forbid_game_code
from seatwise_server import log
from seatwise_server.app import PortBusy, StoreLost, running
from seatwise_server.config import Config, HttpSettings, SpectatorDelay
from seatwise_server.counts import COUNTS
from seatwise_server.priority import lower_priority
from seatwise_server.read_process import READY
from seatwise_server.store.errors import StoreError
from seatwise_server.tls.tls_files import TlsError, TlsFiles

logger = structlog.get_logger()

COUNT_EVERY_S = 1.0
"""Seconds between two reports of refusals to the server, which has them in its metrics."""
NICENESS = 10
"""The niceness of the process, so that matches have priority."""


class ServerReadiness:
    """Whether the server takes bots, as it tells this process. /readyz says so."""

    def __init__(self) -> None:
        self.is_ready = False

    def is_server_ready(self) -> bool:
        """Returns whether the server takes bots."""
        return self.is_ready

    def follow_server(self) -> None:
        """Notes what the server says. Runs in a thread."""
        for self.is_ready in told_lines():
            pass


def main() -> None:
    """Answers until SIGTERM, or until the server ends."""
    told = next(told_lines())
    lower_priority(NICENESS)
    log.configure(told["log_level"], background_file=Path(told["data"]) / log.FILE)
    decks.use_deck_files(told["decks"], told["default_deck"])
    forbid_game_code()
    try:
        asyncio.run(_serve(_config(told)))
    except (StoreError, StoreLost, PortBusy, TlsError) as error:
        logger.warning("read_process_failed", why=str(error))
        sys.exit(1)


def _config(told: dict[str, Any]) -> Config:
    same = (
        "redis_url", "allow_loss", "wait_replicas", "keep_records_s", "gone_for_good_s", "reads_per_second",
        "anonymous_reads_per_second", "registration", "oidc_issuer", "oidc_audience", "owner_requests_per_minute",
        "owner_matches_at_once", "owner_matches_a_day", "owner_watches",
    )  # fmt: skip
    return Config(
        roles=frozenset({"gateway"}),
        socket=Path(told["socket"]),
        data=Path(told["data"]),
        tls=_tls_files(told["tls"]) if told["tls"] else None,
        spectators=SpectatorDelay(told["spectators"]),
        http=_http_settings(told) if told["http_port"] is not None else None,
        **{name: told[name] for name in same},
    )


def _tls_files(told: dict[str, str | None]) -> TlsFiles:
    cert, key, client_ca = (told[name] for name in ("cert", "key", "client_ca"))
    assert cert
    assert key
    return TlsFiles(Path(cert), Path(key), Path(client_ca) if client_ca else None)


def _http_settings(told: dict[str, Any]) -> HttpSettings:
    lists = {name: tuple(told["http"][name]) for name in ("cors_origins", "trusted_proxies")}
    return HttpSettings(**told["http"] | lists | {"descriptor": told["http_port"]})


async def _serve(config: Config) -> None:
    loop, stop, readiness = asyncio.get_running_loop(), asyncio.Event(), ServerReadiness()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    async with running(config, None, readiness.is_server_ready) as server:
        threading.Thread(target=readiness.follow_server, daemon=True).start()
        os.write(sys.stdout.fileno(), READY)
        reporting = asyncio.create_task(_report_refusals(sys.stdout.fileno()))
        stopping = asyncio.create_task(stop.wait())
        either: list[asyncio.Future[Any]] = [stopping, server.stopped]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        reporting.cancel()
        if server.stopped.done():
            await server.stopped


async def _report_refusals(descriptor: int) -> None:
    """Writes the refusals over HTTP since the last report as one line of JSON, if there are any. Runs until cancelled.

    Those of forwarded reads are counted by the server itself.
    """
    os.set_blocking(descriptor, False)
    told: Counter[str] = Counter()
    while True:
        await asyncio.sleep(COUNT_EVERY_S)
        now = Counter(COUNTS.http_refusals)
        if news := now - told:
            with suppress(
                OSError
            ):  # the server stands still, and the next report has these too; or it is dead
                os.write(descriptor, json.dumps(news).encode() + b"\n")
                told = now


if __name__ == "__main__":
    main()
