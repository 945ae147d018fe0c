"""A live match through the handler of Play, in memory and virtual time, driven by bytes that a fuzzer chooses.

Seat 0 lies: in every field, in any order, in bursts, on two streams, with copies of what others have said. A bot without a seat
does the same. The other seats answer at once and by the rules. The journal stands still now and then, and owners change.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

from doubles.room import Room
from doubles.virtual import run
from matches.one_match import nonce, setup_of
from structlog.testing import capture_logs

from seatwise.kits.codecs import CODECS
from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee import record
from seatwise_referee.game import Seat
from seatwise_referee.journal import encode_entry
from seatwise_referee.match import replay_match
from seatwise_referee.verify import verify_line
from seatwise_server.play.allowance import DistanceMeters
from seatwise_server.play.play_stream import PlayStreams
from seatwise_server.refusal import Refusal
from seatwise_server.rpc.play_servicer import PlayServicer
from seatwise_server.services.authentication import Caller
from seatwise_server.services.open_streams import OpenStreams

LIAR = 0
"""The seat of the hostile bot."""
OUTSIDER = "bots/outsider/versions/1"
CODEC = CODECS["ugo"]
MOST_STEPS = 150
MOST_OWNERS = 4
THINK_S = 0.001
MOVES = (
    b"",
    b"\x82\x01\x00",
    b"\x82\x01\x02\x08\x01",
    b"\x82\x01\x04\x12\x02\x0a\x00",
    b"\x8a\x01\x00",
    b"\x92\x01\x00",
)
"""The field `move` of a submission, encoded: none, an empty one, a card, a wrong order, and those of other games."""


class Choices:
    """The bytes of a fuzzer, read as choices; when they are used up, each choice is the first."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_over(self) -> bool:
        """Whether all bytes are used up."""
        return self._at >= len(self._data)

    def pick(self, options: Any) -> Any:
        """One of the options."""
        return options[self.number(len(options))]

    def number(self, below: int) -> int:
        """A number from 0 to `below` - 1, at most 255."""
        return int.from_bytes(self.take(1), "big") % below

    def take(self, count: int) -> bytes:
        """The next bytes; fewer at the end."""
        found = self._data[self._at : self._at + count]
        self._at += count
        return found


class Owner:
    """A referee that owns the match for a while: a table, and the handler of its streams."""

    def __init__(self, room: Room) -> None:
        self.room = room
        streams = PlayStreams()
        referee: Any = SimpleNamespace(
            lease=SimpleNamespace(holds=lambda: True),
            streams=streams,
            meters=DistanceMeters(),
            intake=room.intake,
        )
        self.open_streams = OpenStreams(None)  # type: ignore[arg-type]  # no token is checked again
        self.servicer = PlayServicer(referee, self, self.open_streams)  # type: ignore[arg-type]
        self.check_readers = lambda: [stream.check_reader() for stream in list(streams._streams.values())]

    async def authorize(self, _method: str, token: str, _peer: str) -> Caller:
        """As `Authenticator`: the token of a bot is its name here."""
        return Caller(bot=token)


class PlayCall:
    """A call of Play: a bot's end of it, and the context that the handler sees."""

    def __init__(self, owner: Owner, bot: str, told: Callable[[PlayCall, pb.PlayResponseItem], None]) -> None:
        self.owner = owner
        self.bot = bot
        self.refusal: Refusal | None = None
        self.reads = asyncio.Event()
        self.reads.set()
        self._told = told
        self._said: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._task = asyncio.create_task(self._serve())

    @property
    def is_over(self) -> bool:
        """Whether the handler has returned."""
        return self._task.done()

    def say(self, raw: bytes) -> None:
        """The bot sends a message."""
        self._said.put_nowait(raw)

    def hang_up(self) -> None:
        """The bot ends its side."""
        self._said.put_nowait(None)

    def check_fault(self) -> None:
        """Raises what the handler has raised, if that is a fault of ours."""
        if self._task.done():
            self._task.result()

    async def _serve(self) -> None:
        try:
            await self.owner.servicer.play(self, self)  # type: ignore[arg-type]
        except Refusal as refusal:
            self.refusal = refusal

    # What the handler calls

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if (raw := await self._said.get()) is None:
            raise StopAsyncIteration
        return raw

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        """The token of the bot."""
        return (("authorization", f"Bearer {self.bot}"),)

    def peer(self) -> str:
        """No address."""
        return "unix:"

    async def write(self, raw: bytes) -> None:
        """What is told is judged when it leaves the server, however late the bot reads it."""
        for item in pb.PlayResponse.FromString(raw).items:
            self._told(self, item)
        await self.reads.wait()


