"""Runs the checks, each with a fresh bot and a server of its own."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from enum import StrEnum
from time import monotonic
from typing import Any, Final
from xml.etree.ElementTree import Element, SubElement, tostring

from seatwise.doctor.checks import CHECKS, DoctorCheck
from seatwise.doctor.examination import CheckFailed, Examination, Measurements
from seatwise.doctor.examined_bot import BotStarter
from seatwise.doctor.scripted_server import Transcript, scripted_server
from seatwise.doctor.stream_link import Door, NothingCame
from seatwise.errors import UsageError
from seatwise.output import writing_file

PIECE: Final = 64
"""Bytes at a time."""
PAUSE_S: Final = 0.002


@asynccontextmanager
async def slow_link(address: str) -> AsyncIterator[str]:
    """Forward connections to this address as long as the context lasts. Yields the address of the proxy."""
    scheme, separator, authority = address.rpartition("://")
    host, _, port = authority.rpartition(":")
    pumps: set[asyncio.Task[None]] = set()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        for source, target in ((reader, far_writer), (far_reader, writer)):
            pumps.add(asyncio.create_task(_pump_bytes(source, target)))

    server = await asyncio.start_server(forward, "127.0.0.1", 0)
    try:
        yield f"{scheme}{separator}127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _pump_bytes(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while piece := await source.read(PIECE):
            target.write(piece)
            await target.drain()
            await asyncio.sleep(PAUSE_S)
    except OSError:
        pass
    finally:
        target.transport.abort()


PROTOCOL_PAGE = "docs/protocol.md"

ENDED_GRACE_S = 2.0
"""How long a check goes on after the end of the bot, in seconds. The last message of the bot may still be under way."""

ERROR_WORDS = re.compile("error|exception|panic|fatal", re.IGNORECASE)
"""The last line with such a word is told of a bot that has ended. In some languages the lines after it are a stack."""

MEND_END = "Start the command by itself, and read what it prints. It must run until it is stopped, and not in the background."


class CheckOutcome(StrEnum):
    """The outcome of a check."""

    PASSED = "passed"
    FAILED = "failed"
    NOTED = "noted"
    """It failed, but nothing must be mended."""
    SKIPPED = "skipped"
    """A check that it needs has failed."""


@dataclass(frozen=True, slots=True)
class DoctorSettings:
    """The settings of an examination."""

    patience_s: float = 60.0
    """The longest wait for anything that is due, in seconds."""

    positions: int = 200
    """How many questions the check of moves asks."""

    jobs: int = 2
    """How many checks run at once."""

    is_long: bool = False
    """Whether the checks that take long run, too."""

    door: Door = Door.GRPC
    """How the bot connects."""

    only: tuple[str, ...] = ()
    """The names of the checks to run; all if it is empty."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check."""

    of: DoctorCheck
    outcome: CheckOutcome
    why: str
    """The mistake of the bot; empty if it passed."""

    seconds: float = 0.0
    measured: Measurements = field(default_factory=Measurements)
    transcript: tuple[str, ...] = ()
    output: str = ""
    """The end of the output of the bot."""

    @property
    def see(self) -> str:
        """The section of the protocol."""
        return f"{PROTOCOL_PAGE}#{self.of.section}"

    def to_json(self) -> dict[str, Any]:
        """Return the result as a value for JSON: transcript and output only where the check failed."""
        told = {
            "check": self.of.name, "what": self.of.what, "outcome": self.outcome, "why": self.why, "mend": self.of.mend,
            "see": self.see, "line": self.of.line, "seconds": self.seconds, "notes": self.measured.notes,
        }  # fmt: skip
        if self.outcome in (CheckOutcome.PASSED, CheckOutcome.SKIPPED):
            return told
        return told | {"transcript": self.transcript, "output": self.output}


