"""The previous release, taken out of the history of this checkout, with stubs of its own."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REVISION = "62af2ad"
"""The last commit of version 0.1.0."""
PACKAGES = ("client_sdk", "referee", "server")


@dataclass(frozen=True, slots=True)
class Release:
    """A version of the product in a folder of its own, or this checkout."""

    folder: Path

    @property
    def env(self) -> dict[str, str]:
        """The environment in which Python imports this version."""
        path = os.pathsep.join(str(self.folder / package) for package in PACKAGES)
        return {**os.environ, "PYTHONPATH": path}

    async def seatwise(self, *args: object, token: str = "", within_s: float = 60.0) -> str:
        """Runs a command of this version; returns its standard output. It must end with 0."""
        process = await self.start(*args, token=token)
        async with asyncio.timeout(within_s):
            out, complaint = await process.communicate()
        assert process.returncode == 0, f"{args}: {process.returncode}: {out.decode()}{complaint.decode()}"
        return out.decode()

    async def start(self, *args: object, token: str = "") -> asyncio.subprocess.Process:
        """Starts a command of this version."""
        env = {**self.env, **({"SEATWISE_TOKEN": token} if token else {})}
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "seatwise", *map(str, args), env=env, stdout=pipe, stderr=pipe
        )


THIS = Release(ROOT)


def unpack_previous(folder: Path) -> Release:
    """Unpacks the previous release into that folder; skips the test where the history is not at hand."""
    archive = ["git", "-C", str(ROOT), "archive", "--format=tar", REVISION, *PACKAGES, "proto"]
    try:
        found = subprocess.run(archive, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("git is not installed, so the previous release cannot be taken out of the history")
    if found.returncode:
        pytest.skip(f"the previous release ({REVISION}) is not in the history of this checkout")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2 has none
        tar.extractall(folder)
    subprocess.run([sys.executable, "proto/build_stubs.py"], cwd=folder, check=True, capture_output=True)
    return Release(folder)
