"""No seat learns over the wire what it may not know: not by an item, its time, a rejection, a log line or Watch."""

from __future__ import annotations

import asyncio
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest
from doubles import virtual
from doubles.room import PushedLink, Room
from hypothesis import given
from leaks.two_worlds import (
    Course,
    Moment,
    Plan,
    Seen,
    compared,
    comparisons,
    plan_for,
    renamed_receipts,
    setup_for,
)
from matches.effort import FULL
from matches.one_match import nonce
from matches.random_matches import TABLES, Chances, bounded, viewers
from structlog.testing import capture_logs

from seatwise.codec.wire_format import encode_field
from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee.decision import AcceptMove
from seatwise_referee.game import Seat
from seatwise_referee.journal import encode_entry
from seatwise_referee.mixed_move import MixedMove
from seatwise_server.play import spectating
from seatwise_server.play.outbox import Outbox
from seatwise_server.play.play_stream import PlayStream
from seatwise_server.play.seat_updates import SeatUpdates

if TYPE_CHECKING:
    from collections.abc import Callable

TURNS = [(game, seats) for game, seats in TABLES if not hasattr(game, "call_together")]
every_table = pytest.mark.parametrize(
    ("game", "seats"), TURNS, ids=lambda value: str(getattr(value, "name", value))
)


STEPS = 1.0 if FULL else 0.4
"""The part of the steps of a match that is looked at."""


@pytest.mark.sampled
@every_table
def test_a_seat_is_sent_the_same_bytes_whatever_it_cannot_know(game: Any, seats: int) -> None:
    """At every step of one match, for two who look on."""
    found = list(comparisons(game, seats, Random(seats), STEPS, most_viewers=2))
    assert [each.differences for each in found if each.differences] == []
    assert sum(each.went_on for each in found) > len(found) / 4
    assert set().union(*(each.kinds for each in found)) >= {
        "update", "ping", "move_accepted", "move_rejected", "match_ended",
        "ILLEGAL", "NOT_ASKED", "STALE", "TOO_LATE", "MALFORMED", "WRONG_GAME", "NOT_YOUR_SEAT", "TOO_MANY",
    }  # fmt: skip


