"""Kills, stops and restarts real processes while real bots play, and then looks for what is lost.

    python -m chaos.chaos --seconds 60 --seed 7        (in the folder tests)
    python -m chaos.chaos --fault disk --fault links  (without it, all of them)

Each fault has a world of its own for so many seconds, and a row of the table:

    processes  processes of every role are killed, stopped and ended in order
    lobbies    all lobbies are killed at once
    disk       the disk of Redis is full: a small tmpfs, or a limit for the size of files where nothing may be mounted
    links      the connections of one server with Redis are cut, and new ones are refused for a while
    sleep      Redis answers nobody for a while (DEBUG SLEEP)
    stops      a process is stopped by SIGSTOP, and goes on as if nothing had been

A seed fixes who is harmed, when and how; what the machine makes of it is new each time. Exits 1 if a move that
was acknowledged is lost or doubled, if the record contradicts what a bot was shown or told, if a bot is blamed for
what was our fault, or if a match does not end.
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
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from chaos.harm import ALL, FAULTS, PROCESSES, Fault, Harm, schedule_fault
from chaos.hosts import Hosts
from chaos.reading import Books
from chaos.screen import Screen, screen
from chaos.world import Victim, World, world
from seatwise_server import log

RESULTS = Path("chaos-results.json")
LOOK_S = 0.25
FEWEST_BOTS = 4
"""Two who wait in a queue, and two for created matches."""
DRAIN_S = 120.0
"""So long may what was begun take to come to its end when nothing is harmed any more. On a machine under load a match alone took 60 s."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many of each kind."""

    referees: int = 3
    fronts: int = 2
    bots: int = 7
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

    fault: str
    matches: int
    harms: int
    kills: int
    takeovers: int
    longest_gap_s: float
    checked: int
    lost: int
    doubled: int
    contradicted: int
    wrong_flags: int
    void: int
    """Matches that are void, whoever's fault that was; those that are void through ours are wrong flags too."""
    stuck: int
    """Matches and steps that did not come to their end."""

    @property
    def as_json(self) -> dict[str, float | str]:
        """With these keys and no others."""
        return {name: getattr(self, name) for name in self.__slots__}


