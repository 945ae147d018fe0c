"""The pages of operators: log in with a token, then look at referees, tables, created matches that wait, leases, and the fairness checks of ladders."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256

from cachetools import LRUCache, TTLCache
from starlette.requests import Request
from starlette.responses import Response

from seatwise.v1 import admin_service_pb2, match_pb2
from seatwise_server.ladder.ladder_settings import LADDER_PREFIX
from seatwise_server.ladder.ladder_worker import StrengthClient, describe_look
from seatwise_server.league.report.sections import Part, fairness_parts
from seatwise_server.limits import LOGINS_PER_MINUTE, TokenBuckets
from seatwise_server.pages.page_responses import (
    PageCalls,
    bot_label,
    check_own_page,
    is_private_connection,
    page_response,
    peer_of_page,
    put_cookie,
    read_form,
    render_page,
    see_other,
)
from seatwise_server.refusal import Refusal
from seatwise_server.services.read_budget import network_of
from seatwise_server.store import ResultLogs

# Sessions of operators in a browser: short, kept in memory, and named by a cookie that no other page can send.

SESSION_S = 1800
MOST_SESSIONS = 100
COOKIE = "seatwise_operator"
OPERATORS = "/operators"
"""The URL of the page, and the path of the cookie."""
CHECKS = f"{OPERATORS}/ladders/{{ladder}}"


class OperatorSessions:
    """The sessions of this process, which end with it. Their tokens are checked again at each request."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._tokens: TTLCache[bytes, str] = TTLCache(MOST_SESSIONS, SESSION_S, clock)
        """By the digest of the cookie's value."""

    def begin_session(self, token: str) -> str:
        """Begin a session, and return the value of its cookie."""
        value = secrets.token_urlsafe(32)
        self._tokens[_digest(value)] = token
        return value

    def find_token(self, value: str) -> str | None:
        """Return the token of the session with this value of the cookie; None if there is none, or it has ended."""
        return self._tokens.get(_digest(value))

    def end_session(self, value: str) -> None:
        """End the session with this value of the cookie, if there is one."""
        self._tokens.pop(_digest(value), None)


def _digest(value: str) -> bytes:
    return sha256(value.encode()).digest()


LISTED_TABLES = 100
MOST_KEPT_CHECKS = 16
_LIST_REFEREES = "AdminService/ListReferees"


