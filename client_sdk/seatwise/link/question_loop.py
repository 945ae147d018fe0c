"""Puts the open question of a seat to its bot. An error of the bot costs no more than a move, or the rest of a race."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from inspect import iscoroutine
from pathlib import Path
from time import monotonic
from typing import Any

from seatwise.bot import BotFactory, Failure, text_of
from seatwise.errors import BadAnswerError, ResignMatch
from seatwise.kits.game_kit import BotMethod, GameKit, RaceMethod
from seatwise.kits.race_steps import Thought
from seatwise.link.backoff import ServerLines
from seatwise.link.bot_runner import BotRunner
from seatwise.link.referee_link import SeatKey
from seatwise.offer import Offer, TimeLeft
from seatwise.result import Result
from seatwise.v1.play_service_pb2 import SubmitMove, Update

MOST_TRIES = 3
"""The most answers to one question that are no legal moves. A bot that answers at random finds a legal move in time. The
referee counts the rejections of a whole match, and too many forfeit the seat."""


@dataclass(slots=True)
class PendingPrompt:
    """An open question, and the bot's answer to it."""

    prompt: int
    method: BotMethod
    """The method of the bot that answers it."""

    view: Any
    """The game's view, in the types of its rules."""

    time: TimeLeft

    move: Any = None
    """The move that the bot has answered."""

    submit: SubmitMove | None = None
    """The move as it is sent. It stays until the question is closed, so a repeat has the same bytes."""

    said_in: int = 0
    """The sitting in which the answer was sent, counted from 1; 0 if it was not sent."""

    refused: set[str] = field(default_factory=set)
    """The answers that were no legal moves."""

    asked_s: float = field(default_factory=monotonic)
    """The time at which the question arrived, in seconds of this process's clock."""

    thought_ms: float = 0.0
    """The time from then to the last answer, in milliseconds."""

    tries: int = 0
    is_given_up: bool = False
    """Whether the bot is not asked again. The referee plays the default move when the time is over."""

    @property
    def is_race(self) -> bool:
        """Whether the question is a race, which is answered with many moves."""
        return isinstance(self.method, RaceMethod)

    @property
    def is_to_answer(self) -> bool:
        """Whether the bot is to be asked."""
        return self.submit is None and not self.is_given_up

    @property
    def request_id(self) -> str:
        """The request id of the answer; empty while there is none."""
        return self.submit.request_id if self.submit is not None else ""

    def record_answer(self, request_id: str, move: Any, payload: dict[str, Any]) -> None:
        """Record the bot's answer. From now on each repeat is the same request."""
        self.move = move
        self.thought_ms = 1000 * (monotonic() - self.asked_s)
        self.submit = SubmitMove(request_id=request_id, prompt=self.prompt, **payload)

    def record_rejection(self, answer: str, *, is_last: bool) -> None:
        """Record that the answer was no legal move. After the same answer twice, or too many tries, the bot is not asked again."""
        self.tries += 1
        self.is_given_up = is_last or answer in self.refused or self.tries >= MOST_TRIES
        self.refused.add(answer)
        self.submit = None

    def give_up(self) -> None:
        """Ask the bot no more."""
        self.submit, self.is_given_up = None, True


def pending_prompt_of(update: Update, method: BotMethod, view: Any) -> PendingPrompt:
    """Return the question that an update holds. No time in it is negative, whatever the referee has sent."""
    left = update.time
    given = (left.move_ms, left.bank_ms, left.charged_ms, left.latency_ms, left.strikes)
    return PendingPrompt(update.prompt, method, view, TimeLeft(*[max(0, each) for each in given]))


_log = logging.getLogger("seatwise.times")
_log.propagate = False
_log.setLevel(logging.CRITICAL)


