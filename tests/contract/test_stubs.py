"""The generated stubs are those of proto/ as it stands."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import seatwise
import seatwise_server

ROOT = Path(__file__).parents[2]
HINT = "the stubs are not those of proto/: run `make proto`"


def build_stubs() -> Any:
    spec = importlib.util.spec_from_file_location("build_stubs", ROOT / "proto" / "build_stubs.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stubs(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in [*folder.rglob("*_pb2*"), *folder.rglob("client_methods.py")]
        if path.suffix in {".py", ".pyi"}
    }


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stubs")
    build_stubs().compile_protos(ROOT, folder)
    return folder


@pytest.fixture(scope="module")
def fresh(compiled: Path) -> dict[str, str]:
    return stubs(compiled / build_stubs().STUBS)


def test_there_is_a_stub_for_each_proto_and_no_other(fresh: dict[str, str]) -> None:
    installed = stubs(Path(str(seatwise.__file__)).parents[1])
    assert installed.keys() == fresh.keys(), HINT


def test_every_stub_is_what_the_compiler_writes_today(fresh: dict[str, str]) -> None:
    installed = stubs(Path(str(seatwise.__file__)).parents[1])
    changed = [name for name, text in fresh.items() if installed.get(name) != text]
    assert not changed, HINT


@pytest.mark.needs_sources
def test_the_descriptors_with_the_comments_are_what_the_compiler_writes_today(compiled: Path) -> None:
    path = build_stubs().DESCRIPTORS
    installed = Path(str(seatwise_server.__file__)).parents[2]
    assert (installed / path).read_bytes() == (compiled / path).read_bytes(), HINT


def test_the_path_of_a_proto_is_that_of_its_package() -> None:
    """So that nothing has to be rewritten: proto package, folder and Python import are one."""
    source = ROOT / "proto"
    for path in source.rglob("*.proto"):
        package = ".".join(path.relative_to(source).parent.parts)
        assert f"\npackage {package};\n" in path.read_text(encoding="utf-8"), path
