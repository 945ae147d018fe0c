"""What is installed is pinned by hash, and what is built can be built again with the same bytes."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
LOCKS = {"dev": ROOT / "requirements.lock", "server": ROOT / "deploy" / "requirements.lock"}
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCE = (
    "docs/rules",
    "docs/starters",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "proto",
    "client_sdk",
    "referee",
    "server",
)


def pins(lock: Path) -> dict[str, str]:
    """The versions in a lock file, by package."""
    found = re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", lock.read_text(), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


def requirements(extra: str) -> list[Requirement]:
    """All that the package needs with this extra, without itself."""
    extras: dict[str, list[str]] = PROJECT["optional-dependencies"]
    found = [Requirement(text) for text in [*PROJECT["dependencies"], *extras[extra]]]
    inner = [name for it in found if it.name == "seatwise" for name in it.extras]
    return [it for it in found if it.name != "seatwise"] + [it for name in inner for it in requirements(name)]


@pytest.mark.parametrize("extra", LOCKS)
def test_every_dependency_is_locked_at_a_version_that_fits(extra: str) -> None:
    locked = pins(LOCKS[extra])
    for needed in requirements(extra):
        version = locked.get(canonicalize_name(needed.name))
        assert version, f"{needed.name} is not in {LOCKS[extra].name}: run `make lock`"
        assert needed.specifier.contains(version), f"{needed} is locked at {version}: run `make lock`"


@pytest.mark.parametrize("extra", LOCKS)
def test_every_locked_version_has_hashes_and_no_address(extra: str) -> None:
    text = LOCKS[extra].read_text()
    entries = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(entries) == len(pins(LOCKS[extra]))
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in text


def test_the_image_has_the_versions_that_are_tested() -> None:
    tested = pins(LOCKS["dev"])
    assert {name: tested[name] for name in pins(LOCKS["server"])} == pins(LOCKS["server"])


def test_the_image_installs_by_hash() -> None:
    [install, package] = re.findall(
        r"pip install (.*?)(?: \\)?$", (ROOT / "deploy/Dockerfile").read_text(), re.MULTILINE
    )
    assert "--require-hashes" in install
    assert "--no-deps" in package


@pytest.mark.slow
def test_a_wheel_is_built_twice_with_the_same_bytes(tmp_path: Path) -> None:
    first, second = (
        _wheel_from(tmp_path / name, umask) for name, umask in (("one", 0o022), ("another", 0o077))
    )
    assert first == second


def _wheel_from(folder: Path, umask: int) -> tuple[str, bytes]:
    """Builds a wheel from a copy of the source. Returns its name and its bytes."""
    before = os.umask(umask)
    try:
        folder.mkdir()
        for name in SOURCE:
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*_pb2*", "*.binpb")
                shutil.copytree(ROOT / name, folder / name, ignore=ignored, copy_function=shutil.copyfile)
            else:
                shutil.copyfile(ROOT / name, folder / name)
        build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
        subprocess.run(build, cwd=folder, check=True, capture_output=True)
    finally:
        os.umask(before)
    [wheel] = (folder / "dist").glob("*.whl")
    return wheel.name, wheel.read_bytes()


# The audit of `deploy/audit.py`


def load_audit() -> Any:
    spec = importlib.util.spec_from_file_location("audit", ROOT / "deploy" / "audit.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_audit_names_each_vulnerability_and_fails() -> None:
    found = {"id": "GHSA-1", "fix_versions": ["2.0"]}
    answers = [
        {"name": "a", "version": "1.0", "vulns": [found]},
        {"name": "b", "version": "1.0", "vulns": []},
    ]
    lines, code = load_audit().report_of(answers, "")
    assert lines == ["a 1.0: GHSA-1, fixed in 2.0", "2 versions looked up, 1 known vulnerabilities"]
    assert code == 1


def test_an_audit_without_findings_succeeds() -> None:
    _, code = load_audit().report_of([{"name": "b", "version": "1.0", "vulns": []}], "")
    assert code == 0


def test_an_audit_without_a_database_lists_the_versions() -> None:
    lines, code = load_audit().report_of([], LOCKS["server"].read_text())
    assert code == 0
    assert set(lines[1:]) == {f"{name}=={version}" for name, version in pins(LOCKS["server"]).items()}


# Releases

RELEASE = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", re.MULTILINE)


def test_the_changelog_lists_releases_and_the_newest_is_this_one() -> None:
    releases = RELEASE.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert releases[0][0] == PROJECT["version"]
    assert releases == sorted(releases, key=lambda it: Version(it[0]), reverse=True)
    assert [day for _, day in releases] == sorted((day for _, day in releases), reverse=True)


def test_the_manifests_name_images_of_this_release() -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "deploy").rglob("*.yaml"))]
    images = re.findall(r'image: seatwise:([^\s"]+)', "\n".join(texts))
    assert set(images) == {PROJECT["version"]}


def test_the_packages_of_the_peers_in_the_bench_are_locked_by_hash_and_without_addresses() -> None:
    folder = ROOT / "tests" / "bench" / "peers"
    named = json.loads((folder / "package.json").read_text())
    locked = json.loads((folder / "package-lock.json").read_text())["packages"]
    assert locked.pop("")["dependencies"] == named["dependencies"]
    for name, version in named["dependencies"].items():
        assert locked[f"node_modules/{name}"]["version"] == version
    assert all("integrity" in package and "resolved" not in package for package in locked.values())
