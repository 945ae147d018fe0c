"""Servers of others beside ours: the CPU of a move, beside Colyseus and beside boardgame.io. Needs Node and its packages.

python tests/bench/peers.py [--quick]

All play matches of four seats with hidden hands and about 200 moves, as fast as they go, in windows from the middle of a
match to the middle of the next. The peers play a simpler game (`peers/game.mjs`). They write each move to a Redis like ours, and
Colyseus awaits that before it tells the next seat, as ours does.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import runs
from processes import HERE
from runs import Window
from table import Row, at_most, not_measured, show

COLYSEUS_MATCHES = 256
BOARDGAME_MATCHES = 128
BARS = {"gRPC": 2.2, "WebSocket": 1.7}
"""Our CPU a move with its Redis, in Colyseus's."""
BOARDGAME_BAR = 0.3
SECONDS = 4.0
MOVES, PEERS_MOVES = 200, 208
"""Of a match: a window goes from the middle of each to the middle of the next."""
PASSES, QUICK_PASSES = 3, 1
INSTALL_WITHIN_S = 180
INSTALL = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")

KEEPS_NOTHING = "Colyseus that keeps nothing"

Series = dict[str, Window]
"""One pass over all of them, by name."""


@contextmanager
def installed() -> Iterator[tuple[Path, str]]:
    """A folder for a while, with the servers of the peers and their packages, and why they cannot be had if they cannot."""
    with TemporaryDirectory(prefix="seatwise-bench-") as name:
        folder = Path(name) / "peers"
        shutil.copytree(HERE / "peers", folder)
        yield folder, _install(folder)


def _install(folder: Path) -> str:
    """What is missing; nothing if all is there."""
    if not shutil.which("node") or not shutil.which("npm"):
        return "Node 18 or later and npm"
    try:
        done = subprocess.run(
            INSTALL, cwd=folder, check=False, capture_output=True, text=True, timeout=INSTALL_WITHIN_S
        )
    except subprocess.TimeoutExpired:
        return f"npm to install its packages within {INSTALL_WITHIN_S} s"
    said = [
        line.removeprefix("npm error ") for line in done.stderr.splitlines() if line.startswith("npm error ")
    ]
    return f"packages that npm did not install ({', '.join(said[:2])})" if done.returncode else ""


def one_series(folder: Path, data: Path | None) -> Series:
    """Each soon after the one that it is compared with."""

    def peer(what: str, count: int, *, is_durable: bool = True) -> Window:
        command = ("node", str(folder / f"{what}.mjs"))
        cycle = ("--cycle", PEERS_MOVES)
        return runs.peer(what, command, SECONDS, count, cycle, is_durable=is_durable)

    def ours(count: int, *, by_websocket: bool = False) -> Window:
        extra = ("--cycle", MOVES)
        return runs.matches(SECONDS, count, data=data, by_websocket=by_websocket, extra=extra)

    return {
        "gRPC": ours(COLYSEUS_MATCHES),
        "Colyseus": peer("colyseus", COLYSEUS_MATCHES),
        "WebSocket": ours(COLYSEUS_MATCHES, by_websocket=True),
        KEEPS_NOTHING: peer("colyseus", COLYSEUS_MATCHES, is_durable=False),
        f"gRPC, {BOARDGAME_MATCHES}": ours(BOARDGAME_MATCHES),
        "boardgame.io": peer("boardgame", BOARDGAME_MATCHES),
        f"WebSocket, {BOARDGAME_MATCHES}": ours(BOARDGAME_MATCHES, by_websocket=True),
    }


def us(window: Window) -> float:
    """CPU of a move in microseconds, with that of Redis where there is one."""
    return window.server_us + window.redis_us


def _ratio(series: Sequence[Series], ours: str, peer: str) -> float:
    return median(us(each[ours]) / us(each[peer]) for each in series)


def rows(*, quick: bool = False, data: Path | None = None) -> list[Row]:
    """For the table: medians of ratios within a pass, then the figures behind them; or what is missing."""
    with installed() as (folder, missing):
        if missing:
            return [not_measured(name, missing) for name in WITH_BARS]
        try:
            series = [one_series(folder, data) for _ in range(QUICK_PASSES if quick else PASSES)]
        except RuntimeError as error:
            return [not_measured(name, f"a run without this: {str(error)[-200:]!r}") for name in WITH_BARS]
    return [*_ratios(series), *_figures(series)]


def _beside_colyseus(door: str) -> str:
    return f"CPU a move with its Redis, beside durable Colyseus, {COLYSEUS_MATCHES} matches, {door}"


def _beside_boardgame(door: str) -> str:
    return f"CPU a move with its Redis, beside durable boardgame.io, {BOARDGAME_MATCHES} matches, {door}"


WITH_BARS = [name(door) for name in (_beside_colyseus, _beside_boardgame) for door in BARS]


def _ratios(series: Sequence[Series]) -> list[Row]:
    found = [
        at_most(_beside_colyseus(door), _ratio(series, door, "Colyseus"), BARS[door], "x") for door in BARS
    ]
    for door in BARS:
        share = _ratio(series, f"{door}, {BOARDGAME_MATCHES}", "boardgame.io")
        found.append(at_most(_beside_boardgame(door), share, BOARDGAME_BAR, "x"))
    return found


def _figures(series: Sequence[Series]) -> list[Row]:
    return [
        Row(f"{name}: CPU a move", median(us(each[name]) for each in series), "us")
        for name in ("Colyseus", KEEPS_NOTHING)
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="once, two minutes")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    args = parser.parse_args()
    show(rows(quick=args.quick, data=args.data))
