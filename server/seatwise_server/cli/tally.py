"""Computes totals of each bot from a set of records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, ClassVar


@dataclass(slots=True)
class _Row:
    points: list[int] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    timeouts: int = 0
    charged: list[int] = field(default_factory=list)


class Tally:
    """Points, ranks, timeouts and charged time by bot, with the best mean of points first."""

    COLUMNS: ClassVar = ("bot", "matches", "mean points", "mean rank", "timeouts", "charged ms/move")

    def __init__(self, records: Sequence[dict[str, Any]]) -> None:
        self._rows: dict[str, _Row] = defaultdict(_Row)
        for record in records:
            self._add_record(record)

    def _add_record(self, record: dict[str, Any]) -> None:
        bots = [seat["bot"] for seat in record["seats"]]
        for seat, bot in enumerate(bots):
            self._rows[bot].points.append(record["outcome"]["points"][seat])
            self._rows[bot].ranks.append(record["result"]["ranks"][seat])
        for entry in record["entries"]:
            if entry["kind"] == "move":
                self._rows[bots[entry["seat"]]].charged.append(entry["charged_ms"])
            elif entry["kind"] == "called":
                for call in entry["calls"]:
                    self._rows[bots[call["seat"]]].charged.append(call["charged_ms"])
            elif entry["kind"] == "default" and entry["reason"] == "TIMED_OUT":
                for move in entry["moves"]:
                    self._rows[bots[move["seat"]]].timeouts += 1

    def list_rows(self) -> list[dict[str, Any]]:
        """Return a row for each bot as plain values."""
        ordered = sorted(self._rows.items(), key=lambda named: -fmean(named[1].points))
        return [
            {
                "bot": bot,
                "matches": len(row.points),
                "mean_points": fmean(row.points),
                "mean_rank": fmean(row.ranks),
                "timeouts": row.timeouts,
                "charged_ms_per_move": fmean(row.charged or [0]),
            }
            for bot, row in ordered
        ]

    def list_cells(self) -> list[list[str]]:
        """Return the texts of each row for a table with `COLUMNS`."""
        return [
            [
                row["bot"].removeprefix("bots/").replace("/versions/", " v"),
                str(row["matches"]),
                f"{row['mean_points']:.1f}",
                f"{row['mean_rank']:.2f}",
                str(row["timeouts"]),
                f"{row['charged_ms_per_move']:.2f}",
            ]
            for row in self.list_rows()
        ]
