"""Journals that went backwards: what the owner holds is written again, and a lost claim is never taken for granted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from redis.asyncio import Redis

from seatwise_server.store import AppendResult, Fence, Flusher, Store, keys
from seatwise_server.store.errors import FenceLost, MatchRetired
from seatwise_server.store.group_commit import node_writer
from seatwise_server.store.group_commit.writer import PACKED_FROM, JournalTail

MATCH = "matches/7f3k"

Forget = Callable[[], Awaitable[object]]


def entries(first: int, last: int) -> list[bytes]:
    return [b"entry %d" % seq for seq in range(first, last + 1)]


async def remembered(redis: Redis, match: str = MATCH) -> Forget:
    """What puts Redis's memory of the match back to this moment; streams do not let go of their last id."""
    named = (keys.match_fence(match), keys.match_journal(match))
    dumps = [await redis.dump(key) for key in named]

    async def forget() -> None:
        for key, dump in zip(named, dumps, strict=True):
            await redis.delete(key)
            if dump is not None:
                await redis.restore(key, 0, dump)

    return forget


@pytest.mark.parametrize("kept", [0, 1, 4])
async def test_the_missing_tail_is_written_with_the_next_append(
    store: Store, flusher: Flusher, redis_client: Redis, kept: int
) -> None:
    epoch, _ = await store.journal.claim_match(MATCH, "a", 0)
    flusher.keep_tail(MATCH, epoch, "a", [])
    if kept:
        await flusher.append_and_wait(MATCH, epoch, "a", 1, entries(1, kept))
    forget = await remembered(redis_client)
    await flusher.append_and_wait(MATCH, epoch, "a", kept + 1, entries(kept + 1, 5))
    await forget()
    assert await store.journal.last_seq(MATCH) == kept
    assert await flusher.append_and_wait(MATCH, epoch, "a", 6, entries(6, 7)) is AppendResult.OK
    assert await store.journal.read_entries(MATCH) == entries(1, 7) == flusher.tail_entries(MATCH)
    assert flusher.mends == 1


async def test_appends_behind_one_another_mend_once_and_keep_their_order(
    store: Store, flusher: Flusher, redis_client: Redis
) -> None:
    epoch, _ = await store.journal.claim_match(MATCH, "a", 0)
    flusher.keep_tail(MATCH, epoch, "a", [])
    forget = await remembered(redis_client)
    await flusher.append_and_wait(MATCH, epoch, "a", 1, entries(1, 3))
    await forget()
    answers = await asyncio.gather(
        *(flusher.append_and_wait(MATCH, epoch, "a", seq, entries(seq, seq)) for seq in range(4, 9))
    )
    assert answers == [AppendResult.OK] * 5
    assert await store.journal.read_entries(MATCH) == entries(1, 8)
    assert flusher.mends == 1


async def test_after_a_pause_the_journal_is_looked_at_before_it_gets_more(
    store: Store, flusher: Flusher, redis_client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_writer, "LONGEST_PAUSE_S", 0.05)
    epoch, _ = await store.journal.claim_match(MATCH, "a", 0)
    flusher.keep_tail(MATCH, epoch, "a", [])
    await flusher.append_and_wait(MATCH, epoch, "a", 1, entries(1, 1))
    forget = await remembered(redis_client)
    await flusher.append_and_wait(MATCH, epoch, "a", 2, entries(2, 2))
    await forget()
    await asyncio.sleep(0.1)
    assert await flusher.append_and_wait(MATCH, epoch, "a", 3, entries(3, 3)) is AppendResult.OK
    assert await store.journal.read_entries(MATCH) == entries(1, 3)


async def test_a_takeover_holds_what_it_has_read(store: Store, flusher: Flusher, redis_client: Redis) -> None:
    first, _ = await store.journal.claim_match(MATCH, "a", 0)
    await flusher.append_and_wait(MATCH, first, "a", 1, entries(1, 3))
    second, _ = await store.journal.claim_match(MATCH, "b", first)
    flusher.keep_tail(MATCH, second, "b", await store.journal.read_entries(MATCH))
    journal = keys.match_journal(MATCH)
    await redis_client.delete(journal)
    assert await flusher.rewrite_missing(MATCH) is AppendResult.OK
    assert await store.journal.read_entries(MATCH) == entries(1, 3)
    assert await flusher.rewrite_missing(MATCH) is AppendResult.OK  # nothing to do
    assert flusher.mends == 1


