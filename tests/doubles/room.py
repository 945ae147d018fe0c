"""A referee's table with real streams, and no network and no Redis: time and the journal obey the test.

room = Room(seats=2)                  # in virtual time
links = await room.seat_all()         # all sit down, the match is dealt
room.journal.hold()                   # from now on the store does not answer
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matches.one_match import nonce, setup_of

from doubles.virtual import running, settle
from seatwise.kits.codecs import CODECS
from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee.game import Seat
from seatwise_referee.journal import Entry, decode_entry, encode_entry
from seatwise_referee.match import Match
from seatwise_referee.mixed_move import MixedMove
from seatwise_server.play import inbound
from seatwise_server.play.delivery import end_of
from seatwise_server.play.inbound import InboundItems, NotYourSeat
from seatwise_server.play.match_clock import EventLoopLag, TransportLag
from seatwise_server.play.play_stream import PlayStream, PushedPlayStream
from seatwise_server.play.table import Table
from seatwise_server.store.group_commit.writer import AppendResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from seatwise_referee.position import Position
    from seatwise_referee.setup import Setup
    from seatwise_server.refusal import Refusal

OWNER = "referee-1"
JOURNAL_S = 0.001
"""What an append takes."""


@dataclass(frozen=True, slots=True)
class Append:
    """One call of `append`."""

    match: str
    epoch: int
    owner: str
    first_seq: int
    entries: tuple[bytes, ...]
    done: Callable[[AppendResult], None]


class FakeJournal:
    """Answers as the store's script does; holds its answers back, or refuses, where a test says so."""

    def __init__(self) -> None:
        self.healthy = True
        self.appends: list[Append] = []
        """All calls, in their order."""
        self.most_in_flight = 0
        """Calls of one match that were unanswered at the same time."""
        self._written: dict[str, list[bytes]] = {}
        self._fenced: set[str] = set()
        self._in_flight: Counter[str] = Counter()
        self._held: list[Append] | None = None

    def append_entries(
        self,
        match: str,
        epoch: int,
        owner: str,
        first_seq: int,
        entries: list[bytes],
        done: Callable[[AppendResult], None],
    ) -> None:
        """See `table.Journal`."""
        append = Append(match, epoch, owner, first_seq, tuple(entries), done)
        self.appends.append(append)
        self._in_flight[match] += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight[match])
        if self._held is None:
            asyncio.get_running_loop().call_later(JOURNAL_S, self._answer, append)
        else:
            self._held.append(append)

    def entries(self, match: str) -> list[Entry]:
        """What is safe."""
        return [decode_entry(data) for data in self._written.get(match, ())]

    def hold(self) -> None:
        """From now on nothing is written and nothing answered."""
        self._held = []

    def release(self) -> None:
        """Writes and answers what was held back, and goes on."""
        held, self._held = self._held or [], None
        for append in held:
            self._answer(append)

    def fence(self, match: str) -> None:
        """Another referee owns the match."""
        self._fenced.add(match)

    def start_with(self, match: str, entries: Iterable[bytes]) -> None:
        """What an earlier owner wrote."""
        self._written[match] = list(entries)

    def _answer(self, append: Append) -> None:
        self._in_flight[append.match] -= 1
        append.done(self._write(append))

    def _write(self, append: Append) -> AppendResult:
        written = self._written.setdefault(append.match, [])
        if append.match in self._fenced or append.first_seq != len(written) + 1:
            return AppendResult.FENCED
        written.extend(append.entries)
        return AppendResult.OK


