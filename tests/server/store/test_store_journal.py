"""The journal: fenced appends, claims, reading, retiring, on a real Redis."""

from __future__ import annotations

import asyncio

import pytest
from redis.asyncio import Redis

from seatwise_server.store import AppendResult, Death, Fence, Flusher, Store, keys
from seatwise_server.store.errors import FenceLost, MatchRetired

MATCH = "matches/7f3k"
ENTRIES = [b'{"kind":"move"}', b"\x00\xff not text"]


async def owned(store: Store, owner: str = "a", match: str = MATCH) -> int:
    fence = await store.journal.read_fence(match)
    return (await store.journal.claim_match(match, owner, fence.epoch if fence else 0))[0]


async def test_an_append_is_kept_in_order_and_byte_for_byte(store: Store, flusher: Flusher) -> None:
    epoch = await owned(store)
    assert await flusher.append_and_wait(MATCH, epoch, "a", 1, ENTRIES) is AppendResult.OK
    assert await flusher.append_and_wait(MATCH, epoch, "a", 3, [b"third"]) is AppendResult.OK
    assert await store.journal.read_entries(MATCH) == [*ENTRIES, b"third"]
    assert await store.journal.read_entries(MATCH, after_seq=2) == [b"third"]
    assert await store.journal.last_seq(MATCH) == 3


async def test_the_same_append_again_is_already_there(store: Store, flusher: Flusher) -> None:
    epoch = await owned(store)
    for _ in range(2):
        answer = await flusher.append_and_wait(MATCH, epoch, "a", 1, ENTRIES)
    await flusher.append_and_wait(MATCH, epoch, "a", 3, [b"third"])
    assert answer is AppendResult.ALREADY
    assert await flusher.append_and_wait(MATCH, epoch, "a", 1, ENTRIES) is AppendResult.ALREADY
    assert await store.journal.last_seq(MATCH) == 3


@pytest.mark.parametrize(
    ("first_seq", "entries"),
    [
        (1, [b"other", ENTRIES[1]]),
        (1, [ENTRIES[0], b"other"]),
        (2, [ENTRIES[1], b"and one more"]),
        (2, [b"other"]),
        (4, [b"behind a gap"]),  # nobody holds the match here, so nobody could fill the gap
        (0, [b"before the first"]),
    ],
)
async def test_other_bytes_gaps_and_overlaps_are_refused_and_change_nothing(
    store: Store, flusher: Flusher, first_seq: int, entries: list[bytes]
) -> None:
    epoch = await owned(store)
    await flusher.append_and_wait(MATCH, epoch, "a", 1, ENTRIES)
    assert await flusher.append_and_wait(MATCH, epoch, "a", first_seq, entries) is AppendResult.FENCED
    assert await store.journal.read_entries(MATCH) == ENTRIES


async def test_a_journal_does_not_begin_in_the_middle(store: Store, flusher: Flusher) -> None:
    epoch = await owned(store)
    assert await flusher.append_and_wait(MATCH, epoch, "a", 2, [b"second"]) is AppendResult.FENCED
    assert await store.journal.last_seq(MATCH) == 0


async def test_without_a_fence_nothing_is_appended(store: Store, flusher: Flusher) -> None:
    assert await flusher.append_and_wait(MATCH, 1, "a", 1, [b"first"]) is AppendResult.FENCED
    assert await store.journal.read_entries(MATCH) == []


async def test_a_takeover_fences_the_old_owner_out(store: Store, flusher: Flusher) -> None:
    old = await owned(store, "a")
    await flusher.append_and_wait(MATCH, old, "a", 1, [b"first"])
    new = await owned(store, "b")
    assert await flusher.append_and_wait(MATCH, old, "a", 2, [b"zombie"]) is AppendResult.FENCED
    assert await flusher.append_and_wait(MATCH, new, "a", 2, [b"wrong owner"]) is AppendResult.FENCED
    assert (
        await flusher.append_and_wait(MATCH, old, "a", 1, [b"first"]) is AppendResult.FENCED
    )  # not even a repeat
    assert await flusher.append_and_wait(MATCH, new, "b", 2, [b"second"]) is AppendResult.OK
    assert await store.journal.read_entries(MATCH) == [b"first", b"second"]
    assert await store.journal.wait_for_entries(MATCH, 1, 1000) == [b"second"]


async def test_each_of_two_takeovers_without_a_move_fences_the_owner_before_out(
    store: Store, flusher: Flusher
) -> None:
    first = await owned(store, "a")
    await flusher.append_and_wait(MATCH, first, "a", 1, [b"first"])
    second, third = await owned(store, "b"), await owned(store, "c")
    for epoch, owner in ((first, "a"), (second, "b")):
        assert await flusher.append_and_wait(MATCH, epoch, owner, 2, [b"zombie"]) is AppendResult.FENCED
    assert await flusher.append_and_wait(MATCH, third, "c", 2, [b"second"]) is AppendResult.OK
    assert await store.journal.read_entries(MATCH) == [b"first", b"second"]


async def test_a_claim_repeated_by_its_owner_gets_the_same_epoch(store: Store) -> None:
    assert [(await store.journal.claim_match(MATCH, "a", 0))[0] for _ in range(2)] == [1, 1]
    assert [(await store.journal.claim_match(MATCH, "b", 1))[0] for _ in range(2)] == [2, 2]
    assert await store.journal.read_fence(MATCH) == Fence(2, "b", is_retired=False)


async def test_of_many_claimers_one_gets_the_match(store: Store) -> None:
    async def claim(owner: str) -> int:
        try:
            return (await store.journal.claim_match(MATCH, owner, 0))[0]
        except FenceLost as lost:
            return -lost.epoch

    assert sorted(await asyncio.gather(*(claim(f"r{number}") for number in range(20)))) == [-1] * 19 + [1]


