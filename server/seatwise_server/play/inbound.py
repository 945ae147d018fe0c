"""Handles the items that bots send, and passes valid ones on to the tables."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from seatwise.codec import MalformedMove
from seatwise.codec.wire_format import LENGTH_DELIMITED
from seatwise.kits import KITS
from seatwise.kits.codecs import CODECS
from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee.mixed_move import MOST_MIXED_CHOICES, MixedMove
from seatwise_referee.shuffle import NONCE_BYTES
from seatwise_server.background_tasks import BackgroundTasks
from seatwise_server.limits import LOOKUPS_PER_SECOND, TokenBuckets
from seatwise_server.play import play_messages
from seatwise_server.play.play_stream import PlayStream
from seatwise_server.play.table import Table
from seatwise_server.store.errors import StoreUnavailable

LONGEST_REQUEST_ID = 64
"""The most characters of a `request_id`, in an item of a stream as in a unary request."""
MOST_LOOKUPS = 64
"""The most lookups in the store that one stream may have open. After a restart a bot asks about all its seats at once."""
LOOKUPS_AT_ONCE = 600.0
"""Lookups that a bot has not used for a while, and so may have at once: it asks again for the seats that were TOO_MANY."""
FIRST_GAME_FIELD = 16
"""The lowest number of a game's field in `SubmitMove.move`; lower numbers belong to the envelope."""

ITEMS_PER_TURN = 32
"""Items that are handled before other tasks run. A message full of the smallest items would block them for a second."""

_ITEM_KEY = pb.PlayRequest.ITEMS_FIELD_NUMBER << 3 | LENGTH_DELIMITED

Ended = Callable[[str, str, int], Awaitable[pb.MatchEnded | None]]
"""Looks up the end of a match, by match, bot and seat. Returns None if it is not over; raises NotYourSeat."""


class InboundItems:
    """Handles the inbound items of one referee process."""

    def __init__(self, tables: Mapping[str, Table], ended: Ended) -> None:
        self._tables = tables
        self._ended = ended
        self._lookups = BackgroundTasks()
        self._lookup_rates = TokenBuckets(
            LOOKUPS_PER_SECOND, LOOKUPS_AT_ONCE, asyncio.get_running_loop().time
        )

    def dispatch_item(
        self, stream: PlayStream, item: pb.PlayRequestItem | None, at: float, fault: str = ""
    ) -> None:
        """Handle one item that arrived at `at`. A bad item is rejected, and does not affect other bots or matches.

        `fault` says why the item is None, where its reader knows.
        """
        if item is None:
            fault = fault or "these bytes are not a PlayRequestItem"
            _reject_item(stream, pb.PlayRequestItem(), "MALFORMED", fault)
            return
        action = item.WhichOneof("action")
        if action == "pong":
            stream.on_pong(item.pong.number, at)
        elif action is None:
            _reject_item(stream, item, "MALFORMED", "the item has no action")
        else:
            self._dispatch_to_seat(stream, item, action, at)

    def _dispatch_to_seat(self, stream: PlayStream, item: pb.PlayRequestItem, action: str, at: float) -> None:
        table, seat = self._tables.get(item.match), item.seat
        if table is None:
            self._look_up_match(stream, item)
        elif not table.is_seat_of(stream.bot, seat):
            _reject_not_yours(stream, item)
        elif action == "sit":
            self._sit_down(stream, table, item, at)
        elif not table.sits_through(seat, stream.outbox):
            _reject_item(stream, item, "NOT_SEATED", "sit down on this stream first")
        elif action == "resign":
            table.resign_seat(seat, at)
        else:
            self._submit_move(stream, table, item, at)

    def _sit_down(self, stream: PlayStream, table: Table, item: pb.PlayRequestItem, at: float) -> None:
        nonce = item.sit.nonce
        if len(nonce) not in (0, NONCE_BYTES):
            message = f"a nonce has {NONCE_BYTES} bytes, or none; this has {len(nonce)}"
            _reject_item(stream, item, "MALFORMED", message)
            return
        every_change = item.sit.updates == pb.Sit.UPDATES_EVERY_CHANGE
        stream.ping_first()
        table.sit_down(item.seat, nonce, every_change, stream.outbox, at, item.sit.receipt)
        stream.report_allowance(table.updates, item.seat)

    def _submit_move(self, stream: PlayStream, table: Table, item: pb.PlayRequestItem, at: float) -> None:
        seat, asked = item.seat, item.submit_move
        prompt, request_id = asked.prompt, asked.request_id  # each read makes an object
        if not 1 <= len(request_id) <= LONGEST_REQUEST_ID or not request_id.isprintable():
            wanted = f"a request_id has 1 to {LONGEST_REQUEST_ID} printable characters"
            _reject_item(stream, item, "MALFORMED", wanted)
            return
        game = table.match.setup.game
        try:
            move = _decode_answer(asked, game)
        except WrongGame:
            message = f"this match plays {game}; set the move's field {game!r}"
            _reject_item(stream, item, "WRONG_GAME", message)
        except MalformedMove as malformed:
            _reject_item(stream, item, "MALFORMED", str(malformed))
        else:
            answer_ms = table.ms_to_answer(seat, prompt, at)
            if answer_ms is not None:
                stream.meter.note_answer(answer_ms)
            table.submit_move(seat, prompt, request_id, move, at)

    def _look_up_match(self, stream: PlayStream, item: pb.PlayRequestItem) -> None:
        """Look up a match that has no table here: only the store knows whether it is over, elsewhere, or without an owner."""
        if stream.lookups >= MOST_LOOKUPS:
            message = f"more than {MOST_LOOKUPS} lookups of other matches are open"
            _reject_item(stream, item, "TOO_MANY", message)
            return
        if self._lookup_rates.measure_wait(stream.bot, 1.0):
            message = f"more than {LOOKUPS_PER_SECOND:g} lookups of other matches in a second"
            _reject_item(stream, item, "TOO_MANY", message)
            return
        self._lookup_rates.take_units(stream.bot, 1.0)
        stream.lookups += 1
        self._lookups.start_task(self._answer_from_store(stream, item))

    async def _answer_from_store(self, stream: PlayStream, item: pb.PlayRequestItem) -> None:
        try:
            end = await self._ended(item.match, stream.bot, item.seat)
        except NotYourSeat:
            _reject_not_yours(stream, item)
        except StoreUnavailable:
            _reject_item(stream, item, "NOT_HERE", "the store does not answer now; try again")
        else:
            _answer_end(stream, item, end)
        finally:
            stream.lookups -= 1


