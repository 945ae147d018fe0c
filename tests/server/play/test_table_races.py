"""A table of builders: layouts go through the inbox and no further, and calls count from when they came."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from doubles.room import Room
from doubles.virtual import in_virtual_time
from matches.one_race import SEVEN, fitting, race_setup

from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee.games.ubongo import CALL, Lay, OfferEnd, Placement
from seatwise_server.play.allowance import HANDLING_MS, DistanceMeter
from seatwise_server.play.match_clock import STALL_BOUND_S
from seatwise_server.play.outbox import SWEEP_S
from seatwise_server.play.table import MOST_WAITING_COMMANDS

if TYPE_CHECKING:
    from doubles.room import Link

SWEEP_MS = SWEEP_S * 1000 + 10
RELEASE_MS = 120
"""Longer than a call is held for somebody whose round trip is not known: these links answer no ping."""


def opened(seats: int = 2, **limits: Any) -> Room:
    return Room(setup=race_setup(seats, rounds=2, **limits))


def lay(room: Room, link: Link, seat: int, number: int, request_id: str = "lay") -> None:
    layout = fitting(room.state.round.hands[seat], SEVEN)[:number]
    link.submit(seat, Lay(layout), room.prompt, request_id)


def err(room: Room, link: Link, seat: int) -> None:
    """Lays a card twice: an illegal move is for the journal."""
    card = room.state.round.hands[seat][0].card
    link.submit(seat, Lay((Placement(card, 0, 0, 0), Placement(card, 9, 0, 0))), room.prompt, "illegal")


def charges(room: Room) -> list[tuple[int, int]]:
    (entry,) = room.entries("called")
    return [(call.seat, call.charge.charged_ms) for call in entry.calls]


def rejections(link: Link) -> list[str]:
    told = link.new("move_rejected")
    return [pb.MoveRejected.Reason.Name(each.reason).removeprefix("REASON_") for each in told]


# --- What lies ------------------------------------------------------------------------------------------


@in_virtual_time
async def test_laid_cards_are_neither_acknowledged_nor_journaled() -> None:
    room = opened()
    links = await room.seat_all()
    lay(room, links[0], 0, 4)
    links[0].submit(0, OfferEnd(True), room.prompt, "offer")
    await room.pass_ms(SWEEP_MS)
    assert [link.new() for link in links] == [[], []]
    assert [entry.kind for entry in room.entries()] == ["sat", "sat", "dealt"]
    links[0].sit(0)
    await room.pass_ms(5)
    (update,) = links[0].new("update")
    assert (list(update.ubongo.laid), list(update.ubongo.offers)) == ([4, 0], [0])


@in_virtual_time
async def test_a_seat_that_wants_every_change_is_shown_it_soon_and_not_for_a_card_that_another_only_moved() -> (
    None
):
    room = opened(3)
    links = await room.seat_all(every_change=True)
    lay(room, links[0], 0, 4)
    await room.pass_ms(SWEEP_MS)
    assert [list(link.new("update")[-1].ubongo.laid) for link in links] == [[4, 0, 0]] * 3
    moved = tuple(each._replace(x=each.x + 1) for each in fitting(room.state.round.hands[0], SEVEN)[:4])
    links[0].submit(0, Lay(moved), room.prompt, "moved")
    await room.pass_ms(SWEEP_MS)
    assert [len(link.new()) for link in links] == [1, 0, 0]


@in_virtual_time
async def test_layouts_wait_in_the_inbox_like_any_command_and_more_than_eight_are_too_many() -> None:
    room = opened()
    links = await room.seat_all()
    room.journal.hold()
    err(room, links[1], 1)  # on its way to the journal
    for number in range(MOST_WAITING_COMMANDS + 3):
        lay(room, links[0], 0, number % SEVEN, f"lay {number}")
    await room.pass_ms(5)
    assert len(room.table._commands) == MOST_WAITING_COMMANDS
    assert rejections(links[0]) == ["TOO_MANY"] * 3
    room.journal.release()
    await room.pass_ms(5)
    assert room.match.view_for(None).laid == ((MOST_WAITING_COMMANDS - 1) % SEVEN, 0)
    assert links[0].new() == []


# --- When a call came -----------------------------------------------------------------------------------


@in_virtual_time
async def test_a_call_is_charged_from_when_it_came_however_long_the_journal_was_busy() -> None:
    room = opened(3)
    links = await room.seat_all()
    lay(room, links[0], 0, SEVEN), lay(room, links[1], 1, SEVEN)
    await room.pass_ms(100)
    room.journal.hold()
    err(room, links[2], 2)
    await room.pass_ms(50)
    links[1].submit(1, CALL, room.prompt, "second")
    await room.pass_ms(4)
    links[0].submit(0, CALL, room.prompt, "first")
    await room.pass_ms(300)
    room.journal.release()
    await room.pass_ms(RELEASE_MS)
    (seat, early), (other, late) = charges(room)
    assert (seat, other) == (1, 0)
    assert early == pytest.approx(159, abs=2)
    assert late - early == 4


@in_virtual_time
async def test_the_first_prompt_has_an_allowance_too_as_soon_as_the_first_pong_is_there() -> None:
    """A ping goes out when a bot sits down, and so before any prompt, or with it."""
    room = opened()
    links = await room.seat_all()
    await room.pass_ms(31)
    assert [item.ping.number for item in links[1].items() if item.HasField("ping")] == [1]
    links[1].send(pb.PlayRequestItem(pong=pb.Pong(number=1)))
    await room.pass_ms(60)
    lay(room, links[1], 1, SEVEN)
    links[1].submit(1, CALL, room.prompt, "call")
    await room.pass_ms(RELEASE_MS)
    (entry,) = room.entries("called")
    (call,) = entry.calls
    assert call.charge.allowance_ms == pytest.approx(40, abs=2)
    assert call.charge.charged_ms == call.came_ms - call.charge.asked_ms - call.charge.allowance_ms


@in_virtual_time
async def test_a_stall_while_the_journal_was_busy_is_taken_off_where_it_fell() -> None:
    """One call came just before it, one just after it; the journal answers much later."""
    room = opened(3)
    links = await room.seat_all()
    lay(room, links[0], 0, SEVEN), lay(room, links[1], 1, SEVEN)
    await room.pass_ms(100)
    room.journal.hold()
    err(room, links[2], 2)
    await room.pass_ms(10)
    links[0].submit(0, CALL, room.prompt, "before")
    room.loop.stand_still(0.2)
    await room.pass_ms(3)
    links[1].submit(1, CALL, room.prompt, "after")
    await room.pass_ms(300)
    room.journal.release()
    await room.pass_ms(RELEASE_MS)
    assert [seat for seat, _ in charges(room)] == [0, 1]
    assert charges(room)[0][1] == pytest.approx(119, abs=2)
    assert charges(room)[1][1] == pytest.approx(122, abs=22)  # it is known to a beat when a stall began
    (frozen,) = room.entries("frozen")
    assert frozen.at_ms == pytest.approx(119 + 200 + 10, abs=22)


@pytest.mark.parametrize("lag_ms", [30, 49])
@in_virtual_time
async def test_a_window_is_as_wide_as_the_loop_has_lagged(lag_ms: int) -> None:
    room = opened()
    links = await room.seat_all()
    lay(room, links[0], 0, SEVEN), lay(room, links[1], 1, SEVEN)
    await room.pass_ms(1500)
    room.loop.stand_still(lag_ms / 1000)
    await room.pass_ms(500)
    links[0].submit(0, CALL, room.prompt, "call")
    await room.pass_ms(lag_ms - 25)
    links[1].submit(1, CALL, room.prompt, "tie")
    await room.pass_ms(100)
    (entry,) = room.entries("called")
    assert entry.window_ms == pytest.approx(lag_ms, abs=20)
    assert [seat for seat, _ in charges(room)] == [0, 1]
    assert not room.entries("frozen")


async def _answer_ping(room: Room, link: Link, after_ms: int) -> None:
    link.stream.check_reader()
    await room.pass_ms(after_ms)
    link.send(pb.PlayRequestItem(pong=pb.Pong(number=link.new("ping")[-1].number)))


def _meter_of(round_trip_ms: float) -> DistanceMeter:
    return DistanceMeter(read_kernel=lambda: round_trip_ms)


@in_virtual_time
@pytest.mark.parametrize(("competition", "told_ms"), [("", 40), ("ladders/one", HANDLING_MS)])
async def test_in_a_race_that_counts_a_bots_own_pongs_bring_nothing(competition: str, told_ms: int) -> None:
    room = Room(setup=replace(race_setup(rounds=2), competition=competition))
    links = await room.seat_all()
    await _answer_ping(room, links[1], 40)
    links[1].sit(1)
    await room.pass_ms(1)
    assert links[1].new("update")[-1].time.latency_ms == pytest.approx(told_ms, abs=1)


@in_virtual_time
async def test_the_kernels_round_trip_is_known_with_the_first_prompt_and_without_any_pong() -> None:
    room = Room(setup=replace(race_setup(rounds=2), competition="ladders/one"))
    room.table.start_clocks()
    for seat in (0, 1):
        link = room.link(seat)
        link.stream.meter = _meter_of(70.0 * seat)
        link.sit(seat)
    await room.pass_ms(100)
    lay(room, link, 1, SEVEN)
    link.submit(1, CALL, room.prompt, "call")
    await room.pass_ms(RELEASE_MS)
    (call,) = room.entries("called")[0].calls
    assert (call.charge.allowance_ms, call.charge.charged_ms) == (
        70 + HANDLING_MS,
        call.came_ms - call.charge.asked_ms - (70 + HANDLING_MS),
    )


@in_virtual_time
async def test_a_second_nearer_link_counts_before_its_first_answer() -> None:
    """A bot that is asked over a slow link and answers over a quick one would otherwise gain the difference."""
    room = opened()
    room.table.start_clocks()
    for seat in (0, 1):
        far = room.link(seat)
        far.stream.meter = _meter_of(90.0)
        far.sit(seat)
    await room.pass_ms(100)
    near = room.link(1)
    near.stream.meter = _meter_of(10.0)
    near.sit(1)
    lay(room, near, 1, SEVEN)
    near.submit(1, CALL, room.prompt, "call")
    await room.pass_ms(RELEASE_MS)
    (call,) = room.entries("called")[0].calls
    assert call.charge.allowance_ms == 10 + HANDLING_MS


@in_virtual_time
async def test_a_bot_that_answers_quickly_is_not_far_away_in_the_next_round() -> None:
    room = opened()
    links = await room.seat_all()
    await room.pass_ms(25)
    lay(room, links[1], 1, SEVEN)
    await _answer_ping(room, links[1], 80)
    links[1].sit(1)
    await room.pass_ms(1)
    asked = links[1].new("update")[-1].time.latency_ms
    assert 25 <= asked <= 50


@in_virtual_time
async def test_of_a_stall_the_window_has_no_more_than_the_bound_for_the_rest_is_charged_to_nobody() -> None:
    room = opened()
    links = await room.seat_all()
    lay(room, links[0], 0, SEVEN)
    await room.pass_ms(500)
    room.loop.stand_still(5.0)
    await room.pass_ms(10)
    links[0].submit(0, CALL, room.prompt, "call")
    await room.pass_ms(STALL_BOUND_S * 1000 + RELEASE_MS)
    (entry,) = room.entries("called")
    assert entry.window_ms == STALL_BOUND_S * 1000
    assert entry.calls[0].charge.charged_ms == pytest.approx(520, abs=25)


@in_virtual_time
async def test_a_lag_of_long_ago_widens_no_window() -> None:
    room = opened()
    links = await room.seat_all()
    lay(room, links[0], 0, SEVEN)
    room.loop.stand_still(0.04)
    await room.pass_ms(1100)
    links[0].submit(0, CALL, room.prompt, "call")
    await room.pass_ms(RELEASE_MS)
    (entry,) = room.entries("called")
    assert entry.window_ms == 5


@in_virtual_time
async def test_the_timer_releases_a_call_without_any_other_command() -> None:
    room = opened(allowance_cap_ms=0)
    links = await room.seat_all()
    lay(room, links[0], 0, SEVEN)
    await room.pass_ms(100)
    links[0].submit(0, CALL, room.prompt, "call")
    await room.pass_ms(4)
    assert not room.entries("called")
    await room.pass_ms(5)
    assert [told.request_id for told in links[0].new("move_accepted")] == ["call"]
    assert [link.new("update")[-1].prompt for link in links[1:]] == [2]
