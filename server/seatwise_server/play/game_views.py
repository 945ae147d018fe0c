"""Shows games from outside to people: a process of its own runs their code on journals and records, and nothing waits for it but a page.

It works out what a spectator sees of a match, and its drawing, so no result depends on a hook. A game that hangs or breaks it down is
asked again without its hooks, and then not for a while. The process is started when such a match is first looked at.
"""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog
from cachetools import LRUCache, TTLCache

from seatwise.child_process import lower_priority
from seatwise.codec.wire_format import encode_field
from seatwise.kits import find_kit
from seatwise.kits.codecs import CODECS
from seatwise.kits.hosted.frames import HostedFrameWriter
from seatwise.replay import SPECTATOR, Frame, FrameBuilder, build_replay
from seatwise.testing import NOTHING_HIDDEN, check_game
from seatwise.units.plan import UnitPlan, UnitPlayer, UnitWorker, WorkerLost
from seatwise.units.workers import LocalWorkers
from seatwise.v1 import match_service_pb2 as pb
from seatwise_referee.hosted.drawing import LONGEST_DRAWING, MOST_PIECES, draw_any_view
from seatwise_referee.hosted.hosted_game import GameFault
from seatwise_referee.hosted.payload import HostedView
from seatwise_referee.journal import Dealt, Entry, Moved, canonical_json, decode_entry, encode_entry
from seatwise_referee.setup import Setup

MOST_MEMORY: Final = 2**30
"""The bytes of memory that the code of all games may have there."""
VIEWS_NICENESS: Final = 5
"""How far it steps back behind referees. With more it came to nothing for a minute on a busy machine."""
CHECK_S: Final = 2.0
"""Seconds of CPU time for the check of a game before spectators are shown its matches."""
CHECK_MATCHES: Final = 20
FOLLOWED_MATCHES: Final = 500
"""As many as a process follows at a time: `MOST_WATCHED_MATCHES`."""
LONGEST_REPLAY: Final = 8 * 2**20
"""The most bytes of a replay. A longer one is not shown."""

# In the process


def open_views(_settings: Mapping[str, Any]) -> UnitPlayer:
    """Return what answers the requests of `GameViews`."""
    lower_priority(VIEWS_NICENESS)
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(
        resource.RLIMIT_DATA,
        (MOST_MEMORY if most == resource.RLIM_INFINITY else min(MOST_MEMORY, most), most),
    )
    return ViewMaker().answer_request


class ViewMaker:
    """Answers the requests of `GameViews`. It remembers the matches that are followed."""

    def __init__(self) -> None:
        self._followed: LRUCache[str, tuple[FrameBuilder, int]] = LRUCache(FOLLOWED_MATCHES)

    def answer_request(self, _number: int, told: Any) -> tuple[Any, dict[str, Any]]:
        """Return the answer, or {"fault"} for a game that fails."""
        try:
            answer: Any = getattr(self, f"_answer_{told['wanted']}")(**told["with"])
        except (GameFault, MemoryError) as fault:
            answer = {"fault": str(fault) or "out of memory"}
        return answer, {}

    def _answer_check(self, game: str, has_hooks: bool) -> Any:  # noqa: ARG002
        report = check_game(find_kit(game), matches=CHECK_MATCHES, limit_s=CHECK_S)
        kit: Any = find_kit(game)
        has_resampled = kit.game.game.can_resample() and report.secrets in ("checked", NOTHING_HIDDEN)
        return {
            "passed": has_resampled and not report.faults,
            "why": "; ".join((*report.faults, report.secrets)),
        }

    def _answer_replay(self, game: str, has_hooks: bool, record: str) -> Any:
        replay = build_replay(json.loads(record), writer=_writer_of(game, has_hooks=has_hooks))
        told = replay.to_json()
        told["frames"] = list(map(_fit_frame, replay.frames))
        written = json.dumps(told, separators=(",", ":"))
        if len(written) > LONGEST_REPLAY:
            raise GameFault(f"{game}: a replay of {len(written)} bytes is too long to show")
        return {
            "replay": written,
            "text": _writer_of(game, has_hooks=False).draw_text(replay.frames[-1], replay.names),
        }

    def _answer_steps(
        self, game: str, has_hooks: bool, setup: Any, after: int, entries: Sequence[str]
    ) -> Any:
        match = setup["match"]
        builder, seq = self._followed.get(match, (None, 0))
        if after == 0:
            builder, seq = FrameBuilder(Setup.from_json(setup), SPECTATOR, writer=_writer_of(game, has_hooks=has_hooks)), 0  # fmt: skip
        if builder is None or seq != after:
            return {"is_lost": True}
        steps = [step for entry in entries for step in _steps_of(builder, decode_entry(entry.encode()))]
        self._followed[match] = builder, after + len(entries)
        return {"steps": steps}


def _writer_of(game: str, *, has_hooks: bool) -> HostedFrameWriter:
    rules: Any = find_kit(game).game
    return HostedFrameWriter(rules, has_hooks=has_hooks)


def _steps_of(builder: FrameBuilder, entry: Entry) -> list[dict[str, Any]]:
    """Return the steps of an entry that a spectator may know of: those that complete a move."""
    number = builder.step_number
    frames = builder.add_entry(entry)
    view: HostedView | None = builder.shown_view
    if not frames or view is None or builder.step_number == number:
        return []
    drawing = canonical_json(_fit_frame(frames[-1])["table"]["drawing"]).decode()
    says = frames[-1].says if isinstance(entry, (Moved, Dealt)) else ""
    return [{"seq": entry.seq, "at_ms": entry.at_ms, "view": view.text, "drawing": drawing, "says": says}]


