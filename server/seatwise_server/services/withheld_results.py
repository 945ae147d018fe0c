"""Withholds results of matches whose deals others may yet play: they show what a seat can make of its cards.

Every method that sends results asks this module, whichever door it is called by. An operator sees all results, and a
bot sees those of its own matches, which it was told at their end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seatwise.v1 import league_pb2, match_pb2
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.services.authentication import Caller
from seatwise_server.store import Store


@dataclass(frozen=True, slots=True)
class FinishedMatch:
    """A finished match, with the results of its bots."""

    match: str
    game: str
    """Format: games/{game}."""
    bots: tuple[str, ...]
    points: tuple[int, ...]
    ranks: tuple[int, ...]
    deal_set: str
    """Empty for a match with a deal of its own."""
    end_ms: int
    """0 if it is not known."""


@dataclass(frozen=True, slots=True)
class WithheldResults:
    """Decides which callers may see which results while deal sets run."""

    store: Store

    async def withhold_from(self, caller: Caller, matches: Sequence[match_pb2.Match]) -> int:
        """Removes the results that the caller may not see yet from these messages, and returns how many."""
        ended = [match for match in matches if match.HasField("result") and match.deal_set.name]
        hidden = [match for match in ended if not _is_exempt(caller, match.bots)]
        running = await self.store.sets.running_among(match.deal_set.name for match in hidden)
        withheld = [match for match in hidden if match.deal_set.name in running]
        for match in withheld:
            match.ClearField("result")
            match.result_withheld = True
        return len(withheld)

    async def withhold_logged(self, caller: Caller, results: Sequence[league_pb2.LeagueResult]) -> int:
        """Removes points, ranks, endings and chain that the caller may not see yet, and returns from how many results."""
        hidden = [each for each in results if each.deal_set and not _is_exempt(caller, each.bots)]
        running = await self.store.sets.running_among(each.deal_set for each in hidden)
        withheld = [each for each in hidden if each.deal_set in running]
        for each in withheld:
            for field in ("points", "ranks", "endings", "chain"):
                each.ClearField(field)
            each.withheld = True
        return len(withheld)

    async def withhold_played(self, caller: Caller, played: Sequence[FinishedMatch]) -> list[FinishedMatch]:
        """Returns the matches of which the caller may see the result."""
        hidden = [each for each in played if each.deal_set and not _is_exempt(caller, each.bots)]
        running = await self.store.sets.running_among(each.deal_set for each in hidden)
        withheld = {each.match for each in hidden if each.deal_set in running}
        return [each for each in played if each.match not in withheld]

    async def running_sets(self, results: Iterable[LoggedResult]) -> frozenset[str]:
        """Returns the deal sets of these results that are not over: what follows from such results is withheld too."""
        return await self.store.sets.running_among(result.deal for result in results if result.deal)


def _is_exempt(caller: Caller, bots: Iterable[str]) -> bool:
    return caller.is_operator or (bool(caller.bot) and caller.bot in bots)
