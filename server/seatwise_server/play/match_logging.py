"""The main log lines of a match: where it was opened, and how it ended."""

from __future__ import annotations

from typing import Any

import structlog

from seatwise.v1 import play_service_pb2
from seatwise_referee.match_state import MatchState
from seatwise_server.counts import COUNTS
from seatwise_server.play.table import Table
from seatwise_server.play.takeover import UnownedMatch

log = structlog.get_logger()


def log_opened(table: Table, unowned: UnownedMatch) -> None:
    """Logs that a new match was opened, or that the match of a dead owner was taken over."""
    before = unowned.fence.owner if unowned.fence else ""
    event = "match_taken_over" if before else "match_opened"
    COUNTS.takeovers += bool(before)
    setup = table.match.setup
    log.info(event, match=table.name, game=setup.game, bots=list(setup.bots), epoch=table.epoch, dead=before)


def log_end(table: Table, end: play_service_pb2.MatchEnded) -> None:
    """Logs the end of a match."""
    COUNTS.ended[end.void_reason or MatchState.FINISHED] += 1
    log.info(
        "match_finished" if end.HasField("result") else "match_voided",
        match=table.name,
        game=table.match.setup.game,
        bots=list(table.match.setup.bots),
        **_told_of_result(table, end),
        reason=end.void_reason,
        entries=table.match.position.seq,
        took_ms=table.match.position.at_ms,
        epoch=table.epoch,
    )


def _told_of_result(table: Table, end: play_service_pb2.MatchEnded) -> dict[str, Any]:
    """Points, ranks and endings. For a match of a deal set only the set, because others may still play the same deals."""
    place = table.match.setup.deal_set
    if place and end.HasField("result"):
        return {"deal_set": place.name, "result": "withheld"}
    return {
        "points": list(end.result.points),
        "ranks": list(end.result.ranks),
        "endings": [str(seat.ending) for seat in table.match.position.seats],
    }