@pytest.mark.sampled
def test_a_seat_is_sent_the_same_bytes_by_websocket_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its streams have no writer task, so messages are made elsewhere."""
    monkeypatch.setattr(Room, "link_type", PushedLink)
    game = next(game for game, _ in TURNS)
    found = list(comparisons(game, 2, Random(2), STEPS, most_viewers=2))
    assert [each.differences for each in found if each.differences] == []
    assert sum(each.went_on for each in found) > len(found) / 4


@every_table
@given(chance=Chances)
@bounded(4)
def test_nothing_leaks_at_some_moments_of_many_matches(game: Any, seats: int, chance: Random) -> None:
    for each in comparisons(game, seats, chance, 0.04):
        assert each.differences == []


# --- Other seats' rejections ----------------------------------------------------------------------------


@every_table
def test_the_rejections_of_others_leave_no_trace(game: Any, seats: int) -> None:
    """Whatever others ask for in vain, a seat is sent the same at the same times, up to the names of receipts."""
    chance = Random(seats)
    looked = 0
    for moment in Course(game, seats, chance).moments():
        if len(moment.moves) % 5 == 4:
            viewer = Seat(chance.randrange(seats))
            plan = plan_for(game, moment, moment.position, viewer, chance)
            calm, noisy = (virtual.run(_among(moment, plan, noise)) for noise in (False, True))
            assert renamed_receipts(calm) == renamed_receipts(noisy)
            looked += len(calm) > 0
    assert looked > 5


async def _among(moment: Moment, plan: Plan, is_noisy: bool) -> list[tuple[float, bytes]]:
    """A viewer who wants every change, while others are quiet, or are refused whatever they want."""
    assert plan.viewer is not None
    room = Room(setup=moment.setup, position=moment.position)
    room.journal.start_with(room.table.name, map(encode_entry, moment.entries))
    room.table.start_clocks()
    links = [room.link(seat) for seat in range(len(moment.setup.bots))]
    for seat, link in enumerate(links):
        link.sit(seat, every_change=True)
    await room.pass_ms(100)
    for number in range(3):
        for seat, link in enumerate(links):
            if is_noisy and seat != plan.viewer:
                for move in plan.refused[Seat(seat)]:
                    link.submit(seat, move, plan.prompt, f"refused {number}")
                    link.submit(seat, move, 999, f"stale {number}")
                link.send(pb.PlayRequestItem(match=room.table.name, seat=seat))
        await room.pass_ms(150)  # longer than anything waits in an outbox
        links[plan.viewer].sit(plan.viewer, every_change=True)
        await room.pass_ms(50)
    seat = plan.asked[0]
    for move in plan.legal[seat][:1]:
        links[seat].submit(seat, move, plan.prompt, "played")
    await room.pass_ms(200)
    return links[plan.viewer].messages


# --- Other seats' mixed moves ----------------------------------------------------------------------------


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_that_others_left_their_moves_to_a_draw_leaves_no_trace(seats: int) -> None:
    """A seat, a spectator and the log are told the same whether others declare probabilities or send the card that was drawn."""
    mixed, drawn = virtual.run(_with_choices(seats, []))
    plain, _ = virtual.run(_with_choices(seats, drawn))
    assert len(drawn) > 10
    assert renamed_receipts(mixed.messages) == renamed_receipts(plain.messages)
    assert (mixed.watched, mixed.log) == (plain.watched, plain.log)


async def _with_choices(seats: int, plain: list[Any]) -> tuple[Seen, list[Any]]:
    """Seat 0 looks on at a whole match. Others send mixed moves, or the moves of `plain`. Returns also what others played."""
    room = Room(seats)
    drawn: list[Any] = []
    watched: list[bytes] = []
    with capture_logs() as log:
        links = await room.seat_all(every_change=True)
        viewer = links[0]
        while not room.match.is_over:
            seat, game = room.asked, room.match.game
            moves = list(game.legal_moves(room.state, seat))  # type: ignore[union-attr]
            move: Any = moves[0]
            if seat != 0:
                move = (
                    plain[len(drawn)] if plain else MixedMove([(each, 1 + n) for n, each in enumerate(moves)])
                )
            links[seat].submit(seat, move, room.prompt, f"r{room.prompt}")
            await room.pass_ms(150)
            if seat != 0:
                drawn.append(game.move_from_json(room.entries("move")[-1].move))
            position = room.match.position
            watched.append(
                spectating.spectator_view(position, room.setup, position.at_ms).SerializeToString()
            )
    return Seen(viewer.messages, watched, list(log)), drawn


# --- Before the deal ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("game", "seats"), TABLES, ids=lambda value: str(getattr(value, "name", value)))
def test_before_the_deal_nothing_tells_of_the_seed_nor_of_the_nonces_of_others(game: Any, seats: int) -> None:
    for viewer in map(Seat, range(seats)):
        one, other = (virtual.run(_undealt(game, seats, viewer, Random(secret))) for secret in (1, 2))
        assert one == other


async def _undealt(game: Any, seats: int, viewer: Seat, secret: Random) -> list[Any]:
    """What a seat is told while another has not sat down, and what that one is told, and the log."""
    setup, absent = setup_for(game, seats, secret), (viewer + 1) % seats
    move = next(game.legal_moves(game.deal(seats, bytes(32), setup.options), Seat(0)))
    with capture_logs() as log:
        room = Room(setup=setup)
        room.table.start_clocks()
        links = [room.link(seat) for seat in range(seats)]
        for seat in set(range(seats)) - {absent}:
            sit = pb.Sit(nonce=nonce(seat) if seat == viewer else secret.randbytes(32))
            links[seat].send(pb.PlayRequestItem(match=setup.match, seat=seat, sit=sit))
        await room.pass_ms(100)
        for seat, link in enumerate(links):
            link.submit(seat, move, 1, "early")
        links[viewer].sit(viewer, every_change=True)
        await room.pass_ms(300)
    refused = [[told.reason for told in links[seat].new("move_rejected")] for seat in (viewer, absent)]
    assert refused == [[pb.MoveRejected.REASON_NOT_ASKED], [pb.MoveRejected.REASON_NOT_SEATED]]
    return [renamed_receipts(links[viewer].messages), renamed_receipts(links[absent].messages), log]


# --- Leaks that were planted ----------------------------------------------------------------------------


def secret(table: SeatUpdates) -> int:
    """Something of the state that hardly any two worlds have in common."""
    return crc32(repr(table.match.position.state).encode()) % 997  # not hash(), which each process salts


def leak_in_updates(patch: pytest.MonkeyPatch) -> None:
    clean = SeatUpdates.encode_update

    def leaky(self: SeatUpdates, seat: int) -> tuple[bytes, int]:
        item, prompt = clean(self, seat)
        return item + encode_field(99, b"%d" % secret(self)), prompt

    patch.setattr(SeatUpdates, "encode_update", leaky)


def leak_in_acceptances(patch: pytest.MonkeyPatch) -> None:
    clean = SeatUpdates._send_acceptance

    def leaky(self: SeatUpdates, it: AcceptMove) -> None:
        clean(self, AcceptMove(it.seat, it.request_id, it.charged_ms + secret(self)))

    patch.setattr(SeatUpdates, "_send_acceptance", leaky)


def leak_in_rejections(patch: pytest.MonkeyPatch) -> None:
    clean = SeatUpdates.send_rejection

    def leaky(self: SeatUpdates, seat: int, request_id: str, reason: str, message: str) -> None:
        clean(self, seat, request_id, reason, f"{message} {secret(self)}")

    patch.setattr(SeatUpdates, "send_rejection", leaky)


def leak_in_receipts(patch: pytest.MonkeyPatch) -> None:
    clean = SeatUpdates.encode_update

    def leaky(self: SeatUpdates, seat: int) -> tuple[bytes, int]:
        self.receipts._key = b"%d" % secret(self)
        return clean(self, seat)

    patch.setattr(SeatUpdates, "encode_update", leaky)


def leak_in_pings(patch: pytest.MonkeyPatch) -> None:
    clean = PlayStream.check_reader

    def leaky(self: PlayStream) -> None:
        for table, _ in self.outbox.seats:
            self._ping_number += secret(table)  # type: ignore[arg-type]
        clean(self)

    patch.setattr(PlayStream, "check_reader", leaky)


def leak_in_time(patch: pytest.MonkeyPatch) -> None:
    clean = Outbox.mark_view_due

    def leaky(self: Outbox, table: Any, seat: int, *, at_once: bool) -> None:
        later = asyncio.get_running_loop().call_later
        later(secret(table) / 1e5, lambda: clean(self, table, seat, at_once=at_once))

    patch.setattr(Outbox, "mark_view_due", leaky)


def leak_in_log(patch: pytest.MonkeyPatch) -> None:
    clean = SeatUpdates.send_rejection

    def leaky(self: SeatUpdates, seat: int, request_id: str, reason: str, message: str) -> None:
        self._log.debug("move_rejected_again", state=secret(self))
        clean(self, seat, request_id, reason, message)

    patch.setattr(SeatUpdates, "send_rejection", leaky)


def leak_in_watch(patch: pytest.MonkeyPatch) -> None:
    clean = spectating.spectator_view

    def leaky(position: Any, setup: Any, at_ms: int) -> Any:
        return clean(position, setup, at_ms + hash(position.state) % 997)

    patch.setattr(spectating, "spectator_view", leaky)


LEAKS = {
    "messages": [leak_in_updates, leak_in_acceptances, leak_in_rejections, leak_in_receipts, leak_in_pings],
    "the time of messages": [leak_in_time],
    "log": [leak_in_log],
    "watch": [leak_in_watch],
}


IN_COMPILED_CORE = (leak_in_acceptances, leak_in_rejections, leak_in_time, leak_in_log)
"""These replace a method that the optional build compiles."""


@pytest.mark.parametrize(
    ("channel", "leak"),
    [
        pytest.param(channel, leak, marks=[pytest.mark.needs_sources] if leak in IN_COMPILED_CORE else [])
        for channel, leaks in LEAKS.items()
        for leak in leaks
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_leak_that_is_planted_is_found(
    channel: str, leak: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or all of the above would prove nothing."""
    game, seats = TURNS[-1]
    moment = next(islice(Course(game, seats, Random(1)).moments(), 6, None))
    viewers_ = [seat for seat in viewers(seats) if seat is not None]
    with monkeypatch.context() as patch:
        leak(patch)
        found = [compared(game, moment, viewer, Random(number)) for number in range(3) for viewer in viewers_]
    assert any(channel in each.differences for each in found)
