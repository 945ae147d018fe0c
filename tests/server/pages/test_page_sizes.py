"""Every page is small enough for a slow network, with its longest lists too. The answers of the API are made here, without a server."""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
import struct
import time
import zlib
from itertools import combinations, cycle, islice
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from harness.page_size import LARGEST_PAGE
from matches.scenes import smooth, timed_out
from seasons.one_season import league_of
from starlette.requests import Request

from seatwise.v1 import (
    bot_pb2,
    bot_service_pb2,
    ladder_pb2,
    ladder_service_pb2,
    league_pb2,
    league_service_pb2,
    match_pb2,
    match_service_pb2,
)
from seatwise_referee.ending import Ending
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.config import HttpSettings
from seatwise_server.league.naming import request_id_of
from seatwise_server.league.report.facts import describe_leaders
from seatwise_server.league.report.figures import draw_heat_map
from seatwise_server.league.settings import Entrant
from seatwise_server.pages.bot_page import LISTED_OPPONENTS, BotPageContent, draw_answer_times
from seatwise_server.pages.home_page import HomePage, describe_score, find_featured
from seatwise_server.pages.ladder_page import CURVES, LADDER_PLACES, MOST_POINTS, LadderPage, describe_likes
from seatwise_server.pages.league_page import (
    LeagueFigures,
    LeaguePage,
    LeagueSchedule,
    _find_likes,
    _name_some,
    league_verdict,
    plan_league,
    round_rows,
    rounds_of,
)
from seatwise_server.pages.match_list_page import MatchListPage
from seatwise_server.pages.match_page import MatchPage
from seatwise_server.pages.page_responses import PageCalls, order_of
from seatwise_server.pages.show_page import SHOWN_STANDINGS, EmbedPages, ShowPage, choose_next
from seatwise_server.pages.static_files import Downloads, static_contents
from seatwise_server.refusal import Refusal
from seatwise_server.resource_names import match_name_for
from seatwise_server.rest.rest_app import GZIP_LEVEL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatwise_server.competition.ratings.strengths import StrengthFit
    from seatwise_server.pages.page_responses import MakePage

pytestmark = pytest.mark.asyncio(loop_scope="session")

NEIGHBOURS = 20
DRAWN = random.Random(7)
NOW = Timestamp(seconds=1_800_000_000)
BOTS = [f"bots/team-{DRAWN.randrange(16**8):08x}/versions/{DRAWN.randint(1, 9)}" for _ in range(200)]
LOADED = re.compile(rb'(?:src|href)="/static/[^/"]+/([^"]+)"')
IMPORTED = re.compile(rb'from "\./([^"]+)"')


