"""The record that docs/record-format.md shows: a short match in which a little of everything happens.

Run it to write the file again: PYTHONPATH=tests python -m matches.example_record
"""

from __future__ import annotations

from pathlib import Path

from matches.one_match import Desk
from seatwise_referee.game import Seat

FILE = Path(__file__).parents[1] / "referee" / "data" / "example-record.jsonl"


def example() -> Desk:
    """Two seats, one round: an illegal move, a standstill of ours, a time-out, no nonce from seat 1."""
    desk = Desk(2, 1, name="matches/example", increment_ms=5, tie_window_ms=5)
    desk.sit(0)
    desk.now = 31
    desk.do(desk.match.sit(Seat(1), None, desk.now))
    for step in range(60):
        if desk.match.is_over:
            break
        _ask(desk, step)
        _answer(desk, step)
    return desk


def _ask(desk: Desk, step: int) -> None:
    desk.now += 1
    desk.hand(allowance_ms=2 + desk.asked)
    desk.now += 4 + step * 7 % 11


def _answer(desk: Desk, step: int) -> None:
    if step == 2:
        desk.submit_illegal()
        desk.now += 6
    elif step == 4:
        desk.now += 480
        desk.do(desk.match.note_standstill(460, "STALL", desk.now))
    elif step == 6:
        desk.now += 1200  # out of the bank
    elif step == 9:
        desk.now += 2000
        desk.tick()
        return
    moves = list(desk.match.game.legal_moves(desk.match.position.state, desk.asked))
    desk.submit(moves[step * 5 % len(moves)])


if __name__ == "__main__":
    FILE.write_bytes(example().line())
