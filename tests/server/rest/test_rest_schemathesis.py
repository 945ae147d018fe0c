"""Schemathesis tries what OpenAPI promises: every URL, with good and bad requests, and each answer as described."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio
from harness.house import House, house_in
from harness.published import DEAL_SET, LADDER, LEAGUE, Published, publishing

from seatwise_server.config import HttpSettings

pytestmark = pytest.mark.asyncio(loop_scope="session")

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
LONGEST_S = 550.0

CONFIG = """
seed = 11
hooks = "hooks.py"
request-timeout = 20
continue-on-failure = true
max-stream-events = 2

[checks.positive_data_acceptance]
# Two fields may contradict each other, and a page token is one that the list gave out: no schema says so.
expected-statuses = ["2xx", 304, 400, 401, 403, 404, 409, 429]

# The streams of a bot end only when it hangs up. tests/server/rest/test_rest_bots.py reads them.
[[operations]]
include-operation-id = ["attend", "play"]
enabled = false
"""


HOOKS = """
import schemathesis


@schemathesis.hook
def filter_case(context, case):
    return case.body is not None  # `null` is an empty body: generated clients send it
"""


class Shown(NamedTuple):
    """A server, and what it has to show."""

    house: House
    published: Published


@pytest_asyncio.fixture(loop_scope="session")
async def shown(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shown]:
    folder = tmp_path_factory.mktemp("house")
    async with house_in(folder, http=HttpSettings(port=0)) as house, publishing(house) as published:
        yield Shown(house, published)


def dictionaries(published: Published) -> str:
    """The names of all that is there, so that half of the calls are about something."""
    names = {
        "match": [name.split("/")[1] for name in published.matches],
        "bot": [name.split("/")[1] for name in published.bots],
        "version": ["1"],
        "game": ["ugo", "ubongo"],
        "ladder": [LADDER.split("/")[1]],
        "league": [LEAGUE.split("/")[1]],
        "set": [DEAL_SET.split("/")[1]],
    }
    values = [f"[dictionaries.{key}]\nvalues = {json.dumps(value)}\n" for key, value in names.items()]
    bound = [f'"path.{key}" = {{ dictionary = "{key}", probability = 0.7 }}\n' for key in names]
    return "".join([*values, "[parameters]\n", *bound])


async def tried(shown: Shown, folder: Path, token: str, examples: int, phases: str) -> int:
    """How many cases were tried. Fails with what was found."""
    config = folder / "schemathesis.toml"
    config.write_text(CONFIG + dictionaries(shown.published))
    (folder / "hooks.py").write_text(HOOKS)
    assert shown.house.server
    process = await asyncio.create_subprocess_exec(
        SCHEMATHESIS, "--config-file", config, "run", "--no-color", "--phases", phases, "-n", str(examples),
        "--checks", "all", *(["-H", f"Authorization: Bearer {token}"] if token else []),
        f"{shown.house.server.http_address}/v1/openapi.json",
        cwd=folder, env=os.environ | {"COLUMNS": "160"},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(LONGEST_S):
            output = (await process.communicate())[0].decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, output[:20_000]
    cases = re.search(r"(\d[\d,]*) generated", output)
    assert cases, output
    return int(cases[1].replace(",", ""))


@pytest.mark.slow
@pytest.mark.timeout(3 * LONGEST_S)
@pytest.mark.parametrize("caller", ["nobody", "bot", "admin"])
async def test_nothing_is_found_in_hundreds_of_cases(shown: Shown, tmp_path: Path, caller: str) -> None:
    token = {"nobody": "", "bot": shown.published.token, "admin": shown.house.admin.token}[caller]
    assert await tried(shown, tmp_path, token, 20, "examples,coverage,fuzzing,stateful") > 500
    assert not shown.house.logs.faults()
