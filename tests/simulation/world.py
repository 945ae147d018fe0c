"""A lobby or two, some referees, a dozen bots and one Redis, in one process and in virtual time.

Shipped: the roles of the server with all that is in them, the store down to redis-py and its Lua scripts, the
SDK's link and its bots. Replaced: the clock (`clock`), chance (`chance`), Redis (`redis_model`, behind a
`redis_host`), the network under redis-py (`network`), gRPC (`rpc`), and `seatwise_server.app`, which puts the
roles together and listens for signals (`servers`).

    outcome = play(17)           # the same for ever: `outcome.digest` says so
"""

from __future__ import annotations

import gc
import json
import logging
import sys
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog

from seatwise_server.store import keys
from seatwise_server.store.redis import scripts
from seatwise_server.store.tokens import new_token
from simulation.chance import Chance, seeded
from simulation.clock import Clock, Loop, OutOfTime, Task
from simulation.model import entries_of, wrongs_of, wrongs_of_books
from simulation.network import Network
from simulation.owners import OwnerChecks, OwnerPlan, run_script
from simulation.plain_http import HTTP, HttpProcess
from simulation.players import LOBBY, Books, Office, Seated, Silent, wanted
from simulation.redis_host import RedisHost
from simulation.rpc import Call, Exchange
from simulation.servers import Server
from simulation.weather import Weather
from simulation.witness import Seen, Witness

SETTLE_S = 1.0
LATE_S = 6.0
"""So much longer than matches are made the weather lasts."""
LONGEST_S = 300.0
LEAVE_S = 60.0
CALM_S = 6.0
LEFT_BEHIND = (":seats", ":offers", ":untaken", ":ladder-seats", ":waiting", ":seating", ":journal")
"""Keys of which there must be none when all is over."""

OF_QUOTAS = ("as its quota allows", "This is a quota")
"""What the SDK tells the author of a bot whose owner has begun as many matches as it may."""


@dataclass(frozen=True)
class Climate:
    """What a kind of world is like."""

    name: str
    faults: dict[str, float]
    """See `Weather`."""
    card_ms: int
    matches: int = 50
    within_s: float = 8.0
    referees: int = 3
    lobbies: int = 2
    has_http: bool = True
    """Whether there is a process that serves HTTP, and bots that come by it."""
    bots: int = 10
    bad_bots: int = 0
    least_up: dict[str, int] = field(default_factory=dict)
    longest_block_s: float = 1.0
    queue: str = ""
    """In which bots wait for matches; empty where all matches are created matches."""
    silent_bots: int = 0
    """Bots that wait in the queue and never sit down."""
    most_at_once: int = 8
    """Matches that a bot plays at once."""
    owners: tuple[OwnerPlan, ...] = ()
    """The bots of nobody here are the operator's, and have no quotas."""
    think_s: tuple[float, ...] = (0.0, 0.02, 0.1)
    """The longest time that a bot thinks: one of these for each process."""


@dataclass
class Outcome:
    """What became of a world."""

    seed: int
    climate: str
    digest: str
    wrongs: list[str]
    counts: Counter[str]
    matches: int
    moves: int
    """That were acknowledged, and looked for in the journals."""
    struck: set[tuple[str, int]]
    """See `Weather.struck`."""
    virtual_s: float
    steps: int
    log: list[str]


class Slot:
    """A place for a process of the server, which is started again when it dies."""

    def __init__(self, world: World, host: str, roles: frozenset[str]) -> None:
        self.host = host
        self.roles = roles
        self.server: Server | HttpProcess
        self.is_heard = True
        """Whether the machine outlives its process, and says that it is gone."""
        self.is_troubled_until = 0.0
        self._world = world
        self._chance = world.chance.of(host)
        self._number = 0

    @property
    def is_up(self) -> bool:
        """Whether it works as it should."""
        server = self.server
        is_well = server.listener.is_open and not (server.loop.is_dead or server.loop.stopped)
        return is_well and not server.is_leaving and self.is_troubled_until < self._world.clock.now

    def start(self) -> None:
        """A new process, with a new name, where the old one was."""
        self._number += 1
        self.is_heard = True
        world, name = self._world, f"{self.host}#{self._number}"
        world.calm_since = world.clock.now
        loop = world.loop(self.host)
        loop.on_killed = self._died
        self.server = server = self._new_process(loop, name)
        server.listener.on_write = lambda message: world.witness.spoke(name, message)
        server.listener.on_request = lambda: world.weather.reached(self.host, "received")
        server.on_failed = world.witness.wrong
        world.exchange.listeners[f"{self.host}:7433"] = server.listener
        world.on_started(self)
        world.witness.note("started", name)

    def _new_process(self, loop: Loop, name: str) -> Server | HttpProcess:
        if "http" in self.roles:
            return HttpProcess(loop, name, self._world.exchange, LOBBY)
        return Server(loop, name, self.roles, f"{self.host}:7433")

    def _died(self) -> None:
        self._world.witness.note("died", self.server.name)
        self._world.net.died(self.host, is_heard=self.is_heard)
        self._world.clock.after(self._chance.uniform(0.2, 3), self.start)

    def stands_still(self, seconds: float) -> None:
        """All of it, for so long."""
        self.is_troubled_until = self._world.calm_since = self._world.clock.now + seconds + 1
        self.server.loop.stop_for(seconds)

    def leave(self) -> None:
        """Stops in order and is started again, as in an upgrade."""
        self.server.leave(self._left)

    def _left(self) -> None:
        if not self._world.is_closing:
            self.server.loop.kill()


