"""A match that one can look at: a record, or the journal of a match so far, as positions that any program can draw.

    from seatwise.replay import read_replay

    replay = read_replay(line_of_a_records_file)
    for frame in replay.frames:
        print(frame.says)

`docs/bot-guide.md` says what `seatwise replay` does with it.
"""

from seatwise.kits.frames import ALL_OPEN, SPECTATOR, Frame, OpenedHands, PlayedMove, SeatTimes, Viewpoint
from seatwise.replay.frame_builder import (
    FrameBuilder,
    MatchReplay,
    build_frames,
    build_replay,
    charges_in,
    read_replay,
)

__all__ = [
    "ALL_OPEN",
    "SPECTATOR",
    "Frame",
    "FrameBuilder",
    "MatchReplay",
    "OpenedHands",
    "PlayedMove",
    "SeatTimes",
    "Viewpoint",
    "build_frames",
    "build_replay",
    "charges_in",
    "read_replay",
]
