"""Lists, entries, records and result logs are compared with each other, and what does not fit is named or mended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from matches.one_match import Desk
from matches.set_scenes import desk as desk_in_set
from redis.asyncio import Redis

from seatwise.v1.admin_service_pb2 import MatchFault
from seatwise_referee.ending import MatchState
from seatwise_referee.game import Seat
from seatwise_referee.journal import canonical_json, encode_entry
from seatwise_referee.match import Match
from seatwise_referee.setup import JOURNAL_FORMAT
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.lobby.seating import CREATED
from seatwise_server.play.delivery import Delivery, end_of, logged_result_of
from seatwise_server.refusal import Refusal
from seatwise_server.services import match_audit
from seatwise_server.services.match_audit import MatchAudit
from seatwise_server.store import MatchMeta, Store, keys
from seatwise_server.store.matches import facets_of

KEEP_S = 600
LADDER = "ladders/main"
LEAGUE = "leagues/cup"


@pytest.fixture(autouse=True)
async def competitions(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ladder and a league; and nobody is waited for."""
    monkeypatch.setattr(match_audit, "SETTLE_S", 0.0)
    await store.ladders.create(LADDER, b"{}")
    await store.leagues.create(LEAGUE, b"{}")


async def played(
    store: Store, name: str, competition: str = "", *, is_void: bool = False, desk: Desk | None = None
) -> MatchMeta:
    """A match that was played to its end, delivered, and counted."""
    it = desk or Desk()
    it.setup = replace(it.setup, match=name, competition=competition)
    it.match = Match(it.setup)
    fields = {"format": JOURNAL_FORMAT, "setup": canonical_json(it.setup.to_json()), "state": "SEATING"}
    await store.matches.create_match(
        name, {**fields, "queue": competition or CREATED}, facets=facets_of(it.setup)
    )
    it.sit_all()
    epoch, _ = await store.journal.claim_match(name, "a", 0)
    await store.matches.set_state(name, epoch, "a", MatchState.RUNNING)
    if is_void:
        for seat in (0, 1):
            it.do(it.match.resign(Seat(seat), it.now))
    else:
        it.play_out(ms_each=7)
    end = end_of(it.setup, [encode_entry(entry) for entry in it.journal])
    assert await Delivery(store, KEEP_S).deliver_match(it.setup, epoch, "a", end)
    meta = await store.matches.get_meta(name)
    assert meta
    return meta


async def audit(store: Store, *, mends: bool = False) -> list[tuple[str, str, bool]]:
    """What does not fit: match, kind, and whether it was mended."""
    found, token, it = list[MatchFault](), "", MatchAudit(store)
    while True:
        page = await it.check_page(token, mends=mends)
        found += page.faults
        token = page.next_page_token
        if not token:
            break
    assert all(len(each.text) > 10 for each in found)
    return [
        (each.match, MatchFault.Kind.Name(each.kind).removeprefix("KIND_"), each.mended) for each in found
    ]


async def lose(redis: Redis, *matches: str) -> None:
    """As an older version did it."""
    for match in matches:
        await redis.unlink(keys.match_meta(match))
        await redis.zrem(keys.MATCH_INDEX, match)


async def listed(store: Store) -> list[str]:
    return [meta.match for meta in (await store.matches.list_page(99)).matches]


async def test_where_everything_fits_nothing_is_found(store: Store) -> None:
    for number, competition in enumerate(("", LADDER, LEAGUE)):
        await played(store, f"matches/{number}", competition)
        await played(store, f"matches/void-{number}", competition, is_void=True)
    for number in range(match_audit.PAGE_ENTRIES + 1):  # they wait for their bots
        await store.matches.create_match(
            f"matches/w{number}", {"setup": "{}", "state": "WAITING", "queue": CREATED}
        )
    await wait_as_created(store)
    assert await audit(store) == []


async def wait_as_created(store: Store) -> None:
    """All created matches that wait are in the queue."""
    setup = canonical_json(Desk().setup.to_json())
    for meta in (await store.matches.list_page(999)).matches:
        if meta.state == MatchState.WAITING:
            await store.client.call("HSET", keys.match_meta(meta.match), "setup", setup)
            await store.queues.enter_queue(CREATED, meta.match)


