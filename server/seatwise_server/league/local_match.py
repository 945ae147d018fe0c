"""A match of a league at a local table: what a worker process is told of it, and what it tells of its end."""

from __future__ import annotations

import hmac
import json
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from seatwise.bot import BotFactory, Failure, NewFailures
from seatwise.errors import UsageError
from seatwise.kits import use_deck_files
from seatwise.local.matches import LocalWaiter
from seatwise.local.table import LocalPlayer, LocalTable, local_times
from seatwise.samples import load_bot, load_version
from seatwise.units import UnitAnswer, UnitPlan
from seatwise.units.plan import UnitPlayer, encode_result
from seatwise_referee.games.registry import GAMES
from seatwise_referee.setup import DealSet, Setup
from seatwise_referee.shuffle import seed_in_set
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.schedule import ScheduledMatch, SharedDeal
from seatwise_server.league.naming import deal_name, request_id_of
from seatwise_server.league.settings import League
from seatwise_server.resource_names import match_name_for


@dataclass(frozen=True, slots=True)
class LocalSeason:
    """The settings that all matches of a season at local tables share."""

    league: League
    name: str
    """The resource name of the league."""
    key: bytes
    """Seeds of deals and of the bots' random numbers follow from it, so it is secret until the season is over."""
    decks: tuple[str, ...] = ()
    """Deck files of one's own."""

    def to_unit_plan(self, due: Sequence[ScheduledMatch] = ()) -> UnitPlan:
        """Return the plan of units, one for each match. Parts are of these `due` matches, and fit no others."""
        settings = {
            "league": self.league.to_json(),
            "name": self.name,
            "key": self.key.hex(),
            "decks": list(self.decks),
            "due": [asdict(match) for match in due],
        }
        bots = {each.bot for each in self.league.entrants if ":" in each.bot}
        text = "seatwise_server.league.local_match:open_matches"
        return UnitPlan(text, settings, (*sorted(bots), *self.decks))

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> LocalSeason:
        """Return the season that the settings of its units are."""
        return cls(
            League.from_json(told["league"]), told["name"], bytes.fromhex(told["key"]), tuple(told["decks"])
        )

    def match_name(self, scheduled: ScheduledMatch) -> str:
        """Return the resource name of a match: the same as at a server."""
        return match_name_for(request_id_of(self.name, scheduled.id))

    def make_setup(self, scheduled: ScheduledMatch) -> Setup:
        """Return the set-up of a match. It is always the same, so a match that was interrupted has the same deal again."""
        game = GAMES[self.league.game]
        setup = Setup(
            match=self.match_name(scheduled),
            game=game.name,
            rules_version=game.rules_version,
            options=self.league.options,
            bots=scheduled.bots,
            time_control=self.league.time,
            seed=self.derive_bytes("seed", scheduled.id),
            durability="none",
            times=local_times(game.name),
            competition=self.name,
        )
        if scheduled.deal is None:
            return setup
        seed = self.derive_bytes("deal", scheduled.deal.set)
        place = DealSet(
            deal_name(self.name, scheduled.deal.set), scheduled.deal.number, scheduled.deal.size, seed
        )
        return replace(setup, seed=seed_in_set(seed, place.number), deal_set=place)

    def derive_bytes(self, purpose: str, what: str) -> bytes:
        """Return 32 bytes for one purpose."""
        return hmac.digest(self.key, f"{purpose}/{what}".encode(), "sha256")


