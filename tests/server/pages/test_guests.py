"""Guests: a person takes a seat from a page, plays it by WebSocket as a bot does, and can do nothing else."""

from __future__ import annotations

import asyncio
import html
import json
import random
import re
import tempfile
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
import pytest_asyncio
from harness import House, house_in, in_memory, until
from harness.page_size import LARGEST_PAGE, packed_size
from harness.websocket import JSON
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from seatwise.kits.ugo.kit import KIT as UGO
from seatwise.remote import run_async
from seatwise_server.background_tasks import cancel_until_ended
from seatwise_server.cli import serve
from seatwise_server.config import HttpSettings
from seatwise_server.pages.guest_pages import GuestPages
from seatwise_server.refusal import Refusal
from seatwise_server.services import guest_seats
from seatwise_server.services.guest_seats import (
    GUEST_COMES_S,
    GUEST_MATCHES_PER_MINUTE,
    GuestSeats,
    GuestTickets,
)
from seatwise_server.ws.websocket_server import PLAY_PATH, UpgradeRules, check_upgrade

if TYPE_CHECKING:
    from harness import HttpAnswer

pytestmark = pytest.mark.asyncio(loop_scope="session")

FORM = {"content-type": "application/x-www-form-urlencoded", "origin": "http://test"}
PATIENCE_S = 60.0


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def guest_house() -> AsyncIterator[House]:
    """A server that admits guests, with house bots of UGO! that run in this process."""
    with tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as folder:
        settings = {"http": HttpSettings(port=0, guests=12), "guests": 12, "ws_port": 0}
        async with house_in(Path(folder), **settings) as house, house_bots(house):
            yield house


@asynccontextmanager
async def house_bots(house: House) -> AsyncIterator[None]:
    playing = []
    for each in UGO.house_bots:
        token = (await house.admin.register(each.bot)).token
        bot = run_async(each.sample, address=house.address, token=token, queues=(), insecure=True)
        playing.append(asyncio.create_task(bot))
    assert house.server
    attending = house.server.lobby
    assert attending is not None
    await until(lambda: len(attending) == len(playing))
    yield
    await cancel_until_ended(playing)


@dataclass
class Seat:
    """A seat, as a browser has it."""

    url: str
    cookie: str
    told: dict[str, Any] = field(default_factory=dict)
    policy: str = ""


async def take_seat(house: House, game: str = "ugo") -> Seat:
    async with house.http() as http:
        answer = await http.call("POST", "/seats", f"game={game}".encode(), headers=FORM)
        assert answer.status == 303, answer.body
        cookie = answer.headers["set-cookie"]
        seat = Seat(answer.headers["location"], cookie.partition(";")[0])
        assert all(each in cookie for each in (f"Path={seat.url};", "HttpOnly", "SameSite=strict"))
        page = await http.get(seat.url, cookie=seat.cookie)
        seat.told = told_in(page)
        seat.policy = page.headers["content-security-policy"]
        assert page.headers["cache-control"] == "no-store"
    assert await packed_size(house, seat.url, cookie=seat.cookie) < LARGEST_PAGE
    return seat


def told_in(page: HttpAnswer) -> dict[str, Any]:
    """What the page tells its scripts."""
    assert page.status == 200, page.body
    found = re.search(r'data-seat="([^"]+)"', page.body.decode())
    assert found
    told: dict[str, Any] = json.loads(html.unescape(found[1]))
    return told


def open_page_socket(house: House, path: str) -> connect:
    """As a browser does: with the origin of the page, and without a header for the token."""
    assert house.server
    origin: Any = house.server.http_address
    return connect(f"{house.server.ws_address}{path}", subprotocols=[JSON], origin=origin, proxy=None)  # type: ignore[list-item]


async def say(socket: ClientConnection, *messages: object) -> None:
    for each in messages:
        await socket.send(json.dumps(each))


async def how_it_ends(socket: ClientConnection) -> str:
    """The reason of the refusal that ends the socket."""
    reason = ""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                told = json.loads(await socket.recv())
                reason = told["error"]["details"][0]["reason"] if "error" in told else reason
    except ConnectionClosed:
        return reason