@pytest.mark.parametrize("competition", ["", LADDER, LEAGUE])
async def test_a_match_that_an_older_version_has_lost_is_named_and_mended_from_its_record(
    store: Store, redis_client: Redis, competition: str
) -> None:
    await played(store, "matches/older", LADDER)
    before = await played(store, "matches/lost", competition)
    await played(store, "matches/newer")
    await lose(redis_client, "matches/lost")
    assert await audit(store) == [("matches/lost", "LOST", False)]
    assert await store.matches.get_meta("matches/lost") is None, "it was asked for nothing more"
    assert await audit(store, mends=True) == [("matches/lost", "LOST", True)]
    after = await store.matches.get_meta("matches/lost")
    assert after
    end_ms = int(after.fields["end_ms"]), int(before.fields["end_ms"])
    times = {"end_ms": b"", "start_ms": b""}
    assert after.fields | times == before.fields | times
    assert 0 < int(after.fields["end_ms"]) - int(after.fields["start_ms"]) < 1_000, (
        "by the clocks of its record"
    )
    assert abs(end_ms[0] - end_ms[1]) < 1_000
    assert abs(after.create_us - before.create_us) < 1_000_000
    assert await listed(store) == ["matches/newer", "matches/lost", "matches/older"]
    assert await audit(store) == []


async def test_a_match_of_a_set_is_mended_without_its_seed(store: Store, redis_client: Redis) -> None:
    it = desk_in_set(1, size=1)
    place = it.setup.deal_set
    assert place
    await store.sets.join_set(place.name, 1, "matches/lost", 1, "ugo", place.seed)
    before = await played(store, "matches/lost", desk=it)
    await lose(redis_client, "matches/lost")
    await audit(store, mends=True)
    after = await store.matches.get_meta("matches/lost")
    assert after
    assert after.fields["result"] == before.fields["result"]
    assert after.fields["setup"] == before.fields["setup"]


async def test_a_lost_match_whose_record_is_gone_or_damaged_is_named_only(
    store: Store, redis_client: Redis
) -> None:
    for name in ("matches/gone", "matches/damaged", "matches/void"):
        await played(store, name, LADDER, is_void=name == "matches/void")
        await lose(redis_client, name)
    await redis_client.unlink(keys.match_record("matches/gone"))
    other = await redis_client.get(keys.match_record("matches/damaged"))
    await redis_client.set(keys.match_record("matches/damaged"), other[:-4] + b"\0\0\0\0")
    lost = [(f"matches/{name}", "LOST", False) for name in ("damaged", "gone", "void")]
    assert sorted(await audit(store)) == lost
    assert sorted(await audit(store, mends=True)) == lost


async def test_a_result_whose_match_was_forgotten_in_time_is_no_fault(store: Store) -> None:
    result = LoggedResult(0, "matches/old", ("bots/a/versions/1",), (1,), (1,), ("COMPLETED",))  # type: ignore[arg-type]
    await store.results.append_result(LADDER, result)
    assert await audit(store) == []


async def test_a_result_in_the_log_finds_a_match_that_no_list_has(store: Store, redis_client: Redis) -> None:
    await played(store, "matches/lost", LEAGUE)
    await lose(redis_client, "matches/lost")
    await redis_client.zrem(keys.MATCH_EXPIRY, "matches/lost")
    assert await audit(store, mends=True) == [("matches/lost", "LOST", True)]
    assert await audit(store) == []


async def test_a_match_that_left_the_list_is_listed_again(store: Store, redis_client: Redis) -> None:
    older, newer = [await played(store, f"matches/{name}") for name in ("older", "newer")]
    await redis_client.zrem(keys.MATCH_INDEX, older.match)
    await redis_client.zadd(keys.MATCH_INDEX, {newer.match: 7})
    found = [(newer.match, "UNLISTED", True), (older.match, "UNLISTED", True)]
    assert sorted(await audit(store, mends=True)) == found
    assert await listed(store) == [newer.match, older.match]
    assert await audit(store) == []


async def test_an_entry_without_a_match_leaves_the_list(store: Store, redis_client: Redis) -> None:
    await redis_client.zadd(keys.MATCH_INDEX, {"matches/none": 5, "matches/expired": 6})
    await redis_client.zadd(keys.MATCH_EXPIRY, {"matches/expired": 7})
    assert await audit(store, mends=True) == [("matches/none", "STRAY_ENTRY", True)]
    assert await redis_client.zrange(keys.MATCH_INDEX, 0, -1) == [b"matches/expired"], "it leaves by itself"


@pytest.mark.parametrize("competition", [LADDER, LEAGUE])
async def test_a_result_that_was_not_counted_is_counted(
    store: Store, redis_client: Redis, competition: str
) -> None:
    await played(store, "matches/1", competition)
    [counted] = await store.results.read_results(competition)
    await redis_client.unlink(keys.results_log(competition), keys.results_places(competition))
    assert await audit(store) == [("matches/1", "UNLOGGED", False)]
    assert await audit(store, mends=True) == [("matches/1", "UNLOGGED", True)]
    assert await store.results.read_results(competition) == [counted]
    assert await audit(store) == []


