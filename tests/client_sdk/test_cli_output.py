"""The files and the standard output of commands: no output destroys an input, and what bots print is no answer."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import seatwise
from seatwise.cli import main
from seatwise.output import writing_file

LOUD = """
import atexit, os, seatwise, sys
print("imported")
atexit.register(print, "the end")
class Loud(seatwise.Bot):
    def choose(self, view):
        print("thinking", flush=True)
        sys.stdout.buffer.write(b"bytes")
        print("hm", file=sys.stderr)
        os.system("echo from a child")
        os.system("printf raw >&1")
        os.write(1, b"raw")
        sys.stdout.close()
        return view.legal_cards[0]
"""
BOT = "import seatwise\nclass MyBot(seatwise.Bot):\n def choose(self, view): return view.legal_cards[0]\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two records, bots, and other spellings of the same files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    (tmp_path / "loud.py").write_text(LOUD)
    (tmp_path / "mine.py").write_text(BOT)
    seatwise.play(["greedy", "random"], matches=2, seed=7, records="a.jsonl")
    for name in ("a.jsonl", "mine.py"):
        (tmp_path / f"link-{name}").symlink_to(name)
        (tmp_path / f"hard-{name}").hardlink_to(name)
    return tmp_path


def run(line: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        f"{sys.executable} -m seatwise {line}",
        shell=True,
        text=True,
        capture_output=True,
        timeout=100,
        **options,
    )  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("spelling", ["", "./", "link-", "hard-"])
@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("replay a.jsonl MATCH --html", "a.jsonl"),
        ("play ugo greedy random --from a.jsonl:MATCH --records", "a.jsonl"),
        ("play ugo greedy random --from a.jsonl --records", "a.jsonl"),
        ("play ugo greedy mine.py:MyBot --records", "mine.py"),
        ("play ugo greedy random --deck mine.py --records", "mine.py"),
        ("bot mine.py:MyBot --token t --times", "mine.py"),
        ("bot greedy --token t --tls-ca mine.py --times", "mine.py"),
        ("doctor -- seatwise bot mine.py:MyBot --junit", "mine.py"),
        ("play ugo greedy random --records", "mine.py"),
        ("league run mine.py --results", "mine.py"),
        ("verify a.jsonl --units 0:1 --out", "a.jsonl"),
        ("league gifts a.jsonl --units 0:1 --out", "a.jsonl"),
        ("compare greedy mine.py:MyBot --seed 1 --out", "mine.py"),
        ("ladder export x --tls-ca a.jsonl --records", "a.jsonl"),
    ],
)
def test_an_output_that_is_an_input_is_refused_before_anything_is_opened(
    capsys: pytest.CaptureFixture[str], folder: Path, line: str, file: str, spelling: str
) -> None:
    match = json.loads((folder / "a.jsonl").read_text().splitlines()[0])["match"]
    before = {path: path.read_bytes() for path in folder.iterdir()}
    words = [*line.replace("MATCH", match.partition("/")[2]).split(), f"{spelling}{file}"]
    if words[0] == "doctor":  # the command comes last
        words = [words[0], *words[-2:], *words[1:-2]]
    if words[:2] == ["league", "run"]:
        (folder / "results").mkdir()
        (folder / "results" / "report.html").hardlink_to(folder / "mine.py")
        before[folder / "results"], words[-1] = b"", "results"
    assert main(words) == 2
    assert "it would overwrite a file that this command reads" in capsys.readouterr().err
    assert {path: b"" if path.is_dir() else path.read_bytes() for path in folder.iterdir()} == before


def test_the_files_of_a_command_for_a_shell_are_inputs(folder: Path) -> None:
    done = run("doctor --junit bot.js sh -c 'cd . && node bot.js {address}'")
    assert "overwrite" not in done.stderr
    (folder / "bot.js").write_text("// a bot")
    assert run("doctor --junit bot.js sh -c 'cd . && node bot.js {address}'").returncode == 2
    assert (folder / "bot.js").read_text() == "// a bot"


def test_the_file_of_standard_input_is_an_input(folder: Path) -> None:
    before = (folder / "a.jsonl").read_bytes()
    assert run("replay - --html a.jsonl < a.jsonl").returncode == 2
    assert (folder / "a.jsonl").read_bytes() == before


def test_a_file_with_the_name_of_a_sample_is_no_input() -> None:
    for _ in range(2):
        assert main(["play", "ugo", "greedy", "random", "--records", "greedy"]) == 0


def test_a_file_is_replaced_in_one_step_and_only_without_an_error(folder: Path) -> None:
    (folder / "a.jsonl").chmod(0o640)
    with suppress(ValueError), writing_file("link-a.jsonl") as file:
        file.write(b"half")
        raise ValueError
    assert (folder / "a.jsonl").read_bytes().startswith(b"{")
    with writing_file("link-a.jsonl") as file:
        file.write(b"whole")
        assert (folder / "a.jsonl").read_bytes().startswith(b"{")
    assert ((folder / "a.jsonl").read_bytes(), (folder / "link-a.jsonl").is_symlink()) == (b"whole", True)
    assert (folder / "a.jsonl").stat().st_mode & 0o777 == 0o640
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize(
    "line", ["play ugo loud.py:Loud random", "compare loud.py:Loud random --matches 4 --jobs 1"]
)
def test_the_answer_holds_nothing_that_bots_print(line: str) -> None:
    done = run(f"{line} --seed 7 --json")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert json.loads(done.stdout)
    for text in ("imported", "thinking", "bytes", "hm", "from a child", "raw", "the end"):
        assert text in done.stderr


def test_records_on_standard_output_are_records_only() -> None:
    done = run("play ugo loud.py:Loud random --seed 7 --matches 2 --records /dev/stdout --json")
    assert [json.loads(line)["game"] for line in done.stdout.splitlines()[:2]] == ["ugo", "ugo"]
    assert json.loads("".join(done.stdout.splitlines()[2:]))["matches"] == 2


THREE = "play ugo loud.py:Loud random --seed 7 --matches 3 --records"


def played_in(file: Path) -> list[tuple[list[int], list[str]]]:
    records = map(json.loads, file.read_text().splitlines())
    return [(each["outcome"]["points"], each["entries"][-1]["endings"]) for each in records]


@pytest.fixture(scope="module")
def three_matches(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[list[int], list[str]]]:
    """What comes of them where nothing is wrong with the output."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "loud.py").write_text(LOUD)
    assert run(f"{THREE} whole.jsonl", cwd=folder).returncode == 0
    return played_in(folder / "whole.jsonl")