class Run:
    """One run in a world that is up."""

    def __init__(self, world: World, harms: list[Harm], screen: Screen) -> None:
        self.problems: list[str] = []
        """What is wrong and has no column of its own."""
        self.stuck: list[str] = []
        """What did not come to its end."""
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
        await self._tried("what is held", books.nothing_held())
        await self._tried("the books", books.collect())
        return books

    async def _harm_all(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        for harm in self._harms:
            await self._screen.wait(began + harm.at_s)
            for victim in await self._victims(harm):
                self._screen.say(f"{harm.way} {victim}")
                task = asyncio.create_task(victim.harm(harm.way, harm.lasts_s))
                self._under_way.add(task)
                task.add_done_callback(self._harmed)
        await self._screen.wait(began + seconds)

    def _harmed(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.problems.append(f"a process did not come back: {error!r}")

    async def _victims(self, harm: Harm) -> list[Victim]:
        """That one, or the next of its kind that is itself; of referees the one that has most matches. Or all."""
        kind: list[Victim] = self._world.victims[harm.role]
        first = 0 if harm.number == ALL else harm.number
        well = [each for each in kind[first:] + kind[:first] if each.is_alive and not each.is_harmed]
        if harm.number == ALL:
            return well
        busy = await self._world.busy() if harm.role == "referee" else {}
        return sorted(well, key=lambda each: -busy.get(str(each), 0))[:1]

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
            self.stuck.append(f"{what} did not come to an end within {DRAIN_S:.0f} s")


async def run(
    folder: Path, seconds: float, seed: int, size: Size, fault: Fault = PROCESSES
) -> tuple[Results, list[str]]:
    """One run in this folder: what came of it, and everything that is wrong in words."""
    harms = schedule_fault(fault, seed, seconds, size.by_role)
    with screen(seconds) as told:
        told.say(
            f"{fault.name}, seed {seed}: "
            f"starting {size.referees} referees, {size.fronts} fronts, {len(size.games)} bots, a Redis"
        )
        async with world(folder, size.referees, size.fronts, size.games, fault.name) as made:
            if made.redis.disk:
                told.say(f"the disk of Redis is filled by {made.redis.disk.how}")
            async with Run(made, harms, told) as this:
                books = await this.chaos(seconds)
    return summarise(fault, made.all, this, books)


def summarise(fault: Fault, victims: list[Victim], this: Run, books: Books) -> tuple[Results, list[str]]:
    """What came of a run, and everything that is wrong in words."""
    findings = books.checked()
    stuck = [*this.stuck, *books.stuck]
    results = Results(
        fault=fault.name,
        matches=books.finished,
        harms=sum(victim.harms for victim in victims),
        kills=sum(victim.kills for victim in victims),
        takeovers=findings.takeovers,
        longest_gap_s=round(books.longest_gap_s, 2),
        checked=findings.checked,
        lost=len(findings.lost),
        doubled=len(findings.doubled),
        contradicted=len(findings.contradicted),
        wrong_flags=len(findings.wrong_flags),
        void=books.voided,
        stuck=len(stuck),
    )
    wrong = [*this.problems, *books.problems, *[f"stuck: {each}" for each in stuck]]
    for name in ("lost", "doubled", "contradicted", "wrong_flags"):
        wrong += [f"{name.replace('_', ' ')}: {each}" for each in getattr(findings, name)]
    return results, wrong


COLUMNS = {
    "fault": "fault",
    "matches": "matches",
    "harms": "harms",
    "kills": "kills",
    "acknowledgements": "checked",
    "lost": "lost",
    "doubled": "doubled",
    "contradicted": "contradicted",
    "flagged": "wrong_flags",
    "void": "void",
    "stuck": "stuck",
}
"""Of the table: the heading, and the field of `Results`."""


def tabulate(rows: Sequence[Results]) -> str:
    """The table, a line for each fault."""
    cells = [list(COLUMNS), *[[_cell(getattr(row, name)) for name in COLUMNS.values()] for row in rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(map(str.rjust, line, widths)) for line in cells)


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


async def run_all(args: argparse.Namespace, folder: Path, seed: int) -> tuple[list[Results], list[str]]:
    """A run for each fault, one after the other: the rows of the table, and all that is wrong."""
    rows, wrongs = list[Results](), list[str]()
    size = Size(args.referees, args.fronts, args.bots, args.builders)
    for fault in FAULTS:
        if args.fault and fault.name not in args.fault:
            continue
        (folder / fault.name).mkdir()
        results, wrong = await run(folder / fault.name, args.seconds, seed, size, fault)
        rows.append(results)
        wrongs += [f"{fault.name}: {each}" for each in wrong]
    return rows, wrongs


def main(args: argparse.Namespace) -> int:
    """Runs, prints, writes the results; 1 if anything is wrong."""
    seed = secrets.randbelow(10**6) if args.seed is None else args.seed
    log.configure("error")
    folder = Path(tempfile.mkdtemp(prefix="sw-chaos-", dir=args.keep))
    rows, wrong = asyncio.run(_until_told(run_all(args, folder, seed)))
    RESULTS.write_text(json.dumps([row.as_json for row in rows]) + "\n")
    print(tabulate(rows))
    for each in wrong:
        print(f"WRONG: {each}", file=sys.stderr)
    if wrong:
        print(f"Histories and logs are in {folder}; the same again: --seed {seed}", file=sys.stderr)
    elif not args.keep:
        shutil.rmtree(folder)
    return 1 if wrong else 0


async def _until_told(work: Awaitable[tuple[list[Results], list[str]]]) -> tuple[list[Results], list[str]]:
    """SIGTERM ends it as Ctrl-C does: in order, and with everything that it started."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60, help="for each fault (default: %(default)g)")
    names = [fault.name for fault in FAULTS]
    parser.add_argument(
        "--fault", action="append", choices=names, help="only this one; may be given several times"
    )
    parser.add_argument("--seed", type=int, help="drawn by lot if not given")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leaves histories and logs there")
    for name, number in (("referees", 3), ("fronts", 2), ("bots", 7), ("builders", 2)):
        parser.add_argument(f"--{name}", type=int, default=number)
    args = parser.parse_args()
    if args.bots < FEWEST_BOTS or args.referees < 1 or args.fronts < 1:
        parser.error(f"at least one referee, one front and {FEWEST_BOTS} bots are needed")
    return args


if __name__ == "__main__":
    with suppress(asyncio.CancelledError, KeyboardInterrupt):
        sys.exit(main(_arguments()))
    sys.exit(130)
