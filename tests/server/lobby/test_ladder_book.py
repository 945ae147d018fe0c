"""A ladder's book: the same whoever reads it and in however many pieces, and what is known of the absent."""

from __future__ import annotations

import asyncio
import random

from harness.ladder import recompute_ratings
from redis.asyncio import Redis

from seatwise_referee.games.registry import default_time_control
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.ladder.bot_form import rate_log
from seatwise_server.ladder.ladder_settings import Ladder
from seatwise_server.ladder.ladder_state import LadderState
from seatwise_server.store import Store, keys

LADDER = "ladders/main"


def bot(number: int) -> str:
    return f"bots/b{number}/versions/1"


def result(number: int, seats: tuple[int, ...] = (0, 1), *endings: str) -> LoggedResult:
    count = len(seats)
    ranks = tuple(range(1, count + 1))
    told = endings or ("COMPLETED",) * count
    return LoggedResult(0, f"matches/{number}", tuple(map(bot, seats)), ranks, ranks, told)


async def forfeit(store: Store, first: int, count: int, seat: int = 1) -> None:
    """So many matches in which bot 1, and nobody else, never sat."""
    endings = ["COMPLETED", "COMPLETED", "COMPLETED"]
    endings[seat] = "NEVER_SAT"
    for number in range(first, first + count):
        await store.results.append_result(LADDER, result(number, (0, 1, 2), *endings))


async def fresh(store: Store) -> LadderState:
    book = LadderState(store, LADDER)
    await book.catch_up()
    return book


async def test_a_book_that_grew_is_one_that_was_read_at_once(store: Store) -> None:
    chance, grown = random.Random(7), LadderState(store, LADDER)
    for number in range(120):
        if chance.random() < 0.1:
            await store.ladders.note_absence(LADDER, f"matches/void-{number}", [bot(chance.randrange(6))])
        if chance.random() < 0.05:
            await store.ladders.pardon_bot(LADDER, bot(chance.randrange(6)))
        seats = tuple(chance.sample(range(6), 3))
        endings = chance.choices(["COMPLETED", "TIMED_OUT"], [4, 3], k=3)
        await store.results.append_result(LADDER, result(number, seats, *endings))
        if chance.random() < 0.2:
            await grown.catch_up()
    await grown.catch_up()
    again = await fresh(store)
    assert (
        again.ratings.ranked_bots()
        == grown.ratings.ranked_bots()
        == rate_log(await store.results.read_results(LADDER)).ranked_bots()
    )
    assert again.off_reasons == grown.off_reasons
    assert all(again.forms.form_of(bot(number)) == grown.forms.form_of(bot(number)) for number in range(6))


async def test_two_that_read_at_the_same_time_read_nothing_twice(store: Store) -> None:
    for number in range(450):
        await store.results.append_result(LADDER, result(number))
    book = LadderState(store, LADDER)
    await asyncio.gather(*(book.catch_up() for _ in range(4)))
    assert book.seq == 450
    assert book.ratings.rating_of(bot(0)).matches == 450


async def test_three_forfeits_in_a_row_are_a_fault_until_it_is_pardoned(store: Store) -> None:
    await forfeit(store, 1, 2)
    assert (await fresh(store)).off_reasons == {}
    await forfeit(store, 3, 1)
    book = await fresh(store)
    assert list(book.off_reasons) == [bot(1)]
    await store.ladders.pardon_bot(LADDER, bot(1))
    await book.catch_up()
    assert book.off_reasons == (await fresh(store)).off_reasons == {}
    await forfeit(store, 10, 2)
    assert (await fresh(store)).off_reasons == {}
    await forfeit(store, 20, 1)
    assert list((await fresh(store)).off_reasons) == [bot(1)]


async def test_a_bot_that_asks_too_early_stays_off(store: Store) -> None:
    """Whatever its own call has noted: the log decides."""
    await forfeit(store, 1, 3)
    await store.ladders.pardon_bot(LADDER, bot(1), by_itself=True)
    assert list((await fresh(store)).off_reasons) == [bot(1)]


async def test_a_bot_that_never_sits_is_at_fault_though_the_matches_are_void(store: Store) -> None:
    for number in range(3):
        match = f"matches/{number}"
        await store.ladders.note_absence(LADDER, match, [bot(1)])
        await store.ladders.note_absence(LADDER, match, [bot(1)])  # delivered twice
        assert list((await fresh(store)).off_reasons) == [bot(1)] * (number == 2)
    assert (await fresh(store)).seq == 0


async def test_a_match_that_was_played_makes_good_for_an_absence(store: Store) -> None:
    for number in range(2):
        await store.ladders.note_absence(LADDER, f"matches/{number}", [bot(1)])
    await store.results.append_result(LADDER, result(9))
    await store.ladders.note_absence(LADDER, "matches/10", [bot(1)])
    assert (await fresh(store)).off_reasons == {}


async def test_a_new_edition_means_that_something_changed(store: Store) -> None:
    book = await fresh(store)
    seen = [book.revision]
    for change in (store.results.append_result(LADDER, result(1)), store.ladders.pardon_bot(LADDER, bot(0))):
        await change
        await book.catch_up()
        await book.catch_up()
        seen.append(book.revision)
    assert seen == sorted(set(seen))


async def test_a_result_that_a_failover_forgot_is_forgotten(store: Store, redis_client: Redis) -> None:
    for number in range(5):
        await store.results.append_result(LADDER, result(number))
    book = await fresh(store)
    await redis_client.delete(keys.results_log(LADDER), keys.results_places(LADDER))
    await store.results.append_result(LADDER, result(7, (2, 3)))
    await book.catch_up()
    assert book.seq == 1
    assert (
        book.ratings.ranked_bots()
        == recompute_ratings(await store.results.read_results(LADDER)).ranked_bots()
    )


def test_the_settings_of_a_ladder_are_written_and_read_back() -> None:
    ladder = Ladder(
        LADDER, "ugo", 3, {"rounds": 2}, default_time_control("ugo", bank_ms=7), owners_together=True
    )
    assert Ladder.from_bytes(ladder.to_bytes()) == ladder
    assert not ladder.pairing_rules.owners_apart
