"""The command `seatwise new`: writes a bot, its test and a Makefile."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from seatwise.cli.command import Command
from seatwise.new_bot import LANGUAGES


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    from seatwise.kits import DEFAULT_GAME

    parser.add_argument("name", metavar="NAME", help="name of the bot, and of the folder to make: my-bot")
    parser.add_argument("--game", default=DEFAULT_GAME, help="game to play (default: %(default)s)")
    parser.add_argument(
        "--language", choices=LANGUAGES, default="python",
        help="python, or a language that has a starter (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the files as JSON")


def run(arguments: Namespace) -> int:
    """Write the bot, and say what to do with it."""
    from json import dumps

    from seatwise.new_bot import write_bot

    folder = Path(arguments.name)
    files = write_bot(folder, arguments.game, arguments.language)
    if arguments.json:
        print(dumps({"folder": str(folder), "files": list(map(str, files))}, indent=2))
        return 0
    print("\n".join(f"wrote {file}" for file in files if "proto" not in file.parts))
    print(f"Next: cd {folder}, and `make test`. `make help` lists the rest")
    return 0


COMMAND = Command("new", "write a new bot, its test and a Makefile", configure, run)