@pytest.mark.parametrize("where", ["| head -1", "2>&1 | head -1", "2> /dev/full", "2>&-", "> /dev/full 2>&1"])
def test_a_fault_of_the_output_ends_the_command_and_costs_no_move(
    folder: Path, three_matches: list[tuple[list[int], list[str]]], where: str
) -> None:
    done = run(f"{THREE} part.jsonl {where}", executable="/bin/bash")
    part = played_in(folder / "part.jsonl")
    assert part == three_matches[: len(part)]
    assert "Traceback" not in done.stderr
    if "full" in where or "2>&1 |" in where:
        assert len(part) < 3 or "> /dev/full 2>&1" in where


RAW = "import os, seatwise\nclass Raw(seatwise.Bot):\n def choose(self, view): os.write(1, b'raw\\n'); return view.legal_cards[0]\n"


def test_a_write_past_python_that_nobody_reads_ends_the_command_and_costs_no_move(folder: Path) -> None:
    (folder / "raw.py").write_text(RAW)
    line = "play ugo raw.py:Raw random --seed 7 --matches 40 --records"
    assert run(f"{line} whole.jsonl").returncode == 0
    run(f"{line} part.jsonl 2>&1 | head -1", executable="/bin/bash")
    part, whole = played_in(folder / "part.jsonl"), played_in(folder / "whole.jsonl")
    assert (len(part) < len(whole), part == whole[: len(part)]) == (True, True)


def test_a_worker_that_cannot_write_ends_the_comparison() -> None:
    done = run("compare loud.py:Loud random --matches 40 --jobs 1 --json 2> /dev/full")
    assert (done.returncode, done.stdout) == (1, "")


