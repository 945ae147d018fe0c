"""The command line: one message for each thing that is wrong, and the right exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from seatwise import cli, standings
from seatwise.cli import main
from seatwise.cli.arguments import Command
from seatwise.client import Client
from seatwise.errors import UnavailableError

BOTS = """
import seatwise
from helpers import lowest

class MyBot(seatwise.Bot):
    def choose(self, view):
        return lowest(view)

class NoChoice(seatwise.Bot):
    pass

class Builder(seatwise.Bot):
    def build(self, view):
        yield []

class NoBot:
    pass
"""
HELPERS = "def lowest(view):\n    return min(view.legal_cards, key=lambda card: card.value)\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mybots.py").write_text(BOTS)
    (tmp_path / "helpers.py").write_text(HELPERS)
    (tmp_path / "broken.py").write_text("import nonsense\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    """The exit code, what was printed and what was complained of."""
    code = main(line.split())
    captured = capsys.readouterr()
    return code, captured.out, captured.err


# Playing


def test_play_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    line = "play ugo greedy random mybots.py:MyBot --matches 3 --option rounds=1"
    code, out, err = said(capsys, line)
    heading, *rows = out.splitlines()
    assert (code, err) == (0, "")
    assert heading.split("  ")[0] == "bot"
    assert {row.split()[0] for row in rows} == {"greedy", "random", "MyBot"}


def test_play_prints_json_where_a_program_reads(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "play ugo greedy random --matches 4 --seed 7 --json")
    results = json.loads(out)
    assert code == 0
    assert (results["game"], results["matches"], results["voided"]) == ("ugo", 4, 0)
    greedy, _ = results["standings"]
    assert (greedy["bot"], greedy["matches"], greedy["failures"]) == ("greedy", 4, 0)


def test_play_writes_records_and_says_how_to_check_them(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    code, out, _ = said(capsys, "play ugo greedy random --matches 2 --records out.jsonl")
    assert code == 0
    assert "2 records in out.jsonl; check them: seatwise verify out.jsonl" in out
    assert len((folder / "out.jsonl").read_bytes().splitlines()) == 2


def test_how_to_check_records_can_be_typed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", "ugo", "greedy", "random", "--records", "my records"]) == 0
    assert "check them: seatwise verify 'my records'\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("chess greedy random", "seatwise play: chess: no such game; there is ugo"),
        ("ugo greedy", "seatwise play: ugo is played by 2 to 4 bots, not by 1"),
        ("ugo", "seatwise play: ugo is played by 2 to 4 bots, not by 0"),
        (
            "ugo greedy gready",
            "seatwise play: gready: no such sample; the samples are random, half-greedy, greedy, counting,",
        ),
        ("ugo greedy nofile.py:MyBot", "seatwise play: nofile.py:MyBot: there is no file nofile.py"),
        ("ugo greedy mybots.py", "seatwise play: mybots.py: which class? Write mybots.py:CLASS"),
        (
            "ugo greedy solver",
            "seatwise play: solver is a sample for the game ubongo; the samples for ugo are random, half-greedy, greedy",
        ),
        ("ugo greedy mybots.py:Mybot", "seatwise play: mybots.py: no class Mybot; there is MyBot, NoChoice"),
        (
            "ugo greedy mybots.py:",
            "seatwise play: mybots.py: no class (empty name); there is MyBot, NoChoice",
        ),
        ("ugo greedy helpers.py:A", "seatwise play: helpers.py: no class A; it has no class derived from"),
        ("ugo greedy mybots.py:NoBot", "seatwise play: the class NoBot is no bot"),
        ("ugo greedy mybots.py:NoChoice", "seatwise play: the bot NoChoice has no method choose(self, view)"),
        (
            "ugo greedy mybots.py:Builder",
            "no method choose(self, view), and must have one; it has build: is it for the game ubongo?",
        ),
        ("ugo greedy broken.py:A", "seatwise play: broken.py:A: broken.py cannot be imported\nTraceback"),
        ("ugo greedy random --option round=1", "seatwise play: option round: UGO! has no such option"),
        ("ugo greedy random --option rounds=x", "seatwise play: option rounds: must be a whole number"),
        (
            "ugo greedy random --option rounds",
            "argument --option: 'rounds' is not NAME=VALUE, such as rounds=1",
        ),
        ("ugo greedy random --matches 0", "argument --matches: '0' is not a whole number of at least 1"),
        (
            "ugo greedy random --records no/out",
            "seatwise play: records: cannot write to no/out: No such file",
        ),
        (
            "ugo greedy random --records -",
            "argument --records: the answers go to standard output; name a file",
        ),
        ("ugo greedy random --recods out", "unrecognized arguments: --recods out"),
    ],
)
def test_each_mistake_is_one_message_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: str, why: str
) -> None:
    code, out, err = said(capsys, f"play {arguments}")
    assert (code, out) == (2, "")
    assert why in err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("play ugo greedy random --recods out", "seatwise play: unrecognized arguments: --recods out\nSee seatwise play --help\n"),
        ("match list --count 0", "seatwise match list: argument --count: '0' is not a whole number of at least 1\nSee seatwise match list --help\n"),
        ("bots list x", "seatwise bots list: unrecognized arguments: x\nSee seatwise bots list --help\n"),
        ("ctl token create --scope x", "seatwise ctl token create: argument --scope: invalid choice: 'x'"),
        ("league annul m --why x nowhere", "seatwise league: nowhere holds no league"),  # an option between
        ("replay a --at x", "seatwise replay: argument --at: 'x' is not a whole number of at least 0\n"),
        ("verify out --server localhost:1", "seatwise verify: no server answers at localhost:1 (cannot connect). "),
        ("bots list --address localhost:1", "seatwise bots: no server answers at localhost:1 (cannot connect). "),
        ("bots list --address no.invalid:1", "seatwise bots: no server answers at no.invalid:1 (this machine knows no host no.invalid). "),
    ],
)  # fmt: skip
def test_a_mistake_is_a_sentence_in_our_own_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, line: str, told: str
) -> None:
    monkeypatch.setitem(Client.__init__.__kwdefaults__, "patience_s", 0.5)
    if line.startswith("verify"):
        assert main(["play", "ugo", "greedy", "random", "--records", "out"]) == 0
    assert told in said(capsys, line)[2]


@pytest.mark.parametrize(
    ("line", "last_own"),
    [("match list", "until"), ("bot", "quiet"), ("league run", "without"), ("ctl health", "service"), ("mcp", "allow-others")],
)  # fmt: skip
def test_help_of_a_verb_begins_with_its_own_options(
    capsys: pytest.CaptureFixture[str], line: str, last_own: str
) -> None:
    shown = said(capsys, f"{line} --help")[1]
    assert shown.index(f"[--{last_own}") < shown.index("[--address")
    assert shown.index(f"  --{last_own}") < shown.index("  --address") < shown.index("  --insecure")


def test_a_broken_file_is_shown_from_its_own_line_on(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = said(capsys, "play ugo greedy broken.py:A")
    assert "No module named 'nonsense'" in err
    assert "load.py" not in err
    assert "importlib" not in err


def test_a_series_of_which_nothing_counts_has_failed(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    (folder / "mad.py").write_text(
        "import seatwise\nclass Mad(seatwise.Bot):\n def choose(self, view): 1 / 0\n"
    )
    code, out, err = said(capsys, "play ugo mad.py:Mad mad.py:Mad --matches 2")
    assert code == 1
    assert "2 of 2 matches were voided: ABANDONED" in out
    assert "ZeroDivisionError" in err


def test_an_interrupt_ends_without_a_traceback(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    bot = "import seatwise\nclass Stop(seatwise.Bot):\n def choose(self, view): raise KeyboardInterrupt\n"
    (folder / "stop.py").write_text(bot)
    assert said(capsys, "play ugo greedy stop.py:Stop") == (130, "", "")


def test_the_table_needs_no_rich(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    code, out, _ = said(capsys, "play ugo greedy random")
    assert code == 0
    assert out.startswith("bot ")


def test_on_a_terminal_there_is_a_bar_and_a_framed_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rich")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    code, out, _ = said(capsys, "play ugo greedy random")
    assert code == 0
    assert "┃" in out
    assert all(title in out for title in standings.HEADING)


# The command itself


@pytest.mark.parametrize("line", ["--help", "-h", "help"])
def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str], line: str) -> None:
    code, out, _ = said(capsys, line)
    assert code == 0
    assert all(f"\n  {name} " in out for name in ("play", "bot", "verify", "serve", "demo", "match"))


def test_help_waits_for_nothing_that_it_does_not_need() -> None:
    code = """
