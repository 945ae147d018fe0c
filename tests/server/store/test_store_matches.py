"""Meta, lists and records of matches."""

from __future__ import annotations

import asyncio

import pytest
from redis.asyncio import Redis

from seatwise_referee.ending import MatchState
from seatwise_server.store import AppendResult, EndedMatch, Store, StoredMatchPage, keys, now_ms
from seatwise_server.store.errors import BadPageToken
from seatwise_server.store.matches import forget_call
from seatwise_server.store.redis import scripts


async def pages(store: Store, size: int) -> list[list[str]]:
    """All pages of a list."""
    found: list[list[str]] = []
    page = StoredMatchPage((), "")
    while not found or page.next_page_token:
        page = await store.matches.list_page(size, page.next_page_token)
        found.append([meta.match for meta in page.matches])
    return found


async def create(store: Store, count: int) -> list[str]:
    """Creates matches and answers them newest first."""
    matches = [f"matches/{number:04}" for number in range(count)]
    for match in matches:
        await store.matches.create_match(match, {"game": "ugo", "seats": 4})
    return matches[::-1]


async def create_as(store: Store, *matches: str) -> list[str]:
    for match in matches:
        await store.matches.create_match(match, {"game": "ugo", "seats": 4})
    return list(matches)


async def retire(store: Store, match: str, keep_s: int) -> None:
    epoch, _ = await store.journal.claim_match(match, "a", 0)
    await store.journal.retire_match(match, epoch, "a", b"record", b"result", MatchState.FINISHED)
    await scripts.run_in_order(store.client, forget_call(match, keep_s, MatchState.FINISHED))


