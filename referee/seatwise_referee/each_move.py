"""The compiled parts of modules that are interpreted, because they take values from outside: each move needs these parts."""

from __future__ import annotations


def bank_after(free_ms: int, increment_ms: int, bank_ms: int, charged_ms: int) -> int:
    """Return what a seat's bank has left after a move in time; see `TimeControl.bank_after`."""
    over_ms = charged_ms - free_ms
    left_ms = bank_ms if over_ms <= 0 else max(0, bank_ms - over_ms)
    return left_ms + increment_ms


def encode_moved(
    allowance_ms: int, asked_ms: int, at_ms: int, charged_ms: int,
    move: str, prompt: int, seat: int, seq: int, request_id: str,
) -> bytes:  # fmt: skip  # as it reads below
    """Return a `Moved` as the store holds it; `move` and `request_id` are JSON already."""
    return (
        f'{{"allowance_ms":{allowance_ms},"asked_ms":{asked_ms},"at_ms":{at_ms},"charged_ms":{charged_ms},"kind":"move",'
        f'"move":{move},"prompt":{prompt},"seat":{seat},"seq":{seq}}}\t{{"request_id":{request_id}}}'
    ).encode()
