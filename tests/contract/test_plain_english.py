"""Pages, comments of the protos and help texts are plain English, as far as a program can tell."""

from __future__ import annotations

from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from inspect import getfile
from pathlib import Path

import pytest
from prose.sentences import (
    Kind,
    Sentence,
    sentences_of_comments,
    sentences_of_docstrings,
    sentences_of_markdown,
    sentences_of_python_comments,
    split,
)
from prose.wording import FORBIDDEN, MOST_WORDS, faults_of

from seatwise import cli
from seatwise.cli import COMMAND_HELP, ENTRY_POINTS, SDK_COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        ROOT / "tests" / "README.md",
        *(ROOT / "docs").rglob("*.md"),
    ]
)
PROTOS = sorted((ROOT / "proto").rglob("*.proto"))
SDK = ROOT / "client_sdk" / "seatwise"
REFEREE = ROOT / "referee" / "seatwise_referee"
SERVER = ROOT / "server" / "seatwise_server"
FAST = ROOT / "client_sdk" / "seatwise_fast"
STARTERS = ROOT / "docs" / "starters"
EXAMPLES = ROOT / "docs" / "examples"
MODULES = sorted(
    each
    for folder in (SDK, FAST, REFEREE, SERVER, EXAMPLES)
    for each in folder.rglob("*.py")
    if "_pb2" not in each.name and each.parent.name != "v1"
)
"""All modules of the product, and the examples. Their docstrings and comments are read; commands have help texts."""
BRACED = sorted(
    each for kind in ("cpp", "go", "hpp", "java", "mjs", "rs") for each in STARTERS.rglob(f"*.{kind}")
)
"""The sources of bots in other languages. Their comments are read."""
SCRIPTS = sorted((SERVER / "store" / "scripts").glob("*.lua"))
"""The scripts that Redis runs. Their comments are read."""
COMMANDS = {
    name: import_module(f"seatwise.cli.{name.replace('-', '_')}").COMMAND for name in SDK_COMMANDS
} | {point.name: point.load() for point in entry_points(group=ENTRY_POINTS)}

BEGIN = 24
"""So many characters tell where in its source a text begins."""

TO_DO: frozenset[str] = frozenset()
"""Pages that are not plain yet. A page leaves this list when it is rewritten, and no page is added."""


def sentences_of_help(source: Path, texts: Iterable[str]) -> list[Sentence]:
    """Each with the line of the source on which the text begins, or 1 where it is put together elsewhere."""
    lines = source.read_text().splitlines()
    found: list[Sentence] = []
    for text in texts:
        begin = text.splitlines()[0][:BEGIN]
        line = next((number for number, line in enumerate(lines, start=1) if begin in line), 1)
        found += split(line, text[:1].upper() + text[1:])
    return found


def texts_of(parser: ArgumentParser) -> Iterator[str]:
    """Those that the parser and all its verbs show with `--help`."""
    yield from filter(None, (parser.description, *paragraphs(parser.epilog)))
    for action in parser._actions:
        yield from filter(None, (action.help,))
        if isinstance(action, _SubParsersAction):
            yield from filter(None, (verb.help for verb in action._choices_actions))
            for verb in action.choices.values():
                yield from texts_of(verb)


def paragraphs(text: str | None) -> list[str]:
    """Without lines that are indented: those are examples."""
    return [] if text is None else [part for part in text.split("\n\n") if not part.startswith(" ")]


@cache
def sentences_of(name: str) -> list[Sentence]:
    """Those of a page, of the comments of a proto, a script or a bot, or of a module's docstrings and help texts."""
    text = (ROOT / name).read_text()
    match Path(name).suffix:
        case ".md":
            return sentences_of_markdown(text)
        case ".py":
            return sentences_of_module(text) + [
                sentence
                for texts in helps().get(name, ())
                for sentence in sentences_of_help(ROOT / name, dict.fromkeys(texts))
            ]
        case suffix:
            return sentences_of_comments(text, "--" if suffix == ".lua" else "//")


def sentences_of_module(source: str) -> list[Sentence]:
    return sentences_of_docstrings(source) + sentences_of_python_comments(source)


