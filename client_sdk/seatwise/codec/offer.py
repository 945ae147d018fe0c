"""Offers of seats, and the options of games, on the wire."""

from __future__ import annotations

from collections.abc import Mapping

from seatwise.codec.time_control import decode_time_control, encode_time_control
from seatwise.offer import Offer
from seatwise.v1 import lobby_service_pb2
from seatwise_referee.game import Options, Seat
from seatwise_referee.setup import Setup
from seatwise_referee.shuffle import commitment

_LONGEST_NUMBER = 12
"""Digits of an option's value: longer ones stay text, for Python is slow at reading very long numbers."""


def encode_options(options: Options) -> dict[str, str]:
    """The options as the wire's map."""
    return {name: str(value) for name, value in options.items()}


def decode_options(options: Mapping[str, str]) -> dict[str, int | str]:
    """The options as games take them: what reads as a whole number is one."""
    return {name: _value(text) for name, text in options.items()}


def _value(text: str) -> int | str:
    digits = text.removeprefix("-")
    is_number = len(digits) <= _LONGEST_NUMBER and digits.isascii() and digits.isdigit()
    return int(text) if is_number else text


def encode_offer(setup: Setup, seat: int, epoch: int, address: str) -> lobby_service_pb2.SeatOffer:
    """The offer of a seat; of the match's seed only the commitment."""
    return lobby_service_pb2.SeatOffer(
        match=setup.match,
        seat=seat,
        epoch=epoch,
        address=address,
        game=f"games/{setup.game}",
        commitment=commitment(setup.seed),
        bots=setup.bots,
        time_control=encode_time_control(setup.time_control),
        options=encode_options(setup.options),
    )


def decode_offer(message: lobby_service_pb2.SeatOffer) -> Offer:
    """The offer as the bot sees it; where the referee is, and its epoch, are the link's business."""
    return Offer(
        match=message.match,
        seat=Seat(message.seat),
        game=message.game.removeprefix("games/"),
        bots=tuple(message.bots),
        options=decode_options(message.options),
        time_control=decode_time_control(message.time_control),
        commitment=message.commitment,
    )
