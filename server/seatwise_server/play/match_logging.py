"""The canonical lines of a match: where it was opened, and how it ended."""

from __future__ import annotations

import structlog

from seatwise.v1 import play_service_pb2
from seatwise_referee.match_state import MatchState
from seatwise_server.counts import COUNTS
from seatwise_server.play.table import Table
from seatwise_server.play.takeover import UnownedMatch

log = structlog.get_logger()


def log_opened(table: Table, estate: UnownedMatch) -> None:
    """A new match, or one whose owner before is no more."""
    before = estate.fence.owner if estate.fence else ""
    event = "match_taken_over" if before else "match_opened"
    COUNTS.takeovers += bool(before)
    setup = table.match.setup
    log.info(event, match=table.name, game=setup.game, bots=list(setup.bots), epoch=table.epoch, dead=before)


def log_end(table: Table, end: play_service_pb2.MatchEnded) -> None:
    """The canonical line of a match."""
    COUNTS.ended[end.void_reason or MatchState.FINISHED] += 1
    log.info(
        "match_finished" if end.HasField("result") else "match_voided",
        match=table.name,
        game=table.match.setup.game,
        bots=list(table.match.setup.bots),
        points=list(end.result.points),
        ranks=list(end.result.ranks),
        endings=[str(seat.ending) for seat in table.match.position.seats],
        reason=end.void_reason,
        entries=table.match.position.seq,
        took_ms=table.match.position.at_ms,
        epoch=table.epoch,
    )
