"""Writes a report as JUnit XML, which build servers read."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, tostring

from seatwise.doctor.doctor import CheckOutcome, CheckResult, DoctorReport
from seatwise.errors import UsageError
from seatwise.output import writing_file


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
    case = SubElement(
        suite, "testcase", classname="seatwise.doctor", name=result.check, time=f"{result.seconds:.3f}"
    )
    if result.outcome is CheckOutcome.FAILED:
        failure = SubElement(case, "failure", message=_printable(result.why))
        failure.text = _printable(
            "\n".join((f"Mend: {result.mend}", f"See: {result.see}", *result.transcript))
        )
        if result.output:
            SubElement(case, "system-out").text = _printable(result.output)
    elif result.outcome is CheckOutcome.SKIPPED:
        SubElement(case, "skipped", message=_printable(result.why))


def _printable(text: str) -> str:
    """Return the text without the characters that XML does not allow."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)