@dataclass(slots=True)
class DoctorReport:
    """All results of an examination."""

    results: list[CheckResult] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def has_failed(self) -> bool:
        """Whether anything must be mended."""
        return any(each.outcome is CheckOutcome.FAILED for each in self.results)

    @property
    def answer_ms(self) -> dict[str, float]:
        """The quantiles of the times of all answers, as this machine measured them, in milliseconds."""
        times = sorted(time for each in self.results for time in each.measured.answer_ms)
        if not times:
            return {}
        return {"p50": times[len(times) // 2], "p99": times[int(len(times) * 0.99)], "max": times[-1]}

    def to_json(self) -> dict[str, Any]:
        """Return the report as a value for JSON."""
        return {
            "suite": "seatwise-doctor/1",
            "ok": not self.has_failed,
            "seconds": self.seconds,
            "answer_ms": self.answer_ms,
            "checks": [each.to_json() for each in self.results],
        }


async def examine_bot(
    start: BotStarter, settings: DoctorSettings, on_result: Callable[[CheckResult], None]
) -> DoctorReport:
    """Run all checks, and return their results in order. `on_result` is called with each as soon as it is there.

    Raises `UsageError` if a check does not exist, or the bot cannot be started.
    """
    started_s = monotonic()
    checks = choose_checks(settings)
    slots = asyncio.Semaphore(settings.jobs)
    done: dict[str, asyncio.Task[CheckResult]] = {}

    async def run(check: DoctorCheck) -> CheckResult:
        needed = [await done[name] for name in check.needs if name in done]
        failed = [each.of.name for each in needed if each.outcome is not CheckOutcome.PASSED]
        if failed:
            result = CheckResult(check, CheckOutcome.SKIPPED, f"it needs {failed[0]}")
        else:
            async with slots:
                result = await _run_check(check, start, settings)
        on_result(result)
        return result

    async with asyncio.TaskGroup() as group:
        for check in checks:
            done[check.name] = group.create_task(run(check))
    return DoctorReport([task.result() for task in done.values()], monotonic() - started_s)


def choose_checks(settings: DoctorSettings) -> Sequence[DoctorCheck]:
    """Return the checks that the settings name. Raises `UsageError` for a name that there is not."""
    names = {check.name for check in CHECKS}
    for name in settings.only:
        if name not in names:
            raise UsageError(f"--only {name}: there is no such check; there are {', '.join(sorted(names))}")
    if settings.only:
        return [check for check in CHECKS if check.name in settings.only]
    return [check for check in CHECKS if settings.is_long or not check.is_long]


async def _run_check(check: DoctorCheck, start: BotStarter, settings: DoctorSettings) -> CheckResult:
    transcript, started_s, door = Transcript(), monotonic(), settings.door
    link: Callable[[str], AbstractAsyncContextManager[str]] = slow_link if check.is_slow_link else nullcontext
    async with (
        scripted_server(transcript, door) as server,
        link(server.address) as address,
        start(address) as bot,
    ):
        exam = Examination(server, bot, transcript, settings.patience_s, settings.positions, door)
        outcome, why = CheckOutcome.PASSED, ""
        try:
            await _run_while_bot_runs(check, exam)
        except BotEnded as error:
            outcome, why = CheckOutcome.FAILED, str(error)
            check = check if exam.has_attended else replace(check, mend=MEND_END)
        except (CheckFailed, NothingCame) as error:
            outcome, why = (CheckOutcome.NOTED if check.is_note else CheckOutcome.FAILED), str(error)
        if why:
            transcript.note(f"failed: {why}")
        seconds, lines = monotonic() - started_s, tuple(transcript.lines)
        return CheckResult(check, outcome, why, seconds, exam.measured, lines, bot.read_output())


class BotEnded(CheckFailed):
    """The bot has ended by itself, and the check waits for it. The text says how it has ended."""


async def _run_while_bot_runs(check: DoctorCheck, exam: Examination) -> None:
    """Run a check. Raises what the check does, and `BotEnded` soon after the bot has ended where the check goes on."""
    running = asyncio.ensure_future(check.run(exam))
    ended = asyncio.ensure_future(exam.bot.wait_for_end())
    try:
        await asyncio.wait({running, ended}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({running}, timeout=ENDED_GRACE_S)
        if ended.done() and (not running.done() or isinstance(running.exception(), NothingCame)):
            raise BotEnded(_describe_end(ended.result(), exam))
        await running
    finally:
        running.cancel()
        ended.cancel()
        await asyncio.wait({running, ended})


def _describe_end(how: str, exam: Examination) -> str:
    """Return the sentence about a bot that has ended: how, when, and the line that it printed about it."""
    stage = "in the middle of the check" if exam.has_attended else "before it opened an Attend stream"
    lines = [line.strip() for line in exam.bot.read_output().splitlines() if line.strip()]
    *_, told = "", *([line for line in lines if ERROR_WORDS.search(line)] or lines)
    printed = f'it printed "{told}"' if told else "it printed nothing"
    return f"its process ended {how} {stage}; {printed}"


def write_junit(report: DoctorReport, file: str) -> None:
    """Write the report. Raises `UsageError` if the file cannot be written."""
    try:
        with writing_file(file) as out:
            out.write(junit_of(report))
    except OSError as error:
        raise UsageError(f"--junit {file}: {error.strerror}") from None


def junit_of(report: DoctorReport) -> bytes:
    """Return the report as one test suite."""
    failed = sum(each.outcome is CheckOutcome.FAILED for each in report.results)
    skipped = sum(each.outcome is CheckOutcome.SKIPPED for each in report.results)
    suite = Element(
        "testsuite", name="seatwise doctor", tests=str(len(report.results)), failures=str(failed),
        skipped=str(skipped), errors="0", time=f"{report.seconds:.3f}",
    )  # fmt: skip
    for result in report.results:
        _add_case(suite, result)
    text: bytes = tostring(suite, encoding="utf-8", xml_declaration=True)
    return text


def _add_case(suite: Element, result: CheckResult) -> None:
    named = {"classname": "seatwise.doctor", "name": result.of.name, "time": f"{result.seconds:.3f}"}
    case = SubElement(suite, "testcase", named)
    if result.outcome is CheckOutcome.FAILED:
        failure = SubElement(case, "failure", message=_printable(result.why))
        told = (f"Mend: {result.of.mend}", f"See: {result.see}", *result.transcript)
        failure.text = _printable("\n".join(told))
        if result.output:
            SubElement(case, "system-out").text = _printable(result.output)
    elif result.outcome is CheckOutcome.SKIPPED:
        SubElement(case, "skipped", message=_printable(result.why))


def _printable(text: str) -> str:
    """Return the text without the characters that XML does not allow."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)
