"""The result logs of ladders and leagues: what everything that is said of them is worked out from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.store import keys
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, call, call_many


class ResultLogs:
    """All logs on one Redis. A log is there when it has a result; nothing is ever taken out of it."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def append_result(self, competition: str, result: LoggedResult) -> int:
        """The place of the result, from 1; its own `seq` is not looked at.

        A match that is in the log already keeps its place and its first result: this may be repeated.
        """
        body = result.to_json()
        del body["seq"]
        named = [keys.results_log(competition), keys.results_places(competition)]
        written = json.dumps(body, sort_keys=True, separators=(",", ":"))
        return int(await scripts.run_script(self._client, "result_append", named, result.match, written))

    async def read_results(
        self, competition: str, after_seq: int = 0, count: int = 1000
    ) -> list[LoggedResult]:
        """The next results behind that place, in their order; empty when there are none."""
        args = (f"{after_seq + 1}-0", "+", "COUNT", count)
        return _parse_results(await call(self._client, "XRANGE", keys.results_log(competition), *args))

    async def read_back(
        self, competition: str, before_seq: int = 2**53, count: int = 1000
    ) -> list[LoggedResult]:
        """The last results before that place, the newest first; empty when there are none."""
        args = (f"({before_seq}-0", "-", "COUNT", count)
        return _parse_results(await call(self._client, "XREVRANGE", keys.results_log(competition), *args))

    async def place_in(self, competitions: Sequence[str], match: str) -> tuple[str, int] | None:
        """The log among these that has the match, and the match's place in it; None when none has."""
        commands = [("HGET", keys.results_places(each), match) for each in competitions]
        answers = await call_many(self._client, commands) if commands else []
        found = zip(competitions, answers, strict=True)
        return next(((each, int(place)) for each, place in found if place is not None), None)

    async def count_results(self, competition: str) -> int:
        """How many there are."""
        return int(await call(self._client, "XLEN", keys.results_log(competition)))


def _parse_results(answer: Any) -> list[LoggedResult]:
    return [
        LoggedResult.from_json({**json.loads(fields[b"r"]), "seq": int(place.partition(b"-")[0])})
        for place, fields in answer
    ]
