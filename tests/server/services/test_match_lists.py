"""Lists of matches: what they cost, what they can be narrowed to, and the sets behind the filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from redis.asyncio import Redis

from seatwise_referee.ending import MatchState
from seatwise_server.store import Store, keys
from seatwise_server.store.errors import BadPageToken
from seatwise_server.store.matches import MatchFilter, PageCursor, forget_call
from seatwise_server.store.redis import scripts

KEEP_S = 60
FIELDS = ("alice", "bob", "carol")


def facets(number: int) -> str:
    """Match number 0, 1, 2 ... has bots, a game and a competition by its number."""
    bot = f"bot/bots/{FIELDS[number % 3]}/versions/1 bot/bots/all/versions/1"
    return f"{bot} game/{'ugo' if number % 2 else 'ubongo'} competition/ladders/{number % 5}"


async def create(store: Store, numbers: Sequence[int]) -> list[str]:
    names = [f"matches/{number:04}" for number in numbers]
    for name, number in zip(names, numbers, strict=True):
        await store.matches.create_match(name, {"state": MatchState.SEATING}, facets=facets(number))
    return names


async def end(store: Store, match: str, state: MatchState, keep_s: int = KEEP_S) -> None:
    epoch, _ = await store.journal.claim_match(match, "a", 0)
    await store.matches.set_state(match, epoch, "a", MatchState.RUNNING)
    await store.journal.retire_match(match, epoch, "a", b"record", b"result", state)
    await scripts.run_in_order(store.client, forget_call(match, keep_s, state))


async def names(store: Store, size: int = 1000, **wanted: Any) -> list[str]:
    """All pages, one after the other."""
    found, token = list[str](), ""
    while True:
        page = await store.matches.list_page(size, token, MatchFilter(**wanted))
        assert len(page.matches) <= size
        found += [meta.match for meta in page.matches]
        token = page.next_page_token
        if not token:
            return found


class CountedCommands:
    """Counts what goes to Redis."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names = list[str]()
        client = store.client
        call_many = client.call_many

        async def counted_many(commands: Sequence[Any]) -> list[Any]:
            self.names += [command[0] for command in commands]
            return await call_many(commands)

        monkeypatch.setattr(client, "call_many", counted_many)


@pytest.mark.parametrize("wanted", [{}, {"bot": "bots/alice/versions/1", "game": "ugo"}])
async def test_a_page_reads_one_meta_more_than_it_shows(
    store: Store, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, str]
) -> None:
    await create(store, range(120))
    await names(store, **wanted)
    counted = CountedCommands(store, monkeypatch)
    page = await store.matches.list_page(10, "", MatchFilter(**wanted))
    assert len(page.matches) == 10
    assert counted.names == ["EVALSHA", *["HGETALL"] * 11]


@pytest.mark.parametrize("size", [1, 7, 100])
async def test_each_filter_shows_what_fits_it_and_the_newest_first(store: Store, size: int) -> None:
    made = await create(store, range(60))
    newest_first = made[::-1]

    def that(fits: Any) -> list[str]:
        return [name for name in newest_first if fits(int(name[-4:]))]

    assert await names(store, size) == newest_first
    assert await names(store, size, bot="bots/bob/versions/1") == that(lambda number: number % 3 == 1)
    assert await names(store, size, game="ugo") == that(lambda number: number % 2)
    assert await names(store, size, competition="ladders/3") == that(lambda number: number % 5 == 3)
    both = that(lambda number: number % 2 and number % 3 == 0)
    assert await names(store, size, bot="bots/alice/versions/1", game="ugo") == both
    assert await names(store, size, bot="bots/nobody/versions/1") == []


async def test_a_time_bounds_the_list_and_the_later_bound_is_open(store: Store) -> None:
    made = await create(store, range(10))
    times = {meta.match: meta.create_us for meta in await store.matches.read_metas(made)}
    since_us, until_us = times[made[3]], times[made[7]]
    assert await names(store, 2, since_us=since_us, until_us=until_us) == made[3:7][::-1]
    assert await names(store, 2, since_us=since_us, game="ugo") == made[3::2][::-1]


