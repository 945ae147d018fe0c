"""Games from outside in a referee process of their own: what hangs or crashes there stops no match but its own."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from harness.house import House
from harness.process import ServerProcess
from harness.table import Admin
from hosted.packages import install_package

from seatwise.remote import run_async
from seatwise.v1 import match_service_pb2
from seatwise_referee.hosted.hosted_game import GameFault
from seatwise_server.config import Config
from seatwise_server.hosted_guard import HostedGuard
from seatwise_server.play import step_marker
from seatwise_server.play.step_marker import (
    SLOW_GAME_NICENESS,
    StepMarker,
    read_last_match,
    read_marked_match,
    read_signs_of_life,
)

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

SOURCE = """
import os, time
from seatwise.hosting import HostedGame

class Nice(HostedGame):
    name = "nice"
    moves = 6
    free_ms = 60_000
    def start_match(self, seats, options, chance): return ()
    def find_turn(self, state): return None if len(state) == self.moves else len(state) % 2
    def list_moves(self, state): return ["a", "b"]
    def play_move(self, state, move, chance): return (*state, move)
    def show_state(self, state, seat): return {"moves": list(state)}
    def count_points(self, state): return [state.count("a"), state.count("b")]

class Long(Nice):
    name = "long"
    moves = 500

class Seen(Nice):
    name = "seen"
    moves = 100
    def resample_state(self, state, seat, chance): return state
    def draw(self, view, seat): return [{"text": f"{len(view['moves'])} moves"}]

class Hangs(Nice):
    name = "hangs"
    def play_move(self, state, move, chance):
        while len(state) == 3: time.sleep(1)
        return (*state, move)

class Crashes(Nice):
    name = "crashes"
    def play_move(self, state, move, chance):
        if len(state) == 3: os.kill(os.getpid(), 11)
        return (*state, move)

class Closes(Nice):
    name = "closes"
    def play_move(self, state, move, chance):
        if len(state) == 3 and "SEATWISE_STEP_FILE" in os.environ: os.closerange(3, 200)
        return (*state, move)

class Eats(Nice):
    name = "eats"
    def play_move(self, state, move, chance):
        while len(state) == 3: bytearray(2**30)
        return (*state, move)

class Interrupts(Nice):
    name = "interrupts"
    def play_move(self, state, move, chance):
        if len(state) == 3: raise KeyboardInterrupt
        return (*state, move)

def games(): return [Nice, Long, Seen, Hangs, Crashes, Closes, Eats, Interrupts]

with open(os.environ["IMPORTED_BY"], "a") as told: told.write(f"{os.getpid()}\\n")
"""

KILLS_ITS_PLAYER = """
import os
from seatwise.hosting import HostedGame

class Killer(HostedGame):
    name = "killer"

if "SEATWISE_STEP_FILE" in os.environ:
    os._exit(3)
