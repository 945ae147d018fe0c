"""The command `seatwise doctor`: does a bot in any language speak the protocol?"""

from __future__ import annotations

import json
import os
from argparse import REMAINDER, ArgumentParser, Namespace
from typing import TYPE_CHECKING

from seatwise.cli.arguments import Command, InputFile, parse_count, parse_output, parse_span
from seatwise.errors import UsageError, first_error
from seatwise.output import show_progress

if TYPE_CHECKING:
    from seatwise.doctor.doctor import CheckResult, DoctorReport

EPILOG = """\
COMMAND starts the bot. {address} in it is replaced by HOST:PORT of a server on this machine, in plain text, and
{token} by a token, which is in SEATWISE_TOKEN, too. Each check starts the bot afresh and kills it at the end. The bot must
play UGO!. With --door websocket, {address} is ws://HOST:PORT. Examples:

  seatwise doctor -- ./my-bot --address {address}
  seatwise doctor -- seatwise bot bot.py:MyBot --address {address}
  seatwise doctor --door websocket --only answers_pings -- node bot.mjs {address}
"""

SHOWN_LINES = 12
"""How many lines of a transcript are shown; --json and --junit have all."""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--door",
        choices=["grpc", "websocket"],
        default="grpc",
        help="how the bot connects (default: %(default)s)",
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="CHECK", help="run this check; may be repeated"
    )
    parser.add_argument(
        "--patience", type=parse_span, default=60.0, metavar="SECONDS",
        help="the longest wait for anything that is due (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument(
        "--positions", type=parse_count, default=200, metavar="N",
        help="number of questions in the check of moves (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--jobs",
        type=parse_count,
        metavar="N",
        help="checks at once (default: one for each core, four at most)",
    )
    parser.add_argument("--long", action="store_true", help="look at the memory over 100 matches, too")
    parser.add_argument(
        "--junit", type=parse_output, metavar="FILE", help="write the report as JUnit XML, too"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "command", nargs=REMAINDER, type=InputFile, metavar="-- COMMAND",
        help="the command that starts the bot",
    )  # fmt: skip


def run(arguments: Namespace) -> int:
    """Examine the bot, and print the report. Returns 1 if anything must be mended."""
    import seatwise.link  # noqa: F401  # before anything that imports grpc: it keeps its log lines out

    report = _examine(arguments)
    if arguments.junit is not None:
        from seatwise.doctor.doctor import write_junit

        write_junit(report, arguments.junit)
    if arguments.json:
        print(json.dumps(report.to_json(), indent=2))
    else:
        print_report(report)
    return 1 if report.has_failed else 0


def _examine(arguments: Namespace) -> DoctorReport:
    import asyncio

    from seatwise.doctor.doctor import DoctorSettings, choose_checks, examine_bot
    from seatwise.doctor.examined_bot import process_starter
    from seatwise.doctor.stream_link import Door

    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        raise UsageError(
            "give the command that starts the bot: seatwise doctor -- ./my-bot --address {address}"
        )
    settings = DoctorSettings(
        patience_s=arguments.patience,
        positions=arguments.positions,
        jobs=arguments.jobs or min(4, os.cpu_count() or 1),
        is_long=arguments.long,
        door=Door(arguments.door),
        only=tuple(arguments.only),
    )
    starter, total = process_starter(command), len(choose_checks(settings))
    last: list[CheckResult] = []
    with show_progress(
        total, lambda _: _describe_last(last), is_quiet=arguments.json, every_s=0.0
    ) as advance:

        def on_result(result: CheckResult) -> None:
            last[:] = [result]
            advance()

        try:
            return asyncio.run(examine_bot(starter, settings, on_result))
        # `except*` would not do: Python 3.11.2 puts what is raised there into a group again.
        except ExceptionGroup as group:
            wrong_use, others = group.split(UsageError)
            if wrong_use is None or others is not None:
                raise
            raise first_error(wrong_use) from None


def _describe_last(last: list[CheckResult]) -> str:
    return f"{last[0].outcome:7} {last[0].of.name}" if last else "examining"


def print_report(report: DoctorReport) -> None:
    """Print the table of all checks, and each failure with what to mend."""
    width = max(len(each.of.name) for each in report.results)
    for each in report.results:
        print(f"{each.outcome:7}  {each.of.name:<{width}}  {each.of.what}")
    for each in report.results:
        if each.outcome in ("failed", "noted"):
            _print_failure(each)
    notes = [f"{each.of.name}: {note}" for each in report.results for note in each.measured.notes]
    if notes:
        print("\nNotes:\n" + "\n".join(f"  {note}" for note in notes))
    times = report.answer_ms
    if times:
        print(
            f"\nAnswers: p50 {times['p50']:.1f} ms, p99 {times['p99']:.1f} ms, at most {times['max']:.1f} ms"
        )
    failed = sum(each.outcome == "failed" for each in report.results)
    print(f"\n{failed or 'Nothing'} to mend: {len(report.results)} checks in {report.seconds:.0f} s")


def _print_failure(result: CheckResult) -> None:
    line = " ".join(result.of.line.split())
    print(f"\n{result.outcome.upper()} {result.of.name}: {result.why}")
    print(f'  The protocol: "{line}" ({result.see})')
    print(f"  To mend it: {result.of.mend}")
    if result.outcome != "failed":
        return
    print("  The last that was said (< by the bot, > to it):")
    for each in result.transcript[-SHOWN_LINES:]:
        print(f"    {each}")
    if result.output.strip():
        print("  The last that the bot printed:")
        for each in result.output.strip().splitlines()[-SHOWN_LINES:]:
            print(f"    {each}")


COMMAND = Command(
    "doctor", "check whether a bot in any language speaks the protocol", configure, run, epilog=EPILOG
)
