"""A match as plain text: one step, or the list of all steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatwise.kits import find_kit
from seatwise.kits.frames import SPECTATOR, Frame, SeatTimes, arrange_blocks
from seatwise.replay.match_replay import MatchReplay

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
