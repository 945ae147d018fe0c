"""What the pages name is there: commands, options, reasons, other pages, headings; and their tables are whole."""

from __future__ import annotations

import re
from argparse import ArgumentParser, _SubParsersAction
from dataclasses import fields, is_dataclass
from importlib import import_module
from importlib.metadata import entry_points
from math import log
from pathlib import Path
from runpy import run_path
from types import ModuleType
from typing import Any

import pytest
from grpc import StatusCode

from seatwise.cli import COMMAND_HELP, ENTRY_POINTS, SDK_COMMANDS
from seatwise.errors import RefusedError, SeatwiseError, error_class
from seatwise.link.referee_link import FINAL
from seatwise.v1.play_service_pb2 import MoveRejected
from seatwise_referee.ending import VoidReason
from seatwise_server.competition.standings.tie_breaks import TIE_BREAKS
from seatwise_server.refusal import REASONS
from seatwise_server.ws.message_formats import PROTO_FORMAT

ROOT = Path(__file__).parents[2]
PAGES = (
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "rules").glob("*.md")),
    ROOT / "tests" / "README.md",
)
NAMES = [page.name for page in PAGES]
COMMANDS = {
    name: import_module(f"seatwise.cli.{name.replace('-', '_')}").COMMAND for name in SDK_COMMANDS
} | {point.name: point.load() for point in entry_points(group=ENTRY_POINTS)}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_no_page_holds_two_versions_of_a_merge(page: Path) -> None:
    marks = [line for line in page.read_text().splitlines() if re.match(r"(<{7}|={7}|>{7})( |$)", line)]
    assert not marks


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_no_table_has_two_rows_for_one_thing(page: Path) -> None:
    for table in page.read_text().split("\n\n"):
        first = re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
        assert len(first) == len(set(first)), sorted({it for it in first if first.count(it) > 1})


def parser_of(name: str) -> ArgumentParser:
    parser = ArgumentParser(prog=name)
    COMMANDS[name].configure(parser)
    return parser


def verbs_of(parser: ArgumentParser) -> dict[str, ArgumentParser]:
    """By name; none where the command has no verbs."""
    found = [action.choices for action in parser._actions if isinstance(action, _SubParsersAction)]
    return found[0] if found else {}


def options_of(parser: ArgumentParser) -> set[str]:
    """Those of the command and of all its verbs."""
    own = {name for action in parser._actions for name in action.option_strings}
    return own.union(*(options_of(verb) for verb in verbs_of(parser).values()))


def calls_in(page: Path) -> list[list[str]]:
    """What follows each `seatwise` that stands where a command would: at the start of a line or of code."""
    text = page.read_text().replace("\\|", "|")
    return [call.split() for call in re.findall(r"(?:^|`)seatwise ((?:[a-z-]+)[^`\n#]*)", text, re.MULTILINE)]


