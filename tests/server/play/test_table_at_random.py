"""Whatever bots, links, the store and our own process do in whatever order, a table keeps its word."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from doubles.room import Link, Room
from doubles.virtual import in_virtual_time, settle
from matches.effort import examples

from seatwise.kits.codecs import CODECS
from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee import record
from seatwise_referee.ending import VoidReason
from seatwise_referee.game import Seat
from seatwise_referee.journal import encode_entry
from seatwise_referee.match import replay_match
from seatwise_referee.position import first_position, position_after
from seatwise_referee.verify import verify_line
from seatwise_server.play.outbox import MOST_ANSWERS
from seatwise_server.play.table import MOST_WAITING_COMMANDS

MOST_STEPS = 500


class Evening:
    """A match among bots that err, links that break, a store that comes and goes, and a process that stalls."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.seats = self.chance.randint(2, 4)
        self.room = Room(
            self.seats,
            max_strikes=self.chance.randint(1, 8),
            max_rejections=self.chance.randint(3, 30),
            increment_ms=self.chance.choice([0, 100]),
            setup_ms=2000,
        )
        self.links: list[Link | None] = [None] * self.seats
        self.all_links: list[tuple[int, Link]] = []
        self.numbers = iter(range(10**9))
        self.submitted: list[tuple[int, Any, int, str]] = []
        self.away_since: float | None = None
        """When the store went."""

    async def play(self) -> None:
        self.room.table.start_clocks()
        if self.chance.random() < 0.9:
            for seat in range(self.seats):
                await self.sit(seat)
        for _ in range(MOST_STEPS):
            await self.step()
            if self.room.match.is_over:
                break
        await self.come_back()
        for _ in range(1000):
            await self.room.pass_ms(500)  # the clocks end it
            if self.room.match.is_over:
                return
        raise AssertionError("the match does not end")

    async def step(self) -> None:
        what = self.chance.choices(
            [self.answer, self.nonsense, self.repeat, self.sit, self.hang_up, self.read_or_not, self.measure,
             self.wait, self.stall, self.store, self.resign],
            [40, 6, 6, 10, 1, 4, 4, 10, 2, 4, 0.1],
        )[0]  # fmt: skip
        await what()
        for link in self.links:
            if link:
                assert len(link.stream.outbox._answers) < 2 * MOST_ANSWERS
        assert len(self.room.table._commands) <= self.seats * MOST_WAITING_COMMANDS + 8

    def linked(self) -> list[tuple[int, Link]]:
        return [(seat, link) for seat, link in enumerate(self.links) if link]

    async def answer(self) -> None:
        if self.room.prompt and (link := self.links[self.room.asked]):
            seat = self.room.asked
            moves = list(self.room.match.game.legal_moves(self.room.state, seat))
            self.submit(link, seat, self.chance.choice(moves), self.room.prompt)
        await settle()

    async def nonsense(self) -> None:
        for seat, link in self.linked():
            prompt = self.chance.choice([0, 1, self.room.prompt, self.room.prompt, self.room.prompt + 1])
            self.submit(link, seat, self.room.illegal_move(), prompt)
        await settle()

    def submit(self, link: Link, seat: int, move: Any, prompt: int) -> None:
        said = (seat, move, prompt, f"r{next(self.numbers)}")
        self.submitted.append(said)
        link.submit(*said)

    async def repeat(self) -> None:
        for seat, link in self.linked():
            own = [said for said in self.submitted[-8:] if said[0] == seat]
            if own:
                link.submit(*self.chance.choice(own))

    async def sit(self, seat: int | None = None) -> None:
        if seat is None:
            seat = self.chance.randrange(self.seats)
        if self.links[seat] is None or self.chance.random() < 0.2:
            link = self.links[seat] = self.room.link(seat)
            self.all_links.append((seat, link))
        link = self.links[seat]
        assert link
        link.sit(seat, every_change=self.chance.random() < 0.5)
        await settle()

    async def hang_up(self) -> None:
        seat = self.chance.randrange(self.seats)
        link, self.links[seat] = self.links[seat], None
        if link:
            link.hang_up()

    async def read_or_not(self) -> None:
        for _, link in self.linked():
            link.stop_reading() if self.chance.random() < 0.3 else link.read_on()

    async def measure(self) -> None:
        for _, link in self.linked():
            link.stream.check_reader()
            pings = [item.ping.number for item in link.items() if item.HasField("ping")]
            if pings:
                link.send(pb.PlayRequestItem(pong=pb.Pong(number=self.chance.choice(pings[-3:]))))

    async def wait(self) -> None:
        await self.room.pass_ms(self.chance.choice([1, 20, 120, 300, 300, 1700]))

    async def stall(self) -> None:
        self.room.loop.stand_still(self.chance.choice([0.03, 0.2, 3.0]))

    async def store(self) -> None:
        if self.away_since is not None:
            await self.come_back()
            return
        self.room.journal.hold()
        self.away_since = self.room.loop.time()
        self.room.journal.healthy = self.chance.random() < 0.5

    async def come_back(self) -> None:
        if self.away_since is not None:
            gap_s, self.away_since = self.room.loop.time() - self.away_since, None
            if not self.room.journal.healthy:
                self.room.journal.healthy = True
                self.room.table.resume_after_gap(gap_s)
            self.room.journal.release()
        await settle()

    async def resign(self) -> None:
        for seat, link in self.linked()[:1]:
            link.resign(seat)
        if self.chance.random() < 0.1:
            self.room.table.void_match(VoidReason.ABORTED)


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(examples(60, 16)))
@in_virtual_time
async def test_a_table_keeps_its_word(seed: int) -> None:
    evening = Evening(seed)
    await evening.play()
    room = evening.room
    assert not room.table.is_fenced
    assert room.ended == [room.table]
    assert room.journal.most_in_flight == 1
    check_record(room)
    check_answers(evening)
    check_views(evening)