# --- A match -----------------------------------------------------------------------------------------------


def answer_of(update: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    view = update["ugo"]
    if update["pace"] == "card":
        return {"play": chance.choice(view["legalCards"])}
    return {"arrange": {"cards": chance.sample(view["wonCards"], len(view["wonCards"]))}}


async def play_match(socket: ClientConnection, seat: Seat) -> dict[str, Any]:
    """Plays legal moves until the match is over, and returns how it ended."""
    chance, place = random.Random(7), {"match": seat.told["match"], "seat": seat.told["seat"]}
    await say(socket, {"items": [place | {"sit": {"updates": "UPDATES_EVERY_CHANGE"}}]})
    answered = 0
    async for raw in socket:
        for item in json.loads(raw)["items"]:
            assert "moveRejected" not in item
            if "ping" in item:
                await say(socket, {"items": [{"pong": item["ping"]}]})
            if "matchEnded" in item:
                ended: dict[str, Any] = item["matchEnded"]
                return ended
            update = item.get("update", {})
            if update.get("toAct") and update["prompt"] > answered:
                answered = update["prompt"]
                move = {"requestId": f"m{answered}", "prompt": answered, "ugo": answer_of(update, chance)}
                await say(socket, {"items": [place | {"submitMove": move}]})
    raise AssertionError("the socket ended before the match")


async def come_to(house: House, seat: Seat) -> ClientConnection:
    """Attends, until the seat is offered."""
    socket = await open_page_socket(house, "/v1/attend")
    await say(socket, {"token": seat.told["token"]}, {"queues": [], "maxMatches": 1})
    async with asyncio.timeout(PATIENCE_S):
        while "offer" not in (told := json.loads(await socket.recv())):
            assert "error" not in told, told
    assert told["offer"]["match"] == seat.told["match"]
    assert told["offer"]["seat"] == seat.told["seat"]
    return socket


async def test_a_guest_plays_a_match_by_the_websocket_of_bots(guest_house: House) -> None:
    seat = await take_seat(guest_house)
    attending = await come_to(guest_house, seat)
    async with open_page_socket(guest_house, "/v1/play") as socket, asyncio.timeout(PATIENCE_S):
        await say(socket, {"token": seat.told["token"]})
        ended = await play_match(socket, seat)
    await attending.close()
    assert ended["result"]["endings"] == ["ENDING_COMPLETED"] * 4
    match = await guest_house.admin.match(seat.told["match"])
    assert not match.competition
    await guest_house.admin.record(match.name)
    async with guest_house.http() as http:
        after = await http.get(seat.url, cookie=seat.cookie)
        assert (after.status, after.headers["location"]) == (303, f"/{match.name}")


# --- What a guest may do ------------------------------------------------------------------------------------


async def test_a_guest_has_one_seat_and_no_other_right(guest_house: House) -> None:
    assert guest_house.server
    seat, ws = await take_seat(guest_house), guest_house.server.ws_address
    assert f"connect-src 'self' ws://test:{ws.rpartition(':')[2]};" in seat.policy
    token = seat.told["token"]
    for queue in ("casual", "casual-ubongo"):
        async with open_page_socket(guest_house, "/v1/attend") as socket:
            await say(socket, {"token": token}, {"queues": [queue], "maxMatches": 1})
            assert await how_it_ends(socket) == "NOT_ALLOWED"
    async with guest_house.http(token) as http:
        for verb, url in (("POST", "/v1/matches"), ("POST", "/v1/bots"), ("GET", "/v1/tokens")):
            assert (await http.call(verb, url, {} if verb == "POST" else None)).status == 403
    async with guest_house.http(guest_house.admin.token) as http:
        listed = (await http.get("/v1/bots")).body + (await http.get("/v1/tokens")).body
        assert b"guest-" not in listed
    await guest_house.admin.abort(seat.told["match"])


async def test_a_guest_cannot_sit_at_another_seat(guest_house: House) -> None:
    mine, other = await take_seat(guest_house), await take_seat(guest_house)
    place = {"match": other.told["match"], "seat": other.told["seat"]}
    attending = [await come_to(guest_house, seat) for seat in (mine, other)]
    async with open_page_socket(guest_house, "/v1/play") as socket, asyncio.timeout(PATIENCE_S):
        await say(socket, {"token": mine.told["token"]}, {"items": [place | {"sit": {}}]})
        while '"moveRejected"' not in (told := str(await socket.recv())):
            continue
        assert "REASON_NOT_YOUR_SEAT" in told
        assert '"ugo"' not in told
    async with guest_house.http() as http:
        for cookie in ("", mine.cookie, "seatwise_seat=x"):
            page = await http.get(other.url, cookie=cookie)
            assert page.status == 403
            assert other.told["token"].encode() not in page.body
    for seat, socket in zip((mine, other), attending, strict=True):
        await socket.close()
        await guest_house.admin.abort(seat.told["match"])


async def test_another_site_can_neither_take_a_seat_nor_connect(guest_house: House) -> None:
    async with guest_house.http() as http:
        for origin in ("http://evil.example", "null", ""):
            answer = await http.call("POST", "/seats", b"game=ugo", headers=FORM | {"origin": origin})
            assert answer.status == 403
        answer = await http.call("POST", "/seats", b"game=chess", headers=FORM)
        assert answer.status == 404
        home = await http.get("/")
        assert b'action="/seats"' in home.body
        assert "ws:" not in home.headers["content-security-policy"]


async def test_without_the_option_there_are_no_seats_for_guests(http_house: House) -> None:
    async with http_house.http() as http:
        assert (await http.call("POST", "/seats", b"game=ugo", headers=FORM)).status == 404
        assert b'action="/seats"' not in (await http.get("/")).body


def upgrade_from(origin: str, host: str, page_port: int | None) -> str:
    headers = {
        "Host": host, "Origin": origin, "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Protocol": JSON,
    }  # fmt: skip
    try:
        check_upgrade(PLAY_PATH, headers, UpgradeRules([PLAY_PATH], [], page_port))
    except Refusal as refusal:
        return refusal.reason
    return ""


@pytest.mark.parametrize(
    ("origin", "host", "page_port", "reason"),
    [
        ("http://me:8080", "me:7481", 8080, ""),
        ("http://me:8081", "me:7481", 8080, "NOT_ALLOWED"),
        ("http://me:8080", "me:7481", None, "NOT_ALLOWED"),
        ("http://me:8081", "me:7481", 0, ""),
        ("https://me", "me:7481", 443, ""),
        ("https://me", "me:7481", 8080, "NOT_ALLOWED"),
        ("http://evil:8080", "me:7481", 8080, "NOT_ALLOWED"),
        ("http://evil", "", 0, "NOT_ALLOWED"),
        ("http://[::1]:8080", "[::1]:7481", 8080, ""),
        ("null", "me:7481", 0, "NOT_ALLOWED"),
    ],
)
async def test_only_pages_of_this_server_may_connect(
    origin: str, host: str, page_port: int | None, reason: str
) -> None:
    assert upgrade_from(origin, host, page_port) == reason


@pytest.mark.parametrize(
    ("lobby", "policy"),
    [
        ("ws://me:7481", "ws://me:*"),
        ("ws://[::1]:7481", "ws://[::1]:*"),
        ("wss://play.example.org", "wss://play.example.org:*"),
    ],
)
async def test_a_page_may_connect_to_all_referees_of_its_host(lobby: str, policy: str) -> None:
    settings = HttpSettings(guest_sockets=lobby, has_other_sockets=True)
    pages = GuestPages(cast("Any", None), cast("Any", None), settings)
    assert pages._allowed_sockets(lobby) == (policy,)


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (["--guests", "5"], ""),
        (["--no-house-bots", "--no-ws"], ""),
        (["--guests", "5", "--no-house-bots"], "leave --no-house-bots out"),
        (["--guests", "5", "--no-ws"], "leave --no-ws out"),
        (["--guests", "5", "--no-http"], "leave --no-http out"),
    ],
)
async def test_a_server_that_cannot_admit_guests_says_why(options: list[str], advice: str) -> None:
    parser = ArgumentParser()
    serve.add_options(parser)
    why = next(serve.find_refusals(serve.options_from(parser.parse_args(options))), "")
    assert why.endswith(advice)
    assert bool(why) is bool(advice)


