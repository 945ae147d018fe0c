"""Pages for people: every page is whole without scripts, links to what there is, and loads nothing from elsewhere."""

from __future__ import annotations

import asyncio
import html
import itertools
import json
import re
import ssl
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from zipfile import ZipFile

import pytest
from harness import House, dealt, house_in
from harness.http import http_connection
from harness.ladder import Rung, played_with_a_friend
from harness.page_size import LARGEST_PAGE, packed_size
from harness.table import Chair, Table
from matches.one_match import Desk
from seasons.one_season import league_of
from starlette.requests import Request

from seatwise.async_client import AsyncClient
from seatwise.replay import read_replay
from seatwise.v1 import ladder_pb2, match_pb2, match_service_pb2
from seatwise_referee.ending import Ending
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.config import HttpSettings
from seatwise_server.league.settings import Entrant
from seatwise_server.limits import PAGE_SPECTATORS, TokenBuckets
from seatwise_server.pages import match_page, static_files
from seatwise_server.pages.ladder_page import ladder_verdict, whiskers_of
from seatwise_server.pages.league_page import LeagueFigures, plan_league, schedule_rows
from seatwise_server.pages.operator_pages import MOST_SESSIONS, SESSION_S, OperatorPages, OperatorSessions
from seatwise_server.pages.page_responses import render_page
from seatwise_server.play.spectating import spectator_view
from seatwise_server.refusal import Refusal
from seatwise_server.rest.event_streams import EventStreams
from seatwise_server.tls.tls_files import self_signed_files

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from harness import HttpAnswer
    from harness.http import HttpConnection

    from seatwise_server.pages.page_responses import PageCalls

pytestmark = pytest.mark.asyncio(loop_scope="session")

VOID = {"br", "hr", "img", "input", "link", "meta"}


