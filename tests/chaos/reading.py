"""What is left of a run when all is over: histories, records, and what should not be left."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence

from chaos.check import Check, Findings, longest_gap, overlap, wrongs_of_log
from chaos.history import Line, read
from chaos.world import World, opened
from seatwise.v1 import play_service_pb2
from seatwise_server.store import Store

RETURN_S = 3.0
"""So long after it was started again a bot may not be back yet."""
LOOK_S = 0.1


class Books:
    """Collected while Redis is up, looked through when nothing is."""

    def __init__(self, world: World, created: set[str]) -> None:
        self.problems: list[str] = []
        self.stuck: list[str] = []
        """What did not come to its end."""
        self.longest_gap_s = 0.0
        self.finished = 0
        self._world = world
        self._told = _told(world)
        self._matches = sorted(created | self._told.keys())
        self._records: dict[str, bytes] = {}
        self._voided: dict[str, str] = {}
        self._competitions: dict[str, str] = {}
        """The ladder or league of each match that counts for one."""
        self._bots: dict[str, list[int]] = {}
        """The numbers of the bots of each match, by seat."""

    # While Redis is up

    async def nothing_held(self) -> None:
        """Every match is delivered soon after its end, and its bots are free."""
        async with opened(self._world.redis) as store:
            while await _held(store, self._world):  # noqa: ASYNC110  # there is no event to wait for
                await asyncio.sleep(LOOK_S)

    async def collect(self) -> None:
        """Reads all records, and what the servers logged."""
        async with opened(self._world.redis) as store:
            for match in self._matches:
                await self._collect(store, match)
            for competition in filter(None, (self._world.ladder, self._world.league)):
                self.problems += wrongs_of_log(
                    competition, await _logged(store, competition), self._finished(competition)
                )
        for server in (*self._world.fronts, *self._world.referees):
            self.problems += [f"{server} logged: {line:.300}" for line in server.faults]

    async def _collect(self, store: Store, match: str) -> None:
        meta, record = await store.matches.get_meta(match), await store.matches.get_record(match)
        state = meta.state if meta else "forgotten"
        numbers = {bot.name: bot.number for bot in self._world.bots}
        setup = json.loads(meta.fields["setup"]) if meta else {"bots": []}
        self._bots[match] = [numbers[bot] for bot in setup["bots"]]
        self._competitions[match] = setup.get("competition", "")
        if state == "VOIDED" and meta:
            self._voided[match] = play_service_pb2.MatchEnded.FromString(meta.fields["result"]).void_reason
        elif state == "FINISHED" and record:
            self._records[match] = record
        else:
            self.stuck.append(f"{match} is not over, it is {state}")

    def _finished(self, competition: str) -> dict[str, str]:
        """The last hash of the record of each finished match that counts for it."""
        return {
            match: json.loads(record)["chain"]
            for match, record in self._records.items()
            if self._competitions[match] == competition
        }

    # When nothing is

    @property
    def voided(self) -> int:
        """How many matches are void."""
        return len(self._voided)

    def checked(self) -> Findings:
        """Holds every history against its record."""
        findings = Findings()
        self.stuck += [f"{match} was not read in time" for match in self._matches if match not in self._bots]
        for match in self._bots:
            seats = self._told.get(match, {})
            excused = [seat for seat, bot in enumerate(self._bots[match]) if self._was_away(bot, seats)]
            told = {seat: lines for seat, (_, lines) in seats.items()}
            if match in self._records:
                Check(self._records[match], told, excused, findings).run()
                spans = [span for bot, _ in seats.values() for span in self._away(bot)]
                self.longest_gap_s = max(self.longest_gap_s, longest_gap(told, spans))
            elif match in self._voided and not self._is_excused(match, told, excused):
                findings.wrong_flags.append(f"{match}: voided as {self._voided[match]}")
        self.finished = len(self._records)
        return findings

    def _is_excused(self, match: str, told: Mapping[int, list[Line]], excused: Sequence[int]) -> bool:
        """Whether it is void through those alone who were away: no one was left, or they never sat down."""
        if self._voided[match] == "TOO_FEW_SAT":
            sat = {seat for seat, lines in told.items() if any(line["what"] == "shown" for line in lines)}
            return set(range(len(self._bots[match]))) <= sat | set(excused)
        return self._voided[match] == "ABANDONED" and len(excused) == len(self._bots[match])

    def _was_away(self, bot: int, seats: Mapping[int, tuple[int, list[Line]]]) -> bool:
        """Whether the bot was killed or stopped while the match was played, or the gateway through which it plays."""
        at = [line["at"] for _, lines in seats.values() for line in lines]
        return bool(at) and overlap(self._away(bot), min(at), max(at))

    def _away(self, bot: int) -> list[tuple[float, float]]:
        player = self._world.bots[bot]
        away = player.away + (player.gateway.away if player.gateway else [])
        return [(since, until + RETURN_S) for since, until in away]


async def _held(store: Store, world: World) -> bool:
    """Whether a match waits for a referee or is under way, or a bot holds a seat."""
    return bool(
        await store.jobs.count_unfinished()
        or any([await store.seats.held_seats(bot.name) for bot in world.bots])
    )


async def _logged(store: Store, competition: str) -> list[tuple[str, str]]:
    """Each match that is in the log, and the last hash of its record."""
    found = list[tuple[str, str]]()
    while results := await store.results.read_results(competition, len(found)):
        found += [(result.match, result.chain) for result in results]
    return found


def _told(world: World) -> dict[str, dict[int, tuple[int, list[Line]]]]:
    """By match and seat: the bot's number, and what it wrote down."""
    found: dict[str, dict[int, tuple[int, list[Line]]]] = defaultdict(dict)
    for bot in world.bots:
        for line in read(bot.history):
            if "match" in line:
                found[line["match"]].setdefault(line["seat"], (bot.number, []))[1].append(line)
    return dict(found)