import sys
from seatwise.cli import main
main(["--help"])
slow = {"asyncio", "argparse", "grpc", "google", "redis", "structlog", "seatwise_server", "seatwise_referee"}
print(sorted(slow & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", ["play", "bot", "verify", "serve", "demo", "match"])
def test_each_command_says_itself_what_the_list_says_of_it(name: str) -> None:
    command = cli._find_command(name)
    assert command is not None
    assert (command.name, command.help) == (name, cli.COMMAND_HELP[name])


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "--version") == (0, f"seatwise {version('seatwise')}\n", "")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "usage: seatwise COMMAND"),
        ("paly", "seatwise: there is no command paly; did you mean play?"),
        ("xyzzy", "seatwise: there is no command xyzzy; there are new, play"),
        ("--loud", "seatwise: there is no option --loud; see seatwise --help"),
        ("play", "the following arguments are required: GAME"),
    ],
)
def test_an_unknown_command_prints_the_usage(capsys: pytest.CaptureFixture[str], line: str, why: str) -> None:
    code, out, err = said(capsys, line)
    assert (code, out) == (2, "")
    assert why in err


def fake(run: Any) -> Command:
    return Command("fake", "for the test", lambda _: None, run)


class Point:
    """An entry point."""

    name = "serve"

    def __init__(self, command: Command | Exception) -> None:
        self._command = command

    def load(self) -> Command:
        if isinstance(self._command, Exception):
            raise self._command
        return self._command


