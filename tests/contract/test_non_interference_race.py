"""In a race no seat learns over the wire what others build, nor that one of them has called before it may know.

Two worlds again: in one the match as it is, with a seat that calls; in the other every hand and layout that
the viewer cannot know drawn anew, and nobody calls. Until the call is released, the viewer is sent the
same bytes at the same times.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from doubles import virtual
from doubles.room import Room
from leaks.two_worlds import Moment, Seen, renamed_receipts, twin_of, unlike, what_is_seen
from matches.one_race import SEVEN, fitting, race_setup
from structlog.testing import capture_logs

from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee.game import Seat
from seatwise_referee.games.registry import GAMES
from seatwise_referee.games.ubongo import CALL, CARDS, Lay, OfferEnd, Placement, UbongoCard
from seatwise_referee.journal import JournalEntry, encode_entry
from seatwise_referee.match import Match
from seatwise_server.play.allowance import DistanceMeter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from doubles.room import Link

    from seatwise_referee.journal import Entry
    from seatwise_referee.position import Position

ROUND_TRIP_MS = 300
"""Of the viewer: a call of another is held back for so long, for the viewer's might be on its way."""

LOOKED_AT_MS = 250
"""After the call: longer than anything waits in an outbox."""

every_table = pytest.mark.parametrize("seats", GAMES["ubongo"].table_sizes)


@dataclass
class Plan:
    """What all seats do in both worlds."""

    viewer: Seat
    lays: dict[Seat, list[int]]
    """By seat, how many fitting cards it lays one after the other."""
    caller: Seat
    own: UbongoCard
    """One of the viewer's."""
    foreign: UbongoCard
    """Not one of the viewer's."""


@dataclass
class Story:
    """What the viewer was told, and what came of the call."""

    seen: Seen
    """Until shortly before the call is released."""
    was_held: bool
    later: list[str]
    """The entries that followed."""


def moments(seats: int, chance: Random) -> Iterator[Moment]:
    """The beginnings of all rounds."""
    setup = race_setup(seats, rounds=3, max_strikes=9, max_rejections=99, allowance_cap_ms=ROUND_TRIP_MS)
    match, entries, now = Match(setup), list[Any](), 0
    for seat in range(seats):
        entries += done(match, match.sit(Seat(seat), chance.randbytes(32), now), now)
    while not match.is_over:
        yield Moment(setup, match.position, list(entries), [])
        now += 20_000
        entries += done(match, match.tick(now), now)


def done(match: Match, effects: list[Any], now: int) -> list[Entry]:
    match.confirm_entries(now)
    return [effect for effect in effects if isinstance(effect, JournalEntry)]


def plan_for(moment: Moment, viewer: Seat, chance: Random) -> Plan:
    seats, hands = len(moment.setup.bots), moment.position.state.round.hands
    held = [side.card for side in hands[viewer]]
    others = [Seat(seat) for seat in range(seats) if seat != viewer]
    lays = {seat: [chance.randrange(SEVEN + 1) for _ in range(2)] for seat in (*others, viewer)}
    caller = chance.choice(others)
    lays[caller].append(SEVEN)
    foreign = chance.choice([card for card in CARDS if card not in held])
    return Plan(viewer, lays, caller, chance.choice(held), foreign)


def has_layouts(position: Position) -> bool:
    """Whether every hand can lay seven that fit; not all can."""
    try:
        return all(fitting(hand, SEVEN) for hand in position.state.round.hands)
    except AssertionError:
        return False


async def story(
    moment: Moment, position: Position, plan: Plan, *, is_called: bool, is_noisy: bool = False
) -> Story:
    room = Room(setup=moment.setup, position=position)
    room.journal.start_with(room.table.name, map(encode_entry, moment.entries))
    room.table.start_clocks()
    with capture_logs() as log:
        links = [room.link(seat) for seat in range(len(moment.setup.bots))]
        await measure(room, links[plan.viewer])
        for seat, link in enumerate(links):
            link.sit(seat, every_change=True)
        await room.pass_ms(20)
        for step in range(3):
            for seat, numbers in plan.lays.items():
                if step < len(numbers):
                    lay(room, links, seat, numbers[step], f"lay {step}")
                if seat != plan.viewer and is_noisy:
                    complain(room, links[seat], seat, plan.own)
                await room.pass_ms(7)
        complain(room, links[plan.viewer], plan.viewer, plan.foreign)
        links[plan.viewer].submit(plan.viewer, OfferEnd(True), room.prompt, "offer")
        await room.pass_ms(150)
        before = len(room.entries())
        if is_called:
            links[plan.caller].submit(plan.caller, CALL, room.prompt, "call")
        await room.pass_ms(LOOKED_AT_MS)
        seen = what_is_seen(room, position, links, plan, [] if is_noisy else log)  # type: ignore[arg-type]
        was_held = len(room.entries()) == before
        await room.pass_ms(200)
    return Story(seen, was_held, [entry.kind for entry in room.entries()[before:]])


async def measure(room: Room, link: Link) -> None:
    """The viewer is far away, so calls of others are held for long."""
    link.stream.meter = DistanceMeter(read_kernel=lambda: ROUND_TRIP_MS)
    link.stream.check_reader()
    await room.pass_ms(ROUND_TRIP_MS)
    link.send(pb.PlayRequestItem(pong=pb.Pong(number=1)))


def lay(room: Room, links: list[Link], seat: Seat, number: int, request_id: str) -> None:
    layout = fitting(room.state.round.hands[seat], SEVEN)[:number]
    links[seat].submit(seat, Lay(layout), room.prompt, request_id)


def complain(room: Room, link: Link, seat: Seat, foreign: UbongoCard) -> None:
    """Says what does not stand: lays a card that is not its own, answers another prompt, says nothing at all."""
    link.submit(seat, Lay((Placement(foreign, 0, 0, 0),)), room.prompt, "foreign")
    link.submit(seat, OfferEnd(False), 999, "stale")
    link.send(pb.PlayRequestItem(match=room.table.name, seat=seat))


@every_table
def test_a_race_looks_the_same_whatever_a_seat_cannot_know_and_whether_or_not_one_has_called(
    seats: int,
) -> None:
    chance, looked = Random(seats), 0
    for moment in moments(seats, chance):
        for viewer in map(Seat, range(seats)):
            twin = twin_of(moment, viewer, chance)
            if has_layouts(moment.position) and has_layouts(twin):
                plan = plan_for(moment, viewer, chance)
                called = virtual.run(story(moment, moment.position, plan, is_called=True))
                silent = virtual.run(story(moment, twin, plan, is_called=False))
                assert called.was_held
                assert called.later[0] == "called"
                assert "called" not in silent.later
                assert list(unlike(called.seen, silent.seen)) == []
                looked += 1
    assert looked >= seats


@every_table
def test_in_a_race_too_the_rejections_of_others_leave_no_trace(seats: int) -> None:
    chance, looked = Random(seats), 0
    for moment in moments(seats, chance):
        if has_layouts(moment.position):
            plan = plan_for(moment, Seat(chance.randrange(seats)), chance)
            calm, noisy = (
                virtual.run(story(moment, moment.position, plan, is_called=False, is_noisy=is_noisy))
                for is_noisy in (False, True)
            )
            assert renamed_receipts(calm.seen.messages) == renamed_receipts(noisy.seen.messages)
            looked += 1
    assert looked > 0
