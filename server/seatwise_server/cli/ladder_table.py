"""Prints a ladder's table and its results on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from seatwise.v1 import ladder_pb2
from seatwise_referee.ending import Ending
from seatwise_server.cli import table

STANDINGS_COLUMNS = ("bot", "#", "matches", "rating", "strength (95 %)", "like", "")
HISTORY = ("match", "logged", "result", "bots", "points", "ranks", "")

LEGEND = """\
rating: openskill's rating, which decides the pairing. The table is ordered by the rating
minus three times its spread. strength: a fit to all results at once, on Elo's scale (100
more means ahead in 64 of 100 matches), with its 95 % interval; ? marks a provisional one,
whose interval is wide. like: the places of neighbours that the results do not distinguish
from the bot. At the end of a line: the kind of the bot, as its author or an operator says."""


def show_standings(title: str, standings: Sequence[ladder_pb2.Standing]) -> None:
    """Print one line for each bot, the best first, and why some are off the ladder."""
    places = {each.bot: each.place for each in standings}
    table.show_table(title, STANDINGS_COLUMNS, [_standing_row(each, places) for each in standings])
    print(LEGEND)
    for each in standings:
        if each.off_reason:
            print(f"{shorten_bot(each.bot)} is off the ladder: {each.off_reason}")


def _standing_row(each: ladder_pb2.Standing, places: dict[str, int]) -> list[str]:
    return [
        shorten_bot(each.bot),
        str(each.place),
        str(each.matches),
        f"{each.mu:.1f}",
        f"{each.strength:+.0f} ({each.low:+.0f} {each.high:+.0f})",
        format_ranges(sorted(places[bot] for bot in each.not_distinguishable_from if bot in places)),
        " ".join(
            filter(
                None, [table.describe_kind(each.kind), "?" * each.provisional, "off" * bool(each.off_reason)]
            )
        ),
    ]


def format_ranges(numbers: Sequence[int]) -> str:
    """Write numbers as ranges: 1, 2, 3, 5 is 1-3, 5."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in found)


def show_history(title: str, results: Sequence[ladder_pb2.LadderResult]) -> None:
    """Print one line for each match."""
    if not results:
        print("There are no results yet.")
        return
    table.show_table(title, HISTORY, [_history_row(each) for each in results])


def _history_row(each: ladder_pb2.LadderResult) -> list[str]:
    seats = zip(each.bots, each.endings, strict=True)
    exits = [f"{shorten_bot(bot)} {ending.lower()}" for bot, ending in seats if ending != Ending.COMPLETED]
    return [
        each.match,
        table.format_time(each.log_time),
        str(each.place),
        " ".join(map(shorten_bot, each.bots)),
        " ".join(map(str, each.points)),
        " ".join(map(str, each.ranks)),
        ", ".join(exits),
    ]


def shorten_bot(bot: str) -> str:
    """Shorten a bot's name: bots/greedy/versions/2 is greedy:2."""
    return bot.removeprefix("bots/").replace("/versions/", ":")
