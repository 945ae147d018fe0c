"""`make size`: files and lines by folder; generated stubs are not counted, and of the tests only Python.

The last column leaves out blank lines, comments and docstrings.
"""

from __future__ import annotations

import io
import subprocess
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("server", "client_sdk", "referee", "proto")
COMMENTS = {
    ".proto": "//", ".js": "//", ".lua": "--", ".toml": "#", ".c": "//", ".css": "/*", ".html": "<!--", ".j2": "{#", ".txt": "#"
}  # fmt: skip
"""Of each kind of file that counts beside Python, how a line begins that is a comment."""
SKIPPED = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


@dataclass
class Size:
    """Of a folder."""

    files: int = 0
    python_files: int = 0
    lines: int = 0
    code: int = 0

    def add(self, path: Path) -> None:
        """Counts this file, too."""
        text = path.read_text(encoding="utf-8")
        self.files += 1
        self.python_files += path.suffix == ".py"
        self.lines += len(text.splitlines())
        self.code += len(python_lines(text)) if path.suffix == ".py" else other_lines(text, path.suffix)


def python_lines(text: str) -> set[int]:
    """The numbers of the lines that have code."""
    found, is_first = set[int](), True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_docstring = token.type == tokenize.STRING and is_first  # or any text that is a statement by itself
        if token.type not in SKIPPED and not is_docstring:
            found.update(range(token.start[0], token.end[0] + 1))
        if token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            is_first = True
        elif token.type not in (tokenize.NL, tokenize.COMMENT):
            is_first = False
    return found


def other_lines(text: str, suffix: str) -> int:
    """How many lines are neither blank nor begin a comment."""
    lines = map(str.strip, text.splitlines())
    return sum(bool(line) and not line.startswith(COMMENTS[suffix]) for line in lines)


def counted() -> Iterator[tuple[str, Path]]:
    """The files that count, each with its folder."""
    listed = subprocess.run(
        ["git", "ls-files", *PRODUCT, "tests"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for path in map(Path, listed.stdout.splitlines()):
        if path.suffix == ".py" or (path.suffix in COMMENTS and path.parts[0] != "tests"):
            deep = 3 if path.parts[0] in ("server", "client_sdk", "referee") else 2
            yield "/".join(path.parts[: min(deep, len(path.parts) - 1)]), ROOT / path


def main() -> None:
    """Prints the table."""
    sizes = defaultdict[str, Size](Size)
    for folder, path in counted():
        for name in (folder, "TESTS" if folder.startswith("tests") else "PRODUCT"):
            sizes[name].add(path)
    print(f"{'folder':44}{'files':>7}{'python':>8}{'lines':>9}{'code':>9}")
    for name in sorted(sizes, key=lambda it: (it.isupper(), it)):
        size = sizes[name]
        print(f"{name:44}{size.files:7}{size.python_files:8}{size.lines:9,}{size.code:9,}")


if __name__ == "__main__":
    main()