async def test_each_state_lists_its_own(store: Store) -> None:
    waiting, seating, running, finished, voided = await create(store, range(5))
    await store.client.call("HSET", keys.match_meta(waiting), "state", MatchState.WAITING)
    epoch, _ = await store.journal.claim_match(running, "a", 0)
    await store.matches.set_state(running, epoch, "a", MatchState.RUNNING)
    await end(store, finished, MatchState.FINISHED)
    await end(store, voided, MatchState.VOIDED)
    found = {state: await names(store, state=state) for state in MatchState}
    assert found == {
        MatchState.WAITING: [waiting],
        MatchState.SEATING: [seating],
        MatchState.RUNNING: [running],
        MatchState.FINISHED: [finished],
        MatchState.VOIDED: [voided],
    }
    assert await names(store, state=MatchState.FINISHED, game="ugo") == [finished]


async def test_a_match_is_in_the_set_of_a_state_before_its_meta_says_so(
    store: Store, redis_client: Redis
) -> None:
    """Its referee may die between any two steps."""
    [match] = await create(store, [1])
    epoch, _ = await store.journal.claim_match(match, "a", 0)
    await store.matches.set_state(match, epoch, "a", MatchState.RUNNING)
    assert await names(store, state=MatchState.RUNNING) == [match]
    await store.journal.retire_match(match, epoch, "a", b"", b"result", MatchState.FINISHED)
    assert await names(store, state=MatchState.FINISHED) == [match], (
        "nothing has told the list that it is over"
    )
    assert await names(store, state=MatchState.RUNNING) == []
    await scripts.run_in_order(store.client, forget_call(match, KEEP_S, MatchState.FINISHED))
    assert not await redis_client.zcard(keys.match_set("state/RUNNING"))
    assert not await redis_client.zcard(keys.match_set("state/OPEN"))


async def test_a_referee_that_comes_late_puts_no_match_back_among_those_that_run(store: Store) -> None:
    [match] = await create(store, [1])
    await end(store, match, MatchState.FINISHED)
    await store.matches.set_state(match, 1, "a", MatchState.RUNNING)
    [meta] = await store.matches.read_metas([match])
    await store.matches.list_match(match, meta.create_us, facets(1))
    assert not await store.client.call("ZCARD", keys.match_set("state/RUNNING"))


async def test_a_match_that_is_gone_is_in_no_set(store: Store, redis_client: Redis) -> None:
    made = await create(store, range(6))
    for match in made[:4]:
        await end(store, match, MatchState.FINISHED, keep_s=0)
    assert await store.matches.drop_unowned(made[4])
    await end(store, made[5], MatchState.VOIDED, keep_s=0)
    await end(store, (await create(store, [9]))[0], MatchState.VOIDED)
    await store.keeping.remove_due()
    left = [key async for key in redis_client.scan_iter("seatwise:{matches}:by:*")]
    members = {member for key in left for member in await redis_client.zrange(key, 0, -1)}
    assert members == {b"matches/0009"}
    assert await redis_client.hkeys(keys.MATCH_FACETS) == [b"matches/0009"]


@pytest.mark.parametrize(
    "token", ["", PageCursor(5, "matches/1").token(), PageCursor(5, "matches/1").token("other")]
)
async def test_a_page_token_is_only_good_for_its_filters(store: Store, token: str) -> None:
    await create(store, range(9))
    wanted = MatchFilter(game="ugo")
    first = await store.matches.list_page(2, "", wanted)
    assert (await store.matches.list_page(2, first.next_page_token, wanted)).matches
    with pytest.raises(BadPageToken):
        await store.matches.list_page(2, token or first.next_page_token, MatchFilter(game="ubongo"))


@pytest.mark.parametrize("create_us", [-1, 2**63, 10**400])
async def test_a_page_token_names_a_time_that_can_be(store: Store, create_us: int) -> None:
    with pytest.raises(BadPageToken):
        await store.matches.list_page(2, PageCursor(create_us, "matches/1").token())


async def test_a_filter_that_hardly_anything_fits_costs_a_bounded_number_of_commands(
    store: Store, redis_client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = {f"matches/{number}": number for number in range(25_000)}
    await redis_client.zadd(keys.match_set("game/ugo"), many)
    await redis_client.zadd(
        keys.match_set("competition/ladders/1"), {f"x{name}": us for name, us in many.items()}
    )
    await redis_client.zadd(keys.match_set("competition/ladders/1"), {"matches/1": 1})
    counted = CountedCommands(store, monkeypatch)
    page = await store.matches.list_page(50, "", MatchFilter(game="ugo", competition="ladders/1"))
    assert page.next_page_token, "it is a short page"
    assert len(counted.names) <= 20
    assert not page.matches
