"""A disk that a run can fill: a small file system of its own, or else a limit for the files of the process."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

SIZE_MB = 64
CHUNK = bytes(65_536)
BALLAST = "ballast"


class SmallDisk:
    """What a folder lies on. Where no file system may be mounted, only the size of its files can be limited."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m,mode=700", "seatwise-chaos", str(folder)]
        try:
            self.is_mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
        except OSError:
            self.is_mounted = False

    @property
    def how(self) -> str:
        """How it is filled, for people."""
        return f"a tmpfs of {SIZE_MB} MiB" if self.is_mounted else "a limit for the size of files"

    def fill(self, pid: int) -> None:
        """From now on this process can write nothing to it."""
        if self.is_mounted:
            self._fill_with_ballast()
            return
        sizes = [path.stat().st_size for path in self._folder.rglob("*.aof")]
        _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (max(sizes, default=0), most))

    def free(self) -> None:
        """Makes room again. The limit ends with the process that it has ended."""
        (self._folder / BALLAST).unlink(missing_ok=True)

    def unmount(self) -> None:
        """Takes away what was mounted, with all that is in it."""
        if self.is_mounted:
            subprocess.run(["umount", "-l", str(self._folder)], check=False)

    def _fill_with_ballast(self) -> None:
        with (self._folder / BALLAST).open("wb", buffering=0) as ballast:
            for size in (len(CHUNK), 1):
                try:
                    while ballast.write(CHUNK[:size]):
                        pass
                except OSError:  # it is full
                    continue
