"""The steps of which checks are made: seat the bot, ask it, accept its move, end the match."""

from __future__ import annotations

import asyncio
import random
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from hashlib import sha256
from time import monotonic
from typing import Any, Final

from seatwise.codec import MalformedMove
from seatwise.doctor.examined_bot import ExaminedBot
from seatwise.doctor.scripted_server import (
    EXAMINED,
    ScriptedLobby,
    ScriptedReferee,
    ScriptedServer,
    Transcript,
    scripted_server,
)
from seatwise.doctor.stream_link import Door, NothingCame, UnreadableMessage
from seatwise.kits import DEFAULT_GAME
from seatwise.kits.codecs import CODECS
from seatwise.v1 import lobby_service_pb2, match_pb2, play_service_pb2, time_control_pb2
from seatwise_referee.game import IllegalMove, Seat
from seatwise_referee.games.registry import GAMES
from seatwise_referee.journal import WeightedMove, fault_of_choices
from seatwise_referee.mixed_move import MOST_MIXED_CHOICES

WS_SCHEME: Final = "ws://"
GAME: Final = DEFAULT_GAME
SEED: Final = bytes(range(32))
OPPONENT: Final = "bots/opponent/versions/1"
MOST_REJECTIONS: Final = 10
"""The offered `max_rejections`: so many illegal moves forfeit the seat."""
MOST_STARVED: Final = 10
"""By how many times the patience a bot may start later that gets no core."""
LEAST_WAIT_S: Final = 0.01

_CODEC: Final = CODECS[GAME]


def game_part(message: Any) -> Any:
    """Return the part of a message that belongs to the game."""
    return getattr(message, _CODEC.field)


class CheckFailed(Exception):  # it is an outcome
    """The bot did something wrong. The text says what."""


@dataclass(slots=True)
class Measurements:
    """Figures that a check has taken."""

    answer_ms: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class ScriptedMatch:
    """A match in which the other seats play at random."""

    def __init__(self, chance: random.Random, name: str, seat: int) -> None:
        self.name = f"matches/{name}"
        self.seat = Seat(seat)
        self.prompt = 0
        self._game: Any = GAMES[GAME]
        self._chance = chance
        self._state: Any = self._game.deal(2, chance.randbytes(32), self._game.complete_options({}))

    def play_to_question(self) -> bool:
        """Play until the bot's seat is asked. Return `False` if the match is over."""
        while (prompt := self._game.prompt(self._state)) is not None:
            seat = next(iter(prompt.seats))
            if seat == self.seat:
                return True
            self._state = self._game.play(self._state, seat, self.any_move(seat))
        return False

    def any_move(self, seat: Seat | None = None) -> Any:
        """Return a legal move."""
        mover = self.seat if seat is None else seat
        return self._chance.choice(list(self._game.legal_moves(self._state, mover)))

    def play_move(self, move: Any) -> None:
        """Play a move of the bot. Raises `IllegalMove`."""
        self._state = self._game.play(self._state, self.seat, move)

    def play_answer(self, submitted: play_service_pb2.SubmitMove) -> str:
        """Play the move that the bot has sent. Return why it is illegal; empty if it is legal.

        Of a mixed move, the last choice is played.
        """
        if fault := _fault_of_shape(submitted):
            return fault
        before = self._state
        for answer in submitted.choices or (submitted,):
            self._state = before
            if fault := self._play_choice(answer):
                return fault
        return fault_of_choices(1, [self._read_choice(choice) for choice in submitted.choices])

    def _read_choice(self, choice: play_service_pb2.WeightedMove) -> WeightedMove:
        return WeightedMove(self._game.move_to_json(_CODEC.decode_move(game_part(choice))), choice.weight)

    def _play_choice(self, submitted: play_service_pb2.SubmitMove | play_service_pb2.WeightedMove) -> str:
        payload = submitted.WhichOneof("move")
        if payload != GAME:
            return f"the field of the game {GAME} is not set, but {payload or 'none'}"
        try:
            self.play_move(_CODEC.decode_move(game_part(submitted)))
        except (IllegalMove, MalformedMove) as error:
            return str(error)
        return ""

    def make_update(self, receipt: bytes) -> play_service_pb2.Update:
        """Return the question, with the view of the seat."""
        prompt = self._game.prompt(self._state)
        time = play_service_pb2.TimeLeft(move_ms=1000, bank_ms=10_000)
        update = play_service_pb2.Update(
            prompt=self.prompt, to_act=True, pace=prompt.pace, receipt=receipt, time=time
        )
        game_part(update).ParseFromString(bytes(_CODEC.encode_view(self._game.view(self._state, self.seat))))
        return update


