"""The clocks on the page of a bot: what the records say, and no more than the records that can be read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from matches.scenes import SCENES, smooth, timed_out

from seatwise.replay import build_replay
from seatwise.v1 import match_pb2, match_service_pb2
from seatwise_server.pages.bot_page import BotClocks, clocks_of
from seatwise_server.pages.page_responses import PageCalls
from seatwise_server.refusal import Refusal


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_the_clocks_of_a_record_are_those_of_its_replay(scene: Any) -> None:
    record = json.loads(scene().line())
    clocks = clocks_of(record)
    times = [each for each in build_replay(record).frames[-1].times if each]
    assert [(each.total_ms, max(each.charged_ms, default=0), each.timeouts) for each in clocks] == [
        (each.used_ms, each.longest_ms, each.strikes) for each in times
    ]


def test_a_late_bot_has_time_outs() -> None:
    assert [each.timeouts for each in clocks_of(json.loads(timed_out().line()))] == [0, 2, 0]


class RecordCalls(PageCalls):
    """Stands for the API: it has the record of one match."""

    def __init__(self, match: str) -> None:
        self.match = match
        self.reads = 0

    async def call(self, _method: str, *_: Any, **fields: Any) -> Any:
        """Returns the record."""
        self.reads += 1
        if fields["name"] != self.match:
            raise Refusal("NOT_FOUND", "there is no such record")
        return match_service_pb2.GetRecordResponse(record=smooth(2).line().decode())


@pytest.mark.asyncio
async def test_each_record_is_read_once_and_one_that_is_refused_again() -> None:
    calls = RecordCalls("matches/here")
    clocks = BotClocks(calls)
    matches = [
        match_pb2.Match(name=f"matches/{name}", bots=["bots/a", "bots/b"]) for name in ("here", "away")
    ]
    for _ in range(2):
        [line] = await clocks.read_clocks("bots/b", matches)
        assert line["match"].name == "matches/here"
        assert line["answers"] > 10
    assert calls.reads == 3