async def test_a_match_is_created_once(store: Store) -> None:
    assert await store.matches.create_match("matches/1", {"game": "ugo", "seats": 4, "options": b"\xff"})
    first = await store.matches.get_meta("matches/1")
    assert not await store.matches.create_match("matches/1", {"game": "other"})
    assert await store.matches.get_meta("matches/1") == first
    assert first is not None
    assert first.fields == {"game": b"ugo", "seats": b"4", "options": b"\xff"}
    assert abs(first.create_us // 1000 - await now_ms(store.client)) < 1_000


async def test_creating_again_makes_good_what_a_crash_left_out(store: Store, redis_client: Redis) -> None:
    await create(store, 1)
    await redis_client.delete(keys.MATCH_INDEX)
    await create(store, 1)
    assert await pages(store, 5) == [["matches/0000"]]


async def test_an_absent_match_is_none(store: Store) -> None:
    assert await store.matches.get_meta("matches/none") is None
    assert await store.matches.get_record("matches/none") is None


async def test_only_the_owner_sets_the_state(store: Store) -> None:
    await store.matches.create_match("matches/1", {"state": "waiting"})
    assert await store.matches.set_state("matches/1", 1, "a", "running") is AppendResult.FENCED
    epoch, _ = await store.journal.claim_match("matches/1", "a", 0)
    assert await store.matches.set_state("matches/1", epoch, "a", "running") is AppendResult.OK
    assert await store.matches.set_state("matches/1", epoch, "b", "over") is AppendResult.FENCED
    meta = await store.matches.get_meta("matches/1")
    assert meta is not None
    assert meta.state == "running"


async def test_a_match_begins_when_it_first_runs(store: Store) -> None:
    [match] = await create_as(store, "matches/1")
    epoch, _ = await store.journal.claim_match(match, "a", 0)
    await store.matches.set_state(match, epoch, "a", MatchState.SEATING)
    seated = await store.matches.get_meta(match)
    assert seated
    assert "start_ms" not in seated.fields
    begun = list[bytes]()
    for _ in range(2):
        await store.matches.set_state(match, epoch, "a", MatchState.RUNNING)
        meta = await store.matches.get_meta(match)
        assert meta
        begun.append(meta.fields["start_ms"])
        await asyncio.sleep(0.002)
    assert begun[0] == begun[1]
    assert abs(int(begun[0]) - await now_ms(store.client)) < 10_000


@pytest.mark.parametrize("size", [1, 3, 10, 100])
async def test_pages_show_every_match_once_and_the_newest_first(store: Store, size: int) -> None:
    newest_first = await create(store, 30)
    found = await pages(store, size)
    assert [match for page in found for match in page] == newest_first
    assert all(len(page) == size for page in found[:-1])


async def test_matches_of_one_moment_are_all_shown(store: Store, redis_client: Redis) -> None:
    matches = await create(store, 250)
    await redis_client.zadd(keys.MATCH_INDEX, dict.fromkeys(matches, 1_000))
    for match in matches:
        await redis_client.hset(keys.match_meta(match), "create_us", 1_000)
    found = await pages(store, 7)
    assert sorted(match for page in found for match in page) == sorted(matches)


async def test_pages_skip_what_is_gone_and_are_full_all_the_same(store: Store, redis_client: Redis) -> None:
    newest_first = await create(store, 250)
    for match in newest_first[3:230]:
        await redis_client.delete(keys.match_meta(match))
    assert await pages(store, 4) == [
        newest_first[:3] + newest_first[230:231],
        *(newest_first[at : at + 4] for at in range(231, 250, 4)),
    ]


async def test_an_empty_list_is_one_empty_page(store: Store) -> None:
    assert await pages(store, 5) == [[]]


@pytest.mark.parametrize("token", ["x", "????", "bm8gbnVtYmVy", "é"])
async def test_a_foreign_page_token_is_refused(store: Store, token: str) -> None:
    with pytest.raises(BadPageToken):
        await store.matches.list_page(5, token)


async def test_the_index_stays_as_long_as_what_is_kept(store: Store, redis_client: Redis) -> None:
    matches = await create(store, 20)
    for match in matches[:10]:
        await retire(store, match, keep_s=0)
    await retire(store, matches[10], keep_s=60)
    assert await store.keeping.remove_due() == 10
    assert await redis_client.zcard(keys.MATCH_INDEX) == 10
    assert await redis_client.zcard(keys.MATCH_EXPIRY) == 1
    assert await pages(store, 50) == [matches[10:]]
    assert await store.matches.get_record(matches[10]) == b"record"


async def test_a_match_of_a_name_that_was_used_before_stays(store: Store, redis_client: Redis) -> None:
    """A request_id may be sent again when the record of its match has gone, while another process still removes it."""
    [match] = await create(store, 1)
    await retire(store, match, keep_s=0)
    await redis_client.unlink(keys.match_meta(match), keys.match_fence(match), keys.match_record(match))
    await create(store, 1)
    again = await store.matches.get_meta(match)
    assert again
    assert await store.keeping.remove_due() == 0
    assert await store.matches.get_meta(match) == again
    assert await pages(store, 5) == [[match]]
    assert await redis_client.zscore(keys.MATCH_INDEX, match) == again.create_us


async def test_a_match_that_is_over_leaves_nothing(store: Store, redis_client: Redis) -> None:
    for number in range(1_001):
        match = f"matches/{number:06}"
        await store.matches.create_match(match, {"game": "ugo"})
        await retire(store, match, keep_s=0)
    assert await store.keeping.remove_due() == 1_001
    assert {key async for key in redis_client.scan_iter(count=1000)} == {keys.KEEPING_TIME.encode()}


LEAP_MS = 400 * 86_400_000


async def test_a_clock_that_leaps_removes_nothing(store: Store, redis_client: Redis) -> None:
    """Redis's clock is set 400 days ahead, or back: what is kept is the same, and stays as long as before."""
    matches = await create(store, 3)
    await store.keeping.remove_due()
    await retire(store, matches[0], keep_s=86_400)
    guest = await store.bots.register_guest("guest", "owner", 86_400_000)
    invite = (await store.invites.create_invite(1, 1, 3_600_000)).invite.name
    token = (await store.access_tokens.create_token("joan", frozenset({"read"}), 3_600_000, "")).token.name
    named = [keys.match_meta(matches[0]), keys.match_fence(matches[0]), keys.match_record(matches[0])]
    named += [keys.bot_registration(guest), keys.invite(invite), keys.access_token(token)]
    await store.sets.join_set("sets/one", 1, matches[0], 1, "ugo", b"seed")
    await store.deliveries.conclude_match(
        EndedMatch(matches[0], (), MatchState.FINISHED, 86_400, deal_set=("sets/one", 1))
    )
    named.append(keys.deal_set("sets/one"))
    for leap_ms in (LEAP_MS, -2 * LEAP_MS, LEAP_MS):
        await redis_client.hincrby(keys.KEEPING_TIME, "clock", -leap_ms)  # as if the clock had leapt since
        assert await store.keeping.remove_due() == 0
    assert {await redis_client.ttl(key) for key in named} == {-1}, "Redis itself may delete nothing"
    await redis_client.hincrby(keys.KEEPING_TIME, "clock", -86_000_000)  # most of a day passes
    assert await store.keeping.remove_due() == 0
    await redis_client.hincrby(keys.KEEPING_TIME, "clock", -86_000_000)
    assert await store.keeping.remove_due() == 3
    assert await redis_client.exists(*named) == 2, "the invite and the token are kept for 90 days"


async def test_a_wish_to_abort_is_noted_whoever_owns_the_match(store: Store) -> None:
    assert not await store.matches.ask_abort("matches/none")
    assert await store.matches.get_meta("matches/none") is None
    await create(store, 1)
    assert await store.matches.ask_abort("matches/0000")
    meta = await store.matches.get_meta("matches/0000")
    assert meta is not None
    assert "abort" in meta.fields
