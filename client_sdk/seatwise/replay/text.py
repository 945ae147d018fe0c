"""A match as plain text: one step, the list of all steps, and steps in a terminal, key by key."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import Final

from seatwise.kits import find_kit
from seatwise.kits.frames import ALL_OPEN, SPECTATOR, Frame, SeatTimes, Viewpoint, arrange_blocks
from seatwise.replay.frame_builder import MatchReplay

MS_PER_S = 1000


def draw_step(replay: MatchReplay, step: int, columns: int) -> str:
    """Return the position after a step, with its sentence, the times of the seats, and the hint."""
    frame = replay.frames[step]
    kit = find_kit(replay.game)
    drawn = kit.load_frame_writer().draw_text(frame, replay.names)
    lines = [
        f"{replay.match}  {kit.title}  step {step} of {len(replay.frames) - 1}, {_describe_viewpoint(replay)}",
        frame.says,
        *([f"Hint: {hint}."] if (hint := describe_hints(frame, replay.names)) else []),
        "",
        arrange_blocks(drawn, columns),
        "",
        *_describe_times(frame, replay.names),
    ]
    return "\n".join(lines).rstrip()


def list_steps(replay: MatchReplay) -> Iterator[str]:
    """Yield a line for each step: its number, its longest charge, and its sentence. A star marks a move that is no hint's."""
    for step, frame in enumerate(replay.frames):
        charges = [move.charged_ms for move in frame.moves if move.charged_ms is not None]
        charged = format_span(max(charges)) if charges else ""
        mark = "*" if frame.is_other_than_hint else " "
        hint = describe_hints(frame, replay.names)
        yield f"{step:>4}{mark} {charged:>8}  {frame.says}{f'  [{hint}]' if hint else ''}"


def describe_hints(frame: Frame, names: Sequence[str]) -> str:
    """Return the hints of all seats as one text; "" if there are none."""
    named = zip(names, frame.hints, strict=bool(frame.hints))
    return "; ".join(f"for {name}: {hint}" for name, hint in named if hint)


def format_span(ms: int) -> str:
    """Return a span of milliseconds for people.

    >>> format_span(234), format_span(1234)
    ('234 ms', '1.2 s')
    """
    return f"{ms} ms" if ms < MS_PER_S else f"{ms / MS_PER_S:.1f} s"


def _describe_viewpoint(replay: MatchReplay) -> str:
    if isinstance(replay.viewpoint, int):
        return f"seen from seat {replay.viewpoint} ({replay.names[replay.viewpoint]})"
    return "seen by a spectator" if replay.viewpoint == SPECTATOR else "all hands open"


def _describe_times(frame: Frame, names: tuple[str, ...]) -> Iterator[str]:
    for name, times, left in zip(names, frame.times, frame.left, strict=True):
        if times:
            yield f"{name}: {_describe_seat_times(times)}{f', left: {left}' if left else ''}"


def _describe_seat_times(times: SeatTimes) -> str:
    said = [
        f"thought {format_span(times.used_ms)}",
        f"longest {format_span(times.longest_ms)}",
        f"bank {format_span(times.bank_ms)}",
    ]
    if times.strikes:
        said.append(f"time-outs: {times.strikes}")
    if times.rejections:
        said.append(f"illegal moves: {times.rejections}")
    return ", ".join(said)


# Steps through a match in a terminal, key by key


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
            if not stepper.press_key(os.read(sys.stdin.fileno(), 8)):  # terminals send a key's bytes at once
                return


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
