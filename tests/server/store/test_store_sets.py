"""Sets of duplicate deals in the store: who joins, and when a set is over."""

from __future__ import annotations

from typing import Any

import pytest

from seatwise_server.store import SetOfDeals, Store
from seatwise_server.store.errors import SetRefused
from seatwise_server.store.keeping import end_call
from seatwise_server.store.redis import scripts

NAME = "sets/one"
SEED = bytes(range(32))


async def join(
    store: Store, number: int, match: str, size: int = 2, kind: str = "ugo", seed: bytes = SEED
) -> bytes:
    return await store.sets.join_set(NAME, number, match, size, kind, seed)


async def end(store: Store, number: int, match: str, state: str = "FINISHED") -> bool:
    [answer] = await scripts.run_in_order(store.client, end_call(NAME, number, match, state))
    return bool(answer == 1)


async def refused(store: Store, *args: Any, **more: Any) -> tuple[str, str]:
    with pytest.raises(SetRefused) as error:
        await join(store, *args, **more)
    return error.value.reason, error.value.instead


async def test_the_first_match_makes_the_set_and_its_seed(store: Store) -> None:
    assert await join(store, 1, "matches/a") == SEED
    assert await join(store, 2, "matches/b", seed=bytes(32)) == SEED
    assert await store.sets.get_set(NAME) == SetOfDeals(
        2, ("matches/a", "matches/b"), is_over=False, awaited=("matches/a", "matches/b")
    )


async def test_a_repeat_has_the_same_answer_even_when_the_set_is_over(store: Store) -> None:
    await join(store, 1, "matches/a", size=1)
    await end(store, 1, "matches/a")
    assert await join(store, 1, "matches/a", size=1, seed=bytes(32)) == SEED


async def test_a_match_that_does_not_fit_does_not_join(store: Store) -> None:
    await join(store, 1, "matches/a")
    assert await refused(store, 1, "matches/b") == ("TAKEN", "matches/a")
    assert await refused(store, 2, "matches/b", size=3) == ("SIZE", "2")
    assert await refused(store, 2, "matches/b", kind="ubongo") == ("KIND", "ugo")
    found = await store.sets.get_set(NAME)
    assert found
    assert found.matches == ("matches/a",)


async def test_a_set_is_over_with_its_last_match_and_not_by_a_repeat(store: Store) -> None:
    await join(store, 1, "matches/a")
    assert not await end(store, 1, "matches/a")
    assert not await end(store, 1, "matches/a")
    await join(store, 2, "matches/b")
    assert not await store.sets.is_over(NAME)
    assert await end(store, 2, "matches/b", "VOIDED")
    assert await store.sets.is_over(NAME)
    assert await end(store, 2, "matches/b", "VOIDED")
    assert await refused(store, 2, "matches/c") == ("OVER", "")


async def test_a_voided_number_is_played_again_while_the_set_runs(store: Store) -> None:
    await join(store, 1, "matches/a")
    await end(store, 1, "matches/a", "VOIDED")
    await join(store, 1, "matches/again")
    await join(store, 1, "matches/again")
    await join(store, 2, "matches/b")
    assert not await end(store, 1, "matches/a", "VOIDED")  # a repeat that comes late
    assert not await end(store, 2, "matches/b")
    assert await end(store, 1, "matches/again")


async def test_a_finished_number_is_not_played_again(store: Store) -> None:
    await join(store, 1, "matches/a")
    await end(store, 1, "matches/a")
    assert await refused(store, 1, "matches/b") == ("TAKEN", "matches/a")


async def test_a_closed_set_is_over_with_those_that_have_joined(store: Store) -> None:
    await join(store, 1, "matches/a", size=5)
    assert await store.sets.close_set(NAME, 60) is False
    assert await refused(store, 2, "matches/b", size=5) == ("OVER", "")
    assert await end(store, 1, "matches/a")
    assert await store.sets.close_set(NAME, 60) is True


async def test_a_set_that_nobody_knows_is_not_over(store: Store) -> None:
    assert not await store.sets.is_over("sets/none")
    assert await store.sets.get_set("sets/none") is None
    assert await store.sets.close_set("sets/none", 60) is None
