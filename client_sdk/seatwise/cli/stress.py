"""The command `seatwise stress`: measures how far hostile bots disturb honest ones."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from seatwise.cli.arguments import parse_count, parse_span
from seatwise.cli.command import Command

if TYPE_CHECKING:
    from seatwise.stress.stress import StressPlan, StressReport

EPILOG = """\
Honest bots play short matches in three phases of equal length: before, during and after a time in which hostile bots do harm.
The table tells how long the server took from the answer of an honest bot to the next question, and what honest seats
lost. The exit code is 1 if an honest seat lost a move, a match or a call. All bots are deleted at the end, and their
matches do not count.

ADDRESS is that of gRPC, on this machine: HOST:PORT or unix:PATH. Any other server needs a permit, good for one run,
which its admin creates with `seatwise ctl stress-permit`. The hostile bots:
  never-reads, many-items, many-streams, silent, motionless, dawdling, lying-pongs, no-http2, calls-flood, attendance-flood
"""

COLUMNS = ("phase", "matches", "steps", "p50 ms", "p99 ms", "max ms", "timeouts", "forfeits", "voids", "errors")  # fmt: skip


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    from argparse import RawDescriptionHelpFormatter

    from seatwise.cli.security import add_security_arguments

    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("address", metavar="ADDRESS", help="the server, as localhost:7433")
    parser.add_argument(
        "--token",
        help="the server's admin token (default: $SEATWISE_TOKEN, or that of this machine's server)",
    )
    parser.add_argument(
        "--permit", default="", metavar="TEXT", help="the permit of a server on another machine"
    )
    parser.add_argument(
        "--seconds", type=parse_span, default=10.0, metavar="S",
        help="the length of each phase, at most 60 (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument(
        "--pairs", type=parse_count, default=2, metavar="N",
        help="honest matches at once, at most 8 (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--only", action="append", default=[], metavar="KIND", help="this hostile bot; may be repeated"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    add_security_arguments(parser)


def run(arguments: Namespace) -> int:
    """Stress the server, and print the report. Returns 1 if an honest seat was harmed."""
    from seatwise import grpc_log_lines  # noqa: F401  # before anything that imports grpc

    plan = _make_plan(arguments)
    report = _stress(plan)
    if arguments.json:
        from json import dumps

        print(dumps(report.to_json(), indent=2))
    else:
        print_report(report)
    return 1 if report.has_harm else 0


def _make_plan(arguments: Namespace) -> StressPlan:
    from seatwise.cli.security import security_of
    from seatwise.cli.tokens import token_at
    from seatwise.stress.hostile import HOSTILE_KINDS
    from seatwise.stress.stress import StressPlan, check_stress_address

    check_stress_address(arguments.address, arguments.permit)
    return StressPlan(
        address=arguments.address,
        token=token_at(arguments.address, arguments.token),
        seconds=arguments.seconds,
        pairs=arguments.pairs,
        kinds=tuple(dict.fromkeys(arguments.only)) or tuple(HOSTILE_KINDS),
        security=security_of(arguments),
        permit=arguments.permit,
    )


def _stress(plan: StressPlan) -> StressReport:
    import asyncio
    import logging

    from seatwise.stress.stress import stress_server

    logging.getLogger("seatwise").setLevel(logging.ERROR)
    return asyncio.run(stress_server(plan, lambda phase: _show_phase(phase, plan.seconds)))


def _show_phase(phase: str, seconds: float) -> None:
    what = "honest and hostile bots" if phase == "during" else "honest bots alone"
    print(f"{phase}: {what}, {seconds:g} s", file=sys.stderr, flush=True)


def print_report(report: StressReport) -> None:
    """Print what the honest bots felt, and what the hostile ones did."""
    found = report.to_json()
    rows = [[phase, *map(_format, figures.values())] for phase, figures in found["honest"].items()]
    _print_table(COLUMNS, rows)
    print()
    ends = [", ".join(f"{end} {count}" for end, count in each["ends"].items()) for each in report.hostile]
    acts = [[each["kind"], str(each["acts"])] for each in report.hostile]
    _print_table(("hostile bot", "acts"), acts, ["the server ended", *ends])
    for each in report.hostile:
        if each["failure"]:
            print(f"{each['kind']} failed by itself: {each['failure']}")
    print("\nAn honest seat was harmed." if report.has_harm else "\nNo honest seat was harmed.")


def _format(figure: float) -> str:
    return str(figure) if isinstance(figure, int) else f"{figure:.1f}"


def _print_table(columns: tuple[str, ...], rows: list[list[str]], last: list[str] | None = None) -> None:
    """Print columns, the first one left and the others right; `last` is one more, as it is, with its head."""
    lines = [list(columns), *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line, more in zip(lines, last or [""] * len(lines), strict=True):
        first, *others = line
        cells = [
            first.ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)),
        ]
        print("  ".join([*cells, more]).rstrip())


COMMAND = Command(
    "stress",
    "play hostile bots beside honest ones on a server of this machine, and report the harm",
    configure,
    run,
)