def _fit_frame(frame: Frame) -> dict[str, Any]:
    """Return a frame as JSON. One that is too large for a page has no hands, and if that is not enough no drawing."""
    told = frame.to_json()
    if _is_too_large(told):
        told["own"] = [None] * len(told["own"])
    if _is_too_large(told):
        told["table"] = {"drawing": draw_any_view({"note": "This position is too large to show."})}
    return told


def _is_too_large(told: Mapping[str, Any]) -> bool:
    drawings = [each["drawing"] for each in (told["table"], *told["own"]) if each]
    pieces = sum(
        1 + len(item.get("cards", ())) + len(item.get("pieces", ())) for items in drawings for item in items
    )
    return pieces > MOST_PIECES or len(json.dumps(drawings)) > LONGEST_DRAWING


# The side of the server

FIRST_ANSWER_S: Final = 120.0
"""The limit of the first answer of a process, which imports all packages."""
ANSWER_S: Final = 20.0
MOST_STRIKES: Final = 2
STRIKE_S: Final = 600.0

log = structlog.get_logger()


class ViewsFailed(Exception):
    """The code of a game has failed at a match, or it is not asked for a while."""


class GameViews:
    """One process with the code of games from outside, started by the first request. It answers one request at a time."""

    def __init__(self) -> None:
        self._worker: UnitWorker | None = None
        self._one_at_a_time = asyncio.Lock()
        self._asking: set[asyncio.Task[Any]] = set()
        self._checks: dict[str, asyncio.Task[bool]] = {}
        self._strikes: TTLCache[str, int] = TTLCache(1000, STRIKE_S)
        """How often a game has stopped the process."""

    async def may_show_live(self, game: str) -> bool:
        """Return whether spectators may be shown matches that are played: this server's own check of the game must have passed."""
        if game not in self._checks:
            self._checks[game] = asyncio.create_task(self._check(game))
        return await asyncio.shield(self._checks[game])

    async def _check(self, game: str) -> bool:
        try:
            answer = await self._ask("check", game)
        except ViewsFailed as failed:  # no verdict on its secrets: asked again
            self._checks.pop(game, None)
            answer = {"passed": False, "why": str(failed)}
        log.info("game_checked", game=game, shown_live=answer["passed"], why=answer["why"])
        return bool(answer["passed"])

    async def make_replay(self, game: str, record: str) -> tuple[str, str]:
        """Return the replay of a finished match as JSON, and its last position as text. Raises `ViewsFailed`."""
        answer = await self._ask("replay", game, record=record)
        return answer["replay"], answer["text"]

    async def read_steps(
        self, setup: Setup, entries: Sequence[Entry], after: int
    ) -> list[pb.WatchMatchResponse]:
        """Return the steps that a spectator may be shown of the entries from number `after` on. Raises `ViewsFailed`."""
        told, written = setup.to_json(), [encode_entry(entry).decode() for entry in entries]
        answer = await self._ask("steps", setup.game, setup=told, after=after, entries=written[after:])
        if "steps" not in answer:  # another process by now, which has not seen the beginning
            answer = await self._ask("steps", setup.game, setup=told, after=0, entries=written)
        return [_encode_step(setup.game, step) for step in answer["steps"] if step["seq"] > after]

    async def _ask(self, wanted: str, game: str, **told: Any) -> Any:
        """Ask, also when the caller is gone by then: its answer must not be taken for another's."""
        asking = asyncio.create_task(self._ask_in_turn(wanted, game, told))
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)
        answer = await asyncio.shield(asking)
        if "fault" in answer:
            raise ViewsFailed(answer["fault"])
        return answer

    async def _ask_in_turn(self, wanted: str, game: str, told: Mapping[str, Any]) -> Any:
        async with self._one_at_a_time:
            while (strikes := self._strikes.get(game, 0)) < MOST_STRIKES:
                limit_s = ANSWER_S if self._worker else FIRST_ANSWER_S
                try:
                    worker = self._worker = self._worker or await start_worker()
                    request = {"wanted": wanted, "with": {**told, "game": game, "has_hooks": not strikes}}
                    async with asyncio.timeout(limit_s):
                        return (await worker.run_unit(0, request)).result
                except (TimeoutError, WorkerLost, OSError) as error:
                    self._strikes[game] = strikes + 1
                    log.warning("game_views_stopped", game=game, wanted=wanted, why=str(error) or "it hangs")
                    await self._end_worker()
            return {"fault": f"{game} has stopped the process that shows it"}

    async def _end_worker(self) -> None:
        worker, self._worker = self._worker, None
        if worker:
            await worker.stop()


async def start_worker() -> UnitWorker:
    """Start the process. Raises OSError."""
    return await LocalWorkers(1).start_worker(UnitPlan(f"{__name__}:{open_views.__name__}", {}), 0)


def _encode_step(game: str, step: Mapping[str, Any]) -> pb.WatchMatchResponse:
    codec = CODECS[game]
    view = HostedView(None, step["view"], drawing=step["drawing"], says=step["says"])
    response = pb.WatchMatchResponse(at_ms=step["at_ms"])
    response.MergeFromString(encode_field(codec.number, codec.encode_view(view)))
    return response
