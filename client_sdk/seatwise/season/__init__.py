"""A season bundle: all that a league published, in one file from which its table can be worked out again.

    season.bundle    a zip of
      manifest.json    the format, and SHA-256 of each other file
      settings.json    what the league is
      results.jsonl    the result log, one match a line
      voids.jsonl      matches that counted for nobody, and why
      entrants.jsonl   who was given up and who was let back, and why
      records.jsonl    the records of all matches that count
      standings.json   the table
      draws.jsonl      the draws of a Swiss tournament; no other format has the file

`open_bundle` opens it, and `check_season` raises `BadSeason` for the first fault, or
`UncheckedSeason` if the game is not installed here. Only the server's arithmetic can check that the
table follows from the results. It registers for that under the entry points `seatwise.seasons`.
"""

from seatwise.season.bundle import (
    BUNDLE_FORMAT,
    DRAWS,
    FILES,
    BadSeason,
    Bundle,
    UncheckedSeason,
    check_keys,
    fault_at,
    is_bundle,
    open_bundle,
    write_bundle,
)
from seatwise.season.checking import CheckedSeason, check_season

check = check_season
opened = open_bundle
"""The names by which earlier versions exported them."""

__all__ = [
    "BUNDLE_FORMAT",
    "DRAWS",
    "FILES",
    "BadSeason",
    "Bundle",
    "CheckedSeason",
    "UncheckedSeason",
    "check",
    "check_keys",
    "check_season",
    "fault_at",
    "is_bundle",
    "open_bundle",
    "opened",
    "write_bundle",
]
