"""The npm package plays matches from its tarball, has types that a compiler accepts, and is the same bytes each time."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from harness.house import house_in

from starters.starter import ROOT, STARTERS, running_starter

BOT = """
import { Bot } from "@seatwise/bot";

const ubongo = (view) => [{ lay: { cards: [view.hand[0]], xs: [0], ys: [0], turns: [0] } }, { offerEnd: { on: true } }];
const ugo = (view) => (view.legalCards.length ? { play: view.legalCards[0] } : { arrange: { cards: view.wonCards } });
const bot = new Bot({
  address: process.argv[2],
  token: process.env.SEATWISE_TOKEN ?? "",
  queues: [process.argv[3]],
  matches: 1,
  choose: (pace, view) => (pace === "build" ? ubongo(view) : ugo(view)),
  matchEnded: (ended, offer) => console.error("ended", offer.match, JSON.stringify(ended.result?.points)),
});
await bot.run();
process.exit(0);
"""


def write_package(folder: Path) -> Path:
    spec = importlib.util.spec_from_file_location("npm_package", ROOT / "deploy" / "npm_package.py")
    assert spec
    assert spec.loader
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Path(module.write_package(folder, "1.2.3"))


def install(folder: Path, *packages: str | Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    (folder / "package.json").write_text('{"private": true, "type": "module"}', encoding="utf-8")
    command = ("npm", "install", "--no-audit", "--no-fund", *map(str, packages))
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_two_runs_write_the_same_bytes(tmp_path: Path) -> None:
    one, two = (write_package(tmp_path / name) for name in ("one", "two"))
    assert one.name == "seatwise-bot-1.2.3.tgz"
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("queue", ["casual-2", pytest.param("casual-ubongo", marks=pytest.mark.slow)])
async def test_a_bot_plays_a_match_with_the_package_that_npm_installs(queue: str, tmp_path: Path) -> None:
    install(tmp_path, "--offline", write_package(tmp_path))
    (tmp_path / "bot.mjs").write_text(BOT, encoding="utf-8")
    [node] = [each for each in STARTERS if each.name == "node"]
    async with house_in(tmp_path, house_bots=True, ws_port=0) as house:
        assert house.server
        bot = await house.admin.register()
        command = (*node.run[:-1], "bot.mjs", house.server.ws_address, queue)
        async with running_starter(command, tmp_path, bot.token) as running:
            said = await running.said(r"ended (matches/\w+) (\S+)", 60.0)
            assert await running.ended() == 0
        match = await house.admin.over(said[1])
    assert list(match.result.points) == json.loads(said[2])
    assert match.result.endings[list(match.bots).index(bot.bot)] == 1, "it is not COMPLETED"


@pytest.mark.slow
def test_the_types_are_accepted_by_a_strict_compiler(tmp_path: Path) -> None:
    install(tmp_path, write_package(tmp_path), "typescript@5.9.3", "@types/node@22")
    (tmp_path / "bot.ts").write_text(BOT.replace("(view) =>", "(view: any) =>"), encoding="utf-8")
    wrong = BOT.replace("matches: 1", 'matches: "1"').replace("(view) =>", "(view: any) =>")
    (tmp_path / "wrong.ts").write_text(wrong, encoding="utf-8")
    tsc = (
        "npx",
        "tsc",
        "--strict",
        "--noEmit",
        "--target",
        "es2022",
        "--module",
        "nodenext",
        "--types",
        "node",
    )
    codes = [
        subprocess.run((*tsc, name), cwd=tmp_path, capture_output=True, check=False).returncode
        for name in ("bot.ts", "wrong.ts")
    ]
    assert codes == [0, 2]
