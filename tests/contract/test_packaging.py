"""What is installed, under which name, version and licence."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]


def named(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found
    return found[0].lower()


def test_a_bot_author_installs_grpcio_and_protobuf_and_no_more() -> None:
    assert sorted(map(named, PROJECT["dependencies"])) == ["grpcio", "protobuf"]


def test_the_stubs_run_on_every_protobuf_that_may_be_installed() -> None:
    """Compiled by an exact grpcio-tools, whose stubs refuse a runtime older than their own compiler."""
    assert "grpcio-tools==1.76.0" in PYPROJECT["build-system"]["requires"]
    assert "grpcio-tools==1.76.0" in PROJECT["optional-dependencies"]["dev"]
    assert {"grpcio>=1.76.0", "protobuf>=6.31.1,<8"} == set(PROJECT["dependencies"])


def test_everything_beyond_a_bot_is_an_extra() -> None:
    extras = PROJECT["optional-dependencies"]
    assert {"server", "embedded", "dev"} <= extras.keys()
    assert {"redis", "structlog", "rich"} <= set(map(named, extras["server"]))
    [own] = [each for each in extras["dev"] if each.startswith("seatwise[")]
    assert {"server", "embedded"} <= set(own.removeprefix("seatwise[").removesuffix("]").split(","))


def test_the_version_stands_in_one_place() -> None:
    assert metadata.version("seatwise") == PROJECT["version"]
    for folder in ("client_sdk", "referee", "server"):
        for path in (ROOT / folder).rglob("*.py"):
            if "_pb2" not in path.name:
                assert f'"{PROJECT["version"]}"' not in path.read_text(encoding="utf-8"), path


def test_the_licence_is_apache_2() -> None:
    assert PROJECT["license"] == "Apache-2.0"
    assert PROJECT["license-files"] == ["LICENSE"]
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert re.search(r"Apache License\s+Version 2\.0, January 2004", text)
    assert "END OF TERMS AND CONDITIONS" in text


@pytest.mark.parametrize("package", PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
def test_every_package_says_that_it_is_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


@pytest.mark.parametrize("folder", ["client_sdk", "server", "docs", "deploy", "README.md"])
def test_no_page_says_to_install_it_from_an_index_that_does_not_have_it(folder: str) -> None:
    """Until the package is in an index, the way is a clone: `pip install .`, with extras in brackets."""
    start = ROOT / folder
    paths = (
        [start]
        if start.is_file()
        else [each for kind in ("md", "py", "j2", "sh", "yaml") for each in start.rglob(f"*.{kind}")]
    )
    told = [
        path for path in paths if re.search(r"pip install ['\"]?seatwise", path.read_text(encoding="utf-8"))
    ]
    assert told == []