class PageReader(HTMLParser):
    """Reads a page as a browser does, and notes what is wrong with it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.faults: list[str] = []
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(html)
        if self.open:
            self.faults.append(f"never closed: {self.open}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        self.faults += [f"{tag} {name}" for name in given if name.startswith("on") or name == "style"]
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag == "a":
            self.links.add(given.get("href") or "")
        if tag == "script" and "src" not in given:
            self.faults.append("a script without a file")
        if source := given.get("src") or (tag == "link" and given.get("href")):
            self.loaded.add(str(source))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        self.text += data


def check_page(answer: HttpAnswer, status: int = 200) -> PageReader:
    """What holds for every page."""
    assert (answer.status, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
    policy = answer.headers["content-security-policy"]
    for rule in ("default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'"):
        assert rule in policy
    assert "unsafe" not in policy
    page = PageReader(answer.body.decode())
    assert page.faults == []
    assert len(page.ids) == len(set(page.ids))
    assert page.tags.count("h1") == page.tags.count("main") == 1
    assert "title" in page.tags
    assert "style" not in page.tags
    assert all(
        url.startswith("/static/") or re.fullmatch(r"/matches/\w+/pictures/(decisive|[0-9]+).svg", url)
        for url in page.loaded
    )
    return page


async def finished_match(house: House) -> str:
    async with dealt(house) as (table, _, _):
        await table.play_out()
        return str(table.name)


async def test_every_page_is_whole_and_every_link_leads_somewhere(http_house: House) -> None:
    name = await finished_match(http_house)
    async with dealt(http_house) as (table, _, _), http_house.http() as http:
        seen: set[str] = set()
        answers_of: dict[str, PageReader] = {}
        wanted = {"/", f"/{name}", f"/{table.name}"}
        while wanted:
            url = wanted.pop()
            seen.add(url)
            answer = await http.get(url)
            if url in ("/v1/docs",) or not answer.headers["content-type"].startswith("text/html"):
                assert answer.status == 200, url
                continue
            page = check_page(answer)
            answers_of[url] = page
            wanted |= {link.partition("#")[0] for link in page.links} - seen - {""}
        assert any(url.startswith("/bots/") for url in seen)
        assert "seatwise verify" in answers_of[f"/{name}"].text
        assert any(url.startswith(f"/{name}/pictures/") for url in answers_of[f"/{name}"].loaded)
        live = answers_of[f"/{table.name}"].text
        assert "The match is played now." in live
        assert "Round 1 of" in live.partition("The position as text")[2]
        await table.play_out()


async def test_every_page_and_all_that_it_loads_is_small(http_house: House) -> None:
    name = await finished_match(http_house)
    bot = (await http_house.admin.match(name)).bots[0]
    await Rung(http_house, "ladders/small").create()
    async with dealt(http_house) as (table, _, _):
        urls = [
            "/",
            "/matches",
            f"/{name}",
            f"/{table.name}",
            f"/{bot}",
            "/ladders/small",
            "/operators",
            "/none",
        ]
        urls += ["/rules/ugo", "/rules/ubongo", "/v1/docs"]
        sizes = {url: await packed_size(http_house, url) for url in urls if url != "/none"}
        await table.play_out()
    assert {url: size for url, size in sizes.items() if size > LARGEST_PAGE} == {}


async def test_a_page_is_not_sent_again_to_a_browser_that_has_it(http_house: House) -> None:
    async with http_house.http() as http:
        first = await http.get("/matches?state=finished")
        again = await http.get("/matches?state=finished", if_none_match=first.headers["etag"])
        assert (again.status, again.body) == (304, b"")
        policy = "content-security-policy"  # a browser applies that of a 304 to the page that it has kept
        assert again.headers[policy] == first.headers[policy]
        style = await http.get(static_files.static_url("seatwise.css"))
        assert "immutable" in style.headers["cache-control"]
        assert (await http.get("/static/another-version/seatwise.css")).status == 404
        assert b"Disallow: /seats" in (await http.get("/robots.txt")).body
        assert (await http.get("/favicon.ico")).headers["content-type"] == "image/svg+xml"


async def test_names_that_people_chose_stay_text(http_house: House) -> None:
    owner = '<script>alert("x")</script>&amp;'
    async with http_house.http(http_house.admin.token) as http:
        answer = await http.call("POST", "/v1/bots", {"bot": "texter", "owner": owner})
    async with http_house.http() as http:
        page = check_page(await http.get(f"/{answer.json['bot']['name']}"))
    assert owner in page.text


@pytest.mark.parametrize(
    ("url", "status", "words"),
    [
        ("/bots/none/versions/1", 404, "bots/none/versions/1"),
        ("/ladders/none", 404, "ladders/none"),
        ("/leagues/none", 404, "leagues/none"),
        ("/rules/none", 404, "none"),
        ("/leagues/none/matches", 404, "leagues/none"),
        ("/matches?page=x", 400, "page"),
        ("/matches?bot=x", 400, "bot"),
    ],
)
async def test_an_error_is_a_page_that_says_what_is_wrong(
    http_house: House, url: str, status: int, words: str
) -> None:
    async with http_house.http() as http:
        page = check_page(await http.get(url), status)
    assert words in page.text


# --- A match that is played --------------------------------------------------------------------------------


def events_in(raw: bytes) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in raw.splitlines() if line.startswith(b"data: {")]


async def test_a_live_match_is_shown_as_steps_until_it_is_over(http_house: House) -> None:
    async with dealt(http_house, rounds=2) as (table, _, _), http_house.http() as http:
        await http.send("GET", f"/{table.name}/live", headers={"accept": "text/event-stream"})
        status, headers, _ = await http.answer_head()
        assert (status, headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        chunks = http.chunks()
        seen = await anext(chunks)
        while b'"frames"' not in seen:
            seen += await anext(chunks)
        await table.play_out()
        async for chunk in chunks:
            seen += chunk
    assert seen.endswith(b"event: end\ndata: {}\n\n")
    told = events_in(seen)
    assert told[0] == {"state": "live"}
    assert {"state": "finished"} in told
    frames = [frame for each in told for frame in each.get("frames", [])]
    assert all(frame["own"] == [None, None] and frame["times"] == [None, None] for frame in frames)
    assert [each["round"] for frame in frames for each in frame["opened"]] == [1, 2]
    assert all(len(hand) == 10 for frame in frames for each in frame["opened"] for hand in each["hands"])
    firsts = [each["first"] for each in told if "frames" in each]
    assert firsts == [
        sum(len(each.get("frames", [])) for each in told[:place])
        for place, each in enumerate(told)
        if "frames" in each
    ]
    assert len(frames[-1]["table"]["points"]) == 2
    assert frames[-1]["points"] == [sum(each) for each in zip(*frames[-1]["table"]["points"], strict=True)]


async def test_a_visitor_that_comes_late_is_sent_the_newest_step_and_can_load_all_before_it(
    http_house: House,
) -> None:
    async with dealt(http_house, rounds=2) as (table, chair, _), http_house.http() as http:
        url = f"/{table.name}/live"
        await chair.move()
        frames: list[Any] = []
        while len(frames) < 2:
            frames = (await http.get(f"{url}/steps")).json["frames"]
        assert [len(frame["table"]["trick"]) for frame in frames] == [0, 1]
        [card] = frames[1]["table"]["trick"]
        assert frames[1]["says"] == f"{chair.wire.bot.split('/')[1]} plays {card}."
        async with http_house.http() as stream:
            await stream.send("GET", url, headers={"accept": "text/event-stream"})
            await stream.answer_head()
            seen = b""
            async for chunk in stream.chunks():
                seen += chunk
                if b'"frames"' in seen and seen.endswith(b"\n\n"):
                    break
        [news] = [each for each in events_in(seen) if "frames" in each]
        assert news == {"first": 1, "frames": frames[1:]}
        await table.play_out()


async def test_the_steps_of_a_finished_match_are_those_of_its_record(http_house: House) -> None:
    name = await finished_match(http_house)
    async with http_house.http() as http:
        record = (await http.get(f"/v1/{name}/record")).body
        answer = await http.get(f"/{name}/frames")
        assert answer.json == json.loads(json.dumps(read_replay(record).to_json()))
        assert (await http.get(f"/{name}/frames", if_none_match=answer.headers["etag"])).status == 304
        assert (await http.get("/matches/none/frames")).reason == "NOT_FOUND"
        assert (await http.get("/matches/none/live", accept="text/event-stream")).reason == "NOT_FOUND"


# --- Ladders and leagues ----------------------------------------------------------------------------------


async def play_counted(house: House, bots: Sequence[Any], attending: Sequence[Any], league: str) -> str:
    """A match between these bots that counts for the league."""
    async with AsyncClient(house.address, house.admin.token) as admin:
        match = await admin.create_match("ugo", [bot.bot for bot in bots], {"rounds": 1}, league=league)
    offers = [await each.offer(match.name) for each in attending]
    seats = [Chair(bot, match.name, offer.seat) for bot, offer in zip(bots, offers, strict=True)]
    table = Table(match, seats)
    await table.sit()
    await table.play_out()
    await house.admin.over(match.name)
    return str(match.name)


async def page_with_links(http: HttpConnection, path: str, links: set[str]) -> Any:
    """The page as soon as it has these links: a result may count a moment after its match is over."""
    async with asyncio.timeout(60):
        for number in itertools.count():
            page = check_page(await http.get(f"{path}?look={number}"))
            if links <= page.links:
                return page
            await asyncio.sleep(0.1)
    raise AssertionError(f"{path} never has {links}")


async def test_a_league_has_a_verdict_and_cells_that_lead_to_its_matches(http_house: House) -> None:
    bots = [await http_house.bot(), await http_house.bot()]
    entrants = tuple(Entrant(f"entrant{number}", bot.bot) for number, bot in enumerate(bots))
    settings = json.dumps(league_of(entrants=entrants).to_published_json())
    async with AsyncClient(http_house.address, http_house.admin.token) as admin:
        await admin.create_league("leagues/page", settings)
    async with http_house.http() as http:
        text = check_page(await http.get("/leagues/page")).text
        assert "No result counts yet." in text
        assert "Schedule" in text
        assert "to come" in text
        attending = [await bot.attend() for bot in bots]
        matches = [await play_counted(http_house, bots, attending, "leagues/page") for _ in range(2)]
        page = await page_with_links(http, "/leagues/page", {f"/{match}" for match in matches})
        assert re.search(r"entrant[01] leads|share the first rank", page.text)
        cells = [link for link in page.links if link.startswith("/leagues/page/matches?")]
        assert len(cells) == 2
        assert {f"/{match}" for match in matches} <= check_page(await http.get(cells[0])).links


async def test_the_schedule_shows_what_comes_next_and_keeps_what_is_withheld() -> None:
    entrants = tuple(Entrant(f"e{number}", f"bots/e{number}/versions/1") for number in range(4))
    settings = league_of(entrants=entrants, format="round-robin", seats=2, deals="none")
    planned = plan_league("leagues/x", settings, [], {})
    assert planned
    first, second, third = (each.names[0] for each in planned.due[:3])
    result = LoggedResult(1, first, planned.due[0].bots, (1, 0), (1, 2), (Ending.COMPLETED,) * 2)
    after = plan_league("leagues/x", settings, [result], {})
    assert after
    assert [each.names[0] for each in after.due] == [each.names[0] for each in planned.due[1:]]
    rows = schedule_rows(LeagueFigures({}, None, after, frozenset({second})), [third])
    assert rows
    assert (rows["expected"], rows["open"]) == (6, 5)
    assert [row["state"] for row in rows["rows"]] == ["played now", *["to come"] * 3, "result withheld"]
    assert (rows["rows"][0]["match"], rows["rows"][1]["match"]) == (third, "")


async def test_a_ladder_shows_what_can_be_told_apart(http_house: House) -> None:
    rung = Rung(http_house, "ladders/page")
    await rung.create()
    async with http_house.http() as http:
        page = check_page(await http.get("/ladders/page"))
        assert "No result counts yet." in page.text
        assert "/rules/ugo" in check_page(await http.get("/")).links


@pytest.mark.parametrize(
    ("results", "told"), [(0, "No result counts yet."), (7, "The table of these results is being computed.")]
)
async def test_a_ladder_whose_first_table_is_not_there_yet_says_so(results: int, told: str) -> None:
    ladder = ladder_pb2.Ladder(name="ladders/new", game="ugo", seats=2, results=results)
    page = render_page(
        "ladder.html.j2",
        ladder=ladder,
        results=0,
        standings=[],
        matches=[],
        update_time=None,
        history=None,
        asked="",
        refusal="",
    ).decode()
    assert told in page
    assert f"{results} results count" in page


def standing(place: int, **more: Any) -> ladder_pb2.Standing:
    return ladder_pb2.Standing(bot=f"bots/b{place}/versions/1", place=place, **more)


@pytest.mark.parametrize(
    ("first", "verdict"),
    [
        (standing(1, provisional=True), "b1 leads so far, but has played too few matches for a judgement."),
        (
            standing(1, not_distinguishable_from=["bots/b2/versions/1", "bots/b3/versions/2"]),
            "b1 leads, but the results do not yet tell it apart from b2 and b3 2.",
        ),
        (standing(1), "b1 leads, and the results tell it apart from all others near it."),
    ],
)
async def test_the_verdict_of_a_ladder_says_how_sure_it_is(first: ladder_pb2.Standing, verdict: str) -> None:
    assert ladder_verdict([first, standing(2)]) == verdict


async def test_whiskers_share_one_scale_and_the_last_ones_end_at_its_ends() -> None:
    drawn = whiskers_of([standing(1, strength=5, low=-5, high=15), standing(2, strength=0, low=-10, high=10)])
    assert drawn == {
        "bots/b1/versions/1": (200, 600, 1000, 400),
        "bots/b2/versions/1": (0, 400, 800, 400),
    }


# --- Operators ------"""------------------------------------------------------------------------------------

