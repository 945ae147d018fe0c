"""Messages of a server that fit the protocol and make no sense, drawn at random, and a wire that carries them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from hashlib import sha256
from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from doubles.fake_server import ME, OTHER, SEED, view_of_ugo
from seatwise.games.ubongo.v1 import ubongo_pb2
from seatwise.v1 import json_payload_pb2, match_pb2
from seatwise.v1 import lobby_service_pb2 as lobby
from seatwise.v1 import play_service_pb2 as play

MATCHES = 3
NUMBERS = (0, 1, 2, 3, -1, 7, 46, 108, 1000, 2**31 - 1, -(2**31))
LONG_NUMBERS = (*NUMBERS, 2**63 - 1, -(2**63))
TEXTS = (
    "", "card", "arrange", "build", "move", "matches/0", "games/ugo", "bots/x", "\x1b[2J\n", "x" * 3000, "\u202e", "NaN",
    "[" * 3000, '{"a":NaN}', "ABCDEF", "-0", "9" * 5000,
)  # fmt: skip
DATA = (b"", bytes(32), bytes(31), b"\xff" * 3000)
MESSAGE, STRING, BYTES, ENUM = (
    FieldDescriptor.TYPE_MESSAGE,
    FieldDescriptor.TYPE_STRING,
    FieldDescriptor.TYPE_BYTES,
    FieldDescriptor.TYPE_ENUM,
)
BOOL, INT64, UINT64 = FieldDescriptor.TYPE_BOOL, FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT64


class Senseless:
    """Draws messages: right ones of which a few fields are changed."""

    def __init__(self, seed: int, game: str) -> None:
        self._chance = Random(seed)
        self._game = game

    def offer(self, match: int) -> lobby.AttendResponse:
        """A right offer of a seat."""
        limits: dict[str, Any] = {"free_ms": {"card": 1000, "arrange": 1000, "build": 1000, "move": 1000}}
        limits |= {"max_strikes": 3, "max_rejections": 10}
        offer = lobby.SeatOffer(
            match=f"matches/{match}", seat=0, epoch=1, bots=[ME, OTHER], game=f"games/{self._game}",
            commitment=sha256(SEED).digest(), time_control=limits,
        )  # fmt: skip
        return lobby.AttendResponse(offer=offer)

    def of_lobby(self) -> lobby.AttendResponse:
        """A message of the lobby."""
        match = self._chance.randrange(MATCHES)
        message = self._chance.choice(
            [
                self.offer(match),
                lobby.AttendResponse(welcome=lobby.Welcome(bot=ME, max_matches=4)),
                lobby.AttendResponse(closed=lobby.SeatClosed(match=f"matches/{match}")),
                lobby.AttendResponse(queued=lobby.Queued(queue="casual", place=1)),
                lobby.AttendResponse(taken_off=lobby.TakenOff(queue="casual", reason="no")),
                lobby.AttendResponse(),
            ]
        )
        self._change(message)
        if message.offer.game != f"games/{self._game}":  # another game rightly ends the run
            message.offer.game = ""
        return message

    def of_referee(self) -> play.PlayResponse:
        """A message of the referee."""
        items = [self._item() for _ in range(self._chance.randint(0, 3))]
        return play.PlayResponse(items=items)

    def _item(self) -> play.PlayResponseItem:
        draw = self._chance
        update = play.Update(prompt=draw.randint(1, 4), to_act=True, pace=draw.choice(TEXTS[1:5]))
        self._set_view(update)
        result = match_pb2.Result(points=[7, 3], outcome_ranks=[1, 2], ranks=[1, 2], endings=[1, 1])
        item = draw.choice(
            [
                *[play.PlayResponseItem(update=update)] * 4,
                play.PlayResponseItem(move_accepted=play.MoveAccepted(request_id="x")),
                play.PlayResponseItem(
                    move_rejected=play.MoveRejected(request_id="x", reason=1, message="no")
                ),  # type: ignore[arg-type]
                play.PlayResponseItem(match_ended=play.MatchEnded(result=result, seed=SEED)),
                play.PlayResponseItem(ping=play.Ping(number=1)),
                play.PlayResponseItem(),
            ]
        )
        item.match, item.epoch = f"matches/{draw.randrange(MATCHES)}", 1
        self._change(item)
        return item

    def _set_view(self, update: play.Update) -> None:
        if self._game == "ugo":
            arranges = update.pace == "arrange"
            cards: Any = (
                {"won_cards": [1, 2], "arranger": 0} if arranges else {"hand": [1, 2], "legal_cards": [1, 2]}
            )
            update.ugo.CopyFrom(view_of_ugo(0, **cards))
        elif self._game == "ubongo":
            hand = range(1, 10)
            update.ubongo.CopyFrom(
                ubongo_pb2.View(
                    seat=0, round=1, rounds=6, hand=hand, symbols="ABCDEF" * 9, laid=[0, 0], building=[0, 1]
                )
            )
        else:
            data = json_payload_pb2.JsonValue(json='{"a":1}')
            legal = [json_payload_pb2.JsonValue(json=text) for text in ("1", "2")]
            update.json.CopyFrom(json_payload_pb2.JsonView(data=data, legal_moves=legal, seat=0))

    def _change(self, message: Any) -> None:
        """Change up to three fields, however deep."""
        for _ in range(self._chance.choice((0, 1, 1, 2, 3))):
            inner = list(_messages_in(message))
            chosen = self._chance.choice(inner)
            fields = [
                field for field in chosen.DESCRIPTOR.fields if not field.message_type or field.is_repeated
            ]
            if fields:
                self._change_field(chosen, self._chance.choice(fields))

    def _change_field(self, message: Any, field: FieldDescriptor) -> None:
        if not field.is_repeated:
            setattr(message, field.name, self._value(field))
            return
        if field.message_type and field.message_type.GetOptions().map_entry:
            message.ClearField(field.name)
            return
        self._change_list(getattr(message, field.name), field)

    def _change_list(self, values: Any, field: FieldDescriptor) -> None:
        kind = self._chance.randrange(3)
        if kind == 0:
            del values[:]
        elif field.type == MESSAGE:
            for _ in range(self._chance.choice((1, 50))):
                values.add()
        elif kind == 1 or not values:
            values.extend([self._value(field) for _ in range(self._chance.choice((1, 2, 1000)))])
        else:
            values[self._chance.randrange(len(values))] = self._value(field)

    def _value(self, field: FieldDescriptor) -> Any:
        if field.type == STRING:
            return self._chance.choice(TEXTS)
        if field.type == BYTES:
            return self._chance.choice(DATA)
        if field.type == BOOL:
            return self._chance.random() < 0.5
        return self._chance.choice(LONG_NUMBERS if field.type in (INT64, UINT64) else NUMBERS)


def _messages_in(message: Any) -> Iterator[Any]:
    """The message and all messages in it."""
    yield message
    for field, value in message.ListFields():
        if field.type == MESSAGE and not field.message_type.GetOptions().map_entry:
            for each in value if field.is_repeated else [value]:
                yield from _messages_in(each)


class SenselessStream:
    """A stream that says what is drawn."""

    def __init__(self, messages: Iterator[Any]) -> None:
        self._messages = messages
        self.written = 0

    async def write(self, message: Any) -> None:  # noqa: ARG002
        """Counts it."""
        self.written += 1

    async def read(self) -> Any:
        """The next message; it never returns when there is none."""
        await asyncio.sleep(0)
        message = next(self._messages, None)
        if message is None:
            await asyncio.Event().wait()
        return message


class SenselessWire:
    """A `Wire` without a network."""

    address = "fake:1"

    def __init__(self, seed: int, game: str, messages: int) -> None:
        self._draw = Senseless(seed, game)
        self._count = messages
        self.said = 0

    def address_in(self, offer: lobby.SeatOffer) -> str:
        """See `Wire.address_in`."""
        return offer.address or self.address

    @asynccontextmanager
    async def attend(self) -> AsyncIterator[SenselessStream]:
        """See `Wire.attend`."""
        yield SenselessStream(self._of_lobby())

    @asynccontextmanager
    async def play(self, address: str) -> AsyncIterator[SenselessStream]:  # noqa: ARG002
        """See `Wire.play`."""
        yield SenselessStream(self._of_referee())

    def _of_lobby(self) -> Iterator[lobby.AttendResponse]:
        yield from map(self._draw.offer, range(MATCHES))
        for _ in range(self._count):
            self.said += 1
            yield self._draw.of_lobby()

    def _of_referee(self) -> Iterator[play.PlayResponse]:
        for _ in range(self._count):
            self.said += 1
            yield self._draw.of_referee()