def test_every_command_is_told_of_in_the_help() -> None:
    assert set(COMMANDS) == set(COMMAND_HELP)
    assert set(SDK_COMMANDS) <= set(COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_command_verb_and_option_of_a_page_is_there(page: Path) -> None:
    for name, *rest in calls_in(page):
        parser = parser_of(name)
        verbs = verbs_of(parser)
        if verbs and rest:
            named = rest[0].split("|")
            assert set(named) <= set(verbs), f"seatwise {name} {rest[0]}"
            parser = verbs[named[0]] if len(named) == 1 else parser
        options = {option for word in rest for option in re.findall(r"^\[?(--[a-z-]+)", word)}
        assert options <= options_of(parser), f"seatwise {name} {' '.join(rest)}"


def test_the_readme_names_every_command_and_all_verbs() -> None:
    named = {name: rest for name, *rest in calls_in(ROOT / "README.md")}
    assert set(named) == set(COMMANDS)
    for name in ("match", "ladder", "league", "ctl"):
        assert set(named[name][0].split("|")) == set(verbs_of(parser_of(name))), name


def test_the_operator_guide_names_every_option_of_serve() -> None:
    guide = (ROOT / "docs" / "operator-guide.md").read_text()
    [table] = re.findall(r"^\| option \| meaning \|$(.*?)^$", guide, re.MULTILINE | re.DOTALL)
    cells = [row.split("|")[1] for row in table.splitlines()[2:]]
    named = {option for cell in cells for option in re.findall(r"--[a-z-]+", cell)}
    assert named == options_of(parser_of("serve")) - {"--help", "-h"}


PROTOCOL = (ROOT / "docs" / "protocol.md").read_text()


def test_the_protocol_names_every_reason_of_a_refusal_with_its_code() -> None:
    [table] = re.findall(r"^\| reason \| code \| when \|$(.*?)^$", PROTOCOL, re.MULTILINE | re.DOTALL)
    assert dict(re.findall(r"^\| `([A-Z_]+)` \| ([A-Z_]+) \|", table, re.MULTILINE)) == REASONS


def ends_of_streams(head: str, name: str) -> dict[str, tuple[str, str]]:
    """What the table with this head says of each name in its first column: at the lobby, at a referee."""
    [table] = re.findall(rf"^\| {head} \|.*?$(.*?)^$", PROTOCOL, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| ([^|]+) \| (stop|come again) \| (stop|come again) \|", table, re.MULTILINE)
    return {each: (lobby, referee) for cell, lobby, referee in rows for each in re.findall(name, cell)}


def what_the_sdk_does(error: type[SeatwiseError]) -> tuple[str, str]:
    """The lobby's link ends at every refusal, and a referee's at those in FINAL: test_link.py."""
    at_lobby, at_referee = issubclass(error, RefusedError), issubclass(error, FINAL)
    return "stop" if at_lobby else "come again", "stop" if at_referee else "come again"


def test_the_protocol_says_of_every_reason_whether_to_reconnect_as_the_sdk_does() -> None:
    told = ends_of_streams("ends with", "`([A-Z_]+)`")
    assert told == {reason: what_the_sdk_does(error_class(reason, code)) for reason, code in REASONS.items()}


def test_the_protocol_says_of_every_code_whether_to_reconnect_as_the_sdk_does() -> None:
    told = ends_of_streams("code", r"\b([A-Z_]+)\b")
    codes = {code.name for code in StatusCode} - {"OK", "DATA_LOSS"}
    assert told == {code: what_the_sdk_does(error_class("", code)) for code in codes}


def test_the_protocol_names_every_reason_of_a_rejection() -> None:
    [table] = re.findall(r"^\| reason \| what it means \|.*?$(.*?)^$", PROTOCOL, re.MULTILINE | re.DOTALL)
    there = {name.removeprefix("REASON_") for name, _ in MoveRejected.Reason.items()} - {"UNSPECIFIED"}
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", table, re.MULTILINE)) == there


def test_the_protocol_names_every_reason_for_which_a_match_is_void() -> None:
    [table] = re.findall(r"^\| void reason \| meaning \|$(.*?)^$", PROTOCOL, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", table, re.MULTILINE)) == {
        str(reason) for reason in VoidReason
    }


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_page_and_heading_that_a_page_names_is_there(page: Path) -> None:
    for target in re.findall(r"\]\((?!http)([^)]+)\)", page.read_text()):
        name, _, heading = target.partition("#")
        there = page.parent / name if name else page
        assert there.exists(), target
        if heading:
            headings = re.findall(r"^#+ (.+)$", there.read_text(), re.MULTILINE)
            assert heading in map(slug, headings), target


def slug(heading: str) -> str:
    """As browsers of repositories make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES[1:], ids=NAMES[1:])
def test_every_module_and_script_that_a_page_names_is_there(page: Path) -> None:
    """By the end of its path. The README has a reader's own file beside ours."""
    folders = ("client_sdk", "docs", "proto", "referee", "server", "tests")
    there = [path.as_posix() for folder in folders for path in (ROOT / folder).rglob("*.*")]
    for name in re.findall(r"`([\w./]+\.(?:py|lua|proto))`", page.read_text().replace(PROTO_FORMAT, "")):
        assert any(path.endswith(f"/{name}") for path in there), name


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_table_of_a_page_has_its_head(page: Path) -> None:
    """A row behind an empty line begins a table, and is shown as text if no head follows."""
    lines = ["", *page.read_text().splitlines(), ""]
    for before, line, after in zip(lines, lines[1:], lines[2:], strict=False):
        if line.startswith("|") and not before.startswith("|"):
            assert re.fullmatch(r"[|\- ]+", after), line


# The constants of docs/statistics.md


SERVER = ROOT / "server" / "seatwise_server"
SDK_ARITHMETIC = [
    ROOT / "client_sdk" / "seatwise" / f"{name}.py"
    for name in ("anytime_mean", "local/comparison", "kits/ugo/match_luck")
]
"""The arithmetic of statistics that the SDK has."""
PAIRING = [SERVER / "ladder" / "ladder_pairing.py", SERVER / "ladder" / "bot_form.py"]
STATISTICS = (ROOT / "docs" / "statistics.md").read_text().partition("\n## Constants\n")[2]
CONSTANTS = [
    (re.findall(r"`(\w+)`", names), values.strip().split(", "), re.findall(r"`([\w/]+\.py)`", modules))
    for names, values, modules in re.findall(r"^\| (`.*?) \| (.*?) \| (.*?) \|", STATISTICS, re.MULTILINE)
]
"""By row: the names, their values, and the modules that have them."""


def module_of(path: Path) -> ModuleType:
    return import_module(".".join(path.relative_to(ROOT).with_suffix("").parts[1:]))


@pytest.mark.parametrize("row", [row for row in CONSTANTS if row[2]], ids=str)
def test_the_statistics_page_has_the_values_of_the_code(row: tuple[list[str], list[str], list[str]]) -> None:
    names, values, modules = row
    for module in modules:
        [found] = [
            module_of(path)
            for path in (*SDK_ARITHMETIC, *SERVER.rglob(Path(module).name))
            if path.as_posix().endswith(f"/{module}")
        ]
        named = {name: value for name in names if (value := value_in(found, name)) is not None}
        if all(isinstance(value, int | float) for value in named.values()):
            told = dict(zip(names, values, strict=True))
            assert {name: number(told[name]) for name in named} == pytest.approx(named), module
        elif not values[0].startswith("0.9 / 2^"):
            [value] = named.values()
            assert [number(each) for each in values] == list(
                value.values() if isinstance(value, dict) else value
            )


def value_in(module: ModuleType, name: str) -> Any:
    """Of a constant, or of a setting of a class of the module that has this default."""
    if name.isupper():
        return getattr(module, name)
    settings = [
        each.default
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__ == module.__name__ and is_dataclass(kind)
        for each in fields(kind)
        if each.name == name and isinstance(each.default, int | float)
    ]
    assert settings, f"{module.__name__} has no default for {name}"
    return settings[0]


def number(text: str) -> float:
    """As the page writes it: `25 / 3`, `400 / ln 10`, `8,000,000`, `20 s`."""
    over, _, under = text.removesuffix(" s").replace(",", "").partition(" / ")
    return float(over) / (log(float(under[3:])) if under.startswith("ln ") else float(under or 1))


def test_the_statistics_page_has_every_constant_of_competition() -> None:
    told = {
        (Path(module).name, name) for names, _, modules in CONSTANTS for module in modules for name in names
    }
    there = {
        (path.name, name)
        for path in (*SDK_ARITHMETIC, *PAIRING, *(SERVER / "competition").rglob("*.py"))
        for name, value in vars(module_of(path)).items()
        if name.isupper() and isinstance(value, int | float) and is_own(path, name)
    }
    assert there - told == set(), "add them to the section Constants of docs/statistics.md"


def is_own(path: Path, name: str) -> bool:
    """Whether the module itself gives the name its value."""
    return bool(re.search(rf"^(?:\w+, )*{name}\b.* = ", path.read_text(), re.MULTILINE))


# CONTRIBUTING.md and tests/README.md


TESTS = ROOT / "tests"
MAP = TESTS / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"


def named_in(page: Path) -> set[str]:
    """The paths between backticks, as the page writes them."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    names = [name for code in re.findall(r"`([^`\n]+)`", text) for name in code.split()]
    return {
        name
        for name in names
        if re.fullmatch(r"[\w.*-]+(/[\w.*-]+)*(/|\.(py|md|toml|proto|json|jsonl))", name)
    }


def found(name: str, *folders: Path) -> list[Path]:
    return [path for folder in folders for path in folder.glob(name.rstrip("/"))]


@pytest.mark.parametrize("page", [CONTRIBUTING, MAP], ids=["CONTRIBUTING", "tests/README"])
def test_every_file_that_a_contributor_is_sent_to_is_there(page: Path) -> None:
    missing = [name for name in named_in(page) if not found(name, ROOT, page.parent)]
    helpers = {path.name for folder in ("harness", "simulation") for path in (TESTS / folder).glob("*.py")}
    modules = {path.name for path in SERVER.rglob("*.py")}
    assert set(missing) <= helpers | modules | {"standings.json"}


def test_the_map_names_every_folder_of_the_tests() -> None:
    folders = (path for path in TESTS.iterdir() if path.is_dir() and not path.name.startswith(("_", ".")))
    assert {f"{path.name}/" for path in folders} - named_in(MAP) == set(), "name them in tests/README.md"
    assert {path.name for path in TESTS.glob("*.py")} == {"conftest.py"}, "put helpers into a folder"


def test_every_test_that_the_history_of_faults_names_is_there() -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", (TESTS / "HISTORY.md").read_text())
    assert len(named) >= 10
    assert [name for file, name in named if f"def {name}(" not in (TESTS / file).read_text()] == []


def test_every_planted_fault_still_fits_its_line() -> None:
    faults = run_path(str(TESTS / "mutants" / "faults.py"))["FAULTS"]
    assert len(faults) > 50
    assert [it.name for it in faults if (ROOT / it.file).read_text().count(it.old) != 1] == []
    suites = {tuple(suite.split("[")[0].split("::")) for it in faults for suite in it.suites}
    named = [(file, name) for file, *names in suites for name in names]
    assert [name for file, name in named if f"def {name}(" not in (ROOT / file).read_text()] == []
    assert [file for file, *_ in suites if not (ROOT / file).exists()] == []


def test_every_make_target_that_a_contributor_is_told_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:`|^)make ([\w-]+)", CONTRIBUTING.read_text(), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("page", ["statistics", "league"])
def test_the_pages_name_every_tie_break(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    table = text[text.index("| criterion |") if page == "statistics" else text.index("| `tie_breaks` |") :]
    assert [name for name in TIE_BREAKS if f"`{name}`" not in table.partition("\n\n")[0]] == []
