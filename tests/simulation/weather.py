"""What goes wrong in a world, and when: drawn from its seed, no two faults at quite the same moment.

Each kind of fault says how often it comes, so that a run can show that nothing was left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from simulation.chance import Chance
from simulation.redis_host import HOST as REDIS
from simulation.redis_host import Lapse

if TYPE_CHECKING:
    from simulation.world import Slot, World

Fault = Callable[["Weather"], "str | None"]

LONGEST_PATH = 40
"""Steps of a process from a move that comes in to the last thing that comes of it."""
PLACES = ("received", "written")


class Weather:
    """Brings faults over a world until it is told to stop."""

    def __init__(self, world: World, chance: Chance, kinds: dict[str, float]) -> None:
        self.world = world
        self.chance = chance
        self.is_over = False
        self.struck: set[tuple[str, int]] = set()
        """Where on the path of a move a referee was killed: the place, and so many steps behind it."""
        self._kinds = kinds
        """Kind to the mean of the seconds between two of them."""
        self._armed: list[tuple[str, str, Callable[[], None]]] = []

    def begin(self) -> None:
        """From now on."""
        for kind in self._kinds:
            self._next(kind)

    def _next(self, kind: str) -> None:
        wait_s = self.chance.expovariate(1 / self._kinds[kind])
        self.world.clock.after(wait_s, lambda: self._strike(kind))

    def _strike(self, kind: str) -> None:
        if self.is_over:
            return
        if what := FAULTS[kind](self):
            self.happened(kind, what)
        self._next(kind)

    def happened(self, kind: str, what: str) -> None:
        """For the trace, and for the table at the end."""
        self.world.witness.counts[kind] += 1
        self.world.witness.note("FAULT", kind, what)

    # Whom it meets

    def _slot(self, role: str) -> Slot | None:
        """A process of that role that is up, as long as another one is."""
        up = [slot for slot in self.world.slots if role in slot.roles and slot.is_up]
        return self.chance.choice(up) if len(up) > self.world.least_up.get(role, 0) else None

    def seconds(self, least: float, most: float) -> float:
        """So long it lasts."""
        return self.chance.uniform(least, most)

    # On the path of an append

    def reached(self, host: str, place: str) -> None:
        """A move of this referee's has come to that place of its path: who has a crash coming may get it now."""
        for number, (waits, where, strike) in enumerate(self._armed):
            if (waits, where) == (host, place):
                del self._armed[number]
                strike()
                return

    def arm(self, host: str, place: str, strike: Callable[[], None]) -> None:
        """At the next move that comes there."""
        self._armed.append((host, place, strike))


def _kill_on_path(weather: Weather) -> str | None:
    """Killed so many steps after a move has come in, or after its append has reached Redis.

    So every await is met between a bot's word and the last that comes of it: on the way to the journal, while
    Redis has written and not answered, and while use is made of the answer.
    """
    slot = weather._slot("referee")
    if slot is None:
        return None
    place, steps = weather.chance.choice(PLACES), weather.chance.randrange(LONGEST_PATH)
    loop = slot.server.loop

    def strike() -> None:
        if not loop.is_dead:
            loop.killed_in = steps
            weather.struck.add((place, steps))

    weather.arm(slot.host, place, strike)
    return f"{slot.host} {steps} steps after its next move is {place}"


def _kill(role: str) -> Fault:
    def kill(weather: Weather) -> str | None:
        slot = weather._slot(role)
        if slot is None:
            return None
        slot.is_heard = weather.chance.happens(0.7)
        slot.server.loop.kill()
        return slot.server.name

    return kill


def _stop(role: str, least: float, most: float) -> Fault:
    def stop(weather: Weather) -> str | None:
        slot = weather._slot(role)
        if slot is None:
            return None
        seconds = weather.seconds(least, weather.chance.choice((most, least + 1)))
        slot.stands_still(seconds)
        return f"{slot.server.name} for {seconds:.2f} s"

    return stop