class OperatorPages:
    """Answers /operators and the URLs below it."""

    def __init__(
        self,
        calls: PageCalls,
        is_ready: Callable[[], bool],
        read_depths: Callable[[], Awaitable[Mapping[str, int]]],
        ladder_checks: LadderChecks,
    ) -> None:
        """`read_depths` returns how many bots wait in each queue. It and `ladder_checks` are called only after a token was checked."""
        self._calls = calls
        self._read_depths = read_depths
        self._ladder_checks = ladder_checks
        self._is_ready = is_ready
        self._sessions = OperatorSessions()
        self._tries = TokenBuckets(LOGINS_PER_MINUTE / 60, LOGINS_PER_MINUTE, time.monotonic)

    async def answer(self, request: Request, _values: list[str]) -> Response:
        """Return the page of operators, or the form to log in."""
        return await self._answer(request, partial(self._overview, request))

    async def answer_checks(self, request: Request, values: list[str]) -> Response:
        """Return the fairness checks of a ladder, or the form to log in."""
        return await self._answer(request, partial(self._show_checks, request, f"ladders/{values[0]}"))

    async def _answer(self, request: Request, make: Callable[[str], Awaitable[Response]]) -> Response:
        """Return what `make` makes for a token, which it has to check before anything else, or the form to log in."""
        cookie = request.cookies.get(COOKIE, "")
        token = self._sessions.find_token(cookie)
        if token is None:
            return _login_page(request)
        try:
            return await make(token)
        except Refusal as refusal:
            if not refusal.reason.startswith(("TOKEN_", "SCOPE_", "NOT_ALLOWED")):
                raise
            self._sessions.end_session(cookie)
            return _login_page(request, str(refusal))

    async def log_in(self, request: Request, _values: list[str]) -> Response:
        """Begin a session if the token may read what only operators may. Raises `Refusal` after too many tries."""
        check_own_page(request)
        if not is_private_connection(request):
            return _login_page(request)
        token = (await read_form(request)).get("token", "").strip()
        self._check_rate(network_of(peer_of_page()))
        try:
            await self._calls.call(_LIST_REFEREES, token=token or None)
        except Refusal as refusal:
            return _login_page(request, f"You are not logged in: {refusal}.")
        return _go_to_operators(request, self._sessions.begin_session(token))

    def _check_rate(self, network: str) -> None:
        """Count a try, whether its token is right or wrong. Raises `Refusal` if this network has made too many."""
        wait_s = math.ceil(self._tries.measure_wait(network, 1))
        if wait_s > 0:
            why = f"too many tries to log in came from your address; try again in {wait_s} s"
            raise Refusal("RATE_EXCEEDED", why, retry_after=str(wait_s))
        self._tries.take_units(network, 1)

    async def log_out(self, request: Request, _values: list[str]) -> Response:
        """End the session."""
        check_own_page(request)
        self._sessions.end_session(request.cookies.get(COOKIE, ""))
        return _go_to_operators(request, "")

    async def _overview(self, request: Request, token: str) -> Response:
        referees = await self._calls.call(_LIST_REFEREES, token=token)
        live = await self._calls.call("AdminService/ListLiveMatches", page_size=LISTED_TABLES, token=token)
        leases = await self._calls.call("AdminService/ListLeases", token=token)
        state = match_pb2.Match.STATE_WAITING
        waiting = await self._calls.list_matches(state=state, page_size=LISTED_TABLES, token=token)
        html = render_page(
            "operators.html.j2",
            name=f"an operator, for at most {SESSION_S // 60} minutes",
            is_ready=self._is_ready(),
            referees=[(each, _state_of(each)) for each in referees.referees],
            live=live.matches,
            more_live=bool(live.next_page_token),
            leases=leases.leases,
            waiting=waiting.matches,
            depths=(depths := await self._read_depths()),
            ladders=[name for name in depths if name.startswith(LADDER_PREFIX)],
        )
        return page_response(request, html, is_private=True)

    async def _show_checks(self, request: Request, ladder: str, token: str) -> Response:
        await self._calls.call(_LIST_REFEREES, token=token)
        results = (await self._calls.call("LadderService/GetLadder", name=ladder)).ladder.results
        parts = await self._ladder_checks.make_parts(ladder, results)
        html = render_page("ladder_checks.html.j2", ladder=ladder, look=describe_look(results), parts=parts)
        return page_response(request, html, is_private=True)


class LadderChecks:
    """The fairness checks of ladders, for operators only. Those that were shown last are kept."""

    def __init__(self, results: ResultLogs) -> None:
        self._worker = StrengthClient(results)
        self._kept: LRUCache[tuple[str, int], Sequence[Part]] = LRUCache(MOST_KEPT_CHECKS)

    async def make_parts(self, ladder: str, results: int) -> Sequence[Part]:
        """Return what the page shows of the newest of the first `results` results. A process of its own computes it, and ends then."""
        if (parts := self._kept.get((ladder, results))) is None:
            try:
                found = await self._worker.fetch_checks(ladder, results)
            finally:
                await self._worker.close_process()
            bots = {bot for each in found.favours for bot in (each.taker, each.giver)}
            parts = self._kept[ladder, results] = fairness_parts(found, {bot: bot_label(bot) for bot in bots})
        return parts


def _state_of(referee: admin_service_pb2.Referee) -> str:
    return admin_service_pb2.Referee.State.Name(referee.state).removeprefix("STATE_").lower()


def _login_page(request: Request, refusal: str = "") -> Response:
    # In full where it is this machine: behind a proxy that hides itself, no browser lets the page send a token there.
    here = "" if request.url.scheme == "https" else f"http://{request.headers.get('host', '')}"
    told = {"refusal": refusal, "may_log_in": is_private_connection(request), "minutes": SESSION_S // 60}
    html = render_page("login.html.j2", **told, action=f"{here}{OPERATORS}")
    response = page_response(request, html, is_private=True)
    response.status_code = 403 if refusal else 200
    return response


def _go_to_operators(request: Request, session: str) -> Response:
    response = see_other(OPERATORS)
    put_cookie(response, request, COOKIE, session, OPERATORS, SESSION_S if session else 0)
    return response