def check_record(room: Room) -> None:
    """The journal replays to the same end, and a verifier who trusts nobody finds nothing wrong."""
    entries = room.entries()
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert replay_match(room.setup, entries).position == room.match.position
    if entries[-1].kind == "finished":
        verdict = verify_line(record.record_line(record.build_record(room.setup, entries)))
        assert verdict.fault is None, verdict.fault


def check_answers(evening: Evening) -> None:
    """What was accepted is in the journal, once; what is there was sent by that seat for that prompt."""
    moved = [(entry.seat, entry.prompt, entry.request_id) for entry in evening.room.entries("move")]
    assert len(moved) == len(set(moved))
    accepted = {
        (seat, item.move_accepted.request_id)
        for seat, link in evening.all_links
        for item in link.items()
        if item.HasField("move_accepted")
    }
    assert accepted <= {(seat, request_id) for seat, _, request_id in moved}
    assert set(moved) <= {(seat, prompt, request_id) for seat, _, prompt, request_id in evening.submitted}


def check_views(evening: Evening) -> None:
    """Each view that was told is that seat's view of a position in the journal, and never of an earlier one."""
    room, game = evening.room, evening.room.match.game
    codec = CODECS[room.setup.game]
    position, states = first_position(room.setup), []
    for entry in room.entries():
        position = position_after(position, entry, room.setup, game)
        if position.state is not None and (not states or states[-1] is not position.state):
            states.append(position.state)
    for seat, link in evening.all_links:
        known = [game.view(state, Seat(seat)) for state in states]
        at = 0
        for item in link.items():
            if item.HasField("update") and item.update.HasField("ugo"):
                at = known.index(codec.decode_view(item.update.ugo), at)


@in_virtual_time
async def test_an_heir_goes_on_from_any_moment() -> None:
    """After any append another referee may take over; the match ends as a record that verifies."""
    evening = Evening(4)
    await evening.play()
    entries = evening.room.entries()
    appends = evening.room.journal.appends
    for seq in [append.first_seq + len(append.entries) - 1 for append in appends[evening.seats : -1 : 5]]:
        position = replay_match(evening.room.setup, entries[:seq]).position
        heir = Room(setup=evening.room.setup, position=position, epoch=2)
        heir.journal.start_with(heir.table.name, map(encode_entry, entries[:seq]))
        heir.table.start_clocks()
        links = [heir.link(seat) for seat in range(evening.seats)]
        for seat, link in enumerate(links):
            link.sit(seat)
        await heir.pass_ms(20)
        while not heir.match.is_over:
            await heir.move(links)
        check_record(heir)
