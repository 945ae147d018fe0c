"""What the services say to those who behave."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from google.protobuf import descriptor_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from harness import House, Wire, dealt, endings, plays_on, refusal_of

from seatwise.v1 import (
    access_service_pb2,
    bot_service_pb2,
    game_service_pb2,
    game_service_pb2_grpc,
    match_pb2,
    match_service_pb2,
    play_service_pb2,
)
from seatwise_referee.shuffle import commitment_to
from seatwise_server.rpc.grpc_server import SERVICES

pytestmark = pytest.mark.asyncio(loop_scope="session")

State = match_pb2.Match.State


# MatchService


async def test_a_list_is_narrowed_by_each_filter_and_by_all_of_them(house):
    made = []
    for _ in range(2):
        bots = [(await house.bot()).bot for _ in range(2)]
        request = match_service_pb2.CreateMatchRequest(game="games/ugo", bots=bots)
        made.append((await house.admin.matches.CreateMatch(request, metadata=house.admin.metadata)).match)
    [bot, _] = made[0].bots

    async def listed(**wanted):
        answer = await house.admin.matches.ListMatches(match_service_pb2.ListMatchesRequest(**wanted))
        return [match.name for match in answer.matches]

    for wanted in ({"bot": bot}, {"bot": bot, "game": "games/ugo", "state": State.STATE_WAITING}):
        assert await listed(**wanted) == [made[0].name]
    between = {"created_from": made[0].create_time, "created_before": made[1].create_time}
    assert await listed(**between) == [made[0].name]
    assert await listed(bot=bot, state=State.STATE_RUNNING) == []
    assert await listed(bot=bot, competition="ladders/none") == []


async def test_a_page_token_of_other_filters_is_refused_and_they_are_named_as_the_cause(house):
    bots = [(await house.bot()).bot for _ in range(2)]
    for _ in range(2):
        await house.admin.create(bots)
    first = await house.admin.matches.ListMatches(match_service_pb2.ListMatchesRequest(page_size=1))
    request = match_service_pb2.ListMatchesRequest(bot=bots[0], page_token=first.next_page_token)
    refused = await refusal_of(house.admin.matches.ListMatches(request))
    assert refused.reason == "INVALID_ARGUMENT"
    assert "for these filters" in refused.message


@pytest.mark.parametrize(
    "wanted",
    [
        {"bot": "greedy"},
        {"game": "games/chess"},
        {"competition": "casual"},
        {"competition": "ladders/\n"},
        {"state": 99},
        {"state": -1},
        {"created_from": {"seconds": 2**62}},
        {"created_before": {"nanos": -7}},
        {"page_token": "MSBtYXRjaGVzLzE="},
    ],
)
async def test_a_filter_that_makes_no_sense_is_refused(house, wanted):
    request = match_service_pb2.ListMatchesRequest(**{"bot": "bots/a/versions/1", **wanted})
    refused = await refusal_of(house.admin.matches.ListMatches(request))
    assert refused.reason in ("INVALID_ARGUMENT", "NOT_FOUND")


# BotService


async def register(house: House, name: str, request_id: str, **more: str) -> object:
    request = bot_service_pb2.RegisterBotRequest(bot=name, request_id=request_id, owner="me", **more)
    return await house.admin.bots.RegisterBot(request, metadata=house.admin.metadata)


async def test_a_registered_bot_is_shown_its_token_once(house):
    first = await register(house, "once", "same")
    again = await register(house, "once", "same")
    assert (first.bot.name, first.bot.owner) == ("bots/once/versions/1", "me")
    assert len(first.token) > 40
    assert (again.bot, again.token) == (first.bot, "")
    await house.wire(first.token).attend()


async def test_one_person_is_one_owner_however_the_name_is_written(house):
    """A Mac decomposes accents, and names that were stored before are found in any form."""
    written = (
        "Zo\u00eb",
        "Zoe\u0308",
        " Zo\u00eb ",
        "Zoe\u0308\u3164",
        "Zo\u00eb\ufe0f",
        "\u180bZo\u00eb\U000e0100",
    )
    for number, owner in enumerate(written):
        request = bot_service_pb2.RegisterBotRequest(bot=f"zoe{number}", owner=owner)
        answer = await house.admin.bots.RegisterBot(request, metadata=house.admin.metadata)
        assert answer.bot.owner == "Zo\u00eb"
    for number, owner in enumerate((" Zo\u00eb", "Zoe\u0308"), start=len(written)):
        await house.server.store.bots.register_bot(f"zoe{number}", "1", owner, "")
    for invisible in ("\u3164", " ", "\u2800\u115f"):
        request = bot_service_pb2.RegisterBotRequest(bot="nobody", owner=invisible)
        refused = await refusal_of(house.admin.bots.RegisterBot(request, metadata=house.admin.metadata))
        assert refused.reason == "INVALID_ARGUMENT"
    erase = access_service_pb2.EraseOwnerRequest(owner="Zoe\u0308").SerializeToString()
    answer = await house.admin.raw("/seatwise.v1.AccessService/EraseOwner", erase)
    erased = access_service_pb2.EraseOwnerResponse.FromString(answer)
    assert [*erased.bots] == [f"bots/zoe{number}/versions/1" for number in range(8)]


async def test_a_bot_that_is_there_is_not_registered_by_another_request(house):
    await register(house, "twice", "one")
    refused = await refusal_of(register(house, "twice", "two"))
    assert (refused.code, refused.reason) == ("ALREADY_EXISTS", "ALREADY_EXISTS")
    other = await register(house, "twice", "two", version="2.0-rc1")
    assert other.bot.name == "bots/twice/versions/2.0-rc1"
    await house.wire(other.token).attend()


async def test_a_rotated_token_opens_the_door_that_the_old_one_does_not(house):
    bot = await house.bot()
    request = bot_service_pb2.RotateTokenRequest(name=bot.bot)
    answer = await house.admin.bots.RotateToken(request, metadata=house.admin.metadata)
    await house.wire(answer.token).attend()
    assert (await bot.attending().end()).reason == "TOKEN_UNKNOWN"


async def test_a_revoked_bot_is_shown_as_revoked_until_its_token_is_rotated(house):
    bot = await house.bot()
    await house.admin.revoke(bot.bot)
    await house.admin.revoke(bot.bot)
    get = bot_service_pb2.GetBotRequest(name=bot.bot)
    assert (await house.admin.bots.GetBot(get)).bot.revoked
    request = bot_service_pb2.RotateTokenRequest(name=bot.bot)
    answer = await house.admin.bots.RotateToken(request, metadata=house.admin.metadata)
    assert not (await house.admin.bots.GetBot(get)).bot.revoked
    await house.wire(answer.token).attend()


async def test_bots_are_listed_by_name_page_after_page_and_each_once(house):
    made = {(await house.bot()).bot for _ in range(7)}
    found: list[str] = []
    token = ""
    while True:
        request = bot_service_pb2.ListBotsRequest(page_size=3, page_token=token)
        answer = await house.admin.bots.ListBots(request)
        assert len(answer.bots) <= 3
        found += [bot.name for bot in answer.bots]
        token = answer.next_page_token
        if not token:
            break
    assert found == sorted(found)
    assert made <= set(found)
    assert len(set(found)) == len(found)


# MatchService


async def test_a_repeat_of_a_creation_gives_the_first_match(house):
    bots = [(await house.bot()).bot for _ in range(2)]
    first = await house.admin.create(bots, request_id="repeat", rounds=3)
    again = await house.admin.create(bots[::-1], request_id="repeat", rounds=5)
    assert again == first
    assert (await house.admin.create(bots, request_id="another")).name != first.name


async def test_a_match_tells_all_that_is_public_from_its_creation_on(house):
    bots = [(await house.bot()).bot for _ in range(3)]
    match = await house.admin.create(bots, rounds=2, bank_ms=77)
    assert match == await house.admin.match(match.name)
    assert (match.game, match.state, list(match.bots)) == ("games/ugo", State.STATE_WAITING, bots)
    assert (match.options["rounds"], match.time_control.bank_ms) == ("2", 77)
    assert match.time_control.setup_ms == 10_000
    assert len(match.commitment) == 32
    assert (match.durability, match.rules_version) == ("fsync", "1")
    assert match.HasField("create_time")
    assert not match.HasField("end_time")


async def test_a_match_goes_through_its_states_and_reveals_its_seed_at_the_end(house):
    async with house.table(2) as table:
        one, other = table.chairs
        await one.sit()
        await one.expect("update")
        assert (await house.admin.match(table.name)).state == State.STATE_SEATING
        await other.sit()
        await table.asked()
        assert (await house.admin.match(table.name)).state == State.STATE_RUNNING
        [end, _] = await table.play_out()
        match = await house.admin.over(table.name)
        assert match.state == State.STATE_FINISHED
        assert match.result == end.result
        assert commitment_to(end.seed) == table.match.commitment
        assert match.end_time.ToMicroseconds() >= match.create_time.ToMicroseconds()
        record = await house.admin.record(table.name)
        assert end.seed.hex().encode() in record
        assert match.result.chain.hex().encode() in record


@pytest.mark.parametrize("seats", [2, 3, 4])
async def test_a_table_of_every_size_is_played_to_its_end(house, seats):
    async with house.table(seats, rounds=2) as table:
        await table.sit()
        await plays_on(house, table)


async def test_matches_are_listed_newest_first_page_after_page_and_each_once(house):
    bots = [(await house.bot()).bot for _ in range(2)]
    made = [(await house.admin.create(bots)).name for _ in range(7)]
    found: list[str] = []
    token = ""
    while not set(made) <= set(found):
        request = match_service_pb2.ListMatchesRequest(page_size=2, page_token=token)
        answer = await house.admin.matches.ListMatches(request)
        found += [match.name for match in answer.matches]
        token = answer.next_page_token
    assert [name for name in found if name in made] == made[::-1]
    assert len(set(found)) == len(found)


async def test_a_waiting_match_is_aborted(house):
    bots = [(await house.bot()).bot for _ in range(2)]
    match = await house.admin.create(bots)
    await house.admin.abort(match.name)
    match = await house.admin.over(match.name)
    assert (match.state, match.void_reason) == (State.STATE_VOIDED, "ABORTED")
    refused = await refusal_of(house.admin.record(match.name))
    assert refused.reason == "MATCH_VOIDED"


async def test_a_match_where_bots_sit_down_is_aborted(house):
    async with house.table(2) as table:
        one, _ = table.chairs
        await one.sit()
        await one.expect("update")
        assert (await house.admin.abort(table.name)).state == State.STATE_SEATING
        assert (await one.expect("match_ended", within_s=2)).void_reason == "ABORTED"


async def test_a_running_match_is_aborted_and_its_bots_are_free_again(house):
    bots = [await house.bot() for _ in range(2)]
    attending = [await bot.attend(max_matches=1) for bot in bots]
    match = await house.admin.create([bot.bot for bot in bots])
    other = await house.admin.create([bot.bot for bot in bots])
    for each in attending:
        await each.offer(match.name)
    await house.admin.abort(match.name)
    await house.admin.abort(match.name)
    assert (await house.admin.over(match.name)).void_reason == "ABORTED"
    for each in attending:
        await each.until(lambda each=each: [seat for seat in each.closed if seat.match == match.name])
        await each.offer(other.name)


async def test_a_match_that_is_over_stays_as_it_is_when_it_is_aborted(house):
    async with dealt(house) as (table, _, _):
        await table.play_out()
        match = await house.admin.over(table.name)
        assert await house.admin.abort(table.name) == match
        assert await house.admin.match(table.name) == match
        await house.admin.record(table.name)


# Watching


async def watched(
    house: House, name: str, wire: Wire | None = None
) -> list[match_service_pb2.WatchMatchResponse]:
    """All that a spectator sees of a match, from now to its end."""
    async with asyncio.timeout(20):
        return [seen async for seen in (wire or house.admin).watch(name)]


async def test_a_spectator_sees_a_match_from_its_start_to_its_end(house):
    async with house.table(3, rounds=2) as table:
        watching = asyncio.create_task(watched(house, table.name))
        await table.sit()
        await plays_on(house, table)
        seen = await watching
        states = [each.match.state for each in seen if each.HasField("match")]
        assert states[-1] == State.STATE_FINISHED
        assert states == sorted(states)
        assert seen[-1].match.result == (await house.admin.match(table.name)).result
        views = [each.ugo for each in seen if each.HasField("ugo")]
        assert views  # quick changes share one update, so a quick match has few
        assert len(views[-1].points) == 2
        assert not any(view.hand or view.legal_cards or view.HasField("seat") for view in views)
        times = [each.at_ms for each in seen if each.HasField("ugo")]
        assert times == sorted(times)


async def test_a_spectator_of_a_match_that_is_over_sees_its_result_and_how_it_ended(house):
    async with dealt(house) as (table, _, _):
        await plays_on(house, table)
        first, last = await watched(house, table.name)
        assert first.match == await house.admin.match(table.name)
        assert sum(last.ugo.hand_sizes) == 0
        assert list(last.ugo.points[-1].points) == list(first.match.result.rounds[-1].points)


async def test_a_spectator_who_comes_in_the_middle_sees_what_lies_open_first(house):
    async with dealt(house) as (table, asked, other):
        await asked.move()
        await other.asked()
        call = house.wire().watch(table.name)
        assert (await call.read()).match.state == State.STATE_RUNNING
        view = (await call.read()).ugo
        assert len(view.trick) == 1
        call.cancel()
        await plays_on(house, table)


async def test_a_spectator_sees_a_match_that_is_voided_end(house):
    bots = [(await house.bot()).bot for _ in range(2)]
    match = await house.admin.create(bots)
    watching = asyncio.create_task(watched(house, match.name))
    await house.admin.abort(match.name)
    assert (await watching)[-1].match.void_reason == "ABORTED"


async def test_five_spectators_slow_nobody_down(house):
    async with house.table(2, rounds=2, free_ms={"card": 1000, "arrange": 1000}, bank_ms=1) as table:
        watching = [asyncio.create_task(watched(house, table.name, house.wire())) for _ in range(5)]
        await table.sit()
        await plays_on(house, table)
        for seen in await asyncio.gather(*watching):
            assert seen[-1].match.state == State.STATE_FINISHED


# GameService, health, reflection


async def test_the_games_of_the_house_are_listed_and_shown_to_everybody(house):
    stub = game_service_pb2_grpc.GameServiceStub(house.wire().channel)
    games = (await stub.ListGames(game_service_pb2.ListGamesRequest())).games
    ugo = next(game for game in games if game.name == "games/ugo")
    assert (ugo.min_seats, ugo.max_seats, dict(ugo.options)) == (2, 4, {"rounds": "4"})
    assert ugo.paces.keys() == {"card", "arrange"}
    assert (await stub.GetGame(game_service_pb2.GetGameRequest(name="games/ugo"))).game == ugo
    first = await stub.ListGames(game_service_pb2.ListGamesRequest(page_size=1))
    rest = await stub.ListGames(game_service_pb2.ListGamesRequest(page_token=first.next_page_token))
    if first.next_page_token:
        assert [*first.games, *rest.games] == list(games)


@pytest.mark.parametrize("service", ["", *SERVICES])
async def test_every_service_says_that_it_serves(house, service):
    stub = health_pb2_grpc.HealthStub(house.admin.channel)
    answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_health_knows_no_other_service(house):
    stub = health_pb2_grpc.HealthStub(house.admin.channel)
    refused = await refusal_of(stub.Check(health_pb2.HealthCheckRequest(service="nonsense")))
    assert refused.code == "NOT_FOUND"


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_reflection_shows_every_service_with_its_methods(house, version):
    ask = house.admin.channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        reflection_pb2.ServerReflectionRequest.SerializeToString,
        reflection_pb2.ServerReflectionResponse.FromString,
    )
    request = reflection_pb2.ServerReflectionRequest
    [listed] = [answer async for answer in ask(iter([request(list_services="")]))]
    names = [service.name for service in listed.list_services_response.service]
    assert {*names} >= {*SERVICES, f"grpc.reflection.{version}.ServerReflection"}
    symbols = [
        *names,
        "seatwise.v1.PlayService.Play",
        "grpc.reflection.v1.ServerReflection.ServerReflectionInfo",
    ]
    shown = [answer async for answer in ask(iter([request(file_containing_symbol=each) for each in symbols]))]
    for symbol, answer in zip(symbols, shown, strict=True):
        protos = answer.file_descriptor_response.file_descriptor_proto
        files = [descriptor_pb2.FileDescriptorProto.FromString(each) for each in protos]
        declared = {f"{file.package}.{service.name}" for file in files for service in file.service}
        assert any(symbol.startswith(each) for each in declared), symbol
    [absent] = [answer async for answer in ask(iter([request(file_containing_symbol="seatwise.v1.No.Way")]))]
    assert absent.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


async def test_a_wrong_argument_is_a_bad_request_with_its_field(house):
    create = match_service_pb2.CreateMatchRequest(game="games/ugo", bots=["bots/a/versions/1"])
    for call, field in (
        (house.admin.matches.ListMatches(match_service_pb2.ListMatchesRequest(page_size=-1)), "page_size"),
        (house.admin.matches.CreateMatch(create, metadata=house.admin.metadata), "bots"),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call
        [written] = [
            value for key, value in refused.value.trailing_metadata() if key == "grpc-status-details-bin"
        ]
        details = status_pb2.Status.FromString(written).details
        bad = error_details_pb2.BadRequest()
        assert [each.Unpack(bad) for each in details] == [False, True]
        assert [(each.field, each.description) for each in bad.field_violations] == [
            (field, refused.value.details())
        ]


async def test_reading_needs_no_token(house):
    async with dealt(house) as (table, _, _):
        await plays_on(house, table)
        stranger = house.wire()
        await stranger.bots.ListBots(bot_service_pb2.ListBotsRequest())
        await stranger.matches.ListMatches(match_service_pb2.ListMatchesRequest())
        get = match_service_pb2.GetMatchRequest(name=table.name)
        assert endings((await stranger.matches.GetMatch(get)).match) == ["COMPLETED"] * 2
        assert (await stranger.matches.GetRecord(match_service_pb2.GetRecordRequest(name=table.name))).record


async def test_a_view_after_every_change_is_sent_to_who_asked_for_it(house):
    async with house.table(3) as table:
        eager, second, third = table.chairs
        await eager.sit(updates=play_service_pb2.Sit.UPDATES_EVERY_CHANGE)
        await second.sit()
        await third.sit()
        await eager.asked()
        await eager.move()
        await second.asked()
        seen = await eager.expect("update", within_s=2)
        assert (seen.prompt, seen.to_act, len(seen.ugo.trick)) == (second.last.prompt, False, 1)
        assert [each for each in third.stream.received if each.HasField("update")][-1].update.prompt < 2
        await plays_on(house, table)
