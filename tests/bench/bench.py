"""`make bench`: what the server costs, as ratios within one run against a bare echo. See docs/benchmarks.md.

python tests/bench/bench.py [--quick] [--data FOLDER] [--results FILE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import crowd
import doors
import flood_charges
import ladders
import league
import offline
import pair
import peers
import python_build
import readers
import rest
import rest_bots
import rules
import runs
import sdk_moves
import seating
import storm
import table
import table_alone
import takeover
import ubongo
import wrong_games
from progress import Step, progress
from runs import Window
from table import Row, at_least, at_most

SPADES = "spades"
RATE = 3000
"""Moves offered a second where latencies are compared."""
DELIVERED = 0.95
"""A load that comes to less than this part of the rate was not the load that was asked for."""
SDK_BOT_US = 170
"""CPU of a move of a bot of the SDK, in microseconds, at most."""
MEMORY = Path("/dev/shm")
"""A file system in memory, where there is one: what the same costs without a disk."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How long to look, and how often."""

    passes: int
    seconds: float
    rules_seconds: float


FULL = Plan(passes=3, seconds=4, rules_seconds=2)
QUICK = Plan(passes=1, seconds=3, rules_seconds=1)


@dataclass(slots=True)
class Pass:
    """Each measure once, one soon after the other, so that their ratios hold on a machine that is shared."""

    echo: Window
    few: Window
    echo_beside: Window
    """The echo, paced at the rate of moves that `few` came to."""
    many: Window
    unkept: Window
    paced_echo: Window
    paced: Window
    paced_in_memory: Window | None
    ugo: float
    open_spiel: dict[str, float]
    fdatasync_ms: float


STEPS_OF_A_PASS = 9 if MEMORY.is_dir() else 8


def one_pass(plan: Plan, data: Path | None, step: Step) -> Pass:
    """All measures that are compared with one another."""
    step("echo, as fast as it goes")
    echo = runs.echo(plan.seconds)
    step("64 matches, as fast as they go")
    few = runs.matches(plan.seconds, 64, data=data)
    step("echo, at the rate of those moves")
    echo_beside = runs.echo(plan.seconds, few.rate)
    step("256 matches, as fast as they go")
    many = runs.matches(plan.seconds, 256, data=data)
    step("64 matches, appends answered at once")
    unkept = runs.matches(plan.seconds, 64, journal="none", data=data)
    step(f"echo, {RATE} a second")
    paced_echo = runs.echo(plan.seconds, RATE)
    step(f"64 matches, {RATE} moves a second")
    paced = runs.matches(plan.seconds, 64, RATE, data=data)
    in_memory = None
    if MEMORY.is_dir():
        step(f"64 matches, {RATE} moves a second, journal in memory")
        in_memory = runs.matches(plan.seconds, 64, RATE, data=MEMORY)
    step("the rules alone")
    ugo = rules.ugo(plan.rules_seconds)
    beside = open_spiel(plan.rules_seconds)
    return Pass(
        echo, few, echo_beside, many, unkept, paced_echo, paced, in_memory, ugo, beside, runs.fdatasync_ms(data)
    )  # fmt: skip


def open_spiel(seconds: float) -> dict[str, float]:
    """Moves a second by name; nothing where OpenSpiel is not installed."""
    try:
        return {name: rules.open_spiel(name)(seconds) for name in rules.OPEN_SPIEL}
    except ImportError:
        return {}


def rows_of(passes: Sequence[Pass]) -> list[Row]:
    """The table of docs/benchmarks.md, as medians over the passes; ratios are taken within a pass."""
    return [*_with_bars(passes), *_of_open_spiel(passes), *_for_information(passes), *_in_memory(passes)]


def _mid(passes: Sequence[Pass], figure: Callable[[Pass], float]) -> float:
    return median(map(figure, passes))


