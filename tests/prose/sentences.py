"""Sentences of a page of Markdown, of comments, docstrings or a help text, each with the line on which it begins."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

ABBREVIATIONS = frozenset({"e.g.", "i.e.", "etc.", "cf.", "vs.", "no.", "approx.", "...", "ugo!"})
"""Words that end with a mark which ends no sentence. The name of a game is one of them."""

CODE_WORD = "`code`"
"""A span of code, whatever is in it, counts as one word."""

_MARKER = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_HEADING = re.compile(r"^#{1,6}\s+")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_INDENTED = re.compile(r"^(?: {4}|\t)")
_HEAD_RULE = re.compile(r"^\|[|:\- ]+$")
_ARGUMENT = re.compile(r"^[\w*]+: (?=[A-Z`])")
"""In a docstring: the name before what is said of an argument."""
_TREE = re.compile(r"^[|+]|.*  ")
"""In a docstring: lines of a drawing or a table."""
_TOOL_MARK = re.compile(r"^\s*(?:noqa|type: ignore|fmt|ruff|pragma)\b[^#]*#?|^!.*")
"""At the beginning of a comment: what a tool reads."""
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"(`+).+?\1", re.DOTALL)
_WORD = re.compile(r"\S+")
_CLOSERS = "\"')]*_"


class Kind(StrEnum):
    """The part of a page that a sentence is in."""

    HEADING = "heading"
    TABLE = "table"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence in plain words: spans of code are `CODE_WORD`, links are their text, nothing is emphasised."""

    line: int
    """Where it begins, from 1."""

    text: str
    kind: Kind = Kind.TEXT

    @property
    def words(self) -> int:
        """How many words it has: whatever holds a letter or a digit."""
        return sum(any(map(str.isalnum, word)) for word in self.text.split())


def sentences_of_markdown(page: str) -> list[Sentence]:
    """Without blocks of code. Each item of a list, each cell of a table and each heading has sentences of its own."""
    return [each for block in _blocks(page.splitlines()) for each in split(*block)]


def sentences_of_comments(source: str, mark: str = "//") -> list[Sentence]:
    """The text after each mark. An empty comment, or a line without one, ends a sentence."""
    found: list[Sentence] = []
    begun, lines = 0, list[str]()
    for number, line in enumerate([*source.splitlines(), ""], start=1):
        _, comes, comment = line.partition(mark)
        text = comment.strip() if comes else ""
        if text:
            begun = begun if lines else number
            lines.append(text)
        elif lines:
            found += split(begun, "\n".join(lines))
            lines = []
    return found


def sentences_of_python_comments(source: str) -> list[Sentence]:
    """The comments of a Python module, without marks for tools such as `noqa`. Lines of comments below each other are one text."""
    found: list[Sentence] = []
    begun, last, lines = 0, -1, list[str]()
    if "#" not in source:
        return []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if not (text := _TOOL_MARK.sub("", token.string[1:]).strip()):
            continue
        number, is_alone = token.start[0], token.line.lstrip().startswith("#")
        if lines and not (is_alone and number == last + 1):
            found += split(begun, "\n".join(lines))
            lines = []
        begun, last = (begun if lines else number), (number if is_alone else -1)
        lines.append(text)
    return found + (split(begun, "\n".join(lines)) if lines else [])


def sentences_of_docstrings(source: str) -> list[Sentence]:
    """The docstrings of modules, classes, functions and attributes, without examples."""
    texts = sorted(_docstrings(ast.parse(source)))
    return [each for line, text in texts for each in _of_docstring(line, text)]


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Each string that is a statement of its own, with the line on which it begins."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.lineno, node.value.value


def _of_docstring(line: int, text: str) -> Iterator[Sentence]:
    """As Markdown without indentation: `name: text` is an item of a list, and an example is code."""
    lines = [each.strip() for each in text.splitlines()]
    is_example = False
    for number, each in enumerate(lines):
        is_example = each.startswith(">>>") or (is_example and bool(each))
        if is_example or _TREE.match(each):
            lines[number] = ""
        elif _ARGUMENT.match(each):
            lines[number] = f"- {_ARGUMENT.sub('', each)}"
    for block in _blocks(lines):
        for sentence in split(*block):
            yield Sentence(line + sentence.line - 1, sentence.text, sentence.kind)


def split(line: int, text: str, kind: Kind = Kind.TEXT) -> list[Sentence]:
    """The sentences of a text without markup of blocks; `line` is where the text begins."""
    plain = _plain(text)
    found: list[Sentence] = []
    begin = 0
    for end in [*_ends(plain), len(plain)]:
        words = plain[begin:end].split()
        if words:
            skipped = len(plain[begin:end]) - len(plain[begin:end].lstrip())
            found.append(Sentence(line + plain[: begin + skipped].count("\n"), " ".join(words), kind))
        begin = end
    return found


def _plain(text: str) -> str:
    """Without code, targets of links and emphasis; the lines stay as many as they were."""
    text = _CODE.sub(lambda span: CODE_WORD + "\n" * span[0].count("\n"), text)
    text = _LINK.sub(lambda link: link[1] + "\n" * (link[0].count("\n") - link[1].count("\n")), text)
    return text.replace("**", "")


def _ends(text: str) -> Iterator[int]:
    """Where sentences end: behind a word with a mark that ends one."""
    words = list(_WORD.finditer(text))
    for word, after in pairwise(words):
        bare = word[0].rstrip(_CLOSERS)
        if bare[-1:] not in (".", "?", "!") or bare.lstrip(_CLOSERS + "(").lower() in ABBREVIATIONS:
            continue
        if bare[-1] == "." or not after[0][0].islower():  # `"Ubongo!" ends the round` goes on
            yield word.end()


def _blocks(lines: list[str]) -> Iterator[tuple[int, str, Kind]]:
    """Runs of lines that belong together, each with the number of its first line."""
    begun, run = 0, list[str]()
    is_code, is_list = False, False
    for number, line in enumerate([*lines, ""], start=1):
        fence = _FENCE.match(line)
        indented = _INDENTED.match(line) and not run and not is_list
        is_apart = is_code or fence or indented or not line.strip() or line.startswith(("|", "#"))
        if run and (is_apart or _MARKER.match(line)):
            yield begun, "\n".join(run), Kind.TEXT
            run = []
        if fence:
            is_code = not is_code
        elif is_code or indented or not line.strip():
            continue
        elif line.startswith("|"):
            yield from _cells(number, line, lines)
        elif line.startswith("#"):
            yield number, _HEADING.sub("", line), Kind.HEADING
        else:
            is_list = bool(_MARKER.match(line)) or (is_list and line.startswith(" "))
            begun = begun if run else number
            run.append(_MARKER.sub("", line))


def _cells(number: int, row: str, lines: list[str]) -> Iterator[tuple[int, str, Kind]]:
    """The cells of one row. The head of a table has headings, not sentences."""
    is_head = number < len(lines) and _HEAD_RULE.match(lines[number])
    if not _HEAD_RULE.match(row):
        for cell in row.replace("\\|", "/").strip("|").split("|"):
            yield number, cell, Kind.HEADING if is_head else Kind.TABLE