class Place:
    """A bot, whose process is started again when it dies."""

    def __init__(self, world: World, host: str, game: str, *, is_good: bool, is_silent: bool = False) -> None:
        self.host = host
        self.bot = f"bots/{host}/versions/1"
        self.game = game
        self.is_good = is_good
        """It answers in time, and its process lives."""
        self.is_silent = is_silent
        self.seated: Seated | Silent
        self._world = world
        self._chance = world.chance.of(host)
        self._echo = self._chance.of("echo")
        self._token = world.register(self.bot)
        self._number = 0

    @property
    def is_up(self) -> bool:
        """Whether its process runs."""
        return not (self.seated.loop.is_dead or self.seated.loop.stopped)

    def start(self) -> None:
        """A new process, which knows nothing of the old one."""
        self._number += 1
        world, process = self._world, f"{self.host}#{self._number}"
        loop = world.loop(self.host)
        loop.on_killed = self._died
        queues = world.queues_of(self.game, self.host)
        if self.is_silent:
            self.seated = Silent(loop, world.exchange, self._token, self._chance, queues)
            return
        habits = {"_think_s": self._chance.choice(world.climate.think_s)}
        if not self.is_good:
            habits |= {"_doze": 0.05, "_doze_s": world.climate.card_ms / 500}
        self.seated = Seated(
            loop, world.exchange, self._token, self._chance, game=self.game, queues=queues,
            habits=habits, most_at_once=world.climate.most_at_once, on_result=lambda result: world.witness.result(process, result), on_failed=world.witness.wrong,
            has_http=world.climate.has_http,
        )  # fmt: skip
        self.seated.wire.on_call = self._called
        self.seated.wire.on_told = lambda told: world.witness.told(self.host, told)

    def _called(self, address: str, call: Call) -> None:
        witness, epochs = self._world.witness, dict[str, int]()
        is_relayed = address == HTTP  # from several referees, each with epochs of its own
        witness.counts["play streams over plain HTTP"] += is_relayed
        call.on_sent = lambda message: witness.said(self.host, address, message)
        call.on_read = lambda message: witness.heard(
            self.host, address, message, {} if is_relayed else epochs
        )
        call.echoes = lambda: self._echo.happens(0.02)

    def _died(self) -> None:
        self._world.witness.note("died", self.host)
        self._world.net.died(self.host, is_heard=self._chance.happens(0.7))
        self._world.clock.after(self._chance.uniform(0.2, 5), self.start)


