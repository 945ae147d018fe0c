"""What `seatwise serve` refuses before it starts, and what it says when it has."""

from __future__ import annotations

import pwd
import shlex
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from seatwise.cli import main
from seatwise.client import Client
from seatwise.defaults import data_folder
from seatwise_server import log
from seatwise_server.cli import demo, serve
from seatwise_server.config import Config

FACTS = {"address": "127.0.0.1:1", "pin": "", "http_address": "", "ws_address": ""}


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("--port 99999", "'99999' is not a port"),
        ("--port -1", "'-1' is not a port"),
        ("--metrics-port 99999", "'99999' is not a port"),
        ("--keep-records 0", "'0' is not a number above 0"),
        ("--keep-records -1", "'-1' is not a number above 0"),
        ("--keep-records nan", "'nan' is not a number above 0"),
        ("--gone-for-good -1", "'-1' is not a number above 0"),
        ("--tables 0", "'0' is not a whole number of at least 1"),
        ("--wait-replicas -1", "'-1' is not a whole number of at least 0"),
        ("--address foo", "'foo' is not HOST:PORT"),
        ("--host nosuch.invalid", "this machine knows no host 'nosuch.invalid'"),
        ("--ws-host 127.0.0.1:7481", "'127.0.0.1:7481' is no host"),
    ],
)
def test_options_without_sense_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, option: str, why: str
) -> None:
    """Else gRPC takes another port, records are gone at once, or no match ever starts."""
    assert main(["serve", "--data", str(tmp_path / "data"), *option.split()]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_a_data_folder_that_cannot_be_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        log, "configure", lambda *_, **__: None
    )  # or all tests to come log to what is captured here
    (tmp_path / "file").touch()
    assert main(["serve", "--port", "0", "--data", str(tmp_path / "file")]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"seatwise serve: {tmp_path / 'file'}")
    assert told.endswith("; choose a writable folder with --data FOLDER\n")


def test_without_a_home_folder_one_sentence_says_what_to_set(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that runs as any user id: no HOME, and no entry in /etc/passwd."""

    def unknown(uid: int) -> NoReturn:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr(log, "configure", lambda *_, **__: None)
    monkeypatch.setitem(Client.__init__.__kwdefaults__, "patience_s", 0.5)
    for variable in ("HOME", "SEATWISE_DATA", "SEATWISE_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    for line in ("serve", "bot greedy", "mcp"):
        assert main(line.split()) == 2
        assert "this user has no home folder: set HOME or SEATWISE_DATA" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert main(["serve", "--data", str(tmp_path / "file")]) == 1  # a folder that was given is used
    assert f"{tmp_path / 'file'}" in capsys.readouterr().err
    for line in ("bots list", "match list"):  # which need no token
        assert main([*line.split(), "--address", "localhost:1"]) == 1
        assert "no server answers at localhost:1" in capsys.readouterr().err


def test_the_command_that_it_says_can_be_typed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    serve._show(Config(data=Path("/srv/my games")), FACTS)
    command = capsys.readouterr().out.partition("Connect a bot: ")[2]
    assert shlex.split(command)[0] == "SEATWISE_DATA=/srv/my games"


def test_a_command_that_is_not_on_the_path_is_told_as_it_was_typed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `make demo`, which installs into .venv."""
    monkeypatch.setattr(sys, "argv", [".venv/bin/seatwise", "serve"])
    monkeypatch.setenv("PATH", "/nowhere")
    serve._show(Config(data=data_folder()), FACTS)
    assert "Connect a bot: .venv/bin/seatwise bot greedy --address 127.0.0.1:1\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("--records no/out", "seatwise demo: --records no/out: No such file or directory"),
        ("--matches 0", "'0' is not a whole number of at least 1"),
    ],
)
def test_the_demo_says_at_once_what_is_wrong(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, why: str
) -> None:
    """And not when all is played."""
    monkeypatch.chdir(tmp_path)
    assert main(["demo", *line.split()]) == 2
    assert why in capsys.readouterr().err


def test_the_demo_finds_the_addresses_in_what_its_server_says() -> None:
    """And reads no further: the server says nothing more, so another line would be waited for."""
    said = iter(
        [
            "Seatwise listens on 127.0.0.1:1. Admin token: x\n",
            "Connect a bot: y\n",
            "Pages: http://127.0.0.1:2/\n",
        ]
    )
    told = dict(demo._told_addresses(said))
    assert told == {demo.ADDRESS_LINE: "127.0.0.1:1", demo.PAGES_LINE: "http://127.0.0.1:2/"}
    assert dict(demo._told_addresses([])) == {}


def test_a_demo_whose_server_does_not_start_has_failed(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server says why; a traceback of ours says nothing more."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEATWISE_REDIS", "nonsense://")
    assert main(["demo"]) == 1
    why, ours = capfd.readouterr().err.splitlines()
    assert why.startswith("seatwise serve: A Redis URL is one of")
    assert ours == "seatwise demo: the server did not start; its message is above"