def test_ctrl_c_in_play_keeps_the_matches_that_are_over(folder: Path) -> None:
    words = shlex.split("-m seatwise play ugo greedy random --matches 1000000 --records r.jsonl --json")
    command = subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        while not (folder / "r.jsonl").exists() or not (folder / "r.jsonl").stat().st_size:
            time.sleep(0.05)
        command.send_signal(signal.SIGINT)
        told, errors = command.communicate(timeout=30)
    finally:
        command.kill()
    records = (folder / "r.jsonl").read_text().splitlines()
    assert command.returncode == 130
    assert json.loads(told)["matches"] == len(records) > 0
    assert errors == f"interrupted after {len(records)} of 1000000 matches\n"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("verify - <&-", "contains no record"),
        ("play ugo greedy random --records full", "seatwise play: full: No space left on device"),
        ("compare greedy random --seed 1 --units 0:1 --out full", "seatwise compare: full: Invalid argument"),
        ("verify a.gz", "a.gz is compressed: unpack it first, with gunzip"),
        ("verify - < a.gz", "standard input is compressed"),
        ("replay a.gz", "a.gz is compressed"),
        ("verify wide.jsonl", "wide.jsonl is text in UTF-16: save it as UTF-8"),
        ("verify bare.jsonl", "bare.jsonl is text in UTF-16: save it as UTF-8"),
        ("league gifts bare.jsonl", "bare.jsonl is text in UTF-16"),
        ("league gifts mine.py", "mine.py: record 1: "),
        ("league run wide.jsonl", "wide.jsonl is text in UTF-16"),
        ("config show --config wide.jsonl", "seatwise config: wide.jsonl is text in UTF-16"),
        ("config show --config mark.conf", "mark.conf"),
        ("play ubongo random random --deck wide.jsonl", "wide.jsonl is text in UTF-16"),
        ("serve --redis-file wide.jsonl", "wide.jsonl is text in UTF-16"),
        ("verify mark.jsonl", "2 records verified, nothing wrong"),
        ("verify lines.jsonl", "2 records verified, nothing wrong"),
        ("replay mark.jsonl x", "no match whose name begins with x"),
        ("replay a.jsonl --html -", "argument --html: the answers go to standard output"),
        ("new taken", "taken"),
        ("league run mark.toml --results taken", "taken: File exists"),
    ],
)
def test_a_fault_of_a_file_names_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, told: str
) -> None:
    records = (folder / "a.jsonl").read_bytes()
    (folder / "a.gz").write_bytes(gzip.compress(records))
    (folder / "mark.jsonl").write_bytes(b"\xef\xbb\xbf" + records)
    (folder / "wide.jsonl").write_bytes(records.decode().encode("utf-16"))
    (folder / "bare.jsonl").write_bytes(records.decode().encode("utf-16-le"))
    (folder / "lines.jsonl").write_bytes(records.replace(b"\n", b"\r\n"))
    (folder / "mark.conf").write_text("http-port = 0", encoding="utf-8-sig")
    (folder / "full").symlink_to("/dev/full")
    (folder / "taken").touch()
    league = 'name = "s"\ngame = "ugo"\nseats = 2\nrounds = 2\ntables = "local"\n'
    entrants = '[[entrants]]\nbot = "random"\n[[entrants]]\nbot = "greedy"\n'
    (folder / "mark.toml").write_text(league + entrants, encoding="utf-8-sig")
    words, _, source = line.partition(" <")
    if source == "&-":  # standard input is closed: only a process has none
        done = run(line)
        output = done.stdout + done.stderr
    else:
        with open(source.strip() or os.devnull) as file:
            monkeypatch.setattr(sys, "stdin", file)
            main(words.split())
        output = "".join(capsys.readouterr())
    assert told in output
    assert "Traceback" not in output
    assert "Errno" not in output
    assert not (folder / "-").exists()


def test_every_option_with_a_file_says_whether_it_is_read_or_written() -> None:
    """So that `refuse_overwriting` knows it. These need no such word: what they name is not replaced."""
    from argparse import ArgumentParser

    from seatwise.cli import COMMAND_HELP, _find_command
    from seatwise.cli.arguments import InputFile

    untold = set()
    for name in COMMAND_HELP:
        command = _find_command(name)
        assert command
        parser = ArgumentParser()
        command.configure(parser)
        parsers = [parser]
        for each in parsers:
            for action in each._actions:
                parsers += list(action.choices.values()) if isinstance(action.choices, dict) else []
                takes_path = action.metavar in ("FILE", "FOLDER", "OUT", "LEAGUE.TOML") or action.type is Path
                is_told = (
                    action.type is InputFile
                    or getattr(action.type, "__module__", "") == "seatwise.cli.arguments"
                )
                if takes_path and not is_told:
                    untold.add((name, action.dest))
    untold = {
        (name, dest) for name, dest in untold if name not in ("serve", "config")
    }  # they replace no file
    assert untold == {
        ("ctl", "ca"), ("ctl", "into"), ("ctl", "folder"), ("ctl", "data"), ("ctl", "redis_file"), ("ctl", "token"), ("mcp", "bearer_file"),
    }  # fmt: skip
    assert os.path.exists("a.jsonl")
