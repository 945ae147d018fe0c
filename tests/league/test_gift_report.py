"""`seatwise league gifts` reads the file of a stranger: each fault of it is a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatwise.cli import main

FILES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "contains no record"),
    "no JSON": (b"x\n", "record 1: Expecting value"),
    "a list": (b"[]\n", "record 1: this names no game, so it is no record"),
    "a game that is a list": (b'{"game":["ugo"]}\n', "record 1: this names no game"),
    "brackets": (
        b'{"a":' + b"[" * 10**5 + b"]" * 10**5 + b"}\n",
        "record 1: its brackets are nested too deeply",
    ),
    "UTF-16": ('{"game":"ugo"}'.encode("utf-16"), "is text in UTF-16: save it as UTF-8"),
    "a game that is none": (b'{"game":"\\u001b[2J"}\n', "record 1: \\x1b[2J: no such game"),
    "no record": (b'{"game":"ugo"}\n', "record 1: this is no record of ugo"),
    "the beginning of a bundle": (b"PK\x03\x04", "this is no bundle"),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_is_none_of_records_is_told_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    content, expected = FILES[kind]
    file = tmp_path / "records.jsonl"
    file.write_bytes(content)
    assert main(["league", "gifts", str(file)]) == 2
    assert expected in capsys.readouterr().err
