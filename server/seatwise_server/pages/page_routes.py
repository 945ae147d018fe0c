"""The URLs of all pages."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial

from seatwise_server.config import HttpSettings
from seatwise_server.pages.bot_page import BotPageContent
from seatwise_server.pages.guest_pages import SEATS, GuestPages
from seatwise_server.pages.home_page import HomePage, make_rules_page
from seatwise_server.pages.ladder_page import LadderPage
from seatwise_server.pages.league_page import LeaguePage
from seatwise_server.pages.match_list_page import MatchListPage
from seatwise_server.pages.match_page import LiveFrames, MatchPage
from seatwise_server.pages.operator_pages import CHECKS, OPERATORS, LadderChecks, OperatorPages
from seatwise_server.pages.page_responses import MakePage, PageCalls, page_endpoint, public_endpoint
from seatwise_server.pages.position_picture import PositionPictures
from seatwise_server.pages.show_page import EmbedPages, ShowPage
from seatwise_server.pages.static_files import (
    DOWNLOADS,
    Downloads,
    answer_favicon,
    answer_robots,
    answer_static,
)
from seatwise_server.rest.event_streams import EventStreams
from seatwise_server.rest.routes import UrlTree
from seatwise_server.services.admin import read_queue_depths
from seatwise_server.services.authentication import Authenticator
from seatwise_server.services.guest_seats import GuestTickets
from seatwise_server.services.operations import Operation
from seatwise_server.store import Store


def add_pages(
    urls: UrlTree,
    operations: Iterable[Operation],
    authenticator: Authenticator,
    streams: EventStreams,
    is_ready: Callable[[], bool],
    *,
    settings: HttpSettings,
    store: Store,
) -> None:
    """Add the pages, which call these operations, to the URLs of a process. `is_ready` is whether it takes bots."""
    calls = PageCalls(operations, authenticator)
    leagues, checks = LeaguePage(calls), LadderChecks(store.results)
    operators = OperatorPages(calls, is_ready, partial(read_queue_depths, store), checks)
    live, downloads = LiveFrames(calls, streams), Downloads(settings)
    matches = MatchPage(calls, live)
    has_guests = bool(settings.guests and settings.guest_sockets)
    pages: dict[str, MakePage] = {
        "/": HomePage(calls, live, downloads, has_guests=has_guests).make_page,
        "/matches": MatchListPage(calls).make_page,
        "/matches/{match}": matches.make_page,
        "/ladders/{ladder}": LadderPage(calls).make_page,
        "/leagues/{league}": leagues.make_page,
        "/leagues/{league}/matches": leagues.make_matches_page,
        "/rules/{game}": make_rules_page,
        "/show": ShowPage(calls, live).make_page,
        "/bots/{bot}/versions/{version}": BotPageContent(calls).make_page,
    }
    for path, make_page in pages.items():
        urls.add_endpoint(path, "GET", path, public_endpoint(make_page))
    embedded = EmbedPages(calls).by_path if settings.embed_origins else {}
    for path, make_page in embedded.items():
        urls.add_endpoint(path, "GET", path, public_endpoint(make_page, settings.embed_origins))
    if has_guests:
        guests = GuestPages(calls, GuestTickets(store, time.monotonic), settings)
        urls.add_endpoint(SEATS, "POST", SEATS, page_endpoint(guests.take_seat))
        urls.add_endpoint(f"{SEATS}/{{match}}", "GET", f"{SEATS}/{{match}}", page_endpoint(guests.answer))
    urls.add_endpoint(OPERATORS, "GET", OPERATORS, page_endpoint(operators.answer))
    urls.add_endpoint(CHECKS, "GET", CHECKS, page_endpoint(operators.answer_checks))
    urls.add_endpoint(OPERATORS, "POST", OPERATORS, page_endpoint(operators.log_in))
    urls.add_endpoint(f"{OPERATORS}/logout", "POST", OPERATORS, page_endpoint(operators.log_out))
    urls.add_endpoint("/matches/{match}/frames", "GET", "/matches/frames", matches.answer_frames)
    pictures = PositionPictures(matches).answer
    urls.add_endpoint("/matches/{match}/pictures/{file}", "GET", "/matches/pictures", pictures)
    urls.add_endpoint("/matches/{match}/live", "GET", "/matches/live", live.answer)
    urls.add_endpoint("/matches/{match}/live/steps", "GET", "/matches/live/steps", live.answer_steps)
    urls.add_endpoint(f"{DOWNLOADS}/{{file}}", "GET", DOWNLOADS, downloads.answer)
    urls.add_endpoint("/robots.txt", "GET", "/robots.txt", answer_robots)
    urls.add_endpoint("/favicon.ico", "GET", "/favicon.ico", answer_favicon)
    urls.add_endpoint("/static/{version}/{file}", "GET", "/static", answer_static)
