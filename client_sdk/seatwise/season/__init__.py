"""A season bundle: all that a league published, in one file from which its table can be worked out again.

    season.bundle    a zip of
      manifest.json    the format, and SHA-256 of each other file
      settings.json    what the league is
      results.jsonl    the result log, one match a line
      voids.jsonl      matches that counted for nobody, and why
      entrants.jsonl   who was given up and who was let back, and why
      records.jsonl    the records of all matches that count
      standings.json   the table

`read` opens it, `check` says the first thing that is wrong with it. That the table follows from the
results only the server's arithmetic can say; it registers under the entry points `seatwise.seasons`.
"""

from seatwise.season.bundle import FILES, FORMAT, Bundle, is_bundle, opened, written
from seatwise.season.checking import Checked, check
from seatwise.season.fault import BadSeason, at

__all__ = [
    "FILES",
    "FORMAT",
    "BadSeason",
    "Bundle",
    "Checked",
    "at",
    "check",
    "is_bundle",
    "opened",
    "written",
]
