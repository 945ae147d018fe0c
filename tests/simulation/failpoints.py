"""Harms one process at every step that it takes with Redis or a bot, one step after the other.

A failpoint is a command that some function sends to Redis, or a message that it writes to a caller. No list of them is
kept: they are found while a small world plays, by the functions that are on the way when bytes leave a process. When a
failpoint is met for the first time, the program forks once for each harm. The child does the harm there and plays its
world to the end; the parent goes on. So each harm meets a world in which nothing else has gone wrong, except what its
story asks for.

    python -m simulation.failpoints                                        # all stories, all harms
    python -m simulation.failpoints --story plain --harm killed --point seat_reserve

Every world must come to the same end: nothing is lost, nothing is doubled, no bot is flagged, and nothing is left behind.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import re
import signal
import sys
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from seasons.one_season import league_of

from seatwise.season.audit_chain import verify_audit_log
from seatwise.v1 import access_service_pb2, ladder_pb2, league_pb2, match_pb2, owner_service_pb2
from seatwise.v1 import ladder_service_pb2 as ladders
from seatwise.v1 import league_service_pb2 as leagues
from seatwise.v1 import match_service_pb2 as matches
from seatwise_server.ladder.ladder_worker import StrengthsByBot, strengths_by_bot
from seatwise_server.league.settings import Entrant
from seatwise_server.store import ResultLogs, keys
from seatwise_server.store.redis.client import SharedMessages
from seatwise_server.store.tokens import ACCESS_KIND, new_text
from simulation.chance import seeded
from simulation.clock import Clock, Task
from simulation.owners import OwnerPlan, run_script
from simulation.paths import MESSAGE, READS, Failpoint, name_of, path_here, path_to
from simulation.players import wanted
from simulation.world import Climate, Slot, World, overheard

LADDER = "ladders/failpoints"
LEAGUE = "leagues/failpoints"
DEAL_SET = "sets/failpoints"
CARD_MS = 20_000
ASLEEP_S = 20.0
REDIS_DOWN_S = 2.0
PLAYED_S = 3.0
LONGEST_PLAYED_S = 12.0
"""The time by which a match of each kind is over, in a story in which one of each kind can be."""
KINDS_OF_ENDS = frozenset({"retire", "retire (ladders)", "retire (leagues)"})
"""The last step of a match, by its kind."""
"""Seconds of the world's time in which bots are paired again and again."""
CHILD_S = 120
"""A child that takes longer than this on a clock of the real machine hangs."""
MOST_SHOWN = 5

LADDER_ONLY = ("bot-1", "bot-3")
OWNERS = (
    OwnerPlan("owners/many", ("bot-0", "bot-1"), at_once=2, a_day=1000),
    OwnerPlan("owners/few", ("builder-0", "silent-0"), at_once=2, a_day=3),
)
TIGHT_OWNERS = (
    OwnerPlan("owners/many", ("bot-0", "bot-1"), at_once=1, a_day=1000),
    OwnerPlan("owners/few", ("bot-3", "builder-0"), at_once=2, a_day=2),
)
"""Each of them soon reaches its limit, and then there is hardly a match for the others."""

REFUSED_TO_OWNERS = "OwnerService/CreateInvite"
"""A method that is refused to owners, and logged. In a world the address of a caller is the method that it calls."""
ERASED_AFTER_S = 0.5


# Harms


def _kill(_: SmallWorld, slot: Slot) -> None:
    slot.server.loop.kill()


def _put_to_sleep(_: SmallWorld, slot: Slot) -> None:
    slot.stands_still(ASLEEP_S)


def _lose_redis(world: SmallWorld, _: Slot) -> None:
    world.redis.restart(REDIS_DOWN_S)


class Harm(NamedTuple):
    """What is done at a failpoint."""

    name: str
    do: Callable[[SmallWorld, Slot], None]
    is_after: bool
    """Whether Redis has carried the command out, or the message is on its way."""
    at_messages: bool = True