class LiveMatch:
    """One match, and what must hold in it at any moment."""

    def __init__(self, data: bytes) -> None:
        self.choices = Choices(data)
        self.seats = 2 + self.choices.number(2)
        self.owner = Owner(Room(setup=setup_of(self.seats)))
        self.bots = self.owner.room.setup.bots
        self.epoch = 1
        self.said: list[bytes] = []
        """All that anybody has sent."""
        self.moves: dict[tuple[int, int], tuple[str, Any]] = {}
        """What honest bots have answered: seat and prompt, request id and move."""
        self.acknowledged: set[tuple[int, str]] = set()
        self.ends: list[pb.MatchEnded] = []
        self.calls: list[PlayCall] = []
        """All that were ever opened."""
        self.liars: list[PlayCall] = []
        self.is_held = False

    @property
    def room(self) -> Room:
        """Of the owner."""
        return self.owner.room

    async def play(self) -> None:
        """Plays to the end, and checks everything."""
        self._open_table()
        if self.choices.number(4):
            self._open()
        for _ in range(MOST_STEPS):
            if self.choices.is_over:
                break
            await self._step()
        self._release()
        for _ in range(300):
            self._tell_end()
            if self.room.match.is_over:
                break
            await self._pass_ms(500)
        await self._pass_ms(50)
        self._check_all()
        for call in self.calls:
            call.reads.set()
            call.hang_up()
        await self._pass_ms(50)
        assert all(call.is_over for call in self.calls)

    def _open_table(self) -> None:
        self.room.table.start_clocks()
        for seat in range(1, self.seats):
            call = self._open_call(self.bots[seat])
            self._send(
                call, self._item(seat, sit=pb.Sit(nonce=nonce(seat), updates=pb.Sit.UPDATES_WHEN_ASKED))
            )

    async def _step(self) -> None:
        steps = (
            self._lie, self._lie, self._lie, self._copy, self._open, self._play_fair, self._play_fair, self._play_fair,
            self._garble, self._hang_up, self._read_or_not, self._wait, self._hold_or_release, self._change_owner,
        )  # fmt: skip
        self.choices.pick(steps)()
        await self._pass_ms(self.choices.pick((0.1, 5, 20, 300)))

    # What the liar does

    def _speak(self, *items: pb.PlayRequestItem) -> None:
        if self.liars:
            self._send(self.choices.pick(self.liars[-3:]), *items)

    def _lie(self) -> None:
        item = self._false_item()
        self._speak(*[item] * self.choices.pick((1, 1, 2, 12, 40)))

    def _false_item(self) -> pb.PlayRequestItem:
        name = self.room.table.name
        item = pb.PlayRequestItem(
            match=self.choices.pick((name, name, name, name, name, "matches/other", "", name * 40)),
            seat=self.choices.pick((LIAR, LIAR, LIAR, LIAR, 1, self.seats - 1, self.seats, -1, 2**31 - 1)),
        )
        action = self.choices.pick(
            (self._false_move, self._false_move, self._false_sit, self._false_pong, self._no_action)
        )
        action(item)
        return item

    def _false_move(self, item: pb.PlayRequestItem) -> None:
        known = [request_id for request_id, _ in self.moves.values()]
        submit = pb.SubmitMove.FromString(self.choices.pick(MOVES))
        submit.request_id = self.choices.pick(("x", "", "y" * 64, "y" * 65, "\n", *known[-3:]))
        submit.prompt = self.choices.pick(
            (self.room.prompt, self.room.prompt, self.room.prompt, self.room.prompt + 1, 0, -1)
        )
        item.submit_move.CopyFrom(submit)

    def _false_sit(self, item: pb.PlayRequestItem) -> None:
        item.sit.nonce = self.choices.pick((nonce(LIAR), b"", nonce(1), b"short"))
        item.sit.updates = self.choices.number(4)  # type: ignore[assignment]  # 3 is no value of it
        item.sit.receipt = self.choices.take(self.choices.pick((0, 0, 8, 40)))

    def _false_pong(self, item: pb.PlayRequestItem) -> None:
        item.pong.number = self.choices.pick((0, 1, 2, -1, 2**62))

    def _no_action(self, item: pb.PlayRequestItem) -> None:
        if self.choices.number(8) == 1:
            item.resign.SetInParent()

    def _copy(self) -> None:
        if self.liars and self.said:
            self.choices.pick(self.liars[-3:]).say(self.choices.pick(self.said[-200:]))

    def _garble(self) -> None:
        if self.liars:
            self.choices.pick(self.liars[-3:]).say(self.choices.take(self.choices.number(40)))

    def _open(self) -> None:
        bot = self.choices.pick((self.bots[LIAR], self.bots[LIAR], OUTSIDER))
        self.liars.append(self._open_call(bot))
        self._sit_fair()

    def _sit_fair(self) -> None:
        sit = pb.Sit(nonce=nonce(LIAR), updates=pb.Sit.UPDATES_EVERY_CHANGE)
        self._send(self.liars[-1], self._item(LIAR, sit=sit))

    def _play_fair(self) -> None:
        room = self.room
        if not self.liars:
            self._open()
        elif room.prompt and room.asked == LIAR:
            move = room.match.game.default_move(room.state, Seat(LIAR))
            self._send(self.liars[-1], room.submission(LIAR, move, room.prompt, f"fair-{room.prompt}"))

    def _hang_up(self) -> None:
        if self.liars:
            self.liars.pop(self.choices.number(len(self.liars))).hang_up()

    def _read_or_not(self) -> None:
        for call in self.liars[-3:]:
            call.reads.clear() if self.choices.number(2) else call.reads.set()
        self.owner.check_readers()

    # What happens to the server

    def _wait(self) -> None:
        self.room.loop.call_later(0, self.owner.check_readers)

    def _hold_or_release(self) -> None:
        if self.is_held:
            self._release()
        else:
            self.is_held = True
            self.room.journal.hold()

    def _release(self) -> None:
        self.is_held = False
        self.room.journal.release()

    def _change_owner(self) -> None:
        """The referee stops in order, or loses the match to another in the middle of it."""
        if self.epoch == MOST_OWNERS or self.room.match.is_over:
            return
        if self.choices.number(2):
            self.room.table.stop_accepting()
            self._release()
        else:
            self.room.journal.fence(self.room.table.name)
            self._release()
        before, entries = self.owner, self.room.entries()
        if entries and entries[-1].kind in ("finished", "voided"):
            return
        before.room.journal.fence(self.room.table.name)
        before.open_streams.end_all(Refusal("SERVER_STOPPING", "the server stops"))
        position = replay_match(self.room.setup, entries).position
        self.epoch += 1
        written = [encode_entry(entry) for entry in entries]
        self.owner = Owner(Room(setup=self.room.setup, position=position, epoch=self.epoch, written=written))
        self._open_table()

    def _tell_end(self) -> None:
        entries = self.room.entries()
        if entries and entries[-1].kind in ("finished", "voided"):
            self.room.tell_end()

    async def _pass_ms(self, ms: float) -> None:
        await self.room.pass_ms(ms)
        for call in self.calls:
            call.check_fault()

    # What is said and told

    def _open_call(self, bot: str) -> PlayCall:
        self.calls.append(PlayCall(self.owner, bot, self._told))
        return self.calls[-1]

    def _item(self, seat: int, **action: Any) -> pb.PlayRequestItem:
        return pb.PlayRequestItem(match=self.room.table.name, seat=seat, **action)

    def _send(self, call: PlayCall, *items: pb.PlayRequestItem) -> None:
        self.said.append(pb.PlayRequest(items=items).SerializeToString())
        call.say(self.said[-1])

    def _told(self, call: PlayCall, item: pb.PlayResponseItem) -> None:
        event = item.WhichOneof("event")
        if event == "ping":
            return
        if event == "move_rejected":
            assert call.bot in (OUTSIDER, self.bots[LIAR]), item
            return
        assert call.bot == self.bots[item.seat], (call.bot, item)
        if event == "update":
            self._check_update(call.owner.room, item)
        elif event == "move_accepted":
            self._check_acceptance(call.owner.room, item.seat, item.move_accepted.request_id)
        if item.seat != LIAR:
            self._answer(call, item)

    def _check_update(self, room: Room, item: pb.PlayResponseItem) -> None:
        """A seat is shown its view of what the journal has."""
        if item.update.HasField("ugo"):
            state = replay_match(room.setup, room.entries()).position.state
            view = room.match.game.view(state, Seat(item.seat))
            assert CODEC.decode_view(item.update.ugo) == view

    def _check_acceptance(self, room: Room, seat: int, request_id: str) -> None:
        """A move is acknowledged after the journal has it."""
        assert (seat, request_id) in {(entry.seat, entry.request_id) for entry in room.entries("move")}
        self.acknowledged.add((seat, request_id))

    def _answer(self, call: PlayCall, item: pb.PlayResponseItem) -> None:
        """An honest bot plays at once; after a change of owners it repeats what it had said."""
        if item.HasField("match_ended"):
            self.ends.append(item.match_ended)
        elif item.HasField("update") and item.update.to_act:
            prompt, seat = item.update.prompt, item.seat
            move = self.room.match.game.default_move(self.room.state, Seat(seat))
            request_id, move = self.moves.setdefault((seat, prompt), (f"{seat}/{prompt}", move))
            submission = self.room.submission(seat, move, prompt, request_id)
            self.room.loop.call_later(THINK_S, self._send, call, submission)

    # What must hold at the end

    def _check_all(self) -> None:
        entries = self.room.entries()
        assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
        assert entries[-1].kind in ("finished", "voided")
        assert replay_match(self.room.setup, entries).position == self.room.match.position
        self._check_moves()
        self._check_innocent()
        if entries[-1].kind == "finished":
            assert len({end.SerializeToString() for end in self.ends}) == 1
            verdict = verify_line(record.record_line(record.build_record(self.room.setup, entries)))
            assert verdict.fault is None, verdict.fault

    def _check_moves(self) -> None:
        """Each acknowledged move is there once, and no move of an honest seat that it did not send."""
        moved = [(entry.seat, entry.request_id) for entry in self.room.entries("move")]
        assert len(moved) == len(set(moved))
        assert self.acknowledged <= set(moved)
        game = self.room.match.game
        for entry in self.room.entries("move"):
            if entry.seat != LIAR:
                request_id, move = self.moves[entry.seat, entry.prompt]
                assert (entry.request_id, entry.move) == (request_id, game.move_to_json(move))

    def _check_innocent(self) -> None:
        """No honest seat is blamed for anything: no default move, no rejection, no forfeit."""
        for entry in self.room.entries():
            if entry.kind in ("rejected", "resigned", "forfeited"):
                assert entry.seat == LIAR, entry
            elif entry.kind == "default":
                assert {each.seat for each in entry.moves} == {LIAR}, entry


async def _play(data: bytes) -> LiveMatch:
    match = LiveMatch(data)
    await match.play()
    return match


def play_live_match(data: bytes) -> LiveMatch:
    """Plays one live match as these bytes say. Raises AssertionError if anybody innocent is hurt."""
    with capture_logs() as logs:
        match = run(_play(data))
    faults = [line for line in logs if line["log_level"] in ("error", "critical")]
    assert [line["event"] for line in faults] in ([], ["journal_lost"]), faults
    return match
