"""The pages of guests: take a seat against house bots, and play it in the browser by the WebSocket of bots."""

from __future__ import annotations

import json
import re
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from seatwise.replay.frame_builder import short_names
from seatwise.v1 import match_pb2
from seatwise_server.config import HttpSettings
from seatwise_server.pages.page_responses import (
    PageCalls,
    check_own_page,
    last_part,
    page_response,
    peer_of_page,
    put_cookie,
    read_form,
    render_page,
    see_other,
)
from seatwise_server.refusal import Refusal
from seatwise_server.services.guest_seats import GUEST_TOKEN_S, GuestTickets

SEATS = "/seats"
SEAT_COOKIE = "seatwise_seat"
_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?")
"""A host, and perhaps a port: nothing else may get into a policy or an address."""


class GuestPages:
    """Answers /seats and /seats/{match}."""

    def __init__(self, calls: PageCalls, tickets: GuestTickets, settings: HttpSettings) -> None:
        self._calls = calls
        self._tickets = tickets
        self._settings = settings

    async def take_seat(self, request: Request, _values: list[str]) -> Response:
        """Give the guest a ticket, and send the browser to its seat. The match is made when the page there connects."""
        check_own_page(request)
        game = (await read_form(request)).get("game", "")
        ticket, token = await self._tickets.new_ticket(peer_of_page(), game)
        url = f"{SEATS}/{last_part(ticket.match)}"
        response = see_other(url)
        put_cookie(response, request, SEAT_COOKIE, token, url, GUEST_TOKEN_S)
        return response

    async def answer(self, request: Request, values: list[str]) -> Response:
        """Return the page at which the guest plays; the match's own page when it is over."""
        name = f"matches/{values[0]}"
        token = request.cookies.get(SEAT_COOKIE, "")
        ticket = await self._tickets.read_ticket(token)
        is_mine = ticket is not None and ticket.match == name
        try:
            match = (await self._calls.call("MatchService/GetMatch", name=name)).match
        except Refusal as refusal:
            if refusal.reason != "NOT_FOUND" or not is_mine:
                raise
        else:
            if match.state in (match_pb2.Match.STATE_FINISHED, match_pb2.Match.STATE_VOIDED):
                return see_other(f"/{name}")
        if ticket is None or not is_mine:
            why = f"this browser holds no seat of {name}. Anybody may watch it: /{name}. The home page gives you a seat"
            raise Refusal("NOT_ALLOWED", why)
        lobby, seat = self._lobby_at(request), ticket.bots.index(ticket.bot)
        told = {
            "match": name, "game": ticket.game, "seat": seat, "token": token, "lobby": lobby,
            "names": list(short_names(ticket.bots)),
        }  # fmt: skip
        html = render_page("seat.html.j2", ticket=ticket, seat=seat, told=json.dumps(told))
        return page_response(request, html, is_private=True, sockets=self._allowed_sockets(lobby))

    def _lobby_at(self, request: Request) -> str:
        """Return the address of the lobby's WebSocket for this browser."""
        sockets = self._settings.guest_sockets
        scheme, _, where = sockets.partition("://")
        return f"{scheme}://{_host_name(request)}{where}" if where.startswith(":") else sockets

    def _allowed_sockets(self, lobby: str) -> tuple[str, ...]:
        """Return what the page may connect to: the lobby, and where there are other referees, all ports of its host."""
        if not self._settings.has_other_sockets:
            return (lobby,)
        where = urlsplit(lobby)
        host = where.netloc.removesuffix(f":{where.port}")
        return (f"{where.scheme}://{host}:*",)


def _host_name(request: Request) -> str:
    """Return the host by which the browser reached this server, without its port."""
    found = _HOST.fullmatch(request.headers.get("host", ""))
    return found[1] if found else "localhost"
