"""Child processes end with their parent, from their first instruction on, and inherit no secret for code of others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from seatwise import child_process
from seatwise.child_process import ChildProcess

PARENT = """
import sys, time
from subprocess import PIPE
from seatwise.child_process import open_child
child = open_child(sys.argv[1], *sys.argv[3:], stdout=PIPE, runs_others=sys.argv[2] == "others")
print(child.pid, flush=True)
time.sleep(60)
"""
CHILDREN = {
    "deaf": "import signal, time\nsignal.signal(signal.SIGTERM, lambda *_: None)\n",
    "simple": "import time\n",
    "starting": "import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)', 'of_a_bot'])\n",
}
SPEAKS = """
import json, os
from seatwise.child_process import told_lines
from seatwise.output import AnswerOutput
answers = AnswerOutput()
print("what a bot prints")
for told in told_lines():
    answers.print_line(json.dumps([told, sorted(name for name in os.environ if name.startswith("SEATWISE_"))]))
"""


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that children can run."""
    for name, text in CHILDREN.items():
        (tmp_path / f"{name}_child.py").write_text(text + "time.sleep(60)\n")
    (tmp_path / "speaking_child.py").write_text(SPEAKS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(is_so: Callable[[], bool], within_s: float = 20.0) -> float:
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() - began < within_s
        time.sleep(0.01)
    return time.monotonic() - began


@pytest.mark.parametrize("after_s", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("whose", ["own", "others"])
def test_a_child_ends_with_its_parent_however_soon_that_is_killed(whose: str, after_s: float) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, "simple_child", whose], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout
    pid = int(parent.stdout.readline())
    time.sleep(after_s)
    parent.kill()
    parent.communicate()
    wait_until(lambda: not is_alive(pid), 3.0)


def test_a_child_that_ignores_sigterm_is_killed_some_seconds_after_its_parent() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, "deaf_child", "own"], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout
    pid = int(parent.stdout.readline())
    time.sleep(1.0)
    parent.kill()
    parent.communicate()
    assert wait_until(lambda: not is_alive(pid)) > child_process.ORPHAN_END_S / 2


def test_processes_that_code_of_others_has_started_end_with_it() -> None:
    def started() -> list[str]:
        return [
            each.name for each in Path("/proc").iterdir()
            if each.name.isdigit() and is_alive(int(each.name)) and b"of_a_bot" in (each / "cmdline").read_bytes()
        ]  # fmt: skip

    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, "starting_child", "others"], stdout=subprocess.PIPE, text=True
    )
    wait_until(lambda: bool(started()))
    parent.kill()
    parent.communicate()
    wait_until(lambda: not started(), 3.0)


@pytest.mark.asyncio
async def test_a_child_is_told_and_answers_and_what_it_prints_spoils_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEATWISE_TOKEN", "secret")
    monkeypatch.delenv("SEATWISE_DATA", raising=False)
    for runs_others, inherited in ((False, ["SEATWISE_TOKEN"]), (True, ["SEATWISE_OWN"])):
        child = await ChildProcess.start(
            "speaking_child", stdout=subprocess.PIPE, runs_others=runs_others,
            environment={"SEATWISE_OWN": "given"} if runs_others else {},
        )  # fmt: skip
        for told in ({"a": 1}, "ä\n", None):
            child.send_line(told)
            assert json.loads(await child.read_line(20.0)) == [told, inherited]
        await child.stop()
        assert child.code == -signal.SIGTERM
        assert not is_alive(child.pid)
    assert "what a bot prints" in capfd.readouterr().err
    assert os.environ["SEATWISE_TOKEN"]