class Link:
    """A bot's stream at the referee, and its end of the wire."""

    def __init__(self, room: Room, bot: str) -> None:
        self.stream = self._new_stream(bot)
        self.messages: list[tuple[float, bytes]] = []
        """All that was written, with the time."""
        self.refusal: Refusal | None = None
        """Why we ended the stream."""
        self._room = room
        self._reads = asyncio.Event()
        self._reads.set()
        self._taken = 0
        self._task = asyncio.create_task(self._write_all())

    def _new_stream(self, bot: str) -> PlayStream:
        return PlayStream(bot)

    async def _write_all(self) -> None:
        self.refusal = await self.stream.write_all(self._write)

    async def _write(self, raw: bytes) -> None:
        await self._reads.wait()
        self.messages.append((asyncio.get_running_loop().time(), raw))

    @property
    def is_over(self) -> bool:
        """Whether the stream has ended."""
        return self._task.done()

    @property
    def allowance_ms(self) -> int | None:
        """The bot's allowance where no proof is needed; None if nothing was measured."""
        return self.stream.meter.allowance_ms(asyncio.get_running_loop().time(), needs_proof=False)

    def stop_reading(self) -> None:
        """From now on writes to the bot block."""
        self._reads.clear()

    def read_on(self) -> None:
        """The bot reads again."""
        self._reads.set()

    def hang_up(self) -> None:
        """The link breaks."""
        self._task.cancel()
        for table, seat in list(self.stream.outbox.seats):
            table.drop_link(seat, self.stream.outbox)

    def items(self) -> list[pb.PlayResponseItem]:
        """All that the bot was told."""
        return [item for _, raw in self.messages for item in pb.PlayResponse.FromString(raw).items]

    def new(self, kind: str = "") -> list[Any]:
        """What the bot was told since the last call: items but no pings, or of one kind what is in them."""
        told = self.items()
        fresh, self._taken = told[self._taken :], len(told)
        if not kind:
            return [item for item in fresh if not item.HasField("ping")]
        return [getattr(item, kind) for item in fresh if item.HasField(kind)]  # type: ignore[arg-type]

    def send(self, *items: pb.PlayRequestItem) -> None:
        """The bot says something, and it is read at once."""
        self.send_raw(pb.PlayRequest(items=items).SerializeToString())

    def send_raw(self, raw: bytes) -> None:
        """The bot sends bytes."""
        for item in inbound.read_items(raw):
            self._room.intake.dispatch_item(self.stream, item, asyncio.get_running_loop().time())

    def sit(self, seat: int, *, every_change: bool = False) -> None:
        """The bot sits down, with the seat's nonce."""
        updates = pb.Sit.UPDATES_EVERY_CHANGE if every_change else pb.Sit.UPDATES_WHEN_ASKED
        sit = pb.Sit(nonce=nonce(seat), updates=updates)
        self.send(pb.PlayRequestItem(match=self._room.table.name, seat=seat, sit=sit))

    def submit(self, seat: int, move: Any, prompt: int, request_id: str) -> None:
        """The bot answers a prompt."""
        self.send(self._room.submission(seat, move, prompt, request_id))

    def resign(self, seat: int) -> None:
        """The bot gives up."""
        self.send(pb.PlayRequestItem(match=self._room.table.name, seat=seat, resign=pb.Resign()))


class PushedLink(Link):
    """A bot's stream by WebSocket: nothing waits to write it."""

    stream: PushedPlayStream

    def _new_stream(self, bot: str) -> PlayStream:
        return PushedPlayStream(bot, self._push)

    async def _write_all(self) -> None:
        self.refusal = await self.stream.wait_until_over()

    def _push(self, raw: bytes) -> None:
        self.messages.append((asyncio.get_running_loop().time(), raw))

    def stop_reading(self) -> None:
        """From now on the transport has more than it sends."""
        self.stream.pause_pushing()

    def read_on(self) -> None:
        """The bot reads again."""
        self.stream.resume_pushing()


