"""The command `seatwise new`: writes a bot, its test and a Makefile."""

from __future__ import annotations

import json
import re
import shutil
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from shlex import quote
from typing import Final, NamedTuple

from seatwise.cli.arguments import Command
from seatwise.errors import UsageError
from seatwise.kits import DEFAULT_GAME, find_kit

_PACKAGE: Final = Path(__file__).parents[1]
_TEMPLATES: Final = _PACKAGE / "templates"


class StarterCommands(NamedTuple):
    """The commands of a starter in another language."""

    build: str
    test: str
    run: str


STARTERS: Final = {
    "node": StarterCommands("@node --check main.mjs", "node --test", "node main.mjs"),
    "go": StarterCommands("buf generate && go build -o starter .", "go test ./...", "./starter"),
    "rust": StarterCommands("cargo build --release", "cargo test --release", "target/release/starter"),
}
"""The languages that have a starter in docs/starters/, with their commands."""

LANGUAGES: Final = ("python", *STARTERS)


def write_bot(folder: Path, game: str, language: str) -> list[Path]:
    """Write a new bot in one of `LANGUAGES`, and return its files, in the order of their names.

    Raises `UsageError` if the folder is there and not empty, its name gives no name of a class, or there is no template for the game.
    """
    class_name = _name_class(folder.name)
    find_kit(game)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there already: choose another name, or remove it")
    _check_template(game, language)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if language == "python":
            _write_python(folder, game, class_name)
        else:
            _copy_starter(folder, language)
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror}") from None
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _name_class(name: str) -> str:
    words = re.findall(r"[A-Za-z0-9]+", name)
    found = "".join(word[0].upper() + word[1:] for word in words)
    if not found or found[0].isdigit():
        raise UsageError(f"{name!r} gives no name of a class: begin it with a letter, as in my-bot")
    return found


def _check_template(game: str, language: str) -> None:
    if language == "python" and not (_TEMPLATES / game).is_dir():
        raise UsageError(f"there is no template for {game}; copy the bot of its package")
    if language != "python" and game != DEFAULT_GAME:
        raise UsageError(
            f"the starter in {language} plays {DEFAULT_GAME}; for {game} use --language python, or read docs/protocol.md"
        )


def _write_python(folder: Path, game: str, class_name: str) -> None:
    for name in ("bot.py", "test_bot.py"):
        text = (_TEMPLATES / game / f"{name}.txt").read_text(encoding="utf-8")
        (folder / name).write_text(text.replace("{class_name}", class_name), encoding="utf-8")
    python = quote(sys.executable)
    _write_makefile(
        folder, "Makefile", game=game, class_name=class_name, python=python, seatwise=f"{python} -m seatwise"
    )


def _write_makefile(folder: Path, template: str, **values: str) -> None:
    text = (_TEMPLATES / f"{template}.txt").read_text(encoding="utf-8")
    (folder / "Makefile").write_text(text.format(**values), encoding="utf-8")


def _copy_starter(folder: Path, language: str) -> None:
    """Copy a starter, and the protos beside it if it makes its client from them."""
    starters, protos = _find_sources()
    source = starters / language
    wanted = [
        path
        for path in source.rglob("*")
        if path.is_file()
        and path.relative_to(source).parts[0]
        not in {"gen", "target", "node_modules", "starter", "Cargo.lock"}
    ]
    needs_protos = False
    for path in wanted:
        text = path.read_text(encoding="utf-8")
        needs_protos |= "../../../proto" in text and path.suffix != ".md"
        target = folder / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text.replace("../../../proto", "proto"), encoding="utf-8")
    if needs_protos:
        shutil.copytree(protos / "seatwise", folder / "proto" / "seatwise")
    _write_makefile(folder, "Makefile.starter", **STARTERS[language]._asdict())


def _find_sources() -> tuple[Path, Path]:
    """Return the folders of the starters and of the protos: in the installed package, or in a clone."""
    clone = _PACKAGE.parents[1]
    for starters, protos in (
        (_PACKAGE / "starters", _PACKAGE / "proto"),
        (clone / "docs" / "starters", clone / "proto"),
    ):
        if starters.is_dir():
            return starters, protos
    raise UsageError("this installation has no starters: copy one from docs/starters of the repository")


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the bot, and of the folder to make: my-bot")
    parser.add_argument("--game", default=DEFAULT_GAME, help="game to play (default: %(default)s)")
    parser.add_argument(
        "--language", choices=LANGUAGES, default="python",
        help="python, or a language that has a starter (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the files as JSON")


def run(arguments: Namespace) -> int:
    """Write the bot, and say what to do with it."""
    folder = Path(arguments.name)
    files = write_bot(folder, arguments.game, arguments.language)
    if arguments.json:
        print(json.dumps({"folder": str(folder), "files": list(map(str, files))}, indent=2))
        return 0
    print("\n".join(f"wrote {file}" for file in files if "proto" not in file.parts))
    print(f"Next: cd {folder}, and `make test`. `make help` lists the rest")
    return 0


COMMAND = Command("new", "write a new bot, its test and a Makefile", configure, run)
