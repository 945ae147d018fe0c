"""Fits strengths in a process of its own: for a hundred bots it takes seconds, too long for an event loop.

It is told {"ladder", "after", "results"}, which adds results after the first `after`, and {"ladder"}, which asks for the
strengths, and for the neighbours in the table that cannot be distinguished. The answer also says what it has cost, in seconds of CPU
time: the server asks again after a multiple of it. So the process has a small share of a core, of normal priority: with a lower
one no table appeared for minutes on a busy machine.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from typing import Any

from seatwise.child_process import told_lines
from seatwise.output import AnswerOutput
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.ratings.strengths import Strength, StrengthFit, fit_strengths
from seatwise_server.ladder.bot_form import rated_results

PEER_PLACES = 10
"""The number of neighbours in the table, on each side, with which a bot is compared."""
StrengthsByBot = dict[str, list[Any]]
"""By bot in the order of the table: strength, low, high, provisional, peers."""


def main() -> None:
    """Answer requests until the server ends."""
    os.environ.setdefault(
        "OPENBLAS_NUM_THREADS", "1"
    )  # numpy would start a thread for each core, and use none
    answers = AnswerOutput()
    logs: dict[str, list[LoggedResult]] = {}
    for message in told_lines():
        log = logs.setdefault(message["ladder"], [])
        if "results" in message:
            log[message["after"] :] = map(LoggedResult.from_json, message["results"])
        else:
            began = time.process_time()
            found = strengths_by_bot(log)
            answers.print_line(json.dumps({"strengths": found, "cpu_s": time.process_time() - began}))


def strengths_by_bot(log: Sequence[LoggedResult]) -> StrengthsByBot:
    """Return the strengths by those of these results that are rated. The intervals hold at every look, because the log grows."""
    fitted = fit_strengths(rated_results(log)).widen_for_every_look()
    rows = sorted(fitted.strengths, key=lambda each: (-each.table_value, each.bot))
    return {each.bot: [each.value, each.low, each.high, each.provisional, _indistinct_neighbours(fitted, rows, place)]
            for place, each in enumerate(rows)}  # fmt: skip


def _indistinct_neighbours(fitted: StrengthFit, rows: Sequence[Strength], place: int) -> list[str]:
    """Return the neighbours in the table that the results do not distinguish from this bot, at whatever look."""
    near = [*rows[max(0, place - PEER_PLACES) : place], *rows[place + 1 : place + 1 + PEER_PLACES]]
    own = rows[place].bot
    return [other.bot for other in near if not fitted.excludes_equality(own, other.bot)]


if __name__ == "__main__":
    main()