class Room:
    """One table, its journal, and whoever is linked to it."""

    link_type: type[Link] = Link
    """Of the links that it makes."""

    def __init__(
        self, seats: int = 2, rounds: int = 1, *, setup: Setup | None = None,
        position: Position | None = None, epoch: int = 1, written: Sequence[bytes] = (), **limits: Any,
    ) -> None:  # fmt: skip
        self.loop = running()
        self.setup = setup or setup_of(seats, rounds, **limits)
        self.journal = FakeJournal()
        self.journal.start_with(self.setup.match, written)
        self.lag = EventLoopLag(self.loop)
        self.lag.start_beat()
        self.transport = TransportLag(self.lag, cpu_time=lambda: 0.0)
        self.ended: list[Table] = []
        self.dealt: list[Table] = []
        self.others: dict[str, pb.MatchEnded | None] = {}
        """Matches that the store knows and this referee does not host."""
        match = Match(self.setup, position)
        told = (self.ended.append, self.dealt.append)
        self.table = Table(
            match, epoch, OWNER, self.journal, self.lag, *told, written, transport=self.transport
        )
        self.intake = InboundItems({self.table.name: self.table}, self._end_in_store)

    async def _end_in_store(self, match: str, bot: str, seat: int) -> pb.MatchEnded | None:
        await asyncio.sleep(JOURNAL_S)
        if match not in self.others or self.setup.bots[seat] != bot:
            raise NotYourSeat
        return self.others[match]

    # Bots

    def link(self, seat: int) -> Link:
        """A new stream of the bot that plays this seat."""
        return self.link_type(self, self.setup.bots[seat])

    async def seat_all(self, **how: Any) -> list[Link]:
        """Opens the table; all sit down, each on a link of its own, and have read that they did."""
        self.table.start_clocks()
        links = [self.link(seat) for seat in range(len(self.setup.bots))]
        for seat, link in enumerate(links):
            link.sit(seat, **how)
        await self.pass_ms(10)
        for link in links:
            link.new()
        return links

    async def pass_ms(self, ms: float) -> None:
        """So much time goes by, and all that happens in it happens."""
        await settle()
        await asyncio.sleep(ms / 1000)
        await settle()

    # The match

    @property
    def match(self) -> Match:
        """The match as it is played."""
        return self.table.match

    @property
    def asked(self) -> Seat:
        """The one seat that is asked."""
        assert self.match.position.prompt
        return min(self.match.position.prompt.seats)

    @property
    def other(self) -> Seat:
        """A seat that is not asked."""
        return Seat((self.asked + 1) % len(self.setup.bots))

    @property
    def prompt(self) -> int:
        """The number of the open prompt; 0 if there is none."""
        return self.match.position.prompt.number if self.match.position.prompt else 0

    @property
    def state(self) -> Any:
        """The game's state as it is in the journal."""
        return self.match.position.state

    def entries(self, kind: str = "") -> list[Any]:
        """What the journal holds, or one kind of it."""
        return [entry for entry in self.journal.entries(self.table.name) if kind in ("", entry.kind)]

    def legal_move(self) -> Any:
        """A legal move of the asked seat."""
        return self.match.game.default_move(self.state, self.asked)

    def illegal_move(self) -> Any:
        """Against the rules, whoever is asked what: no cards are laid."""
        return self.match.game.move_from_json({"arrange": []})

    def submission(self, seat: int, move: Any, prompt: int, request_id: str) -> pb.PlayRequestItem:
        """The item with which a bot answers a prompt."""
        codec = CODECS[self.setup.game]
        submit = pb.SubmitMove(request_id=request_id, prompt=prompt)
        if isinstance(move, MixedMove):
            for choice, weight in move.choices:
                getattr(submit.choices.add(weight=weight), codec.field).CopyFrom(codec.encode_move(choice))
        else:
            getattr(submit, codec.field).CopyFrom(codec.encode_move(move))
        return pb.PlayRequestItem(match=self.table.name, seat=seat, submit_move=submit)

    async def move(self, links: list[Link], request_id: str = "") -> None:
        """The asked seat plays a legal move, and what follows is told."""
        prompt = self.prompt
        links[self.asked].submit(self.asked, self.legal_move(), prompt, request_id or f"r{prompt}")
        await self.pass_ms(5)

    async def play_out(self, links: list[Link]) -> None:
        """Legal moves to the end of the match."""
        while not self.match.is_over:
            await self.move(links)

    def tell_end(self) -> None:
        """What the referee does when the last entry is written."""
        self.table.updates.announce_end(end_of(self.setup, list(map(encode_entry, self.entries()))).message)
