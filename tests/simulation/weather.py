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
SEATING_PATH = 25
"""Steps of a lobby from one script on the path of seating to the next."""
SEATING_PLACES = {"proposed": 1, "created": 1, "reserved": 1, "released": 1, "dropped": 1, "pushed": 3}
"""Where a proposal may be, each a script that Redis has just run, and how often a lobby is struck there."""


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
        self._armed: list[tuple[str, str, Callable[[str], None]]] = []

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
        """A move, or a match, has come to that place of its path on this host: it may get a crash that is due there."""
        for number, (waits, where, strike) in enumerate(self._armed):
            if where == place and host.startswith(waits):
                del self._armed[number]
                strike(host)
                return

    def arm(self, hosts: str, place: str, strike: Callable[[str], None]) -> None:
        """At the next move, or match, that comes there on a host whose name begins so; `strike` is told the host."""
        self._armed.append((hosts, place, strike))


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

    def strike(_: str) -> None:
        if not loop.is_dead:
            loop.after_steps(steps, loop.kill)
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


def _strike_seating(strike: Callable[[Weather, Slot], str]) -> Fault:
    """The next lobby for which a script of seating is run is struck so many steps later, if another one is up then."""

    def arm(weather: Weather) -> str | None:
        [place] = weather.chance.choices(list(SEATING_PLACES), list(SEATING_PLACES.values()))
        steps = weather.chance.choice((0, weather.chance.randrange(SEATING_PATH)))

        def reached(host: str) -> None:
            [slot] = [slot for slot in weather.world.slots if slot.host == host]
            slot.server.loop.after_steps(steps, lambda: act(slot))

        def act(slot: Slot) -> None:
            if weather._slot("lobby") and not weather.is_over:
                weather.happened(f"a lobby is struck when a match is {place}", strike(weather, slot))

        weather.arm("lobby", place, reached)
        return f"{steps} steps after the next is {place}"

    return arm


def _kill_seating(_: Weather, slot: Slot) -> str:
    slot.server.loop.kill()
    return f"{slot.host} is killed"


def _stop_seating(weather: Weather, slot: Slot) -> str:
    """For about as long as it takes another lobby to adopt the proposal, and its match to be over."""
    seconds = weather.seconds(12, 25)
    slot.stands_still(seconds)
    return f"{slot.host} stands still for {seconds:.2f} s"


def _leave(role: str) -> Fault:
    def leave(weather: Weather) -> str | None:
        """SIGTERM."""
        slot = weather._slot(role)
        if slot is None:
            return None
        slot.leave()
        return slot.server.name

    return leave


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


def _cut_relay(weather: Weather) -> str | None:
    """Bots over HTTP lose a referee or the lobby, though their own links hold."""
    world = weather.world
    relays = [slot for slot in world.slots if "http" in slot.roles]
    others = [slot for slot in world.slots if "http" not in slot.roles]
    if not relays:
        return None
    relay, slot = weather.chance.choice(relays), weather.chance.choice(others)
    links = world.net.cut(relay.host, slot.host)
    return f"{relay.host} {slot.host} {links} links" if links else None


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
    "stop a referee in order": _leave("referee"),
    "kill a lobby": _kill("lobby"),
    "stall a lobby": _stop("lobby", 0.1, 3),
    "kill a lobby on the path of seating": _strike_seating(_kill_seating),
    "stop a lobby on the path of seating": _strike_seating(_stop_seating),
    "cut links to Redis": _cut_redis,
    "lose a reply of Redis": _lose_reply,
    "restart Redis": _restart_redis,
    "slow Redis": _slow_redis,
    "cut a bot's links": _cut_bot,
    "block a bot": _block_bot,
    "kill a bot": _kill_bot,
    "stop a bot": _stop_bot,
    "kill the process for HTTP": _kill("http"),
    "stall the process for HTTP": _stop("http", 0.1, 3),
    "stop the process for HTTP in order": _leave("http"),
    "cut links of the process for HTTP": _cut_relay,
}
"""By name."""

__all__ = ["FAULTS", "Any", "Weather"]
