"""`seatwise verify` on good, forged and hostile files."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from matches.example_record import FILE
from matches.scenes import SCENES

from seatwise.cli import main
from seatwise.replay.record_units import BATCH_LINES
from seatwise_referee.verify import MOST_BYTES

CHAIN = json.loads(FILE.read_bytes())["chain"]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """Three lines: right, forged, right."""
    forged = SCENES["smooth"]().line().replace(b'"charged_ms":0', b'"charged_ms":4', 1)
    path = tmp_path / "records.jsonl"
    path.write_bytes(
        FILE.read_bytes() + forged + SCENES["eventful"]().line().replace(b"matches/test", b"matches/last")
    )
    return path


def test_good_records_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(FILE)]) == 0
    assert capsys.readouterr().out == f"{FILE}: 1 record verified, nothing wrong\n"


def test_of_each_wrong_record_the_first_fault_is_printed_with_line_and_seq(
    records: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(records)]) == 1
    second, third, summary = capsys.readouterr().out.splitlines()
    assert second.startswith(f"{records}: line 2: seq 4: seat 0 was charged 4 ms; at 7 - asked 7 - ")
    assert third.startswith(f"{records}: line 3: the chain ends with ")
    assert summary == f"{records}: 2 of 3 records wrong"


def test_several_processes_find_the_same_in_the_same_order(
    records: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = tmp_path / "many.jsonl"
    lines = records.read_bytes().splitlines(keepends=True)
    many.write_bytes(b"".join(lines[number % 3] for number in range(2 * BATCH_LINES + 5)) + b"{}\n")
    assert main(["verify", str(many)]) == 1
    alone = capsys.readouterr().out
    assert f"line {2 * BATCH_LINES + 6}: " in alone
    assert "is already in line 1" in alone, "records of different batches are compared"
    assert main(["verify", "--jobs", "2", str(many)]) == 1
    assert capsys.readouterr().out == alone


def test_a_bad_number_of_jobs_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--jobs", "0", str(FILE)]) == 2
    assert "is not a whole number of at least 1" in capsys.readouterr().err


def test_a_program_reads_the_faults_as_json(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--json", str(records)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["file"], found["records"], found["wrong"]) == (str(records), 3, 2)
    assert [(each["line"], each["match"], each["seq"]) for each in found["faults"]] == [
        (2, "matches/test", 4),
        (3, "matches/last", None),
    ]
    assert found["faults"][0]["message"].startswith("seat 0 was charged 4 ms")


@pytest.mark.parametrize("chain", [CHAIN, CHAIN.upper()])
def test_a_record_is_the_one_that_was_published_if_its_chain_is(chain: str) -> None:
    assert main(["verify", str(FILE), "--chain", chain]) == 0


def test_another_chain_than_the_published_one_is_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(FILE), "--chain", "00" * 32]) == 1
    assert f"its chain ends with {CHAIN}, and the published chain is {'00' * 32}" in capsys.readouterr().out


def test_a_chain_is_of_one_record(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(records), "--chain", CHAIN]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "--chain is for a file of one record" in told.err


@pytest.mark.parametrize("chain", ["", "12", "x" * 64, "0" * 63])
def test_a_chain_that_is_none_is_refused(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(FILE), "--chain", chain]) == 2
    assert "a chain has 64 digits of 0-9 and a-f" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["no-such-file", "."])
def test_a_file_that_cannot_be_read_is_named(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", path]) == 2
    assert capsys.readouterr().err.startswith(f"seatwise verify: cannot read {path}: ")


def test_an_empty_file_proves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty"
    path.touch()
    assert main(["verify", str(path)]) == 1
    assert capsys.readouterr().out == f"{path}: contains no record\n"


def test_standard_input_is_a_file_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(FILE.read_bytes())))
    assert main(["verify", "-"]) == 0
    assert capsys.readouterr().out == "standard input: 1 record verified, nothing wrong\n"


def test_a_pipe_is_a_file_too(capsys: pytest.CaptureFixture[str]) -> None:
    """As in `seatwise verify <(zcat records.jsonl.gz)`."""
    pipe, end = os.pipe()
    os.write(end, FILE.read_bytes())
    os.close(end)
    assert main(["verify", f"/dev/fd/{pipe}"]) == 0
    os.close(pipe)
    assert capsys.readouterr().out == f"/dev/fd/{pipe}: 1 record verified, nothing wrong\n"


def test_a_line_without_end_is_one_fault_and_what_follows_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"[" * (2 * MOST_BYTES + 100) + b"\n" + FILE.read_bytes())
    assert main(["verify", str(path)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{path}: line 1: is no record: longer than {MOST_BYTES} bytes",
        f"{path}: 1 of 2 records wrong",
    ]


def test_of_very_many_wrong_lines_only_the_first_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of nothing but newlines must not fill the screen, nor the memory."""
    monkeypatch.setattr("seatwise.cli.verify.MOST_FAULTS", 3)
    path = tmp_path / "newlines"
    path.write_bytes(b"\n" * 10)
    assert main(["verify", str(path)]) == 1
    *faults, summary = capsys.readouterr().out.splitlines()
    assert len(faults) == 3
    assert summary == f"{path}: 10 of 10 records wrong; the faults of the first 3 are above"
    assert main(["verify", "--json", str(path)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["wrong"], len(found["faults"])) == (10, 3)


_LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))
from seatwise.cli import main
sys.exit(main(["verify", sys.argv[1]]))
"""

HUGE: dict[str, Callable[[], bytes]] = {
    "a name of 16 MiB": lambda: b'{"match":"' + b"\\u001b[2J" * (MOST_BYTES // 9 - 3) + b'"}',
    "keys": lambda: b"{" + b",".join(b'"%07d":0' % key for key in range(5 * 10**5)) + b"}",
    "lists": lambda: b'{"a":[' + b"[]," * (2**19 - 2) + b"0]}",
    "more lists": lambda: b'{"a":[' + b"[]," * (MOST_BYTES // 3 - 10) + b"0]}",
    "quotes": lambda: b'"' * MOST_BYTES,
    "brackets": lambda: b"[" * (MOST_BYTES // 2) + b"]" * (MOST_BYTES // 2),
}


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS holds on Linux")
@pytest.mark.parametrize(
    "name",
    [name if name in ("keys", "lists") else pytest.param(name, marks=pytest.mark.slow) for name in HUGE],
)
@pytest.mark.slow
def test_no_line_takes_more_memory_than_the_page_says(name: str, tmp_path: Path) -> None:
    (tmp_path / "huge").write_bytes(HUGE[name]())
    command = [sys.executable, "-c", _LIMITED, str(tmp_path / "huge")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    said = [
        line for line in done.stderr.splitlines() if not line.startswith("verified ")
    ]  # a long line shows progress
    assert (done.returncode, said) == (1, [])
    assert len(done.stdout) < 1000
    assert done.stdout.replace("\n", "").isprintable()


def test_an_answer_of_the_server_is_no_order_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify\x1b[2J"]) == 2
    assert "there is no command verify\\x1b[2J" in capsys.readouterr().err


def test_a_match_that_stands_twice_is_a_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "twice"
    path.write_bytes(FILE.read_bytes() * 2)
    assert main(["verify", str(path)]) == 1
    assert f"{path}: line 2: 'matches/example' is already in line 1" in capsys.readouterr().out


def test_on_a_terminal_nothing_is_left_of_the_progress(
    records: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["verify", str(records)]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_without_rich_there_are_plain_lines(
    records: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr("seatwise.cli.verify.READ_PROGRESS_EVERY_S", -1.0)
    assert main(["verify", str(records)]) == 1
    assert capsys.readouterr().err.startswith("verified ")
