"""A bot's receipt proves that the journal has lost what the bot was told; nothing else proves anything."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.room import Link, Room
from doubles.virtual import in_virtual_time
from matches.one_match import SEED

from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee.ending import VoidReason
from seatwise_referee.journal import Rejected, encode_entry
from seatwise_referee.match import replay_match
from seatwise_server.play import play_messages
from seatwise_server.play.seat_updates import Receipts

KEY = play_messages.receipt_key(SEED)


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
    written = [encode_entry(entry) for entry in entries]
    heir = Room(
        setup=room.setup, position=replay_match(room.setup, entries).position, epoch=2, written=written
    )
    heir.table.start_clocks()
    await heir.pass_ms(10)
    return heir, [heir.link(seat) for seat in range(2)]


@in_virtual_time
async def test_a_receipt_of_what_the_journal_has_lost_voids_the_match() -> None:
    room, receipts, entries = await played(6)
    for lost in (1, 2, 3):
        heir, links = await after_failover(room, entries[:-lost])
        sit(heir, links[0], 0, receipts[0])
        await heir.pass_ms(10)
        assert heir.match.position.end.reason == "JOURNAL_LOST"


@in_virtual_time
async def test_a_loss_is_known_although_as_much_was_written_since() -> None:
    room, receipts, entries = await played(6)
    heir, links = await after_failover(room, entries[:-3])
    for seat, link in enumerate(links):
        link.sit(seat)
    await heir.pass_ms(10)
    for _ in range(4):
        await heir.move(links)
    assert len(heir.entries()) > len(entries)
    sit(heir, links[1], 1, receipts[1])
    await heir.pass_ms(10)
    assert heir.match.position.end.reason == "JOURNAL_LOST"


@in_virtual_time
async def test_an_end_has_a_receipt_that_proves_its_loss() -> None:
    room = Room()
    links = await room.seat_all()
    entries = room.entries()
    room.table.void_match(VoidReason.ABORTED)
    await room.pass_ms(10)
    room.tell_end()
    await room.pass_ms(10)
    heir, again = await after_failover(room, entries)
    sit(heir, again[0], 0, links[0].new("match_ended")[0].receipt)
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


OTHERS = Receipts(b"another key", [b"entry"]).receipt_of(1)


@pytest.mark.parametrize("receipt", [b"x", b"x" * 16, b"x" * 1000, b"", OTHERS, OTHERS[:8]])
@in_virtual_time
async def test_bytes_that_are_no_receipt_of_ours_prove_nothing(receipt: bytes) -> None:
    room, _, entries = await played(2)
    heir, links = await after_failover(room, entries)
    sit(heir, links[0], 0, receipt)
    await heir.pass_ms(10)
    assert heir.match.position.end is None


ENTRIES = [b"one", b"two", b"three"]


def test_a_receipt_holds_as_long_as_its_entry_and_all_before_it_are_there() -> None:
    given = [Receipts(KEY, ENTRIES).receipt_of(seq) for seq in range(4)]
    assert len({*given}) == 4
    assert [Receipts(KEY, ENTRIES).prove_loss(each) for each in given] == [False] * 4
    assert [Receipts(KEY, ENTRIES[:2]).prove_loss(each) for each in given] == [False, False, False, True]
    assert [Receipts(KEY, [b"one", b"2", b"three"]).prove_loss(each) for each in given] == [
        False,
        False,
        True,
        True,
    ]


def test_an_entry_has_the_same_receipt_whoever_writes_it_and_however() -> None:
    added = Receipts(KEY)
    for entry in ENTRIES:
        added.add_entry(entry, is_public=b'"kind":"rejected"' not in entry)
    assert [added.receipt_of(seq) for seq in range(4)] == [
        Receipts(KEY, ENTRIES).receipt_of(seq) for seq in range(4)
    ]


def test_a_refusal_is_in_no_receipt_but_that_of_its_seat() -> None:
    refused = [
        encode_entry(
            Rejected(seq=2, at_ms=1, seat=0, prompt=1, request_id=each, reason="ILLEGAL", message="")
        )
        for each in "ab"
    ]
    one, other = (Receipts(KEY, [b"one", it, b"three"]) for it in refused)
    assert [one.receipt_of(seq) == other.receipt_of(seq) for seq in (1, 2, 3)] == [True, False, True]
    assert other.prove_loss(one.receipt_of(2))


def test_a_mark_is_found_only_where_one_begins() -> None:
    receipts = Receipts(KEY, ENTRIES)
    shifted = bytes(receipts._marks[4:12])
    assert receipts.prove_loss(shifted + receipts._seal_mark(shifted))