FORM = {"content-type": "application/x-www-form-urlencoded"}


def at_this_machine(http: Any) -> dict[str, str]:
    """The headers of a browser that was sent to the server's own port."""
    host, port = http.writer.get_extra_info("peername")
    return {"host": f"{host}:{port}", "origin": f"http://{host}:{port}"}


async def log_in(http: Any, token: str, **headers: str) -> HttpAnswer:
    sent = at_this_machine(http) | FORM | headers
    answer: HttpAnswer = await http.call("POST", "/operators", f"token={token}".encode(), headers=sent)
    return answer


async def test_an_operator_logs_in_and_out(http_house: House) -> None:
    async with http_house.http() as http:
        form = await http.get("/operators", **at_this_machine(http))
        assert "Log in" in check_page(form).text
        answer = await log_in(http, http_house.admin.token)
        assert (answer.status, answer.headers["location"]) == (303, "/operators")
        cookie = answer.headers["set-cookie"]
        assert all(
            rule in cookie for rule in ("HttpOnly", "SameSite=strict", "Path=/operators", "Max-Age=1800")
        )
        value = cookie.partition(";")[0]
        inside = await http.get("/operators", cookie=value)
        assert inside.headers["cache-control"] == "no-store"
        text = check_page(inside).text
        assert all(each in text for each in ("Referees", "casual-ubongo", "created matches"))
        assert http_house.admin.token.encode() not in inside.head + inside.body
        out = await http.call(
            "POST", "/operators/logout", b"", headers={"origin": "http://test", "cookie": value}
        )
        assert out.status == 303
        assert "Referees" not in check_page(await http.get("/operators", cookie=value)).text


