"""The page of metrics that Prometheus reads at /metrics."""

from __future__ import annotations

import asyncio
import io
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from itertools import accumulate
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler

import structlog
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)

from seatwise_server.counts import COUNTS, LATENCY_BOUNDS_S, Latencies
from seatwise_server.services.admin import read_queue_depths
from seatwise_server.store import Store
from seatwise_server.store.errors import StoreUnavailable

DEPTH_CHECK_S = 5.0
"""Seconds between two queries of the store for queue lengths."""

METRICS_REQUEST_S = 10.0
"""Seconds after which a connection is closed whose request has not arrived in full: each of them has a thread."""

Gauges = Callable[[], dict[str, float]]
"""Returns the present values by name of the gauge. It is called in another thread, so it only reads."""

log = structlog.get_logger()

METRIC_HELP = {
    "matches_running": "Matches that this referee plays.",
    "tables_free": "Matches that this referee could take in addition.",
    "streams_open": "Play streams of bots.",
    "bots_present": "Bots that attend this lobby.",
    "lease_holds": "1 while this referee holds its lease and may play its matches.",
    "store_up": "1 while Redis answers.",
    "tls_expiry_timestamp_seconds": "When the server's certificate expires, as a Unix time; only with TLS.",
    "memory_bytes": "Resident memory of this process.",
    "memory_limit_bytes": "The memory above which this process stops to be started again; 0 for no limit.",
    "loop_lag_seconds": "The longest delay of the event loop in the last second, without stalls.",
}


class Depths:
    """The lengths of all queues and the number of jobs, as the store returned them last."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.queues: dict[str, int] = {}
        self.jobs = 0

    async def watch_depths(self) -> None:
        """Read the lengths every `DEPTH_CHECK_S` seconds. Runs until cancelled."""
        while True:
            with suppress(StoreUnavailable):
                self.jobs = await self._store.jobs.count_not_taken()
                # a new dictionary each time, because another thread reads it
                self.queues = await read_queue_depths(self._store)
            await asyncio.sleep(DEPTH_CHECK_S)


class MetricsPage:
    """The metrics page, built for each request."""

    def __init__(self, gauges: Gauges, depths: Depths, stalled_s: Callable[[], float]) -> None:
        self._gauges = gauges
        self._depths = depths
        self._stalled_s = stalled_s

    def collect(self) -> Iterator[Metric]:
        """Return all metrics. prometheus_client calls it for each request, in a thread of its own."""
        for name, value in self._gauges().items():
            yield GaugeMetricFamily(f"seatwise_{name}", METRIC_HELP[name], value=value)
        yield from _counter_metrics(self._stalled_s())
        yield from self._waiting_gauges()
        yield from _latency_metrics()
        yield InfoMetricFamily(
            "seatwise_build", "The version of this process.", {"version": version("seatwise")}
        )

    def _waiting_gauges(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "seatwise_jobs_waiting", "Matches that wait for a referee.", self._depths.jobs
        )
        depth = GaugeMetricFamily(
            "seatwise_queue_depth", "Bots, or created matches, that wait in a queue.", labels=["queue"]
        )
        for queue, waiting in list(self._depths.queues.items()):
            depth.add_metric([queue.removeprefix("~")], waiting)
        yield depth


def _counter_metrics(stalled_s: float) -> Iterator[Metric]:
    plain = (
        ("seatwise_moves", "Moves in the journal.", COUNTS.moves),
        ("seatwise_timeouts", "Seats whose time ran out.", COUNTS.timeouts),
        ("seatwise_takeovers", "Matches taken over from others.", COUNTS.takeovers),
        ("seatwise_no_shows", "Seats of queues that bots left empty.", COUNTS.no_shows),
        ("seatwise_charged_seconds", "Time charged.", COUNTS.charged_ms / 1000),
        ("seatwise_loop_stalled_seconds", "Time for which this process stood still.", stalled_s),
    )
    for name, text, total in plain:
        yield CounterMetricFamily(name, text, total)
    short: Mapping[str, float] = COUNTS.connections_short_s
    labelled = (
        ("seatwise_connections_short_seconds", "Time in which a port had no connection left.", "port", short),
        ("seatwise_matches_ended", "Matches, by how they ended.", "reason", COUNTS.ended),
        ("seatwise_rejections", "Items of bots that were rejected.", "reason", COUNTS.rejections),
        ("seatwise_refusals", "Calls refused, and streams ended.", "reason", COUNTS.refusals),
    )
    for name, text, label, counts in labelled:
        family = CounterMetricFamily(name, text, labels=[label])
        for value, count in sorted(counts.items()):
            family.add_metric([value], count)
        yield family


def _latency_metrics() -> Iterator[Metric]:
    """The journal's latency, and all calls by the names that gRPC and OpenTelemetry have given them."""
    families: tuple[tuple[str, str, tuple[str, ...], dict[Any, Latencies]], ...] = (
        ("seatwise_append_seconds", "From an append to Redis's answer, per command.", (), {(): COUNTS.appends}),
        ("grpc_server_call_duration_seconds", "Calls and streams over gRPC and WebSockets, from begin to end.",
         ("grpc_method", "grpc_status"), COUNTS.rpc_calls),
        ("http_server_request_duration_seconds", "Requests and streams over HTTP, from begin to end.",
         ("http_request_method", "http_route", "http_response_status_code"), COUNTS.http_calls),
    )  # fmt: skip
    for name, text, labels, found in families:
        family = HistogramMetricFamily(name, text, labels=labels)
        for values, latencies in list(found.items()):
            counts = accumulate(map(float, list(latencies.buckets)))
            bounds = (*map(str, LATENCY_BOUNDS_S), "+Inf")
            family.add_metric(values, list(zip(bounds, counts, strict=True)), latencies.sum_s)
        yield family


class _Request(io.RawIOBase):
    """The bytes of a request. Raises TimeoutError after `METRICS_REQUEST_S`, also where a byte comes now and then."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._end_s = time.monotonic() + METRICS_REQUEST_S

    def readable(self) -> bool:
        """Say so to the buffer."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Wait for bytes no longer than until the end."""
        self._connection.settimeout(max(0.001, self._end_s - time.monotonic()))
        try:
            return self._connection.recv_into(buffer)
        finally:
            self._connection.settimeout(METRICS_REQUEST_S)


class _Connection(WSGIRequestHandler):
    """One connection, which is closed when its request does not arrive in time, or its response is not read."""

    timeout = METRICS_REQUEST_S

    def setup(self) -> None:
        """Read the request within its time."""
        super().setup()
        self.rfile = io.BufferedReader(_Request(self.connection))

    def handle(self) -> None:
        with suppress(OSError):  # it was slow, or is gone
            super().handle()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name in the standard library
        """Log nothing: Prometheus asks every few seconds."""


@contextmanager
def serving_metrics(page: MetricsPage, host: str, port: int) -> Iterator[int]:
    """Serve the page over HTTP, in a thread of its own, inside this block; yields the port.

    Raises OSError if the address cannot be bound.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(page)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    server, thread = start_http_server(port, host.strip("[]"), registry)
    server.RequestHandlerClass = _Connection
    try:
        yield int(server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
