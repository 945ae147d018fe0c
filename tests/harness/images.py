"""Images of deploy/Dockerfile without a registry: the base comes by debootstrap, and buildah needs no daemon."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.process import ServerProcess, processes_with

ROOT = Path(__file__).parents[2]
BASE = "localhost/seatwise-base"
PACKAGES = "ca-certificates,python3,python3-dev,python3-venv,python-is-python3"
"""What the base has beside a minimal Debian. The image of Python that the Dockerfile names has the same."""
USER = 10001
"""Whom the image runs as."""
STEP_S = 1800.0
"""One step of a build may take so long: it compiles our core, on a machine under load."""


class Images:
    """A store of images in a folder of its own. Its first use skips the test where this machine forbids it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        _skip_without_tools()
        self._buildah = [
            "env",
            f"TMPDIR={folder}",
            "buildah",
            "--root",
            str(folder / "store"),
            "--runroot",
            str(folder / "run"),
        ]
        self._make_base()

    def build(self, tag: str, revision: str, dockerfile: Path, *, compiled: bool) -> str:
        """Builds the image of that commit by this Dockerfile. Returns its name."""
        name, context = f"localhost/seatwise:{tag}", self.folder / tag
        _unpack(revision, context)
        options = ["--isolation", "chroot", "--pull-never", "--layers", "--format", "docker"]
        options += ["--build-arg", f"BASE={BASE}", "--build-arg", f"SEATWISE_COMPILE={compiled:d}"]
        for place in self._settings_of_pip():
            options += ["--volume", place]
        options += ["--ignorefile", f"{dockerfile}.dockerignore", "--file", str(dockerfile), "--tag", name]
        self.run_buildah("bud", *options, str(context))
        return name

    def run_buildah(self, *args: str) -> str:
        """Runs a command of buildah; returns its standard output. It must end with 0."""
        return _run([*self._buildah, *args])

    def container_command(self, image: str, folders: Sequence[Path]) -> list[str]:
        """Returns the command that starts a new container by its own entry point; it sees these folders."""
        container = self.run_buildah("from", "--pull-never", image).strip()
        config = json.loads(self.run_buildah("inspect", container))["Docker"]["config"]
        assert config["User"] == f"{USER}:{USER}"
        volumes = [f"--volume={folder}:{folder}" for folder in folders]
        run = ["run", "--isolation", "chroot", *volumes, container, "--"]
        return [*self._buildah, *run, *config["Entrypoint"]]

    def remove(self) -> None:
        """Removes all containers and images, and what they have mounted."""
        subprocess.run([*self._buildah, "rm", "--all"], capture_output=True, check=False)
        subprocess.run([*self._buildah, "rmi", "--all", "--force"], capture_output=True, check=False)

    def _make_base(self) -> None:
        root = self.folder / "base"
        suite = _read_release().get("VERSION_CODENAME", "stable")
        command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, str(root)]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode:
            pytest.skip(f"debootstrap makes no {suite} here: {made.stdout.strip().splitlines()[-1:]}")
        try:
            container = self.run_buildah("from", "scratch").strip()
        except AssertionError as failed:
            pytest.skip(f"buildah makes no container here: {failed}")
        self.run_buildah("copy", "--quiet", container, str(root), "/")
        self.run_buildah("commit", "--quiet", "--rm", container, BASE)
        shutil.rmtree(root)

    def _settings_of_pip(self) -> list[str]:
        """Mounts for pip in a build: the settings that it has on this machine, and the files that they name."""
        listed = _run(["pip", "config", "list"]).splitlines()
        settings = [line.partition("=") for line in listed]
        values = {key.rpartition(".")[2]: value.strip("'") for key, _, value in settings}
        (file := self.folder / "pip.conf").write_text(
            "".join(["[global]\n", *[f"{key} = {value}\n" for key, value in values.items()]])
        )
        named = [value for value in values.values() if value.startswith("/") and Path(value).exists()]
        return [f"{file}:/etc/pip.conf:ro", *[f"{each}:{each}:ro" for each in named]]


class ContainerProcess(ServerProcess):
    """`seatwise serve` in a container, by the entry point of its image; it sees its folders under the same paths."""

    def __init__(self, images: Images, image: str, data: Path, redis: Path, *args: str) -> None:
        """`redis` is the folder of a Redis outside of the container."""
        super().__init__(data, *args)
        self.image = image
        """Of the next start."""
        self._images = images
        self._redis = redis

    def command_with(self, options: list[str]) -> list[str]:
        """The command that starts a new container; its ports for health and metrics are free ones."""
        free = ["--health-port", "0", "--metrics-port", "0"]
        return [*self._images.container_command(self.image, [self.data, self._redis]), *free, *options]

    def signal(self, number: signal.Signals) -> None:
        """To the server, as a container engine does; SIGKILL is for all processes of the container."""
        found = processes_with(str(self.data))
        chosen = found if number == signal.SIGKILL else [pid for pid in found if _is_server(pid)]
        for pid in chosen:
            os.kill(pid, number)


def _is_server(pid: int) -> bool:
    try:
        args = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b"serve" in args[:3] and b"python" in args[0] and Path(f"/proc/{pid}").stat().st_uid == USER
    except OSError:
        return False


def _skip_without_tools() -> None:
    if os.geteuid() != 0:
        pytest.skip("debootstrap and the chroot isolation of buildah need root")
    for tool in ("debootstrap", "buildah", "pip", "git"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed, so no image is built here")


def _unpack(revision: str, folder: Path) -> None:
    archive = ["git", "-C", str(ROOT), "archive", "--format=tar", revision]
    found = subprocess.run(archive, capture_output=True, check=False)
    if found.returncode:
        pytest.skip(f"{revision} is not in the history of this checkout")
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder)], input=found.stdout, check=True)


def _read_release() -> dict[str, Any]:
    lines = Path("/etc/os-release").read_text().splitlines()
    return {key: value.strip('"') for key, _, value in (line.partition("=") for line in lines)}


def _run(command: list[str]) -> str:
    ended = subprocess.run(
        command, capture_output=True, text=True, errors="replace", check=False, timeout=STEP_S
    )
    assert ended.returncode == 0, f"{command}: {ended.stdout[-2000:]}{ended.stderr[-4000:]}"
    return ended.stdout