"""


@pytest_asyncio.fixture(
    loop_scope="session",
    params=[(), ("--referees", "1")],
    ids=["one process", "several"],
)
async def served(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[tuple[House, ServerProcess]]:
    """A server as its operator starts it, with four games from outside, and packages that end what imports them."""
    (packages := tmp_path / "packages").mkdir()
    install_package(packages, "four_games", SOURCE, "four = four_games:games")
    install_package(packages, "killer", KILLS_ITS_PLAYER, "killer = killer:Killer")
    install_package(packages, "gone", "import os; os._exit(3)", "gone = gone:Game")
    process = ServerProcess(tmp_path / "data", "--max-memory", "600M", *request.param)
    process.data.mkdir()
    path = os.pathsep.join(filter(None, [str(packages), os.environ.get("PYTHONPATH")]))
    process.env = {**os.environ, "PYTHONPATH": path, "IMPORTED_BY": str(tmp_path / "imported")}
    await process.start()
    house = House(process.address, Admin(process.address, process.token))
    try:
        yield house, process
    finally:
        await house.drop_all()
        await house.admin.drop()
        await process.stop()


async def begin(house: House, game: str) -> tuple[str, list[asyncio.Task[Any]]]:
    """A match of two random bots that play it as tasks."""
    wires = [await house.bot() for _ in range(2)]
    request = match_service_pb2.CreateMatchRequest(game=f"games/{game}", bots=[wire.bot for wire in wires])
    created = await house.admin.matches.CreateMatch(request, metadata=house.admin.metadata)
    return created.match.name, [
        asyncio.create_task(
            run_async("random", game=game, address=house.address, token=wire.token, queues=())
        )
        for wire in wires
    ]


async def end(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_an_interrupt_in_the_code_of_a_game_is_its_fault_and_ends_its_note(tmp_path: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    marker, file = StepMarker(), tmp_path / "step"
    marker.open_file(str(file))
    with pytest.raises(BaseException, match="KeyboardInterrupt") as raised:  # else it would end pytest itself
        marker.run_step("matches/one", interrupt)
    assert raised.type is GameFault
    assert read_marked_match(file) == ""


async def test_the_last_step_is_known_until_the_process_gives_a_sign_of_life(tmp_path: Path) -> None:
    marker, file = StepMarker(), tmp_path / "step"
    marker.open_file(str(file))
    marker.run_step("matches/one", lambda: None)
    assert (read_marked_match(file), read_last_match(file)) == ("", "matches/one")
    marker.run_step("matches/two", lambda: None)
    assert read_last_match(file) == "matches/two"
    living = asyncio.create_task(marker.give_signs_of_life())
    while not read_signs_of_life(file):  # noqa: ASYNC110  # a file has no events
        await asyncio.sleep(0)
    assert (read_last_match(file), living.cancel()) == ("", True)


async def test_a_match_after_whose_step_the_process_breaks_down_twice_in_a_row_is_at_fault() -> None:
    guard = HostedGuard(Config(redis_url="redis://127.0.0.1:1"))
    ends = [
        (1, "", "matches/a", ""),  # once proves nothing
        (-9, "", "matches/a", ""),  # killed from outside
        (1, "", "matches/b", ""),
        (-11, "matches/c", "", "matches/c"),  # within its step
        (1, "", "", ""),
        (1, "", "matches/b", ""),
        (1, "", "matches/b", "matches/b"),
    ]
    for code, marked, last, at_fault in ends:
        assert guard._find_fault(code, marked, last) == at_fault


@pytest.mark.parametrize(("cpu_s", "nicenesses"), [(0.02, []), (0.3, [SLOW_GAME_NICENESS])])
async def test_a_process_with_a_slow_step_steps_back_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpu_s: float, nicenesses: list[int]
) -> None:
    given: list[int] = []
    monkeypatch.setattr(step_marker, "lower_priority", lambda niceness: not given.append(niceness))
    times = itertools.count(0.0, cpu_s)
    monkeypatch.setattr(step_marker.time, "process_time", lambda: next(times))
    marker = StepMarker()
    marker.open_file(str(tmp_path / "step"))
    for _ in range(3):
        marker.run_step("matches/one", lambda: None)
    assert given == nicenesses


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["hangs", "crashes", "closes"])
async def test_a_game_that_stops_the_process_voids_its_own_match_and_no_other(
    served: tuple[House, ServerProcess], wrong: str
) -> None:
    house, process = served
    match, first = await begin(house, "nice")
    assert (await house.admin.over(match, within_s=60)).result.points
    going_on, long = await begin(house, "long")
    match, second = await begin(house, wrong)
    ours, third = await begin(house, "ugo")
    assert not (await house.admin.over(ours, within_s=60)).void_reason
    assert (await house.admin.over(match, within_s=90)).void_reason == "GAME_FAULT"
    assert not (await house.admin.over(going_on, within_s=120)).void_reason
    match, fourth = await begin(house, "nice")
    assert (await house.admin.over(match, within_s=60)).result.points
    await end([*first, *long, *second, *third, *fourth])
    for game in ("eats", "interrupts", "killer"):
        match, playing = await begin(house, game)
        assert (await house.admin.over(match, within_s=60)).void_reason == "GAME_FAULT"
        await end(playing)
    ended = [line["match"] for line in process.log if line["event"] == "hosted_referee_ended"]
    assert len(ended) == (3 if wrong == "closes" else 2)  # one end alone proves nothing about the last match
    assert ended[0] == ""
    told = [line["entry"] for line in process.log if line["event"] == "game_package_not_loaded"]
    assert told == ["killer"]
    refused = [
        line for line in process.log if line["event"] == "game_not_hosted" and line["level"] == "warning"
    ]
    assert {line["entry"] for line in refused} == {"gone = gone:Game"}
    assert "exit code 3" in refused[0]["why"]
    assert str(process.pid) not in (process.data.parent / "imported").read_text().split()


@pytest.mark.slow
async def test_spectators_see_the_drawings_that_a_process_of_its_own_makes(
    served: tuple[House, ServerProcess],
) -> None:
    house, process = served
    match, playing = await begin(house, "seen")
    async with asyncio.timeout(200):
        views = [
            each.json
            async for each in house.admin.watch(match, all_positions=True)
            if each.WhichOneof("view")
        ]
    await end(playing)
    assert [view.drawing.json for view in views] == [f'[{{"text":"{moves} moves"}}]' for moves in range(101)]
    assert [line["shown_live"] for line in process.log if line["event"] == "game_checked"] == [True]
