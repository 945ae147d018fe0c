"""The command `seatwise games`: lists the games that are installed here."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

from seatwise.cli.arguments import Command


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the list as JSON")


def run(arguments: Namespace) -> int:
    """Print the games, each with its seats, options and sample bots."""
    from seatwise.kits import KITS, REFUSED_GAMES

    games = [
        {
            "game": kit.name,
            "title": kit.title,
            "seats": list(kit.game.table_sizes),
            "options": dict(kit.game.complete_options({})),
            "samples": list(kit.samples),
            "queues": [queue.name for queue in kit.queues],
        }
        for kit in KITS.values()
    ]
    if arguments.json:
        refused = [each._asdict() for each in REFUSED_GAMES]
        print(json.dumps({"games": games, "refused": refused}, indent=2))
        return 0
    print("\n".join(_list_lines()))
    for each in REFUSED_GAMES:
        print(f"not hosted: {each.entry}: {each.why}")
    return 0


def _list_lines() -> list[str]:
    from seatwise.kits import KITS

    rows = [("game", "seats", "sample bots", "title")]
    for kit in KITS.values():
        sizes = kit.game.table_sizes
        seats = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        rows.append((kit.name, seats, " ".join(kit.samples), kit.title))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


COMMAND = Command("games", "list the games that are installed here", configure, run)
