"""The process that plays matches of a league at local tables, for `seatwise_server.league.table_pool`.

It reads lines of JSON from standard input and answers each but the first with a line: first the season, then the matches. It ends
with its parent, also while a bot thinks.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from queue import SimpleQueue
from threading import Thread

from seatwise.cli.decks import use_deck_files
from seatwise.cli.output import AnswerOutput
from seatwise.failures import NewFailures
from seatwise.local import LocalWaiter
from seatwise_server.league.local_match import LocalMatches, LocalSeason, scheduled_from_json


def main() -> None:
    """Play until standard input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    answers = AnswerOutput()
    lines = _read_lines()
    season = LocalSeason.from_json(json.loads(next(lines)))
    use_deck_files(season.decks)
    failures = NewFailures()
    with LocalWaiter() as wait:
        matches = LocalMatches(season, failures, wait)
        for line in lines:
            outcome = matches.play_match(scheduled_from_json(json.loads(line)))
            outcome = replace(outcome, failures=tuple(failures.take_new()))
            answers.raise_fault()
            answers.print_line(json.dumps(outcome.to_json()))


def _read_lines() -> Iterator[str]:
    lines: SimpleQueue[str] = SimpleQueue()
    Thread(target=_forward_lines, args=(lines,), daemon=True).start()
    while True:
        yield lines.get()


def _forward_lines(lines: SimpleQueue[str]) -> None:
    for line in sys.stdin:
        lines.put(line)
    os.killpg(0, signal.SIGKILL)  # with all processes that bots have started


if __name__ == "__main__":
    main()
