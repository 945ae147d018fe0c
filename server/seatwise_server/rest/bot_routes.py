"""The URLs at which bots play over HTTP: two streams to read, and one URL to post to for each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from google.protobuf import descriptor_pool

from seatwise.v1 import lobby_service_pb2, play_service_pb2
from seatwise_server.rest.routes import NO_BODY, WHOLE_BODY, HttpRoute
from seatwise_server.services.declarations import method_rules

HTTP_ATTENDANCE_PATH = "/v1/attendance"
HTTP_PLAY_PATH = "/v1/play"
_ATTEND = f"{lobby_service_pb2.DESCRIPTOR.package}.LobbyService.Attend"
_PLAY_OPERATION = f"{play_service_pb2.DESCRIPTOR.package}.PlayService.Play"
_SAMPLE_NONCE = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


@dataclass(frozen=True, slots=True)
class BotRoute:
    """One of these URLs, with the texts that describe it."""

    route: HttpRoute
    operation_id: str
    summary: str
    description: str
    success: str
    """A sentence about the successful response."""
    example: dict[str, Any] = field(default_factory=dict)
    """The body of a request."""


def _route_of(method: str, verb: str, path: str) -> HttpRoute:
    body = WHOLE_BODY if verb == "POST" else NO_BODY
    reasons = method_rules()[method].reasons
    return HttpRoute(
        descriptor_pool.Default().FindMethodByName(method), verb, path, body, "", "", path, reasons
    )


READ_ATTENDANCE = BotRoute(
    _route_of(_ATTEND, "GET", HTTP_ATTENDANCE_PATH),
    "attend",
    "A bot attends as long as it reads this stream",
    "The stream has one message on each line: first the welcome, then all open seats of the bot, then offers as they come. A "
    "newer stream of the same bot ends the older one with `REPLACED`.",
    "The stream of what the lobby says",
)
CHANGE_ATTENDANCE = BotRoute(
    _route_of(_ATTEND, "POST", HTTP_ATTENDANCE_PATH),
    "changeAttendance",
    "Changes the limit of matches of a bot that attends",
    "The stream of the bot must be open at this server. It has a new welcome when the limit applies.",
    "The lobby has the new limit",
    {"maxMatches": 4},
)
READ_PLAY = BotRoute(
    _route_of(_PLAY_OPERATION, "GET", HTTP_PLAY_PATH),
    "play",
    "The stream of what referees say to a bot",
    "The stream has one message on each line. The first is empty: items may be posted from then on. The server follows the "
    "addresses of offers, so this one stream has the messages of all referees.",
    "The stream of what referees say",
)
SEND_ITEMS = BotRoute(
    _route_of(_PLAY_OPERATION, "POST", HTTP_PLAY_PATH),
    "sendItems",
    "Sends items of a bot to the referees of its matches",
    "The stream of the bot must be open at this server: answers to items come there. Post one request after the other, so that "
    "items keep their order.",
    "The items are on their way",
    {"items": [{"match": "matches/kq3v8mzt2nwa", "seat": 1, "sit": {"nonce": _SAMPLE_NONCE}}]},
)
BOT_ROUTES = (READ_ATTENDANCE, CHANGE_ATTENDANCE, READ_PLAY, SEND_ITEMS)
