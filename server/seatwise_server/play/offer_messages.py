"""Encodes the offer of a seat, which the lobby delivers to the bot."""

from __future__ import annotations

from seatwise.codec.offer import encode_options, encode_time_control
from seatwise.v1 import lobby_service_pb2
from seatwise_referee.setup import Setup
from seatwise_referee.shuffle import commitment_to


def encode_offer(
    setup: Setup, seat: int, epoch: int, address: str, ws_address: str = ""
) -> lobby_service_pb2.SeatOffer:
    """Returns the offer of a seat. It has the commitment of the match's seed, and never the seed."""
    return lobby_service_pb2.SeatOffer(
        match=setup.match,
        seat=seat,
        epoch=epoch,
        address=address,
        ws_address=ws_address,
        game=f"games/{setup.game}",
        commitment=commitment_to(setup.seed),
        bots=setup.bots,
        time_control=encode_time_control(setup.time_control),
        options=encode_options(setup.options),
    )
