"""The process that plays blocks of matches for `seatwise.block_pool`.

It reads lines of JSON from standard input and answers each with a line: first the plan, then the numbers of blocks. It ends when
standard input closes, so none is left behind when its parent dies.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import asdict
from typing import Any, TextIO

from seatwise.cli.decks import use_deck_files
from seatwise.deal_block import BlockPlan, BlockPlayer
from seatwise.failures import NewFailures
from seatwise.local import LocalWaiter


def main() -> None:
    """Play until standard input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    answers = take_standard_output()
    plan = BlockPlan.from_json(json.loads(sys.stdin.readline()))
    use_deck_files(plan.decks)
    failures = NewFailures()
    with LocalWaiter() as wait:
        player = BlockPlayer(plan, failures, wait)
        for line in sys.stdin:
            told: dict[str, Any] = asdict(player.play_block(int(line)))
            print(json.dumps({"block": told, "failures": failures.take_new()}), file=answers, flush=True)


def take_standard_output() -> TextIO:
    """Return standard output for the answers. The output of the bots goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    main()
