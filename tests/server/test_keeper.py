"""Only good tokens open anything, and a stream ends when its token is taken away, whenever that happens."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from virtual import in_virtual_time

from seatwise_server.refusal import Refusal
from seatwise_server.rpc.keeper import Caller, Keeper
from seatwise_server.store.errors import StoreUnavailable, TokenRefused

ADMIN = "admin-token"
ANN, BOB = "token-of-ann", "token-of-bob"


class FakeBots:
    """Tokens of the form token-of-<name>, until they are refused."""

    def __init__(self) -> None:
        self.refused: dict[str, str] = {}
        self.revision = 0
        self.asked = 0
        self.is_away = False

    async def authenticate(self, token: str) -> Any:
        self.asked += 1
        await self._reach()
        if token in self.refused or not token.startswith("token-of-"):
            raise TokenRefused(self.refused.get(token, "UNKNOWN"))
        return SimpleNamespace(bot=f"bots/{token.removeprefix('token-of-')}/versions/1")

    async def tokens_revision(self) -> int:
        await self._reach()
        return self.revision

    def refuse(self, token: str, reason: str = "REVOKED") -> None:
        self.refused[token] = reason
        self.revision += 1

    async def _reach(self) -> None:
        await asyncio.sleep(0.001)
        if self.is_away:
            raise StoreUnavailable("gone")


class FakeStream:
    """Keeps why it was ended."""

    def __init__(self) -> None:
        self.why: Refusal | None = None

    def end(self, why: Refusal | None) -> None:
        self.why = self.why or why

    @property
    def reason(self) -> str | None:
        return self.why and self.why.reason


def keeper(bots: FakeBots | None = None) -> Keeper:
    return Keeper(bots or FakeBots(), ADMIN)  # type: ignore[arg-type]


def context(*metadata: tuple[str, str]) -> Any:
    return SimpleNamespace(invocation_metadata=lambda: metadata)


def bearing(token: str) -> Any:
    return context(("authorization", f"Bearer {token}"))


async def reason_of(asked: Any) -> str:
    with pytest.raises(Refusal) as refused:
        await asked
    return refused.value.reason


# --- Callers --------------------------------------------------------------------------------------------


@in_virtual_time
async def test_callers_are_known_by_their_token() -> None:
    assert await keeper().caller(bearing(ANN)) == Caller("bots/ann/versions/1", ANN)
    assert await keeper().caller(bearing(ADMIN)) == Caller("", ADMIN, is_admin=True)
    assert (await keeper().caller(context(("authorization", f"bearer  {ANN} ")))).token == ANN


@pytest.mark.parametrize(
    "metadata",
    [
        (),
        (("authorization", ""),),
        (("authorization", ANN),),
        (("authorization", f"Basic {ANN}"),),
        (("token", ANN),),
    ],
)
@in_virtual_time
async def test_without_a_token_nobody_is_anybody(metadata: tuple[tuple[str, str], ...]) -> None:
    assert await reason_of(keeper().caller(context(*metadata))) == "TOKEN_MISSING"


@in_virtual_time
async def test_bad_tokens_are_refused_for_what_they_are() -> None:
    bots = FakeBots()
    bots.refuse(BOB)
    assert await reason_of(keeper(bots).caller(bearing("nonsense"))) == "TOKEN_UNKNOWN"
    assert await reason_of(keeper(bots).caller(bearing(ADMIN[:-1]))) == "TOKEN_UNKNOWN"
    assert await reason_of(keeper(bots).caller(bearing(BOB))) == "TOKEN_REVOKED"


@in_virtual_time
async def test_seats_are_for_bots_and_the_rest_for_admins() -> None:
    assert (await keeper().bot(bearing(ANN))).bot == "bots/ann/versions/1"
    assert await reason_of(keeper().bot(bearing(ADMIN))) == "NOT_ALLOWED"
    assert (await keeper().admin(bearing(ADMIN))).is_admin
    assert await reason_of(keeper().admin(bearing(ANN))) == "NOT_ALLOWED"


@in_virtual_time
async def test_reading_needs_no_token_but_a_wrong_one_is_told() -> None:
    await keeper().anybody(context())
    await keeper().anybody(bearing(ANN))
    assert await reason_of(keeper().anybody(bearing("nonsense"))) == "TOKEN_UNKNOWN"


# --- Open streams ---------------------------------------------------------------------------------------


@in_virtual_time
async def test_streams_of_a_token_that_is_taken_away_end_within_a_second() -> None:
    bots, streams = FakeBots(), [FakeStream() for _ in range(3)]
    house = keeper(bots)
    task = asyncio.create_task(house.watch())
    tokens = (ANN, ANN, BOB)
    callers = [await house.bot(bearing(token)) for token in tokens]
    with (
        house.open(callers[0], streams[0]),
        house.open(callers[1], streams[1]),
        house.open(callers[2], streams[2]),
    ):
        await asyncio.sleep(5)
        bots.refuse(ANN, "UNKNOWN")
        await asyncio.sleep(0.9)
        assert [stream.reason for stream in streams] == ["TOKEN_REVOKED", "TOKEN_REVOKED", None]
    task.cancel()


@in_virtual_time
async def test_a_token_that_goes_while_its_stream_opens_is_noticed() -> None:
    """Its last change came between the reading of the token and the opening of the stream."""
    bots, stream = FakeBots(), FakeStream()
    house = keeper(bots)
    task = asyncio.create_task(house.watch())
    caller = await house.bot(bearing(ANN))
    bots.refuse(ANN)
    await asyncio.sleep(5)
    with house.open(caller, stream):
        await asyncio.sleep(0.9)
        assert stream.reason == "TOKEN_REVOKED"
    task.cancel()


@in_virtual_time
async def test_while_nothing_changes_no_token_is_read_again() -> None:
    bots = FakeBots()
    house = keeper(bots)
    task = asyncio.create_task(house.watch())
    caller = await house.bot(bearing(ANN))
    with house.open(caller, FakeStream()):
        await asyncio.sleep(3600)
    assert bots.asked <= 3
    task.cancel()


@in_virtual_time
async def test_a_change_while_the_store_is_away_is_noticed_when_it_is_back() -> None:
    bots, stream = FakeBots(), FakeStream()
    house = keeper(bots)
    task = asyncio.create_task(house.watch())
    caller = await house.bot(bearing(ANN))
    with house.open(caller, stream):
        await asyncio.sleep(5)
        bots.is_away = True
        bots.refuse(ANN)
        await asyncio.sleep(5)
        assert stream.reason is None
        bots.is_away = False
        await asyncio.sleep(0.9)
        assert stream.reason == "TOKEN_REVOKED"
    task.cancel()


@in_virtual_time
async def test_a_stream_that_has_ended_is_forgotten() -> None:
    bots, stream = FakeBots(), FakeStream()
    house = keeper(bots)
    with house.open(await house.bot(bearing(ANN)), stream):
        pass
    bots.refuse(ANN)
    task = asyncio.create_task(house.watch())
    await asyncio.sleep(5)
    house.end_all(Refusal("SERVER_STOPPING", "stop"))
    assert stream.why is None
    task.cancel()


@in_virtual_time
async def test_all_streams_are_told_when_the_server_stops() -> None:
    house, streams = keeper(), [FakeStream(), FakeStream()]
    callers = [await house.bot(bearing(token)) for token in (ANN, BOB)]
    with house.open(callers[0], streams[0]), house.open(callers[1], streams[1]):
        house.end_all(Refusal("SERVER_STOPPING", "stop"))
    assert [stream.reason for stream in streams] == ["SERVER_STOPPING"] * 2