async def test_a_result_whose_delivery_is_not_over_is_not_missed(store: Store, redis_client: Redis) -> None:
    """The owner died, or this is a backup; its heir counts the result."""
    await played(store, "matches/1", LADDER)
    await redis_client.unlink(keys.results_log(LADDER), keys.results_places(LADDER))
    await store.jobs.push_job("matches/1")
    assert await audit(store) == []


@pytest.mark.parametrize("is_void", [False, True])
async def test_a_log_that_says_something_else_is_named(store: Store, is_void: bool) -> None:
    it = Desk()
    await store.results.append_result(LADDER, wrong_result(it.setup.bots))
    await played(store, "matches/1", LADDER, is_void=is_void)
    assert await audit(store, mends=True) == [("matches/1", "CONTRADICTED", False)]


def wrong_result(bots: Sequence[str]) -> LoggedResult:
    return LoggedResult(0, "matches/1", tuple(bots), (99, 0), (1, 2), ("COMPLETED",) * 2)  # type: ignore[arg-type]


async def test_a_match_without_its_record_or_its_result_is_named(store: Store, redis_client: Redis) -> None:
    for name, part in (("matches/1", "record"), ("matches/2", "result")):
        await played(store, name)
        if part == "record":
            await redis_client.unlink(keys.match_record(name))
        else:
            await redis_client.hdel(keys.match_meta(name), "result")
    found = [("matches/1", "INCOMPLETE", False), ("matches/2", "INCOMPLETE", False)]
    assert sorted(await audit(store, mends=True)) == found


async def open_match(store: Store, name: str, queue: str, **fields: str) -> None:
    setup = replace(Desk().setup, match=name)
    state = "WAITING" if queue == CREATED else "SEATING"
    meta = {"setup": canonical_json(setup.to_json()), "state": state, "queue": queue, **fields}
    await store.matches.create_match(name, meta, facets=facets_of(setup))


async def test_a_match_that_everybody_has_forgotten_goes_on(store: Store) -> None:
    await open_match(store, "matches/named", CREATED)
    await open_match(store, "matches/aborted", CREATED, abort="why")
    await open_match(store, "matches/paired", "casual-2")
    await open_match(store, "matches/owned", "casual-2")
    await store.journal.claim_match("matches/owned", "a", 0)
    names = ("aborted", "named", "owned", "paired")
    assert sorted(await audit(store)) == [(f"matches/{name}", "STUCK", False) for name in names]
    assert sorted(await audit(store, mends=True)) == [(f"matches/{name}", "STUCK", True) for name in names]
    assert await store.queues.front_of(CREATED, 9) == ["matches/named"]
    assert {job.match for job in await store.jobs.list_page(9)} == {"matches/aborted", "matches/owned"}
    assert await store.matches.get_meta("matches/paired") is None
    assert await audit(store) == []


async def test_a_match_that_is_waited_for_or_played_is_not_stuck(store: Store) -> None:
    await open_match(store, "matches/waits", CREATED)
    await store.queues.enter_queue(CREATED, "matches/waits")
    await open_match(store, "matches/proposed", "casual-2")
    await store.queues.enter_queue("casual-2", "bots/a/versions/1")
    await store.queues.propose_first("casual-2", 1, 0, "matches/proposed")
    await open_match(store, "matches/played", "casual-2")
    await store.jobs.push_job("matches/played")
    await store.journal.claim_match("matches/played", "a", 0)
    assert await audit(store) == []


async def test_a_match_that_is_being_seated_is_listed_by_its_lobby(store: Store, redis_client: Redis) -> None:
    await store.queues.enter_queue("casual-2", "bots/a/versions/1")
    await store.queues.propose_first("casual-2", 1, 0, "matches/proposed")
    await open_match(store, "matches/proposed", "casual-2")
    await redis_client.zrem(keys.MATCH_INDEX, "matches/proposed")
    assert await audit(store) == []


async def test_a_match_that_is_played_and_not_listed_is_listed(store: Store, redis_client: Redis) -> None:
    await open_match(store, "matches/played", "casual-2")
    await store.jobs.push_job("matches/played")
    await redis_client.zadd(keys.MATCH_INDEX, {"matches/played": 1})
    assert await audit(store, mends=True) == [("matches/played", "UNLISTED", True)]
    assert await audit(store) == []


