"""The process that plays blocks of matches for `seatwise.local.block_pool`.

It is told the plan first, then the numbers of blocks, and answers each with a line.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from seatwise.child_process import told_lines
from seatwise.failures import NewFailures
from seatwise.kits import use_deck_files
from seatwise.local.deal_block import BlockPlan, BlockPlayer
from seatwise.local.matches import LocalWaiter
from seatwise.output import AnswerOutput


def main() -> None:
    """Play until the parent ends."""
    answers, numbers = AnswerOutput(), told_lines()
    plan = BlockPlan.from_json(next(numbers))
    use_deck_files(plan.decks)
    failures = NewFailures()
    with LocalWaiter() as wait:
        player = BlockPlayer(plan, failures, wait)
        for number in numbers:
            told: dict[str, Any] = asdict(player.play_block(number))
            if fault := answers.fault:
                answers.print_line(json.dumps({"fault": [fault.errno, fault.strerror]}))
                return
            answers.print_line(json.dumps({"block": told, "failures": failures.take_new()}))


if __name__ == "__main__":
    main()
