"""Plays one world for each seed and says what was wrong in any of them.

python -m simulation --seeds 200        # seeds 0 to 199, on all cores
python -m simulation --seed 17          # one of them again, exactly, with all that happened in it in simulation-17.log
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from simulation.climates import world_of
from simulation.weather import LONGEST_PATH, PLACES
from simulation.world import Outcome

MOST_SHOWN = 10
"""Of what is wrong in one world."""

sys.unraisablehook = lambda _: None
"""The tasks of those who were killed are thrown away when their world ends, and some of them protest."""


def _parsed(args: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m simulation", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--seeds", type=int, default=20, metavar="N", help="so many worlds (default: %(default)s)"
    )
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first of them")
    parser.add_argument("--seed", type=int, metavar="SEED", help="this one alone, and what happened in it")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: %(default)s)"
    )
    parser.add_argument("--digests", action="store_true", help="show the digest of each world's trace")
    return parser.parse_args(args)


def _outcomes(args: argparse.Namespace) -> Iterator[Outcome]:
    if args.seed is not None:
        yield world_of(args.seed, keeps_log=True)
    elif args.jobs == 1:
        yield from map(world_of, range(args.first, args.first + args.seeds))
    else:
        with ProcessPoolExecutor(args.jobs, get_context("spawn")) as pool:
            yield from pool.map(world_of, range(args.first, args.first + args.seeds))


def _show(outcome: Outcome, *, with_digest: bool) -> None:
    if with_digest:
        print(f"seed {outcome.seed}: {outcome.digest}")
    if outcome.wrongs:
        print(f"\nseed {outcome.seed} ({outcome.climate}): {len(outcome.wrongs)} things are wrong")
        print(*(f"  {wrong}" for wrong in outcome.wrongs[:MOST_SHOWN]), sep="\n")
        print(f"  again: python -m simulation --seed {outcome.seed}", flush=True)


def _sum_up(outcomes: Sequence[Outcome], took_s: float) -> None:
    counts: Counter[str] = sum((outcome.counts for outcome in outcomes), Counter())
    matches = sum(outcome.matches for outcome in outcomes)
    print(f"\n{len(outcomes)} worlds, {matches} matches, {sum(outcome.moves for outcome in outcomes)} acknowledged moves, "
          f"{sum(outcome.virtual_s for outcome in outcomes):.0f} s of their time in {took_s:.0f} s "
          f"({60 * matches / took_s:.0f} matches a minute)")  # fmt: skip
    for what, count in sorted(counts.items()):
        print(f"{count:7d}  {what}")
    struck = set().union(*(outcome.struck for outcome in outcomes))
    print(f"referees were killed at {len(struck)} of {LONGEST_PATH * len(PLACES)} steps behind a move")
    wrong = [outcome.seed for outcome in outcomes if outcome.wrongs]
    print(f"wrong: {len(wrong)} worlds" + (f", seeds {', '.join(map(str, wrong))}" if wrong else ""))


def main() -> int:
    """0 if nothing was wrong."""
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets of texts have another order in every process
        os.execve(
            sys.executable,
            [sys.executable, "-m", "simulation", *sys.argv[1:]],
            os.environ | {"PYTHONHASHSEED": "0"},
        )
    args, began = _parsed(), time.monotonic()
    outcomes = []
    for outcome in _outcomes(args):
        _show(outcome, with_digest=args.digests)
        outcomes.append(outcome)
    if args.seed is not None:
        log = Path(f"simulation-{args.seed}.log")
        log.write_text("\n".join(outcomes[0].log) + "\n")
        print(f"what happened: {log}")
    _sum_up(outcomes, time.monotonic() - began)
    return 1 if any(outcome.wrongs for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
