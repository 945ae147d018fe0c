"""Serves the URLs of `bot_routes`: passes what bots read and post on to the relay."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from seatwise_server.refusal import Refusal
from seatwise_server.rest.bot_relay import BotRelays
from seatwise_server.rest.bot_routes import (
    CHANGE_ATTENDANCE,
    HTTP_ATTENDANCE_PATH,
    HTTP_PLAY_PATH,
    READ_ATTENDANCE,
    READ_PLAY,
    SEND_ITEMS,
)
from seatwise_server.rest.caching import DO_NOT_KEEP
from seatwise_server.rest.event_streams import EventStreams
from seatwise_server.rest.http_call import authorize_request, read_body
from seatwise_server.rest.json_requests import RequestDecoder
from seatwise_server.rest.url_tree import UrlTree
from seatwise_server.services.access import ATTEND_METHOD, PLAY_METHOD
from seatwise_server.services.authentication import Authenticator, read_bearer_token
from seatwise_server.stream_arrival import note_arrival_of_stream


def add_bot_endpoints(
    urls: UrlTree, relays: BotRelays, authenticator: Authenticator, streams: EventStreams
) -> None:
    """Adds the URLs. `streams` counts the streams of bots, which need more of them than watchers."""
    endpoints = BotEndpoints(relays, authenticator, streams)
    answers = (
        (READ_ATTENDANCE, endpoints.answer_attendance),
        (CHANGE_ATTENDANCE, endpoints.change_attendance),
        (READ_PLAY, endpoints.answer_play),
        (SEND_ITEMS, endpoints.take_items),
    )
    for bot_route, endpoint in answers:
        path, verb = bot_route.route.path, bot_route.route.verb
        # A stream that opens replaces the bot's older one: a HEAD, which must change nothing, would end a bot that plays.
        urls.add_endpoint(path, verb, path, endpoint, answers_head=False)


class BotEndpoints:
    """Attend and Play for bots without gRPC."""

    def __init__(self, relays: BotRelays, authenticator: Authenticator, streams: EventStreams) -> None:
        self._relays, self._authenticator, self._streams = relays, authenticator, streams
        self._attendance = RequestDecoder(READ_ATTENDANCE.route)
        self._limit = RequestDecoder(CHANGE_ATTENDANCE.route)
        self._items = RequestDecoder(SEND_ITEMS.route)

    async def answer_attendance(self, request: Request, _values: list[str]) -> Response:
        """Attends as long as the caller reads. Queues and the most matches are in the query."""
        arrival = note_arrival_of_stream()
        caller = await authorize_request(self._authenticator, ATTEND_METHOD, request)
        asked = self._attendance.decode_request([], request.scope["query_string"], await read_body(request))
        items = self._relays.attend(caller, asked, arrival)  # type: ignore[arg-type]  # an AttendRequest
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
        arrival = note_arrival_of_stream()
        caller = await authorize_request(self._authenticator, PLAY_METHOD, request)
        if request.scope["query_string"]:
            raise Refusal("INVALID_ARGUMENT", "this URL takes no query")
        return self._streams.response_of(request, self._relays.play(caller, arrival), prefers_lines=True)

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
