"""`seatwise league gifts` reads the file of a stranger: each fault of it is a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

import seatwise
from seatwise.cli import main
from seatwise.replay import record_units

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


def test_gifts_are_found_in_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_units, "BATCH_LINES", 8)
    records, parts = tmp_path / "records.jsonl", [f"{tmp_path}/part{number}.jsonl" for number in "01"]
    seatwise.play(["random"] * 3, matches=16, seed=1, options={"rounds": 1}, records=records)
    gifts = ["league", "gifts", str(records), "--deals", "1", "--json"]
    assert main(gifts) == 0
    alone = capsys.readouterr().out
    assert '"matches": 16' in alone
    for number, part in enumerate(parts):
        assert main([*gifts, "--units", f"{number}:{number + 1}", "--out", part]) == 0
    capsys.readouterr()
    assert main([*gifts, "--merge", *parts]) == 0
    assert capsys.readouterr().out == alone
