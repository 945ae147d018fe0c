"""Plants one fault at a time in a copy of the packages; the suite named for it must fail.

    python tests/mutants/mutants.py               # all of them
    python tests/mutants/mutants.py fence leak    # those whose name has one of the words

The suites must pass where nothing is planted, or their failing would prove nothing. Exits 1 if a fault survives, or if one cannot be planted any
more because the code has moved on: then faults.py is to follow.
"""

from __future__ import annotations

import argparse
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from faults import FAULTS, Fault

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDERS = {"referee": "seatwise_referee", "server": "seatwise_server", "client_sdk": "seatwise"}
JOBS = 2
LONGEST_S = 120
"""A suite that takes longer has not passed: the fault makes it hang."""
LONGEST_SOUND_S = 900
"""The longest time for all suites together, without any fault."""

PYTEST = (
    "-m",
    "pytest",
    "-x",
    "-q",
    "--no-header",
    "-p",
    "no:cacheprovider",
    "-p",
    "no_shrinking",
    "--timeout=60",
)
PASSED, FAILED = 0, 1
"""Exit codes of pytest; any other says that it did not come to testing."""


@dataclass(frozen=True)
class Verdict:
    """What became of one fault."""

    fault: Fault
    word: str
    """killed, SURVIVED or BROKEN."""
    took_s: float
    told: str = ""


class Copy:
    """The packages in a folder of their own, in front of the installed ones."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in FOLDERS:
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            for source in (folder / name).rglob("*.py"):
                # By the hash of the source: two versions of a file within a second are told apart.
                py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)

    def check(self) -> None:
        """That it is really this copy that is tested."""
        names = ", ".join(FOLDERS.values())
        told = self._python("-c", f"import {names}\nfor it in ({names}): print(it.__file__)").stdout
        foreign = [line for line in told.split() if not Path(line).is_relative_to(self._folder)]
        if foreign or len(told.split()) != len(FOLDERS):
            sys.exit(f"not the copy is imported: {told}")

    def test(self, suites: Iterable[str], longest_s: float = LONGEST_S) -> subprocess.CompletedProcess[str]:
        """Runs suites against this copy, up to the first that fails. Slow tests are left out of files, unless a fault names one."""
        suites = list(suites)
        files = [suite for suite in suites if "::" not in suite]
        runs = [("-m", "not slow", *files)] if files else []
        if tests := [suite for suite in suites if "::" in suite]:
            runs.append(tuple(tests))
        for args in runs:
            ended = self._python(*PYTEST, *args, longest_s=longest_s)
            if ended.returncode != PASSED:
                break
        return ended

    @contextmanager
    def planted(self, fault: Fault) -> Iterator[None]:
        """As long as this lasts the copy has the fault."""
        file = self._folder / fault.file
        sound = file.read_text(encoding="utf-8")
        file.write_text(sound.replace(fault.old, fault.new), encoding="utf-8")
        try:
            yield
        finally:
            file.write_text(sound, encoding="utf-8")

    def _python(self, *args: str, longest_s: float = LONGEST_S) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([*(str(self._folder / name) for name in FOLDERS), str(HERE)])
        return subprocess.run(
            [sys.executable, *args],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
            timeout=longest_s,
        )  # fmt: skip


def stale(faults: Sequence[Fault]) -> list[str]:
    """The faults that cannot be planted: their text must stand in the file exactly once."""
    return [
        f"{fault.file}: {fault.name}: {fault.old!r} stands there {number} times"
        for fault in faults
        if (number := _occurrences(fault)) != 1
    ]


def _occurrences(fault: Fault) -> int:
    file = ROOT / fault.file
    return file.read_text(encoding="utf-8").count(fault.old) if file.exists() else 0


def verdict_on(fault: Fault, copies: SimpleQueue[Copy]) -> Verdict:
    """Plants it in a copy that is free."""
    copy, began = copies.get(), time.monotonic()
    try:
        with copy.planted(fault):
            word, told = _tried(copy, fault)
    finally:
        copies.put(copy)
    return Verdict(fault, word, time.monotonic() - began, told)


def _tried(copy: Copy, fault: Fault) -> tuple[str, str]:
    try:
        ended = copy.test(fault.suites)
    except subprocess.TimeoutExpired:
        return "killed", ""
    if ended.returncode == FAILED:
        return "killed", ""
    return "SURVIVED" if ended.returncode == PASSED else "BROKEN", ended.stdout + ended.stderr


def check_sound(copies: Sequence[Copy], faults: Sequence[Fault]) -> None:
    """All suites pass where nothing is planted; each copy tests half of them."""
    suites = sorted({suite for fault in faults for suite in fault.suites})
    with ThreadPoolExecutor(len(copies)) as pool:
        runs = [
            pool.submit(copy.test, part, LONGEST_SOUND_S)
            for number, copy in enumerate(copies)
            if (part := suites[number :: len(copies)])
        ]
        for run in runs:
            if run.result().returncode != PASSED:
                sys.exit(f"without any fault:\n{run.result().stdout}{run.result().stderr}")


def print_line(verdict: Verdict, width: int) -> None:
    suites = " ".join(suite.removeprefix("tests/") for suite in verdict.fault.suites)
    print(f"{verdict.word:<9} {verdict.fault.name:<{width}}  {verdict.took_s:5.1f} s  {suites}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("words", nargs="*", help="only faults whose name has one of these")
    parser.add_argument("--jobs", type=int, default=JOBS, help="processes at once (default: %(default)s)")
    args = parser.parse_args()
    faults = [it for it in FAULTS if not args.words or any(word in it.name for word in args.words)]
    if not faults:
        parser.error("there is no such fault")
    if names := stale(FAULTS):
        print(
            "these faults have no place in the code any more; mend tests/mutants/faults.py:", *names, sep="\n"
        )
        return 1
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="seatwise-mutants-") as folder:
        copies = [Copy(Path(folder) / str(number)) for number in range(args.jobs)]
        copies[0].check()
        check_sound(copies, faults)
        free: SimpleQueue[Copy] = SimpleQueue()
        for copy in copies:
            free.put(copy)
        verdicts, width = [], max(len(fault.name) for fault in faults)
        with ThreadPoolExecutor(args.jobs) as pool:
            for verdict in pool.map(lambda fault: verdict_on(fault, free), faults):
                verdicts.append(verdict)
                print_line(verdict, width)
    bad = [verdict for verdict in verdicts if verdict.word != "killed"]
    for verdict in bad:
        print(f"\n--- {verdict.word}: {verdict.fault.name}\n{verdict.told}")
    print(f"{len(verdicts) - len(bad)} of {len(verdicts)} faults found in {time.monotonic() - began:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
