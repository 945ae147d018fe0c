"""An audit log as its reader sees it: what `seatwise verify` finds, and what only the chain of its last entry shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatwise.cli import main
from seatwise.season.audit_chain import FIRST_LINK, verify_audit_log, write_audit_line

FIELDS = {
    "at_ms": 1, "from": "address-1", "method": "/DeleteBot", "outcome": "admitted", "thing": "bots/x", "who": "admin",
}  # fmt: skip


def log_of(count: int) -> tuple[list[bytes], list[str]]:
    """The lines of a log, and their chains."""
    lines, chains = [], [FIRST_LINK]
    for seq in range(1, count + 1):
        line, chain = write_audit_line(seq, chains[-1], FIELDS)
        lines.append(line.encode() + b"\n")
        chains.append(chain)
    return lines, chains[1:]


def test_lines_that_were_removed_from_the_end_are_found_by_the_last_chain() -> None:
    lines, chains = log_of(4)
    assert verify_audit_log(lines, chains[-1]) == (4, 1, "")
    assert verify_audit_log(lines[:3]) == (3, 1, "")
    assert "the log ends before it, with the chain" in verify_audit_log(lines[:3], chains[-1])[2]
    assert verify_audit_log([], chains[-1])[2] == "it holds no entry"


def test_the_command_compares_the_end_and_asks_no_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, chains = log_of(3)
    file = tmp_path / "audit.jsonl"
    file.write_bytes(b"".join(lines))
    assert main(["verify", str(file), "--chain", chains[-1]]) == 0
    file.write_bytes(b"".join(lines[:2]))
    assert main(["verify", str(file), "--chain", chains[-1]]) == 1
    assert f"line 3: the log ends before it, with the chain {chains[1]}" in capsys.readouterr().out
    assert main(["verify", str(file), "--server", "localhost:1"]) == 2
    assert "compare the end of an audit log with --chain" in capsys.readouterr().err