async def test_the_page_of_a_closed_ladder_says_so(http_house: House) -> None:
    rung = await played_with_a_friend(http_house, "ladders/old")
    await rung.standings(240)
    await http_house.server.store.ladders.close_ladder(rung.name)
    await Rung(http_house, "ladders/young").create(2, follows=rung.name)
    async with http_house.http() as http:
        text = check_page(await http.get("/ladders/old")).text
        assert all(each in text for each in ("Season 1", "The season is over", "This table is final", "b0 "))
        assert "b0 leads" not in text
        assert "Season 2, after old" in check_page(await http.get("/ladders/young")).text
        async with asyncio.timeout(10):
            while "Archive" not in (home := check_page(await http.get("/")).text):  # noqa: ASYNC110  # the list may be a second old
                await asyncio.sleep(0.1)
        assert home.index("Archive") < home.index("old: season 1")


async def test_only_operators_see_the_checks_of_a_ladder(http_house: House) -> None:
    await played_with_a_friend(http_house, "ladders/friends")
    async with http_house.http() as http:
        assert (
            "Log in" in check_page(await http.get("/operators/ladders/friends", **at_this_machine(http))).text
        )
        cookie = (await log_in(http, http_house.admin.token)).headers["set-cookie"].partition(";")[0]
        assert b"/operators/ladders/friends" in (await http.get("/operators", cookie=cookie)).body
        for _ in range(2):  # computed, and kept
            text = check_page(await http.get("/operators/ladders/friends", cookie=cookie)).text
            assert "b0 gains" in text
            assert "b0 where b1 sits" in text
        assert (await http.get("/operators/ladders/none", cookie=cookie)).status == 404


