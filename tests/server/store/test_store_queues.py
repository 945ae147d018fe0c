"""Queues: first come, first served, each bot once."""

from __future__ import annotations

import asyncio

from seatwise_server.store import QueueEntry, Store

LONG_MS = 60_000


async def enter(store: Store, *bots: str) -> list[QueueEntry]:
    """One after the other, each at a later millisecond."""
    found = []
    for bot in bots:
        found.append(await store.queues.enter_queue("casual", bot))
        await asyncio.sleep(0.002)
    return found


async def test_the_first_are_seated_first(store: Store) -> None:
    entered = await enter(store, "z", "y", "x", "a", "b")
    assert [await store.queues.position_of("casual", bot) for bot in "zyxab"] == [0, 1, 2, 3, 4]
    proposal = await store.queues.propose_first("casual", 4, LONG_MS, "matches/1")
    assert proposal is not None
    assert proposal.entries == tuple(entered[:4])
    assert await store.queues.count_waiting("casual") == 1
    assert await store.queues.position_of("casual", "z") is None


async def test_a_bot_that_enters_twice_keeps_the_first_place(store: Store) -> None:
    [first, _] = await enter(store, "a", "b")
    assert await store.queues.enter_queue("casual", "a") == first
    assert await store.queues.count_waiting("casual") == 2


async def test_bots_that_are_left_out_keep_their_places(store: Store) -> None:
    await enter(store, "a", "b", "c", "d")
    proposal = await store.queues.propose_first("casual", 2, LONG_MS, "matches/1", {"a", "c", "unknown"})
    assert proposal is not None
    assert [it.name for it in proposal.entries] == ["b", "d"]
    assert [await store.queues.position_of("casual", bot) for bot in "ac"] == [0, 1]
    assert await store.queues.propose_first("casual", 2, 0, "matches/2", {"a", "c"}) is None


async def test_too_few_wait_until_the_first_has_lost_patience(store: Store) -> None:
    await enter(store, "a", "b")
    assert await store.queues.propose_first("casual", 4, LONG_MS, "matches/1") is None
    assert await store.queues.count_waiting("casual") == 2
    proposal = await store.queues.propose_first("casual", 4, 1, "matches/1")
    assert proposal is not None
    assert [it.name for it in proposal.entries] == ["a", "b"]


async def test_an_empty_queue_gives_nobody(store: Store) -> None:
    assert await store.queues.propose_first("casual", 4, 0, "matches/1") is None
    assert await store.queues.unfinished_proposals("casual") == []
    assert await store.queues.count_waiting("casual") == 0


async def test_taking_again_for_the_same_match_is_the_same_proposal(store: Store) -> None:
    await enter(store, "a", "b", "c", "d")
    taken = [await store.queues.propose_first("casual", 2, LONG_MS, "matches/1") for _ in range(2)]
    assert taken[0] == taken[1] is not None
    assert await store.queues.count_waiting("casual") == 2


async def test_no_bot_is_taken_twice_by_many_lobbies(store: Store) -> None:
    await asyncio.gather(*(store.queues.enter_queue("casual", f"bot{number}") for number in range(42)))
    takes = (store.queues.propose_first("casual", 4, LONG_MS, f"matches/{number}") for number in range(30))
    proposals = [it for it in await asyncio.gather(*takes) if it]
    bots = [waiting.name for proposal in proposals for waiting in proposal.entries]
    assert len(proposals) == 10
    assert len(set(bots)) == len(bots) == 40
    assert await store.queues.count_waiting("casual") == 2


async def test_a_proposal_of_a_dead_lobby_is_found_until_it_is_seated(store: Store) -> None:
    await enter(store, "a", "b", "c", "d")
    first = await store.queues.propose_first("casual", 2, LONG_MS, "matches/9")
    await asyncio.sleep(0.002)
    second = await store.queues.propose_first("casual", 2, LONG_MS, "matches/1")
    assert await store.queues.unfinished_proposals("casual") == [first, second]
    await store.queues.close_proposal("casual", "matches/9")
    await store.queues.close_proposal("casual", "matches/9")
    assert await store.queues.unfinished_proposals("casual") == [second]


async def test_a_bot_that_is_given_back_stands_where_it_stood(store: Store) -> None:
    entered = await enter(store, "a", "b", "c")
    await store.queues.propose_first("casual", 2, LONG_MS, "matches/1")
    assert await store.queues.dissolve_proposal("casual", "matches/1", entered[:1])
    assert not await store.queues.dissolve_proposal(
        "casual", "matches/1", entered[:2]
    )  # a repeat puts nobody back
    assert [await store.queues.position_of("casual", bot) for bot in "abc"] == [0, None, 1]


async def test_a_bot_that_has_entered_anew_is_not_moved_by_being_given_back(store: Store) -> None:
    [old] = await enter(store, "a")
    await store.queues.propose_first("casual", 1, LONG_MS, "matches/1")
    [new] = await enter(store, "a")
    await store.queues.dissolve_proposal("casual", "matches/1", [old])
    assert await store.queues.list_entries("casual") == [new]


async def test_leaving_is_repeatable(store: Store) -> None:
    await enter(store, "a")
    assert [await store.queues.leave_queue("casual", "a") for _ in range(2)] == [True, False]
    assert await store.queues.count_waiting("casual") == 0


async def test_queues_do_not_touch_each_other(store: Store) -> None:
    await store.queues.enter_queue("casual", "a")
    assert await store.queues.propose_first("ladder", 1, 0, "matches/1") is None


async def test_the_front_is_shown_and_stays(store: Store) -> None:
    await enter(store, "c", "b", "a")
    assert await store.queues.front_of("casual", 2) == ["c", "b"]
    assert await store.queues.front_of("casual", 9) == ["c", "b", "a"]
    assert await store.queues.front_of("ladder", 9) == []


async def test_an_old_proposal_is_adopted_by_one_only(store: Store) -> None:
    await store.queues.enter_queue("casual", "bots/a/versions/1")
    made = await store.queues.propose_first("casual", 1, 0, "matches/1")
    assert made
    assert await store.queues.adopt_proposal("casual", "matches/1", 60_000) is None
    await asyncio.sleep(0.6)
    adopted = [await store.queues.adopt_proposal("casual", "matches/1", 500) for _ in range(2)]
    assert adopted[0]
    assert (adopted[0].entries, adopted[1]) == (made.entries, None)
    assert await store.queues.adopt_proposal("casual", "matches/other", 0) is None


async def test_a_bot_picked_out_of_its_order_belongs_to_one_lobby_and_goes_back_to_its_place(
    store: Store,
) -> None:
    first = await store.queues.enter_queue("created", "matches/1")
    await store.queues.enter_queue("created", "matches/2")
    picked = await store.queues.propose_these("created", "matches/1")
    assert picked
    assert (picked.match, picked.entries) == ("matches/1", (first,))
    assert await store.queues.propose_these("created", "matches/1") is None
    assert await store.queues.dissolve_proposal("created", "matches/1", picked.entries)
    assert await store.queues.front_of("created", 2) == ["matches/1", "matches/2"]
