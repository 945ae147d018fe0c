"""Computes the results of a bot by opponent and game, from its newest finished matches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cachetools import LRUCache

from seatwise.v1 import bot_pb2
from seatwise_referee.match_state import MatchState
from seatwise_server.resources import match_resource, optional_timestamp
from seatwise_server.services.authentication import Caller
from seatwise_server.services.withheld_results import FinishedMatch, WithheldResults
from seatwise_server.store import MatchMeta, Store
from seatwise_server.store.match_filters import MatchFilter

MOST_OPPONENT_MATCHES = 1000
MOST_PLAYED_IN_MEMORY = 20_000
_METAS_AT_ONCE = 50
"""Few enough that other calls are answered in between."""


@dataclass(slots=True)
class Encounters:
    """A bot against one opponent in one game; sums over their matches."""

    opponent: str
    game: str
    matches: int = 0
    wins: int = 0
    ties: int = 0
    ranks: int = 0
    points: int = 0
    opponent_points: int = 0
    last_end_ms: int = 0

    def add(self, match: FinishedMatch, own: int, other: int) -> None:
        """Adds a match in which the bot had the seat `own`, and the opponent the seat `other`."""
        self.matches += 1
        self.wins += match.ranks[own] < match.ranks[other]
        self.ties += match.ranks[own] == match.ranks[other]
        self.ranks += match.ranks[own]
        self.points += match.points[own]
        self.opponent_points += match.points[other]
        self.last_end_ms = max(self.last_end_ms, match.end_ms)

    def to_message(self) -> bot_pb2.OpponentRecord:
        """Returns the means as they are sent."""
        return bot_pb2.OpponentRecord(
            opponent=self.opponent,
            game=self.game,
            matches=self.matches,
            wins=self.wins,
            ties=self.ties,
            mean_rank=self.ranks / self.matches,
            mean_points=self.points / self.matches,
            opponent_mean_points=self.opponent_points / self.matches,
            last_end_time=optional_timestamp(self.last_end_ms or None),
        )


@dataclass(frozen=True, slots=True)
class OpponentTable:
    """A bot's opponents, as one caller may see them."""

    opponents: Sequence[bot_pb2.OpponentRecord]
    matches: int
    withheld: int


class OpponentTables:
    """Computes such tables. A finished match does not change, so it is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._withheld = WithheldResults(store)
        self._played: LRUCache[str, FinishedMatch] = LRUCache(MOST_PLAYED_IN_MEMORY)

    async def get_table(self, caller: Caller, bot: str) -> OpponentTable:
        """Returns the table of the bot, without what is withheld from the caller. Raises SetsNotBuilt."""
        wanted = MatchFilter(bot=bot, state=MatchState.FINISHED)
        names = await self._store.matches.newest_names(MOST_OPPONENT_MATCHES, wanted)
        played = await self._read_played(names)
        seen = await self._withheld.withhold_played(caller, played)
        return OpponentTable(_opponents(bot, seen), len(seen), len(played) - len(seen))

    async def _read_played(self, names: Sequence[str]) -> list[FinishedMatch]:
        missing = [name for name in names if name not in self._played]
        for at in range(0, len(missing), _METAS_AT_ONCE):
            for meta in await self._store.matches.read_metas(missing[at : at + _METAS_AT_ONCE]):
                if meta.is_over and (played := _played_match(meta)):
                    self._played[meta.match] = played
        return [played for name in names if (played := self._played.get(name))]


def _played_match(meta: MatchMeta) -> FinishedMatch | None:
    """Returns the match; None if it has no result that counts."""
    match = match_resource(meta)
    if not match.result.ranks:
        return None
    return FinishedMatch(
        match=match.name,
        game=match.game,
        bots=tuple(match.bots),
        points=tuple(match.result.points),
        ranks=tuple(match.result.ranks),
        deal_set=match.deal_set.name,
        end_ms=match.end_time.ToMilliseconds(),
    )


def _opponents(bot: str, played: Iterable[FinishedMatch]) -> list[bot_pb2.OpponentRecord]:
    found: dict[tuple[str, str], Encounters] = {}
    for match in played:
        if match.bots.count(bot) != 1:  # a bot that plays itself has no opponent
            continue
        own = match.bots.index(bot)
        for other, opponent in enumerate(match.bots):
            if other != own and match.bots.count(opponent) == 1:
                key = (opponent, match.game)
                found.setdefault(key, Encounters(opponent, match.game)).add(match, own, other)
    ordered = sorted(found.values(), key=lambda each: (-each.matches, each.opponent, each.game))
    return [each.to_message() for each in ordered]