async def test_no_other_token_opens_the_page_of_operators(http_house: House) -> None:
    bot = await http_house.bot()
    async with http_house.http() as http:
        for token in ("", "wrong", bot.token):
            answer = await log_in(http, token)
            assert "set-cookie" not in answer.headers
            assert "You are not logged in" in check_page(answer, 403).text
        assert "Referees" not in check_page(await http.get("/operators", cookie="seatwise_operator=x")).text


@pytest.mark.parametrize(
    ("headers", "line"),
    [
        ({"x-forwarded-for": "198.51.100.7"}, ""),
        ({"via": "1.1 door"}, ""),
        ({"x-real-ip": "198.51.100.7"}, ""),
        ({"host": "seatwise.example", "origin": "http://seatwise.example"}, ""),
        ({"host": "localhost:80", "origin": "http://localhost:80"}, ""),
        ({}, "HTTP/1.0"),
    ],
)
async def test_a_plain_proxy_that_nobody_named_is_offered_no_form(
    http_house: House, headers: dict[str, str], line: str
) -> None:
    async with http_house.http() as http:
        sent = at_this_machine(http) | headers
        if line:
            lines = [f"GET /operators {line}", f"host: {sent['host']}", "", ""]
            await http.send_raw("\r\n".join(lines).encode())
            page = await http.answer()
        else:
            page = await http.get("/operators", **sent)
            refused = await log_in(http, http_house.admin.token, **sent)
            assert "set-cookie" not in refused.headers
        assert b"password" not in page.body
        assert "not encrypted" in check_page(page).text


