"""The result logs of ladders and leagues. Every figure of a competition is computed from its log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.store import keys
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, call, call_many
from seatwise_server.store.redis.scripts import ScriptCall


def append_call(competition: str, result: LoggedResult) -> ScriptCall:
    """Returns the script of `ResultLogs.append_result`."""
    body = result.to_json()
    del body["seq"]
    body.pop("log_ms", None)
    named = [keys.results_log(competition), keys.results_places(competition)]
    written = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return "result_append", named, (result.match, written)


class ResultLogs:
    """All result logs on one Redis. A log exists from its first result on; no result is ever removed."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def append_result(self, competition: str, result: LoggedResult) -> int:
        """Appends a result and returns its place, from 1; the `seq` of `result` is ignored.

        Repeatable: a match that is already in the log keeps its place and its first result.
        """
        [place] = await scripts.run_in_order(self._client, append_call(competition, result))
        return int(place)

    async def read_results(
        self, competition: str, after_seq: int = 0, count: int = 1000
    ) -> list[LoggedResult]:
        """Returns the next results after that place, in order; empty if there are none."""
        args = (f"{after_seq + 1}-0", "+", "COUNT", count)
        return _parse_results(await call(self._client, "XRANGE", keys.results_log(competition), *args))

    async def read_back(
        self, competition: str, before_seq: int = 2**53, count: int = 1000
    ) -> list[LoggedResult]:
        """Returns the last results before that place, newest first; empty if there are none."""
        args = (f"({before_seq}-0", "-", "COUNT", count)
        return _parse_results(await call(self._client, "XREVRANGE", keys.results_log(competition), *args))

    async def place_in(self, competitions: Sequence[str], match: str) -> tuple[str, int] | None:
        """Returns the log among these that has the match, and the match's place in it; None if none has it."""
        commands = [("HGET", keys.results_places(each), match) for each in competitions]
        answers = await call_many(self._client, commands) if commands else []
        found = zip(competitions, answers, strict=True)
        return next(((each, int(place)) for each, place in found if place is not None), None)

    async def count_results(self, competition: str) -> int:
        """Returns the number of results."""
        return int(await call(self._client, "XLEN", keys.results_log(competition)))


def _parse_results(answer: Any) -> list[LoggedResult]:
    return [
        LoggedResult.from_json(
            {
                **json.loads(fields[b"r"]),
                "seq": int(place.partition(b"-")[0]),
                "log_ms": int(fields.get(b"t", 0)),
            }
        )
        for place, fields in answer
    ]
