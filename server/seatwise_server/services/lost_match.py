"""Restores the stored entry of a match from its record, after the entry was lost."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, replace
from typing import Any

from seatwise_referee.journal import Finished, canonical_json, decode_entry
from seatwise_referee.match_state import MatchState
from seatwise_referee.setup import JOURNAL_FORMAT, Setup
from seatwise_referee.verify import verify_line
from seatwise_referee.verify.header import setup_of
from seatwise_server.lobby.queue import CREATED
from seatwise_server.play.result_messages import encode_match_ended
from seatwise_server.store import Store, now_ms
from seatwise_server.store.match_traces import MatchTraceReader, MatchTraces
from seatwise_server.store.redis.client import Argument


@dataclass(frozen=True, slots=True)
class LostMatchRestorer:
    """Writes the lost entry of a finished match.

    The record has everything that the entry holds, except its times and the competition that it counted for.
    """

    store: Store
    traces: MatchTraceReader

    async def restore(self, it: MatchTraces, competition: str) -> bool:
        """Writes the entry and lists the match. Returns False if the record is gone or does not verify.

        `competition` is the ladder or league that has its result, empty if none has. The time of its creation is
        lost: the time at which its last referee claimed it takes its place.
        """
        try:
            record = await self.store.matches.get_record(it.match)
        except zlib.error:  # the stored record is damaged
            return False
        if not record or verify_line(record).fault:
            return False
        body = json.loads(record)
        end_ms = (it.fence.over_ms if it.fence else 0) or await now_ms(self.store.client)
        claimed_ms = it.fence.since_ms if it.fence else 0
        fields = _entry_fields(body, replace(setup_of(body), competition=competition), end_ms)
        return await self.traces.restore(it.match, (claimed_ms or end_ms) * 1000, fields)


def _entry_fields(body: dict[str, Any], setup: Setup, end_ms: int) -> dict[str, Argument]:
    last = decode_entry(canonical_json(body["entries"][-1]))
    assert isinstance(last, Finished), "a record that verifies ends with a result"
    seed = b"" if setup.deal_set else setup.seed
    return {
        "format": JOURNAL_FORMAT,
        "setup": canonical_json(setup.to_json()),
        "state": MatchState.FINISHED,
        "queue": setup.competition or CREATED,
        "result": encode_match_ended(last, seed, bytes.fromhex(body["chain"])).SerializeToString(),
        "start_ms": end_ms - (last.at_ms - _dealt_at_ms(body)),
        "end_ms": end_ms,
    }


def _dealt_at_ms(body: dict[str, Any]) -> int:
    return next(int(entry["at_ms"]) for entry in body["entries"] if entry["kind"] == "dealt")
