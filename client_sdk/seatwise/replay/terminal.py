"""Steps through a match in a terminal, key by key."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import Final

from seatwise.kits.frames import ALL_OPEN, SPECTATOR, Viewpoint
from seatwise.replay.match_replay import MatchReplay
from seatwise.replay.text import draw_step

HELP: Final = "right/left: step   page down/up: round   home/end: first/last   0-9: seat   a: all   s: spectator   q: quit"

_KEYS: Final = {
    b"\x1b[C": "next", b"\x1bOC": "next", b" ": "next", b"n": "next", b"\r": "next", b"l": "next",
    b"\x1b[D": "back", b"\x1bOD": "back", b"p": "back", b"h": "back", b"\x7f": "back",
    b"\x1b[6~": "next round", b"]": "next round", b"\x1b[5~": "last round", b"[": "last round",
    b"\x1b[H": "first", b"\x1b[1~": "first", b"\x1bOH": "first", b"g": "first",
    b"\x1b[F": "last", b"\x1b[4~": "last", b"\x1bOF": "last", b"G": "last",
    b"a": "all", b"s": "spectator", b"q": "quit", b"\x1b": "quit", b"\x03": "quit", b"\x04": "quit", b"": "quit",
}  # fmt: skip
"""The action of each key, by the bytes that terminals send for it."""


class Stepper:
    """The step and the viewpoint that are shown. It knows no terminal."""

    def __init__(self, read: Callable[[Viewpoint], MatchReplay], viewpoint: Viewpoint, step: int) -> None:
        self._read = read
        self._replays: dict[Viewpoint, MatchReplay] = {}
        self._viewpoint = viewpoint
        self._step = step
        self._go_to(step)

    @property
    def replay(self) -> MatchReplay:
        """The match, seen from the present viewpoint."""
        if self._viewpoint not in self._replays:
            self._replays[self._viewpoint] = self._read(self._viewpoint)
        return self._replays[self._viewpoint]

    def press_key(self, key: bytes) -> bool:
        """Do what the key says. Returns False if it ends the replay. Unknown keys do nothing."""
        action = _KEYS.get(key, "")
        if action == "quit":
            return False
        if key.isdigit() and int(key) < len(self.replay.bots):
            self._viewpoint = int(key)
        elif action in (ALL_OPEN, SPECTATOR):
            self._viewpoint = ALL_OPEN if action == ALL_OPEN else SPECTATOR
        else:
            self._move(action)
        return True

    def _move(self, action: str) -> None:
        starts = [step for step, frame in enumerate(self.replay.frames) if frame.kind in ("dealt", "round")]
        last = len(self.replay.frames) - 1
        moves = {
            "next": self._step + 1,
            "back": self._step - 1,
            "first": 0,
            "last": last,
            "next round": next((step for step in starts if step > self._step), last),
            "last round": next((step for step in reversed(starts) if step < self._step), 0),
        }
        self._go_to(moves.get(action, self._step))

    def _go_to(self, step: int) -> None:
        self._step = max(0, min(len(self.replay.frames) - 1, step))

    def draw_screen(self, columns: int, lines: int) -> str:
        """Return the text of a screen of this size. It is cut at the bottom if the screen is too small."""
        drawn = draw_step(self.replay, self._step, columns).splitlines()
        room = max(1, lines - 2)
        cut = [*drawn[: room - 1], "..."] if len(drawn) > room else drawn
        return "\n".join([*(line[:columns] for line in cut), "", HELP[:columns]])


def run_stepper(stepper: Stepper) -> None:
    """Show the match until the user quits."""
    with _raw_terminal():
        while True:
            size = get_terminal_size()
            screen = stepper.draw_screen(size.columns, size.lines).replace("\n", "\r\n")
            sys.stdout.write(f"\x1b[H\x1b[2J{screen}")
            sys.stdout.flush()
            if not stepper.press_key(_read_key()):
                return


def _read_key() -> bytes:
    """Wait for a key. Terminals send the bytes of one key at once."""
    return os.read(sys.stdin.fileno(), 8)


@contextmanager
def _raw_terminal() -> Iterator[None]:
    """Read keys one by one on a screen of its own, and leave the terminal as it was."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    sys.stdout.write("\x1b[?1049h\x1b[?25l")
    try:
        tty.setraw(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        sys.stdout.write("\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()
