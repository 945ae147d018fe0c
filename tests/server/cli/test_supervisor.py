"""`seatwise serve --referees N`: real processes under one command, killed, restarted and stopped; nothing is lost."""

from __future__ import annotations

import json
import os
import signal
from argparse import ArgumentParser
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio
from harness import House, Seats, endings
from harness.fleet import Fleet, fleet
from harness.process import ServerProcess, until
from harness.table import Admin

from seatwise_server.cli import serve
from seatwise_server.config import ROLES, Config
from seatwise_server.settings import ServeOptions
from seatwise_server.store import Store, new_client

LONG_S = 150.0
"""For an event that takes a second on a quiet machine."""
PATIENT = {"free_ms": {"card": 120_000, "arrange": 120_000}, "bank_ms": 1}
MATCHES = 4
OPTIONS = (
    "--port", "0", "--host", "0.0.0.0", "--http-port", "7500", "--http-cors", "https://example.org", "--http-cors", "*",
    "--ws-port", "0", "--ws-origin", "https://example.org", "--keep-records", "2.5", "--gone-for-good", "9", "--tables", "11",
    "--max-memory", "900M", "--metrics-port", "9000", "--health-port", "9100", "--no-house-bots", "--log-level", "warning",
    "--data", "/tmp/of a server", "--wait-replicas", "2", "--allow-loss",
)  # fmt: skip


def parsed(*options: str) -> ServeOptions:
    parser = ArgumentParser()
    serve.add_options(parser)
    return serve.options_from(parser.parse_args(options))


def planned(*options: str) -> list[Config]:
    found = parsed(*options)
    return [plan.config for plan in serve.plan_referees(found, serve.make_config(found))]


@pytest.mark.parametrize(
    "options", [(), OPTIONS, ("--tls", "auto"), ("--role", "lobby", "--redis", "unix:///r")]
)
def test_a_child_is_told_the_configuration_as_it_is(options: tuple[str, ...]) -> None:
    config = serve.make_config(parsed(*options))
    assert Config.from_json(json.loads(json.dumps(config.to_json(), default=str))) == config


def test_the_front_has_all_ports_and_the_referees_have_their_share() -> None:
    options = (*OPTIONS, "--referees", "3", "--referee-port", "8000", "--address", "https://a:1")
    *referees, front = planned(*options)
    whole = serve.make_config(parsed(*options))
    assert [each.address for each in referees] == ["https://a:8000", "https://a:8001", "https://a:8002"]
    assert front == replace(whole, roles=frozenset(ROLES) - {"referee"}, has_read_process=False)
    assert [(each.port, each.ws_port) for each in referees] == [(8000, 8003), (8001, 8004), (8002, 8005)]
    assert [(each.most_tables, each.metrics_port) for each in referees] == [(4, 9001), (4, 9002), (4, 9003)]
    assert all(each.roles == {"referee"} and each.http is each.health_port is None for each in referees)


def test_referees_take_guests_from_the_pages_of_the_front() -> None:
    assert [each.guests for each in planned("--referees", "2", "--guests", "5")] == [5, 5, 5]


def test_referees_of_the_same_machine_share_its_memory_and_take_free_ports() -> None:
    *referees, front = planned("--referees", "3")
    assert {(each.port, each.ws_port) for each in referees} == {(0, 0)}
    assert front.max_memory == referees[0].max_memory
    assert 3 * front.max_memory < serve.make_config(parsed("--referees", "3")).max_memory


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (("--role", "referee"), "--role"),
        (("--address", "a:1"), "--referee-port"),
        (("--ws-address", "ws://a"), "--ws-address"),
        ((), ""),
    ],
)
def test_options_that_name_one_process_are_refused(options: tuple[str, ...], advice: str) -> None:
    why = next(serve.find_refusals(parsed("--referees", "2", *options)), "")
    assert advice in why
    assert bool(why) is bool(advice)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def supervised() -> AsyncIterator[tuple[Fleet, ServerProcess, House]]:
    """Two referees and a front under one command."""
    async with fleet(referees=0, front=("--referees", "2")) as (ships, house):
        yield ships, ships.processes[0], house


def events(server: ServerProcess, name: str) -> list[dict]:
    return [line for line in server.log if line["event"] == name]


def referee_at(server: ServerProcess, address: str) -> tuple[str, int]:
    """The name and the process id of the referee that listens there."""
    [name] = [each["process"] for each in events(server, "server_started") if each["address"] == address]
    [pid] = [each["pid"] for each in events(server, "process_started") if each["process"] == name]
    return name, pid


def starts_and_stops(server: ServerProcess) -> list[tuple[str, str]]:
    """The events of each process, by its label, in their order."""
    named = ("server_stopped", "process_started")
    found = [(each["event"], each["process"]) for each in server.log if each["event"] in named]
    labels = ("referee-1", "referee-2", "front")
    return [(event, label) for event, process in found for label in labels if f"-{label}-" in process]


async def one_move(seats: Seats) -> None:
    asked, _ = await seats.table.asked()
    request_id = await asked.move()
    while request_id not in asked.accepted:
        await asked.receive()


async def takeovers_of(seats: Seats, house: House) -> list[int]:
    """Plays the match out; the epochs of those who took it over, from its record."""
    await seats.table.play_out()
    match = await house.admin.over(seats.match.name)
    assert endings(match) == ["COMPLETED"] * len(seats.chairs)
    assert all(chair.last.time.strikes == 0 for chair in seats.chairs)
    record = json.loads(await house.admin.record(seats.match.name))
    return [entry["epoch"] for entry in record["entries"] if entry["kind"] == "taken_over"]


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.timeout(900)
@pytest.mark.slow
async def test_the_matches_of_a_killed_referee_go_to_its_sibling_and_it_is_started_again(supervised) -> None:
    ships, server, house = supervised
    tables = [await ships.seated(house, **PATIENT) for _ in range(MATCHES)]
    for seats in tables:
        await one_move(seats)
    dead = tables[0].address
    name, pid = referee_at(server, dead)
    os.kill(pid, signal.SIGKILL)
    moved = [seats for seats in tables if seats.address == dead]
    for seats in moved:
        await seats.follow(2, LONG_S)
        assert seats.address != dead
    client = new_client(ships.redis_url)
    try:
        assert (await Store(client).processes.read_heartbeats())[name].has_died, "no lease had to pass"
    finally:
        await client.close_connections()
    for seats in tables:
        assert await takeovers_of(seats, house) == ([2] if seats in moved else [])
    await until(lambda: len(events(server, "process_started")) == 4, LONG_S)
    assert [each["code"] for each in events(server, "process_ended")] == [-signal.SIGKILL]


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.timeout(900)
async def test_a_restart_goes_round_one_by_one_and_keeps_the_address(supervised) -> None:
    ships, server, house = supervised
    seats = await ships.seated(house, **PATIENT)
    await one_move(seats)
    before = len(starts_and_stops(server))
    deaths = len(events(server, "process_ended"))
    server.signal(signal.SIGHUP)
    await until(lambda: len(starts_and_stops(server)) == before + 6, LONG_S)
    found = starts_and_stops(server)[before:]
    assert found == [
        (event, label)
        for label in ("referee-1", "referee-2", "front")
        for event in ("server_stopped", "process_started")
    ], "the next one waits until this one is back"
    admin = Admin(house.address, server.token)
    assert (await admin.match(seats.match.name)).name == seats.match.name
    await admin.drop()
    assert len(events(server, "process_ended")) == deaths