async def test_a_match_that_is_missing_from_a_filter_is_put_back(store: Store, redis_client: Redis) -> None:
    meta = await played(store, "matches/played", LADDER)
    [bot, *_] = [facet for facet in meta.facets.split() if facet.startswith("bot/")]
    for facet in (bot, "game/ugo", f"competition/{LADDER}", "state/FINISHED"):
        await redis_client.zrem(keys.match_set(facet), "matches/played")
        assert await audit(store) == [("matches/played", "UNLISTED", False)]
        assert await audit(store, mends=True) == [("matches/played", "UNLISTED", True)]
        assert await redis_client.zscore(keys.match_set(facet), "matches/played") == meta.create_us
    await redis_client.zadd(keys.match_set("state/RUNNING"), {"matches/played": meta.create_us})
    assert await audit(store, mends=True) == [("matches/played", "UNLISTED", True)]
    assert not await redis_client.exists(keys.match_set("state/RUNNING"))
    assert await audit(store) == []


async def test_an_open_match_that_is_missing_from_a_filter_is_put_back(
    store: Store, redis_client: Redis
) -> None:
    await open_match(store, "matches/waits", CREATED)
    await store.queues.enter_queue(CREATED, "matches/waits")
    await store.jobs.push_job("matches/waits")
    for facet in ("game/ugo", "state/OPEN"):
        await redis_client.zrem(keys.match_set(facet), "matches/waits")
        assert await audit(store, mends=True) == [("matches/waits", "UNLISTED", True)]
        assert await redis_client.zscore(keys.match_set(facet), "matches/waits")


async def test_a_match_that_only_filters_know_is_taken_out_of_them(store: Store, redis_client: Redis) -> None:
    await open_match(store, "matches/stray", CREATED)
    await redis_client.unlink(keys.match_meta("matches/stray"))
    await redis_client.zrem(keys.MATCH_INDEX, "matches/stray")
    assert await audit(store, mends=True) == [("matches/stray", "STRAY_ENTRY", True)]
    assert await audit(store) == []
    assert not [key async for key in redis_client.scan_iter("seatwise:{matches}:by:*")]


async def test_a_set_that_waits_for_a_match_that_never_was_is_named(store: Store) -> None:
    """Whoever asked for it died between two steps, and has not asked again."""
    it = desk_in_set(1, size=2)
    place = it.setup.deal_set
    assert place
    await store.sets.join_set(place.name, 1, "matches/1", 2, "ugo", place.seed)
    await played(store, "matches/1", desk=it)
    assert await audit(store) == []
    await store.sets.join_set(place.name, 2, "matches/2", 2, "ugo", place.seed)
    assert await audit(store, mends=True) == [("matches/1", "SET_STUCK", False)]
    await open_match(store, "matches/2", CREATED)
    await store.queues.enter_queue(CREATED, "matches/2")
    assert await audit(store) == []


async def test_a_match_that_fits_at_a_second_look_is_no_fault(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await open_match(store, "matches/1", CREATED)

    async def settle(_: float) -> None:
        await store.queues.enter_queue(CREATED, "matches/1")

    monkeypatch.setattr(match_audit.asyncio, "sleep", settle)
    assert await audit(store) == []


@pytest.mark.parametrize(
    "token", ["x", "list x", "kept -1 matches/1", "log 0", "log x ladders/main", "log 0 queues/x"]
)
async def test_a_foreign_page_token_is_refused(store: Store, token: str) -> None:
    with pytest.raises(Refusal, match="page_token"):
        await MatchAudit(store).check_page(token, mends=False)


async def test_many_entries_of_one_moment_are_all_compared(store: Store, redis_client: Redis) -> None:
    names = [f"matches/{number}" for number in range(3 * match_audit.PAGE_ENTRIES)]
    await redis_client.zadd(keys.MATCH_INDEX, dict.fromkeys(names, 1_000))
    found = await audit(store, mends=True)
    assert sorted(match for match, _, _ in found) == sorted(names)
    assert await redis_client.zcard(keys.MATCH_INDEX) == 0


def test_a_result_is_compared_by_all_that_both_sides_say() -> None:
    """A log of before has no chain."""
    it = Desk()
    it.sit_all()
    it.play_out()
    result = logged_result_of(
        it.setup, end_of(it.setup, [encode_entry(entry) for entry in it.journal]).message
    )
    assert match_audit._comparison_key(result) == match_audit._comparison_key(
        replace(result, chain="", seq=9)
    )
    assert match_audit._comparison_key(result) != match_audit._comparison_key(replace(result, deal="sets/x"))
