"""The process that plays blocks of matches for `seatwise.block_pool`.

It reads lines of JSON from standard input and answers each with a line: first the plan, then the numbers of blocks. It ends when
standard input closes, so none is left behind when its parent dies.
"""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import asdict
from typing import Any

from seatwise.cli.decks import use_deck_files
from seatwise.cli.output import AnswerOutput
from seatwise.deal_block import BlockPlan, BlockPlayer
from seatwise.failures import NewFailures
from seatwise.local import LocalWaiter


def main() -> None:
    """Play until standard input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    answers = AnswerOutput()
    plan = BlockPlan.from_json(json.loads(sys.stdin.readline()))
    use_deck_files(plan.decks)
    failures = NewFailures()
    with LocalWaiter() as wait:
        player = BlockPlayer(plan, failures, wait)
        for line in sys.stdin:
            told: dict[str, Any] = asdict(player.play_block(int(line)))
            if fault := answers.fault:
                answers.print_line(json.dumps({"fault": [fault.errno, fault.strerror]}))
                return
            answers.print_line(json.dumps({"block": told, "failures": failures.take_new()}))


if __name__ == "__main__":
    main()