HARMS = (
    Harm("killed before", _kill, is_after=False, at_messages=False),
    Harm("killed after", _kill, is_after=True),
    Harm("asleep after", _put_to_sleep, is_after=True),
    Harm("Redis lost before", _lose_redis, is_after=False, at_messages=False),
    Harm("Redis lost after", _lose_redis, is_after=True, at_messages=False),
)


@dataclass(frozen=True)
class Story:
    """What goes wrong in a world by itself, so that the steps of mending it are met too."""

    name: str
    struck: tuple[str, str] | None = None
    """A role and a place of `world._PLACES`: the first process of that role that comes there is killed."""
    silent_bots: int = 0
    has_abort: bool = False
    owners: tuple[OwnerPlan, ...] = OWNERS
    erased: str = ""
    """The owner that is erased while its bots play."""


STORIES = (
    Story("plain", has_abort=True),
    Story("a referee dies", struck=("referee", "written")),
    Story("a lobby dies", struck=("lobby", "pushed")),
    Story("a bot never sits down", silent_bots=1),
    Story("owners are at their limits", owners=TIGHT_OWNERS),
    Story("an owner is erased", erased=OWNERS[0].name),
)


# A world


def _as_bytes(word: bytes | str | int) -> bytes:
    return word if isinstance(word, bytes) else str(word).encode()


@contextmanager
def overheard_commands(world: SmallWorld) -> Iterator[None]:
    """The world is told each command where a function of the store asks for it."""
    send_commands = SharedMessages.send_commands

    def overhear(messages: SharedMessages, commands: Sequence[Any]) -> Any:
        if world.harmed_at_s is None:
            world.note_asked(commands)
        return send_commands(messages, commands)

    SharedMessages.send_commands = overhear  # type: ignore[method-assign]
    try:
        yield
    finally:
        SharedMessages.send_commands = send_commands  # type: ignore[method-assign]


class StrengthsHere:
    """Fits strengths in this process: a world has no others."""

    def __init__(self, results: ResultLogs) -> None:
        self._results = results

    async def fetch_strengths(self, ladder: str, results: int) -> tuple[StrengthsByBot, float]:
        """See `StrengthClient`."""
        return strengths_by_bot(await self._results.read_results(ladder, 0, results)), 0.0

    def kill_process(self) -> None:
        """There is none."""

    async def close_process(self) -> None:
        """There is none."""