async def all_keys(house: House) -> set[bytes]:
    assert house.server
    return {key async for key in house.server.store.client._quick.scan_iter()}


async def test_nothing_is_left_of_a_seat_that_nobody_opens(guest_house: House) -> None:
    """And a ticket is of use only as it was given out."""
    assert guest_house.server
    before = await all_keys(guest_house)
    seats = [await take_seat(guest_house, game) for game in ("ugo", "ubongo")]
    assert await all_keys(guest_house) == before
    async with guest_house.http() as http:
        listed = (await http.get("/v1/matches")).body + (await http.get("/matches")).body
        for seat in seats:
            match, token = seat.told["match"], seat.told["token"]
            assert match.encode() not in listed
            assert (await http.get(f"/v1/{match}")).status == 404
            assert (await http.get(seat.url)).status == 404
            for text in (token[:-1], token.replace("3", "4"), token[: len(token) // 2]):
                assert (await http.get(seat.url, cookie=f"seatwise_seat={text}")).status == 404
                async with open_page_socket(guest_house, "/v1/attend") as socket:
                    await say(socket, {"token": text})
                    assert await how_it_ends(socket) == "TOKEN_UNKNOWN"
            async with open_page_socket(guest_house, "/v1/play") as socket:
                await say(socket, {"token": token})
                assert await how_it_ends(socket) == "TOKEN_UNKNOWN"
    assert await all_keys(guest_house) == before


# --- How many -----------------------------------------------------------------------------------------------


class FewMatches:
    """A store and operations in memory, which know the states of matches."""

    def __init__(self) -> None:
        self.states: dict[str, str] = {}
        self.held: dict[str, tuple[str, float]] = {}
        self.used: set[str] = set()
        self.now = 0.0
        self.leases = self.matches = self.bots = self.access_tokens = self

    async def take_lease(self, work: str, process: str, _lease_ms: int) -> bool:
        return self.held.setdefault(work, (process, self.now))[0] == process

    async def release_lease(self, work: str, process: str) -> bool:
        return self.held.get(work, ("", 0))[0] == process and bool(self.held.pop(work))

    async def read_holder(self, work: str) -> tuple[str, int] | None:
        held = self.held.get(work)
        return held and (held[0], int(guest_seats._PLACE_MS - 1000 * (self.now - held[1])))

    async def get_meta(self, name: str) -> Any:
        state = self.states.get(name)
        return state and SimpleNamespace(fields={"setup": b""}, state=state)

    async def register_guest(self, name: str, _owner: str, _keep_ms: int) -> str:
        return f"bots/{name}/versions/1"

    async def new_ticket(self, contents: str) -> str:
        return contents

    async def open_ticket(self, text: str) -> str:
        return text

    async def is_used(self, ticket: str) -> bool:
        return ticket in self.used

    async def use_ticket(self, text: str, _bot: str, _scopes: object, _lifetime_ms: int) -> None:
        self.used.add(text)

    async def come(self, seats: GuestSeats, peer: str) -> str:
        """A guest comes from this address: the match. Raises `Refusal`."""
        ticket, token = await GuestTickets(cast("Any", self), lambda: self.now).new_ticket(peer, "ugo")
        await seats.admit_guest(token)
        return ticket.match

    async def create(self, _caller: object, request: Any) -> None:
        self.states[guest_seats.match_name_for(request.request_id)] = "RUNNING"

    async def abort(self, _caller: object, request: Any) -> None:
        self.states[request.name] = "VOIDED"

    def seats(self, most: int) -> GuestSeats:
        operations: Any = [
            SimpleNamespace(method="/seatwise.v1.MatchService/CreateMatch", handle=self.create),
            SimpleNamespace(method="/seatwise.v1.MatchService/AbortMatch", handle=self.abort),
        ]
        store: Any = self
        return GuestSeats(store, operations, most, lambda: self.now)


@pytest.fixture
def few() -> Iterator[FewMatches]:
    states = {"WAITING": 1, "RUNNING": 3, "FINISHED": 4, "VOIDED": 5}
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        resource = SimpleNamespace(match_resource=lambda meta: SimpleNamespace(state=states[meta.state]))
        patch.setattr(guest_seats, "resources", resource)
        yield FewMatches()
        stack.close()


async def reason_of(few: FewMatches, seats: GuestSeats, peer: str) -> str:
    try:
        await few.come(seats, peer)
    except Refusal as refusal:
        return refusal.reason
    return ""


async def test_guests_are_bounded_and_a_place_is_free_when_its_match_is_over(few: FewMatches) -> None:
    one, other = few.seats(2), few.seats(2)  # of two lobbies on one Redis
    first = await few.come(one, "10.0.0.1:1")
    assert await reason_of(few, other, "10.0.0.2:1") == ""
    assert (
        await reason_of(few, one, "10.0.0.3:1") == await reason_of(few, other, "10.0.0.4:1") == "SERVER_FULL"
    )
    few.states[first] = "FINISHED"
    assert await reason_of(few, other, "10.0.0.4:1") == ""
    assert await reason_of(few, one, "10.0.0.3:1") == "SERVER_FULL"


async def test_a_match_ends_whose_guest_has_gone_again(few: FewMatches) -> None:
    seats = few.seats(1)
    left = await few.come(seats, "10.0.0.1:1")
    few.states[left] = "WAITING"
    assert await reason_of(few, seats, "10.0.0.2:1") == "SERVER_FULL"
    few.now = GUEST_COMES_S + 1
    assert await reason_of(few, seats, "10.0.0.2:1") == ""
    assert few.states[left] == "VOIDED"


async def test_one_address_can_neither_hold_all_places_nor_begin_matches_without_end(few: FewMatches) -> None:
    seats = few.seats(8)
    together = await asyncio.gather(*(reason_of(few, seats, f"10.0.0.1:{port}") for port in range(5)))
    assert together == ["", "", *["QUOTA_EXCEEDED"] * 3]
    assert await reason_of(few, few.seats(8), "10.0.0.1:9") == "QUOTA_EXCEEDED", "another lobby knows it"
    assert await reason_of(few, seats, "10.0.0.2:1") == ""
    begun = 0
    while (reason := await reason_of(few, seats, "10.0.0.3:1")) == "":
        begun += 1
        few.states = dict.fromkeys(few.states, "FINISHED")
    assert (begun, reason) == (GUEST_MATCHES_PER_MINUTE, "RATE_EXCEEDED")
    few.now = 60.0
    assert await reason_of(few, seats, "10.0.0.3:1") == ""


async def test_a_ticket_without_a_guest_holds_no_place_and_one_that_comes_twice_holds_one(
    few: FewMatches,
) -> None:
    seats, tickets = few.seats(1), GuestTickets(cast("Any", few), lambda: few.now)
    given = [await tickets.new_ticket("10.0.0.1:1", "ugo") for _ in range(int(GUEST_MATCHES_PER_MINUTE))]
    assert (few.held, few.states) == ({}, {})
    with pytest.raises(Refusal, match="begun many matches"):
        await tickets.new_ticket("10.0.0.1:2", "ugo")
    await asyncio.gather(*(seats.admit_guest(given[0][1]) for _ in range(3)))
    few.used.clear()  # killed before the last step
    await seats.admit_guest(given[0][1])
    assert [*few.states] == [given[0][0].match]
    assert await reason_of(few, seats, "10.0.0.2:1") == "SERVER_FULL"
