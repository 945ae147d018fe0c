"""The clients of the bench share code, and no other test runs them: each plays a few moves here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[1] / "bench"
MATCHES = ("--matches", 4, "--seconds", 0.2, "--warm", 0)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """`tests/bench/processes.py`, as the parts of the bench import it."""
    monkeypatch.syspath_prepend(str(BENCH))
    import processes

    yield processes
    sys.modules.pop("processes")


@pytest.mark.parametrize(
    ("script", "args"),
    [
        ("load.py", ("--cycle", 20)),
        pytest.param("patient_load.py", ("--bots", 4, "--rate", 200), marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_a_load_plays_on_a_server(processes: Any, script: str, args: tuple[Any, ...], tmp_path: Path) -> None:
    with processes.child("match_server.py", tmp_path / "data", log=tmp_path / "server.log") as server:
        told = server.hear()
        what = ("matches",) if script == "load.py" else ()
        where = (*what, told["address"], "--admin", told["admin"], "--pids", told["pid"])
        with processes.child(script, *where, *MATCHES, *args, log=tmp_path / "load.log") as load:
            heard = load.hear()
            while "rate" not in heard:  # the patient one says more, and waits for us
                load.tell()
                heard = load.hear()
    assert heard["rate"] > 0
    assert not heard["rejections"]
