"""The optional build by mypyc: what it compiles, and what it leaves to the interpreter."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
BORDERS = {
    "referee/seatwise_referee/time_control.py",
    "referee/seatwise_referee/journal.py",
    "referee/seatwise_referee/games/ugo/cards.py",
    "referee/seatwise_referee/games/ugo/moves.py",
    "referee/seatwise_referee/verify/reading.py",
    "referee/seatwise_referee/verify/fault.py",
    "server/seatwise_server/play/inbound.py",
}
"""What takes values from outside: a wrong type must be an error of the rules there, and never a `TypeError`."""
HOSTILE_CALLS = """
import seatwise_referee.match, seatwise_server.play.table, seatwise_referee.verify.replay
from seatwise_referee.game import BadOptions, IllegalMove
from seatwise_referee.games.ugo.moves import Arrange, Play
from seatwise_referee.games.ugo.rules import Ugo

for module in (seatwise_referee.match, seatwise_server.play.table, seatwise_referee.verify.replay):
    assert not module.__file__.endswith(".py"), module.__file__
rules = Ugo()
state = rules.deal(4, bytes(32), {"rounds": 1})
for move in (None, "R3", 3, [], Play(None), Play("R3"), Play(3), Arrange(None), Arrange((1, 2)), object()):
    try:
        rules.play(state, 0, move)
    except IllegalMove:
        continue
    raise AssertionError(move)
for rounds in (None, 4.0, True, "4", [4]):
    try:
        rules.complete_options({"rounds": rounds})
    except BadOptions:
        continue
    raise AssertionError(rounds)
from seatwise import play
from seatwise_referee.verify import verify_lines
played = play(["random", "greedy"], matches=2, seed=1, records="records.jsonl")
assert not any(match.void_reason for match in played.matches)
with open("records.jsonl", "rb") as records:
    assert [str(verdict.fault) for verdict in verify_lines(records) if verdict.fault] == []
with open("records.jsonl", "rb") as records:
    forged = [line.replace(b'"charged_ms":0', b'"charged_ms":"x"', 1) for line in records]
assert all(verdict.fault for verdict in verify_lines(forged))
"""


def load_compiler() -> ModuleType:
    spec = importlib.util.spec_from_file_location("compile_core", ROOT / "proto" / "compile_core.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiled_paths() -> list[str]:
    return [f"{folder}/{name}.py" for folder, names in load_compiler().MODULES.items() for name in names]


def test_every_compiled_module_is_a_file_and_no_border() -> None:
    paths = compiled_paths()
    assert [path for path in paths if not (ROOT / path).is_file()] == []
    assert BORDERS.isdisjoint(paths)
    assert [path for path in BORDERS if not (ROOT / path).is_file()] == []


@pytest.mark.parametrize("path", compiled_paths())
def test_no_compiled_module_has_a_class_of_errors(path: str) -> None:
    """Mypyc compiles none."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    bases = [
        ast.unparse(base) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for base in node.bases
    ]
    assert [base for base in bases if base.endswith(("Error", "Exception"))] == []


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_compiled_wheel_plays_refuses_and_verifies_as_the_sources_do(tmp_path: Path) -> None:
    environment = {**os.environ, "SEATWISE_COMPILE": "1"}
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, env=environment, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    assert not wheel.name.endswith("-none-any.whl")
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    for path in compiled_paths():
        package = site.joinpath(*Path(path).parts[1:])
        assert list(package.parent.glob(f"{package.stem}.*.so")), path
    program = [sys.executable, "-c", HOSTILE_CALLS]
    subprocess.run(program, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(site)}, check=True)