async def test_a_claim_of_what_has_no_fence_must_expect_none(store: Store) -> None:
    with pytest.raises(FenceLost) as lost:
        await store.journal.claim_match(MATCH, "a", 3)
    assert (lost.value.epoch, lost.value.owner) == (0, "")
    assert await store.journal.read_fence(MATCH) is None


async def test_scripts_that_redis_forgot_are_loaded_again(
    store: Store, flusher: Flusher, redis_client: Redis
) -> None:
    epoch = await owned(store)
    await flusher.append_and_wait(MATCH, epoch, "a", 1, [b"first"])
    await redis_client.script_flush()
    assert await flusher.append_and_wait(MATCH, epoch, "a", 2, [b"second"]) is AppendResult.OK
    await redis_client.script_flush()
    assert (await store.journal.claim_match(MATCH, "b", epoch))[0] == epoch + 1


async def test_a_tail_wakes_up_at_the_next_entry(store: Store, flusher: Flusher) -> None:
    epoch = await owned(store)
    await flusher.append_and_wait(MATCH, epoch, "a", 1, [b"first"])
    assert await store.journal.wait_for_entries(MATCH, 0, 1000) == [b"first"]
    tail = asyncio.create_task(store.journal.wait_for_entries(MATCH, 1, 5000))
    await asyncio.sleep(0.02)
    await flusher.append_and_wait(MATCH, epoch, "a", 2, [b"second", b"third"])
    assert await tail == [b"second", b"third"]
    assert await store.journal.wait_for_entries(MATCH, 3, 1) == []


async def test_retiring_swaps_the_journal_for_the_record(
    store: Store, flusher: Flusher, redis_client: Redis
) -> None:
    await store.matches.create_match(MATCH, {"game": "ugo"})
    epoch = await owned(store)
    await flusher.append_and_wait(MATCH, epoch, "a", 1, ENTRIES)
    answers = [
        await store.journal.retire_match(MATCH, epoch, "a", b"{record}" * 1000, b"{result}") for _ in range(2)
    ]
    assert answers == [AppendResult.OK, AppendResult.ALREADY]
    assert await store.matches.get_record(MATCH) == b"{record}" * 1000
    assert await redis_client.exists(keys.match_journal(MATCH)) == 0
    meta = await store.matches.get_meta(MATCH)
    assert meta is not None
    assert (meta.state, meta.fields["result"], meta.fields["game"]) == ("over", b"{result}", b"ugo")
    assert await redis_client.strlen(keys.match_record(MATCH)) < 1000


async def test_only_the_owner_retires_a_match(store: Store, flusher: Flusher) -> None:
    old = await owned(store, "a")
    await flusher.append_and_wait(MATCH, old, "a", 1, ENTRIES)
    await owned(store, "b")
    assert await store.journal.retire_match(MATCH, old, "a", b"record", b"result") is AppendResult.FENCED
    assert await store.journal.read_entries(MATCH) == ENTRIES
    assert await store.matches.get_record(MATCH) is None


async def test_a_retired_match_takes_nothing_more(store: Store, flusher: Flusher) -> None:
    epoch = await owned(store)
    await store.journal.retire_match(MATCH, epoch, "a", b"record", b"result")
    assert await flusher.append_and_wait(MATCH, epoch, "a", 1, [b"late"]) is AppendResult.FENCED
    assert await store.matches.set_state(MATCH, epoch, "a", "running") is AppendResult.FENCED
    assert await store.journal.confirm_fence(MATCH, epoch, "a") is AppendResult.ALREADY
    assert await store.journal.confirm_fence(MATCH, epoch, "b") is AppendResult.FENCED
    with pytest.raises(MatchRetired):
        await store.journal.claim_match(MATCH, "b", epoch)
    fence = await store.journal.read_fence(MATCH)
    assert fence is not None
    assert fence.is_retired


async def test_an_owner_that_confirms_its_fence_keeps_its_match(store: Store) -> None:
    epoch = await owned(store)
    seen = await store.journal.read_fence(MATCH)
    assert seen == Fence(epoch, "a", is_retired=False)
    assert await store.journal.confirm_fence(MATCH, epoch, "a") is AppendResult.OK
    with pytest.raises(FenceLost):
        await store.journal.claim_match(MATCH, "b", epoch, seen.confirmed, Death.SOON)
    seen = await store.journal.read_fence(MATCH)
    assert seen == Fence(epoch, "a", is_retired=False, confirmed=1)
    assert (await store.journal.claim_match(MATCH, "b", epoch, seen.confirmed, Death.SOON))[0] == epoch + 1
    assert await store.journal.confirm_fence(MATCH, epoch, "a") is AppendResult.FENCED
    assert await store.journal.confirm_fence(MATCH, epoch + 2, "a") is AppendResult.LOST


async def test_a_death_is_counted_once_however_often_the_heir_asks(store: Store) -> None:
    epoch = await owned(store)
    for _ in range(2):
        await store.journal.claim_match(MATCH, "b", epoch, 0, Death.SOON)
    await store.journal.claim_match(MATCH, "c", epoch + 1, 0)
    assert await store.journal.read_fence(MATCH) == Fence(epoch + 2, "c", is_retired=False, deaths=1)
    await store.journal.claim_match(MATCH, "d", epoch + 2, 0, Death.LATE)
    assert await store.journal.read_fence(MATCH) == Fence(epoch + 3, "d", is_retired=False, deaths=2, late=1)
    assert await store.journal.clear_deaths(MATCH, epoch + 3, "d") is AppendResult.OK
    assert await store.journal.read_fence(MATCH) == Fence(epoch + 3, "d", is_retired=False, deaths=1)