async def test_a_long_match_is_written_again_as_a_whole(
    store: Store, flusher: Flusher, redis_client: Redis
) -> None:
    epoch, _ = await store.journal.claim_match(MATCH, "a", 0)
    flusher.keep_tail(MATCH, epoch, "a", [])
    for seq in range(1, 2_001, 20):
        await flusher.append_and_wait(MATCH, epoch, "a", seq, entries(seq, seq + 19))
    await redis_client.delete(keys.match_journal(MATCH))
    assert await flusher.append_and_wait(MATCH, epoch, "a", 2_001, entries(2_001, 2_001)) is AppendResult.OK
    assert await store.journal.read_entries(MATCH) == entries(1, 2_001)


async def test_a_match_without_an_owner_is_let_go(
    store: Store, flusher: Flusher, redis_client: Redis
) -> None:
    epoch, _ = await store.journal.claim_match(MATCH, "a", 0)
    flusher.keep_tail(MATCH, epoch, "a", [])
    await flusher.append_and_wait(MATCH, epoch, "a", 1, entries(1, 3))
    flusher.drop_tail(MATCH)
    await redis_client.delete(keys.match_journal(MATCH))
    assert await flusher.append_and_wait(MATCH, epoch, "a", 4, entries(4, 4)) is AppendResult.FENCED
    assert await store.journal.read_entries(MATCH) == []
    with pytest.raises(KeyError):
        await flusher.rewrite_missing(MATCH)


async def test_after_an_outage_even_idle_matches_are_whole(
    store: Store, flusher: Flusher, redis_client: Redis
) -> None:
    matches = [f"matches/{number}" for number in range(50)]
    for match in matches:
        flusher.keep_tail(match, (await store.journal.claim_match(match, "a", 0))[0], "a", [])
        await flusher.append_and_wait(match, 1, "a", 1, entries(1, 5))
    for match in matches[::2]:
        await redis_client.delete(keys.match_journal(match))
    await redis_client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")  # type: ignore[no-untyped-call]
    async with asyncio.timeout(5):
        while flusher.mends < 25:  # noqa: ASYNC110 - what we wait for happens by itself
            await asyncio.sleep(0.01)
    for match in matches:
        assert await store.journal.read_entries(match) == entries(1, 5)


async def test_a_zombie_mends_nothing(store: Store, flusher: Flusher, redis_client: Redis) -> None:
    epoch, _ = await store.journal.claim_match(MATCH, "a", 0)
    flusher.keep_tail(MATCH, epoch, "a", [])
    await flusher.append_and_wait(MATCH, epoch, "a", 1, entries(1, 3))
    await store.journal.claim_match(MATCH, "b", epoch)
    await redis_client.delete(keys.match_journal(MATCH))
    assert await flusher.rewrite_missing(MATCH) is AppendResult.FENCED
    assert await flusher.append_and_wait(MATCH, epoch, "a", 4, entries(4, 4)) is AppendResult.FENCED
    assert await store.journal.read_entries(MATCH) == []


@pytest.mark.parametrize("is_gone", [True, False])
async def test_a_lost_claim_is_named_and_made_again_only_by_asking(
    store: Store, flusher: Flusher, redis_client: Redis, is_gone: bool
) -> None:
    if not is_gone:
        await store.journal.claim_match(MATCH, "a", 0)
        await flusher.append_and_wait(MATCH, 1, "a", 1, entries(1, 2))
    forget = await remembered(redis_client)
    epoch, _ = await store.journal.claim_match(MATCH, "b", 0 if is_gone else 1)
    flusher.keep_tail(MATCH, epoch, "b", [] if is_gone else entries(1, 2))
    held = len(flusher.tail_entries(MATCH))
    await flusher.append_and_wait(MATCH, epoch, "b", held + 1, entries(held + 1, 5))
    await forget()
    await redis_client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")  # type: ignore[no-untyped-call]  # as in any failover
    assert await flusher.append_and_wait(MATCH, epoch, "b", 6, entries(6, 6)) is AppendResult.LOST
    assert await store.journal.last_seq(MATCH) == held

    again = await store.journal.reclaim_match(MATCH, "b", epoch)
    assert again == epoch + 1  # nobody has had it
    assert await store.journal.reclaim_match(MATCH, "b", epoch) == again  # the reply was lost
    flusher.keep_tail(MATCH, again, "b", flusher.tail_entries(MATCH))
    assert await flusher.append_and_wait(MATCH, again, "b", 6, entries(6, 6)) is AppendResult.OK
    assert await store.journal.read_entries(MATCH) == entries(1, 6)
    assert await flusher.append_and_wait(MATCH, epoch, "b", 7, entries(7, 7)) is AppendResult.FENCED