class World:
    """One of them."""

    def __init__(self, seed: int, climate: Climate, clock: Clock, *, keeps_log: bool = False) -> None:
        self.climate = climate
        self.chance = Chance(str(seed))
        self.clock = clock
        self.net = Network(self.clock, self.chance.of("network"))
        self.redis = RedisHost(self.net, self.chance.of("redis"))
        self.exchange = Exchange(self.net)
        self.witness = Witness(self.redis.model, lambda: self.clock.now)
        self.witness.log = [] if keeps_log else None
        self.redis.model.on_unlink = self.witness.unlinked
        self.least_up = climate.least_up
        self.longest_block_s = climate.longest_block_s
        self.is_closing = False
        self.calm_since = self.clock.now
        """When the last process was well again, or will be."""
        self.loops: list[Loop] = []
        self.weather = Weather(self, self.chance.of("weather"), climate.faults)
        self.redis.on_command = self._on_command
        self.owners = OwnerChecks(climate.owners, self.redis.model, self.witness.wrong, self.witness.count)
        self.slots = self._slots()
        self.bots = self._bots()
        self.office = Office(self.loop("office"), self.exchange, self.chance.of("office"))

    def _slots(self) -> list[Slot]:
        lobbies = [
            Slot(self, f"lobby-{number}", frozenset(("lobby", "gateway")))
            for number in range(self.climate.lobbies)
        ]
        referees = [
            Slot(self, f"referee-{number}", frozenset(("referee",)))
            for number in range(self.climate.referees)
        ]
        self.exchange.balanced[LOBBY] = [f"{slot.host}:7433" for slot in lobbies]
        self.exchange.balanced[HTTP] = ["http-0:7433"]
        http = [Slot(self, "http-0", frozenset(("http",)))] if self.climate.has_http else []
        return [*lobbies, *referees, *http]

    def _bots(self) -> list[Place]:
        good = self.climate.bots - self.climate.bad_bots
        bots = [Place(self, f"bot-{n}", "ugo", is_good=n < good) for n in range(self.climate.bots)]
        bots += [Place(self, f"builder-{n}", "ubongo", is_good=True) for n in range(2)]
        silent = range(self.climate.silent_bots)
        return bots + [Place(self, f"silent-{n}", "ugo", is_good=False, is_silent=True) for n in silent]

    def loop(self, host: str) -> Loop:
        """For a new process on that host."""
        loop = Loop(self.clock, host)
        loop.connect = self.redis.way_from(loop)
        self.loops.append(loop)
        return loop

    def register(self, bot: str) -> str:
        """Its token."""
        token, hashed = new_token(bot)
        args = (self.owners.owner_of(bot), hashed, "the request")
        run_script(self.redis.model, "bot_register", [keys.bot_registration(bot)], *args)
        return token

    def queues_of(self, game: str, host: str = "") -> tuple[str, ...]:  # noqa: ARG002
        """In which a bot of that game waits, on that host."""
        return (self.climate.queue,) if self.climate.queue and game == "ugo" else ()

    def on_started(self, slot: Slot) -> None:
        """A process has begun."""

    def _on_command(self, host: str, command: list[bytes], answer: Any) -> None:
        if command[0] in (b"EVALSHA", b"EVAL"):
            self.owners.saw(command, answer)
        if command[0] == b"XADD":
            self.witness.added(host, command, answer)
            self.weather.reached(host, "written")
        if command[0] != b"EVALSHA":
            return
        if command[3].endswith(b":fence"):
            self.witness.note(host, command[3].decode(), answer)
        if command[1] == _APPEND:
            self.witness.appended(host, command, answer)
        if place := _PLACES.get(command[1]):
            self.weather.reached(host, place)

    # Its course

    def play(self) -> None:
        """From the first process to the last word."""
        for slot in self.slots:
            slot.start()
        for bot in self.bots:
            bot.start()
        self._run("the start", lambda: self.clock.now > 1000 + SETTLE_S, 2 * SETTLE_S)
        self.weather.begin()
        self.office.start(self._wanted(), self.climate.within_s)
        self._run("the fair", lambda: self._is_over() or self._is_late(), LONGEST_S)
        self.weather.is_over = True
        self._run("the last matches", self._is_over, LONGEST_S)
        if self.climate.queue:
            self._run("clearing up", self._is_calm, LEAVE_S)
        self._leave()

    def _is_late(self) -> bool:
        return self.clock.now > 1000 + SETTLE_S + self.climate.within_s + LATE_S

    def _is_over(self) -> bool:
        if not self.office.is_done or (self.climate.queue and not self._is_late()):
            return False
        return all(self.witness.matches[match].journals for match in self.office.made)

    def _wanted(self) -> list[Any]:
        chance = self.chance.of("wanted")
        found = []
        for number in range(self.climate.matches):
            game = "ubongo" if chance.happens(0.08) else "ugo"
            bots = chance.sample([bot.bot for bot in self.bots if bot.game == game], 2)
            found.append(wanted(game, bots, number, self.climate.card_ms))
        return found

    def _run(self, what: str, is_done: Callable[[], bool], limit_s: float) -> None:
        try:
            self.clock.run(is_done, limit_s)
        except OutOfTime:
            self.witness.wrong(f"{what} takes longer than {limit_s:g} s: {self._unfinished()}")

    def _unfinished(self) -> list[str]:
        return [match for match in self.office.made if not self.witness.matches[match].journals]

    def _leave(self) -> None:
        """The bots go home, then the servers, and nothing may be left."""
        for bot in self.bots:
            bot.seated.loop.call_soon(bot.seated.session.drain_matches)
        self._run("going home", lambda: all(bot.seated.has_left for bot in self.bots), LEAVE_S)
        self._run("being idle", lambda: self._is_idle() and self._has_room_for_owners(), LEAVE_S)
        self.check_left_behind()
        self._check_books()
        # A process that has died is started again, and could not be told to stop before that.
        self._run("being up again", lambda: all(slot.is_up for slot in self.slots), LEAVE_S)
        self.is_closing = True
        for slot in self.slots:
            slot.server.leave(lambda: None)
        self._run("the end", lambda: all(slot.server.has_left for slot in self.slots), LEAVE_S)

    def _is_calm(self) -> bool:
        """All processes have been up for long enough that bots have found a lobby: one that leaves is told of its seats."""
        if not all(slot.is_up for slot in self.slots):
            self.calm_since = self.clock.now
        return self.clock.now > self.calm_since + CALM_S

    def _is_idle(self) -> bool:
        is_seating = any(key.endswith(":seating") for key in self.redis.model.names())
        return (
            not is_seating
            and not self.redis.model.peek(keys.JOB_MARKERS)
            and all(slot.is_up and _is_idle(slot.server) for slot in self.slots)
        )

    def _has_room_for_owners(self) -> bool:
        """Whether no lobby leaves bots in its queues because of matches that are over."""
        lobbies = [slot.server.lobby for slot in self.slots if isinstance(slot.server, Server)]
        return not any(lobby.pairing._quotas._full for lobby in lobbies if lobby)

    # Its end

    def check_left_behind(self) -> None:
        """Nothing of a match is left but what is kept of it."""
        for slot in self.slots:
            if isinstance(slot.server, HttpProcess):
                self._check_left(slot.server.name, slot.server.left)
            elif slot.server.referee:
                self._check_referee(slot.server)
        queues = {keys.queue_waiting(each) for each in (self.climate.queue, *self.queues_of("ugo"))}
        for key in self.redis.model.names():
            if key.endswith(LEFT_BEHIND) and key not in queues:  # a bot that has left may still be there
                self.witness.wrong(f"left in Redis: {key}")
        for key in (keys.JOB_MARKERS, keys.JOB_STREAM, keys.HOSTED_JOB_STREAM):
            if (left := self.redis.model.peek(key)) and (key == keys.JOB_MARKERS or left.ids):
                self.witness.wrong(f"left in Redis: {key} {left}")

    def _check_books(self) -> None:
        """GetMatch, GetRecord and ListMatches know every match that is over, and no other."""
        over = {
            match: seen.state for match, seen in self.witness.matches.items() if seen.journals or seen.ends
        }
        self.office.look_up(over)
        self._run("looking matches up", lambda: self.office.books is not None, LEAVE_S)
        for wrong in (*wrongs_of_books(over, self.office.books or Books()), *self.owners.find_wrongs(over)):
            self.witness.wrong(wrong)

    def _check_referee(self, server: Server) -> None:
        assert server.referee
        referee = server.referee.referee
        left = {
            "tables": list(referee.tables), "jobs": list(referee.open_tables._jobs), "opening": list(referee._opening),
            "held": list(server.flusher._tails), "appends": list(server.flusher._pending),
            "streams": list(referee.streams._streams),
        }  # fmt: skip
        self._check_left(server.name, left)

    def _check_left(self, process: str, left: Mapping[str, Sequence[object]]) -> None:
        for what, names in left.items():
            if names:
                self.witness.wrong(f"left at {process}: {what} {names[:3]}")

    def check(self) -> None:
        """All matches, now that they are over."""
        blameless = {bot.bot for bot in self.bots if bot.is_good}
        for match, seen in self.witness.matches.items():
            setup = self.setup_of(match)
            if not setup:
                continue  # which is wrong, and has been said
            bots = [seat["bot"] for seat in setup["seats"]] if "seats" in setup else setup["bots"]
            packed = self.redis.model.peek(keys.match_record(match))
            record = zlib.decompress(packed) if packed else None
            wrongs = list(wrongs_of(match, seen, record, lambda seat, bots=bots: bots[seat] in blameless))
            for wrong in wrongs:
                self.witness.wrong(wrong)
            self._count(match, seen, keeps=bool(wrongs))
        for bot in self.bots:
            self._check_no_shows(bot)
        for fault in self.clock.faults:
            self.witness.wrong(fault)

    def setup_of(self, match: str) -> dict[str, Any]:
        """Empty if the match has no meta."""
        meta = self.redis.model.peek(keys.match_meta(match))
        return json.loads(meta[b"setup"]) if meta else {}

    def _check_no_shows(self, bot: Place) -> None:
        """Nothing is held against a bot that sits down wherever it knows of a seat."""
        held = self.redis.model.peek(keys.bot_no_shows(bot.bot)) or {}
        missed = held.get(b"matches", b"").decode().split()
        if bot.is_silent:
            self.witness.counts["a no-show counts"] += len(missed)
        elif bot.is_good and missed:
            self.witness.wrong(f"no-shows are held against {bot.bot}: {missed}")

    def _count(self, match: str, seen: Seen, *, keeps: bool) -> None:
        for entry in entries_of(line for journal in seen.journals for line in journal):
            kind = f"{entry['kind']} {entry.get('reason', '') or entry.get('why', '')}"
            self.witness.counts[f"journal: {kind.strip()}"] += 1
            if keeps:
                self.witness.note("JOURNAL", match, entry)

    def forget(self) -> None:
        """Whatever is still on its way in this world never happens."""
        for loop in self.loops:
            loop.on_killed = lambda: None
            loop.kill()
        self.clock.stop()


