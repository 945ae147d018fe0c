"""What `seatwise serve` refuses before it starts, and what it says when it has."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from seatwise.cli import main
from seatwise_server.cli import serve
from seatwise_server.config import Config


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("--port 99999", "'99999' is no port"),
        ("--port -1", "'-1' is no port"),
        ("--metrics-port 99999", "'99999' is no port"),
        ("--keep-records 0", "'0' is no number above 0"),
        ("--keep-records -1", "'-1' is no number above 0"),
        ("--keep-records nan", "'nan' is no number above 0"),
        ("--gone-for-good -1", "'-1' is no number above 0"),
        ("--tables 0", "'0' is no whole number from 1 up"),
        ("--wait-replicas -1", "'-1' is no whole number from 1 up"),
        ("--address foo", "'foo' is not HOST:PORT"),
    ],
)
def test_what_makes_no_sense_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, option: str, why: str
) -> None:
    """Else gRPC takes another port, records are gone at once, or no match ever starts."""
    assert main(["serve", "--data", str(tmp_path / "data"), *option.split()]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_a_data_folder_that_cannot_be_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert main(["serve", "--port", "0", "--data", str(tmp_path / "file")]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"seatwise serve: {tmp_path / 'file'}")
    assert told.endswith("; name a folder that can be written to with --data FOLDER\n")


def test_the_command_that_it_says_can_be_typed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    serve._say_where(Config(data=Path("/srv/my games")), "127.0.0.1:1")
    command = capsys.readouterr().out.partition("Connect a bot: ")[2]
    assert shlex.split(command)[0] == "SEATWISE_DATA=/srv/my games"