async def test_nobody_gets_the_token_of_a_bot_of_the_server(http_house: House) -> None:
    async with http_house.http(http_house.admin.token) as http:
        assert http_house.server
        await http_house.server.store.bots.register_bot("house-test", "1", "server", "")
        answer = await http.call("POST", "/v1/bots/house-test/versions/1:rotateToken", {})
        assert (answer.status, answer.reason) == (403, "NOT_ALLOWED")


async def test_after_too_many_tries_to_log_in_an_address_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = cast("PageCalls", WrongTokenCalls())
    pages = OperatorPages(calls, lambda: True, cast("Any", None), cast("Any", None))
    monkeypatch.setattr(pages, "_tries", TokenBuckets(1 / 60, 2, lambda: 0.0))
    for _ in range(2):
        assert (await pages.log_in(wrong_token_form(), [])).status_code == 403
    with pytest.raises(Refusal, match="try again in 60 s"):
        await pages.log_in(wrong_token_form(), [])


class WrongTokenCalls:
    """The calls of somebody whose tokens are all unknown."""

    async def call(self, _method: str, **_: Any) -> Any:
        raise Refusal("TOKEN_UNKNOWN", "this token is unknown")


def wrong_token_form() -> Request:
    given = {"host": "test", "origin": "http://test", "content-type": "application/x-www-form-urlencoded"}
    headers = [(name.encode(), value.encode()) for name, value in given.items()]

    async def receive() -> Any:
        return {"type": "http.request", "body": b"token=wrong"}

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/operators",
        "headers": headers,
        "scheme": "https",
        "query_string": b"",
    }
    return Request(scope | {"client": ("127.0.0.1", 1)}, receive)


async def test_another_site_cannot_send_the_form(http_house: House) -> None:
    async with http_house.http() as http:
        for origin in ("http://evil.example", "null", ""):
            assert (await log_in(http, http_house.admin.token, origin=origin)).status == 403
        sent = {"sec-fetch-site": "cross-site"}
        assert (await log_in(http, http_house.admin.token, **sent)).status == 403


async def test_a_session_ends_by_itself_and_there_are_only_so_many() -> None:
    now = [0.0]
    sessions = OperatorSessions(lambda: now[0])
    first = sessions.begin_session("token")
    assert sessions.find_token(first)
    now[0] = SESSION_S + 1
    assert sessions.find_token(first) is None
    values = [sessions.begin_session("token") for _ in range(MOST_SESSIONS + 1)]
    assert sessions.find_token(values[0]) is None
    assert sessions.find_token(values[-1])


class WatchedMatch:
    """The calls of a page that watches a match in which nothing happens."""

    async def admit(self, _: str, **__: Any) -> None:
        """Everybody."""

    async def open_shared_stream(self, _: str, **__: Any) -> Any:
        return self._responses()

    async def _responses(self) -> AsyncGenerator[match_service_pb2.WatchMatchResponse, None]:
        match = match_pb2.Match(game="games/ugo", bots=["bots/a/versions/1", "bots/b/versions/1"])
        yield match_service_pb2.WatchMatchResponse(match=match)
        await asyncio.Event().wait()


async def test_pages_that_follow_live_matches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PAGE_SPECTATORS, "most", 1)
    frames = match_page.LiveFrames(WatchedMatch(), EventStreams())  # type: ignore[arg-type]
    first = frames._follow_news("matches/a")
    await anext(first)
    with pytest.raises(Refusal) as refused:
        await anext(frames._follow_news("matches/a"))
    assert refused.value.reason == "SERVER_FULL"
    await first.aclose()
    again = frames._follow_news("matches/a")
    assert await anext(again)
    await again.aclose()


