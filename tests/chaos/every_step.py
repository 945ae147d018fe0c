"""Harms real servers at every step that they take with Redis or a bot, one step after the other, while real bots play.

    python -m chaos.every_step --seconds 600        (with tests/ on the path; for each harm; `make soak` does it)
    python -m chaos.every_step --harm "killed after"

The steps are those of `simulation.failpoints`, found as they are met. A harm is over when no step was new for a while. Reads are
left out: a process that is harmed at a read might as well have been harmed at its next step. Then everything must come to the
same end, as in `chaos.chaos`.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from chaos.chaos import Results, Run, Size, summarise, tabulate
from chaos.harm import REDIS_EVERY_S, Fault
from chaos.screen import Screen, screen
from chaos.steps import REST_S, STEP_HARMS, Orders, StepHarm
from chaos.world import Victim, World, world
from seatwise_server import log

STEPS = "steps"
"""The name of the run, for `world`."""
QUIET_S = 30.0
"""When no step was new for so long, all that this world comes by have been harmed. Sleepers and those who rest meet none."""
ASLEEP_S = 20.0
REDIS_DOWN_S = 2.0
AWAY_S = 0.1
"""A process that was killed is started again after so many seconds."""
BREATH_S = 1.0
"""Between one harm and the next order."""
MOST_ASLEEP = 2
"""Processes at once."""
FALLEN_S = 5.0
"""A process that has ended for so long, and whose end no order explains, has fallen by itself."""
LOOK_S = 0.02
SIZE = Size(bots=7)
"""Two bots for the ladder, two for queue and ladder, and three for created matches, leagues and sets of deals."""


class StepRun(Run):
    """A run in which servers harm themselves, as they are ordered to."""

    def __init__(self, world: World, harm: StepHarm, screen: Screen) -> None:
        super().__init__(world, [], screen)
        self.steps: list[str] = []
        """All steps that were harmed, in order."""
        self._harm = harm
        self._orders = Orders(world.steps)

    async def _harm_all(self, seconds: float) -> None:
        until = asyncio.get_running_loop().time() + seconds
        is_new = True
        while is_new and asyncio.get_running_loop().time() < until:
            is_new = await self._harm_next()
        self._orders.withdraw()

    async def _harm_next(self) -> bool:
        """Returns False if no step was new for a while."""
        number = len(self.steps) + 1
        self._orders.give(self._harm, number)
        told = await self._wait_for(number)
        if told is None:
            return False
        pid, step = told
        self.steps.append(step)
        victim = self._victim_of(pid)
        self._screen.say(f"{self._harm.name}: {step.rpartition(' > ')[2]} of {victim}")
        task = asyncio.create_task(self._mend(victim))
        self._under_way.add(task)
        task.add_done_callback(self._harmed)
        await self._wait_for_room()
        await asyncio.sleep(REDIS_EVERY_S - REDIS_DOWN_S if self._harm.is_at_redis else BREATH_S)
        return True

    async def _wait_for(self, number: int) -> tuple[int, str] | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(QUIET_S + (ASLEEP_S + REST_S if self._puts_to_sleep else 0)):
                while (told := self._orders.told(number)) is None:  # noqa: ASYNC110  # a process that dies tells nobody
                    await asyncio.sleep(LOOK_S)
                return told
        return None

    @property
    def _puts_to_sleep(self) -> bool:
        return self._harm.name == "asleep after"

    def _victim_of(self, pid: int) -> Victim:
        """The process that has done the harm, or Redis if it was done to that."""
        if self._harm.is_at_redis:
            return self._world.redis
        return next(each for each in (*self._world.fronts, *self._world.referees) if each.pid == pid)

    async def _mend(self, victim: Victim) -> None:
        if self._puts_to_sleep:
            await victim.harm("stop", ASLEEP_S)
        else:
            await victim.harm("rise", REDIS_DOWN_S if self._harm.is_at_redis else AWAY_S)

    async def _wait_for_room(self) -> None:
        most = MOST_ASLEEP if self._puts_to_sleep else 1
        while len(self._under_way) >= most:
            await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)

    async def _watch(self) -> None:
        """Nobody may fall by itself: an order is told of at once."""
        loop = asyncio.get_running_loop()
        since: dict[Victim, float] = {}
        while True:
            fallen = self._world.fallen
            since = {each: since.get(each, loop.time()) for each in fallen}
            for each, at_s in since.items():
                if loop.time() - at_s > FALLEN_S:
                    self.problems.append(f"{each} ended although nobody had harmed it")
                    await each.harm("rise", AWAY_S)
            await asyncio.sleep(BREATH_S)


async def run_steps(
    folder: Path, seconds: float, harm: StepHarm, size: Size
) -> tuple[Results, list[str], list[str]]:
    """One run in this folder: what came of it, everything that is wrong in words, and the steps that were harmed."""
    with screen(seconds) as told:
        told.say(
            f"{harm.name}: starting {size.referees} referees, {size.fronts} fronts, {len(size.games)} bots"
        )
        async with (
            world(folder, size.referees, size.fronts, size.games, STEPS) as made,
            StepRun(made, harm, told) as this,
        ):
            books = await this.chaos(seconds)
    results, wrong = summarise(Fault(harm.name, (), (0, 0)), made.all, this, books)
    return results, wrong, this.steps


async def run_all(harms: Sequence[StepHarm], seconds: float, folder: Path) -> int:
    """A run for each harm, one after the other; 1 if anything is wrong."""
    rows, wrongs = list[Results](), list[str]()
    for harm in harms:
        where = folder / harm.name.replace(" ", "-")
        where.mkdir()
        results, wrong, steps = await run_steps(where, seconds, harm, SIZE)
        rows.append(results)
        wrongs += [f"{harm.name}: {each}" for each in wrong]
        print(f"{harm.name}: {len(steps)} steps", file=sys.stderr)
    print(tabulate(rows))
    for each in wrongs:
        print(f"WRONG: {each}", file=sys.stderr)
    return 1 if wrongs else 0


def main() -> int:
    """Runs and prints; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seconds", type=float, default=600, help="at most, for each harm (default: %(default)g)"
    )
    names = [harm.name for harm in STEP_HARMS]
    parser.add_argument(
        "--harm", action="append", choices=names, help="only this one; may be given several times"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leaves histories and logs there")
    args = parser.parse_args()
    log.configure("error")
    folder = Path(tempfile.mkdtemp(prefix=f"sw-steps-{secrets.token_hex(2)}-", dir=args.keep))
    harms = [harm for harm in STEP_HARMS if not args.harm or harm.name in args.harm]
    return asyncio.run(run_all(harms, args.seconds, folder))


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
