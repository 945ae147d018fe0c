"""A seat that is played by calls from outside, as of a language model: find a match, look, move, wait, resign.

Each call returns within `LONGEST_CALL_S`, also while the others think. One seat is open at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from time import monotonic
from typing import Any, TypeAlias

from seatwise.bot import Bot, BotFactory
from seatwise.codec.json_values import view_to_json
from seatwise.errors import BadAnswerError, ResignMatch, SeatwiseError
from seatwise.kits.game_kit import GameKit, check_text_game, list_move_texts, read_move_text
from seatwise.offer import Offer
from seatwise.result import Result

WAIT_S = 15.0
"""How long a call waits for something to happen, in seconds."""
LONGEST_CALL_S = 20.0
"""The longest time of a call, in seconds."""
CLOSE_S = 3.0
"""How long the end of a run is waited for, in seconds."""

PlayMatches: TypeAlias = Callable[[BotFactory, Sequence[str], Callable[[Result], None]], Awaitable[object]]
"""Plays one match with the bots of this factory, from these queues, and passes on its result: `seatwise.run_async`."""


class ModelSeatState(StrEnum):
    """The states of a seat that is played from outside."""

    IDLE = "idle"
    """There is no match: find one."""
    FINDING = "finding_match"
    """The bot waits for a match, or for the deal."""
    YOUR_TURN = "your_turn"
    OTHERS = "others_think"
    OVER = "match_over"
    FAILED = "failed"
    """The server refuses the bot, or cannot be reached."""


@dataclass(eq=False)
class ModelQuestion:
    """A question of the referee that waits for a move."""

    view: Any
    time_ms: int
    """The time for the answer when it was asked, in milliseconds; 0 where no time runs."""
    answer: asyncio.Future[Any]
    asked_s: float = field(default_factory=monotonic)

    @property
    def time_left_ms(self) -> int:
        """The time that is left, in milliseconds; 0 where no time runs."""
        return max(0, self.time_ms - round(1000 * (monotonic() - self.asked_s))) if self.time_ms else 0


class ModelSeat:
    """The seat of one bot. All methods belong to one event loop."""

    def __init__(self, kit: GameKit, play: PlayMatches) -> None:
        """Create it. Raises `UsageError` if the moves of the game cannot be listed."""
        check_text_game(kit)
        self._kit = kit
        self._play = play
        self._run: asyncio.Task[object] | None = None
        self._offer: Offer | None = None
        self._question: ModelQuestion | None = None
        self._last_view: Any = None
        self._result: Result | None = None
        self._error = ""
        self._missed = 0
        self._is_resigning = False
        self._news = asyncio.Event()

    @property
    def state(self) -> ModelSeatState:
        """The present state: whose turn it is, if there is a match."""
        if self._question is not None:
            return ModelSeatState.YOUR_TURN
        if self._run is None or self._run.done():
            return self._final_state()
        return ModelSeatState.FINDING if self._last_view is None else ModelSeatState.OTHERS

    def _final_state(self) -> ModelSeatState:
        if self._error:
            return ModelSeatState.FAILED
        return ModelSeatState.OVER if self._result is not None else ModelSeatState.IDLE

    # Calls

    async def find_match(self, queue: str = "") -> dict[str, Any]:
        """Wait for a match in a queue, or for one that names the bot if the queue is "". Return the state of the seat."""
        if self._run is not None and not self._run.done():
            return self.describe_state("There is a match already, or a search for one. ")
        self._forget_match()
        self._run = asyncio.create_task(self._run_match([queue] if queue else []))
        return await self.wait_for_turn()

    async def wait_for_turn(self) -> dict[str, Any]:
        """Wait until the seat must move, or the match is over; at most `WAIT_S`. Return the state of the seat."""
        await asyncio.sleep(0)  # so that an answer or a time-out of this moment is seen
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_S):
                while self.state in (ModelSeatState.FINDING, ModelSeatState.OTHERS):
                    self._news.clear()
                    await self._news.wait()
        return self.describe_state()

    async def make_move(self, move: str) -> dict[str, Any]:
        """Make a move, and wait for the next turn. An illegal move costs nothing: it is not sent. Raises `BadAnswerError`."""
        if self._question is None:
            raise BadAnswerError(f"it is not your turn. {self.describe_state()['text']}")
        answer = read_move_text(self._kit, self._question.view, move)
        self._answer_question(lambda question: question.answer.set_result(answer))
        return await self.wait_for_turn()

    async def resign_match(self) -> dict[str, Any]:
        """Resign, now or at the next question. Return the state of the seat."""
        if self.state not in (ModelSeatState.YOUR_TURN, ModelSeatState.OTHERS):
            raise BadAnswerError(f"there is no match to resign. {self.describe_state()['text']}")
        self._is_resigning = True
        self._answer_question(lambda question: question.answer.set_exception(ResignMatch("it resigns")))
        return await self.wait_for_turn()

    def describe_state(self, before: str = "") -> dict[str, Any]:
        """Return the state of the seat: what to do, in `text`, the view as text and as structure, and the legal moves."""
        told: dict[str, Any] = {"state": str(self.state), "text": before + self._advice()}
        if self._offer is not None:
            told |= {"match": self._offer.match, "seat": self._offer.seat, "players": list(self._offer.bots)}
        if self._last_view is not None:
            told["view_text"] = repr(self._last_view)
            told["view"] = view_to_json(self._kit.load_codec(), self._last_view)
        if self._question is not None:
            told |= {"legal_moves": self.list_legal_moves(), "time_left_ms": self._question.time_left_ms}
        if self._result is not None:
            told["result"] = self.describe_result()
        return told

    def list_legal_moves(self) -> list[str]:
        """Return the moves that are legal now; none if it is not the seat's turn."""
        return list(list_move_texts(self._kit, self._question.view)) if self._question else []

    def describe_result(self) -> dict[str, Any]:
        """Return how the last match ended. Raises `BadAnswerError` if none has."""
        result = self._result
        if result is None:
            raise BadAnswerError(f"no match has ended yet. {self._advice()}")
        told: dict[str, Any] = {"match": result.match, "seat": result.seat}
        if result.is_void:
            return told | {"void_reason": result.void_reason}
        endings = list(map(str, result.endings))
        return told | {"points": list(result.points), "ranks": list(result.ranks), "endings": endings}

    async def leave(self) -> None:
        """Leave the match, if there is one."""
        if self._run is not None and not self._run.done():
            self._run.cancel()
            await asyncio.wait({self._run}, timeout=CLOSE_S)

    # The match

    async def _run_match(self, queues: Sequence[str]) -> None:
        try:
            await self._play(lambda: _OutsideBot(self), queues, self._note_result)
        except SeatwiseError as error:
            self._error = str(error)
        finally:
            self._news.set()

    def note_offer(self, offer: Offer) -> None:
        """Note that the seat has a match."""
        self._offer = offer

    async def answer_question(self, bot: Bot, view: Any) -> Any:
        """Wait for a move from outside. Cancelled when the time is over."""
        self._last_view = view
        if self._is_resigning:
            raise ResignMatch("it resigns")
        time_ms = bot.time.move_ms + bot.time.bank_ms
        question = ModelQuestion(view, time_ms, asyncio.get_running_loop().create_future())
        self._question = question
        self._news.set()
        try:
            return await question.answer
        except asyncio.CancelledError:
            self._missed += 1
            raise
        finally:
            if self._question is question:
                self._question = None

    def _answer_question(self, settle: Callable[[ModelQuestion], None]) -> None:
        question, self._question = self._question, None
        if question is not None and not question.answer.done():
            settle(question)

    def _note_result(self, result: Result) -> None:
        self._result = result
        self._news.set()

    def _forget_match(self) -> None:
        self._offer = self._question = self._last_view = self._result = None
        self._error, self._missed, self._is_resigning = "", 0, False

    # Words

    def _advice(self) -> str:
        is_told = self._missed and not self._error  # a link that ends takes the open question with it
        missed = f" The time ran out {self._missed} times, so the referee played for you." if is_told else ""
        return _ADVICE[self.state].format(error=self._error) + missed


_ADVICE = {
    ModelSeatState.IDLE: "There is no match. Call find_match.",
    ModelSeatState.FINDING: "A match is being found, or the others are sitting down. Call wait.",
    ModelSeatState.YOUR_TURN: "It is your turn. Call make_move with one of legal_moves.",
    ModelSeatState.OTHERS: "The others think. Call wait.",
    ModelSeatState.OVER: "The match is over. Call show_result, or find_match for another one.",
    ModelSeatState.FAILED: "The server does not let you play: {error}",
}


class _OutsideBot(Bot):
    """Passes each question on."""

    def __init__(self, seat: ModelSeat) -> None:
        self._outside = seat

    async def setup(self, offer: Offer) -> None:
        self._outside.note_offer(offer)

    async def choose(self, view: Any) -> Any:
        return await self._outside.answer_question(self, view)

    arrange = decide = choose