async def test_one_reading_of_a_position_serves_all_who_ask_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = match_page.LiveFrames(WatchedMatch(), EventStreams())  # type: ignore[arg-type]
    read: list[str] = []

    async def read_position(name: str) -> object:
        read.append(name)
        await asyncio.sleep(0.01)
        return "a position"

    monkeypatch.setattr(frames, "_read_position", read_position)
    found = await asyncio.gather(*[frames.find_position("matches/a") for _ in range(3)])
    assert (found, read) == (["a position"] * 3, ["matches/a"])


class LateMatch(WatchedMatch):
    """The calls of a page that watches a match whose first position comes late, and then comes again."""

    async def _responses(self) -> AsyncGenerator[match_service_pb2.WatchMatchResponse, None]:
        yield await anext(super()._responses())
        desk = Desk()
        desk.sit_all()
        while True:
            await asyncio.sleep(0.05)
            yield spectator_view(desk.match.position, desk.setup, 0)


async def test_a_busy_server_shows_an_older_position_and_waits_for_the_first_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frames = match_page.LiveFrames(LateMatch(), EventStreams())  # type: ignore[arg-type]
    assert await frames.find_position("matches/a", 0.0) is None
    known = await frames.find_position("matches/a")
    assert known
    frames._positions.clear()
    assert await frames.find_position("matches/a", 0.0) == known
    monkeypatch.setattr(match_page, "POSITION_S", 0.0)
    steps = await frames.answer_steps(Request({"type": "http", "client": None}), ["a"])
    assert len(json.loads(bytes(steps.body))["frames"]) == 1


# The wheel that visitors get here


async def test_the_wheel_of_the_operator_is_offered_with_its_hash_where_nobody_can_exchange_it(
    tmp_path: Path,
) -> None:
    wheel = tmp_path / "seatwise-9.9.9-py3-none-any.whl"
    with ZipFile(wheel, "w") as file:
        file.writestr("seatwise/__init__.py", "")
    told = f"/dist/{wheel.name}#sha256={sha256(wheel.read_bytes()).hexdigest()}"
    settings = HttpSettings(port=0, wheel=str(wheel), install="Ask Ms Gray for the file.")
    async with house_in(tmp_path, http=settings) as house, house.http() as http:
        assert house.server
        here = house.server.http_address.removeprefix("http://")
        home = await http.get("/", host=here)
        answer = await http.get(f"/dist/{wheel.name}")
        assert answer.body == wheel.read_bytes()
        for name in ("other.whl", "..", "tls.crt"):
            assert (await http.get(f"/dist/{name}")).status == 404
        afar = await http.get(
            "/", host=here, x_forwarded_for="10.1.2.3"
        )  # a proxy that speaks plain text, perhaps
    assert f"{told}'" in html.unescape(home.body.decode())
    assert "/dist/" not in afar.body.decode()
    assert "Ask Ms Gray for the file." in afar.body.decode()


async def test_pages_name_no_index_that_does_not_have_it(http_house: House) -> None:
    async with http_house.http() as http:
        page = await http.get("/")
    assert "Install it in a clone of the repository: pip install ." in page.body.decode()
    assert "pip install seatwise" not in page.body.decode()


async def test_a_certificate_that_the_server_has_made_can_be_downloaded(tmp_path: Path) -> None:
    files = self_signed_files(tmp_path)
    settings = HttpSettings(port=0, certificate=str(files.cert))
    async with house_in(tmp_path, tls=files, is_tls_auto=True, http=settings) as house:
        trust = ssl.create_default_context(cafile=str(files.cert))
        assert house.server
        async with http_connection(house.server.http_address, tls=trust) as http:
            assert (await http.get("/dist/tls.crt")).body == files.cert.read_bytes()
            assert "--tls-ca tls.crt --queue casual" in (await http.get("/")).body.decode()