def _is_idle(server: Server | HttpProcess) -> bool:
    if isinstance(server, HttpProcess):
        return not any(server.left.values())
    referee = server.referee.referee if server.referee else None
    return referee is None or not (
        referee.tables or referee._opening or referee.open_tables._jobs or len(referee.streams)
    )


_APPEND = scripts.script_named("append").sha.encode()
_PLACES = {
    scripts.script_named(name).sha.encode(): place
    for name, place in {
        "append": "written", "queue_take": "proposed", "match_create": "created", "seat_reserve": "reserved",
        "seat_release": "released", "match_drop": "dropped", "job_push": "pushed",
    }.items()
}  # fmt: skip
"""Where a process is on its path, by the script that Redis has run for it."""


def play(seed: int, climate: Climate, *, keeps_log: bool = False) -> Outcome:
    """One world, from its seed."""
    gc.collect()
    gc.disable()  # what is tidied up must not depend on when the collector comes
    Task.count_anew()
    clock = Clock()
    try:
        with seeded(str(seed), lambda: clock.now), overheard(clock):
            world = World(seed, climate, clock, keeps_log=keeps_log)
            world.play()
            world.check()
            counts, wrongs = world.witness.counts, world.witness.wrongs
            outcome = Outcome(
                seed, climate.name, world.witness.digest, wrongs, counts, sum(bool(seen.journals) for seen in world.witness.matches.values()),
                sum(len(seen.accepted) for seen in world.witness.matches.values()), world.weather.struck, clock.now - 1000, clock.steps, world.witness.log or [],
            )  # fmt: skip
            world.forget()
            del world
            for _ in range(5):  # what the first round throws away throws away more
                gc.collect()
            return outcome
    finally:
        gc.enable()


