"""The process that plays matches of a league at local tables, for `seatwise_server.league.table_pool`.

It is told the season first, then the matches, and answers each match with a line. It ends with its parent, also while a bot thinks.
"""

from __future__ import annotations

import json
from dataclasses import replace

from seatwise.child_process import told_lines
from seatwise.failures import NewFailures
from seatwise.kits import use_deck_files
from seatwise.local.matches import LocalWaiter
from seatwise.output import AnswerOutput
from seatwise_server.league.local_match import LocalMatches, LocalSeason, scheduled_from_json


def main() -> None:
    """Play until the parent ends."""
    answers, told = AnswerOutput(), told_lines()
    season = LocalSeason.from_json(next(told))
    use_deck_files(season.decks)
    failures = NewFailures()
    with LocalWaiter() as wait:
        matches = LocalMatches(season, failures, wait)
        for scheduled in told:
            outcome = matches.play_match(scheduled_from_json(scheduled))
            outcome = replace(outcome, failures=tuple(failures.take_new()))
            answers.raise_fault()
            answers.print_line(json.dumps(outcome.to_json()))


if __name__ == "__main__":
    main()
