"""One seat of one match, from its offer to its end: it owns the bot object, and survives every link.

A question is answered once. What is lost with a link is said again, in the same words: the seat sits
down anew, is asked anew, and sends the same answer under the same request id.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

from seatwise.bot import BotFactory
from seatwise.codec import CODECS, MalformedView
from seatwise.codec.match import decode_match_ended
from seatwise.codec.offer import decode_offer
from seatwise.link import times
from seatwise.link.answers import Answers
from seatwise.link.backoff import Backoff
from seatwise.link.laying import Laying
from seatwise.link.table import Key, Table
from seatwise.link.turn import Turn, turn_of
from seatwise.result import Result
from seatwise.v1.lobby_service_pb2 import SeatOffer
from seatwise.v1.play_service_pb2 import (
    MatchEnded,
    MoveAccepted,
    MoveRejected,
    PlayRequestItem,
    PlayResponseItem,
    Sit,
    SubmitMove,
    Update,
)

NONCE_BYTES = 32
LAST_WORD_S = 1.0
"""Lobby and referee speak on two streams: by so long the referee's last word may come after the lobby's."""
NO_WORD_S = 10.0
"""Without a last word in this time the match is over without its result."""

log = logging.getLogger("seatwise")


class Seat:
    """A bot at its place."""

    def __init__(self, message: SeatOffer, factory: BotFactory, epochs: dict[str, int]) -> None:
        self.offer = decode_offer(message)
        self.place = f"{self.offer.match} seat {self.offer.seat}"
        """For the log."""
        self.answers = Answers(factory, self.offer, self._moved)
        self.epoch = message.epoch
        """That of the offer which brought it where it is."""
        self.moves = 0
        """Moves that stand."""
        self.result: Result | None = None
        self._codec = CODECS[self.offer.game]
        self._nonce = secrets.token_bytes(NONCE_BYTES)
        self._epochs = epochs
        """The highest epoch seen of each match; other seats of the same match see to it too."""
        self._table: Table | None = None
        self._receipt = b""
        self._is_ready = False
        self._sittings = 0
        self._rejections = 0
        self._over = asyncio.Event()
        self._is_shown = False
        """Whether the referee has shown it its match since it last asked for the last word."""
        self._waits = Backoff()
        self._timer: asyncio.TimerHandle | None = None
        self._laying = Laying(self._say_in_race)

    @property
    def key(self) -> Key:
        """Match and seat."""
        return self.offer.match, self.offer.seat

    # What happens to it

    async def set_up(self) -> None:
        """Makes the bot, then sits down. Whatever the bot raises comes through."""
        await self.answers.set_up()
        self._is_ready = True
        if not self._over.is_set():
            self.sit()

    async def play(self) -> None:
        """Answers questions until the match is over, then tells the bot."""
        await self.answers.give()
        if self.result is not None:
            await self.answers.tell_end(self.result)

    async def wait_for_last_word(self) -> None:
        """The lobby says that the seat is closed. If the referee does not say how it ended, ask.

        What the referee says counts: where it goes on showing the match, that is not over.
        """
        if not await self._is_over_within(LAST_WORD_S):
            self._is_shown = False
            self.sit()
            if not await self._is_over_within(NO_WORD_S) and not self._is_shown:
                log.warning("%s is over, and its referee does not say how", self.place)
                self._end()

    def move_to(self, table: Table) -> None:
        """The match is at that referee from now on."""
        if self._table is not None:
            self._table.remove(self)
        self._table = table
        table.add(self)

    def leave(self) -> None:
        """The seat is left, whatever its match does."""
        if self._timer is not None:
            self._timer.cancel()
        if self._table is not None:
            self._table.remove(self)
        self._laying.close()
        self.answers.dismiss()

    # What it says

    def sit(self) -> None:
        """Takes the seat, or retakes it over a new link. The answer is the full view."""
        if self._is_ready:
            self._sittings += 1
            self._say(sit=Sit(nonce=self._nonce, receipt=self._receipt))

    def _moved(self, turn: Turn, move: Any) -> None:
        if turn.is_race:
            self._laying.step(move)
            return
        turn.answer(move, {self._codec.field: self._codec.encode_move(move)})
        times.answered(self.key, turn)
        self._say_answer(turn)

    def _say_in_race(self, request_id: str, move: Any) -> None:
        if (turn := self.answers.turn) is not None:
            payload: dict[str, Any] = {self._codec.field: self._codec.encode_move(move)}
            self._say(submit_move=SubmitMove(request_id=request_id, prompt=turn.prompt, **payload))

    def _say_answer(self, turn: Turn) -> None:
        if turn.is_race:
            turn.said_in = self._sittings
            self._laying.again()
        elif turn.submit is not None:
            turn.said_in = self._sittings
            self._say(submit_move=turn.submit)

    def _say(self, **action: Any) -> None:
        match, seat = self.key
        if self._table is not None:
            self._table.send(PlayRequestItem(match=match, seat=seat, **action))

    # What it is told

    def take(self, item: PlayResponseItem) -> None:
        """One item. That of an owner whose time is over is dropped; 0 is the epoch of what no owner says."""
        match, epoch = self.offer.match, item.epoch
        seen = self._epochs.get(match, 0)
        if 0 < epoch < seen:
            log.debug("%s: dropped what epoch %d says, this is %d", self.place, epoch, seen)
            return
        self._epochs[match] = max(epoch, seen)
        match item.WhichOneof("event"):
            case "update":
                self._updated(item.update)
            case "move_accepted":
                self._accepted(item.move_accepted)
            case "move_rejected":
                self._rejected(item.move_rejected)
            case "match_ended":
                self._ended(item.match_ended)

    def _updated(self, update: Update) -> None:
        self._waits.reset()
        self._is_shown = True
        self._receipt = update.receipt or self._receipt
        turn = self.answers.turn
        if not update.to_act:
            self._not_asked(update, turn)
        elif turn is None or turn.prompt != update.prompt:
            self._asked(update)
        elif turn.said_in != self._sittings:
            self._say_answer(turn)

    def _not_asked(self, update: Update, turn: Turn | None) -> None:
        """Who has called is asked no more, and waits for the answer: it may have to call again."""
        if turn is None or turn.prompt != update.prompt or not self._laying.call_id:
            self._laying.close()
            self.answers.close("out of time")

    def _asked(self, update: Update) -> None:
        try:
            view = self._codec.decode_view(getattr(update, self._codec.field))
        except MalformedView as error:
            log.error("%s: %s. Is there a newer version of seatwise?", self.place, error)
        else:
            self._laying.close()
            self._laying = Laying(self._say_in_race)
            self.answers.open(turn_of(update, view))
            if (turn := self.answers.turn) is not None:
                turn.said_in = self._sittings

    def _accepted(self, accepted: MoveAccepted) -> None:
        self._receipt = accepted.receipt or self._receipt
        self.moves += 1
        if accepted.request_id == self._laying.call_id:
            self._laying.close()
        log.debug("%s: charged %d ms", self.place, accepted.charged_ms)

    def _ended(self, ended: MatchEnded) -> None:
        result = decode_match_ended(ended, self.offer.match, self.offer.seat)
        if result.seed and sha256(result.seed).digest() != self.offer.commitment:
            log.error("%s: the seed is not the one that the offer was committed to", self.place)
        self.result = self.result or result
        self._end()

    def _end(self) -> None:
        self._over.set()
        self._laying.close()
        self.answers.end()

    # What does not stand

    def _rejected(self, rejected: MoveRejected) -> None:
        reason = _REASONS.get(rejected.reason, "OF A NEWER SERVER")
        turn = self.answers.turn
        is_answer = turn is not None and rejected.request_id == turn.request_id != ""
        what = f"{turn.move} is rejected" if turn is not None and is_answer else "rejected"
        level = _LEVELS.get(reason, logging.ERROR)
        log.log(level, "%s: %s: %s [%s]", self.place, what, rejected.message, reason)
        if reason == "NOT_YOUR_SEAT":
            self._end()
        elif reason in _SIT_AGAIN or not rejected.request_id:
            self._later(self.sit)
        elif turn is not None and is_answer:
            self._answer_rejected(turn, reason)
        elif self._laying.owns(rejected.request_id):
            self._step_rejected(reason, is_call=rejected.request_id == self._laying.call_id)

    def _step_rejected(self, reason: str, *, is_call: bool) -> None:
        """A layout that came too fast is said again; a call that does not stand is over, as is the round."""
        if reason == "TOO_MANY":
            self._laying.again_later(self._waits.next_s())
        elif is_call:
            self._laying.close()

    def _answer_rejected(self, turn: Turn, reason: str) -> None:
        if reason == "ILLEGAL":
            self._rejections += 1
            # One more would forfeit the seat; a default move is the lesser evil.
            is_last = self._rejections + 1 >= self.offer.time_control.max_rejections
            self.answers.refuse(turn, str(turn.move), is_last=is_last)
        elif reason == "TOO_MANY":
            self._later(lambda: self._say_answer(turn) if turn is self.answers.turn else None)
        else:
            turn.give_up()

    def _later(self, act: Callable[[], None]) -> None:
        """Once, after a wait that grows: many seats may have been told the same."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._waits.next_s(), act)

    async def _is_over_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._over.wait()
        except TimeoutError:
            return False


_REASONS: Final[dict[int, str]] = {
    number: name.removeprefix("REASON_") for name, number in MoveRejected.Reason.items()
}

_SIT_AGAIN: Final = frozenset({"NOT_SEATED", "NOT_HERE", "MATCH_OVER"})
"""The answer to a new `sit` sets right what is wrong: the view, a rejection that says where, or the end."""

_LEVELS: Final = {
    "TOO_LATE": logging.WARNING,
    "TOO_MANY": logging.DEBUG,
    "NOT_ASKED": logging.DEBUG,
    "STALE": logging.DEBUG,
    **dict.fromkeys(_SIT_AGAIN, logging.DEBUG),
}
"""How loud each reason is; the others are faults of somebody's program."""