@contextmanager
def write_times_to(file: Path) -> Iterator[None]:
    """Append the time of every answer of this process to the file, as long as the context lasts."""
    handler = logging.FileHandler(file, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(message)s"))
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
    try:
        yield
    finally:
        _log.setLevel(logging.CRITICAL)
        _log.removeHandler(handler)
        handler.close()


def log_answer_time(key: SeatKey, pending: PendingPrompt) -> None:
    """Log the time of the answer that the bot has just given."""
    if _log.isEnabledFor(logging.INFO):
        match, seat = key
        thought_ms = round(pending.thought_ms, 3)
        told = {"match": match, "seat": seat, "prompt": pending.prompt, "thought_ms": thought_ms}
        _log.info(json.dumps(told))


BUILT = "its cards stay as they lie, and it agrees to end the round"
BY_DEFAULT = "its default move is played when its time is over"

STUCK_S = 3.0
"""How long a method of the bot may run on after the end of its match, in seconds, before the run goes on without it."""
STUCK = (
    "the bot has not returned from its method although the match is over, so ended() is not called. Its thread stays until "
    "the process ends: does the method wait for something, or search without an end? self.time says how long it may take"
)
NEVER_SET_UP = (
    "setup() has not returned although the match is over. offer.time_control.setup_ms is its limit: load models once, outside "
    "of the class"
)

log = logging.getLogger("seatwise")


class QuestionLoop:
    """Asks the bot of one seat, one question at a time."""

    def __init__(
        self,
        factory: BotFactory,
        offer: Offer,
        kit: GameKit,
        lines: ServerLines,
        on_move: Callable[[PendingPrompt, Any], None],
        on_resign: Callable[[], None],
    ) -> None:
        self.failures = 0
        """Number of exceptions, and of answers that were no legal moves."""
        self._offer = offer
        self._kit = kit
        self._lines = lines
        self._place = f"{offer.match} seat {offer.seat}"
        self._on_move = on_move
        self._on_resign = on_resign
        self._runner = BotRunner(factory, offer, kit)
        self.pending: PendingPrompt | None = None
        """The open question."""
        self._thinking: asyncio.Future[Any] | None = None
        """The bot's answer, while the bot thinks."""
        self._is_asking = False
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def set_up_bot(self) -> bool:
        """Make the bot and set it up. Exceptions of the bot come through. Return `False` if the match is over before that."""
        making = asyncio.create_task(self._runner.make_bot())
        try:
            await self._wait_for_answer(making)
        finally:
            making.cancel()
        if not making.done():
            log.error("%s: %s", self._place, NEVER_SET_UP)
            return False
        making.result()
        return True

    async def answer_questions(self) -> None:
        """Answer questions until the match is over, whether the bot returns or not."""
        self._is_asking = True
        try:
            self._ask_bot()
            await asyncio.wait({self._over})
            self._over.result()
        finally:
            self._is_asking = False
            if self._thinking is not None:
                self._thinking.cancel()
                await asyncio.wait({self._thinking}, timeout=STUCK_S)

    async def tell_end(self, result: Result) -> None:
        """Tell the bot the result. A bot that has not returned from an earlier call is not told."""
        if not await self._runner.wait_until_free(STUCK_S):
            log.error("%s: %s", self._place, STUCK)
            return
        try:
            await self._runner.tell_end(result)
        except Exception as error:
            self.log_failure("ended", error, "it costs nothing")

    def open_question(self, pending: PendingPrompt) -> None:
        """Replace the open question by a new one."""
        self.close_question("out of time")
        self.pending = pending
        self._ask_bot()

    def close_question(self, why: str) -> None:
        """Close the open question, and cancel the bot if it still thinks about it."""
        pending, self.pending = self.pending, None
        if pending is not None and self._thinking is not None:
            self._thinking.cancel()
            level = logging.DEBUG if pending.is_race else logging.WARNING  # every race ends so for most seats
            self._lines.log(level, "%s: %s in %s", self._place, why, pending.method.name)

    def reject_answer(self, pending: PendingPrompt, answer: str, *, is_last: bool = False) -> None:
        """Note that the answer was no legal move. The bot is asked again while its clock runs, unless this was its last try."""
        self.failures += 1
        pending.record_rejection(answer, is_last=is_last)
        if pending.is_given_up:
            self._lines.log(logging.ERROR, "%s: not asked again; %s", self._place, BY_DEFAULT)
        self._ask_bot()

    def stop_asking(self) -> None:
        """Ask no more questions, because the match is over."""
        if not self._over.done():
            self._over.set_result(None)
        self.close_question("the match was over while it was")

    def dismiss_bot(self) -> None:
        """Stop the bot's thread, because the bot is not needed any more."""
        self._runner.stop_thread()

    def _ask_bot(self) -> None:
        """Put the open question to the bot, unless it still thinks about an earlier one. Its answer asks for the next."""
        pending = self.pending
        if pending is None or self._thinking is not None or not (self._is_asking and pending.is_to_answer):
            return
        method = pending.method
        if isinstance(method, RaceMethod):
            self._await_answer(pending, asyncio.create_task(self._pass_on_steps(pending, method)))
        else:
            self._await_answer(pending, self._runner.ask_bot(method, pending.view, pending.time))

    def _await_answer(self, pending: PendingPrompt, thinking: asyncio.Future[Any]) -> None:
        self._thinking = thinking
        if thinking.done():
            self._handle_answer(pending, thinking)
        else:
            thinking.add_done_callback(partial(self._handle_answer, pending))

    def _handle_answer(self, pending: PendingPrompt, thinking: asyncio.Future[Any]) -> None:
        self._thinking = None
        try:
            if not thinking.cancelled():
                self._read_answer(pending, thinking)
            self._ask_bot()
        except Exception as error:  # a fault of ours ends the run
            if not self._over.done():
                self._over.set_exception(error)

    def _read_answer(self, pending: PendingPrompt, thinking: asyncio.Future[Any]) -> None:
        error = thinking.exception()
        if pending is not self.pending:
            if error is None and iscoroutine(thinking.result()):
                thinking.result().close()  # it came together with the end of its question
        elif error is None and iscoroutine(thinking.result()):
            self._await_answer(pending, asyncio.create_task(self._runner.await_move(thinking.result())))
        elif isinstance(error, ResignMatch):
            pending.give_up()
            self._on_resign()
        elif isinstance(pending.method, RaceMethod):
            self._finish_race(pending, pending.method, error)
        elif error is None:
            self._on_move(pending, thinking.result())
        else:
            self._handle_failure(pending, error)

    async def _wait_for_answer(self, thinking: asyncio.Task[Any]) -> None:
        """Return when the bot has answered or is cancelled. A coroutine that ignores it is not waited for once the match is over."""
        either: set[asyncio.Future[Any]] = {thinking, self._over}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not thinking.done():
            await asyncio.wait({thinking}, timeout=STUCK_S)

    async def _pass_on_steps(self, pending: PendingPrompt, method: RaceMethod) -> None:
        """Pass on the moves that the bot yields, up to its call."""
        async with aclosing(self._runner.run_generator(method, pending.view, pending.time)) as steps:
            async for step in steps:
                if isinstance(step, Thought):
                    continue
                if pending is self.pending:
                    self._on_move(pending, step)
                if self._kit.race_rules.is_call(step):
                    return
        self._on_move(pending, method.last_move)

    def _finish_race(self, pending: PendingPrompt, method: RaceMethod, error: BaseException | None) -> None:
        """End the bot's part in this race. After an error it agrees to end the round, so the others need not wait for it."""
        pending.give_up()
        if error is None:
            return
        self.failures += 1
        self._on_move(pending, method.last_move)
        if isinstance(error, BadAnswerError):
            self._lines.log(logging.ERROR, "%s: %s; %s", self._place, error, BUILT)
        else:
            self.log_failure(pending.method.name, error, BUILT)

    def _handle_failure(self, pending: PendingPrompt, error: BaseException) -> None:
        if isinstance(error, BadAnswerError):
            self._lines.log(logging.ERROR, "%s: %s", self._place, error)
            self.reject_answer(pending, str(error))
            return
        self.failures += 1
        pending.give_up()
        self.log_failure(pending.method.name, error, BY_DEFAULT)

    def log_failure(self, doing: str, error: BaseException, costs: str) -> None:
        """Log an exception of the bot, with the traceback from the bot's own code on."""
        offer = self._offer
        failure = Failure(offer.bots[offer.seat], offer.match, offer.seat, doing, error, costs)
        self._lines.log(logging.ERROR, "%s", text_of(failure))
