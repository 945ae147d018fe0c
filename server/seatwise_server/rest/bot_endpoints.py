"""The URLs at which bots play over HTTP: two streams to read, and one URL to post to."""

from __future__ import annotations

from google.protobuf import descriptor_pool
from starlette.requests import Request
from starlette.responses import Response

from seatwise.v1 import lobby_service_pb2, play_service_pb2
from seatwise_server.refusal import Refusal
from seatwise_server.rest.bot_relay import BotRelays
from seatwise_server.rest.caching import DO_NOT_KEEP
from seatwise_server.rest.event_streams import EventStreams
from seatwise_server.rest.http_call import authorize_request, read_body
from seatwise_server.rest.json_requests import RequestDecoder
from seatwise_server.rest.routes import NO_BODY, WHOLE_BODY, HttpRoute
from seatwise_server.rest.url_tree import UrlTree
from seatwise_server.services.access import ATTEND_METHOD, PLAY_METHOD
from seatwise_server.services.authentication import Authenticator, read_bearer_token

HTTP_ATTENDANCE_PATH = "/v1/attendance"
HTTP_PLAY_PATH = "/v1/play"
_ATTEND = f"{lobby_service_pb2.DESCRIPTOR.package}.LobbyService.Attend"
_PLAY = f"{play_service_pb2.DESCRIPTOR.package}.PlayService.Play"


def add_bot_endpoints(
    urls: UrlTree, relays: BotRelays, authenticator: Authenticator, streams: EventStreams
) -> None:
    """Adds the URLs. `streams` counts the streams of bots, which need more of them than watchers."""
    endpoints = BotEndpoints(relays, authenticator, streams)
    urls.add_endpoint(HTTP_ATTENDANCE_PATH, "GET", HTTP_ATTENDANCE_PATH, endpoints.answer_attendance)
    urls.add_endpoint(HTTP_ATTENDANCE_PATH, "POST", HTTP_ATTENDANCE_PATH, endpoints.change_attendance)
    urls.add_endpoint(HTTP_PLAY_PATH, "GET", HTTP_PLAY_PATH, endpoints.answer_play)
    urls.add_endpoint(HTTP_PLAY_PATH, "POST", HTTP_PLAY_PATH, endpoints.take_items)


class BotEndpoints:
    """Attend and Play for bots without gRPC."""

    def __init__(self, relays: BotRelays, authenticator: Authenticator, streams: EventStreams) -> None:
        self._relays, self._authenticator, self._streams = relays, authenticator, streams
        self._attendance = RequestDecoder(_route_of(_ATTEND, "GET", HTTP_ATTENDANCE_PATH, NO_BODY))
        self._limit = RequestDecoder(_route_of(_ATTEND, "POST", HTTP_ATTENDANCE_PATH, WHOLE_BODY))
        self._items = RequestDecoder(_route_of(_PLAY, "POST", HTTP_PLAY_PATH, WHOLE_BODY))

    async def answer_attendance(self, request: Request, _values: list[str]) -> Response:
        """Attends as long as the caller reads. Queues and the most matches are in the query."""
        caller = await authorize_request(self._authenticator, ATTEND_METHOD, request)
        asked = self._attendance.decode_request([], request.scope["query_string"], await read_body(request))
        items = self._relays.attend(caller, asked)  # type: ignore[arg-type]  # an AttendRequest
        return self._streams.response_of(request, items, prefers_lines=True)

    async def change_attendance(self, request: Request, _values: list[str]) -> Response:
        """Takes a new limit of matches. The lobby answers it on the stream, so that must be open here, with the same token."""
        token = read_bearer_token(request.headers.get("authorization")) or ""
        asked = self._limit.decode_request([], request.scope["query_string"], await read_body(request))
        if not await self._relays.change_attendance(token, asked):  # type: ignore[arg-type]  # an AttendRequest
            raise await self._no_stream(request, ATTEND_METHOD, HTTP_ATTENDANCE_PATH)
        return _accepted()

    async def answer_play(self, request: Request, _values: list[str]) -> Response:
        """Gives what referees say, as long as the caller reads."""
        caller = await authorize_request(self._authenticator, PLAY_METHOD, request)
        return self._streams.response_of(request, self._relays.play(caller), prefers_lines=True)

    async def take_items(self, request: Request, _values: list[str]) -> Response:
        """Takes items of the bot. The answers come on the stream, so one must be open here, with the same token."""
        token = read_bearer_token(request.headers.get("authorization"))
        play = self._relays.open_play(token or "")
        if play is None:
            raise await self._no_stream(request, PLAY_METHOD, HTTP_PLAY_PATH)
        items = self._items.decode_request([], request.scope["query_string"], await read_body(request))
        await play.send_items(items.items)  # type: ignore[attr-defined]  # a PlayRequest
        return _accepted()

    async def _no_stream(self, request: Request, method: str, path: str) -> Refusal:
        """Authorizes the caller first: one that has opened a stream was authorized then."""
        caller = await authorize_request(self._authenticator, method, request)
        return Refusal(
            "NO_STREAM",
            f"no such stream of this bot is open at this server: open GET {path} first",
            bot=caller.bot,
        )


def _accepted() -> Response:
    return Response(status_code=204, headers={"cache-control": DO_NOT_KEEP})


def _route_of(method: str, verb: str, path: str, body: str) -> HttpRoute:
    return HttpRoute(descriptor_pool.Default().FindMethodByName(method), verb, path, body, "", "", path)