@dataclass(frozen=True, slots=True)
class LocalOutcome:
    """The end of a match at a local table. It has a result and a record, or it is void."""

    result: LoggedResult | None
    record: str
    moves: int
    void_reason: str
    failures: tuple[Mapping[str, str], ...] = ()
    """The new kinds of failures of bots: `bot`, `place` and `text`."""

    @property
    def unit_result(self) -> dict[str, Any]:
        """The part that is the same when the match is played again. Its record has times, which are not."""
        found = self.result
        points = {"points": found.points, "ranks": found.ranks, "endings": found.endings} if found else {}
        return {"moves": self.moves, "void_reason": self.void_reason, **points}

    @classmethod
    def from_answer(cls, answer: UnitAnswer) -> LocalOutcome:
        """Return the outcome that a worker tells. Raises `UsageError` if its record says something else."""
        told, record = answer.result, answer.note["record"]
        result = None if told["void_reason"] else read_result(record)
        found = cls(result, record, told["moves"], told["void_reason"], tuple(answer.note["failures"]))
        if encode_result(found.unit_result) != encode_result(told):
            raise UsageError(f"{answer.worker} has answered wrongly: its result is not that of its record")
        return found


class LocalMatches:
    """Plays matches of one season in this process."""

    def __init__(
        self, season: LocalSeason, failed: Callable[[Failure], None], wait: Callable[[Any], Any]
    ) -> None:
        """Load all bots. Raises `UsageError` if one cannot be loaded."""
        self._season = season
        self._failed = failed
        self._wait = wait
        self._names = {each.player: each.name for each in season.league.entrants}
        self._factories = _load_entrants(season.league)

    def play_match(self, scheduled: ScheduledMatch) -> LocalOutcome:
        """Play one match. The numbers that its bots draw follow from the season, the deal and the seat."""
        setup = self._season.make_setup(scheduled)
        random.seed(self._season.derive_bytes("random", scheduled.id))
        table = LocalTable(setup, self._make_players(scheduled), self._failed, self._wait)
        played = table.play_match()
        record = (table.write_record() or b"").decode().rstrip("\n")
        void_reason = str(played.void_reason or "")
        result = None if void_reason else read_result(record)
        return LocalOutcome(result, record, sum(played.moves), void_reason)

    def _make_players(self, scheduled: ScheduledMatch) -> list[LocalPlayer]:
        derive = self._season.derive_bytes
        deal = scheduled.deal.set if scheduled.deal else scheduled.id
        return [
            LocalPlayer(
                name=self._names[player],
                factory=self._factories[player],
                nonce=derive("nonce", f"{scheduled.id}/{seat}"),
                chance=random.Random(derive("chance", f"{deal}/{seat}")),
            )
            for seat, player in enumerate(scheduled.bots)
        ]


def open_matches(settings: Mapping[str, Any]) -> UnitPlayer:
    """Return what plays matches as units."""
    season = LocalSeason.from_json(settings)
    use_deck_files(season.decks)
    failures = NewFailures()
    matches = LocalMatches(season, failures, LocalWaiter())

    def play_unit(_: int, told: Any) -> tuple[Any, dict[str, Any]]:
        outcome = matches.play_match(scheduled_from_json(told))
        return outcome.unit_result, {"record": outcome.record, "failures": failures.take_new()}

    return play_unit


def scheduled_from_json(told: Mapping[str, Any]) -> ScheduledMatch:
    """Return the scheduled match that `dataclasses.asdict` has written."""
    deal = SharedDeal(**told["deal"]) if told["deal"] else None
    return ScheduledMatch(told["id"], told["round"], tuple(told["bots"]), deal)


def _load_entrants(league: League) -> dict[str, BotFactory]:
    """Load the bot of each player. Bots of different folders get modules of their own."""
    files = [each.bot.rpartition(":")[0] for each in league.entrants]
    folders = {os.path.dirname(os.path.abspath(file)) for file in files if file}
    load: Callable[[str, str], BotFactory] = load_version if len(folders) > 1 else load_bot
    return {each.player: load(each.bot, league.game) for each in league.entrants}


def read_result(record: str) -> LoggedResult:
    """Return the result that a record holds. Its place in the log is not known yet."""
    told = json.loads(record)
    return LoggedResult.from_json(
        {
            "seq": 1,
            "match": told["match"],
            "bots": [seat["bot"] for seat in told["seats"]],
            "points": told["outcome"]["points"],
            "ranks": told["result"]["ranks"],
            "endings": told["endings"],
            "chain": told["chain"],
            "deal": told.get("deal_set", {}).get("name", ""),
        }
    )
