"""Ubongo at the wire: whatever a builder does wrong, it is told why, and the others build on."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from harness import Chair, House, Table, house_in, in_memory
from harness.ubongo import CALL, best, build, building, builds_on, builds_out, lay, offer, view_of

from seatwise.games.ubongo.v1 import ubongo_pb2
from seatwise.games.ugo.v1 import ugo_pb2
from seatwise.kits.ubongo.codec import decode_view
from seatwise.kits.ubongo.text import describe_view
from seatwise.v1 import play_service_pb2
from seatwise_referee.games.ubongo import BOUND, GOAL, UbongoView
from seatwise_referee.race_prompt import MOST_LAYS_A_SECOND
from seatwise_server.house import house_bots

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("both_doors")]

FARTHER_S = 0.15
"""What comes so much later is charged more, however far away this machine makes the two look."""


def layout(cards: list[int], xs: list[int], ys: list[int], turns: list[int]) -> ubongo_pb2.Move:
    return ubongo_pb2.Move(lay=ubongo_pb2.Layout(cards=cards, xs=xs, ys=ys, turns=turns))


async def test_a_round_is_won_by_who_calls_and_all_see_what_was_laid(house):
    async with building(house, rounds=2) as table:
        one, other = table.chairs
        cards = best(one)
        await build(other, lay(best(other)[:3]))
        await asyncio.sleep(FARTHER_S)
        await build(one, lay(cards), CALL)
        await one.expect("move_accepted")
        for chair in table.chairs:
            await chair.asked("build")
            view = view_of(chair)
            assert view.points == ((10, 3),)
            assert [len(each.layout) for each in view.last_round] == [len(cards), 3]
            assert [each.has_called for each in view.last_round] == [True, False]
        await builds_on(house, table)


@pytest.mark.parametrize(
    ("move", "why"),
    [
        (layout([0], [0], [0], [0]), "lay.cards[0]: 0 is no card; they are 1 to 108"),
        (layout([109], [0], [0], [0]), "lay.cards[0]: 109 is no card; they are 1 to 108"),
        (layout([1] * 2_000, [0] * 2_000, [0] * 2_000, [0] * 2_000), "this layout names 2000"),
        (layout([1, 2], [0], [0], [0]), "as many numbers each; they have 2, 1, 1, 1"),
        (ubongo_pb2.Move(), "the move is empty: set lay, call or offer_end"),
    ],
    ids=["card 0", "card 109", "2,000 cards", "lists of different lengths", "nothing"],
)
async def test_a_message_without_a_move_is_malformed(house, move, why):
    async with building(house, rounds=1) as table:
        one, _ = table.chairs
        await build(one, move)
        assert await one.rejected() == "MALFORMED"
        assert why in one.rejections[-1].message
        await builds_on(house, table)


async def test_a_layout_that_cannot_lie_is_illegal(house):
    async with building(house, rounds=1, max_rejections=20) as table:
        one, _ = table.chairs
        held = [side.card + 1 for side in view_of(one).hand]
        foreign = min(set(range(1, 109)) - set(held))
        first, second = held[:2]
        for move, why in (
            (layout([foreign], [0], [0], [0]), "you do not hold"),
            (layout([first, first], [0, 9], [0, 9], [0, 0]), "is laid twice"),
            (layout([first, second], [0, 1], [0, 1], [0, 0]), "overlap"),
            (layout([first], [BOUND + 1], [0], [0]), f"x and y go from -{BOUND} to {BOUND}"),
            (layout([first], [0], [-(2**31)], [0]), f"x and y go from -{BOUND} to {BOUND}"),
            (layout([first], [0], [0], [4]), "turn goes from 0 to 3"),
            (layout([first], [0], [0], [-1]), "turn goes from 0 to 3"),
            (CALL, f"you call with {GOAL} fitting cards; you have laid 0"),
        ):
            await build(one, move)
            assert await one.rejected() == "ILLEGAL"
            assert why in one.rejections[-1].message
        await builds_on(house, table)


async def test_a_seat_that_has_called_moves_no_more(house):
    async with building(house, rounds=2) as table:
        one, _ = table.chairs
        _, _, again, later, offered = await build(one, lay(best(one)), CALL, CALL, lay(()), offer())
        for request_id in (again, later, offered):
            assert await one.rejected() == "NOT_ASKED"
            assert one.rejections[-1].request_id == request_id
            assert "has called" in one.rejections[-1].message
        await asyncio.gather(*(chair.asked("build") for chair in table.chairs))
        assert view_of(one).points == ((10, 0),)
        await builds_on(house, table)


async def test_a_move_after_the_round_is_stale(house):
    async with building(house, rounds=2) as table:
        one, other = table.chairs
        cards = best(one)
        await build(one, lay(cards), CALL)
        await other.asked("build")
        for move in (lay(()), CALL, offer()):
            await build(other, move, prompt=1)
            assert await other.rejected() == "STALE"
        await one.asked("build")
        await builds_on(house, table)


async def test_a_false_caller_is_out_and_the_others_build_on(house):
    async with building(house, seats=3, rounds=1) as table:
        one, other, third = table.chairs
        wrong = [side.card + 1 for side in view_of(one).hand][:GOAL]
        await build(one, layout(wrong, [3 * each for each in range(GOAL)], [0] * GOAL, [0] * GOAL), CALL)
        await one.expect("move_accepted")
        await build(one, lay(()))
        assert await one.rejected() in ("NOT_ASKED", "ILLEGAL")
        await other.asked("build")
        assert view_of(other).out == (one.seat,)
        await build(other, lay(best(other)), CALL)
        await asyncio.gather(*(chair.expect("match_ended") for chair in (one, other, third)))
        match = await house.admin.over(table.name)
        assert list(match.result.points) == [0, 10, 0]
        await house.admin.record(table.name)


async def test_a_flood_of_layouts_is_refused_and_harms_nobody(house):
    async with building(house, rounds=2) as table:
        one, other = table.chairs
        await build(one, *[lay(best(one)[: 1 + number % 7]) for number in range(3 * MOST_LAYS_A_SECOND)])
        assert await one.rejected() == "TOO_MANY"
        await build(other, lay(best(other)), CALL)
        await asyncio.wait_for(other.expect("move_accepted"), 2)
        await asyncio.gather(*(chair.asked("build") for chair in table.chairs))
        assert view_of(other).points[0][other.seat] == 10
        await asyncio.sleep(1.1)  # until its second is over
        await builds_on(house, table)


async def test_a_move_of_the_other_game_is_refused_by_name(house):
    async with building(house, rounds=1) as table:
        one, _ = table.chairs
        await one.submit(ugo_pb2.Move(play=ugo_pb2.CARD_R0))
        assert await one.rejected() == "WRONG_GAME"
        assert "'ubongo'" in one.rejections[-1].message
        await builds_on(house, table)


async def test_the_time_of_a_round_counts_as_its_agreed_end(house):
    async with building(house, rounds=1, free_ms={"build": 300}, bank_ms=1, grace_ms=1) as table:
        one, other = table.chairs
        await build(one, lay(best(one)[:5]))
        await asyncio.gather(one.expect("match_ended"), other.expect("match_ended"))
        assert list((await house.admin.over(table.name)).result.points) == [5, 0]
        await house.admin.record(table.name)


async def test_a_seat_that_sits_down_again_is_shown_what_lies(house):
    async with building(house, rounds=1) as table:
        one, _ = table.chairs
        cards = best(one)[:4]
        await build(one, lay(cards), offer())
        await one.sit()
        await one.asked("build")
        assert view_of(one).layout == cards
        assert view_of(one).offers == (one.seat,)
        await builds_on(house, table)


async def test_the_queue_of_ubongo_seats_four_and_no_bot_of_the_house(house):
    bots = [await house.bot() for _ in range(4)]
    attending = [await bot.attend(["casual-ubongo"], max_matches=1) for bot in bots]
    offers = [await each.offer() for each in attending]
    assert {(offer.match, offer.game) for offer in offers} == {(offers[0].match, "games/ubongo")}
    assert sorted(offers[0].bots) == sorted(bot.bot for bot in bots)
    await house.admin.abort(offers[0].match)


@pytest.mark.not_by_http("it has a server of its own, and comes by gRPC")
async def test_a_lone_builder_is_seated_with_the_bots_of_the_house():
    with tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as folder:
        async with house_in(Path(folder), house_bots=True) as house:
            bot = await house.bot()
            attending = await bot.attend(["casual-ubongo"], max_matches=1)
            offer = await attending.offer(within_s=60)
            assert sorted({*offer.bots} - {bot.bot}) == sorted(house_bots()["ubongo"][:3])
            chair = Chair(bot, offer.match, offer.seat)
            await chair.sit()
            await builds_out(chair)
            over = await house.admin.over(offer.match)
            solver = list(offer.bots).index("bots/house-solver/versions/1")
            assert set(over.result.endings) == {1}  # COMPLETED
            assert over.result.points[solver] >= 10
            await house.admin.record(offer.match)
            assert not house.logs.faults()


async def test_a_seat_that_wants_every_change_sees_how_many_cards_lie(house):
    async with building(house, rounds=1) as table:
        one, other = table.chairs
        await other.sit(updates=play_service_pb2.Sit.UPDATES_EVERY_CHANGE)
        await other.asked("build")
        await build(one, lay(best(one)[:4]))
        await other.expect("update")
        assert view_of(other).laid == (4, 0)
        await builds_on(house, table)


async def watched(house: House, table: Table, round_number: int = 1) -> UbongoView:
    """What a spectator who comes now is shown first of that round; a position may be a tenth of a second old."""
    async for seen in house.admin.watch(table.name):
        if seen.HasField("ubongo") and seen.ubongo.round == round_number:
            return decode_view(seen.ubongo)
    raise AssertionError("the spectator was shown nothing")


async def test_spectators_see_ubongo_and_nothing_of_what_lies_before_the_round_is_over(house):
    async with building(house, rounds=2) as table:
        one, other = table.chairs
        await other.sit(updates=play_service_pb2.Sit.UPDATES_EVERY_CHANGE)
        await other.asked("build")
        await build(one, lay(best(one)))
        await other.expect("update")
        assert max(view_of(other).laid) >= GOAL
        assert (await watched(house, table)).laid == (0, 0)
        await build(one, CALL)
        await one.expect("move_accepted")
        view = await watched(house, table, round_number=2)
        assert (view.seat, view.hand, view.layout, view.laid) == (None, (), (), (0, 0))
        assert describe_view(view) == "round 2  laid 0 0  points 10 0"
        await asyncio.gather(*(chair.asked("build") for chair in table.chairs))
        await builds_on(house, table)