class SmallWorld(World):
    """Two lobbies, two referees, and matches of every kind: created, of a league's set, of a ladder, from a queue."""

    def __init__(
        self, clock: Clock, story: Story, find_harm: Callable[[Failpoint, bool], Harm | None]
    ) -> None:
        climate = Climate(
            "failpoints", {}, CARD_MS, matches=0, within_s=PLAYED_S, referees=2, lobbies=2, bots=4, queue="casual-2",
            silent_bots=story.silent_bots, most_at_once=2, think_s=(0.3,), has_http=False, owners=story.owners,
        )  # fmt: skip
        self.story = story
        self.is_prepared = False
        self.harmed_at_s: float | None = None
        self._ends_met: frozenset[str] = frozenset()
        self._find_harm = find_harm
        self._has_read_logs = False
        super().__init__(5, climate, clock)
        self.owners.also_pairs_in(LADDER)
        self.erasure = Erasure(self, story.erased) if story.erased else None
        self._asked: dict[tuple[str, tuple[bytes, ...]], tuple[str, ...]] = {}
        """By host and command: who has asked for it. Commands of many callers leave a process in one message."""
        self.redis.site_of_sender = self._path_of
        self.redis.strike = self._strike_command

    def queues_of(self, game: str, host: str = "") -> tuple[str, ...]:
        """As in every world, and the ladder; two bots wait nowhere else, so that it has matches."""
        if host in LADDER_ONLY:
            return (LADDER,)
        return (self.climate.queue, LADDER) if game == "ugo" else ()

    # Harms

    def note_asked(self, commands: Sequence[Sequence[Any]]) -> None:
        """A process is about to send these commands."""
        host, path = asyncio.events._get_running_loop().name, path_here()  # type: ignore[union-attr]
        for words in commands:
            self._asked[host, tuple(_as_bytes(word) for word in words)] = path

    def _path_of(self, host: str, command: list[bytes]) -> tuple[str, ...]:
        return self._asked.pop((host, tuple(command)), None) or path_here()

    def on_started(self, slot: Slot) -> None:
        """Listens to all that the process says to bots and callers."""
        if self.harmed_at_s is None:
            slot.server.listener.on_sent = lambda: self._strike_message(slot)
        slot.server.new_strength_client = StrengthsHere

    def _strike_command(self, host: str, site: Any, command: list[bytes], is_done: bool) -> bool:
        slot = next((slot for slot in self.slots if slot.host == host), None)
        if slot is None or not site:
            return False
        step = name_of(command) + self._kind_of(command)
        self._ends_met |= {step} & KINDS_OF_ENDS
        return self._strike(slot, (*site, step), is_done)

    def _kind_of(self, command: list[bytes]) -> str:
        """The kind of the match that the command is about: its steps are others in a league, on a ladder or in neither."""
        found = re.search(rb"\{match:([^}]+)\}", b" ".join(command[:6]))
        competition = (
            self.setup_of(f"matches/{found[1].decode().removeprefix('matches/')}").get("competition", "")
            if found
            else ""
        )
        return f" ({competition.partition('/')[0]})" if competition else ""

    def _strike_message(self, slot: Slot) -> None:
        if path := path_to(sys._getframe(1)):
            slot.server.loop.after_steps(0, lambda: self._strike(slot, (*path, MESSAGE), True))

    def _strike(self, slot: Slot, path: tuple[str, ...], is_done: bool) -> bool:
        if self.is_closing:  # the world ends here: nobody is started again
            return False
        harm = self._find_harm(Failpoint(slot.host.partition("-")[0], path), is_done)
        if harm is None:
            return False
        self.harmed_at_s = self.clock.now
        self._stop_looking()
        harm.do(self, slot)
        return True

    def _stop_looking(self) -> None:
        """One harm is enough."""
        Task.find_origin = None
        self.redis.site_of_sender = self.redis.strike = None
        for slot in self.slots:
            slot.server.listener.on_sent = lambda: None

    # Its course

    def play(self) -> None:
        """Until all matches that were asked for are over, and after a harm all processes are well again."""
        for slot in self.slots:
            slot.start()
        self._run("the start", lambda: self.clock.now > 1001, 2)
        self.office.loop.create_task(self._prepare())
        if self.story.struck:
            self.clock.after(1.5, self._arm)
        self._run("the matches", self._is_played, 300)
        self._run("clearing up", self._is_calm, 60)
        self._leave()

    def _arm(self) -> None:
        assert self.story.struck
        role, place = self.story.struck
        by_host = {slot.host: slot for slot in self.slots}
        self.weather.arm(role, place, lambda host: by_host[host].server.loop.kill())

    def _is_played(self) -> bool:
        if not self.is_prepared or not all(self.witness.matches[name].journals for name in self.office.made):
            return False
        if self.harmed_at_s is not None:
            return True
        played_s = self.clock.now - 1001
        return played_s > PLAYED_S and (self._ends_met >= KINDS_OF_ENDS or played_s > LONGEST_PLAYED_S)

    async def _prepare(self) -> None:
        """Has a ladder, a league and matches made."""
        ugo = [bot.bot for bot in self.bots if bot.game == "ugo" and not bot.is_silent]
        builders = [bot.bot for bot in self.bots if bot.game == "ubongo"]
        await self._make_competitions(ugo)
        for number in (1, 2):
            request = wanted("ugo", ugo[2 * number - 2 : 2 * number], number, CARD_MS)
            request.league = LEAGUE
            request.deal_set.CopyFrom(match_pb2.DealSet(name=DEAL_SET, number=number, size=2))
            await self.office.make_match(request)
        await self.office.make_match(wanted("ubongo", builders, 3, CARD_MS))
        if self.story.has_abort:
            match = await self.office.make_match(wanted("ugo", ugo[:2], 4, CARD_MS))
            request = matches.AbortMatchRequest(name=match)
            await self.office.ask("MatchService/AbortMatch", request, matches.AbortMatchResponse, "NOT_FOUND")
        for bot in (
            self.bots
        ):  # last: ladder and queue take every place that is free, and the matches would wait for long
            bot.start()
        if self.erasure:
            await self.erasure.erase_owner()
        self.is_prepared = True

    async def _make_competitions(self, bots: Sequence[str]) -> None:
        ladder = ladder_pb2.Ladder(
            name=LADDER, game="games/ugo", seats=2, options={"rounds": "1"}, owners_together=True
        )
        await self.office.ask(
            "LadderService/CreateLadder",
            ladders.CreateLadderRequest(ladder=ladder),
            ladders.CreateLadderResponse,
        )
        entrants = tuple(Entrant(f"bot{place}", bot) for place, bot in enumerate(bots))
        settings = json.dumps(league_of(entrants=entrants).to_published_json())
        request = leagues.CreateLeagueRequest(league=league_pb2.League(name=LEAGUE, settings=settings))
        await self.office.ask("LeagueService/CreateLeague", request, leagues.CreateLeagueResponse)

    # Its end

    def _check_books(self) -> None:
        super()._check_books()
        self._check_results()
        self.office.loop.create_task(self._check_logs())
        self._run("reading the logs", lambda: self._has_read_logs, 60)
        if self.erasure:
            self.erasure.check()

    def _check_results(self) -> None:
        """No bot is killed here: each was told how its matches ended, whoever else was harmed."""
        silent = {bot.bot for bot in self.bots if bot.is_silent}
        for match, seen in self.witness.matches.items():
            if not seen.journals or seen.state != "FINISHED":
                continue
            told = {seat for _, seat in seen.results}
            for seat, bot in enumerate(self.setup_of(match)["bots"]):
                if seat not in told and bot not in silent:
                    self.witness.wrong(f"{bot} was never told the result of {match}")

    async def _check_logs(self) -> None:
        """Each result is logged once, the set of deals is over, and both tables count what the logs hold."""
        ladder = await self.office.ask(
            "LadderService/ListLadderResults",
            ladders.ListLadderResultsRequest(ladder=LADDER, page_size=1000),
            ladders.ListLadderResultsResponse,
        )
        league = await self.office.ask(
            "LeagueService/ListLeagueResults",
            leagues.ListLeagueResultsRequest(league=LEAGUE),
            leagues.ListLeagueResultsResponse,
        )
        for name, logged in ((LADDER, ladder.results), (LEAGUE, league.results)):
            self._check_log(name, Counter(result.match for result in logged))
        request = matches.GetDealSetRequest(name=DEAL_SET)
        deals = await self.office.ask("MatchService/GetDealSet", request, matches.GetDealSetResponse)
        if not deals.over:
            self.witness.wrong(f"{DEAL_SET} is not over: {deals}")
        self._has_read_logs = True

    def _check_log(self, competition: str, logged: Counter[str]) -> None:
        for match, seen in self.witness.matches.items():
            is_its = self.setup_of(match).get("competition") == competition
            should_be = is_its and seen.state == "FINISHED"
            if logged[match] != should_be:
                self.witness.wrong(f"{match} is {logged[match]} times in the log of {competition}")


