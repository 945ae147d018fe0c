"""The HTTP port of a process: settings, application, server and log line put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from seatwise_server.config import HttpSettings
from seatwise_server.rest.bot_relay import BotRelays, FindReferee, add_bot_endpoints, wires_to
from seatwise_server.rest.event_streams import MOST_BOT_STREAMS_OF_ADDRESS, EventStreams
from seatwise_server.rest.http_port import HttpPort
from seatwise_server.rest.http_server import HttpServer
from seatwise_server.rest.rest_app import new_rest_app, new_url_tree
from seatwise_server.rest.url_tree import UrlTree
from seatwise_server.services.authentication import Authenticator
from seatwise_server.services.open_streams import OpenStreams
from seatwise_server.services.operations import Operation
from seatwise_server.tls.certificate_reloader import CertificateReloader, new_port_context

AddPages: TypeAlias = Callable[
    [UrlTree, Sequence[Operation], Authenticator, EventStreams, Callable[[], bool]], None
]
"""Adds pages to the URLs of a process, which call its operations. The last argument is what /readyz says."""


class RestDoor:
    """Serves operations on an HTTP port, from `start` to `stop`."""

    def __init__(
        self,
        settings: HttpSettings,
        port: HttpPort,
        certificate: CertificateReloader | None,
        find_referee: FindReferee,
        add_pages: AddPages | None = None,
    ) -> None:
        """`find_referee` is for bots that ask for a match of which this process knows nothing. `add_pages` adds the pages for
        people; without it there are only the URLs of the API.
        """
        self._add_pages = add_pages
        self._find_referee = find_referee
        self._settings = settings
        self._port = port
        self._certificate = certificate
        self._streams = EventStreams()
        self._bot_streams = EventStreams(MOST_BOT_STREAMS_OF_ADDRESS)
        self._server: HttpServer | None = None

    async def start(
        self,
        operations: Sequence[Operation],
        authenticator: Authenticator,
        open_streams: OpenStreams,
        is_ready: Callable[[], bool],
        most_connections: int,
    ) -> None:
        """Begins to answer. `is_ready` is what /readyz says."""
        urls = new_url_tree(operations, authenticator, self._streams, is_ready)
        if self._add_pages:
            self._add_pages(urls, operations, authenticator, self._streams, is_ready)
        if self._settings.lobby:
            relays = BotRelays(wires_to(self._settings), self._find_referee, open_streams)
            add_bot_endpoints(urls, relays, authenticator, self._bot_streams)
        app = new_rest_app(urls, self._settings.cors_origins)
        self._server = HttpServer(app, most_connections, self._settings.trusted_proxies)
        tls = new_port_context(self._certificate) if self._certificate else None
        await self._server.start(self._port.socket, tls)

    async def run_clock(self) -> None:
        """Keeps the header Date right. Runs until it is cancelled."""
        if self._server:
            await self._server.run_clock()

    async def stop(self, grace_s: float) -> None:
        """Ends open streams with SERVER_STOPPING, lets other requests finish for so long, and closes the port."""
        for streams in (self._streams, self._bot_streams):
            streams.end_all()
        if self._server:
            await self._server.stop(grace_s)
        else:
            self._port.socket.close()
