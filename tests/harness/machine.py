"""A machine whose disk stalls and whose wall clock jumps, for processes that are started on it."""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("machine.c")
NUMBERS = struct.Struct("<qq")


class Machine:
    """What it does may be changed at any time; it holds for all processes that were started on it."""

    def __init__(self, library: Path, told: Path) -> None:
        self._env = {"LD_PRELOAD": str(library), "SEATWISE_TEST_MACHINE": str(told)}
        told.write_bytes(bytes(NUMBERS.size))
        with told.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), NUMBERS.size)

    def behave(self, sync_ms: int = 0, jump_s: int = 0) -> None:
        """From now on every sync takes so much longer, and the wall clock is so far off."""
        self._page[:] = NUMBERS.pack(sync_ms, jump_s)

    @contextmanager
    def hosting(self) -> Iterator[None]:
        """Processes that are started meanwhile run on this machine."""
        before = {name: os.environ.get(name) for name in self._env}
        os.environ.update(self._env)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def machine_in(folder: Path) -> Machine:
    """A machine that is well so far. Where there is no C compiler, or no such loader, the test is left out."""
    compiler = shutil.which("cc")
    if compiler is None or os.uname().sysname != "Linux":
        pytest.skip("this test needs Linux and a C compiler for a disk that stalls and a clock that jumps")
    library = folder / "machine.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
    return Machine(library, folder / "machine")
