"""Whatever a bot does wrong, it is told why, and nobody else waits for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from harness import (
    IMPATIENT,
    Chair,
    bystanders,
    dealt,
    endings,
    field_of,
    item,
    legal_move,
    plays_on,
    refusal_of,
    submission,
)

from seatwise.games.ugo.v1 import ugo_pb2
from seatwise.v1 import bot_service_pb2, play_service_pb2

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("both_doors")]

Sit = play_service_pb2.Sit


# Tokens


@pytest.mark.not_by_http("an attendance over HTTP opens with its first message")
@pytest.mark.parametrize(
    "token",
    ["nonsense", "a.1.secret", "bot.", "..", "admin.x", "bots/a/versions/1", "x" * 4000],
    ids=lambda token: token[:10],
)
async def test_an_unknown_token_opens_no_door(house, token):
    wire = house.wire(token)
    assert (await wire.play().end()).reason == "TOKEN_UNKNOWN"
    assert (await wire.attending().end()).reason == "TOKEN_UNKNOWN"
    listing = wire.bots.ListBots(bot_service_pb2.ListBotsRequest(), metadata=wire.metadata)
    refused = await refusal_of(listing)
    assert (refused.code, refused.reason) == ("UNAUTHENTICATED", "TOKEN_UNKNOWN")


async def test_the_right_name_with_another_secret_is_an_unknown_token(house):
    bot, other = await house.bot(), await house.bot()
    name, version, _ = bot.token.split(".")
    forged = house.wire(".".join((name, version, other.token.split(".")[2])))
    assert (await forged.play().end()).reason == "TOKEN_UNKNOWN"


@pytest.mark.not_by_http("an attendance over HTTP opens with its first message")
async def test_a_seat_that_shows_no_token_is_told_how(house):
    wire = house.wire()
    for how in (await wire.play().end(), await wire.attending().end()):
        assert (how.code, how.reason) == ("UNAUTHENTICATED", "TOKEN_MISSING")
        assert "authorization: Bearer" in how.message


async def test_a_revoked_token_ends_its_streams_within_a_second_and_opens_no_others(house):
    async with house.table(2, **IMPATIENT, max_strikes=1) as table:
        await table.sit()
        revoked, other = table.chairs
        attending = await revoked.wire.attend()
        playing = asyncio.create_task(other.play_out())
        began = time.monotonic()
        await house.admin.revoke(revoked.wire.bot)
        hows = await asyncio.gather(revoked.stream.end(), attending.end())
        assert time.monotonic() - began < 1
        assert {(how.code, how.reason) for how in hows} == {("UNAUTHENTICATED", "TOKEN_REVOKED")}
        assert (await revoked.wire.play().end()).reason == "TOKEN_REVOKED"
        await playing
        assert endings(await house.admin.over(table.name))[other.seat] == "COMPLETED"


@pytest.mark.not_by_http(
    "the relay reads in place of the bot; test_rest_hostile.py has callers that do not read"
)
async def test_a_revoked_token_ends_streams_that_are_not_read_too(house):
    bot = await house.bot()
    stream, attending = bot.play(reads=False, pongs=False), await bot.attend()
    await stream.send_raw(b"\xff")
    await house.admin.revoke(bot.bot)
    assert (await attending.end(within_s=1)).reason == "TOKEN_REVOKED"
    await stream.read()
    assert stream.how.reason == "TOKEN_REVOKED"


async def test_a_rotated_token_ends_the_streams_of_the_old_one(house):
    bot = await house.bot()
    stream = bot.play()
    await stream.send(item("matches/none", 0, resign=play_service_pb2.Resign()))
    await stream.receive("matches/none", 0)
    answer = await house.admin.bots.RotateToken(
        bot_service_pb2.RotateTokenRequest(name=bot.bot), metadata=house.admin.metadata
    )
    assert (await stream.end(within_s=1)).reason == "TOKEN_REVOKED"
    assert (await bot.play().end()).reason == "TOKEN_UNKNOWN"
    await house.wire(answer.token, bot.bot).attend()


# Seats


@pytest.mark.parametrize(
    "action", [{"sit": Sit()}, {"resign": play_service_pb2.Resign()}, {"submit_move": submission(1, None)}]
)
async def test_a_seat_that_is_not_its_own_is_refused(house, action):
    async with dealt(house) as (table, _, _):
        stranger = (await house.bot()).play()
        for match, seat in ((table.name, 0), (table.name, 1), (table.name, 2), (table.name, -1)):
            await stranger.send(item(match, seat, **action))
            found = await stranger.receive(match, seat)
            assert found.move_rejected.reason == play_service_pb2.MoveRejected.REASON_NOT_YOUR_SEAT
        await plays_on(house, table)


@pytest.mark.parametrize("match", ["matches/none", "", "nonsense", "x" * 5000, "bots/a/versions/1"], ids=len)
async def test_a_match_that_does_not_exist_is_nobodys(house, match):
    stream = (await house.bot()).play()
    await stream.send(item(match, 0, sit=Sit()))
    found = await stream.receive(match[:64], 0)
    assert found.move_rejected.reason == play_service_pb2.MoveRejected.REASON_NOT_YOUR_SEAT


async def test_sitting_down_again_shows_the_seat_its_view_again(house):
    async with dealt(house) as (table, asked, _):
        first = asked.last
        await asked.sit(asked.stream)
        again = await asked.asked()
        assert (again.prompt, again.ugo) == (first.prompt, first.ugo)
        await plays_on(house, table)


async def test_a_second_stream_of_a_bot_replaces_the_first(house):
    async with dealt(house) as (table, asked, _):
        older = asked.stream
        await asked.sit()
        how = await older.end()
        assert (how.code, how.reason) == ("ABORTED", "REPLACED")
        await asked.asked()
        await plays_on(house, table)


# Moves


CARD = ugo_pb2.Move(play=ugo_pb2.CARD_R0)
OTHER_GAME = b"\x8a\x01\x00"
"""Field 17 of a move, which no game has."""


async def answer(seats: Any, move: ugo_pb2.Move | None = CARD, **fields: Any) -> None:
    await seats.asked.submit(move, **fields)


async def sit_elsewhere(seats: Any) -> None:
    seats.asked = Chair(seats.other.wire, seats.table.name, seats.asked.seat)
    await seats.asked.sit(seats.other.stream)


async def move_unseated(seats: Any) -> None:
    seats.asked.stream = seats.asked.wire.play()
    await seats.asked.move()


async def answer_after_the_end(seats: Any) -> None:
    await seats.table.play_out()
    await seats.asked.submit(CARD)


async def answer_twice(seats: Any) -> None:
    prompt = seats.asked.last.prompt
    await seats.asked.move()
    await seats.asked.expect("move_accepted")
    await seats.asked.submit(CARD, prompt=prompt)


async def answer_for_the_other(seats: Any) -> None:
    prompt, seats.asked = seats.asked.last.prompt, seats.other
    await seats.asked.submit(CARD, prompt)


async def answer_late(seats: Any) -> None:
    prompt = seats.asked.last.prompt
    await seats.other.asked()
    await seats.asked.submit(CARD, prompt)


async def play_another_game(seats: Any) -> None:
    body = submission(seats.asked.last.prompt, None).SerializeToString() + OTHER_GAME
    head = item(seats.table.name, seats.asked.seat).SerializeToString()
    await seats.asked.stream.send_raw(field_of(1, head + field_of(4, body)))


REFUSED: dict[str, tuple[Callable[[Any], Awaitable[None]], str]] = {
    "the seat across the table": (sit_elsewhere, "NOT_YOUR_SEAT"),
    "a stream that has not sat down": (move_unseated, "NOT_SEATED"),
    "after the end": (answer_after_the_end, "MATCH_OVER"),
    "a prompt that was answered": (answer_twice, "STALE"),
    "a prompt of another": (answer_for_the_other, "NOT_ASKED"),
    "another game": (play_another_game, "WRONG_GAME"),
    "nothing": (lambda it: it.asked.say(), "MALFORMED"),
    "a short nonce": (lambda it: it.asked.sit(it.asked.stream, nonce=bytes(31)), "MALFORMED"),
    "a long nonce": (lambda it: it.asked.sit(it.asked.stream, nonce=bytes(100_000)), "MALFORMED"),
    **{f"prompt {number}": (partial(answer, prompt=number), "STALE") for number in (-1, 0, 2, 2**31 - 1)},
    **{f"move {number}": (partial(answer, move=move), "MALFORMED") for number, move in enumerate([
        None, ugo_pb2.Move(), ugo_pb2.Move(play=ugo_pb2.CARD_UNSPECIFIED), ugo_pb2.Move(play=46), ugo_pb2.Move(play=-1),
        ugo_pb2.Move(arrange=ugo_pb2.Arrange(cards=[0, 99])), ugo_pb2.Move(arrange=ugo_pb2.Arrange(cards=[1] * 10_000)),
    ])},
    **{f"request {text[:3]!r} of {len(text)}": (partial(answer, request_id=text), "MALFORMED") for text in (
        "", "x" * 65, "x" * 100_000, "\x1b[2J",
    )},
}  # fmt: skip
"""What a seat sends, and why it is refused. The seat may still play on."""


@pytest.mark.parametrize("name", REFUSED)
async def test_an_item_that_cannot_be_carried_out_is_refused_with_its_reason(house, name):
    send, reason = REFUSED[name]
    async with dealt(house) as (table, asked, other):
        seats = SimpleNamespace(table=table, asked=asked, other=other)
        await send(seats)
        assert await seats.asked.rejected() == reason
        assert len(seats.asked.rejections[-1].request_id) <= 64
        if name == "a stream that has not sat down":
            await asked.sit(asked.stream)
            await asked.asked()
        if reason != "MATCH_OVER":
            await plays_on(house, table)


async def test_an_answer_after_its_time_is_too_late(house):
    async with dealt(house, **IMPATIENT) as (table, asked, other):
        await answer_late(SimpleNamespace(asked=asked, other=other))
        assert await asked.rejected() == "TOO_LATE"
        await table.play_out()
        await house.admin.record(table.name)


async def test_a_seat_that_sits_down_after_the_end_is_told_the_end(house):
    async with dealt(house) as (table, asked, _):
        [told, _] = await table.play_out()
        await house.admin.over(table.name)
        await asked.sit()
        again = await asked.expect("match_ended")
        assert (again.result, again.seed) == (told.result, told.seed)


async def test_a_repeat_of_a_request_is_answered_as_the_first_was(house):
    async with dealt(house) as (table, asked, _):
        prompt, request_id = asked.last.prompt, await asked.move()
        first = await asked.expect("move_accepted")
        await asked.submit(ugo_pb2.Move(play=ugo_pb2.CARD_R0), prompt, request_id)
        again = await asked.expect("move_accepted")
        assert (again.request_id, again.charged_ms) == (first.request_id, first.charged_ms)
        await plays_on(house, table)


async def test_no_seat_is_asked_before_the_deal(house):
    async with house.table(2) as table:
        early, late = table.chairs
        await early.sit()
        assert not (await early.expect("update")).HasField("ugo")
        await early.submit(ugo_pb2.Move(play=ugo_pb2.CARD_R0), 1)
        assert await early.rejected() == "NOT_ASKED"
        await late.sit()
        await plays_on(house, table)


async def test_a_card_that_is_not_held_is_illegal_and_the_reason_tells_of_no_other_hand(house):
    async with dealt(house) as (table, asked, _):
        held = set(asked.last.ugo.hand)
        await asked.submit(ugo_pb2.Move(play=min(set(range(1, 46)) - held)))
        assert await asked.rejected() == "ILLEGAL"
        said = asked.rejections[-1].message
        assert all(card_text(card) in said for card in held)
        assert said.count(",") == len(held) - 1
        await plays_on(house, table)


def card_text(number: int) -> str:
    return "RBGYK"[(number - 1) // 9] + str((number - 1) % 9)


async def test_a_card_that_does_not_follow_is_illegal(house):
    async with house.table(2, rounds=8) as table:
        await table.sit()
        one, other = table.chairs
        playing = asyncio.create_task(other.play_out())
        view = (await one.asked("card")).ugo
        while len(view.legal_cards) == len(view.hand):
            await one.move()
            view = (await one.asked("card")).ugo
        wrong = min(set(view.hand) - set(view.legal_cards))
        await one.submit(ugo_pb2.Move(play=wrong))
        assert await one.rejected() == "ILLEGAL"
        await asyncio.gather(one.play_out(), playing)
        await house.admin.record(table.name)


async def test_an_arrangement_of_other_cards_than_the_won_ones_is_illegal(house):
    async with house.table(2, rounds=8) as table:
        await table.sit()
        one, other = table.chairs
        playing = asyncio.create_task(other.play_out())
        won = list((await one.asked("arrange")).ugo.won_cards)
        foreign = min(set(range(1, 46)) - set(won))
        for cards in ([], won[1:], [*won, foreign], [foreign, *won[1:]], [won[0]] * len(won), [*won, *won]):
            await one.submit(ugo_pb2.Move(arrange=ugo_pb2.Arrange(cards=cards)))
            assert await one.rejected() == "ILLEGAL"
        await one.submit(ugo_pb2.Move(play=won[0]))
        assert await one.rejected() == "ILLEGAL"
        await asyncio.gather(one.play_out(), playing)
        await house.admin.record(table.name)


async def test_too_many_illegal_moves_forfeit_the_seat_and_the_others_play_on(house):
    async with dealt(house, 3, max_rejections=3) as (table, asked, _):
        for _ in range(3):
            await asked.submit(ugo_pb2.Move(arrange=ugo_pb2.Arrange()))
            assert await asked.rejected() == "ILLEGAL"
        await table.play_out()
        match = await house.admin.over(table.name)
        assert endings(match).count("COMPLETED") == 2
        assert endings(match)[asked.seat] == "ILLEGAL_MOVES"
        await house.admin.record(table.name)


async def test_a_resigned_seat_is_played_by_the_referee_and_asked_no_more(house):
    async with dealt(house, 3) as (table, asked, _):
        await asked.say(resign=play_service_pb2.Resign())
        await table.play_out()
        assert endings(await house.admin.over(table.name))[asked.seat] == "RESIGNED"
        await house.admin.record(table.name)


# Payloads


@pytest.mark.not_by_http("these bytes have no form in HTTP: a post of them is refused")
async def test_broken_items_are_answered_and_the_good_ones_among_them_count(house):
    async with dealt(house) as (table, asked, _):
        good = [
            item(table.name, asked.seat, submit_move=submission(asked.last.prompt, legal_move(asked.last, asked.chance), "good")),
            item("matches/none", 3, resign=play_service_pb2.Resign()),
        ]  # fmt: skip
        asked._asked_for["good"] = asked.last.prompt
        broken = field_of(1, b"\xff\xff\xff"), field_of(1, b"\x0a\x05abc")
        parts = [broken[0], field_of(1, good[0].SerializeToString()), broken[1],
                 field_of(1, good[1].SerializeToString()), b"\xff\xff"]  # fmt: skip
        await asked.stream.send_raw(b"".join(parts))
        assert (await asked.expect("move_accepted")).request_id == "good"
        for _ in range(3):
            assert (
                await asked.stream.receive()
            ).move_rejected.reason == play_service_pb2.MoveRejected.REASON_MALFORMED
        assert (await asked.stream.receive("matches/none", 3)).move_rejected
        await plays_on(house, table)


@pytest.mark.not_by_http(
    "in JSON the body is larger than a post may be; test_rest_hostile.py has bodies of that size"
)
async def test_a_message_of_ten_mebibytes_ends_its_own_stream_only(house):
    async with bystanders(house), dealt(house) as (table, asked, _):
        await asked.stream.send_raw(bytes(10 * 2**20))
        # A WebSocket that is closed while its client still writes may be gone before the client reads why.
        assert (await asked.stream.end()).code in ("RESOURCE_EXHAUSTED", "CANCELLED")
        await asked.sit()
        await asked.asked()
        await plays_on(house, table)
