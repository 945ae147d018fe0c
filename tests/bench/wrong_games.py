"""How much a game from outside that is slow, hangs or crashes delays matches of UGO! on the same server.

python tests/bench/wrong_games.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

from hosted.packages import install_package
from readers import Paced, play_matches
from serving import serving
from table import Row, at_most, show

import seatwise
from seatwise.async_client import AsyncClient
from seatwise.errors import SeatwiseError

STEP_S = 0.5
"""Seconds that a step of the slow game computes."""
RUNS = 3
SOURCE = f"""
import os, time
from seatwise.hosting import HostedGame

class Slow(HostedGame):
    name = "slow"
    free_ms = 60_000
    def start_match(self, seats, options, chance): return ()
    def find_turn(self, state): return None if len(state) == 200 else len(state) % 2
    def list_moves(self, state): return ["a", "b"]
    def play_move(self, state, move, chance):
        self.work(state)
        return (*state, move)
    def work(self, state):
        until = time.monotonic() + {STEP_S}
        while time.monotonic() < until: pass
    def show_state(self, state, seat): return {{"moves": list(state)}}
    def count_points(self, state): return [state.count("a"), state.count("b")]

class Hangs(Slow):
    name = "hangs"
    def work(self, state):
        while len(state) == 3: pass

class Crashes(Slow):
    name = "crashes"
    def work(self, state):
        if len(state) == 3: os.kill(os.getpid(), 11)

def games(): return [Slow, Hangs, Crashes]
"""
WRONGS = ("slow", "hangs", "crashes")


class Timed(Paced):
    """Notes how long it waits for its next card."""

    longest_s = 0.0
    _answered: float | None = None

    async def choose(self, view: object) -> object:
        """The first card."""
        if self._answered is not None:
            Timed.longest_s = max(Timed.longest_s, time.monotonic() - self._answered)
        card = await super().choose(view)
        self._answered = time.monotonic()
        return card


async def play_ours(address: str, token: str) -> None:
    """Prints the seconds that six matches take, and the longest wait for the next card."""
    took_s = await play_matches(address, token, Timed)
    print(took_s, Timed.longest_s, flush=True)


async def play_wrong(address: str, token: str, game: str) -> None:
    """Plays match after match of that game until it is killed."""
    async with AsyncClient(address, token) as admin:
        stamp = f"{time.time_ns():x}"[-10:]
        bots = [await admin.register_bot(f"w{stamp}-{number}", game) for number in range(2)]
        for bot in bots:
            run = seatwise.run_async("random", game=game, address=address, token=bot.token, queues=())
            _RUNNING.add(asyncio.create_task(run))
        while True:
            with suppress(SeatwiseError):
                match = await admin.create_match(game, [bot.bot for bot in bots])
                while not (await admin.get_match(match.name)).HasField("end_time"):  # noqa: ASYNC110  # only the server knows
                    await asyncio.sleep(0.2)


_RUNNING: set[asyncio.Task[object]] = set()


async def _measure(address: str, token: str, game: str = "") -> tuple[float, float]:
    """Returns the seconds of our matches and the longest wait in them, beside matches of that game."""
    beside = await _child("--wrong", game, address, token) if game else None
    await asyncio.sleep(3.0 if game else 0.0)
    playing = await _child("--ours", "", address, token)
    told, _ = await playing.communicate()
    if beside:
        beside.kill()
        await beside.communicate()
    took_s, longest_s = map(float, told.split())
    return took_s, longest_s


async def _child(role: str, game: str, address: str, token: str) -> asyncio.subprocess.Process:
    args = (sys.executable, __file__, role, game, "--address", address, "--token", token)
    return await asyncio.create_subprocess_exec(*args, stdout=asyncio.subprocess.PIPE)


async def compare(
    address: str, token: str, runs: int
) -> tuple[list[float], dict[str, list[tuple[float, float]]]]:
    """Returns the longest waits without a wrong game; and for each wrong game the ratios of times and the longest waits."""
    alone: list[float] = []
    found: dict[str, list[tuple[float, float]]] = {game: [] for game in WRONGS}
    for _ in range(runs):
        took_s, longest_s = await _measure(address, token)
        alone.append(longest_s)
        for game in WRONGS:
            beside_s, beside_longest_s = await _measure(address, token, game)
            found[game].append((beside_s / took_s, beside_longest_s))
            said = f"{beside_s:.2f} s and {beside_longest_s:.2f} s beside it"
            print(
                f"{game}: {took_s:.2f} s, longest wait {longest_s:.2f} s; {said}", file=sys.stderr, flush=True
            )
    return alone, found


@contextmanager
def _installed_games() -> Iterator[None]:
    with TemporaryDirectory(prefix="seatwise-bench-") as folder:
        install_package(Path(folder), "wrong_games", SOURCE, "wrong = wrong_games:games")
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, before]))
        try:
            yield
        finally:
            os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


def rows(*, quick: bool = False, data: Path | None = None) -> list[Row]:
    """For the table."""
    with _installed_games(), serving(data) as served:
        server = served.start("--role", "all", "--no-house-bots")
        alone, found = asyncio.run(compare(server.address, server.token, 1 if quick else RUNS))
    rows = [Row("six matches of UGO! without a game from outside: longest wait for a card", max(alone), "s")]
    for game, its in found.items():
        ratio = statistics.median(ratio for ratio, _ in its)
        rows.append(
            at_most(
                f"beside a game from outside that is wrong ({game}): time, times that without it",
                ratio,
                1.2,
                "x",
            )
        )
        rows.append(Row(f"beside it ({game}): longest wait for a card", max(wait for _, wait in its), "s"))
    return rows


def main() -> None:
    """Measures, or is one of the two loads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one run of each")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--ours", help=argparse.SUPPRESS)
    parser.add_argument("--wrong", metavar="GAME", help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    parser.add_argument("--token", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.wrong:
        asyncio.run(play_wrong(args.address, args.token, args.wrong))
    elif args.ours is not None:
        asyncio.run(play_ours(args.address, args.token))
    else:
        show(rows(quick=args.quick, data=args.data))


if __name__ == "__main__":
    main()