def missing(module: str) -> Any:
    def run(_: object) -> int:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    return run


@pytest.mark.parametrize(
    "command", [ModuleNotFoundError("No module named 'redis'", name="redis"), fake(missing("structlog"))]
)
def test_without_the_server_extra_its_commands_say_how_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: Command | Exception
) -> None:
    monkeypatch.setattr(cli, "_entry_points", lambda: [Point(command)])
    wanted = "seatwise serve needs the server extra: pip install '.[server,embedded]' in a clone of the repository\n"
    assert said(capsys, "serve") == (2, "", wanted)


def test_a_module_of_ours_that_is_missing_is_no_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_entry_points", lambda: [Point(fake(missing("seatwise_server.nowhere")))])
    with pytest.raises(ModuleNotFoundError):
        main(["serve"])


def test_a_reader_that_has_seen_enough_is_no_error(folder: Path) -> None:
    command = f"{sys.executable} -m seatwise play ugo greedy random --json | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, cwd=folder)
    assert done.stderr == ""


@pytest.mark.parametrize(
    "line", ["--help", "config show", "play ugo greedy random --json", "play ugo greedy random --records out"]
)
def test_a_full_disk_is_one_message(folder: Path, line: str) -> None:
    """The table's, the help's or the records', whichever is on it."""
    (folder / "out").symlink_to("/dev/full")
    where = "" if "out" in line else "> /dev/full"
    command = f"{sys.executable} -m seatwise {line} {where}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, cwd=folder)
    assert done.returncode == 1
    assert done.stderr.startswith("seatwise")
    assert done.stderr.endswith(f"{'standard output' if where else 'out'}: No space left on device\n")
    assert len(done.stderr.splitlines()) == 1


def test_without_a_standard_output_it_works_all_the_same(folder: Path) -> None:
    command = f"{sys.executable} -m seatwise play ugo greedy random --records out.jsonl >&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")


def asks_at(address: str, error: Exception) -> Command:
    """A command of a server that fails so."""

    def run(_: object) -> int:
        raise error

    return Command("fake", "for the test", lambda parser: parser.set_defaults(address=address), run)


def test_a_server_that_is_not_there_is_named_with_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = asks_at("here:7433", UnavailableError("Deadline Exceeded"))
    monkeypatch.setattr(cli, "_entry_points", lambda: [Point(nobody)])
    code, _, err = said(capsys, "serve")
    assert code == 1
    assert err.startswith(
        "seatwise fake: no server answers at here:7433 (Deadline Exceeded). Is `seatwise serve` running"
    )
    assert "--address HOST:PORT" in err


def test_a_message_of_the_server_is_shown_unchanged(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping = asks_at("here:7433", UnavailableError("the server stops", "SERVER_STOPPING"))
    monkeypatch.setattr(cli, "_entry_points", lambda: [Point(stopping)])
    assert said(capsys, "serve")[2] == "seatwise fake: the server stops [SERVER_STOPPING]\n"
