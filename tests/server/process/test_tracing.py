"""Traces by OpenTelemetry: nothing while nobody asks for them, and spans at a collector when the environment does."""

from __future__ import annotations

import asyncio
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest
import structlog
from harness import Admin, House, ServerProcess, dealt

from seatwise_server import tracing
from seatwise_server.tracing import Tracing


def test_traces_that_nobody_asked_for_cost_nothing_and_change_no_line() -> None:
    made = Tracing()
    made.start("referee")
    with made.open_span("seating"):
        made.name_span("call")
        made.record_span("move", 0.1)
        assert made.add_ids(None, "info", {"event": "x"}) == {"event": "x"}
    assert not made.is_on


def test_traces_without_their_extra_are_off_and_the_log_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr(tracing, "find_spec", lambda _: None)
    made = Tracing()
    with structlog.testing.capture_logs() as lines:
        made.start("")
    assert [line["event"] for line in lines] == ["traces_are_off"]
    assert not made.is_on


class Collector(BaseHTTPRequestHandler):
    """Keeps the bodies that an exporter of OpenTelemetry sends."""

    bodies: ClassVar[list[bytes]] = []

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
async def test_a_collector_gets_spans_of_calls_seatings_moves_and_deliveries(tmp_path: Path) -> None:
    packages = ("opentelemetry-sdk==1.45.2", "opentelemetry-exporter-otlp-proto-http==1.45.2")
    pip = (sys.executable, "-m", "pip", "install", "-q", "--target", tmp_path / "otel", *packages)
    installed = await asyncio.create_subprocess_exec(*map(str, pip))
    if await installed.wait():
        pytest.skip("the SDK of OpenTelemetry cannot be installed here")
    collector = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    Thread(target=collector.serve_forever, daemon=True).start()
    (data := tmp_path / "data").mkdir()
    process = ServerProcess(data, "--log-level", "info")
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}"}
    process.env = {**os.environ, **variables, "PYTHONPATH": str(tmp_path / "otel")}
    try:
        await process.start()
        house = House(process.address, Admin(process.address, process.token), "")
        async with dealt(house) as (table, _, _):
            await table.play_out()
            await house.admin.over(table.name)
        await house.drop_all()
        await house.admin.drop()
    finally:
        await process.stop()
        collector.shutdown()
        collector.server_close()
    sent = b"".join(Collector.bodies)
    for name in ("seatwise.v1.MatchService/CreateMatch", "seating", "move", "delivery", table.name):
        assert name.encode() in sent, name
    traced = [line for line in process.log if "trace_id" in line]
    assert {line["event"] for line in traced} >= {"rpc_ended"}
    assert all(bytes.fromhex(line["trace_id"]) in sent for line in traced)
