"""One seat of one match, from its offer to its end. It owns the bot object, and it survives every link.

The bot answers a question once. After a link is lost, the seat sits down again, gets the question again, and sends the same
answer with the same request id.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final
from uuid import uuid4

from seatwise.bot import BotFactory
from seatwise.codec import MalformedView
from seatwise.codec.game_codec import MalformedResult
from seatwise.codec.result import decode_end_of_seats
from seatwise.errors import BadAnswerError, clean_text
from seatwise.kits import find_server_kit
from seatwise.kits.race_steps import SendRate, StepKind, kind_of_step
from seatwise.link.backoff import Backoff, ServerLines
from seatwise.link.question_loop import PendingPrompt, QuestionLoop, log_answer_time, pending_prompt_of
from seatwise.link.referee_link import RefereeLink, SeatKey
from seatwise.offer import Offer
from seatwise.result import Result
from seatwise.v1.play_service_pb2 import (
    MatchEnded,
    MoveAccepted,
    MoveRejected,
    PlayRequestItem,
    PlayResponseItem,
    Resign,
    Sit,
    SubmitMove,
    Update,
    WeightedMove,
)
from seatwise_referee.game import RaceGame
from seatwise_referee.mixed_move import MixedMove
from seatwise_referee.shuffle import NONCE_BYTES

CLOSED_WAIT_S = 1.0
"""The lobby and the referee use two streams. The referee's last message may arrive this much later than the lobby's, in seconds."""
NO_WORD_S = 30.0
"""If the referee does not say how the match ended within this time, in seconds, the match ends without a result."""

log = logging.getLogger("seatwise")


class SeatSession:
    """The session of a bot in one seat."""

    def __init__(self, offer: Offer, epoch: int, factory: BotFactory, epochs: dict[str, int]) -> None:
        self.offer = offer
        self._kit = find_server_kit(offer.game)
        self.place = f"{offer.match} seat {offer.seat}"
        """Match and seat, for the log."""
        self._lines = ServerLines(self.place)
        on_move, on_resign = self._submit_move, self._resign_match
        self.questions = QuestionLoop(factory, offer, self._kit, self._lines, on_move, on_resign)
        self.epoch = epoch
        """The epoch of the newest offer."""
        self.moves = 0
        """Number of accepted moves."""
        self.result: Result | None = None
        self.end_receipt = b""
        """The receipt of the end of the match; empty if no referee has told it."""
        self._codec = self._kit.load_codec()
        self._nonce = secrets.token_bytes(NONCE_BYTES)
        self._answers_name = uuid4().hex[:12]
        """The beginning of the request ids of its answers."""
        self._answers = 0
        self._epochs = epochs
        """The highest epoch seen of each match. Other seats of the same match raise it too."""
        self._link: RefereeLink | None = None
        self._receipt = b""
        self._is_ready = False
        self._resigned_in = 0
        """The sitting in which the seat resigned, counted from 1; 0 if it has not."""
        self._sittings = 0
        self._rejections = 0
        self._over = asyncio.Event()
        self.is_asking_how = False
        """Whether it waits for the last word of the referee."""
        self._is_shown = False
        """Whether the referee has sent an update since the seat last asked how the match ended."""
        self._waits = Backoff()
        self._timer: asyncio.TimerHandle | None = None
        self._layouts = RaceLayouts(self._kit.race_rules, self._send_race_step)

    @property
    def key(self) -> SeatKey:
        """The match and the seat."""
        return self.offer.match, self.offer.seat

    # The course of the match

    async def set_up(self) -> None:
        """Make the bot, then sit down. Exceptions of the bot come through. A bot that is too slow for it never sits down."""
        self._is_ready = await self.questions.set_up_bot()
        if not self._over.is_set():
            self.sit_down()  # if it is ready

    async def tell_end(self) -> None:
        """Tell the bot the result, if there is one, and if the bot was made."""
        if self.result is not None and self._is_ready:
            await self.questions.tell_end(self.result)

    async def wait_for_last_word(self) -> None:
        """Wait for the result, because the lobby has said that the seat is closed. Ask the referee if it does not come.

        The referee decides: while it goes on sending updates, the match is not over.
        """
        if self.is_asking_how:
            return
        self.is_asking_how = True
        if not await self._is_over_within(CLOSED_WAIT_S):
            self._is_shown = False
            self.sit_down()
            if not await self._is_over_within(NO_WORD_S) and not self._is_shown:
                log.warning("%s is over, and its referee does not say how", self.place)
                self._finish_match()
        self.is_asking_how = False

    def move_to(self, link: RefereeLink) -> None:
        """Move to another referee, which has the match from now on."""
        if self._link is not None:
            self._link.remove_seat(self)
        self._link = link
        link.add_seat(self)

    def leave_match(self) -> None:
        """Leave the seat, and send nothing more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._link is not None:
            self._link.remove_seat(self)
        self._layouts.end_round()
        self.questions.dismiss_bot()

    # Messages to the referee

    def sit_down(self) -> None:
        """Sit down at the referee, or again over a new link. The answer is the full view."""
        if self._is_ready:
            self._sittings += 1
            self._send_action(sit=Sit(nonce=self._nonce, receipt=self._receipt))

    def _submit_move(self, pending: PendingPrompt, move: Any) -> None:
        if pending.is_race:
            self._layouts.send_step(move)
            return
        self._answers += 1
        request_id = f"{self._answers_name}-{self._answers}"
        pending.record_answer(request_id, move, self._encode_answer(move))
        log_answer_time(self.key, pending)
        self._send_answer(pending)

    def _resign_match(self) -> None:
        """Give the match up. A seat that has resigned is asked no more; if it is, the request was lost, and is sent again."""
        if self._resigned_in != self._sittings:
            log.info("%s: resigns", self.place)
            self._resigned_in = self._sittings
            self._send_action(resign=Resign())

    def _send_race_step(self, request_id: str, move: Any) -> None:
        if (pending := self.questions.pending) is not None:
            payload = self._encode_answer(move)
            self._send_action(submit_move=SubmitMove(request_id=request_id, prompt=pending.prompt, **payload))

    def _encode_answer(self, move: Any) -> dict[str, Any]:
        """Return the fields of `SubmitMove` for a move or a mixed move."""
        field, encode = self._codec.field, self._codec.encode_move
        if not isinstance(move, MixedMove):
            return {field: encode(move)}
        weighted = [WeightedMove(weight=weight, **{field: encode(choice)}) for choice, weight in move.choices]
        return {"choices": weighted}

    def _send_answer(self, pending: PendingPrompt) -> None:
        if pending.is_race:
            pending.said_in = self._sittings
            self._layouts.resend_all()
        elif pending.submit is not None:
            pending.said_in = self._sittings
            self._send_action(submit_move=pending.submit)

    def _send_action(self, **action: Any) -> None:
        match, seat = self.key
        if self._link is not None:
            self._link.send_item(PlayRequestItem(match=match, seat=seat, **action))

    # Messages of the referee

    def handle_item(self, item: PlayResponseItem) -> None:
        """Handle an item of the referee. Items of an earlier owner of the match are dropped. Epoch 0 means that no owner sent it.

        After the end of the match nothing more is handled.
        """
        if self._over.is_set():
            return
        match, epoch = self.offer.match, item.epoch
        seen = self._epochs.get(match, 0)
        if 0 < epoch < seen:
            log.debug("%s: dropped an item of epoch %d, because this is epoch %d", self.place, epoch, seen)
            return
        self._epochs[match] = max(epoch, seen)
        match item.WhichOneof("event"):
            case "update":
                self._handle_update(item.update)
            case "move_accepted":
                self._handle_acceptance(item.move_accepted)
            case "move_rejected":
                self._handle_rejection(item.move_rejected)
            case "match_ended":
                self._handle_match_ended(item.match_ended)

    def _handle_update(self, update: Update) -> None:
        self._waits.reset()
        self._is_shown = True
        self._receipt = update.receipt or self._receipt
        pending = self.questions.pending
        if not update.to_act:
            self._close_question(update, pending)
        elif self._resigned_in:
            self._resign_match()
        elif pending is None or pending.prompt != update.prompt:
            self._open_question(update)
        elif pending.said_in != self._sittings:
            self._send_answer(pending)

    def _close_question(self, update: Update, pending: PendingPrompt | None) -> None:
        """Close the question, unless the bot has called: then it waits for the answer, and may have to call again."""
        if pending is None or pending.prompt != update.prompt or not self._layouts.call_id:
            self._layouts.end_round()
            self.questions.close_question("out of time")

    def _open_question(self, update: Update) -> None:
        self._layouts.end_round()
        try:
            method = self._kit.find_method(update.pace)
            view = self._read_view(update)
        except (MalformedView, BadAnswerError) as error:
            self.questions.close_question("asked something else")
            told = "%s: the referee has sent a malformed question: %s. The referee plays the default move. Is there a newer version "
            why = clean_text(str(error), 300)
            self._lines.log(logging.ERROR, f"{told}of seatwise? If not, tell its operator", self.place, why)
        else:
            pending = pending_prompt_of(update, method, view)
            if pending.is_race:
                self._layouts = RaceLayouts(self._kit.race_rules, self._send_race_step)
            pending.said_in = self._sittings
            self.questions.open_question(pending)

    def _read_view(self, update: Update) -> Any:
        """Return the view. Raises `MalformedView` if it is none of this seat in this game."""
        if (sent := update.WhichOneof("view")) != self._codec.field:
            raise MalformedView(f"the view is of {sent or 'no game'}, not of {self._codec.field}")
        view = self._codec.decode_view(getattr(update, self._codec.field))
        self._codec.check_view(view, self.offer.seat, len(self.offer.bots))
        return view

    def _handle_acceptance(self, accepted: MoveAccepted) -> None:
        self._receipt = accepted.receipt or self._receipt
        self.moves += 1
        if accepted.request_id == self._layouts.call_id:
            self._layouts.end_round()
        log.debug("%s: charged %d ms", self.place, accepted.charged_ms)

    def _handle_match_ended(self, ended: MatchEnded) -> None:
        """End the match. A result that is none is logged, and the match ends without a result."""
        self.end_receipt = ended.receipt
        offer = self.offer
        try:
            self.result = decode_end_of_seats(ended, offer.match, offer.seat, len(offer.bots))
        except MalformedResult as error:
            told = "%s: the referee has sent a malformed result: %s. The match ends without a result; tell its operator"
            log.error(told, self.place, error)
        else:
            if self.result.seed and sha256(self.result.seed).digest() != offer.commitment:
                log.error("%s: the seed is not the one that the offer was committed to", self.place)
        self._finish_match()

    def _finish_match(self) -> None:
        self._over.set()
        self._layouts.end_round()
        self.questions.stop_asking()

    # Rejections

    def _handle_rejection(self, rejected: MoveRejected) -> None:
        reason = _REASON_NAMES.get(rejected.reason, "OF A NEWER SERVER")
        pending = self.questions.pending
        is_answer = pending is not None and rejected.request_id == pending.request_id != ""
        what = f"{pending.move} is rejected" if pending is not None and is_answer else "rejected"
        level = _LEVELS.get(reason, logging.ERROR)
        self._lines.log(level, "%s: %s: %s [%s]", self.place, what, clean_text(rejected.message), reason)
        if reason == "NOT_YOUR_SEAT":
            self._finish_match()
        elif reason in _SIT_AGAIN or not rejected.request_id:
            self._act_later(self.sit_down)
        elif pending is not None and is_answer:
            self._handle_rejected_answer(pending, reason)
        elif self._layouts.owns_request(rejected.request_id):
            self._handle_rejected_step(reason, is_call=rejected.request_id == self._layouts.call_id)

    def _handle_rejected_step(self, reason: str, *, is_call: bool) -> None:
        """Send a layout again if it came too fast. After a rejected call, end the round for this seat."""
        if reason == "TOO_MANY":
            self._layouts.resend_all_later(self._waits.next_s())
        elif is_call:
            self._layouts.end_round()

    def _handle_rejected_answer(self, pending: PendingPrompt, reason: str) -> None:
        if reason == "ILLEGAL":
            self._rejections += 1
            # One more would forfeit the seat, so a default move is better.
            is_last = self._rejections + 1 >= self.offer.time_control.max_rejections
            self.questions.reject_answer(pending, str(pending.move), is_last=is_last)
        elif reason == "TOO_MANY":
            self._act_later(lambda: self._send_answer(pending) if pending is self.questions.pending else None)
        else:
            pending.give_up()

    def _act_later(self, act: Callable[[], None]) -> None:
        """Act once, after a wait that grows, because many seats may have been rejected at the same time."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._waits.next_s(), act)

    async def _is_over_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._over.wait()
        except TimeoutError:
            return False


class EndedSeat:
    """A seat of a match that is over, and offered again: its server has forgotten the end, for example because of a restored backup.

    It shows the receipt of the end, so that the match is voided, and never ends a second time in another way.
    """

    def __init__(self, key: SeatKey, receipt: bytes, link: RefereeLink) -> None:
        self.key = key
        self._receipt = receipt
        self._link = link
        link.add_seat(self)

    def sit_down(self) -> None:
        """Show the receipt."""
        match, seat = self.key
        self._link.send_item(PlayRequestItem(match=match, seat=seat, sit=Sit(receipt=self._receipt)))

    def handle_item(self, item: PlayResponseItem) -> None:
        """Leave the link as soon as the referee has nothing more to say."""
        if item.WhichOneof("event") in {"match_ended", "move_rejected"}:
            self._link.remove_seat(self)


_REASON_NAMES: Final[dict[int, str]] = {
    number: name.removeprefix("REASON_") for name, number in MoveRejected.Reason.items()
}

_SIT_AGAIN: Final = frozenset({"NOT_SEATED", "NOT_HERE", "MATCH_OVER"})
"""After these rejections the seat sits down again. The answer to that is the view, the right referee, or the end of the match."""

_LEVELS: Final = {
    "TOO_LATE": logging.WARNING,
    "TOO_MANY": logging.DEBUG,
    "NOT_ASKED": logging.DEBUG,
    "STALE": logging.DEBUG,
    **dict.fromkeys(_SIT_AGAIN, logging.DEBUG),
}
"""The log level of each rejection. All others are errors, because a program is wrong."""


class RaceLayouts:
    """The moves of one seat in one round. It sends them at a rate that the referee accepts."""

    def __init__(self, rules: RaceGame[Any, Any, Any], send_move: Callable[[str, Any], None]) -> None:
        """Create it for a round. `send_move(request_id, move)` sends a move."""
        self._rules = rules
        self._send_move = send_move
        self._name = uuid4().hex[:12]
        self._ids_given = 0
        self._last: dict[StepKind, Any] = {}
        """The newest layout and the newest offer."""
        self._unsent: set[StepKind] = set()
        self._call: tuple[str, Any] | None = None
        self._rate = SendRate()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def call_id(self) -> str:
        """Return the request id of the call; empty while there is none."""
        return self._call[0] if self._call else ""

    def owns_request(self, request_id: str) -> bool:
        """Return whether this is the request id of a move of this round."""
        return request_id.startswith(self._name)

    def send_step(self, move: Any) -> None:
        """Send a move of the bot: a layout, an offer or a call."""
        kind = kind_of_step(self._rules, move)
        if kind is StepKind.CALL:
            self._send_pending()
            self._call = self._new_id(), move
            self._send_move(*self._call)
            return
        self._last[kind] = move
        self._unsent.add(kind)
        self._send_soon()

    def resend_all(self) -> None:
        """Send all moves that still count again, because the link or the referee is new."""
        self._unsent |= self._last.keys()
        self._send_pending()
        if self._call:
            self._send_move(*self._call)

    def resend_all_later(self, wait_s: float) -> None:
        """Send all moves that still count again after this time, because the referee rejected some as too many."""
        loop = asyncio.get_running_loop()
        self._rate.pause_for(1000 * loop.time(), 1000 * wait_s)
        self._cancel_timer()
        self._timer = loop.call_later(wait_s, self.resend_all)

    def end_round(self) -> None:
        """Send nothing more, because the round is over."""
        self._cancel_timer()
        self._unsent.clear()
        self._call = None

    def _send_soon(self) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            return
        ready_s = self._rate.ready_ms(1000 * loop.time()) / 1000
        if ready_s <= loop.time():
            self._send_pending()
        else:
            self._timer = loop.call_at(ready_s, self._send_pending)

    def _send_pending(self) -> None:
        self._cancel_timer()
        now_ms = 1000 * asyncio.get_running_loop().time()
        for kind in sorted(self._unsent):
            self._rate.count_layout(now_ms)
            self._send_move(self._new_id(), self._last[kind])
        self._unsent.clear()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _new_id(self) -> str:
        self._ids_given += 1
        return f"{self._name}-{self._ids_given}"
