"""The command `seatwise compare`: two versions of a bot on the same deals, until the result is clear."""

from __future__ import annotations

import json
import os
import secrets
import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from seatwise.cli.arguments import (
    Command,
    add_deck_argument,
    add_unit_arguments,
    parse_bot,
    parse_count,
    parse_game_option,
    parse_span,
    read_unit_options,
    use_deck_files,
)
from seatwise.defaults import FAILED
from seatwise.errors import UsageError
from seatwise.output import AnswerOutput, show_progress

if TYPE_CHECKING:
    from seatwise.local.comparison import Comparison, RunningComparison
    from seatwise.local.deal_block import BlockPlan

EPILOG = """\
OLD and NEW are FILE.py:CLASS, or samples. Without --against they play each other, each deal in both orders of
seats. With --against each of them takes each seat once on every deal, beside the same opponents. Keep the file of
the old version, as in:

  cp bot.py old.py
  seatwise compare old.py:MyBot bot.py:MyBot
  seatwise compare old.py:MyBot bot.py:MyBot --against counting --against greedy

On several machines without a network between them, each plays some of the deals, and one of them merges:

  seatwise compare old.py:MyBot bot.py:MyBot --seed 7 --units 0:500 --out part0.jsonl
  seatwise compare old.py:MyBot bot.py:MyBot --seed 7 --merge part*.jsonl
"""


def configure(parser: ArgumentParser) -> None:
    from seatwise.kits import DEFAULT_GAME

    parser.add_argument("old", metavar="OLD", type=parse_bot, help="the version that is known")
    parser.add_argument("new", metavar="NEW", type=parse_bot, help="the version that may be better")
    parser.add_argument(
        "--against", action="append", default=[], type=parse_bot, metavar="BOT",
        help="an opponent of both versions; up to three (default: the versions play each other)",
    )  # fmt: skip
    parser.add_argument("--game", default=DEFAULT_GAME, help="game to play (default: %(default)s)")
    parser.add_argument(
        "--margin", type=parse_span, default=1.0, metavar="POINTS",
        help="stop too when the difference is certainly smaller than this, in points a match (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument(
        "--matches", type=parse_count, default=20_000, metavar="N",
        help="stop after this many matches (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--planned", action="store_true",
        help="decide only after each tenth of --matches: this takes fewer matches, if you know how many you can afford",
    )  # fmt: skip
    add_unit_arguments(parser, "deals")
    parser.add_argument("--seed", metavar="SEED", help="a text or number; the same seed gives the same deals")
    parser.add_argument(
        "--option", action="append", default=[], type=parse_game_option, metavar="NAME=VALUE",
        help="option of the game, such as rounds=1; may be repeated",
    )  # fmt: skip
    add_deck_argument(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(arguments: Namespace) -> int:
    """Compare, and print the verdict."""
    with AnswerOutput() as answers:
        return _compare(arguments, answers)


def _compare(arguments: Namespace, answers: AnswerOutput) -> int:
    from seatwise.local.comparison import StopRule, compare_versions

    work = read_unit_options(arguments)
    if work.has_files and not arguments.seed:
        raise UsageError("--out and --merge need --seed: all parts must have the same deals")
    plan = _make_plan(arguments)
    rule = StopRule(arguments.margin, arguments.matches, is_planned=arguments.planned)
    units, unit_plan = work.units, plan.to_unit_plan()
    workers = work.make_workers(unit_plan)
    most = len(units) * len(plan.tables) if units else rule.most_matches
    latest: list[RunningComparison] = []
    with (
        work.open_file(unit_plan, units) as file,
        show_progress(most, lambda _: _state_line(latest), is_quiet=arguments.json) as advance,
    ):

        def on_block(running: RunningComparison) -> None:
            answers.raise_fault()
            latest[:] = [running]
            advance(len(plan.tables))

        found = compare_versions(plan, rule, workers, on_block, _print_failure, file, units)
    if arguments.json:
        answers.print_line(json.dumps(found.to_json() | {"seed": plan.seed}, indent=2))
    else:
        answers.print_line(describe_comparison(found, plan))
        if units:
            answers.print_line(
                f"Deals {units.start} to {units.stop - 1} are in {arguments.out}; --merge counts all parts"
            )
    return 0 if found.broken_deal is None else FAILED


def _make_plan(arguments: Namespace) -> BlockPlan:
    """Return the plan. It loads the bots, so that a mistake is told at once and not by a worker."""
    from seatwise.kits import find_kit
    from seatwise.local.deal_block import BlockPlan
    from seatwise.local.matches import complete_game_options, name_entrants
    from seatwise.samples import bot_name, load_version

    bots = (arguments.old, arguments.new, *arguments.against)
    find_kit(arguments.game)
    use_deck_files(arguments.deck)
    if len(arguments.against) > 3:
        raise UsageError("--against: a match has at most four seats, so there may be three opponents")
    for bot in bots:
        load_version(bot, arguments.game)
    plan = BlockPlan(
        game=arguments.game,
        bots=bots,
        names=(
            f"old {bot_name(arguments.old)}",
            f"new {bot_name(arguments.new)}",
            *name_entrants(arguments.against),
        ),
        options=dict(arguments.option),
        seed=arguments.seed or secrets.token_hex(8),
        decks=tuple(os.path.abspath(deck) for deck in arguments.deck),
    )
    complete_game_options(plan.game, plan.seats, plan.options)
    return plan


# Output


def describe_comparison(found: Comparison, plan: BlockPlan) -> str:
    """Return the result in a few lines."""
    low, high = found.interval
    rate = f" ({found.matches / found.seconds:.0f} a second)" if found.seconds else ""
    lines = [
        f"{_VERDICTS[found.verdict]}: {found.mean:+.2f} points a match, 95 % interval {low:+.2f} to {high:+.2f}",
        f"It took {found.matches} matches on {found.deals} deals{rate}: {found.why}.",
        f"Thinking time: old {found.thought_ms[0]:.2f} ms a move, new {found.thought_ms[1]:.2f} ms.",
    ]
    if any(found.failures):
        lines.append(f"Failures: old {found.failures[0]}, new {found.failures[1]}. Each cost a move.")
    if found.voided or found.cut:
        lines.append(f"{found.voided} deals were voided; {found.cut} had a difference beyond 100 points.")
    if not found.is_repeatable:
        lines.append("Not repeatable: a deal that was played again had another result.")
    lines.append(f"The same deals again: --seed {plan.seed}")
    return "\n".join(lines)


_VERDICTS = {
    "better": "The new version is better",
    "worse": "The new version is worse",
    "level": "No difference that matters",
    "open": "Undecided",
}


def _state_line(latest: list[RunningComparison]) -> str:
    if not latest:
        return "comparing"
    found = latest[0].report()
    low, high = found.interval
    return f"new {found.mean:+.2f} ({low:+.2f} to {high:+.2f}) after {found.matches} matches"


def _print_failure(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


COMMAND = Command("compare", "compare two versions of a bot on the same deals", configure, run, epilog=EPILOG)
