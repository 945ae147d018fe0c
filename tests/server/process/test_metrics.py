"""What Prometheus is told: true, and without names."""

from __future__ import annotations

import asyncio
import socket
import urllib.request
from typing import Any

import pytest
import pytest_asyncio
from harness import SOON_S, endings, plays_on, server_process
from harness.ladder import Rung
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from seatwise.v1 import match_service_pb2
from seatwise_server import metrics
from seatwise_server.counts import COUNTS
from seatwise_server.services import call_log

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def measured():
    """A server with metrics, and where they are."""
    async with server_process("--metrics-port", "0", "--tables", "3") as (process, house):
        [told] = [line for line in process.log if line["event"] == "metrics_served"]
        yield house, f"http://{told['address']}/metrics"


async def read(url: str) -> dict[str, float]:
    """All samples, each with its labels behind its name."""
    assert url.startswith("http://127.0.0.1:")
    page = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=5).read().decode())
    samples = [sample for family in text_string_to_metric_families(page) for sample in family.samples]
    return {" ".join([sample.name, *sample.labels.values()]): sample.value for sample in samples}


async def ended(url: str, reason: str) -> dict[str, float]:
    """All samples, as soon as a match is counted as ended so: delivery comes a moment after the result."""
    async with asyncio.timeout(SOON_S):
        while f"seatwise_matches_ended_total {reason}" not in (found := await read(url)):  # noqa: ASYNC110  # no event tells
            await asyncio.sleep(0.02)
    return found


async def test_a_match_is_counted_move_by_move(measured):
    house, url = measured
    before = await read(url)
    assert (before["seatwise_matches_running"], before["seatwise_tables_free"]) == (0, 3)
    async with house.table(2) as table:
        await table.sit()
        for chair in table.chairs:
            await chair.expect("update")
        during = await read(url)
        assert (during["seatwise_matches_running"], during["seatwise_streams_open"]) == (1, 2)
        assert (during["seatwise_bots_present"], during["seatwise_tables_free"]) == (2, 2)
        await chair.submit(None, prompt=999)
        await plays_on(house, table)
    after = await ended(url, "FINISHED")
    moves = after["seatwise_moves_total"] - before["seatwise_moves_total"]
    assert moves == sum(len(chair.accepted) for chair in table.chairs)
    assert after["seatwise_append_seconds_count"] >= moves
    assert after["seatwise_rejections_total MALFORMED"] == 1
    assert after["seatwise_matches_ended_total FINISHED"] == 1
    assert (after["seatwise_store_up"], after["seatwise_lease_holds"]) == (1, 1)
    assert {
        "seatwise_queue_depth casual",
        "seatwise_jobs_waiting",
        "seatwise_loop_lag_seconds",
    } <= after.keys()


async def test_a_bot_that_waits_for_a_ladder_is_counted(measured):
    house, url = measured
    ladder = Rung(house, "ladders/measured")
    await ladder.create(2)
    await (await house.bot()).attend([ladder.name])
    async with asyncio.timeout(SOON_S):
        while (await read(url)).get(f"seatwise_queue_depth {ladder.name}") != 1:  # noqa: ASYNC110  # looked at now and then
            await asyncio.sleep(0.05)


async def test_time_outs_and_voided_matches_are_counted_by_reason(measured):
    house, url = measured
    async with house.table(2, free_ms={"card": 20, "arrange": 20}, bank_ms=1, grace_ms=1) as table:
        await table.sit()
        match = await house.admin.over(table.name)
    assert match.void_reason == "ABANDONED" or "TIMED_OUT" in endings(match)
    after = await ended(url, match.void_reason or "FINISHED")
    assert after["seatwise_timeouts_total"] >= 3


async def test_a_connection_that_says_nothing_is_closed_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each has a thread, and 3,000 of them were kept for ever."""
    monkeypatch.setattr(metrics, "METRICS_REQUEST_S", 0.1)
    page: Any = CollectorRegistry()
    with metrics.serving_metrics(page, "127.0.0.1", 0) as port:
        for said in (b"", b"GET /metr"):
            with socket.create_connection(("127.0.0.1", port), timeout=SOON_S) as silent:
                silent.sendall(said)
                assert await asyncio.to_thread(silent.recv, 1) == b""
    assert capfd.readouterr().err == ""


async def test_a_request_that_comes_byte_by_byte_has_no_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte every nine seconds kept a connection, and its thread, for ever."""
    monkeypatch.setattr(metrics, "METRICS_REQUEST_S", 0.4)
    page: Any = CollectorRegistry()
    with (
        metrics.serving_metrics(page, "127.0.0.1", 0) as port,
        socket.create_connection(("127.0.0.1", port)) as slow,
    ):
        async with asyncio.timeout(SOON_S):
            while is_taken(slow, b"y"):  # noqa: ASYNC110  # no event tells
                await asyncio.sleep(0.05)


def is_taken(connection: socket.socket, raw: bytes) -> bool:
    """Whether the other end still takes bytes."""
    try:
        connection.sendall(raw)
    except ConnectionError:
        return False
    return True


async def test_calls_are_counted_at_each_door_by_the_names_of_the_conventions(measured):
    house, url = measured
    request = match_service_pb2.ListMatchesRequest(page_size=1)
    await house.admin.matches.ListMatches(request, metadata=house.admin.metadata)
    found = await read(url)
    assert found["grpc_server_call_duration_seconds_count seatwise.v1.MatchService/ListMatches OK"] >= 1
    assert found["process_cpu_seconds_total"] > 0
    assert [name for name in found if name.startswith("seatwise_build_info ")]


async def test_a_stranger_makes_no_labels() -> None:
    for verb in ("GET", "BREW", "STEEP"):
        log = call_log.CallLog("", door="rest")
        log.route = "/v1/test"
        log.write_line(verb=verb, status=405)
    found = {labels for labels in COUNTS.http_calls if labels[1] == "/v1/test"}
    assert found == {("GET", "/v1/test", "405"), ("_OTHER", "/v1/test", "405")}


async def test_the_metrics_name_no_bot(measured):
    house, url = measured
    async with house.table(2) as table:
        await table.sit()
        page = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=5).read().decode())
        await plays_on(house, table)
    assert "matches/" not in page
    assert "bots/" not in page
    labels = {line.partition("{")[2].partition("=")[0] for line in page.splitlines() if "{" in line}
    assert labels <= {
        "grpc_method", "http_request_method", "implementation", "le", "port", "queue", "reason", "version"
    }  # fmt: skip
