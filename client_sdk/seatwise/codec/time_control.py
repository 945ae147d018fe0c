"""Encodes and decodes time controls."""

from __future__ import annotations

from dataclasses import fields

from seatwise.v1 import time_control_pb2
from seatwise_referee.time_control import TimeControl

_NUMBER_FIELDS = tuple(each.name for each in fields(TimeControl) if each.name != "free_ms")


def encode_time_control(time_control: TimeControl) -> time_control_pb2.TimeControl:
    """Return the complete message of a time control."""
    numbers = {name: getattr(time_control, name) for name in _NUMBER_FIELDS}
    return time_control_pb2.TimeControl(free_ms=dict(time_control.free_ms), **numbers)


def decode_time_control(message: time_control_pb2.TimeControl) -> TimeControl:
    """Return the time control of a complete message, as in an offer. Raises `BadTimeControl`."""
    numbers = {name: getattr(message, name) for name in _NUMBER_FIELDS}
    return TimeControl(free_ms=dict(message.free_ms), **numbers)