class Erasure:
    """An owner that has a token and bots, is refused something, and is erased. The call is repeated until it is answered."""

    def __init__(self, world: SmallWorld, owner: str) -> None:
        self._world = world
        self._owner = owner
        name = "tokens/" + "a" * 16
        self._token, token_hash = new_text(ACCESS_KIND, name.removeprefix("tokens/"))
        redis = world.redis.model
        args = (owner, "own", token_hash, f"{owner} joins", "0", "0")
        run_script(redis, "access_token_create", [keys.access_token(name)], *args)
        redis.call(b"ZADD", keys.ACCESS_TOKEN_INDEX.encode(), b"0", name.encode())
        for bot in world.bots:
            redis.call(b"ZADD", keys.BOT_INDEX.encode(), b"0", bot.bot.encode())

    async def erase_owner(self) -> None:
        """In the midst of its matches."""
        office = self._world.office
        invite = owner_service_pb2.CreateInviteRequest(), owner_service_pb2.CreateInviteResponse
        await office.ask(REFUSED_TO_OWNERS, *invite, "SCOPE_MISSING", token=self._token)
        await asyncio.sleep(ERASED_AFTER_S)
        if self._find(self._owner) == [] or self._find(REFUSED_TO_OWNERS) == []:
            self._world.witness.wrong(f"{self._owner} is not there before it is erased")
        self._world.owners.forget(self._owner)
        request = access_service_pb2.EraseOwnerRequest(owner=self._owner)
        await office.ask("AccessService/EraseOwner", request, access_service_pb2.EraseOwnerResponse)

    def check(self) -> None:
        """Its name and its address are nowhere, and the audit log verifies."""
        for text in (self._owner, REFUSED_TO_OWNERS):
            if left := self._find(text):
                self._world.witness.wrong(f"{text} is erased, and is left in {left}")
        log = self._world.redis.model.peek(keys.AUDIT_LOG)
        lines = [fields[1] + b"\n" for fields in log.fields.values()]
        count, _, fault = verify_audit_log(lines)
        if fault or count != len(lines):
            self._world.witness.wrong(f"the audit log of {len(lines)} lines does not verify: {fault}")

    def _find(self, text: str) -> list[str]:
        """The keys that hold the text, in their name or their value; the methods of the audit log are no addresses."""
        redis = self._world.redis.model
        values = {key: redis.peek(key) for key in redis.names() if key != keys.AUDIT_LOG}
        held = {key: repr(getattr(value, "fields", value)) for key, value in values.items()}
        return [key for key, value in held.items() if text in key or text in value]


