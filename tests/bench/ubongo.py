"""Ubongo: rounds a second with many matches at once against a real server, and what the solver takes.

python tests/bench/ubongo.py [--quick] [--data FOLDER]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import runs
import table
from table import Row

from seatwise.samples.ubongo_solver import measure_hands
from seatwise_referee.games.ubongo import ROUNDS

MATCHES = 64
SECONDS, HANDS = 6.0, 1000
QUICK_SECONDS, QUICK_HANDS = 3.0, 100


def rows(seconds: float = SECONDS, hands: int = HANDS, data: Path | None = None) -> list[Row]:
    """For the table of the bench."""
    return [*_of_the_server(seconds, data), *_of_the_solver(hands)]


def _of_the_server(seconds: float, data: Path | None) -> list[Row]:
    heard = runs.builders(seconds, MATCHES, data)
    if heard["rejections"]:
        print(f"Note: moves of Ubongo were rejected: {heard['rejections'][0]}.")
    server_us, redis_us, _ = heard["cpu_us"]
    return [
        Row(f"Ubongo, rounds with {MATCHES} matches", heard["rate"], "rounds/s"),
        Row("Ubongo, server CPU per round of four seats", server_us / 1000, "ms"),
        Row("Ubongo, embedded Redis CPU per round", redis_us / 1000, "ms"),
        Row("Ubongo, p50 from the first call to the next round", heard["p50_ms"], "ms"),
        Row("Ubongo, p99 from the first call to the next round", heard["p99_ms"], "ms"),
        Row(f"Ubongo, matches at the table, of {MATCHES}", heard["matches"]),
    ]


def _of_the_solver(hands: int) -> list[Row]:
    """By the side of the deck that is up."""
    found = []
    for number in range(1, ROUNDS + 1):
        figures = measure_hands(number, hands)
        found.append(Row(f"solver, hands of round {number} with seven", 100 * figures.solved / hands, "%"))
        found.append(Row(f"solver, round {number}, median", figures.median_ms, "ms"))
        found.append(Row(f"solver, round {number}, p95", figures.p95_ms, "ms"))
    return found


def main() -> None:
    """This part of the bench alone."""
    parser = argparse.ArgumentParser(description="Rounds of Ubongo a second, and the solver's figures.")
    parser.add_argument("--quick", action="store_true", help="a few seconds")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="where the server keeps its data")
    args = parser.parse_args()
    quick = (QUICK_SECONDS, QUICK_HANDS) if args.quick else (SECONDS, HANDS)
    table.show(rows(*quick, args.data))


if __name__ == "__main__":
    main()