def _with_bars(passes: Sequence[Pass]) -> list[Row]:
    mid = partial(_mid, passes)
    return [
        at_least("share of echo, 64 matches", mid(lambda it: it.echo.server_us / it.few.server_us), 0.45),
        at_least("share of echo, 256 matches", mid(lambda it: it.echo.server_us / it.many.server_us), 0.75),
        at_most(
            "cost of the journal in CPU per move",
            mid(lambda it: 100 * (it.few.server_us / it.unkept.server_us - 1)),
            20,
            "%",
        ),
        at_most(
            f"p50 at {RATE} moves/s, times the echo's",
            mid(lambda it: it.paced.p50_ms / it.paced_echo.p50_ms),
            2.5,
            "x",
        ),
        at_most(
            f"p99 at {RATE} moves/s, times the echo's",
            mid(lambda it: it.paced.p99_ms / it.paced_echo.p99_ms),
            4,
            "x",
        ),
        at_least("rules of UGO!, one core", mid(lambda it: it.ugo), 200_000, "moves/s"),
    ]


def _of_open_spiel(passes: Sequence[Pass]) -> list[Row]:
    """None where it is not installed."""
    found = [
        Row(f"OpenSpiel's {name}, one core", median(it.open_spiel[name] for it in passes), "moves/s")
        for name in passes[0].open_spiel
    ]
    if SPADES in passes[0].open_spiel:
        share = median(it.ugo / it.open_spiel[SPADES] for it in passes)
        found.append(at_least("rules of UGO!, beside OpenSpiel's spades", share, 0.45, "x"))
    return found


def _for_information(passes: Sequence[Pass]) -> list[Row]:
    mid = partial(_mid, passes)
    return [
        Row("server CPU per echo", mid(lambda it: it.echo.server_us), "us"),
        Row(
            "share of an echo at the same rate, 64 matches",
            mid(lambda it: it.echo_beside.server_us / it.few.server_us),
        ),
        Row("server CPU per durable move, 64 matches", mid(lambda it: it.few.server_us), "us"),
        Row("server CPU per durable move, 256 matches", mid(lambda it: it.many.server_us), "us"),
        Row("embedded Redis CPU per durable move, 64 matches", mid(lambda it: it.few.redis_us), "us"),
        Row("embedded Redis CPU per durable move, 256 matches", mid(lambda it: it.many.redis_us), "us"),
        Row("durable moves, 64 matches", mid(lambda it: it.few.rate), "moves/s"),
        Row("durable moves, 256 matches", mid(lambda it: it.many.rate), "moves/s"),
        Row("matches at the table, of 64", mid(lambda it: it.few.matches)),
        Row("matches at the table, of 256", mid(lambda it: it.many.matches)),
        Row("fdatasync of 4 kB on this disk", mid(lambda it: it.fdatasync_ms), "ms"),
        Row(f"echo p50 at {RATE}/s", mid(lambda it: it.paced_echo.p50_ms), "ms"),
        Row(f"echo p99 at {RATE}/s", mid(lambda it: it.paced_echo.p99_ms), "ms"),
        Row(f"p50 at {RATE} moves/s", mid(lambda it: it.paced.p50_ms), "ms"),
        Row(f"p99 at {RATE} moves/s", mid(lambda it: it.paced.p99_ms), "ms"),
    ]


def _in_memory(passes: Sequence[Pass]) -> list[Row]:
    found = [(it.paced_in_memory, it.paced_echo) for it in passes if it.paced_in_memory]
    if not found:
        return []
    return [
        Row("the same p50, times the echo's, journal in memory",
            median(it.p50_ms / echo.p50_ms for it, echo in found), "x"),
        Row("the same p99, times the echo's, journal in memory",
            median(it.p99_ms / echo.p99_ms for it, echo in found), "x"),
    ]  # fmt: skip


PARTS = (
    "the tables alone",
    "Ubongo with 64 matches, and its solver",
    "gRPC and WebSocket side by side",
    "calls to Redis for a match",
    "self-play and verification",
    "two referees beside one",
    "takeovers",
    "bots that all come back at once",
    "thousands of matches at a slow pace",
    "charges in a flood of connections",
    "matches beside readers",
    "matches beside wrong games from outside",
    "requests over HTTP beside gRPC",
    "bots over HTTP beside gRPC",
    "what a move costs a bot",
    "a league of local bots",
    "a ladder's arithmetic",
    "Colyseus and boardgame.io",
)


