"""The commands of docs/rest.md and of the README do what they say, as a shell runs them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from pathlib import Path

import pytest
from harness import House, dealt

from seatwise_referee.verify import verify_line

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(not shutil.which("curl"), reason="CURL IS NOT INSTALLED: docs/rest.md is not tried"),
]

ROOT = Path(__file__).parents[3]
COMMANDS = re.findall(r"^curl .*$", (ROOT / "docs" / "rest.md").read_text(), re.MULTILINE)


async def run(house: House, command: str, folder: Path, match: str) -> str:
    """What the command prints, with the address, the match and the token of this server."""
    assert house.server is not None
    text = command.replace("http://localhost:7480", house.server.http_address).replace("matches/MATCH", match)
    text = text.replace("localhost:7480", house.server.http_address.removeprefix("http://"))
    shell = await asyncio.create_subprocess_shell(
        text.replace("curl ", "curl -sS --max-time 20 ", 1), cwd=folder, stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "TOKEN": house.admin.token, "no_proxy": "*"},
    )  # fmt: skip
    told, _ = await shell.communicate()
    assert shell.returncode == 0, text
    return told.decode()


async def test_the_commands_of_the_page_do_what_they_say(http_house: House, tmp_path: Path) -> None:
    async with dealt(http_house) as (table, _, _):
        await table.play_out()
        await http_house.admin.over(table.name)
    told = [await run(http_house, command, tmp_path, table.name) for command in COMMANDS]
    games, matches, watched, record, made, deleted = told
    assert len(json.loads(games)["games"]) == 2
    assert json.loads(matches)["matches"][0]["name"] == table.name
    assert json.loads(watched.splitlines()[0])["match"]["name"] == table.name
    assert record == ""
    assert verify_line((tmp_path / "record.jsonl").read_bytes()).fault is None
    assert json.loads(made)["bot"]["name"] == "bots/my-bot/versions/1"
    assert json.loads(deleted) == {"abortedMatches": []}


async def test_the_commands_of_the_readme_do_what_they_say(http_house: House, tmp_path: Path) -> None:
    commands = re.findall(r"`(curl [^`]*)`|^(curl .*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert commands
    for command in commands:
        json.loads(await run(http_house, "".join(command), tmp_path, "matches/none"))