@contextmanager
def overheard(clock: Clock) -> Iterator[None]:
    """The programs in the world write no log; what they call an error is one of theirs."""

    def overhear(_: Any, level: str, event: dict[str, Any]) -> Any:
        error = event.pop("exc_info", None) and "".join(traceback.format_exc())
        clock.faults.append(f"logged as {level}: {event} {error or ''}")
        raise structlog.DropEvent

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if any(part in record.getMessage() for part in OF_QUOTAS):
                return
            clock.faults.append(f"logged as {record.levelname}: {record.getMessage()}")

    handler, sdk = Handler(logging.ERROR), logging.getLogger("seatwise")
    before, hook = structlog.get_config(), sys.unraisablehook
    level, does_propagate = sdk.level, sdk.propagate
    sys.unraisablehook = lambda _: None  # the tasks of the dead are thrown away when their world ends
    sdk.addHandler(handler)
    sdk.setLevel(logging.ERROR)
    sdk.propagate = False
    structlog.configure(
        [overhear], wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        cache_logger_on_first_use=False,
    )  # fmt: skip
    try:
        yield
    finally:
        structlog.configure(**before)
        sdk.removeHandler(handler)
        sdk.setLevel(level)
        sdk.propagate, sys.unraisablehook = does_propagate, hook
