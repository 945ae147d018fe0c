"""The pages of guests: take a seat against house bots, and play it in the browser by the WebSocket of bots."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from seatwise.replay.sentences import short_names
from seatwise.v1 import match_pb2
from seatwise_server.pages.page_calls import PageCalls, peer_of_page
from seatwise_server.pages.page_filters import last_part
from seatwise_server.pages.page_forms import check_own_page, read_form
from seatwise_server.pages.page_responses import page_response, render_page
from seatwise_server.refusal import Refusal
from seatwise_server.services.guest_seats import GUEST_TOKEN_S, GuestSeats

SEATS = "/seats"
SEAT_COOKIE = "seatwise_seat"
_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?")
"""A host, and perhaps a port: nothing else may get into a policy or an address."""


class GuestPages:
    """Answers /seats and /seats/{match}."""

    def __init__(self, calls: PageCalls, seats: GuestSeats, sockets: str, *, has_other_sockets: bool) -> None:
        """`sockets` is the WebSocket of the lobby. `has_other_sockets` is whether referees have other ports of its host."""
        self._calls = calls
        self._seats = seats
        self._sockets = sockets
        self._has_other_sockets = has_other_sockets

    async def take_seat(self, request: Request, _values: list[str]) -> Response:
        """Makes a match for the guest, and sends the browser to its seat."""
        check_own_page(request)
        game = (await read_form(request)).get("game", "")
        seat = await self._seats.take_seat(peer_of_page(), game)
        url = f"{SEATS}/{last_part(seat.match)}"
        cookie = seat_cookie(url, seat.token, is_secure=request.url.scheme == "https")
        return Response(
            status_code=303, headers={"location": url, "set-cookie": cookie, "cache-control": "no-store"}
        )

    async def answer(self, request: Request, values: list[str]) -> Response:
        """Returns the page at which the guest plays; the match's own page when it is over."""
        name = f"matches/{values[0]}"
        match = (await self._calls.call("MatchService/GetMatch", name=name)).match
        if match.state in (match_pb2.Match.STATE_FINISHED, match_pb2.Match.STATE_VOIDED):
            return Response(
                status_code=303, headers={"location": f"/{match.name}", "cache-control": "no-store"}
            )
        token = request.cookies.get(SEAT_COOKIE, "")
        seat = await self._find_seat(match.bots, token, name)
        lobby = self._lobby_at(request)
        told = {
            "match": name, "game": last_part(match.game), "seat": seat, "token": token, "lobby": lobby,
            "names": list(short_names(tuple(match.bots))),
        }  # fmt: skip
        html = render_page("seat.html.j2", match=match, seat=seat, told=json.dumps(told))
        return page_response(request, html, is_private=True, sockets=self._allowed_sockets(lobby))

    async def _find_seat(self, bots: Sequence[str], token: str, match: str) -> int:
        """Returns the seat of the browser that sent this token. Raises `Refusal` if it has none in the match."""
        caller = await self._calls.find_caller("PlayService/Play", token) if token else None
        if caller is None or caller.bot not in bots:
            raise Refusal(
                "NOT_ALLOWED",
                f"this browser holds no seat of {match}. Anybody may watch it: /{match}. The home page gives you a seat",
            )
        return list(bots).index(caller.bot)

    def _lobby_at(self, request: Request) -> str:
        """Returns the address of the lobby's WebSocket for this browser."""
        scheme, _, where = self._sockets.partition("://")
        return f"{scheme}://{_host_name(request)}{where}" if where.startswith(":") else self._sockets

    def _allowed_sockets(self, lobby: str) -> tuple[str, ...]:
        """Returns what the page may connect to: the lobby, and where there are other referees, all ports of its host."""
        if not self._has_other_sockets:
            return (lobby,)
        where = urlsplit(lobby)
        host = where.netloc.removesuffix(f":{where.port}")
        return (f"{where.scheme}://{host}:*",)


def seat_cookie(url: str, token: str, *, is_secure: bool) -> str:
    """Returns the Set-Cookie header of a seat: only its own page gets it, and no script or other site reads it."""
    secure = "; Secure" if is_secure else ""
    return f"{SEAT_COOKIE}={token}; Path={url}; Max-Age={GUEST_TOKEN_S}; HttpOnly; SameSite=Strict{secure}"


def _host_name(request: Request) -> str:
    """Returns the host by which the browser reached this server, without its port."""
    found = _HOST.fullmatch(request.headers.get("host", ""))
    return found[1] if found else "localhost"
