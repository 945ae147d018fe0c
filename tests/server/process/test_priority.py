"""A process that steps back does so beside other sessions, too, and takes no other process along."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

GROUP = Path("/proc/self/autogroup")
PROGRAM = """
import os
from pathlib import Path
from seatwise.child_process import lower_priority
changed = lower_priority(7)
group = Path("/proc/self/autogroup")
while not changed:  # the kernel lets one process do so every 0.1 s
    changed = lower_priority(7)
print(os.getpriority(os.PRIO_PROCESS, 0), group.read_text() if group.exists() else "")
"""


def _run_program(*, own_session: bool) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True, text=True, check=True, timeout=60, start_new_session=own_session,
    )  # fmt: skip
    niceness, _, group = done.stdout.strip().partition(" ")
    return int(niceness), group


def _expected() -> int:
    return max(7, os.getpriority(os.PRIO_PROCESS, 0))


@pytest.mark.skipif(not GROUP.exists(), reason="this kernel does not share cores between sessions")
def test_a_process_with_its_own_session_steps_back_behind_other_sessions() -> None:
    niceness, group = _run_program(own_session=True)
    assert (niceness, group.split()[1:]) == (_expected(), ["nice", "7"])


def test_a_process_of_the_servers_session_steps_back_alone() -> None:
    before = GROUP.read_text() if GROUP.exists() else ""
    niceness, group = _run_program(own_session=False)
    assert (niceness, group) == (_expected(), before.strip())
