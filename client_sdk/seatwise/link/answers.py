"""Puts the open question of a seat to its bot, and sees to it that a bot's fault costs no more than a move."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from seatwise.bot import BotFactory, method_name
from seatwise.bot_errors import BadAnswerError
from seatwise.building import Thought
from seatwise.failures import Failure, text_of
from seatwise.link.mind import Mind
from seatwise.link.turn import Turn
from seatwise.offer import Offer
from seatwise.result import Result
from seatwise_referee.games.ubongo import Call, OfferEnd

BUILT = "its cards stay as they lie, and it agrees to end the round"
BY_DEFAULT = "its default move is played when its time is over"

log = logging.getLogger("seatwise")


class Answers:
    """The bot of one seat, asked one question at a time."""

    def __init__(self, factory: BotFactory, offer: Offer, on_move: Callable[[Turn, Any], None]) -> None:
        self.failures = 0
        """Questions without an answer that stands, and answers that were no legal moves."""
        self._offer = offer
        self._place = f"{offer.match} seat {offer.seat}"
        self._on_move = on_move
        self._mind = Mind(factory, offer)
        self._turn: Turn | None = None
        self._thinking: asyncio.Task[Any] | None = None
        self._news = asyncio.Event()
        self._is_over = False

    @property
    def turn(self) -> Turn | None:
        """The open question."""
        return self._turn

    async def set_up(self) -> None:
        """Makes the bot. Whatever it raises comes through."""
        await self._mind.make()

    async def give(self) -> None:
        """Answers questions until the match is over."""
        while not self._is_over:
            await self._news.wait()
            self._news.clear()
            while self._turn is not None and self._turn.is_to_answer:
                await self._think(self._turn)

    async def tell_end(self, result: Result) -> None:
        """Tells the bot."""
        try:
            await self._mind.tell_end(result)
        except Exception as error:
            self.show("ended", error, "it costs nothing")

    def open(self, turn: Turn) -> None:
        """A new question."""
        self.close("out of time")
        self._turn = turn
        self._news.set()

    def close(self, why: str) -> None:
        """The question is not open any more. A bot that still thinks about it need not."""
        turn, self._turn = self._turn, None
        if turn is not None and self._thinking is not None:
            self._thinking.cancel()
            level = logging.DEBUG if turn.is_race else logging.WARNING  # every race ends so for somebody
            log.log(level, "%s: %s in %s", self._place, why, method_name(turn.pace))

    def refuse(self, turn: Turn, answer: str, *, is_last: bool = False) -> None:
        """What the bot answered is no legal move: it may try again, while its clock runs, if it was not the last."""
        self.failures += 1
        turn.refuse(answer, is_last=is_last)
        if turn.is_given_up:
            log.error("%s: not asked again; %s", self._place, BY_DEFAULT)
        self._news.set()

    def end(self) -> None:
        """The match is over: no more questions."""
        self._is_over = True
        self.close("the match was over while it was")
        self._news.set()

    def dismiss(self) -> None:
        """The bot is needed no more."""
        self._mind.close()

    async def _think(self, turn: Turn) -> None:
        work = self._build(turn) if turn.is_race else self._mind.answer(turn.pace, turn.view, turn.time)
        thinking = self._thinking = asyncio.create_task(work)
        try:
            await asyncio.wait({thinking})
        finally:
            self._thinking = None
            thinking.cancel()
        if thinking.cancelled() or turn is not self._turn:
            return
        error = thinking.exception()
        if turn.is_race:
            self._built(turn, error)
        elif error is None:
            self._on_move(turn, thinking.result())
        else:
            self._failed(turn, error)

    async def _build(self, turn: Turn) -> None:
        """Passes on what the bot yields, up to its call."""
        async with aclosing(self._mind.build(turn.view, turn.time)) as steps:
            async for step in steps:
                if turn is self._turn and not isinstance(step, Thought):
                    self._on_move(turn, step)
                if isinstance(step, Call):
                    return
        self._on_move(turn, OfferEnd(on=True))

    def _built(self, turn: Turn, error: BaseException | None) -> None:
        """The bot builds no more in this round; if that is its fault, it stands in nobody's way."""
        turn.give_up()
        if error is None:
            return
        self.failures += 1
        self._on_move(turn, OfferEnd(on=True))
        if isinstance(error, BadAnswerError):
            log.error("%s: %s; %s", self._place, error, BUILT)
        else:
            self.show(method_name(turn.pace), error, BUILT)

    def _failed(self, turn: Turn, error: BaseException) -> None:
        if isinstance(error, BadAnswerError):
            log.error("%s: %s", self._place, error)
            self.refuse(turn, str(error))
            return
        self.failures += 1
        turn.give_up()
        self.show(method_name(turn.pace), error, BY_DEFAULT)

    def show(self, doing: str, error: BaseException, costs: str) -> None:
        """Shows the bot's author what it raised, with the traceback from the bot's own code on."""
        offer = self._offer
        log.error(
            "%s", text_of(Failure(offer.bots[offer.seat], offer.match, offer.seat, doing, error, costs))
        )
