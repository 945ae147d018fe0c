"""The checks that a server runs over the bot's own streams before it signs a certificate: those that need no fresh bot."""

from __future__ import annotations

from typing import Final

from seatwise.doctor.checks import CHECKS, DoctorCheck
from seatwise.doctor.doctor import CheckOutcome
from seatwise.doctor.examination import CheckFailed, Examination
from seatwise.doctor.scripted_server import NothingCame

CERTIFICATE_SUITE: Final = "seatwise-certificate/1"
"""The name of the list below. Another list needs another name."""

CERTIFIED: Final = (
    "sits_down", "plays_legal_moves", "answers_pings", "plays_many_matches", "answers_once", "comes_back", "shows_receipt",
    "repeats_move", "survives_illegal", "survives_rejections", "survives_closed", "passes_over_unknown_fields",
    "passes_over_unknown_enums", "takes_large_message", "survives_wrong_seed",
)  # fmt: skip
"""The names of the checks, in the order in which they run. None ends the attendance, the bot, or needs a second server."""

MOST_EXAMINED_SEATS: Final = 3
"""The most seats that one of these checks gives to the bot at once."""


def list_certified_checks() -> list[DoctorCheck]:
    """Return the checks, in the order in which they run."""
    known = {check.name: check for check in CHECKS}
    return [known[name] for name in CERTIFIED]


async def run_certified_check(check: DoctorCheck, exam: Examination) -> tuple[CheckOutcome, str]:
    """Run one check until it is over, or the timeout around it is. Return the outcome, and what the bot did wrong."""
    try:
        await check.run(exam)
    except (CheckFailed, NothingCame) as error:
        return CheckOutcome.FAILED, str(error)
    return CheckOutcome.PASSED, ""


__all__ = [
    "CERTIFICATE_SUITE",
    "CERTIFIED",
    "MOST_EXAMINED_SEATS",
    "list_certified_checks",
    "run_certified_check",
]
