"""Time controls on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from seatwise.v1 import time_control_pb2
from seatwise_referee.time_control import BadTimeControl, TimeControl

_NUMBERS = tuple(each.name for each in fields(TimeControl) if each.name != "free_ms")


def encode_time_control(time_control: TimeControl) -> time_control_pb2.TimeControl:
    """The message, complete."""
    numbers = {name: getattr(time_control, name) for name in _NUMBERS}
    return time_control_pb2.TimeControl(free_ms=dict(time_control.free_ms), **numbers)


def decode_time_control(message: time_control_pb2.TimeControl) -> TimeControl:
    """The time control of a complete message, as in an offer. Or `BadTimeControl`."""
    numbers = {name: getattr(message, name) for name in _NUMBERS}
    return TimeControl(free_ms=dict(message.free_ms), **numbers)


def requested_time_control(
    message: time_control_pb2.TimeControl, paces: Mapping[str, int], default: TimeControl | None = None
) -> TimeControl:
    """The time control that a request asks for: what it does not set has its default. Or `BadTimeControl`.

    `paces` are the game's own, with their default free times; of a free time 0 means the default too.
    """
    unknown = sorted(set(message.free_ms) - set(paces))
    if unknown:
        raise BadTimeControl(
            f"free_ms has no pace {unknown[0][:20]!r} in this game; there are {', '.join(paces)}"
        )
    base = default or TimeControl()
    numbers = {name: getattr(message if message.HasField(name) else base, name) for name in _NUMBERS}
    free_ms = {
        pace: message.free_ms.get(pace, 0) or base.free_ms.get(pace, usual) for pace, usual in paces.items()
    }
    return TimeControl(free_ms=free_ms, **numbers)
