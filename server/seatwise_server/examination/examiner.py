"""Examines a bot that attends for it: runs the checks of a certificate over its own streams, and signs the results."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from seatwise.doctor.certified_checks import (
    MOST_EXAMINED_SEATS,
    list_certified_checks,
    run_certified_check,
)
from seatwise.doctor.checks import DoctorCheck
from seatwise.doctor.doctor import CheckOutcome
from seatwise.doctor.examination import GAME, Examination, OfferedNames
from seatwise.doctor.scripted_server import NothingCame, Transcript
from seatwise.v1 import lobby_service_pb2 as pb
from seatwise_server.examination.certificate_signer import CertificateSigner
from seatwise_server.examination.examination_places import ExaminationPlaces
from seatwise_server.examination.examined_streams import (
    EXAMINATION_PREFIX,
    ExaminedAttendance,
    ExaminedBots,
    ExaminedStreams,
)
from seatwise_server.refusal import Refusal
from seatwise_server.store import Store
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.token_buckets import TokenBuckets

EXAMINED_GAME = GAME
"""The game of all examinations."""
CERTIFICATE_QUEUE = "certificate"
"""The name of the queue in which a bot asks for its examination."""
MOST_EXAMINATION_S = 600.0
"""The longest examination, in seconds. Checks that are not passed by then are failed."""
EXAMINATION_PATIENCE_S = 30.0
"""The longest wait for anything that a bot has to send, in seconds."""
EXAMINED_POSITIONS = 200
"""How many questions the check of moves asks."""
EXAMINATIONS_PER_SECOND = 1 / 60
EXAMINATIONS_AT_ONCE = 5.0
"""Examinations that a bot may begin at once; then one a minute."""
FREE_CHECK_S = 0.5
"""The pause, in seconds, before the next look whether the bot still has seats of matches."""

log = structlog.get_logger()

Findings = dict[str, tuple[CheckOutcome, str]]
"""The outcome of each check by name, and what the bot did wrong."""


class SilentBot:
    """Stands for the process of the bot, of which a server sees nothing: an `ExaminedBot`."""

    memory_bytes = 0

    def read_starved_s(self) -> float:
        """See `ExaminedBot`."""
        return 0.0

    def read_output(self) -> str:
        """See `ExaminedBot`."""
        return ""

    def interrupt(self) -> None:
        """See `ExaminedBot`. No check of a certificate does it."""

    async def wait_for_end(self) -> str:
        """See `ExaminedBot`. No check of a certificate does it."""
        return "unseen"


class Examiner:
    """Examines the bots that attend at one process."""

    def __init__(
        self,
        store: Store,
        examined: ExaminedBots,
        address: str,
        ws_address: str,
        patience_s: float = EXAMINATION_PATIENCE_S,
        positions: int = EXAMINED_POSITIONS,
    ) -> None:
        """`examined` passes on the items of the bots that play at this process, whose addresses are the other two."""
        self._store = store
        self._examined = examined
        self._address = address
        self._ws_address = ws_address
        self._patience_s = patience_s
        self._positions = positions
        self._signer = CertificateSigner(store)
        self._places = ExaminationPlaces()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """The examination of each bot that attends for one."""
        self._rates = TokenBuckets(
            EXAMINATIONS_PER_SECOND, EXAMINATIONS_AT_ONCE, asyncio.get_running_loop().time
        )

    def check_attendance(self, attendance: ExaminedAttendance) -> None:
        """Raises `Refusal` if the bot takes too few matches at once, or was examined too often."""
        if attendance.max_matches < MOST_EXAMINED_SEATS:
            few = f"max_matches is {attendance.max_matches}; an examination needs {MOST_EXAMINED_SEATS}"
            raise Refusal("INVALID_ARGUMENT", few, field="max_matches")
        wait_s = self._rates.measure_wait(attendance.bot, 1.0)
        if wait_s:
            raise Refusal(
                "RATE_EXCEEDED",
                "this bot was examined several times just now",
                retry_after=str(int(wait_s) + 1),
            )
        self._rates.take_units(attendance.bot, 1.0)

    @contextmanager
    def examining(self, attendance: ExaminedAttendance) -> Iterator[None]:
        """Examines the bot while the context lasts. The end of the examination ends the stream.

        An older examination of the bot ends: its stream is replaced, which may take as long as the bot reads nothing.
        """
        if older := self._tasks.get(attendance.bot):
            older.cancel()
        task = self._tasks[attendance.bot] = asyncio.create_task(self._examine_and_end(attendance))
        try:
            yield
        finally:
            task.cancel()
            if self._tasks.get(attendance.bot) is task:
                del self._tasks[attendance.bot]

    async def _examine_and_end(self, attendance: ExaminedAttendance) -> None:
        try:
            attendance.end(await self._examine_bot(attendance))
        except StoreUnavailable:
            attendance.end(Refusal("STORE_UNAVAILABLE", "the store does not answer now; try again"))
        except Exception:
            log.exception("examination_failed", bot=attendance.bot)
            attendance.end(Refusal("INTERNAL", "the examination failed; the fault is the server's"))
        finally:
            self._examined.end_examination(attendance)

    async def _examine_bot(self, attendance: ExaminedAttendance) -> Refusal:
        """Examines the bot, keeps its certificate, and returns the end of its stream."""
        await self._wait_until_free(attendance.bot)
        # A bot that an operator has registered counts as an owner of its own.
        async with self._places.wait_for_place(attendance.owner or attendance.bot):
            found = await self._run_checks(attendance)
        results = {name: outcome.value for name, (outcome, _) in found.items()}
        await self._signer.certify_bot(attendance.bot, results)
        failed = [name for name, outcome in results.items() if outcome == CheckOutcome.FAILED]
        log.info("bot_examined", bot=attendance.bot, failed=failed)
        return _end_of_examination(found, failed)

    async def _wait_until_free(self, bot: str) -> None:
        """Waits for the end of the matches that the bot plays; it gets no new ones. Only the store knows them."""
        while True:
            if not await self._store.seats.count_seats(bot):
                return
            await asyncio.sleep(FREE_CHECK_S)

    async def _run_checks(self, attendance: ExaminedAttendance) -> Findings:
        found: Findings = {}
        until_s = asyncio.get_running_loop().time() + MOST_EXAMINATION_S
        for check in list_certified_checks():
            missing = [need for need in check.needs if found.get(need, (CheckOutcome.PASSED,))[0] != "passed"]
            if missing:
                found[check.name] = (CheckOutcome.SKIPPED, f"it needs {missing[0]}")
                continue
            try:
                async with asyncio.timeout_at(until_s):
                    found[check.name] = await self._run_check(check, attendance)
            except TimeoutError:
                late = f"the examination took longer than {MOST_EXAMINATION_S:g} s"
                found[check.name] = (CheckOutcome.FAILED, late)
        return found

    async def _run_check(
        self, check: DoctorCheck, attendance: ExaminedAttendance
    ) -> tuple[CheckOutcome, str]:
        """Runs one check, and closes the seats that it has given to the bot."""
        prefix = f"{EXAMINATION_PREFIX}{secrets.token_hex(8)}"
        streams = ExaminedStreams(attendance, prefix, NothingCame)
        names = OfferedNames(attendance.bot, prefix.removeprefix("matches/"), self._address, self._ws_address)
        exam = Examination(
            streams, SilentBot(), _SilentTranscript(), self._patience_s, self._positions, names
        )
        exam.chance = random.Random(secrets.randbits(64))
        self._examined.begin_check(attendance.bot, streams)
        try:
            return await run_certified_check(check, exam)
        finally:
            for match in exam.matches:
                closed = pb.SeatClosed(match=match.name, seat=match.seat)
                attendance.queue_response(pb.AttendResponse(closed=closed))


class _SilentTranscript(Transcript):
    """Keeps nothing, because nobody reads it."""

    def note(self, text: str) -> None:
        """See `Transcript`."""


def _end_of_examination(found: Findings, failed: list[str]) -> Refusal:
    if not failed:
        text = f"all {len(found)} checks are passed, and the certificate is signed; GetBot shows it"
        return Refusal("EXAMINED", text, passed="true")
    first = failed[0]
    text = f"{len(failed)} of {len(found)} checks failed; {first}: {found[first][1]}"
    return Refusal("EXAMINED", text, passed="false", failed=",".join(failed))