def _fault_of_shape(submitted: play_service_pb2.SubmitMove) -> str:
    """Return why a server would call the item MALFORMED for its choices; empty if it would not."""
    choices = submitted.choices
    if choices and submitted.WhichOneof("move") is not None:
        return "the item has a move and choices; it must have one of them"
    if len(choices) > MOST_MIXED_CHOICES:
        return f"a mixed move has at most {MOST_MIXED_CHOICES} choices; this has {len(choices)}"
    return "the weight of a choice must be at least 1" if any(each.weight < 1 for each in choices) else ""


class Examination:
    """One check: a bot, and the server that the check directs."""

    def __init__(
        self,
        server: ScriptedServer,
        bot: ExaminedBot,
        transcript: Transcript,
        patience_s: float,
        positions: int = 200,
        door: Door = Door.GRPC,
    ) -> None:
        self.server = server
        self.bot = bot
        self.transcript = transcript
        self.door = door
        self.patience_s = patience_s
        """The longest wait for anything that is due, in seconds."""
        self.positions = positions
        """How many questions the check of moves asks."""
        self.chance = random.Random(7)
        self.measured = Measurements()
        self.lobby: ScriptedLobby
        self.request: lobby_service_pb2.AttendRequest
        """The first request over the newest Attend stream."""
        self._referee: ScriptedReferee | None = None
        self.matches: list[ScriptedMatch] = []
        """All matches so far."""
        self.has_attended = False
        """Whether the bot has opened an Attend stream."""
        self._taken_seats: set[tuple[str, int]] = set()
        """The seats in which the bot has sat down, by match."""

    # The lobby

    async def wait_for_lobby(self, patience_s: float | None = None) -> ScriptedLobby:
        """Return the next Attend stream, and make it the one that offers."""
        patience_s = patience_s or self.patience_s
        if self.has_attended:
            self.lobby = await _next_of(self.server.lobbies, patience_s, "no Attend stream")
        else:
            self.lobby = await self._wait_for_first_lobby(patience_s)
        self.has_attended = True
        return self.lobby

    async def _wait_for_first_lobby(self, patience_s: float) -> ScriptedLobby:
        """Wait for a bot that starts. The time in which its process could run and gets no core does not count."""
        began_s, left_s = monotonic(), patience_s
        while left_s > LEAST_WAIT_S:
            try:
                lobby: ScriptedLobby = await _next_of(self.server.lobbies, left_s, "no Attend stream")
                return lobby
            except NothingCame:
                starved_s = min(self.bot.read_starved_s(), MOST_STARVED * patience_s)
                left_s = patience_s + starved_s - (monotonic() - began_s)
        raise NothingCame(f"no Attend stream was opened for {patience_s:.3g} s")

    async def wait_for_attendance(self) -> lobby_service_pb2.AttendRequest:
        """Return the first request over the next Attend stream."""
        self.request = await (await self.wait_for_lobby()).read(self.patience_s)
        return self.request

    async def offer_seat(
        self, match: ScriptedMatch, *, epoch: int = 1, address: str = "", extra: bytes = b""
    ) -> None:
        """Offer a seat."""
        bots = [OPPONENT, OPPONENT]
        bots[match.seat] = EXAMINED
        offer = lobby_service_pb2.SeatOffer(
            match=match.name, seat=match.seat, epoch=epoch, bots=bots, game=f"games/{GAME}",
            address=address.removeprefix(WS_SCHEME),
            ws_address=address if address.startswith(WS_SCHEME) else "",
            commitment=sha256(SEED).digest(), options={"rounds": "4"},
            time_control=time_control_pb2.TimeControl(
                free_ms={"card": 1000, "arrange": 1000}, bank_ms=10_000, setup_ms=10_000, grace_ms=50, max_strikes=3,
                max_rejections=MOST_REJECTIONS, allowance_cap_ms=100, handover_ms=250,
            ),
        )  # fmt: skip
        offer.MergeFromString(extra)
        await self.lobby.send(lobby_service_pb2.AttendResponse(offer=offer))

    # The referee

    def new_match(self, seat: int = 0) -> ScriptedMatch:
        """Return a new match in which the bot has this seat."""
        name = f"doctor-{len(self.matches) + 1}"
        self.matches.append(ScriptedMatch(self.chance, name, seat))
        return self.matches[-1]

    async def seat_bot(self, seat: int = 0) -> ScriptedMatch:
        """Offer a seat of a new match, and wait until the bot sits down."""
        match = self.new_match(seat)
        await self.offer_seat(match)
        await self.wait_for_sit(match)
        return match

    async def wait_for_sit(self, match: ScriptedMatch) -> play_service_pb2.PlayRequestItem:
        """Return the item with which the bot sits down in this match.

        It may sit down again in an earlier match at the same time, as after a rejection, so such items are passed over.
        """
        until_s = self.patience_end_s
        while True:
            item = await self.wait_for_item("sit", until_s=until_s)
            if (item.match, item.seat) == (match.name, match.seat):
                self._taken_seats.add((item.match, item.seat))
                return item
            if (item.match, item.seat) not in self._taken_seats:
                raise CheckFailed(
                    f"it sat down at {item.match} seat {item.seat}, and was offered {match.name} seat {match.seat}"
                )

    async def referee(self, patience_s: float | None = None) -> ScriptedReferee:
        """Return the Play stream of the bot: the newest, or the next one."""
        patience_s = patience_s or self.patience_s
        while self._referee is None or self._referee.is_gone.is_set() or not self.server.referees.empty():
            self._referee = await _next_of(self.server.referees, patience_s, "no Play stream")
        return self._referee

    def open_other_server(self) -> AbstractAsyncContextManager[ScriptedServer]:
        """Return a server of its own, with the same door, to which a match can move."""
        return scripted_server(self.transcript, self.door)

    def direct_referee_of(self, other: ScriptedServer) -> None:
        """Direct the referee of another server from now on."""
        self.server.referees, self._referee = other.referees, None

    @property
    def patience_end_s(self) -> float:
        """The end of the patience with anything that is due now, on the monotonic clock."""
        return monotonic() + self.patience_s

    async def wait_for_item(
        self, kind: str, *, until_s: float | None = None
    ) -> play_service_pb2.PlayRequestItem:
        """Return the next item of this kind. Pongs are passed over, and so is a second `sit` while a move is due.

        The patience is for the item that is due: a bot that sends others again and again does not prolong it.
        """
        until_s = self.patience_end_s if until_s is None else until_s
        while True:
            item: play_service_pb2.PlayRequestItem = await self.read_item(kind, until_s)
            found = item.WhichOneof("action")
            if found == kind:
                return item
            if found != "pong" and (found, kind) != ("sit", "submit_move"):
                raise CheckFailed(f"it sent {found or 'an empty item'} where {kind} was due")

    async def read_item(self, kind: str, until_s: float) -> Any:
        """Return the next item of the newest stream. The bot may close a stream and open another at any time."""
        newest = await self.referee(until_s - monotonic())
        try:
            while (item := await _read_until_gone(newest, until_s - monotonic())) is None:
                newest = await self.referee(until_s - monotonic())
            return item
        except UnreadableMessage:
            raise
        except NothingCame:
            raise NothingCame(f"no {kind} came for {self.patience_s:g} s") from None

    async def say(self, match: ScriptedMatch, epoch: int = 1, **event: Any) -> None:
        """Send one item of the match."""
        await self.send_items(self.item(match, epoch, **event))

    async def send_items(self, *items: play_service_pb2.PlayResponseItem) -> None:
        """Send these items in one message."""
        await (await self.referee()).send(play_service_pb2.PlayResponse(items=items))

    @staticmethod
    def item(match: ScriptedMatch, epoch: int = 1, **event: Any) -> play_service_pb2.PlayResponseItem:
        """Return an item of the match."""
        return play_service_pb2.PlayResponseItem(match=match.name, seat=match.seat, epoch=epoch, **event)

    def next_question(self, match: ScriptedMatch) -> play_service_pb2.Update:
        """Return the next question of the match."""
        if not match.play_to_question():
            raise CheckFailed("the match of the doctor was over too early; this is a fault of the doctor")
        match.prompt += 1
        return match.make_update(b"receipt %d" % match.prompt)

    async def ask(self, match: ScriptedMatch, epoch: int = 1) -> play_service_pb2.Update:
        """Ask the bot the next question."""
        update = self.next_question(match)
        await self.say(match, epoch, update=update)
        return update

    async def read_move(self, match: ScriptedMatch) -> play_service_pb2.PlayRequestItem:
        """Return the bot's next move. It must answer the open prompt of this match."""
        item = await self.wait_for_item("submit_move")
        if (item.match, item.seat) != (match.name, match.seat):
            raise CheckFailed(f"it moved in {item.match} seat {item.seat}, and {match.name} was asked")
        if item.submit_move.prompt != match.prompt:
            raise CheckFailed(f"it answered prompt {item.submit_move.prompt}, and {match.prompt} is open")
        return item

    async def accept_move(
        self, match: ScriptedMatch, item: play_service_pb2.PlayRequestItem, epoch: int = 1
    ) -> None:
        """Accept a move, and play any legal one in its place."""
        match.play_move(match.any_move())
        request_id, receipt = item.submit_move.request_id, b"accepted %d" % match.prompt
        accepted = play_service_pb2.MoveAccepted(request_id=request_id, receipt=receipt)
        await self.say(match, epoch, move_accepted=accepted)

    async def ask_and_accept(self, match: ScriptedMatch) -> None:
        """Ask one question, and accept the answer."""
        await self.ask(match)
        await self.accept_move(match, await self.read_move(match))

    async def finish(self, match: ScriptedMatch, seed: bytes = SEED) -> None:
        """End the match."""
        endings = [match_pb2.ENDING_COMPLETED] * 2
        result = match_pb2.Result(points=[7, 3], outcome_ranks=[1, 2], ranks=[1, 2], endings=endings)
        await self.say(match, match_ended=play_service_pb2.MatchEnded(result=result, seed=seed))

    async def play_on(self) -> None:
        """See that the bot goes on: it takes another match, and answers."""
        match = await self.seat_bot()
        await self.ask_and_accept(match)
        await self.finish(match)


async def _next_of(queue: asyncio.Queue[Any], patience_s: float, what: str) -> Any:
    try:
        async with asyncio.timeout(patience_s):
            return await queue.get()
    except TimeoutError:
        raise NothingCame(f"{what} was opened for {patience_s:.3g} s") from None


async def _read_until_gone(stream: ScriptedReferee, patience_s: float) -> Any:
    """Return the next item; `None` if the stream is gone before. Raises `NothingCame`."""
    reading = asyncio.ensure_future(stream.read(patience_s))
    gone = asyncio.ensure_future(stream.is_gone.wait())
    try:
        await asyncio.wait({reading, gone}, return_when=asyncio.FIRST_COMPLETED)
        return reading.result() if reading.done() else None
    finally:
        reading.cancel()
        gone.cancel()
