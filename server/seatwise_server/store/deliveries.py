"""The steps after the storing of a match's record, in one message to Redis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seatwise_referee.ending import MatchState
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.store import keys
from seatwise_server.store.keeping import keep_key
from seatwise_server.store.matches import forget_call
from seatwise_server.store.owners import OwnerMatches
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient
from seatwise_server.store.results import append_call
from seatwise_server.store.seats import owners_in, release_calls
from seatwise_server.store.keeping import end_call


@dataclass(frozen=True, slots=True)
class EndedMatch:
    """A match whose record is stored."""

    match: str
    bots: Sequence[str]
    """In the order of the seats."""
    state: MatchState
    keep_s: int
    """For how many seconds the record is kept."""
    competition: str = ""
    """The ladder or league; empty if there is none."""
    result: LoggedResult | None = None
    """The result, if it counts in the competition."""
    deal_set: tuple[str, int] | None = None
    """The set of duplicate deals, and the match's number in it."""


class Deliveries:
    """The last changes of a match. Each may be repeated."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def conclude_match(self, ended: EndedMatch) -> None:
        """Lists the match as over, logs its result and ends its part of its set; then frees its bots for other matches, and their
        owners.

        Call it after `Journal.retire_match`.
        """
        noted = [forget_call(ended.match, ended.keep_s, ended.state)]
        if ended.competition and ended.result:
            noted.append(append_call(ended.competition, ended.result))
        if ended.deal_set:
            noted.append(end_call(*ended.deal_set, ended.match, ended.state))
        answers, freed = await scripts.run_phases(self._client, noted, release_calls(ended.match, ended.bots))
        if ended.deal_set and answers[-1] == 1:  # it was the last match of the set
            await keep_key(self._client, keys.deal_set(ended.deal_set[0]), ended.keep_s * 1000)
        is_void = ended.state is MatchState.VOIDED
        await OwnerMatches(self._client).close_match(ended.match, owners_in(freed), is_void=is_void)
