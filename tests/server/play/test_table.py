"""A table tells nobody what is not in the journal, takes commands in turn, and charges nobody for our stalls."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import pytest
from doubles.room import OWNER, Room
from doubles.virtual import in_virtual_time, settle
from matches.one_match import BANK_MS, FREE_MS, GRACE_MS
from structlog.testing import capture_logs

from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee.ending import VoidReason
from seatwise_referee.game import Seat
from seatwise_referee.journal import encode_entry
from seatwise_referee.match import replay_match
from seatwise_server.play.match_clock import LINK_BREAKING_S, LINK_LOSS_NOTICED_S
from seatwise_server.play.outbox import SWEEP_S
from seatwise_server.play.table import MOST_WAITING_COMMANDS, Table
from seatwise_server.refusal import Refusal

if TYPE_CHECKING:
    from doubles.room import Link

LIMIT_MS = FREE_MS + BANK_MS + GRACE_MS
HANDOVER_MS = 250
SWEEP_MS = SWEEP_S * 1000 + 10

Reason = pb.MoveRejected.Reason


def kinds(items: list[pb.PlayResponseItem]) -> list[str | None]:
    return [item.WhichOneof("event") for item in items]


def reasons(rejections: list[pb.MoveRejected]) -> list[str]:
    return [Reason.Name(each.reason).removeprefix("REASON_") for each in rejections]


# --- The journal comes first ----------------------------------------------------------------------------


@in_virtual_time
async def test_nothing_is_told_before_the_journal_has_it() -> None:
    room = Room()
    links = await room.seat_all(every_change=True)
    before, mover = room.state, room.asked
    room.journal.hold()
    links[mover].submit(mover, room.legal_move(), room.prompt, "r1")
    await room.pass_ms(1000)
    assert room.state is before
    assert [link.new() for link in links] == [[], []]
    room.journal.release()
    await room.pass_ms(SWEEP_MS)
    assert [told.request_id for told in links[mover].new("move_accepted")] == ["r1"]
    assert room.state is not before


@in_virtual_time
async def test_a_view_that_is_made_while_an_append_is_held_back_is_that_of_the_journal() -> None:
    room = Room()
    links = await room.seat_all()
    mover, prompt, move = room.asked, room.prompt, room.legal_move()
    room.journal.hold()
    links[mover].submit(mover, move, prompt, "r1")
    for seat in (mover, room.other):
        again = room.link(seat)
        again.sit(seat)
        await settle()
        (update,) = again.new("update")
        assert (update.prompt, update.to_act) == (prompt, seat == mover)
        assert not update.ugo.trick


@in_virtual_time
async def test_the_outbox_holds_no_view_of_what_is_not_in_the_journal() -> None:
    """Drained at the worst moment, it still shows the last safe position."""
    room = Room()
    links = await room.seat_all()
    mover, other = room.asked, room.other
    links[other].stop_reading()
    links[other].sit(other)
    room.journal.hold()
    links[mover].submit(mover, room.legal_move(), room.prompt, "r1")
    draft = links[other].stream.outbox.take_draft()
    (update,) = [pb.PlayResponseItem.FromString(item).update for item in draft.items]
    assert not update.ugo.trick
    assert draft.prompts == []


@in_virtual_time
async def test_a_rejection_that_counts_is_told_when_the_journal_has_it() -> None:
    room = Room()
    links = await room.seat_all()
    mover = room.asked
    room.journal.hold()
    links[mover].submit(mover, room.illegal_move(), room.prompt, "r1")
    await room.pass_ms(500)
    assert links[mover].new() == []
    room.journal.release()
    await settle()
    assert reasons(links[mover].new("move_rejected")) == ["ILLEGAL"]


@in_virtual_time
async def test_all_entries_of_a_command_go_in_one_call() -> None:
    room = Room()
    await room.seat_all()
    assert [len(append.entries) for append in room.journal.appends] == [1, 2]  # sat; sat and dealt
    assert [entry.kind for entry in room.entries()] == ["sat", "sat", "dealt"]
    assert {(append.match, append.epoch, append.owner) for append in room.journal.appends} == {
        (room.table.name, 1, OWNER)
    }


@in_virtual_time
async def test_a_resignation_and_what_follows_from_it_are_one_call() -> None:
    room = Room()
    links = await room.seat_all()
    calls, mover = len(room.journal.appends), room.asked
    links[mover].resign(mover)
    await room.pass_ms(10)
    (append,) = room.journal.appends[calls:]
    assert len(append.entries) == len(room.entries()) - 3
    assert [entry.kind for entry in room.entries()[3:5]] == ["resigned", "default"]


@in_virtual_time
async def test_one_append_of_a_match_is_in_flight() -> None:
    room = Room(3)
    links = await room.seat_all()
    room.journal.hold()
    calls, mover = len(room.journal.appends), room.asked
    links[mover].submit(mover, room.legal_move(), room.prompt, "r1")
    for seat, link in enumerate(links):
        link.resign(seat)
    await room.pass_ms(100)
    assert len(room.journal.appends) == calls + 1
    room.journal.release()
    await room.pass_ms(100)
    assert room.journal.most_in_flight == 1
    assert [entry.kind for entry in room.entries()][-1] == "voided"


@in_virtual_time
async def test_entries_are_numbered_without_gaps() -> None:
    room = Room()
    links = await room.seat_all()
    links[room.asked].submit(room.asked, room.illegal_move(), room.prompt, "no")
    await room.pass_ms(5)
    await room.play_out(links)
    entries = room.entries()
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert entries[-1].kind == "finished"


# --- One after the other --------------------------------------------------------------------------------


@in_virtual_time
async def test_commands_are_taken_in_the_order_in_which_they_came() -> None:
    room = Room(4)
    links = await room.seat_all()
    mover = room.asked
    others = [seat for seat in (2, 0, 3, 1) if seat != mover]
    room.journal.hold()
    links[mover].submit(mover, room.legal_move(), room.prompt, "r1")
    for seat in others:
        links[seat].resign(seat)
    room.journal.release()
    await room.pass_ms(50)
    assert [entry.seat for entry in room.entries("move")] == [mover]
    assert [entry.seat for entry in room.entries("resigned")] == others


@in_virtual_time
async def test_a_command_keeps_the_time_at_which_it_came_however_long_it_waits() -> None:
    room = Room(3)
    links = await room.seat_all()
    mover, third = room.asked, (room.asked + 2) % 3
    began = room.entries("dealt")[0].at_ms
    room.journal.hold()
    await room.pass_ms(100)
    links[third].resign(third)
    await room.pass_ms(200)
    links[mover].submit(mover, room.legal_move(), room.prompt, "r1")
    await room.pass_ms(900)
    room.journal.release()
    await room.pass_ms(10)
    (moved,) = room.entries("move")
    assert moved.charged_ms == pytest.approx(300 + 9, abs=2)
    assert moved.at_ms == pytest.approx(began + 300 + 9, abs=2)


@in_virtual_time
async def test_more_than_eight_that_wait_are_too_many() -> None:
    room = Room()
    links = await room.seat_all()
    mover, other, prompt = room.asked, room.other, room.prompt
    room.journal.hold()
    links[mover].submit(mover, room.legal_move(), prompt, "first")  # on its way to the journal
    for number in range(MOST_WAITING_COMMANDS + 3):
        links[mover].submit(mover, room.legal_move(), prompt, f"r{number}")
    links[mover].resign(mover)
    links[other].submit(other, room.legal_move(), prompt, "of another")
    await settle()
    told = links[mover].new("move_rejected")
    assert reasons(told) == ["TOO_MANY"] * 4
    assert [each.request_id for each in told] == ["r8", "r9", "r10", ""]
    assert links[other].new() == []
    room.journal.release()
    await room.pass_ms(SWEEP_MS)
    later = links[mover].new()
    assert [item.move_accepted.request_id for item in later if item.HasField("move_accepted")] == ["first"]
    assert [item.move_rejected.request_id for item in later if item.HasField("move_rejected")] == [
        f"r{number}" for number in range(MOST_WAITING_COMMANDS)
    ]
    assert not room.entries("resigned")


@in_virtual_time
async def test_sitting_down_a_thousand_times_at_once_is_too_many_too() -> None:
    room = Room()
    room.table.start_clocks()
    link = room.link(0)
    room.journal.hold()
    for _ in range(1000):
        link.sit(0)
    await settle()
    assert len(room.table._commands) <= MOST_WAITING_COMMANDS
    assert set(reasons(link.new("move_rejected"))) == {"TOO_MANY"}
    room.journal.release()
    await room.pass_ms(10)
    assert len(room.entries("sat")) == 1


@in_virtual_time
async def test_after_the_answers_there_is_room_again() -> None:
    room = Room()
    links = await room.seat_all()
    mover, other = room.asked, room.other
    room.journal.hold()
    for number in range(20):
        links[mover].submit(mover, room.illegal_move(), room.prompt, f"r{number}")
    room.journal.release()
    await room.pass_ms(100)
    links[mover].new(), links[other].new()
    await room.move(links)
    await room.pass_ms(SWEEP_MS)
    assert kinds(links[mover].new()) == ["move_accepted"]


# --- Repeats --------------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_repeated_request_is_answered_as_at_first() -> None:
    room = Room()
    links = await room.seat_all()
    mover, prompt, move = room.asked, room.prompt, room.legal_move()
    await room.pass_ms(40)
    for _ in range(3):
        links[mover].submit(mover, move, prompt, "r1")
        await room.pass_ms(SWEEP_MS)
    first, *repeats = links[mover].new("move_accepted")
    assert (first.request_id, first.charged_ms) == ("r1", room.entries("move")[0].charged_ms)
    assert repeats == [first, first]
    assert len(room.entries("move")) == 1


@in_virtual_time
async def test_the_same_request_id_at_another_prompt_is_another_request() -> None:
    room = Room()
    links = await room.seat_all()
    for _ in range(4):
        await room.move(links, request_id="always the same")
    assert len(room.entries("move")) == 4


@in_virtual_time
async def test_a_repeat_that_waits_behind_the_first_is_one_move() -> None:
    room = Room()
    links = await room.seat_all()
    mover = room.asked
    room.journal.hold()
    for _ in range(2):
        links[mover].submit(mover, room.legal_move(), room.prompt, "r1")
    room.journal.release()
    await room.pass_ms(SWEEP_MS)
    assert kinds(links[mover].new()) == ["move_accepted"] * 2
    assert len(room.entries("move")) == 1


@in_virtual_time
async def test_a_repeated_illegal_move_counts_once() -> None:
    room = Room(max_rejections=2)
    links = await room.seat_all()
    mover = room.asked
    for _ in range(5):
        links[mover].submit(mover, room.illegal_move(), room.prompt, "r1")
        await room.pass_ms(5)
    first, *repeats = links[mover].new("move_rejected")
    assert repeats == [first] * 4
    assert reasons([first]) == ["ILLEGAL"]
    assert len(room.entries("rejected")) == 1
    assert not room.entries("forfeited")


# --- Another owner --------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_fenced_table_lets_go_without_a_word() -> None:
    room = Room()
    links = await room.seat_all(every_change=True)
    mover = room.asked
    room.journal.fence(room.table.name)
    links[mover].submit(mover, room.legal_move(), room.prompt, "r1")
    await room.pass_ms(LIMIT_MS * 4)
    assert [link.new() for link in links] == [[], []]
    assert (room.table.is_fenced, room.table.is_closed, room.ended) == (True, True, [room.table])


@in_virtual_time
async def test_a_fenced_table_takes_nothing_more() -> None:
    room = Room()
    links = await room.seat_all()
    mover = room.asked
    room.journal.fence(room.table.name)
    links[mover].resign(mover)
    await room.pass_ms(10)
    calls = len(room.journal.appends)
    links[room.other].resign(room.other)
    room.table.void_match(VoidReason.ABORTED)
    room.table.resume_after_gap(1.0)
    await room.pass_ms(LIMIT_MS * 4)
    assert len(room.journal.appends) == calls
    assert len(room.entries()) == 3


@in_virtual_time
async def test_a_new_owner_says_so_first_and_asks_again_in_full() -> None:
    room = Room()
    links = await room.seat_all()
    await room.move(links)
    await room.pass_ms(700)
    heir = Room(setup=room.setup, position=replay_match(room.setup, room.entries()).position, epoch=2)
    heir.journal.start_with(heir.table.name, map(encode_entry, room.entries()))
    heir.table.start_clocks()
    await heir.pass_ms(10)
    assert (heir.entries()[-1].kind, heir.entries()[-1].epoch) == ("taken_over", 2)
    assert (heir.asked, heir.prompt) == (room.asked, room.prompt)
    link = heir.link(heir.asked)
    link.sit(heir.asked)
    await heir.pass_ms(10)
    (item,) = link.new()
    assert (item.epoch, item.update.to_act) == (2, True)
    assert item.update.time.move_ms == pytest.approx(FREE_MS, abs=15)
    assert item.update.time.bank_ms == BANK_MS


@in_virtual_time
async def test_a_seat_that_finds_the_new_owner_late_is_not_charged_for_the_search() -> None:
    room = Room()
    await room.seat_all()
    heir = Room(setup=room.setup, position=replay_match(room.setup, room.entries()).position, epoch=2)
    heir.journal.start_with(heir.table.name, map(encode_entry, room.entries()))
    heir.table.start_clocks()
    await heir.pass_ms(LIMIT_MS + 500)
    link = heir.link(heir.asked)
    link.sit(heir.asked)
    await heir.pass_ms(30)
    link.submit(heir.asked, heir.legal_move(), heir.prompt, "found it")
    await heir.pass_ms(200)
    (accepted,) = [item.move_accepted for item in link.new() if item.HasField("move_accepted")]
    assert accepted.charged_ms == pytest.approx(30, abs=15)


@in_virtual_time
async def test_a_match_that_is_over_has_nothing_to_open() -> None:
    room = Room()
    await room.play_out(await room.seat_all())
    heir = Room(setup=room.setup, position=replay_match(room.setup, room.entries()).position, epoch=2)
    heir.table.start_clocks()
    await heir.pass_ms(10)
    assert heir.ended == [heir.table]
    assert heir.journal.appends == []


# --- Time -----------------------------------------------------------------------------------------------


async def asked_at(room: Room, links: list[Link]) -> int:
    """When the time of the next move began, as the journal tells it."""
    mover = room.asked
    links[mover].submit(mover, room.legal_move(), room.prompt, f"at {room.prompt}")
    await room.pass_ms(10)
    asked_ms: int = room.entries("move")[-1].asked_ms
    return asked_ms


def put_ms(room: Room) -> int:
    """When the last entry was written, and so the open prompt put."""
    return int(room.entries()[-1].at_ms) + 1


@in_virtual_time
async def test_time_runs_from_the_hand_over() -> None:
    room = Room()
    links = await room.seat_all()
    await room.move(links)
    put = put_ms(room)
    await room.pass_ms(60)
    assert await asked_at(room, links) == pytest.approx(put, abs=1)


@in_virtual_time
async def test_time_runs_at_the_latest_some_time_after_the_put_for_a_bot_that_does_not_read() -> None:
    room = Room()
    links = await room.seat_all()
    links[room.other].stop_reading()
    await room.move(links)
    put = put_ms(room)
    await room.pass_ms(400)
    assert await asked_at(room, links) == pytest.approx(put + HANDOVER_MS, abs=1)


@in_virtual_time
async def test_time_of_a_seat_that_is_not_connected_runs_from_the_put() -> None:
    room = Room()
    links = await room.seat_all()
    other = room.other
    links[other].hang_up()
    await room.move(links)
    put = put_ms(room)
    await room.pass_ms(200)
    links[other] = room.link(other)
    links[other].sit(other)
    await room.pass_ms(100)
    assert await asked_at(room, links) == pytest.approx(put, abs=1)


@in_virtual_time
async def test_a_seat_that_hangs_up_before_the_hand_over_is_on_the_clock_at_once() -> None:
    room = Room()
    links = await room.seat_all()
    other = room.other
    links[other].stop_reading()
    await room.move(links)
    put = put_ms(room)
    await room.pass_ms(100)
    links[other].hang_up()
    links[other] = room.link(other)
    links[other].sit(other)
    await room.pass_ms(300)
    assert await asked_at(room, links) == pytest.approx(put + 105, abs=2)


@in_virtual_time
async def test_a_seat_that_lost_its_link_while_we_stood_still_is_not_charged_for_coming_back() -> None:
    room = Room()
    links = await room.seat_all()
    await room.pass_ms(100)
    room.loop.stand_still(LINK_BREAKING_S + 1)
    links[room.asked].hang_up()
    await room.pass_ms(LIMIT_MS + 500)
    assert room.entries()[-1].kind == "dealt"
    link = room.link(room.asked)
    link.sit(room.asked)
    await room.pass_ms(30)
    link.submit(room.asked, room.legal_move(), room.prompt, "back again")
    await room.pass_ms(200)
    (accepted,) = link.new("move_accepted")
    assert accepted.charged_ms == pytest.approx(30, abs=15)


@in_virtual_time
async def test_a_seat_that_loses_its_link_while_no_bot_can_connect_is_waited_for() -> None:
    room = Room()
    links = await room.seat_all()
    await room.pass_ms(100)
    room.lag.note_shortage()
    links[room.asked].hang_up()
    await room.pass_ms(LIMIT_MS + 500)
    assert room.entries()[-1].kind == "dealt"


@in_virtual_time
async def test_a_seat_whose_stream_we_cut_because_of_another_match_is_not_charged_for_coming_back() -> None:
    room = Room()
    links = await room.seat_all()
    await room.pass_ms(100)
    links[room.asked].stream.cut_off(Refusal("MATCH_MOVED", "another referee has another match"))
    links[room.asked].hang_up()
    await room.pass_ms(LIMIT_MS + 500)
    assert room.entries()[-1].kind == "dealt"
    link = room.link(room.asked)
    link.sit(room.asked)
    await room.pass_ms(30)
    link.submit(room.asked, room.legal_move(), room.prompt, "back again")
    await room.pass_ms(200)
    (accepted,) = link.new("move_accepted")
    assert accepted.charged_ms == pytest.approx(30, abs=15)


@in_virtual_time
@pytest.mark.parametrize("stall_s", [0.5, LINK_BREAKING_S + 1])
async def test_a_seat_that_hangs_up_later_is_charged_for_it(stall_s: float) -> None:
    room = Room()
    links = await room.seat_all()
    room.loop.stand_still(stall_s)
    await room.pass_ms(LINK_LOSS_NOTICED_S * 1000 if stall_s > LINK_BREAKING_S else 10)
    await room.move(links)
    links[room.asked].hang_up()
    await room.pass_ms(LIMIT_MS + 500)
    assert room.entries()[-1].kind == "default"


@in_virtual_time
async def test_sitting_down_again_shows_view_and_prompt_and_starts_no_clock_anew() -> None:
    room = Room()
    links = await room.seat_all()
    mover, prompt = room.asked, room.prompt
    links[mover].sit(mover)
    await room.pass_ms(10)
    (first,) = links[mover].new("update")
    await room.pass_ms(390)
    links[mover] = room.link(mover)
    links[mover].sit(mover)
    await room.pass_ms(10)
    (again,) = links[mover].new("update")
    assert (again.prompt, again.to_act, again.pace) == (prompt, True, "card")
    assert again.ugo == first.ugo
    assert again.receipt == first.receipt
    assert again.time.move_ms == pytest.approx(first.time.move_ms - 400, abs=2)


@in_virtual_time
async def test_a_seat_that_does_not_answer_is_timed_out_by_the_timer() -> None:
    room = Room()
    links = await room.seat_all()
    mover = room.asked
    await room.pass_ms(LIMIT_MS - 20)
    assert not room.entries("default")
    await room.pass_ms(30)
    (default,) = room.entries("default")
    assert (default.reason, default.moves[0].seat) == ("TIMED_OUT", mover)
    assert default.moves[0].charge.charged_ms == LIMIT_MS + 1
    assert kinds(links[room.asked].new()) == ["update"]


@in_virtual_time
async def test_the_last_moment_is_in_time_and_the_next_is_not() -> None:
    for ms, kind in ((LIMIT_MS - 12, "move"), (LIMIT_MS + 12, "default")):
        room = Room()
        links = await room.seat_all()
        mover, prompt = room.asked, room.prompt
        await room.pass_ms(ms - 9)  # so much of it is gone
        links[mover].submit(mover, room.legal_move(), prompt, "r1")
        await room.pass_ms(10)
        assert room.entries()[3].kind == kind


@in_virtual_time
async def test_a_late_timer_freezes_and_times_nobody_out() -> None:
    room = Room()
    await room.seat_all()
    await room.pass_ms(LIMIT_MS - 300)
    room.loop.stand_still(2.0)
    await room.pass_ms(10)
    (frozen,) = room.entries("frozen")
    assert frozen.why == "STALL"
    assert frozen.ms == pytest.approx(2000, abs=25)
    assert not room.entries("default")
    await room.pass_ms(250)
    assert not room.entries("default")
    await room.pass_ms(100)
    assert [entry.reason for entry in room.entries("default")] == ["TIMED_OUT"]


@in_virtual_time
async def test_a_move_that_lies_unread_when_the_timer_rings_late_is_in_time() -> None:
    room = Room()
    links = await room.seat_all()
    mover, prompt, move = room.asked, room.prompt, room.legal_move()
    await room.pass_ms(300)
    room.loop.stand_still(5.0)  # the move came just before; timers are due, and the move is read after them
    await room.pass_ms(0)
    links[mover].submit(mover, move, prompt, "r1")
    await room.pass_ms(SWEEP_MS)
    assert kinds(links[mover].new()) == ["move_accepted"]
    (moved,) = room.entries("move")
    assert moved.charged_ms == pytest.approx(300, abs=40)


@in_virtual_time
async def test_a_stall_is_taken_off_the_charge_of_a_move_that_is_read_before_any_timer() -> None:
    room = Room()
    links = await room.seat_all()
    await room.pass_ms(100)
    room.loop.stand_still(0.8)
    mover = room.asked
    links[mover].submit(mover, room.legal_move(), room.prompt, "r1")
    await room.pass_ms(10)
    assert [entry.kind for entry in room.entries()[3:]] == ["frozen", "move"]
    assert room.entries("move")[0].charged_ms == pytest.approx(110, abs=40)


@in_virtual_time
async def test_a_short_delay_is_no_stall() -> None:
    room = Room()
    links = await room.seat_all()
    await room.pass_ms(20)
    room.loop.stand_still(0.04)
    await room.move(links)
    assert not room.entries("frozen")


@in_virtual_time
async def test_a_stall_before_the_prompt_was_put_is_not_taken_off_it() -> None:
    room = Room()
    links = await room.seat_all()
    room.loop.stand_still(3.0)
    await room.move(links)
    stalls = len(room.entries("frozen"))
    await room.pass_ms(500)
    await room.move(links)
    assert len(room.entries("frozen")) == stalls
    assert room.entries("move")[-1].charged_ms == pytest.approx(500, abs=10)


@in_virtual_time
async def test_while_the_store_is_away_nobody_runs_out_of_time() -> None:
    room = Room()
    await room.seat_all()
    await room.pass_ms(200)
    room.journal.healthy = False
    await room.pass_ms(20_000)
    assert len(room.entries()) == 3
    room.journal.healthy = True
    room.table.resume_after_gap(20.0)
    await room.pass_ms(10)
    (frozen,) = room.entries("frozen")
    assert (frozen.why, frozen.ms) == ("STORE", 20_000)
    await room.pass_ms(LIMIT_MS - 300)
    assert not room.entries("default")
    await room.pass_ms(200)
    assert len(room.entries("default")) == 1


@in_virtual_time
async def test_the_store_was_away_for_a_match_no_longer_than_there_is_a_match() -> None:
    """Its record would not verify."""
    room = Room()
    await room.seat_all()
    await room.pass_ms(200)
    room.table.resume_after_gap(20.0)
    await room.pass_ms(10)
    (frozen,) = room.entries("frozen")
    assert 0 < frozen.ms == frozen.at_ms < 300


@in_virtual_time
@pytest.mark.parametrize("knows", ["before", "after"])
async def test_a_stall_while_the_store_is_away_is_taken_off_once(knows: str) -> None:
    """Whether the table hears of the stall before the outage is over, or with it."""
    room = Room()
    links = await room.seat_all()
    await room.pass_ms(100)
    room.loop.stand_still(0.3)
    await room.pass_ms(20)
    room.journal.healthy = knows == "before"
    room.loop.stand_still(2.0)
    if knows == "before":
        room.table.updates.on_round_trip(room.asked, 0)
        links[room.asked].submit(room.asked, room.illegal_move(), room.prompt, "bad")
        await room.pass_ms(10)
        room.journal.healthy = False
    await room.pass_ms(1000)
    room.journal.healthy = True
    room.table.resume_after_gap(3.0)
    await room.pass_ms(10)
    assert sum(entry.ms for entry in room.entries("frozen")) == pytest.approx(3300, abs=50)
    await room.move(links)
    assert room.entries("move")[-1].charged_ms == pytest.approx(120, abs=50)


@in_virtual_time
async def test_a_move_made_while_the_store_was_away_is_charged_what_was_before() -> None:
    room = Room()
    links = await room.seat_all()
    mover = room.asked
    room.journal.healthy = False
    room.journal.hold()
    await room.pass_ms(300)
    links[mover].submit(mover, room.legal_move(), room.prompt, "r1")
    await room.pass_ms(5000)
    assert links[mover].new() == []
    room.journal.healthy = True
    room.table.resume_after_gap(5.3)
    room.journal.release()
    await room.pass_ms(SWEEP_MS)
    assert kinds(links[mover].new()) == ["move_accepted"]
    assert room.entries("move")[0].charged_ms == pytest.approx(10, abs=5)
    assert room.asked != mover
    await room.pass_ms(LIMIT_MS - SWEEP_MS - 50)
    assert not room.entries("default")
    await room.pass_ms(100)
    assert len(room.entries("default")) == 1


@in_virtual_time
async def test_after_three_strikes_a_seat_is_out_and_the_match_goes_on() -> None:
    room = Room(3)
    links = await room.seat_all()
    idle = room.asked
    while not room.match.is_over:
        if room.asked == idle:
            await room.pass_ms(LIMIT_MS)
        else:
            await room.move(links)
    assert len([entry for entry in room.entries("default") if entry.reason == "TIMED_OUT"]) == 3
    assert [(entry.seat, entry.ending) for entry in room.entries("forfeited")] == [(idle, "TIMED_OUT")]
    assert room.entries()[-1].kind == "finished"


@in_virtual_time
async def test_the_bot_is_told_its_time() -> None:
    room = Room()
    links = await room.seat_all()
    mover = room.asked
    await room.pass_ms(FREE_MS + 200)
    links[mover].sit(mover)
    await room.pass_ms(5)
    (told,) = links[mover].new("update")
    assert (told.time.move_ms, told.time.bank_ms) == (0, BANK_MS)
    await room.move(links)
    links[mover].sit(mover)
    await room.pass_ms(5)
    told = links[mover].new("update")[-1]
    assert told.time.charged_ms == room.entries("move")[0].charged_ms > FREE_MS
    assert told.time.bank_ms == BANK_MS - (told.time.charged_ms - FREE_MS)


@in_virtual_time
async def test_the_measured_round_trip_is_taken_off_and_told() -> None:
    room = Room(allowance_cap_ms=70)
    links = await room.seat_all()
    other = room.other
    for round_trip_ms in (90, 45, 60):
        links[other].stream.check_reader()
        await room.pass_ms(round_trip_ms)
        ping = links[other].new("ping")[-1]
        links[other].send(pb.PlayRequestItem(pong=pb.Pong(number=ping.number)))
    await room.move(links)
    await room.pass_ms(200)
    links[other].sit(other)
    await room.pass_ms(0)
    told_ms = links[other].new("update")[-1].time.latency_ms
    assert told_ms == pytest.approx(45, abs=1)
    await room.move(links)
    moved = room.entries("move")[-1]
    assert (moved.seat, moved.allowance_ms) == (other, told_ms)
    assert moved.charged_ms == moved.at_ms - moved.asked_ms - told_ms


@in_virtual_time
async def test_the_allowance_has_a_cap() -> None:
    room = Room(allowance_cap_ms=70)
    links = await room.seat_all()
    other = room.other
    links[other].stream.check_reader()
    await room.pass_ms(180)
    links[other].send(pb.PlayRequestItem(pong=pb.Pong(number=links[other].new("ping")[0].number)))
    await room.move(links)
    await room.move(links)
    assert room.entries("move")[-1].allowance_ms == 70


@in_virtual_time
async def test_the_deal_waits_for_all_but_not_for_ever() -> None:
    room = Room(3, setup_ms=5000)
    room.table.start_clocks()
    for seat in (0, 2):
        room.link(seat).sit(seat)
    await room.pass_ms(4990)
    assert not room.entries("dealt")
    await room.pass_ms(20)
    assert [entry.kind for entry in room.entries()][2:4] == ["forfeited", "dealt"]
    assert room.entries("forfeited")[0].ending == "NEVER_SAT"
    assert room.dealt == [room.table]


@in_virtual_time
async def test_a_match_to_which_nobody_comes_is_void() -> None:
    room = Room(setup_ms=5000)
    room.table.start_clocks()
    room.link(0).sit(0)
    await room.pass_ms(5010)
    assert room.entries()[-1].reason == "TOO_FEW_SAT"
    assert room.ended == [room.table]


# --- Receipts -------------------------------------------------------------------------------------------


async def receipt_of(room: Room, link: Link, seat: int) -> bytes:
    link.new()
    link.sit(seat)
    await room.pass_ms(5)
    return bytes(link.new("update")[-1].receipt)


@in_virtual_time
async def test_receipts_are_equal_for_equal_knowledge() -> None:
    room = Room(4)
    links = await room.seat_all()
    seen = set()
    for _ in range(6):
        await room.move(links)
        receipts = {await receipt_of(room, link, seat) for seat, link in enumerate(links)}
        assert len(receipts) == 1
        seen |= receipts
    assert len(seen) == 6


@in_virtual_time
async def test_a_receipt_tells_nothing_of_anothers_rejections() -> None:
    room = Room()
    links = await room.seat_all()
    mover, other = room.asked, room.other
    before = [await receipt_of(room, links[seat], seat) for seat in (mover, other)]
    links[mover].submit(mover, room.illegal_move(), room.prompt, "r1")
    await room.pass_ms(5)
    after = [await receipt_of(room, links[seat], seat) for seat in (mover, other)]
    assert after[0] != before[0]
    assert after[1] == before[1]


@in_virtual_time
async def test_an_acceptance_has_the_receipt_of_what_its_seat_may_know() -> None:
    room = Room()
    links = await room.seat_all()
    mover = room.asked
    links[room.other].submit(room.other, room.legal_move(), room.prompt, "not asked")
    links[mover].submit(mover, room.legal_move(), room.prompt, "r1")
    await room.pass_ms(150)
    (accepted,) = links[mover].new("move_accepted")
    assert accepted.receipt == await receipt_of(room, links[mover], mover)


@in_virtual_time
async def test_receipts_are_bytes_without_a_meaning() -> None:
    """Another match has others for the same numbers, and the number is not in it."""
    room = Room()
    links = await room.seat_all()
    elsewhere = Room(setup=replace_seed(room))
    others = await elsewhere.seat_all()
    own = await receipt_of(room, links[0], 0)
    assert len(own) == 16
    assert own != await receipt_of(elsewhere, others[0], 0)


def replace_seed(room: Room) -> Any:
    from dataclasses import replace

    return replace(room.setup, seed=bytes(32))


@in_virtual_time
async def test_a_new_owner_gives_the_same_receipts() -> None:
    room = Room()
    links = await room.seat_all()
    own = await receipt_of(room, links[0], 0)
    written = [encode_entry(entry) for entry in room.entries()]
    heir = Room(setup=room.setup, position=room.match.position, epoch=2, written=written)
    link = heir.link(0)
    assert await receipt_of(heir, link, 0) == own


# --- Who is shown what ----------------------------------------------------------------------------------


@in_virtual_time
async def test_a_seat_that_asked_for_every_change_is_shown_it_soon_and_others_are_not() -> None:
    room = Room(3)
    links = await room.seat_all()
    mover, following = room.asked, (room.asked + 1) % 3
    watcher = (room.asked + 2) % 3
    links[watcher].sit(watcher, every_change=True)
    await room.pass_ms(10)
    links[watcher].new()
    await room.move(links)
    assert links[watcher].new() == []
    await room.pass_ms(SWEEP_MS)
    (update,) = links[watcher].new("update")
    assert (update.to_act, update.prompt, len(update.ugo.trick)) == (False, room.prompt, 1)
    assert kinds(links[following].new()) == ["update"]
    assert kinds(links[mover].new()) == ["move_accepted"]


@in_virtual_time
async def test_quick_changes_share_one_update() -> None:
    room = Room(4)
    links = await room.seat_all()
    watcher = (room.asked + 3) % 4
    links[watcher].sit(watcher, every_change=True)
    await room.pass_ms(10)
    links[watcher].new()
    for _ in range(2):
        await room.move(links)
    await room.pass_ms(SWEEP_MS)
    (update,) = links[watcher].new("update")
    assert len(update.ugo.trick) == 2


@in_virtual_time
async def test_a_rejected_move_leaves_no_trace_at_other_seats() -> None:
    room = Room(3)
    links = await room.seat_all(every_change=True)
    mover = room.asked
    await room.pass_ms(SWEEP_MS)
    for link in links:
        link.new()
    for number in range(3):
        links[mover].submit(mover, room.illegal_move(), room.prompt, f"r{number}")
        links[mover].submit(mover, room.legal_move(), room.prompt + 1, f"s{number}")
        await room.pass_ms(SWEEP_MS)
    assert [len(link.new()) > 0 for link in links] == [seat == mover for seat in range(3)]


@in_virtual_time
async def test_only_the_seat_that_is_asked_is_told_so() -> None:
    room = Room(4)
    links = await room.seat_all()
    while not room.match.is_over:
        await room.move(links)
        for seat, link in enumerate(links):
            for update in link.new("update"):
                assert update.to_act == (not room.match.is_over and seat == room.asked)
                assert update.ugo.seat == seat


# --- The end --------------------------------------------------------------------------------------------


@in_virtual_time
async def test_the_end_comes_after_the_last_view() -> None:
    room = Room()
    links = await room.seat_all()
    await room.play_out(links)
    for link in links:
        link.new()
    room.tell_end()
    room.table.close_table()
    await settle()
    for link in links:
        items = link.new()
        assert kinds(items)[-2:] == ["update", "match_ended"]
        assert (items[-2].update.prompt, items[-2].update.to_act) == (0, False)
    assert room.ended == [room.table]


@in_virtual_time
async def test_a_seat_that_does_not_read_when_the_match_ends_is_shown_its_end_later() -> None:
    room = Room()
    links = await room.seat_all()
    await room.play_out(links)
    room.link(1).sit(1)
    links[0].sit(0)
    await settle()
    links[0].new()
    links[0].stop_reading()
    links[0].sit(0)  # this one blocks the writer
    await settle()
    room.tell_end()
    room.table.close_table()
    await room.pass_ms(1000)
    links[0].read_on()
    await settle()
    assert kinds(links[0].new()) == ["update", "update", "match_ended"]


@in_virtual_time
async def test_a_seat_that_sits_down_after_the_end_is_told_it() -> None:
    room = Room()
    await room.play_out(await room.seat_all())
    room.tell_end()
    late = room.link(1)
    late.sit(1)
    await settle()
    (view, end) = late.new()
    assert end.match_ended.result.points == room.entries()[-1].outcome["points"]
    assert end.match_ended.seed == room.setup.seed
    assert view.update.ugo.points


@in_virtual_time
async def test_the_end_is_told_once_however_often_a_bot_that_does_not_read_asks() -> None:
    room = Room()
    await room.play_out(await room.seat_all())
    room.tell_end()
    late = room.link(1)
    late.stop_reading()
    late.sit(1)
    await settle()
    for _ in range(10_000):
        late.sit(1)
    assert len(late.stream.outbox.take_draft().items) == 2


@in_virtual_time
async def test_a_move_after_the_end_is_told_that_the_match_is_over() -> None:
    room = Room()
    links = await room.seat_all()
    move = room.legal_move()
    await room.play_out(links)
    links[0].new()
    links[0].submit(0, move, 1, "late")
    links[0].resign(0)
    await settle()
    assert reasons(links[0].new("move_rejected")) == ["MATCH_OVER"] * 2


@in_virtual_time
async def test_a_voided_match_is_over_at_once_and_once() -> None:
    room = Room()
    links = await room.seat_all()
    for _ in range(2):
        room.table.void_match(VoidReason.ABORTED)
    await room.pass_ms(10)
    assert [entry.reason for entry in room.entries("voided")] == ["ABORTED"]
    assert room.ended == [room.table]
    room.tell_end()
    await settle()
    assert links[0].new("match_ended")[0].void_reason == "ABORTED"


@in_virtual_time
async def test_a_closed_table_does_nothing_more() -> None:
    room = Room()
    links = await room.seat_all(every_change=True)
    mover = room.asked
    room.journal.hold()
    links[mover].submit(mover, room.legal_move(), room.prompt, "r1")
    links[mover].resign(mover)
    room.table.close_table()
    room.journal.release()
    await room.pass_ms(LIMIT_MS * 4)
    assert [link.new() for link in links] == [[], []]
    assert [entry.kind for entry in room.entries()] == ["sat", "sat", "dealt", "move"]
    assert room.ended == []


@in_virtual_time
async def test_a_closed_table_is_forgotten_by_the_streams_that_sat_there() -> None:
    room = Room()
    links = await room.seat_all()
    assert [len(link.stream.outbox.seats) for link in links] == [1, 1]
    room.table.close_table()
    assert [len(link.stream.outbox.seats) for link in links] == [0, 0]


# --- Our own faults -------------------------------------------------------------------------------------


class Broken(RuntimeError):
    """A fault of ours."""


def break_rules(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    def play(*_: object) -> None:
        raise Broken

    monkeypatch.setattr(type(room.match.game), "play", play)


@in_virtual_time
async def test_a_fault_of_ours_voids_the_match_and_harms_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    room, neighbour = Room(), Room()
    links, others = await room.seat_all(), await neighbour.seat_all()
    mover = room.asked
    with monkeypatch.context() as broken, capture_logs() as logs:
        break_rules(room, broken)
        links[mover].submit(mover, room.legal_move(), room.prompt, "r1")
        await room.pass_ms(10)
    assert [entry.reason for entry in room.entries("voided")] == ["UNPLAYABLE"]
    assert room.ended == [room.table]
    assert not room.table.is_fenced
    assert [line["event"] for line in logs if line["log_level"] == "error"] == ["match_failed"]
    await neighbour.play_out(others)
    assert neighbour.entries()[-1].kind == "finished"


@in_virtual_time
async def test_commands_that_wait_when_a_match_fails_are_answered_by_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room = Room()
    links = await room.seat_all()
    mover, other = room.asked, room.other
    room.journal.hold()
    links[mover].submit(mover, room.illegal_move(), room.prompt, "r1")
    with monkeypatch.context() as broken:
        for seat in (mover, mover, other):
            links[seat].submit(seat, room.legal_move(), room.prompt, "r2")
        links[other].resign(other)
        room.table.resume_after_gap(0.5)
        break_rules(room, broken)
        room.journal.release()
        await room.pass_ms(10)
    assert [entry.kind for entry in room.entries()[3:]] == ["rejected", "frozen", "voided"]
    assert not room.table.is_fenced
    assert reasons(links[mover].new("move_rejected")) == ["ILLEGAL", "MATCH_OVER"]
    assert reasons(links[other].new("move_rejected")) == ["MATCH_OVER"] * 2


@in_virtual_time
async def test_the_log_tells_no_card_and_no_seed() -> None:
    room = Room()
    with capture_logs() as logs:
        links = await room.seat_all()
        mover = room.asked
        links[mover].submit(mover, room.illegal_move(), room.prompt, "r1")
        await room.pass_ms(10)
    assert [(line["event"], line["seat"], line["reason"]) for line in logs] == [
        ("move_rejected", mover, "ILLEGAL")
    ]
    assert room.setup.seed.hex() not in repr(logs)


# --- Who may sit where ----------------------------------------------------------------------------------


@in_virtual_time
async def test_a_seat_belongs_to_its_bot() -> None:
    table: Table = Room(3).table
    assert table.is_seat_of("bots/b1/versions/1", 1)
    for bot, seat in (
        ("bots/b1/versions/1", 2),
        ("bots/b1/versions/1", -2),
        ("bots/b2/versions/1", 3),
        ("", 0),
    ):
        assert not table.is_seat_of(bot, seat)


@in_virtual_time
async def test_a_nonce_counts_the_first_time_only() -> None:
    room = Room()
    room.table.start_clocks()
    link = room.link(0)
    for nonce in (bytes(31), bytes([1]) * 32, bytes([2]) * 32):
        link.send(pb.PlayRequestItem(match=room.table.name, seat=0, sit=pb.Sit(nonce=nonce)))
        await room.pass_ms(5)
    assert reasons(link.new("move_rejected")) == ["MALFORMED"]
    assert [entry.nonce for entry in room.entries("sat")] == ["01" * 32]


@in_virtual_time
async def test_seats_are_given_to_the_newer_of_two_streams() -> None:
    room = Room()
    links = await room.seat_all()
    mover = room.asked
    newer = room.link(mover)
    newer.sit(mover)
    await asyncio.sleep(0)
    links[mover].submit(mover, room.legal_move(), room.prompt, "r1")
    newer.submit(mover, room.legal_move(), room.prompt, "r2")
    await room.pass_ms(SWEEP_MS)
    assert reasons(links[mover].new("move_rejected")) == ["NOT_SEATED"]
    assert [told.request_id for told in newer.new("move_accepted")] == ["r2"]
    assert Seat(room.asked) != mover


@in_virtual_time
async def test_a_closed_table_is_freed_without_the_garbage_collector() -> None:
    """Its scan stops all matches."""
    room = Room()
    await room.play_out(await room.seat_all())
    gc.disable()
    try:
        room.table.close_table()
        room.ended.clear()
        room.dealt.clear()
        room.journal.appends.clear()
        del room.table, room.intake
        await asyncio.sleep(1)
        left = [each for each in gc.get_objects() if type(each) is Table and each.match.setup is room.setup]
    finally:
        gc.enable()
    assert left == []
