"""While a deal set runs, nobody can tell from anything public how its finished matches ended.

There are two worlds: the same matches, sets and leagues, but other results. Every public method, the log and the
metrics must be the same in both until the set is over. Then they must differ, or the test would prove nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from doubles.operations import operations_on
from matches.one_match import Desk
from matches.set_scenes import join
from prometheus_client import CollectorRegistry, generate_latest
from redis.asyncio import Redis
from seasons.one_season import league_of
from structlog.testing import capture_logs

from seatwise.v1 import (
    bot_service_pb2,
    game_service_pb2,
    ladder_service_pb2,
    league_pb2,
    league_service_pb2,
    match_pb2,
    match_service_pb2,
    play_service_pb2,
)
from seatwise_referee.ending import Ending, MatchState
from seatwise_referee.games.registry import default_time_control
from seatwise_referee.journal import canonical_json, encode_entry
from seatwise_referee.setup import JOURNAL_FORMAT, DealSet, Setup
from seatwise_server.ladder.ladder_settings import Ladder
from seatwise_server.league.settings import Entrant
from seatwise_server.lobby.seating import CREATED
from seatwise_server.metrics import MetricsPage
from seatwise_server.play.delivery import Delivery, encode_ending, end_of, logged_result_of
from seatwise_server.play.open_tables import log_end
from seatwise_server.refusal import Refusal
from seatwise_server.services.access import ACCESS, SCOPES_OF_PEOPLE, Access
from seatwise_server.services.authentication import ANONYMOUS, Caller
from seatwise_server.services.deal_sets import WithheldResults
from seatwise_server.store import Store, keys
from seatwise_server.store.matches import facets_of

KEEP_S = 600
LEAGUE, LADDER, SET = "leagues/cup", "ladders/main", "sets/cup-1"
MATCH = "matches/first"
BOTS = ("bots/b0/versions/1", "bots/b1/versions/1")
STRANGER = Caller("bots/c/versions/1", "token")
PLAYER = Caller(BOTS[0], "token")
OPERATOR = Caller("", "token", SCOPES_OF_PEOPLE)

REQUESTS: dict[str, Any] = {
    "MatchService/GetMatch": match_service_pb2.GetMatchRequest(name=MATCH),
    "MatchService/ListMatches": match_service_pb2.ListMatchesRequest(),
    "MatchService/GetRecord": match_service_pb2.GetRecordRequest(name=MATCH),
    "MatchService/GetDealSet": match_service_pb2.GetDealSetRequest(name=SET),
    "MatchService/WatchMatch": match_service_pb2.WatchMatchRequest(name=MATCH),
    "BotService/GetBot": bot_service_pb2.GetBotRequest(name=BOTS[0]),
    "BotService/ListBots": bot_service_pb2.ListBotsRequest(),
    "BotService/ListOpponents": bot_service_pb2.ListOpponentsRequest(name=BOTS[0]),
    "GameService/ListGames": game_service_pb2.ListGamesRequest(),
    "GameService/GetGame": game_service_pb2.GetGameRequest(name="games/ugo"),
    "LadderService/GetLadder": ladder_service_pb2.GetLadderRequest(name=LADDER),
    "LadderService/ListLadders": ladder_service_pb2.ListLaddersRequest(),
    "LadderService/ListStandings": ladder_service_pb2.ListStandingsRequest(ladder=LADDER),
    "LadderService/ListStandingsHistory": ladder_service_pb2.ListStandingsHistoryRequest(ladder=LADDER),
    "LadderService/ListLadderResults": ladder_service_pb2.ListLadderResultsRequest(ladder=LADDER),
    "LeagueService/GetLeague": league_service_pb2.GetLeagueRequest(name=LEAGUE),
    "LeagueService/ListLeagues": league_service_pb2.ListLeaguesRequest(),
    "LeagueService/ListLeagueStandings": league_service_pb2.ListLeagueStandingsRequest(league=LEAGUE),
    "LeagueService/ListLeagueResults": league_service_pb2.ListLeagueResultsRequest(league=LEAGUE),
}
"""One for each method that anybody may call."""
TELLING = {
    "MatchService/GetMatch",
    "MatchService/ListMatches",
    "BotService/ListOpponents",
    "LeagueService/ListLeagueStandings",
    "LeagueService/ListLeagueResults",
}
"""The methods that send results once nobody plays the deals any more, and earlier to whom they belong."""
WATCH = "MatchService/WatchMatch"
"""It is closed to everybody while the set runs."""


@pytest.fixture(autouse=True)
async def season(store: Store) -> None:
    """A league of two bots, of which one match of two with the same deals is over."""
    entrants = tuple(Entrant(f"b{place}", bot) for place, bot in enumerate(BOTS))
    settings = canonical_json(league_of(entrants=entrants).to_published_json())
    await store.leagues.create(LEAGUE, settings)
    ladder = Ladder(LADDER, "ugo", 2, league_of().options, default_time_control("ugo"))
    await store.ladders.create(LADDER, ladder.to_bytes())
    for bot in ("b0", "b1"):
        await store.bots.register_bot(bot, "1", "owner", "")
    await play(store, 1, MATCH)


async def play(store: Store, number: int, name: str) -> None:
    """One match of the set, delivered as a referee does it."""
    desk = Desk(2, 1, name=name)
    join(desk, DealSet(SET, number, 2, bytes(32)))
    desk.setup = replace(desk.setup, competition=LEAGUE, bots=BOTS)
    desk.match = type(desk.match)(desk.setup)
    await store.sets.join_set(SET, number, name, 2, "kind", bytes(32))
    written = {"format": JOURNAL_FORMAT, "setup": canonical_json(desk.setup.to_json()), "state": "SEATING"}
    facets = facets_of(desk.setup)
    await store.matches.create_match(name, {**written, "queue": CREATED}, facets=facets)
    desk.sit_all()
    desk.play_out(ms_each=7)
    end = end_of(desk.setup, [encode_entry(entry) for entry in desk.journal])
    epoch, _ = await store.journal.claim_match(name, "a", 0)
    assert await Delivery(store, KEEP_S).deliver_match(desk.setup, epoch, "a", end)


def other_end(end: play_service_pb2.MatchEnded) -> play_service_pb2.MatchEnded:
    """Returns the end of the same match in the other world: another winner, by a forfeit."""
    result = match_pb2.Result()
    result.CopyFrom(end.result)
    result.points[:] = [points + 7 for points in reversed(end.result.points)]
    result.ranks[:] = [2, 1]
    result.outcome_ranks[:] = [2, 1]
    result.endings[:] = [encode_ending(Ending.TIMED_OUT), encode_ending(Ending.COMPLETED)]
    result.rounds.add(points=[1, 2])
    result.chain = bytes(32)
    return play_service_pb2.MatchEnded(result=result)


async def enter_other_world(store: Store, redis: Redis) -> None:
    """From now on the first match has ended otherwise, at the same time."""
    meta = await store.matches.get_meta(MATCH)
    assert meta
    end = other_end(play_service_pb2.MatchEnded.FromString(meta.fields["result"]))
    await redis.hset(keys.match_meta(MATCH), "result", end.SerializeToString())
    setup = Setup.from_json(json.loads(meta.fields["setup"]))
    results = await store.results.read_results(LEAGUE)
    before = await redis.xrange(keys.results_log(LEAGUE))
    await redis.delete(keys.results_log(LEAGUE), keys.results_places(LEAGUE))
    for result in results:
        changed = logged_result_of(setup, end) if result.match == MATCH else result
        await store.results.append_result(LEAGUE, changed)
    after = await redis.xrange(keys.results_log(LEAGUE))
    await redis.delete(keys.results_log(LEAGUE))
    for (place, old), (_, new) in zip(before, after, strict=True):
        await redis.xadd(keys.results_log(LEAGUE), {**new, b"t": old[b"t"]}, id=place)


async def answers(store: Store, caller: Caller) -> dict[str, bytes]:
    """What each public method answers this caller, or how it refuses."""
    operations = {
        method.removeprefix("/seatwise.v1."): it
        for method, it in operations_on(store, keep_records_s=KEEP_S).items()
    }
    return {
        method: await answer_of(operations[method].handle, operations[method].is_streaming, caller, request)
        for method, request in REQUESTS.items()
    }


async def answer_of(handle: Callable[..., Any], is_streaming: bool, caller: Caller, request: Any) -> bytes:
    try:
        if not is_streaming:
            return bytes((await handle(caller, request)).SerializeToString(deterministic=True))
        return b"".join(
            [clocked(it).SerializeToString(deterministic=True) async for it in handle(caller, request)]
        )
    except Refusal as refused:
        return f"{refused.reason}: {refused}".encode()


def clocked(response: Any) -> Any:
    """Without the time at which it was sent."""
    response.ClearField("send_time")
    return response


async def two_worlds(store: Store, redis: Redis, caller: Caller) -> tuple[dict[str, bytes], dict[str, bytes]]:
    one = await answers(store, caller)
    await enter_other_world(store, redis)
    return one, await answers(store, caller)


def test_every_public_method_is_asked() -> None:
    """A new public method belongs into REQUESTS; if it sends results, it asks `WithheldResults`."""
    public = {
        method.removeprefix("/seatwise.v1.") for method, access in ACCESS.items() if access is Access.PUBLIC
    }
    assert set(REQUESTS) == public


@pytest.mark.parametrize("caller", [ANONYMOUS, STRANGER], ids=["anonymous", "another bot"])
async def test_no_public_method_tells_two_worlds_apart_while_the_set_runs(
    store: Store, redis_client: Redis, caller: Caller
) -> None:
    one, other = await two_worlds(store, redis_client, caller)
    assert one == other


@pytest.mark.parametrize("caller", [ANONYMOUS, STRANGER], ids=["anonymous", "another bot"])
async def test_once_the_set_is_over_they_are_told_apart_by_each_method_that_sends_results(
    store: Store, redis_client: Redis, caller: Caller
) -> None:
    await play(store, 2, "matches/second")
    one, other = await two_worlds(store, redis_client, caller)
    assert {method for method in one if one[method] != other[method]} == TELLING | {WATCH}


async def test_an_operator_sees_everything_while_the_set_runs(store: Store, redis_client: Redis) -> None:
    one, other = await two_worlds(store, redis_client, OPERATOR)
    assert {method for method in one if one[method] != other[method]} == TELLING


async def test_a_bot_sees_the_results_of_its_own_matches_but_no_standings(
    store: Store, redis_client: Redis
) -> None:
    one, other = await two_worlds(store, redis_client, PLAYER)
    told = {method for method in one if one[method] != other[method]}
    assert told == TELLING - {"LeagueService/ListLeagueStandings"}


async def test_lists_and_standings_say_how_many_results_are_withheld(store: Store) -> None:
    found = await answers(store, ANONYMOUS)
    match = match_service_pb2.GetMatchResponse.FromString(found["MatchService/GetMatch"]).match
    assert (match.state, match.result_withheld) == (match_pb2.Match.STATE_FINISHED, True)
    assert not match.HasField("result")
    listed = match_service_pb2.ListMatchesResponse.FromString(found["MatchService/ListMatches"])
    assert listed.withheld == 1
    opponents = bot_service_pb2.ListOpponentsResponse.FromString(found["BotService/ListOpponents"])
    assert (opponents.matches, opponents.withheld, list(opponents.opponents)) == (0, 1, [])
    log = league_service_pb2.ListLeagueResultsResponse.FromString(found["LeagueService/ListLeagueResults"])
    [result] = log.results
    assert (log.withheld, result.withheld, result.match) == (1, True, MATCH)
    assert not any((result.points, result.ranks, result.endings, result.chain))
    table = league_service_pb2.ListLeagueStandingsResponse.FromString(
        found["LeagueService/ListLeagueStandings"]
    )
    assert (table.results, table.withheld) == (0, 1)


async def test_an_operator_who_asks_first_shows_the_standings_to_nobody_else(store: Store) -> None:
    asked = operations_on(store)["/seatwise.v1.LeagueService/ListLeagueStandings"]
    request = REQUESTS["LeagueService/ListLeagueStandings"]
    found = [await asked.handle(caller, request) for caller in (OPERATOR, ANONYMOUS, OPERATOR)]
    assert [(each.results, each.withheld) for each in found] == [(1, 0), (0, 1), (1, 0)]


async def test_standings_count_the_results_as_soon_as_the_set_is_closed(store: Store) -> None:
    asked = operations_on(store)["/seatwise.v1.LeagueService/ListLeagueStandings"]
    request = REQUESTS["LeagueService/ListLeagueStandings"]
    before = await asked.handle(ANONYMOUS, request)
    await store.sets.close_set(SET, KEEP_S)
    after = await asked.handle(ANONYMOUS, request)
    assert (before.results, before.withheld) == (0, 1)
    assert (after.results, after.withheld) == (1, 0)
    assert sum(line.matches for line in after.standings) == 2


async def test_a_set_that_is_forgotten_withholds_nothing(store: Store, redis_client: Redis) -> None:
    """It was over, and its time is up; the log of a league outlives it."""
    await redis_client.delete(keys.deal_set(SET))
    results = [league_pb2.LeagueResult(match=MATCH, bots=BOTS, points=[1, 2], deal_set=SET)]
    assert await WithheldResults(store).withhold_logged(ANONYMOUS, results) == 0
    assert list(results[0].points) == [1, 2]


def ended_table(setup: Setup, endings: list[Ending]) -> Any:
    seats = [SimpleNamespace(ending=ending) for ending in endings]
    position = SimpleNamespace(seats=seats, seq=9, at_ms=70)
    return SimpleNamespace(name=setup.match, epoch=1, match=SimpleNamespace(setup=setup, position=position))


def metrics() -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(MetricsPage(dict, SimpleNamespace(jobs=0, queues={}), lambda: 0.0))  # type: ignore[arg-type]
    return generate_latest(registry)


async def test_the_log_and_the_metrics_are_the_same_in_both_worlds(store: Store) -> None:
    meta = await store.matches.get_meta(MATCH)
    assert meta
    setup = Setup.from_json(json.loads(meta.fields["setup"]))
    end = play_service_pb2.MatchEnded.FromString(meta.fields["result"])
    assert meta.state == MatchState.FINISHED
    for in_set in (True, False):
        it = setup if in_set else replace(setup, deal_set=None)
        grown, seen = [], []
        for each, endings in (
            (end, [Ending.COMPLETED] * 2),
            (other_end(end), [Ending.TIMED_OUT, Ending.COMPLETED]),
        ):
            before = metrics()
            with capture_logs() as lines:
                log_end(ended_table(it, endings), each)
            seen.append(lines)
            grown.append(len(set(metrics().splitlines()) - set(before.splitlines())))
        assert (seen[0] == seen[1]) is in_set
        assert grown[0] == grown[1]