# Worlds that fork


class Verdict(NamedTuple):
    """What became of one harm."""

    failpoint: Failpoint
    harm: str
    wrongs: list[str]


class Forks:
    """Forks at each failpoint that is met for the first time, once for each harm."""

    def __init__(
        self,
        harms: Sequence[Harm],
        words: Sequence[str],
        jobs: int,
        report: Callable[[Verdict], None],
        *,
        has_writes_alone: bool = False,
        half_of: str = "",
    ) -> None:
        """With `half_of`, the name of a story, only half of the harms are done: of a failpoint that all stories come by, others in each."""
        self.done: tuple[Failpoint, Harm] | None = None
        """In a child: what it has done."""
        self.told = -1
        """In a child: where its verdict goes."""
        self._harms = harms
        self._has_writes_alone = has_writes_alone
        self._half_of = half_of
        self._words = words
        self._jobs = jobs
        self._report = report
        self._seen: set[tuple[Failpoint, bool]] = set()
        self._children: deque[tuple[int, int, Failpoint, Harm]] = deque()

    def find_harm(self, failpoint: Failpoint, is_after: bool) -> Harm | None:
        """Forks if the failpoint is new; in the child, returns the harm to do."""
        if self.done:
            return None
        if (failpoint, is_after) in self._seen:
            return None
        self._seen.add((failpoint, is_after))
        if self._words and not any(word in str(failpoint) for word in self._words):
            return None
        if self._has_writes_alone and failpoint.path[-1].partition(" ")[0] in READS:
            return None
        is_message = failpoint.path[-1] == MESSAGE
        for harm in self._harms:
            if (
                harm.is_after == is_after
                and (harm.at_messages or not is_message)
                and not (self._half_of and zlib.crc32(f"{failpoint}{harm.name}{self._half_of}".encode()) & 1)
                and self._fork(failpoint, harm)
            ):
                return harm
        return None

    def _fork(self, failpoint: Failpoint, harm: Harm) -> bool:
        """Whether this is the child."""
        while len(self._children) >= self._jobs:
            self._reap()
        reads, writes = os.pipe()
        sys.stdout.flush()
        if pid := os.fork():
            os.close(writes)
            self._children.append((pid, reads, failpoint, harm))
            return False
        signal.alarm(CHILD_S)
        os.close(reads)
        self.done, self.told = (failpoint, harm), writes
        return True

    def _reap(self) -> None:
        pid, reads, failpoint, harm = self._children.popleft()
        with os.fdopen(reads, "rb") as pipe:
            told = pipe.read()
        _, status = os.waitpid(pid, 0)
        wrongs = json.loads(told) if told else [f"its process ended with {os.waitstatus_to_exitcode(status)}"]
        self._report(Verdict(failpoint, harm.name, wrongs))

    def reap_all(self) -> None:
        """Waits for all children."""
        while self._children:
            self._reap()

    def tell(self, wrongs: Sequence[str]) -> None:
        """In a child: its last word."""
        with os.fdopen(self.told, "wb") as pipe:
            pipe.write(json.dumps([wrong[:600] for wrong in wrongs[:20]]).encode())
        os._exit(0)