class AnsweredCalls(PageCalls):
    """Stands for the API: it has one answer to each method."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    async def call(self, method: str, *_: Any, **fields: Any) -> Any:
        """Returns the answer to the method."""
        answer = self.answers[method.partition("/")[2]]
        return answer(fields) if callable(answer) else answer


def packed(content: bytes) -> int:
    """How many bytes the server sends for this content."""
    return len(gzip.compress(content, GZIP_LEVEL))


def packed_with_files(html: bytes) -> int:
    """The packed bytes of a page and of the files that it loads."""
    contents, wanted = static_contents(), {each.decode() for each in LOADED.findall(html)}
    loaded: set[str] = set()
    while wanted - loaded:
        name = (wanted - loaded).pop()
        loaded.add(name)
        wanted |= {each.decode() for each in IMPORTED.findall(contents[name])}
    return packed(html) + sum(packed(contents[name]) for name in loaded)


def a_request() -> Request:
    """Of a page; it names nobody who asks."""
    headers = [(b"host", b"seatwise.example.org")]
    return Request(
        {
            "type": "http",
            "path": "/",
            "query_string": b"",
            "headers": headers,
            "scheme": "https",
            "client": None,
        }
    )


async def size_of(make_page: MakePage, *values: str) -> int:
    """The packed bytes of a page with its files."""
    return packed_with_files(await make_page(a_request(), list(values)))


def match_id() -> str:
    return f"matches/{DRAWN.randrange(16**16):016x}"


def finished_matches(count: int, first: str = "") -> Any:
    """A full page of finished matches between four bots."""
    found = []
    for _ in range(count):
        seats = DRAWN.sample(BOTS, 4)
        if first:
            seats[0] = first
        points = [DRAWN.randint(20, 120) for _ in seats]
        result = match_pb2.Result(
            points=points, ranks=DRAWN.sample((1, 2, 3, 4), 4), endings=[match_pb2.ENDING_COMPLETED] * 4
        )
        found.append(
            match_pb2.Match(
                name=match_id(), game="games/ugo", state=match_pb2.Match.STATE_FINISHED, bots=seats, result=result,
                competition="ladders/main", create_time=NOW, end_time=Timestamp(seconds=NOW.seconds + DRAWN.randrange(10**6)),
            )
        )  # fmt: skip
    return match_service_pb2.ListMatchesResponse(matches=found, next_page_token="more")


def list_matches(fields: Mapping[str, Any]) -> Any:
    return finished_matches(fields["page_size"], fields.get("bot", ""))


async def test_the_page_of_a_long_match_is_small_with_all_its_steps() -> None:
    record = smooth(4, 4).line().decode()
    told = json.loads(record)
    result = match_pb2.Result(
        points=told["outcome"]["points"],
        ranks=told["result"]["ranks"],
        endings=[match_pb2.ENDING_COMPLETED] * 4,
    )
    match = match_pb2.Match(
        name=told["match"],
        game="games/ugo",
        state=match_pb2.Match.STATE_FINISHED,
        bots=BOTS[:4],
        result=result,
    )
    calls = AnsweredCalls(
        GetMatch=match_service_pb2.GetMatchResponse(match=match),
        GetRecord=match_service_pb2.GetRecordResponse(record=record),
    )
    page = MatchPage(calls, live=cast("Any", None))
    steps = bytes((await page.answer_frames(a_request(), ["m"])).body)
    assert len(json.loads(steps)["frames"]) > 160
    assert await size_of(page.make_page, "m") + packed(steps) < LARGEST_PAGE


async def test_a_page_opens_one_stream_and_no_script_a_second_one() -> None:
    scripts = {name: text.decode() for name, text in static_contents().items() if name.endswith(".js")}
    opened = {
        name: text.count("new EventSource(") for name, text in scripts.items() if "EventSource(" in text
    }
    assert opened == {"match.js": 1}
    assert (
        scripts["match.js"].count("watchMatch") == 3
    )  # it is made, called once, and called again after a stream that is closed
    assert "if (source.readyState === EventSource.CLOSED) setTimeout(watchMatch" in scripts["match.js"]


# --- Leagues -----------------------------------------------------------------------------------------------


def league_calls(count: int, results: int, **changes: Any) -> AnsweredCalls:
    """A league of so many entrants: its first matches are over, or so many of a round robin that goes on."""
    players = BOTS[:count]
    entrants = tuple(Entrant(f"Team {DRAWN.randrange(10**6)} of the spring", player) for player in players)
    settings = league_of(entrants=entrants, **{"deals": "none"} | changes)
    planned = plan_league("leagues/spring", settings, (), {}) if count < 9 else None
    due = [(each.names[0], each.bots) for each in planned.due] if planned else []
    more = islice(cycle(combinations(players, 2)), max(0, results - len(due)))
    pairs = [*due, *((match_id(), each) for each in more)]
    played = [_league_result(place, *pair) for place, pair in enumerate(pairs[:results], start=1)]
    standings = [
        league_pb2.LeagueStanding(
            place=place, bot=bot, matches=100, points=70 - place + DRAWN.random(), score=DRAWN.random(), wins=DRAWN.random() * 90,
        )
        for place, bot in enumerate(players, start=1)
    ]  # fmt: skip
    league = league_pb2.League(
        name="leagues/spring",
        settings=json.dumps(settings.to_published_json()),
        game="games/ugo",
        bots=players,
    )
    return AnsweredCalls(
        GetLeague=league_service_pb2.GetLeagueResponse(league=league),
        ListLeagueStandings=league_service_pb2.ListLeagueStandingsResponse(
            standings=standings, results=len(played), update_time=NOW
        ),
        ListLeagueResults=lambda fields: league_service_pb2.ListLeagueResultsResponse(
            results=played[int(fields["page_token"] or 0) :]
        ),
        ListMatches=list_valid_matches,
    )


def list_valid_matches(fields: Mapping[str, Any]) -> Any:
    is_void = fields["state"] == match_pb2.Match.STATE_VOIDED
    return match_service_pb2.ListMatchesResponse() if is_void else list_matches(fields)


def _league_result(place: int, match: str, bots: tuple[str, ...]) -> league_pb2.LeagueResult:
    one, other = map(BOTS.index, bots)
    is_ahead = (other - one) / 10 + DRAWN.gauss(0, 1) > 0
    ranks, points = ([1, 2], [40, 30]) if is_ahead else ([2, 1], [30, 40])
    return league_pb2.LeagueResult(
        place=place, match=match, bots=bots, ranks=ranks, points=points, endings=["COMPLETED"] * 2
    )


@pytest.mark.parametrize(("entrants", "results"), [(40, 2000), (100, 4000)])
async def test_the_page_of_a_large_league_is_small(entrants: int, results: int) -> None:
    calls = league_calls(entrants, results)
    assert await size_of(LeaguePage(calls).make_page, "spring") < LARGEST_PAGE


@pytest.mark.parametrize(
    ("others", "possible", "told"),
    [
        (9, 30, "0, 1, 2, 3, 4, 5 and 3 more"),
        (130, 199, "130 others"),
        (2, 199, "0, 1"),
        (199, 199, "any other"),
    ],
)
async def test_the_row_of_an_entrant_is_short_however_many_are_like_it(
    others: int, possible: int, told: str
) -> None:
    assert _name_some([*map(str, range(others))], possible) == told


async def test_a_league_that_is_over_has_a_podium() -> None:
    for results, has_podium in ((5, False), (6, True)):
        page = await LeaguePage(league_calls(4, results)).make_page(a_request(), ["spring"])
        assert (b'class="podium"' in page) is has_podium
        assert page.count(b'<li class="p') == 3 * has_podium


async def test_a_page_has_a_title_card_that_escapes_what_bots_are_called() -> None:
    calls = league_calls(4, 5)
    calls.answers["GetLeague"].league.name = 'leagues/"><b>'
    page = (await LeaguePage(calls).make_page(a_request(), ["spring"])).decode()
    assert '<meta property="og:title" content="League &#34;&gt;&lt;b&gt;">' in page


async def verdict_of(calls: AnsweredCalls) -> str:
    """The first sentence of the page of a league."""
    page = await LeaguePage(calls).make_page(a_request(), ["spring"])
    return str(re.findall(r'<p class="lead">([^<]+)</p>', page.decode())[0])


async def test_a_league_is_won_when_its_last_match_is_over() -> None:
    assert " leads" in await verdict_of(league_calls(4, 5))
    assert " wins" in await verdict_of(league_calls(4, 6))


async def test_the_leader_of_a_league_that_goes_on_is_judged_by_what_holds_at_every_look() -> None:
    class Fit:
        strengths = (SimpleNamespace(bot="a"), SimpleNamespace(bot="b"))

        def is_indistinct(self, *_: str, at_every_look: bool = False) -> bool:
            return at_every_look

    standings = [SimpleNamespace(place=place, bot=bot) for place, bot in ((1, "a"), (2, "b"))]
    table, fit = SimpleNamespace(results=9, standings=standings), cast("StrengthFit", Fit())
    verdicts = [
        league_verdict(
            table,
            LeagueFigures({}, fit, None, is_over=is_over, likes=_find_likes(fit, is_last_look=is_over)),
            {"a": "ann", "b": "bob"},
        )
        for is_over in (False, True)
    ]
    assert verdicts == [
        "ann leads, but the results do not tell it apart from bob.",
        "ann wins, and the results tell it apart from every other entrant.",
    ]


async def test_the_page_of_a_league_is_made_again_only_when_something_has_changed() -> None:
    """A page of 200 entrants may cost 20 ms when nothing has changed, and 300 ms when it has: on a quiet machine, so ten times as much here."""
    calls = league_calls(200, 3000)
    calls.answers["ListMatches"] = match_service_pb2.ListMatchesResponse()
    read, tokens = calls.answers["ListLeagueResults"], []
    calls.answers["ListLeagueResults"] = lambda fields: tokens.append(fields["page_token"]) or read(fields)
    page, costs = LeaguePage(calls), []
    looks = []
    for more in (1, 1, 0):
        before = time.process_time()
        looks.append(await page.make_page(a_request(), ["spring"]))
        costs.append(time.process_time() - before)
        calls.answers["ListLeagueStandings"].results += more
    assert [look == looks[0] for look in looks] == [True, False, False]
    assert tokens == ["", "2999", "2999"]  # only the last one that is known and new ones are read
    assert looks[1] is not looks[2]
    before = time.process_time()
    assert await page.make_page(a_request(), ["spring"]) is looks[2]
    assert time.process_time() - before < 0.2
    assert max(costs[1:]) < 3.0
    assert packed_with_files(looks[0]) < LARGEST_PAGE
    assert b"data:image/png" in looks[0]
    assert b'id="crosstable"' not in looks[0]


async def test_results_that_a_failover_took_back_are_read_again() -> None:
    calls = league_calls(4, 6)
    page = LeaguePage(calls)
    before = await page._read_results("leagues/spring")
    now = [*before[:4], before[5], before[4]]
    calls.answers["ListLeagueResults"] = lambda fields: league_service_pb2.ListLeagueResultsResponse(
        results=now[int(fields["page_token"] or 0) :]
    )
    assert await page._read_results("leagues/spring") == now
    assert await page._read_results("leagues/spring") == now


async def test_a_heat_map_shows_who_was_ahead() -> None:
    drawn = draw_heat_map("met", ["a", "b", "c"], {("a", "b"): 1.0, ("b", "a"): 0.0, ("c", "a"): 0.5})
    png = base64.b64decode(re.findall(r"base64,([^\"]+)", drawn)[0])
    assert struct.unpack(">II", png[16:24]) == (3, 3)
    data = png[png.index(b"IDAT") + 4 :]
    assert zlib.decompressobj().decompress(data) == bytes([0, 0, 5, 0, 0, 1, 0, 0, 0, 3, 0, 0])


async def test_the_rounds_of_a_swiss_tournament_say_who_met_whom() -> None:
    players = [f"bots/b{number}/versions/1" for number in range(5)]
    entrants = tuple(Entrant(f"b{number}", bot) for number, bot in enumerate(players))
    league = league_of(entrants=entrants, format="swiss", rounds=2, deals="none")

    def result(seq: int, match: str, *seats: int) -> LoggedResult:
        name = match_name_for(request_id_of("leagues/x", match))
        bots = tuple(players[seat] for seat in seats)
        return LoggedResult(seq, name, bots, (3, 1), (1, 2), (Ending.COMPLETED,) * 2)

    void = match_name_for(request_id_of("leagues/x", "r1-t2"))
    results = [result(1, "r1-t1", 0, 1), result(2, "r1-t2.2", 3, 2), result(3, "r2-t1", 3, 0)]
    rounds = rounds_of("leagues/x", league, results, {void: None})
    assert [[each.seq for each in line] for line in rounds] == [[1, 2], [3]]
    schedule = LeagueSchedule(4, (), ((1, players[4]),))
    rows = round_rows(players, LeagueFigures({}, None, schedule, rounds=rounds))
    assert [cells for _, cells in rows] == [
        [("+2", "up"), ("-4", "down")], [("-1", "down"), ("", "")], [("-4", "down"), ("", "")],
        [("+3", "up"), ("+1", "up")], [("bye", ""), ("", "")],
    ]  # fmt: skip
    assert rounds_of("leagues/x", league_of(entrants=entrants, deals="none"), results, {}) == []


async def test_the_page_of_a_test_says_what_the_test_says() -> None:
    calls = league_calls(2, 2, format="ab-test", deals="rotation", rounds=40)
    assert re.fullmatch(
        r"After \d+ units there are too few different deals to decide\.", await verdict_of(calls)
    )


# --- Ladders, bots and lists -------------------------------------------------------------------------------


def ladder_calls() -> AnsweredCalls:
    """A full page of a ladder, each place with all the neighbours that it is compared with."""
    standings = [
        ladder_pb2.Standing(
            bot=bot, place=place, matches=DRAWN.randrange(10**4), mu=25 + DRAWN.random(), sigma=DRAWN.random(),
            strength=DRAWN.gauss(0, 200), low=-300 - DRAWN.random(), high=300 + DRAWN.random(),
            not_distinguishable_from=DRAWN.sample(BOTS, NEIGHBOURS),
        )
        for place, bot in enumerate(BOTS[:LADDER_PLACES], start=1)
    ]  # fmt: skip
    points = [
        ladder_service_pb2.StandingsPoint(
            results=20 * number,
            standings=[ladder_pb2.Standing(bot=bot, strength=DRAWN.gauss(0, 200)) for bot in BOTS[:CURVES]],
        )
        for number in range(MOST_POINTS)
    ]
    ladder = ladder_pb2.Ladder(name="ladders/main", game="games/ugo", seats=4, results=10**5)
    return AnsweredCalls(
        GetLadder=ladder_service_pb2.GetLadderResponse(ladder=ladder),
        ListLadders=ladder_service_pb2.ListLaddersResponse(ladders=[ladder] * 6),
        ListStandings=ladder_service_pb2.ListStandingsResponse(
            standings=standings,
            results=10**5,
            update_time=NOW,
            next_page_token="more",
            total_size=len(BOTS),
        ),
        ListStandingsHistory=ladder_service_pb2.ListStandingsHistoryResponse(points=points),
        ListMatches=list_matches,
    )


async def test_a_full_page_of_a_ladder_is_small_and_only_its_first_page_has_a_verdict() -> None:
    calls = ladder_calls()
    html = await LadderPage(calls).make_page(a_request(), ["main"])
    assert packed_with_files(html) < LARGEST_PAGE
    assert b"tell it apart from" in html
    assert b" and 14 more." in html
    for line in calls.answers["ListStandings"].standings:
        line.place += 100
    assert b"tell it apart from" not in await LadderPage(calls).make_page(asking("bot=a"), ["main"])


async def test_places_that_are_not_told_apart_are_ranges_and_say_what_is_on_another_page() -> None:
    def line(place: int, *others: int) -> ladder_pb2.Standing:
        return ladder_pb2.Standing(
            bot=BOTS[place], place=place, not_distinguishable_from=[BOTS[each] for each in others]
        )

    page = [line(51, 49, 52), line(52, 51, 53), line(53, 54, 55), line(54)]
    assert list(describe_likes(page).values()) == ["… 51-52", "51-53", "53-54 …", "no other"]


async def test_a_verdict_names_at_most_six_rivals() -> None:
    verdict = describe_leaders(["ann"], [f"b{number}" for number in range(9)], is_over=True)
    assert verdict.endswith("apart from b0, b1, b2, b3, b4, b5 and 3 more.")
    shared = describe_leaders([f"b{number}" for number in range(8)], None, is_over=False)
    assert shared == "b0, b1, b2, b3, b4, b5 and 2 more share the first rank."


def bot_calls(record: bytes) -> AnsweredCalls:
    """A bot with many opponents, a place on a ladder and one in each of two leagues."""
    opponents = [
        bot_pb2.OpponentRecord(
            opponent=bot, game="games/ugo", matches=DRAWN.randrange(403, 1000), wins=DRAWN.randrange(400), ties=3,
            mean_points=DRAWN.random() * 90, opponent_mean_points=DRAWN.random() * 90, last_end_time=NOW,
        )
        for bot in BOTS[1 : LISTED_OPPONENTS + 1]
    ]  # fmt: skip
    calls = ladder_calls()
    leagues = [league_pb2.League(name=f"leagues/{name}", bots=BOTS[:4]) for name in ("autumn", "spring")]
    calls.answers |= league_calls(4, 5).answers | {
        "GetBot": bot_service_pb2.GetBotResponse(bot=bot_pb2.Bot(name=BOTS[0], owner="a university")),
        "ListOpponents": bot_service_pb2.ListOpponentsResponse(opponents=opponents, matches=10**4),
        "ListLeagues": league_service_pb2.ListLeaguesResponse(leagues=leagues),
        "GetRecord": match_service_pb2.GetRecordResponse(record=record.decode()),
        "ListMatches": list_matches,
    }
    for number, point in enumerate(calls.answers["ListStandingsHistory"].points):
        for line in point.standings:
            line.matches = 20 * number
    return calls


async def test_the_page_of_a_bot_shows_where_it_stands_how_it_came_there_and_is_small() -> None:
    calls, (_, bot, _, version) = bot_calls(timed_out().line()), BOTS[0].split("/")
    html = await BotPageContent(calls).make_page(a_request(), [bot, version])
    assert packed_with_files(html) < LARGEST_PAGE
    page = html.decode()
    assert re.findall(r'<b class="place">(\d+)</b> of (\d+)', page) == [("1", "200"), ("1", "4"), ("1", "4")]
    assert page.index("/ladders/main?bot=") < page.index("/leagues/autumn") < page.index("/leagues/spring")
    assert page.count('class="interval s0"') == 1
    assert (
        LISTED_OPPONENTS < page.count('<rect class="up"') <= LISTED_OPPONENTS + 4
    )  # and of each seat that it had
    assert "Answers by the time charged for them" in page

    def refuse(_fields: Any) -> None:
        raise Refusal("NOT_FOUND", "no place")

    calls.answers["ListStandings"] = calls.answers["ListLeagueStandings"] = refuse
    calls.answers["ListStandingsHistory"].points.clear()
    assert b'id="places"' not in await BotPageContent(calls).make_page(a_request(), [bot, version])


async def test_answers_are_counted_by_the_time_charged_for_them() -> None:
    drawn = str(draw_answer_times([0, 1, 1, 4, 1500, 90_000]))
    assert re.findall(r"<title>([^:<]+: \d+)</title>", drawn) == [
        "0: 1",
        "1: 2",
        "2: 1",
        "1 s: 1",
        "50 s: 1",
    ]
    assert draw_answer_times([]) is None
    assert re.findall(r'class="tick"[^>]*>([^<]+ s)</text>', str(draw_answer_times([30_000])))[-1] == "50 s"


async def test_full_lists_of_matches_are_small() -> None:
    calls = AnsweredCalls(ListMatches=list_matches)
    assert await size_of(MatchListPage(calls).make_page) < LARGEST_PAGE


class NoPositions:
    """Stands for the steps of live matches."""

    async def find_positions(self, _matches: Any) -> dict[str, Any]:
        """Finds none."""
        return {}


async def test_the_featured_match_is_live_or_else_the_closest_whose_positions_are_shown() -> None:
    close, far = finished_matches(2).matches
    close.result.points[:], far.result.points[:] = (40, 20, 39, 3), (40, 20, 30, 3)
    secret = match_pb2.Match(name="matches/of-a-set", game="games/ugo")
    secret.deal_set.name = "sets/one"
    live = match_pb2.Match(name="matches/live", game="games/ugo")
    assert find_featured([secret], [far, close], ()) is close
    assert find_featured([secret, live], [far, close], [live.name]) is live
    assert find_featured([], [], ()) is None
    assert order_of((2, 3, 1), True) == [2, 0, 1] == order_of((5, 4, 9), False)


async def test_a_small_board_of_a_game_from_outside_tells_what_its_drawing_tells() -> None:
    drawing: list[dict[str, Any]] = [{"text": "own", "owner": 0}, {"text": "Hand 1 of 4"}]
    for table, told in (
        ({"drawing": drawing, "running": [-3, 0]}, ("Hand 1 of 4", (-3, 0))),
        ({"drawing": drawing[:1]}, ("", ())),
        ({"round": 2, "rounds": 3, "points": [[4, 5]], "running": [1, 0]}, ("Round 2 of 3", (5, 5))),
    ):
        frame = cast("Any", SimpleNamespace(table=table))
        assert tuple(describe_score(frame, 2).values()) == told


async def test_the_home_page_of_a_busy_server_is_small() -> None:
    calls = ladder_calls()
    leagues = [
        league_pb2.League(name=f"leagues/cup-{match_id()[8:]}", game="games/ugo", bots=BOTS, results=900)
        for _ in range(20)
    ]
    calls.answers["ListLeagues"] = league_service_pb2.ListLeaguesResponse(leagues=leagues)
    assert (
        await size_of(
            HomePage(calls, cast("Any", NoPositions()), Downloads(HttpSettings()), has_guests=True).make_page
        )
        < LARGEST_PAGE
    )


# --- The big screen ----------------------------------------------------------------------------------------


def asking(query: str) -> Request:
    request = a_request()
    request.scope["query_string"] = query.encode()
    return request


async def test_the_big_screen_has_the_standings_and_the_match_that_comes_next() -> None:
    calls = ladder_calls()
    calls.answers |= league_calls(4, 5).answers
    del calls.answers["ListStandings"].standings[SHOWN_STANDINGS:]
    ended = finished_matches(3).matches
    calls.answers["ListMatches"] = lambda fields: match_service_pb2.ListMatchesResponse(
        matches=[] if fields["state"] == match_pb2.Match.STATE_RUNNING else ended
    )
    show = ShowPage(calls, cast("Any", NoPositions()))
    first = await show.make_page(asking("ladder=main"), [])
    assert packed_with_files(first) < LARGEST_PAGE
    assert first.count(b'<span class="who">') == SHOWN_STANDINGS
    follows = f"/show?ladder=main&amp;after=matches%2F{ended[0].name[8:]}"
    assert f'data-next="{follows}" data-frames="/{ended[0].name}/frames"' in first.decode()
    assert f'<noscript><meta http-equiv="refresh" content="20; url={follows}"></noscript>' in first.decode()
    page = await show.make_page(asking(f"league=spring&after={ended[0].name}"), [])
    assert f'data-frames="/{ended[1].name}/frames"' in page.decode()
    ended.clear()
    assert b'<body class="show between">' in await show.make_page(asking("league=spring"), [])
    with pytest.raises(Refusal, match="name a ladder or a league"):
        await show.make_page(asking("ladder=a&league=b"), [])


async def test_the_next_match_of_the_big_screen_is_live_or_else_the_next_of_the_list() -> None:
    ended = finished_matches(3).matches
    one, other = (match_pb2.Match(name=f"matches/{name}", game="games/ugo") for name in ("one", "other"))
    cases = [([], "", ended[0]), ([], ended[0].name, ended[1]), ([], ended[2].name, ended[0])]
    cases += [([one, other], "matches/one", other), ([one], "matches/one", one)]
    assert [choose_next(live, ended, after) for live, after, _ in cases] == [match for *_, match in cases]
    assert choose_next([], [], "") is None


async def test_pages_for_frames_show_a_match_as_far_as_spectators_see_it() -> None:
    calls = ladder_calls()
    match = finished_matches(1).matches[0]
    calls.answers |= league_calls(4, 5).answers
    calls.answers["GetMatch"] = match_service_pb2.GetMatchResponse(match=match)
    calls.answers["ListMatches"] = list_matches
    pages = EmbedPages(calls).by_path
    for values, path in (
        ("m", "matches/{match}"),
        ("main", "ladders/{ladder}"),
        ("spring", "leagues/{league}"),
    ):
        html = await pages[f"/embed/{path}"](a_request(), [values])
        assert packed_with_files(html) < LARGEST_PAGE
        assert not re.search(b"<(form|input|button)", html)
    shown = calls.answers["GetMatch"].match
    for state, is_in_set, says in (
        (4, False, b"data-frames="),
        (3, False, b"data-live="),
        (3, True, b'class="card"'),
    ):
        shown.state = state
        if state == 3:
            shown.ClearField("result")
            shown.ClearField("end_time")
        shown.deal_set.name = "sets/one" if is_in_set else ""
        html = await pages["/embed/matches/{match}"](a_request(), ["m"])
        assert says in html
        assert (b'id="viewer"' in html) is not is_in_set
