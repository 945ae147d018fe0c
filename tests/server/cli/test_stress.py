"""`seatwise stress` against a real server: every hostile bot acts, honest matches are measured, and no bot is left."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest
from harness import House

from seatwise.async_client import AsyncClient
from seatwise.stress.hostile import HOSTILE_KINDS

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


@pytest.mark.timeout(300)
async def test_all_hostile_bots_act_beside_honest_matches_and_all_are_deleted(house: House) -> None:
    command = (
        "-m",
        "seatwise",
        "stress",
        house.address,
        "--token",
        house.admin.token,
        "--seconds",
        "8",
        "--json",
    )
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=pipe, stderr=pipe)
    async with asyncio.timeout(240):
        out, complained = await process.communicate()
    assert process.returncode in (0, 1), complained.decode()  # 1: a loaded machine may cost a move
    report = json.loads(out)
    assert all(phase["steps"] > 0 for phase in report["honest"].values())
    acts = dict.fromkeys(HOSTILE_KINDS, 0)
    for each in report["hostile"]:
        assert each["failure"] == ""
        acts[each["kind"]] += each["acts"]
    assert all(acts.values()), acts
    async with AsyncClient(house.address) as client:
        bots = (await client.list_bots(page_size=1000)).bots
    assert not [bot.name for bot in bots if bot.name.startswith("bots/stress-")]