def play_story(story: Story, forks: Forks) -> list[str]:
    """What is wrong in the world without a harm; children never return."""
    gc.collect()
    gc.disable()
    Task.count_anew()
    Task.find_origin = path_here
    clock = Clock()
    try:
        with seeded(story.name, lambda: clock.now), overheard(clock):
            world = SmallWorld(clock, story, forks.find_harm)
            try:
                with overheard_commands(world):
                    world.play()
                world.check()
            except Exception as error:
                world.witness.wrong(f"{error!r}")
            wrongs = list(world.witness.wrongs)
            if forks.done:
                forks.tell(wrongs)
            forks.reap_all()
            world.forget()
            return wrongs
    finally:
        Task.find_origin = None
        gc.enable()


# The program


def _parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m simulation.failpoints", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--story", action="append", choices=[it.name for it in STORIES], help="only this one")
    parser.add_argument("--harm", action="append", choices=[it.name for it in HARMS], help="only this one")
    parser.add_argument(
        "--point",
        action="append",
        default=[],
        metavar="WORD",
        help="only failpoints whose path has this word",
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: %(default)s)"
    )
    parser.add_argument(
        "--writes", action="store_true", help="only commands that change something, and messages"
    )
    parser.add_argument("--half", action="store_true", help="half of the harms, in each story others")
    parser.add_argument("--list", action="store_true", help="name all failpoints")
    return parser.parse_args()


def _play_stories(args: argparse.Namespace) -> Iterator[tuple[Story, list[str], list[Verdict], int]]:
    harms = [it for it in HARMS if not args.harm or it.name in args.harm]
    for story in STORIES:
        if args.story and story.name not in args.story:
            continue
        verdicts: list[Verdict] = []

        def report(verdict: Verdict, story: Story = story, verdicts: list[Verdict] = verdicts) -> None:
            verdicts.append(verdict)
            if verdict.wrongs:
                _show(story, verdict)

        half_of = story.name if args.half else ""
        forks = Forks(harms, args.point, args.jobs, report, has_writes_alone=args.writes, half_of=half_of)
        wrongs = play_story(story, forks)
        if args.list:
            print(*sorted({str(point) for point, _ in forks._seen}), sep="\n")
        yield story, wrongs, verdicts, len({point for point, _ in forks._seen})


def _show(story: Story, verdict: Verdict) -> None:
    print(f"\n{story.name}: {verdict.harm} at {verdict.failpoint}")
    print(*(f"  {wrong}" for wrong in verdict.wrongs[:MOST_SHOWN]), sep="\n", flush=True)


def main() -> int:
    """0 if every world came to the same end."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        args = [sys.executable, "-m", "simulation.failpoints", *sys.argv[1:]]
        os.execve(sys.executable, args, os.environ | {"PYTHONHASHSEED": "0"})
    is_wrong = False
    for story, wrongs, verdicts, count in _play_stories(_parse_args()):
        if wrongs:
            print(
                f"\n{story.name}: without any harm",
                *(f"  {wrong}" for wrong in wrongs[:MOST_SHOWN]),
                sep="\n",
            )
        bad = sum(bool(each.wrongs) for each in verdicts)
        print(f"{story.name}: {count} failpoints, {len(verdicts)} harms, {bad} worlds wrong", flush=True)
        is_wrong |= bool(bad or wrongs)
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
