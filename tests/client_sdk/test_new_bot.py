"""`seatwise new`: the bot that it writes plays, and its test passes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

import seatwise
from seatwise.cli import main
from seatwise.cli.new import LANGUAGES
from seatwise.codec.json_values import view_to_json
from seatwise.kits.ugo.codec import CODEC as UGO_CODEC
from seatwise.ugo import Card, View

MAKE_S = 100.0


def write(folder: Path, *options: str) -> Path:
    assert main(["new", str(folder), *options]) == 0
    return folder


def make(folder: Path, target: str) -> str:
    """The output of a target, which must succeed."""
    done = subprocess.run(
        ["make", target], cwd=folder, capture_output=True, text=True, timeout=MAKE_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("game", ["ugo", "ubongo"])
def test_a_new_python_bot_passes_its_own_test_and_beats_random(tmp_path: Path, game: str) -> None:
    folder = write(tmp_path / "my-first bot", "--game", game)
    assert "class MyFirstBot(seatwise.Bot):" in (folder / "bot.py").read_text()
    assert "Ran 2 tests" in make(folder, "test")


WEAK = {
    "ugo": """import seatwise
class Mine(seatwise.Bot):
    def choose(self, view):
        return min(view.legal_cards, key=lambda card: card.value)
""",
    "ubongo": """import seatwise
class Mine(seatwise.Bot):
    def build(self, view):
        yield from ()
""",
}
"""Bots that never fail, and lose to `random`."""


@pytest.mark.parametrize("game", WEAK)
def test_the_test_of_a_new_python_bot_finds_one_that_loses_to_random(tmp_path: Path, game: str) -> None:
    folder = write(tmp_path / "mine", "--game", game)
    (folder / "bot.py").write_text(WEAK[game])
    done = subprocess.run(
        ["make", "test"], cwd=folder, capture_output=True, text=True, timeout=MAKE_S, check=False
    )
    assert "FAIL: test_it_beats_random" in done.stderr
    assert "failures=1" in done.stderr


def test_a_new_python_bot_is_compared_with_the_version_that_was_kept(tmp_path: Path) -> None:
    folder = write(tmp_path / "mine")
    assert "test" in make(folder, "help")
    make(folder, "keep")
    text = (folder / "Makefile").read_text().replace(" compare --game", " compare --matches 4 --game")
    (folder / "Makefile").write_text(text)
    assert "It took 4 matches" in make(folder, "compare")


def test_its_annotations_hold(tmp_path: Path) -> None:
    for game in ("ugo", "ubongo"):
        folder = write(tmp_path / game, "--game", game)
        done = subprocess.run(
            [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E4,F,I,N,ANN", str(folder / "bot.py")],
            capture_output=True, text=True, timeout=MAKE_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("language", [each for each in LANGUAGES if each != "python"])
def test_a_starter_is_whole_wherever_it_lies(tmp_path: Path, language: str) -> None:
    folder = write(tmp_path / "mine", "--language", language)
    assert (folder / "Makefile").is_file()
    assert any("strategy" in path.name and "test" in path.read_text() for path in folder.rglob("*strategy*"))
    texts = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    assert not any("../proto" in text for text in texts)
    assert (folder / "proto/seatwise/v1/play_service.proto").is_file() == (language != "node")


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed here")
def test_the_test_of_the_node_starter_passes(tmp_path: Path) -> None:
    assert "pass 2" in make(write(tmp_path / "mine", "--language", "node"), "test")


ASKED_THROUGH_LINES = """
import { createInterface } from "node:readline";
import { choose } from "./strategy.mjs";
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(choose(...JSON.parse(line))));
}
"""
"""A program that answers each line: the kind of a prompt, and a view."""


class AskedNode(seatwise.Bot):
    """Moves as the strategy of the Node starter does, which runs beside it."""

    node: ClassVar[subprocess.Popen[str]]

    def answer(self, pace: str, view: View) -> Any:
        assert self.node.stdin
        assert self.node.stdout
        self.node.stdin.write(json.dumps([pace, view_to_json(UGO_CODEC, view)]) + "\n")
        self.node.stdin.flush()
        return json.loads(self.node.stdout.readline())

    def choose(self, view: View) -> Card:
        return Card.parse(self.answer("card", view)["play"].removeprefix("CARD_"))

    def arrange(self, view: View) -> list[Card]:
        cards = self.answer("arrange", view)["arrange"]["cards"]
        return [Card.parse(card.removeprefix("CARD_")) for card in cards]


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed here")
@pytest.mark.slow
def test_the_node_starter_beats_random(tmp_path: Path) -> None:
    """The starters of the other languages play by the same rule, as their own tests say."""
    folder = write(tmp_path / "mine", "--language", "node")
    (folder / "asked.mjs").write_text(ASKED_THROUGH_LINES)
    with subprocess.Popen(
        ["node", "asked.mjs"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as AskedNode.node:
        results = seatwise.play([AskedNode, "random"], matches=20, seed=1)
    assert results.standing("AskedNode").mean_points > results.standing("random").mean_points + 10
    assert not any(match.failures[match.bots.index("AskedNode")] for match in results)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["7", "--game", "ugo"], "begin it with a letter"),
        (["mine", "--game", "chess"], "no such game"),
        (["mine", "--game", "ubongo", "--language", "go"], "the starter in go plays ugo"),
        (["full"], "is there already"),
        (["file/mine"], "cannot write to"),
    ],
)
def test_it_says_why_it_writes_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "kept").touch()
    (tmp_path / "file").touch()
    assert main(["new", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "mine").exists()


def test_json_names_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "mine", "--json")
    told = json.loads(capsys.readouterr().out)
    assert [Path(file).name for file in told["files"]] == ["Makefile", "bot.py", "test_bot.py"]
