"""Reads the filters of a list of matches."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from seatwise.v1 import match_pb2
from seatwise.v1 import match_service_pb2 as pb
from seatwise_referee.match_state import MatchState
from seatwise_server.bot_names import BadBotName, parse_bot_name
from seatwise_server.refusal import Refusal
from seatwise_server.services.match_requests import parse_game
from seatwise_server.services.resource_names import ResourceName
from seatwise_server.store.match_filters import NEWEST_US, MatchFilter

_COMPETITIONS = (ResourceName("ladders", "ladder", "ladder"), ResourceName("leagues", "league", "league"))


def parse_match_filter(request: pb.ListMatchesRequest) -> MatchFilter:
    """Returns the filter that a request asks for. Raises `Refusal` for an invalid value."""
    until_us = NEWEST_US
    if request.HasField("created_before"):
        until_us = _microseconds("created_before", request.created_before)
    return MatchFilter(
        bot=_parse_bot(request.bot),
        game=parse_game(request.game) if request.game else "",
        competition=_parse_competition(request.competition),
        state=_parse_state(request.state),
        since_us=max(0, _microseconds("created_from", request.created_from)),
        until_us=max(0, until_us),
    )


def _parse_bot(name: str) -> str:
    if name:
        try:
            parse_bot_name(name)
        except BadBotName as bad:
            raise Refusal("INVALID_ARGUMENT", f"bot is {name[:80]!r}; {bad}") from None
    return name


def _parse_competition(name: str) -> str:
    if name and not any(form.is_valid(name) for form in _COMPETITIONS):
        message = f"competition is {name[:80]!r}; it must be the name of a ladder or of a league"
        raise Refusal("INVALID_ARGUMENT", message)
    return name


def _parse_state(state: int) -> MatchState | None:
    if state == match_pb2.Match.STATE_UNSPECIFIED:
        return None
    try:
        return MatchState(match_pb2.Match.State.Name(state).removeprefix("STATE_"))
    except ValueError:
        raise Refusal("INVALID_ARGUMENT", f"state is {state}, which is no state of a match") from None


def _microseconds(field: str, time: Timestamp) -> int:
    try:
        return time.ToMicroseconds()
    except ValueError:
        raise Refusal("INVALID_ARGUMENT", f"{field} is not a time from the year 1 to 9999") from None
