"""Decodes offers of seats, and encodes and decodes the options of games."""

from __future__ import annotations

from collections.abc import Mapping

from seatwise.codec.time_control import decode_time_control
from seatwise.offer import Offer
from seatwise.v1 import lobby_service_pb2
from seatwise_referee.game import Options, Seat

_MOST_DIGITS = 12
"""The most digits of a number. Longer values stay text, because Python reads very long numbers slowly."""


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
    """Return the offer as the bot sees it, without the address of the referee and the epoch."""
    return Offer(
        match=message.match,
        seat=Seat(message.seat),
        game=message.game.removeprefix("games/"),
        bots=tuple(message.bots),
        options=decode_options(message.options),
        time_control=decode_time_control(message.time_control),
        commitment=message.commitment,
    )
