"""Logs how long each answer took by the bot's own clock, as lines of JSON, for comparison with the referee's charges."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seatwise.link.pending_prompt import PendingPrompt
from seatwise.link.referee_link import SeatKey

_log = logging.getLogger("seatwise.times")
_log.propagate = False
_log.setLevel(logging.CRITICAL)


@contextmanager
def write_times_to(file: Path) -> Iterator[None]:
    """Append the time of every answer of this process to the file, as long as the context lasts."""
    handler = logging.FileHandler(file, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(message)s"))
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
    try:
        yield
    finally:
        _log.setLevel(logging.CRITICAL)
        _log.removeHandler(handler)
        handler.close()


def log_answer_time(key: SeatKey, pending: PendingPrompt) -> None:
    """Log the time of the answer that the bot has just given."""
    if _log.isEnabledFor(logging.INFO):
        match, seat = key
        told = {
            "match": match,
            "seat": seat,
            "prompt": pending.prompt,
            "thought_ms": round(pending.thought_ms, 3),
        }
        _log.info(json.dumps(told))
