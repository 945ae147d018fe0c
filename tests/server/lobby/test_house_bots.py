"""The house's bots are a convenience: whatever keeps them from starting keeps no match from going on."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from asyncio.subprocess import PIPE
from typing import Any

import pytest
from harness import House

from seatwise import child_process
from seatwise.kits.race_steps import Thought
from seatwise.kits.ubongo.samples import LONGEST_LOOK_MS, LOOK_STEP_MS, PatientBuilder
from seatwise.ubongo import Call, OfferEnd
from seatwise.v1 import bot_pb2
from seatwise_referee.game import Seat
from seatwise_referee.games.registry import GAMES
from seatwise_server import house, house_process
from seatwise_server.store import Store


async def test_house_bots_that_cannot_be_started_are_tried_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0
    started = asyncio.Event()

    async def fails_once(*_: object) -> int:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        started.set()
        return await asyncio.Future()

    monkeypatch.setattr(child_process, "FIRST_START_PAUSE_S", 0.0)
    monkeypatch.setattr(house, "_run_process", fails_once)
    running = asyncio.create_task(house.run_house_bots(store, house.HouseLink("localhost:1"), "me"))
    async with asyncio.timeout(10):
        await started.wait()
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()


@pytest.mark.parametrize("owner", [house.OWNER, "owners/joan"], ids=["deleted", "an-owner's"])
async def test_a_house_bot_that_was_deleted_or_is_an_owners_is_left_out_and_the_others_play(
    store: Store, monkeypatch: pytest.MonkeyPatch, owner: str
) -> None:
    """By an earlier version, which refused that only where it ran the bot itself."""
    gone, *others = [each for each in house.DEFAULT_HOUSE if each.sample not in house.SEARCHING]
    started: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()

    async def note_players(_: object, players: list[dict[str, Any]]) -> int:
        started.set_result([each["sample"] for each in players])
        return await asyncio.Future()

    monkeypatch.setattr(house, "_run_process", note_players)
    await store.bots.register_bot(gone.name, "1", owner, "")
    if owner == house.OWNER:
        await store.bots.delete_bot(gone.bot)
    running = asyncio.create_task(house.run_house_bots(store, house.HouseLink("localhost:1"), "me"))
    async with asyncio.timeout(30):
        assert await started == [each.sample for each in others]
    running.cancel()
    await asyncio.wait({running})


@pytest.mark.asyncio(loop_scope="session")
async def test_a_house_bot_whose_token_is_revoked_ends_its_process_with_a_sentence_and_no_traceback(
    module_house: House,
) -> None:
    player = {"game": "ugo", "sample": "greedy", "is_paced": False, "token": "of-nobody"}
    link = {"address": module_house.address, "insecure": False, "tls_pin": None}
    told = {"link": link, "players": [player], "search_share": None}
    with child_process.open_child("seatwise_server.house_process", stderr=PIPE) as process:
        assert process.stdin
        assert process.stderr
        print(json.dumps(told), file=process.stdin, flush=True)  # it stays open: the process ends by itself
        said = await asyncio.to_thread(process.stderr.read)
    assert process.returncode == 1
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith("the house bots end, and start again: ")


async def test_house_bots_that_search_say_so_unless_somebody_has_said_another_kind(store: Store) -> None:
    searching, greedy = (
        next(
            each
            for each in (*house.OTHER_HOUSE, *house.DEFAULT_HOUSE)
            if (each.sample in house.SEARCHING) == searches
        )
        for searches in (True, False)
    )
    for each in (searching, greedy):
        await house._token(store, each)
    assert await store.bots.kinds_of([searching.bot, greedy.bot]) == (bot_pb2.BOT_KIND_SEARCH, 0)
    await store.bots.set_kind(searching.bot, bot_pb2.BOT_KIND_LEARNED)
    await house._token(store, searching)
    assert await store.bots.kinds_of([searching.bot]) == (bot_pb2.BOT_KIND_LEARNED,)


async def test_a_paced_bot_takes_as_long_as_it_says_so_that_a_person_can_play(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The patient builder lays one card more each time, and thinks for some seconds before each."""
    slept: list[float] = []

    async def note_sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(house_process.asyncio, "sleep", note_sleep)
    ubongo = GAMES["ubongo"]
    view = ubongo.view(ubongo.deal(2, bytes(32), ubongo.complete_options({})), Seat(0))
    bot = house_process.pace_thoughts(PatientBuilder, "build")()
    yielded = [each async for each in bot.build(view)]
    laid = [each for each in yielded if not isinstance(each, Thought | Call | OfferEnd)]
    assert [len(each) for each in laid] == list(range(1, len(laid) + 1))
    assert isinstance(yielded[-1], Call) is (len(laid) >= 7)
    assert set(slept) == {LOOK_STEP_MS / 1000}
    assert 5 * len(laid) < sum(slept) < LONGEST_LOOK_MS / 1000 * len(laid)