class WrongGame(ValueError):
    """The move belongs to another game."""


class NotYourSeat(ValueError):
    """There is no such match or seat, or the seat is not the bot's."""


def _decode_answer(asked: pb.SubmitMove, game: str) -> Any:
    """Return the move, or the mixed move if there are choices."""
    if not asked.choices:
        return _decode_move(asked, game)
    if asked.WhichOneof("move") is not None:
        raise MalformedMove("the item has a move and choices; it must have one of them")
    if KITS[game].has_races:
        raise MalformedMove(f"{game} is a race, which takes no choices; send one move")
    if len(asked.choices) > MOST_MIXED_CHOICES:
        count = len(asked.choices)
        raise MalformedMove(f"a mixed move has at most {MOST_MIXED_CHOICES} choices; this has {count}")
    if any(choice.weight < 1 for choice in asked.choices):
        raise MalformedMove("the weight of a choice must be at least 1")
    return MixedMove([(_decode_move(choice, game), choice.weight) for choice in asked.choices])


def _decode_move(asked: pb.SubmitMove | pb.WeightedMove, game: str) -> Any:
    codec = CODECS[game]
    field = asked.WhichOneof("move")
    if field == codec.field:
        return codec.decode_move(getattr(asked, field))
    unknown: Iterable[Any] = UnknownFieldSet(asked)  # type: ignore[assignment]  # its stubs lack __iter__
    later_games = (each.field_number >= FIRST_GAME_FIELD for each in unknown)
    if field is not None or any(later_games):
        raise WrongGame
    raise MalformedMove("the item has no move")


def _answer_end(stream: PlayStream, item: pb.PlayRequestItem, end: pb.MatchEnded | None) -> None:
    if end is None:
        message = "the match is at another referee, or not open yet; wait for an offer"
        _reject_item(stream, item, "NOT_HERE", message)
    elif item.HasField("sit"):
        head = play_messages.encode_head(item.match, item.seat, 0)
        stream.outbox.add_answer(play_messages.encode_ended(head, end), at_once=True)
    else:
        _reject_item(stream, item, "MATCH_OVER", "the match is over")


def _reject_not_yours(stream: PlayStream, item: pb.PlayRequestItem) -> None:
    _reject_item(stream, item, "NOT_YOUR_SEAT", "there is no such match, or its seat is not this bot's")


def _reject_item(stream: PlayStream, item: pb.PlayRequestItem, reason: str, message: str) -> None:
    request_id = item.submit_move.request_id[:LONGEST_REQUEST_ID] if item.HasField("submit_move") else ""
    head = play_messages.encode_head(item.match[:LONGEST_REQUEST_ID], item.seat, 0)
    stream.outbox.add_answer(play_messages.encode_rejected(head, request_id, reason, message), at_once=True)


def read_items(raw: bytes) -> Iterable[pb.PlayRequestItem | None]:
    """Return the items of a message in their order, and `None` for each that cannot be read: it does not affect the others."""
    try:
        return pb.PlayRequest.FromString(raw).items
    except DecodeError:
        return _read_one_by_one(raw)


def _read_one_by_one(raw: bytes) -> Iterator[pb.PlayRequestItem | None]:
    """Read the outermost fields one by one. After a field that cannot be read, the rest of the message is lost."""
    rest = memoryview(raw)
    while rest:
        try:
            key, rest = _read_varint(rest)
            length, rest = _read_varint(rest)
            if key != _ITEM_KEY or length > len(rest):
                raise ValueError("no item")
            body, rest = rest[:length], rest[length:]
        except ValueError:
            yield None
            return
        yield _parse_item(bytes(body))


def _parse_item(body: bytes) -> pb.PlayRequestItem | None:
    try:
        return pb.PlayRequestItem.FromString(body)
    except DecodeError:
        return None


def _read_varint(data: memoryview) -> tuple[int, memoryview]:
    number = 0
    for index, byte in enumerate(data[:10]):
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return number, data[index + 1 :]
    raise ValueError("no item")
