"""Kills, stops and restarts real processes while real bots play, and then looks for what is lost.

    python -m chaos.chaos --seconds 60 --seed 7        (with tests/ on the path: `make chaos SECONDS=60 SEED=7`)

A seed fixes who is harmed, when and how; what the machine makes of it is new each time. Exits 1 if a move that
was acknowledged is lost or doubled, if a bot is blamed for what was our fault, or if a match does not end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from chaos.harm import Harm, schedule
from chaos.hosts import Hosts
from chaos.reading import Books
from chaos.screen import Screen, screen
from chaos.world import Victim, World, world
from seatwise_server import log

RESULTS = Path("chaos-results.json")
LOOK_S = 0.25
FEWEST_BOTS = 4
"""Two who wait in a queue, and two for created matches."""
DRAIN_S = 40.0
"""So long may what was begun take to come to its end when nothing is harmed any more."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many of each kind."""

    referees: int = 3
    fronts: int = 2
    bots: int = 6
    builders: int = 2
    """Bots that play Ubongo."""

    @property
    def games(self) -> list[str]:
        """What each bot plays."""
        return ["ugo"] * self.bots + ["ubongo"] * self.builders

    @property
    def by_role(self) -> dict[str, int]:
        """As `schedule` wants it."""
        return {"referee": self.referees, "front": self.fronts, "bot": len(self.games), "redis": 1}


@dataclass(frozen=True, slots=True)
class Results:
    """What is printed, and written to a file."""

    matches: int
    kills: int
    takeovers: int
    longest_gap_s: float
    checked: int
    lost: int
    doubled: int
    wrong_flags: int

    @property
    def as_json(self) -> dict[str, float]:
        """With these keys and no others."""
        return {name: getattr(self, name) for name in self.__slots__}


class Run:
    """One run in a world that is up."""

    def __init__(self, world: World, harms: list[Harm], screen: Screen) -> None:
        self.problems: list[str] = []
        """What is wrong and has no column of its own."""
        self._world = world
        self._harms = harms
        self._screen = screen
        self._under_way: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end_watch()
        for task in self._under_way:
            task.cancel()
        await self._settled()

    async def chaos(self, seconds: float) -> Books:
        """Harms for so long, lets everything come to its end, and hands over what there is to be checked."""
        async with Hosts(self._world) as hosts:
            await self._tried("the first matches", self._world.begun())
            await self._harm_all(seconds)
            self._screen.say("nothing is harmed any more: all matches come to their end")
            await self._settled()
            await self._end_watch()
            await self._tried("the last matches", hosts.finish())
        await self._tried("the bots", self._drain())
        books = Books(self._world, hosts.matches)
        await self._tried("the books", books.collect())
        return books

    async def _harm_all(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        for harm in self._harms:
            await self._screen.wait(began + harm.at_s)
            if victim := await self._victim(harm):
                self._screen.say(f"{harm.way} {victim}")
                task = asyncio.create_task(victim.harm(harm.way, harm.lasts_s))
                self._under_way.add(task)
                task.add_done_callback(self._harmed)
        await self._screen.wait(began + seconds)

    def _harmed(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.problems.append(f"a process did not come back: {error!r}")

    async def _victim(self, harm: Harm) -> Victim | None:
        """That one, or the next of its kind that is itself; of referees the one that has most matches."""
        kind = self._world.victims[harm.role]
        turned = kind[harm.number :] + kind[: harm.number]
        well = [each for each in turned if each.is_alive and not each.is_harmed]
        busy = await self._world.busy() if harm.role == "referee" else {}
        return max(well, key=lambda each: busy.get(str(each), 0), default=None)

    async def _watch(self) -> None:
        """Nobody may fall by itself."""
        while True:
            for fallen in self._world.fallen:
                self.problems.append(f"{fallen} ended although nobody had harmed it")
                fallen.is_harmed = True
                await fallen.start()
                fallen.is_harmed = False
            await asyncio.sleep(LOOK_S)

    async def _end_watch(self) -> None:
        if self._watching:
            self._watching.cancel()
            await asyncio.wait([self._watching])

    async def _settled(self) -> None:
        if self._under_way:
            await asyncio.wait(self._under_way)

    async def _drain(self) -> None:
        for bot in self._world.bots:
            bot.signal(signal.SIGTERM)
        await asyncio.gather(*[bot.gone() for bot in self._world.bots])

    async def _tried(self, what: str, work: Awaitable[object]) -> None:
        try:
            async with asyncio.timeout(DRAIN_S):
                await work
        except TimeoutError:
            self.problems.append(f"{what} did not come to an end within {DRAIN_S:.0f} s")


async def run(folder: Path, seconds: float, seed: int, size: Size) -> tuple[Results, list[str]]:
    """One run in this folder: what came of it, and everything that is wrong in words."""
    harms = schedule(seed, seconds, size.by_role)
    with screen(seconds) as told:
        told.say(
            f"seed {seed}: starting {size.referees} referees, {size.fronts} fronts, {len(size.games)} bots, a Redis"
        )
        async with world(folder, size.referees, size.fronts, size.games) as made:
            async with Run(made, harms, told) as this:
                books = await this.chaos(seconds)
            kills = sum(victim.kills for victim in made.all)
    findings = books.checked()
    results = Results(
        matches=books.finished,
        kills=kills,
        takeovers=findings.takeovers,
        longest_gap_s=round(books.longest_gap_s, 2),
        checked=findings.checked,
        lost=len(findings.lost),
        doubled=len(findings.doubled),
        wrong_flags=len(findings.wrong_flags),
    )
    wrong = [*this.problems, *books.problems]
    for name in ("lost", "doubled", "wrong_flags"):
        wrong += [f"{name.replace('_', ' ')}: {each}" for each in getattr(findings, name)]
    return results, wrong


def main(args: argparse.Namespace) -> int:
    """Runs, prints, writes the results; 1 if anything is wrong."""
    seed = secrets.randbelow(10**6) if args.seed is None else args.seed
    log.configure("error")
    folder = Path(tempfile.mkdtemp(prefix="sw-chaos-", dir=args.keep))
    size = Size(args.referees, args.fronts, args.bots, args.builders)
    results, wrong = asyncio.run(_until_told(run(folder, args.seconds, seed, size)))
    RESULTS.write_text(json.dumps(results.as_json) + "\n")
    print(" · ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in results.as_json.items()))
    for each in wrong:
        print(f"WRONG: {each}", file=sys.stderr)
    if wrong:
        print(f"Histories and logs are in {folder}; the same again: SEED={seed}", file=sys.stderr)
    elif not args.keep:
        shutil.rmtree(folder)
    return 1 if wrong else 0


async def _until_told(work: Awaitable[tuple[Results, list[str]]]) -> tuple[Results, list[str]]:
    """SIGTERM ends it as Ctrl-C does: in order, and with everything that it started."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, help="drawn by lot if not given")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leaves histories and logs there")
    for name, number in (("referees", 3), ("fronts", 2), ("bots", 6), ("builders", 2)):
        parser.add_argument(f"--{name}", type=int, default=number)
    args = parser.parse_args()
    if args.bots < FEWEST_BOTS or args.referees < 1 or args.fronts < 1:
        parser.error(f"at least one referee, one front and {FEWEST_BOTS} bots are needed")
    return args


if __name__ == "__main__":
    with suppress(asyncio.CancelledError, KeyboardInterrupt):
        sys.exit(main(_arguments()))
    sys.exit(130)
