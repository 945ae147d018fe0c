"""Positions of finished matches as pictures: drawn from the frames, at URLs that stay, and not too many in a second."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, cast
from xml.etree import ElementTree

import pytest
from matches.scenes import RACES, TURNS, smooth
from starlette.requests import Request

from seatwise.kits.frames import count_totals
from seatwise.replay import MatchReplay, build_replay
from seatwise.v1 import match_pb2, match_service_pb2
from seatwise_server.pages.match_page import MatchPage, _read_replay
from seatwise_server.pages.page_responses import PageCalls, has_png
from seatwise_server.pages.position_picture import MADE_PER_SECOND, PositionPictures, draw_position
from seatwise_server.refusal import Refusal

RECORD = smooth(4).line().decode()
TEXT = "{http://www.w3.org/2000/svg}text"


class RecordCalls(PageCalls):
    """Stands for the API: it has one finished match."""

    def __init__(self) -> None:
        self.match = match_pb2.Match(name="matches/m", game="games/ugo")

    async def call(self, method: str, *_: Any, **_fields: Any) -> Any:
        """Returns the match or its record."""
        if method.endswith("GetRecord"):
            return match_service_pb2.GetRecordResponse(record=RECORD)
        return match_service_pb2.GetMatchResponse(match=self.match)


def asking(**headers: str) -> Request:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "path": "/", "query_string": b"", "headers": raw, "client": None})


def pictures() -> PositionPictures:
    return PositionPictures(MatchPage(RecordCalls(), live=cast("Any", None)))


def texts_of(replay: MatchReplay, step: int) -> list[str | None]:
    """The texts of the picture of a step."""
    return [each.text for each in ElementTree.fromstring(draw_position(replay, step)).iter(TEXT)]


@pytest.mark.parametrize("scene", [*TURNS.values(), *RACES.values()], ids=[*TURNS, *RACES])
def test_every_step_can_be_drawn(scene: Any) -> None:
    replay = build_replay(json.loads(scene().line()))
    for step in {0, len(replay.frames) // 2, replay.decisive_step, len(replay.frames) - 1}:
        totals = map(str, count_totals(replay.frames[step].table, len(replay.names)))
        assert {*replay.names, *totals} <= {*texts_of(replay, step)}


@pytest.mark.asyncio
async def test_names_stay_text_and_games_from_outside_show_their_drawing() -> None:
    replay = build_replay(json.loads(RECORD))
    drawing = [{"zone": "hand", "cards": [{"text": "Q<"}], "owner": 0}, {"counter": "pot", "value": 3}]
    frame = replace(replay.frames[3], table={"drawing": drawing}, own=(None, None))
    last = replace(frame, table={"drawing": []})
    strange = replace(
        replay, game="leduc", bots=('bots/<script>&"/versions/1', replay.bots[1]), frames=(frame, last)
    )
    made = pictures()
    made._matches._kept["matches/m"] = _read_replay(json.dumps({**strange.to_json(), "decisive_step": 0}), "")
    drawn = bytes((await made.answer(asking(), ["m", "decisive.svg"])).body).decode()
    assert "<script" not in drawn
    words = [each.text for each in ElementTree.fromstring(drawn).iter(TEXT)]
    assert {'<script>&"', "hand", "Q<", "pot: 3"} <= set(words)
    assert "0" not in words  # the game draws no points


@pytest.mark.asyncio
async def test_a_picture_never_changes_and_few_are_made_in_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    made = pictures()
    first = await made.answer(asking(), ["m", "decisive.svg"])
    assert (first.media_type, "immutable" in first.headers["cache-control"]) == ("image/svg+xml", True)
    again = await made.answer(asking(if_none_match=first.headers["etag"]), ["m", "decisive.svg"])
    assert again.status_code == 304
    for file in ("9999.svg", "-1.svg", "x.svg", "1.gif", "٣.svg", "1"):
        with pytest.raises(Refusal) as refused:
            await made.answer(asking(), ["m", file])
        assert refused.value.reason == "NOT_FOUND"
    for step in range(1, int(MADE_PER_SECOND)):
        await made.answer(asking(), ["m", f"{step}.svg"])
    monkeypatch.setattr(made._rate, "measure_wait", lambda *_: 0.1)
    with pytest.raises(Refusal) as refused:
        await made.answer(asking(), ["m", "20.svg"])
    assert refused.value.reason == "RATE_EXCEEDED"
    assert (await made.answer(asking(), ["m", "1.svg"])).body


@pytest.mark.asyncio
@pytest.mark.skipif(not has_png(), reason="needs the extra pictures")
async def test_a_picture_for_sites_that_show_no_svg() -> None:
    body = bytes((await pictures().answer(asking(), ["m", "decisive.png"])).body)
    assert (body[:4], body[16:24]) == (b"\x89PNG", bytes([0, 0, 4, 176, 0, 0, 2, 118]))


@pytest.mark.asyncio
async def test_there_is_no_png_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatwise_server.pages.position_picture.has_png", lambda: False)
    with pytest.raises(Refusal):
        await pictures().answer(asking(), ["m", "decisive.png"])
