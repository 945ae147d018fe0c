"""`seatwise config show`: what holds of the settings of `seatwise serve`, and where each value is from."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

from seatwise.cli.command import Command
from seatwise_server.cli import table
from seatwise_server.settings import Setting, add_options, options_of, read_settings, write_table


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    show = parser.add_subparsers(dest="verb", required=True).add_parser(
        "show", help="show the settings that `seatwise serve` would have here with these options, and where each is from"
    )  # fmt: skip
    show.add_argument("--json", action="store_true", help="print JSON, a line for each setting")
    show.add_argument(
        "--markdown", action="store_true", help="print all options as the table of the operators' guide"
    )
    add_options(show)


def run(args: Namespace) -> int:
    """Show the settings; return the exit code."""
    if args.markdown:
        print(write_table())
        return 0
    settings = read_settings(args)
    options_of(settings)
    if args.json:
        for each in settings.values():
            told = {"setting": each.option.name, "value": _value_of(each), "source": each.source}
            print(json.dumps(told, default=str))
        return 0
    rows = [[each.option.name, each.source, each.shown] for each in settings.values()]
    table.show_table("Settings of seatwise serve", ["setting", "from", "value"], rows)
    return 0


def _value_of(setting: Setting) -> object:
    """Return the value, without a password."""
    return setting.shown if setting.option.is_secret else setting.value


COMMAND = Command("config", "show the settings of a server, and where they are from", configure, run)
