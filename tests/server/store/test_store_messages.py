"""Commands of two turns of the loop share a message to Redis: each caller gets its own answers, errors and outages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from private_redis.redis_server import fresh_server
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from seatwise_server.embedded import EmbeddedRedis
from seatwise_server.store import RedisClient, new_client
from seatwise_server.store.redis.client import MOST_COMMANDS_A_MESSAGE, Command, SharedMessages

CALLERS = 50


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    """A new server for each test: one of them cuts its connections."""
    yield from fresh_server(tmp_path)


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The names of the commands of each message that is sent."""
    sent: list[list[str]] = []
    ask_redis = SharedMessages._ask_redis

    async def noting(shared: SharedMessages, commands: Sequence[Command]) -> Any:
        sent.append([str(words[0]) for words in commands])
        return await ask_redis(shared, commands)

    monkeypatch.setattr(SharedMessages, "_ask_redis", noting)
    return sent


async def test_callers_of_one_turn_share_a_message_and_get_their_own_answers(
    client: RedisClient, messages: list[list[str]]
) -> None:
    async def one(number: int) -> list[Any]:
        return await client.call_many([("SET", f"key{number}", number), ("GET", f"key{number}")])

    answers = await asyncio.gather(*map(one, range(CALLERS)), client.call("PING"))
    assert [answer[1] for answer in answers[:-1]] == [b"%d" % number for number in range(CALLERS)]
    assert answers[-1] is True
    assert len(messages) == 1


async def test_callers_of_the_next_turn_share_it_too(client: RedisClient, messages: list[list[str]]) -> None:
    async def one_turn_later() -> Any:
        await asyncio.sleep(0)
        return await client.call("INCR", "later")

    assert await asyncio.gather(client.call("INCR", "now"), one_turn_later()) == [1, 1]
    assert messages == [["INCR", "INCR"]]


async def test_a_large_message_is_divided_and_no_caller_is(
    client: RedisClient, messages: list[list[str]]
) -> None:
    many = [("SET", "key", number) for number in range(3 * MOST_COMMANDS_A_MESSAGE)]
    few = [("INCR", "other")] * (MOST_COMMANDS_A_MESSAGE - 1)
    [set_all, counted, counted_on] = await asyncio.gather(*map(client.call_many, (many, few, few)))
    assert (len(set_all), sorted(counted + counted_on)) == (len(many), list(range(1, 2 * len(few) + 1)))
    assert sorted(map(len, messages)) == sorted([len(many), len(few), len(few)])


async def test_an_error_is_told_to_the_caller_whose_command_it_was(client: RedisClient) -> None:
    bad = client.call_many([("SET", "text", "x"), ("INCR", "text"), ("SET", "after", "y")])
    good = client.call("INCR", "number")
    failed, counted = await asyncio.gather(bad, good, return_exceptions=True)
    assert isinstance(failed, ResponseError)
    assert counted == 1
    assert await client.call("GET", "after") == b"y", "commands behind the bad one were executed too"


async def test_a_caller_that_is_cancelled_takes_nothing_from_the_others(client: RedisClient) -> None:
    cancelled = asyncio.create_task(client.call("INCR", "number"))
    other = asyncio.create_task(client.call("INCR", "other"))
    await asyncio.sleep(0)
    cancelled.cancel()
    assert await other == 1
    with pytest.raises(asyncio.CancelledError):
        await cancelled


async def test_a_message_that_was_cut_off_is_repeated_for_all_its_callers(
    client: RedisClient, redis_client: Redis
) -> None:
    await client.call("PING")
    calls = [asyncio.create_task(client.call("SET", f"key{number}", 1)) for number in range(CALLERS)]
    await redis_client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")  # type: ignore[no-untyped-call]
    assert await asyncio.gather(*calls) == [True] * CALLERS


async def test_a_client_that_is_closed_leaves_no_message_under_way(redis_server: EmbeddedRedis) -> None:
    client = new_client(redis_server.url)
    callers = [asyncio.create_task(client.call("PING")) for _ in range(CALLERS)]
    await asyncio.sleep(0)
    await client.close_connections()
    await asyncio.wait(callers)
    assert not client._messages._under_way  # type: ignore[attr-defined]
    assert all(caller.cancelled() for caller in callers)


async def test_a_message_that_ends_early_leaves_no_answer_for_the_next_one(
    client: RedisClient, redis_client: Redis
) -> None:
    messages = client._messages  # type: ignore[attr-defined]
    asking = asyncio.create_task(messages._ask_redis([("BLPOP", "empty", 0), ("GET", "other")]))

    async def blocked(count: int) -> None:
        async with asyncio.timeout(30):
            while (await redis_client.info("clients"))["blocked_clients"] != count:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    await blocked(1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await blocked(0)
    assert await client.call("SET", "key", 1) is True


async def test_a_message_that_is_cancelled_while_it_hangs_up_gives_its_connection_back(
    client: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = client._messages  # type: ignore[attr-defined]
    pool = messages._redis.connection_pool
    await client.call("PING")
    [connection] = pool._available_connections
    hang_up = connection.disconnect

    async def cancelled() -> None:
        await hang_up()
        raise asyncio.CancelledError

    async def cut_off(**_: object) -> None:
        raise ConnectionResetError

    monkeypatch.setattr(connection, "read_response", cut_off)
    monkeypatch.setattr(connection, "disconnect", cancelled)
    with pytest.raises(asyncio.CancelledError):
        await messages._ask_redis([("PING",)])
    assert not pool._in_use_connections
