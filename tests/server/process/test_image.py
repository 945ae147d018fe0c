"""The image of deploy/Dockerfile: it is built, plays, is killed, and is upgraded under load with no match lost."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from harness import House, Survivor, check_nothing_lost
from harness.images import USER, ContainerProcess, Images
from harness.table import Admin, Table

from seatwise.v1 import play_service_pb2
from seatwise_referee.verify import verify_line
from seatwise_server.embedded import EmbeddedRedis

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(7200), pytest.mark.slow]

DOCKERFILE = Path(__file__).parents[3] / "deploy" / "Dockerfile"
HOUR = {"free_ms": {"card": 3_600_000, "arrange": 3_600_000}, "setup_ms": 3_600_000}
TABLES = 8
"""Matches that are played while the server is upgraded."""
PATIENCE_S = 600.0
AGAIN_S = 0.5


class ReturningBot(Survivor):
    """Sits down again as long as no referee has its match: after a kill that is the lease of the dead one."""

    async def receive(self, within_s: float = PATIENCE_S) -> play_service_pb2.PlayResponseItem:
        """The next item; raises an error that ends this link while the match is at no referee."""
        found = await super().receive(within_s)
        if found.move_rejected.reason == play_service_pb2.MoveRejected.REASON_NOT_HERE:
            self.rejections.pop()
            await asyncio.sleep(AGAIN_S)
            raise asyncio.InvalidStateError
        return found


@pytest.fixture(scope="module")
def images() -> Iterator[Images]:
    with tempfile.TemporaryDirectory(prefix="sw-", dir="/var/tmp") as folder:
        images = Images(Path(folder))
        yield images
        images.remove()


@pytest.fixture(scope="module")
def newer(images: Images) -> str:
    """The image of this commit, as it is shipped: with the compiled core."""
    return images.build("newer", "HEAD", DOCKERFILE, compiled=True)


@pytest.fixture(scope="module")
def older(images: Images) -> str:
    """The image of the commit before this one."""
    return images.build("older", "HEAD~1", DOCKERFILE, compiled=False)


@asynccontextmanager
async def container_of(images: Images, image: str) -> AsyncIterator[tuple[ContainerProcess, House]]:
    """A container with all roles, on a Redis outside of it, as an operator has it."""
    with tempfile.TemporaryDirectory(prefix="sw-") as folder, EmbeddedRedis(Path(folder, "redis")) as redis:
        socket = Path(redis.url.removeprefix("unix://").partition("?")[0])
        (data := Path(folder, "data")).mkdir()
        for each in (Path(folder), socket.parent, socket, data):
            os.chown(each, USER, USER)
        process = ContainerProcess(images, image, data, socket.parent, "--redis", redis.url)
        try:
            await process.start()
            house = House(process.address, Admin(process.address, process.token))
            yield process, house
            await house.drop_all()
            await house.admin.drop()
        finally:
            await process.stop()


async def replaced_under_load(
    process: ContainerProcess, house: House, number: signal.Signals, image: str, tables: int
) -> None:
    """So many matches are played; meanwhile the container ends by this signal, and one of that image takes its place."""
    played: list[Table] = [
        await house.seat([await house.bot() for _ in range(2)], **HOUR) for _ in range(tables)
    ]
    survivors = [[ReturningBot(chair) for chair in table.chairs] for table in played]
    everyone = [each for seats in survivors for each in seats]
    playing = asyncio.gather(*[each.survive(PATIENCE_S) for each in everyone])
    await asyncio.gather(*[each.after(2, PATIENCE_S) for each in everyone])
    process.signal(number)
    await process.ended()
    process.image = image
    await process.start()
    await playing
    for table, seats in zip(played, survivors, strict=True):
        line = await house.admin.record(table.name)
        check_nothing_lost(line, seats)
        assert verify_line(line).fault is None
        assert b'"taken_over"' in line


async def test_a_container_that_is_killed_loses_nothing(images: Images, newer: str) -> None:
    async with container_of(images, newer) as (process, house):
        await replaced_under_load(process, house, signal.SIGKILL, newer, tables=2)


async def test_an_upgrade_under_load_loses_no_match(images: Images, older: str, newer: str) -> None:
    async with container_of(images, older) as (process, house):
        await replaced_under_load(process, house, signal.SIGTERM, newer, TABLES)