def _leave(weather: Weather) -> str | None:
    """SIGTERM."""
    slot = weather._slot("referee")
    if slot is None:
        return None
    slot.leave()
    return slot.server.name


def _block_redis(least: float, most: float) -> Fault:
    def block(weather: Weather) -> str | None:
        slot = weather._slot("referee")
        if slot is None:
            return None
        seconds = weather.seconds(least, weather.chance.choice((most, least + 1)))
        slot.is_troubled_until = weather.world.clock.now + seconds + 1
        weather.world.net.block(slot.host, REDIS, seconds)
        return f"{slot.host} for {seconds:.2f} s"

    return block


def _cut_redis(weather: Weather) -> str | None:
    slot = weather.chance.choice(weather.world.slots)
    return f"{slot.host} {weather.world.net.cut(slot.host, REDIS)} links"


def _lose_reply(weather: Weather) -> str | None:
    slot = weather.chance.choice(weather.world.slots)
    commands = weather.chance.randrange(4)
    weather.world.redis.lapse = Lapse(slot.host, commands)
    return f"{slot.host} after {commands} commands"


def _restart_redis(weather: Weather) -> str | None:
    seconds = weather.seconds(0.05, 4)
    weather.world.redis.restart(seconds)
    return f"for {seconds:.2f} s"


def _slow_redis(weather: Weather) -> str | None:
    """Every answer takes so long."""
    world, seconds = weather.world, weather.seconds(0.5, 5)
    world.net.slowness_s[REDIS] = weather.seconds(0.05, 1.2)
    world.clock.after(seconds, lambda: world.net.slowness_s.pop(REDIS, None))
    return f"by {world.net.slowness_s[REDIS]:.2f} s for {seconds:.2f} s"


def _cut_bot(weather: Weather) -> str | None:
    world = weather.world
    bot, slot = weather.chance.choice(world.bots), weather.chance.choice(world.slots)
    links = world.net.cut(bot.host, slot.host)
    return f"{bot.host} {slot.host} {links} links" if links else None


def _block_bot(weather: Weather) -> str | None:
    """A cable is pulled for less than the keep-alives take, or for a little more."""
    world = weather.world
    bot, slot = weather.chance.choice(world.bots), weather.chance.choice(world.slots)
    seconds = weather.seconds(0.05, world.longest_block_s)
    world.net.block(bot.host, slot.host, seconds)
    return f"{bot.host} {slot.host} for {seconds:.2f} s"


def _kill_bot(weather: Weather) -> str | None:
    bot = weather.chance.choice(weather.world.bots)
    if bot.is_good or not bot.is_up:
        return None
    bot.seated.loop.kill()
    return bot.host


def _stop_bot(weather: Weather) -> str | None:
    bot = weather.chance.choice(weather.world.bots)
    if bot.is_good or not bot.is_up:
        return None
    seconds = weather.seconds(0.5, 20)
    bot.seated.loop.stop_for(seconds)
    return f"{bot.host} for {seconds:.2f} s"


FAULTS: dict[str, Fault] = {
    "kill on the path of an append": _kill_on_path,
    "kill a referee": _kill("referee"),
    "stop a referee for longer than its lease": _stop("referee", 5.0, 12),
    "stall a referee": _stop("referee", 0.1, 3.5),
    "cut a referee off Redis for longer than its lease": _block_redis(4.5, 12),
    "cut a referee off Redis for a moment": _block_redis(0.1, 3),
    "stop a referee in order": _leave,
    "kill a lobby": _kill("lobby"),
    "stall a lobby": _stop("lobby", 0.1, 3),
    "cut links to Redis": _cut_redis,
    "lose a reply of Redis": _lose_reply,
    "restart Redis": _restart_redis,
    "slow Redis": _slow_redis,
    "cut a bot's links": _cut_bot,
    "block a bot": _block_bot,
    "kill a bot": _kill_bot,
    "stop a bot": _stop_bot,
}
"""By name."""

__all__ = ["FAULTS", "Any", "Weather"]
