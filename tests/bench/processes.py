"""The processes of the bench: starting them, hearing from them, and what they cost by the system's own count."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
END_WITHIN_S = 20
_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


def cpu_s(pid: int) -> float:
    """User and system time of all threads of a process so far; 0 for one that is gone."""
    if not _PROC.exists():
        return _cpu_by_ps(pid)
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except FileNotFoundError:
        return 0.0
    after_name = stat.rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / _TICKS


def _cpu_by_ps(pid: int) -> float:
    """Where there is no /proc: [[hours:]minutes:]seconds."""
    said = subprocess.run(
        ["ps", "-o", "cputime=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    total = 0.0
    for part in said.stdout.strip().split(":"):
        total = total * 60 + float(part or 0)
    return total


def cpu_of_all_s() -> float:
    """What all processes of this machine have had so far; 0 where the system does not say."""
    try:
        user, nice, system, _, _, irq, softirq, *_ = (_PROC / "stat").read_text().split("\n")[0].split()[1:]
    except FileNotFoundError:
        return 0.0
    return sum(map(int, (user, nice, system, irq, softirq))) / _TICKS


class Child:
    """A process that tells what it found as lines of JSON."""

    def __init__(self, name: str, process: subprocess.Popen[str], log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log

    def hear(self) -> Any:
        """The next line; `RuntimeError` with its last words if the process ended instead."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            words = self._log.read_text()[-2000:]
            raise RuntimeError(f"{self.name} ended with code {self._process.wait()}: {words}")
        return json.loads(line)

    def tell(self) -> None:
        """An empty line, for one that waits for it."""
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()


@contextmanager
def child(script: str, *args: object, log: Path) -> Iterator[Child]:
    """A Python process of the bench, ended on leaving: it ends when its standard input does."""
    with program(script, [sys.executable, str(HERE / script), *map(str, args)], log=log) as started:
        yield started


@contextmanager
def program(
    name: str, command: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None
) -> Iterator[Child]:
    """Any program that does as the processes of the bench do."""
    with log.open("ab") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=env
        )
    try:
        yield Child(name, process, log)
    finally:
        try:
            process.communicate(timeout=END_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def say(value: object) -> None:
    """The child's side of `hear`."""
    print(json.dumps(value), flush=True)


def wait_for_end() -> None:
    """Returns when the parent lets go of us, or is gone."""
    sys.stdin.read()