@cache
def helps() -> dict[str, list[Iterable[str]]]:
    """All that the help of the commands of a module says, by module."""
    found: dict[str, list[Iterable[str]]] = {named(Path(cli.__file__)): [COMMAND_HELP.values()]}
    for name, command in COMMANDS.items():
        parser = ArgumentParser(prog=name)
        command.configure(parser)
        found.setdefault(named(Path(getfile(command.configure))), []).append(list(texts_of(parser)))
    return found


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


NAMES = {named(each) for each in (*PAGES, *PROTOS, *MODULES, *SCRIPTS, *BRACED)}


@pytest.mark.parametrize("name", sorted(NAMES - TO_DO))
def test_a_page_is_plain_english(name: str) -> None:
    faults = [f"{name}:{fault}" for fault in faults_of(sentences_of(name))]
    assert not faults, "\n" + "\n".join(faults)


@pytest.mark.parametrize("name", sorted(TO_DO))
def test_a_page_that_is_still_to_do_is_not_plain_yet(name: str) -> None:
    assert faults_of(sentences_of(name)), f"{name} is plain now: take it off TO_DO"


def test_every_page_has_sentences() -> None:
    assert {
        "README.md",
        "docs/protocol.md",
        "docs/starters/cpp/bot.hpp",
        "docs/starters/go/bot.go",
        "docs/starters/java/src/main/java/starter/Bot.java",
        "docs/starters/node/bot.mjs",
        "docs/starters/rust/src/bot.rs",
        "docs/examples/training/train.py",
        "server/seatwise_server/pages/bot_page.py",
    } <= NAMES
    silent = [name for name in sorted(NAMES - set(map(named, BRACED))) if not sentences_of(name)]
    assert silent == []


@pytest.mark.needs_sources
def test_a_command_is_read_with_its_help() -> None:
    source, parser = Path(getfile(COMMANDS["play"].configure)), ArgumentParser()
    COMMANDS["play"].configure(parser)
    module, found = sentences_of_module(source.read_text()), sentences_of(named(source))
    assert found[: len(module)] == module
    assert {each.text for each in sentences_of_help(source, texts_of(parser))} <= {
        each.text for each in found
    }


# The test can fail


LONG = " ".join(["word"] * MOST_WORDS)


@pytest.mark.parametrize("phrase", sorted(FORBIDDEN))
def test_a_forbidden_phrase_is_found_with_its_line(phrase: str) -> None:
    [fault] = faults_of(sentences_of_markdown(f"# Title\n\nA bot\nplays. It is\n{phrase.title()} here.\n"))
    assert fault.startswith(f'4: "{phrase}"')
    assert fault.endswith(f"It is {phrase.title()} here.")


def test_a_phrase_inside_of_a_word_or_of_code_is_none() -> None:
    assert not faults_of(
        sentences_of_markdown("The header, a `he`, this and renewal.\n\n```\nwhoever\n```\n")
    )


def test_a_phrase_is_found_in_a_table_a_list_a_heading_and_a_link() -> None:
    for text in ("| a | b |\n|---|---|\n| x | anew |", "- one\n- anew", "# Anew", "[anew](there.md)"):
        assert len(faults_of(sentences_of_markdown(text))) == 1, text


@pytest.mark.parametrize("first", ["Who", "What", "Whose"])
def test_a_clause_as_a_subject_is_found_and_a_question_is_not(first: str) -> None:
    assert faults_of(split(1, f"{first} comes late waits."))
    assert faults_of(split(1, f"All wait. **{first}** comes late waits."))
    assert not faults_of(split(1, f"{first} comes late?"))
    assert not faults_of(split(1, f"The answer is {first.lower()} comes late."))
    assert faults_of(split(1, f"A bot waits; {first.lower()} comes late, leaves."))


def test_headings_and_cells_may_name_a_clause() -> None:
    assert not faults_of(
        sentences_of_markdown("## What a view holds\n\n| what | why |\n|---|---|\n| a | b |\n")
    )
    assert not faults_of(sentences_of_markdown("| a | b |\n|---|---|\n| x | the name; who owns it |\n"))
    assert faults_of(sentences_of_markdown("| a | b |\n|---|---|\n| x | What is there counts. |\n"))


def test_a_sentence_may_have_so_many_words_and_no_more() -> None:
    assert not faults_of(split(1, f"{LONG}."))
    assert faults_of(split(7, f"One. {LONG} more."))[0].startswith(f"7: {MOST_WORDS + 1} words")