def other_rows(data: Path | None, step: Step, *, quick: bool) -> list[Row]:
    """What is measured once, and stands for itself; each part is a program of its own too."""
    brief = (ubongo.QUICK_SECONDS, ubongo.QUICK_HANDS) if quick else (ubongo.SECONDS, ubongo.HANDS)
    parts: tuple[Callable[[], list[Row]], ...] = (
        lambda: table_alone.rows(quick=quick),
        lambda: ubongo.rows(*brief, data),
        lambda: doors.rows(quick=quick, data=data),
        lambda: seating.rows(quick=quick),
        lambda: offline.rows(quick=quick),
        lambda: pair.rows(quick=quick, data=data),
        lambda: takeover.rows(quick=quick, data=data),
        lambda: storm.rows(quick=quick, data=data),
        lambda: crowd.rows(quick=quick, data=data),
        lambda: flood_charges.rows(quick=quick, data=data),
        lambda: readers.rows(quick=quick, data=data),
        lambda: wrong_games.rows(quick=quick, data=data),
        lambda: rest.rows(quick=quick, data=data),
        lambda: rest_bots.rows(quick=quick, data=data),
        lambda: sdk_moves.rows(quick=quick),
        league.rows,
        ladders.rows,
        lambda: peers.rows(quick=quick, data=data),
    )
    rows = []
    for name, part in zip(PARTS, parts, strict=True):
        step(name)
        rows += part()
    return rows


def remarks_of(passes: Sequence[Pass]) -> list[str]:
    """What a reader of the table must know."""
    windows = [window for it in passes for window in (it.echo, it.few, it.many, it.paced)]
    remarks = []
    other_cores = max(window.other_cores for window in windows)
    if other_cores > 0.2:
        remarks.append(
            f"other processes had up to {other_cores:.1f} cores meanwhile: take the ratios, not the times"
        )
    slowest = min(it.paced.rate for it in passes)
    if slowest < DELIVERED * RATE:
        remarks.append(
            f"only {slowest:,.0f} of {RATE:,} moves a second came to pass where latencies were measured"
        )
    rejected = [text for window in windows for text in window.rejections]
    if rejected:
        remarks.append(f"moves were rejected: {rejected[0]}")
    if not passes[0].open_spiel:
        remarks.append(
            "OpenSpiel is not installed (pip install -e '.[bench]'), so nothing stands beside the rules"
        )
    return remarks


def main() -> None:
    """Measures, shows, writes. A missed bar is told, it is no failure."""
    parser = argparse.ArgumentParser(description="What the server costs, beside a bare echo.")
    parser.add_argument("--quick", action="store_true", help="once instead of three times: about ten minutes")
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="where the servers keep their data for a while"
    )
    parser.add_argument("--results", type=Path, default=Path("bench-results.json"), metavar="FILE")
    args = parser.parse_args()
    plan = QUICK if args.quick else FULL
    began = time.monotonic()
    with progress(plan.passes * STEPS_OF_A_PASS + 1 + len(PARTS)) as step:
        passes = [one_pass(plan, args.data, step) for _ in range(plan.passes)]
        step("bots of the SDK")
        sdk_rate, sdk_us = runs.sdk_bots(plan.seconds)
        others = other_rows(args.data, step, quick=args.quick)
    rows = [
        *rows_of(passes),
        Row("bots of the SDK, all processes on this machine", sdk_rate, "moves/s"),
        table.at_most("CPU of such a bot per move", sdk_us, SDK_BOT_US, "us"),
        *others,
    ]
    table.show(rows)
    print(python_build.describe_python())
    for remark in remarks_of(passes):
        print(f"Note: {remark}.")
    table.write(rows, args.results)
    print(f"Medians of {plan.passes}, in {time.monotonic() - began:.0f} s. As JSON: {args.results}")


if __name__ == "__main__":
    main()
