"""Works out strengths, in a process of its own: it takes seconds for some hundred bots, and no referee may wait for it.

Each line of standard input is JSON. {"ladder", "after", "results"} tells of more results; {"ladder", "order"} asks for the
strengths, and whom those next to each other in this order cannot be told apart from. Standard input is also the leash: when
the server dies, however it dies, the pipe closes and this ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.ratings.strengths import Strength, StrengthFit, fit_strengths

PEER_PLACES = 10
"""How many places up and down those are looked for whom a bot cannot be told apart from."""
WORKER_NICENESS = 10

StrengthsByBot = dict[str, list[Any]]
"""By bot: strength, low, high, provisional, peers."""


def main() -> None:
    """Answers until there is nobody who asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then lets go
    os.nice(WORKER_NICENESS)
    with suppress(BrokenPipeError):
        _serve_requests()


def _serve_requests() -> None:
    logs: dict[str, list[LoggedResult]] = {}
    for line in sys.stdin:
        told = json.loads(line)
        log = logs.setdefault(told["ladder"], [])
        if "results" in told:
            log[told["after"] :] = map(LoggedResult.from_json, told["results"])
        else:
            print(json.dumps(strengths_by_bot(log, told["order"])), flush=True)


def strengths_by_bot(log: Sequence[LoggedResult], order: Sequence[str]) -> StrengthsByBot:
    """The strengths by these results, for a table in this order."""
    fitted = fit_strengths(log)
    known = {strength.bot: strength for strength in fitted.strengths}
    rows = [known[bot] for bot in order if bot in known]
    return {each.bot: [each.value, each.low, each.high, each.provisional, _indistinct_neighbours(fitted, rows, place)]
            for place, each in enumerate(rows)}  # fmt: skip


def _indistinct_neighbours(fitted: StrengthFit, rows: Sequence[Strength], place: int) -> list[str]:
    """Neighbours in the table of whom nobody can say yet which is the stronger."""
    near = [*rows[max(0, place - PEER_PLACES) : place], *rows[place + 1 : place + 1 + PEER_PLACES]]
    differences = ((other.bot, fitted.strength_difference(rows[place].bot, other.bot)) for other in near)
    return [bot for bot, found in differences if found.low <= 0 <= found.high]


if __name__ == "__main__":
    main()