def test_a_table_and_code_may_be_long() -> None:
    assert not faults_of(sentences_of_markdown(f"| a |\n|---|\n| {LONG} {LONG} |\n"))
    assert not faults_of(
        sentences_of_markdown(f"```\n{LONG} {LONG}\n```\n\n    {LONG} {LONG}\n\n`{LONG} {LONG}` is one.\n")
    )


def test_a_sentence_goes_on_over_lines_and_ends_with_its_paragraph() -> None:
    assert faults_of(sentences_of_markdown(f"{LONG}\nmore"))
    assert not faults_of(sentences_of_markdown(f"{LONG}\n\nmore"))
    assert not faults_of(sentences_of_markdown(f"- {LONG}\n- more\n  and more"))
    assert faults_of(sentences_of_markdown(f"- one\n- {LONG}\n  more"))
    assert faults_of(sentences_of_markdown(f"- one\n\n    {LONG} more\n"))


# How a text is split


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two? Three! Four", ["One.", "Two?", "Three!", "Four"]),
        ("A pace, e.g. `card`, i.e. a kind. Next.", ["A pace, e.g. `code`, i.e. a kind.", "Next."]),
        ("It takes 3.5 ms. x grows.", ["It takes 3.5 ms.", "x grows."]),
        ("Rounds 1, 2 ... end. So", ["Rounds 1, 2 ... end.", "So"]),
        ("Play UGO! now. Then", ["Play UGO! now.", "Then"]),
        ('It says "Ubongo!" with cards. Go', ['It says "Ubongo!" with cards.', "Go"]),
        ("(It waits.) `a.b. c` goes on.", ["(It waits.)", "`code` goes on."]),
        ("**Sit.** Send [a frame. Or two](x.md#y).", ["Sit.", "Send a frame.", "Or two."]),
        ("First:\nsecond; third.", ["First: second; third."]),
    ],
)
def test_a_text_is_split_where_its_sentences_end(text: str, sentences: list[str]) -> None:
    assert [each.text for each in split(1, text)] == sentences


def test_a_sentence_has_the_line_on_which_it_begins() -> None:
    page = "# Title\n\nOne\ntwo. Three\nfour.\n\n1. Five.\n2. Six\n   seven. Eight.\n\n| nine |\n|---|\n| ten |\n"
    found = [(each.line, each.text) for each in sentences_of_markdown(page)]
    assert found == [
        (1, "Title"), (3, "One two."), (4, "Three four."), (7, "Five."), (8, "Six seven."), (9, "Eight."),
        (11, "nine"), (13, "ten"),
    ]  # fmt: skip
    assert [each.kind for each in sentences_of_markdown(page)][-2:] == [Kind.HEADING, Kind.TABLE]


def test_comments_are_read_without_what_they_are_about() -> None:
    source = "// One\n// two. Three.\nmessage Bot {\n  //\n  string name = 1; // Four anew.\n}\n"
    found = sentences_of_comments(source)
    assert [(each.line, each.text) for each in found] == [(1, "One two."), (2, "Three."), (5, "Four anew.")]
    assert faults_of(found)[0].startswith('5: "anew"')


def test_comments_of_python_are_read_without_marks_for_tools() -> None:
    source = (
        "# One\n# two anew.\n\nx = 1  # noqa: E501 Three\ny = 1  # type: ignore[arg]  # Four anew.\n"
        "z = '# five'  # six\n# seven anew\n"
    )
    found = sentences_of_python_comments(source)
    assert [(each.line, each.text) for each in found] == [
        (1, "One two anew."), (5, "Four anew."), (6, "six"), (7, "seven anew"),
    ]  # fmt: skip
    assert len(faults_of(found)) == 3


def test_docstrings_are_read_without_examples() -> None:
    source = '''"""One. Two

    Args:
        name: Three
            four.
        other: Five.

    >>> anew
    anew

    Six.
    """
x = 1
"""Seven."""
'''
    found = [(each.line, each.text) for each in sentences_of_docstrings(source)]
    assert found == [
        (1, "One."),
        (1, "Two"),
        (3, "Args:"),
        (4, "Three four."),
        (6, "Five."),
        (11, "Six."),
        (14, "Seven."),
    ]