async def test_who_takes_a_match_back_fences_out_an_owner_that_the_failover_brought_back(
    store: Store, flusher: Flusher, redis_client: Redis
) -> None:
    await store.journal.claim_match(MATCH, "a", 0)
    await flusher.append_and_wait(MATCH, 1, "a", 1, entries(1, 1))
    forget = await remembered(redis_client)
    await store.journal.claim_match(MATCH, "b", 1)
    await forget()
    await flusher.append_and_wait(
        MATCH, 1, "a", 2, entries(2, 2)
    )  # it is the owner again, for all that Redis knows
    assert await store.journal.reclaim_match(MATCH, "b", 2) == 3
    assert await flusher.append_and_wait(MATCH, 1, "a", 3, entries(3, 3)) is AppendResult.FENCED
    assert await store.journal.read_entries(MATCH) == entries(1, 2)


async def test_after_a_failover_each_journal_is_looked_at_not_only_that_of_the_append_that_noticed_it(
    store: Store, flusher: Flusher, redis_client: Redis
) -> None:
    for match in (MATCH, "matches/other"):
        await store.journal.claim_match(match, "a", 0)
        await flusher.append_and_wait(match, 1, "a", 1, entries(1, 1))
    forget = await remembered(redis_client)
    await flusher.append_and_wait(MATCH, 1, "a", 2, entries(2, 2))
    await forget()
    await redis_client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")  # type: ignore[no-untyped-call]
    assert (await flusher.append_and_wait("matches/other", 1, "a", 2, entries(2, 2))).is_kept
    assert await flusher.append_and_wait(MATCH, 1, "a", 3, entries(3, 3)) is AppendResult.FENCED
    assert await store.journal.read_entries(MATCH) == entries(1, 1)


async def test_a_lost_claim_is_a_fence_for_who_holds_nothing(store: Store, flusher: Flusher) -> None:
    await store.journal.claim_match(MATCH, "a", 0)
    assert await flusher.append_and_wait(MATCH, 2, "b", 1, entries(1, 1)) is AppendResult.FENCED


async def test_of_a_lost_claim_and_a_new_owner_the_new_owner_stays(store: Store) -> None:
    await store.journal.claim_match(MATCH, "a", 0)
    await store.journal.claim_match(MATCH, "c", 1)  # as b had, whose claim is forgotten
    with pytest.raises(FenceLost) as lost:
        await store.journal.reclaim_match(MATCH, "b", 2)
    assert (lost.value.epoch, lost.value.owner) == (2, "c")
    assert await store.journal.read_fence(MATCH) == Fence(2, "c", is_retired=False)


async def test_a_match_that_is_over_is_not_reclaimed(store: Store) -> None:
    await store.journal.claim_match(MATCH, "a", 0)
    await store.journal.retire_match(MATCH, 1, "a", b"record", b"result")
    with pytest.raises(MatchRetired):
        await store.journal.reclaim_match(MATCH, "b", 2)


@pytest.mark.parametrize("count", [0, 1, 700])
def test_held_entries_are_found_behind_any_number(count: int) -> None:
    held = JournalTail(1, "a")
    for seq in range(1, count + 1):
        held.add_entries(entries(seq, seq))
    assert held.count == count
    for seq in {0, 1, count // 2, count - 1, count, count + 1}:
        if seq >= 0:
            assert held.entries_after(seq) == entries(seq + 1, count)


def test_held_entries_are_packed() -> None:
    entry = (
        b'{"asked_ms":%d,"at_ms":%d,"charged_ms":3,"kind":"move","move":{"play":"R3"},"prompt":%d,"seat":1}'
    )
    written = [entry % (seq * 911, seq * 917, seq) for seq in range(1_000)]
    held = JournalTail(1, "a", ())
    for number in range(0, 1_000, 2):
        held.add_entries(written[number : number + 2])
    packed = sum(len(pack) for _, pack in held._packs)
    assert packed < sum(map(len, written)) / 4
    assert sum(map(len, held._recent)) <= PACKED_FROM
    assert held.entries_after(0) == written
