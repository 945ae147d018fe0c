"""Says what in a world is not what we ship: prints one line for each such thing, and nothing if all is well.

Run as a program, for it plays a world: `python -m simulation.shipped`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from seatwise.bot import Bot
from seatwise.link.bot_session import BotSession
from seatwise.link.rest_wire import RestWire
from seatwise.link.seat_session import SeatSession
from seatwise.link.web_socket_wire import WebSocketWire
from seatwise_server.play.referee import Referee
from seatwise_server.play.table import Table
from seatwise_server.store import Flusher, Store
from seatwise_server.store.redis.client import SingleClient
from simulation.chance import seeded
from simulation.clock import Clock
from simulation.world import Climate, World, overheard

PACKAGES = ("seatwise", "seatwise_server", "seatwise_referee", "redis")
MAY_BE_DERIVED_FROM = {*Bot.__mro__, RestWire, WebSocketWire}
"""The wires of a world only connect in their own way."""


def main() -> None:
    """Looks at everything before and after a world, and at its inhabitants while they are at work."""
    before = _all_there_is()
    clock = Clock()
    with seeded("shipped", lambda: clock.now), overheard(clock):
        world = World(0, Climate("tiny", {}, 3000, matches=6, within_s=1.0, bots=3), clock)
        inhabitants = _Inhabitants(world)
        world.play()
        world.check()
        world.forget()
    after = _all_there_is()
    strange = [*inhabitants.strange, *_derived(), *world.witness.wrongs]
    strange += [f"{name} was replaced" for name in before if before[name] is not after.get(name)]
    strange += [] if inhabitants.looked else ["nobody was looked at"]
    print(*strange, sep="\n", end="")


class _Inhabitants:
    """Looks at the first table that is open, and at all that has to do with it."""

    def __init__(self, world: World) -> None:
        self.strange: list[str] = []
        self.looked = 0
        self._world = world
        world.redis.on_command = self._look

    def _look(self, *_: object) -> None:
        for slot in self._world.slots:
            if slot.server.referee and slot.server.referee.referee.tables:
                referee = slot.server.referee.referee
                self._want(Referee, referee)
                self._want(Flusher, referee.open_tables._flusher, referee.open_tables._journal._journal)
                self._want(Store, referee._store)
                self._want(SingleClient, referee._store.client)
                self._want(Table, *referee.tables.values())
                self.looked += 1
        for bot in self._world.bots:
            self._want(BotSession, bot.seated.session)
            self._want(SeatSession, *bot.seated.session._seats.values())

    def _want(self, kind: type, *things: Any) -> None:
        self.strange += [f"{thing!r} is no {kind}" for thing in things if type(thing) is not kind]


def _all_there_is() -> dict[str, Any]:
    """Everything in the modules that we ship, and in their classes, by name."""
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in PACKAGES]
    return {
        name: thing for module in modules if isinstance(module, ModuleType) for name, thing in _in(module)
    }


def _in(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, thing in list(vars(module).items()):
        if callable(thing):
            yield f"{module.__name__}.{name}", thing
        if isinstance(thing, type):
            for inner, its in list(vars(thing).items()):
                if callable(its):
                    yield f"{module.__name__}.{name}.{inner}", its


def _derived() -> Iterator[str]:
    """Classes of the simulation that are made from ours."""
    for name, module in list(sys.modules.items()):
        if name.startswith("simulation"):
            for thing in vars(module).values():
                if isinstance(thing, type) and thing.__module__ == name:
                    yield from (f"{thing} is derived from {base}" for base in thing.__mro__ if _is_ours(base))


def _is_ours(base: type) -> bool:
    return base.__module__.partition(".")[0] in PACKAGES and base not in MAY_BE_DERIVED_FROM


if __name__ == "__main__":
    main()
