"""Decodes offers of seats, and encodes and decodes the options of games."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from seatwise.codec.game_codec import MalformedOffer
from seatwise.offer import Offer
from seatwise.v1 import lobby_service_pb2, time_control_pb2
from seatwise_referee.game import Options, Seat
from seatwise_referee.time_control import BadTimeControl, TimeControl

_NUMBER_FIELDS = tuple(each.name for each in fields(TimeControl) if each.name != "free_ms")


def encode_time_control(time_control: TimeControl) -> time_control_pb2.TimeControl:
    """Return the complete message of a time control."""
    numbers = {name: getattr(time_control, name) for name in _NUMBER_FIELDS}
    return time_control_pb2.TimeControl(free_ms=dict(time_control.free_ms), **numbers)


def decode_time_control(message: time_control_pb2.TimeControl) -> TimeControl:
    """Return the time control of a complete message, as in an offer. Raises `BadTimeControl`."""
    numbers = {name: getattr(message, name) for name in _NUMBER_FIELDS}
    return TimeControl(free_ms=dict(message.free_ms), **numbers)


_MOST_DIGITS = 12
"""The most digits of a number. Longer values stay text, because Python reads very long numbers slowly."""
_COMMITMENT_BYTES = 32
_LONGEST_SHOWN_NAME = 200
"""The most characters of a name in an offer. Names are shown, so all of them must be printable."""
_MOST_BOTS = 64
"""The most seats of a match. No game has as many."""


def encode_options(options: Options) -> dict[str, str]:
    """Return the options as a map of texts."""
    return {name: str(value) for name, value in options.items()}


def decode_options(options: Mapping[str, str]) -> dict[str, int | str]:
    """Return the options as games take them. A text that reads as a whole number becomes a number."""
    return {name: _parse_value(text) for name, text in options.items()}


def _parse_value(text: str) -> int | str:
    digits = text.removeprefix("-")
    is_number = len(digits) <= _MOST_DIGITS and digits.isascii() and digits.isdigit()
    return int(text) if is_number else text


def decode_offer(message: lobby_service_pb2.SeatOffer) -> Offer:
    """Return the offer as the bot sees it, without the address of the referee and the epoch.

    Raises `MalformedOffer` if a field is missing or wrong.
    """
    _check_names(message)
    if not 0 <= message.seat < len(message.bots):
        raise MalformedOffer(f"seat is {message.seat}, and {len(message.bots)} bots are named")
    if message.epoch < 1:
        raise MalformedOffer(f"epoch is {message.epoch}; it must be at least 1")
    if len(message.commitment) != _COMMITMENT_BYTES:
        raise MalformedOffer(f"commitment has {len(message.commitment)} bytes, not {_COMMITMENT_BYTES}")
    return Offer(
        match=message.match,
        seat=Seat(message.seat),
        game=message.game.removeprefix("games/"),
        bots=tuple(message.bots),
        options=decode_options(message.options),
        time_control=_decode_limits(message),
        commitment=message.commitment,
    )


def _check_names(message: lobby_service_pb2.SeatOffer) -> None:
    """Raise `MalformedOffer` for a name that is missing, too long or not printable."""
    _check_name("match", message.match, "matches/")
    _check_name("game", message.game, "games/")
    if len(message.bots) > _MOST_BOTS:
        raise MalformedOffer(f"bots has {len(message.bots)} names; at most {_MOST_BOTS} are possible")
    for bot in message.bots:
        _check_name("bots", bot, "bots/")


def _check_name(field: str, name: str, prefix: str) -> None:
    is_name = (
        name.startswith(prefix) and len(prefix) < len(name) <= _LONGEST_SHOWN_NAME and name.isprintable()
    )
    if not is_name:
        raise MalformedOffer(
            f"{field} has {name[:_LONGEST_SHOWN_NAME]!a}, which is no name that begins with {prefix}"
        )


def _decode_limits(message: lobby_service_pb2.SeatOffer) -> TimeControl:
    if not message.HasField("time_control"):
        raise MalformedOffer("time_control is missing")
    try:
        return decode_time_control(message.time_control)
    except BadTimeControl as error:
        raise MalformedOffer(f"time_control: {str(error)[:_LONGEST_SHOWN_NAME]}") from None
