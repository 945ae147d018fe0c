"""A bot's receipt proves that the journal has lost what the bot was told; nothing else proves anything."""

from __future__ import annotations

from typing import Any

import pytest
from one_match import SEED
from room import Link, Room
from virtual import in_virtual_time

from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee.journal import encode
from seatwise_referee.match import replay
from seatwise_server.play import items
from seatwise_server.play.receipts import HORIZON, MOST_DOUBTS, Doubts

KEY = items.receipt_key(SEED)


def sit(room: Room, link: Link, seat: int, receipt: bytes) -> None:
    link.send(pb.PlayRequestItem(match=room.table.name, seat=seat, sit=pb.Sit(receipt=receipt)))


async def played(moves: int) -> tuple[Room, list[bytes], list[Any]]:
    """A match some moves old, what its seats were given last, and its journal."""
    room = Room()
    links = await room.seat_all(every_change=True)
    for _ in range(moves):
        await room.move(links)
    await room.pass_ms(200)
    receipts = [
        [item.update.receipt or item.move_accepted.receipt for item in link.items()][-1] for link in links
    ]
    return room, receipts, room.entries()


async def after_failover(room: Room, entries: list[Any]) -> tuple[Room, list[Link]]:
    """Another owner opens the match from this journal."""
    heir = Room(setup=room.setup, position=replay(room.setup, entries).position, epoch=2)
    heir.journal.start_with(heir.table.name, [encode(entry) for entry in entries])
    heir.table.open()
    await heir.pass_ms(10)
    return heir, [heir.link(seat) for seat in range(2)]


@in_virtual_time
async def test_a_receipt_of_what_the_journal_has_lost_voids_the_match() -> None:
    room, receipts, entries = await played(6)
    heir, links = await after_failover(room, entries[:-3])
    sit(heir, links[0], 0, receipts[0])
    await heir.pass_ms(10)
    assert heir.match.position.end.reason == "JOURNAL_LOST"


@in_virtual_time
async def test_a_receipt_that_the_journal_has_proves_nothing() -> None:
    room, receipts, entries = await played(6)
    heir, links = await after_failover(room, entries)
    for seat, link in enumerate(links):
        sit(heir, link, seat, receipts[seat])
    await heir.pass_ms(10)
    assert heir.match.position.end is None
    assert links[heir.asked].new("update")


@pytest.mark.parametrize("receipt", [b"x", b"x" * 16, b"x" * 1000, items.receipt(b"another key", 9)])
@in_virtual_time
async def test_what_is_no_receipt_of_ours_proves_nothing(receipt: bytes) -> None:
    room, _, entries = await played(2)
    heir, links = await after_failover(room, entries)
    sit(heir, links[0], 0, receipt)
    await heir.pass_ms(10)
    assert heir.match.position.end is None


def test_who_sends_rubbish_again_and_again_is_not_looked_at_for_ever() -> None:
    doubts = Doubts()
    for _ in range(MOST_DOUBTS):
        assert not doubts.prove_loss(KEY, 0, b"rubbish", 5)
    assert not doubts.prove_loss(KEY, 0, items.receipt(KEY, 6), 5)
    assert doubts.prove_loss(KEY, 1, items.receipt(KEY, 6), 5)


def test_a_proof_reaches_as_far_as_a_failover_may_forget() -> None:
    assert Doubts().prove_loss(KEY, 0, items.receipt(KEY, 5 + HORIZON), 5)
    assert not Doubts().prove_loss(KEY, 0, items.receipt(KEY, 6 + HORIZON), 5)
    assert not Doubts().prove_loss(KEY, 0, items.receipt(KEY, 0), 5)
