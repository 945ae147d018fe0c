"""A match as it is, and the same match with all that a seat cannot know drawn anew.

In both worlds the same things are said at a real table with real streams; `compared` tells by which
channels the seat can tell the two apart: the bytes of its items, their times, Watch, or the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any

from doubles import virtual
from doubles.room import Link, Room
from matches.random_matches import LEGAL, LISTED, MOVES_IN_ONE_PROMPT, OPTIONS, answer, viewers
from structlog.testing import capture_logs

from leaks.resample import resampled
from seatwise.codec.wire_format import encode_field
from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee.ending import VoidReason
from seatwise_referee.game import Seat
from seatwise_referee.journal import JournalEntry, encode_entry
from seatwise_referee.match import Match
from seatwise_referee.position import Position, RequestReply, SeatState, position_after
from seatwise_referee.setup import Setup
from seatwise_referee.time_control import TimeControl
from seatwise_server.play import spectating
from seatwise_server.play.delivery import end_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatwise_referee.decision import Effect
    from seatwise_referee.journal import Entry

FREE_MS, BANK_MS, GRACE_MS = 1000, 500, 50
PLENTY = 1000
"""Rejections and strikes that no match here comes to: a forfeit is for all to see."""


# --- Matches at random ----------------------------------------------------------------------------------


@dataclass
class Moment:
    """A match between two commands."""

    setup: Setup
    position: Position
    entries: list[Entry]
    moves: list[Any]
    """All that were made so far."""


def setup_for(game: Any, seats: int, chance: Random) -> Setup:
    return Setup(
        match="matches/test",
        game=game.name,
        rules_version=game.rules_version,
        options=game.complete_options(OPTIONS.get(game.name, {})),
        bots=tuple(f"bots/b{seat}/versions/1" for seat in range(seats)),
        time_control=TimeControl(
            free_ms=dict.fromkeys(game.paces, FREE_MS), bank_ms=BANK_MS, grace_ms=GRACE_MS,
            max_strikes=PLENTY, max_rejections=PLENTY,
        ),
        seed=chance.randbytes(32),
    )  # fmt: skip


class Course:
    """A match in which now and then somebody errs, is late, or goes."""

    def __init__(self, game: Any, seats: int, chance: Random) -> None:
        self.game, self.chance = game, chance
        self.setup = setup_for(game, seats, chance)
        self.match = Match(self.setup)
        self.entries: list[Entry] = []
        self.moves: list[Any] = []
        self.now = self.answers = 0

    def moments(self) -> Iterator[Moment]:
        for seat in range(len(self.setup.bots)):
            self.do(self.match.sit(Seat(seat), self.chance.randbytes(32), self.now))
        while not self.match.is_over:
            yield Moment(self.setup, self.match.position, list(self.entries), list(self.moves))
            before = self.match.position.prompt
            self.step()
            self.answers = self.answers + 1 if self.match.position.prompt == before else 0

    def step(self) -> None:
        prompt, state = self.match.position.prompt, self.match.position.state
        assert prompt
        seat, what = self.chance.choice(sorted(prompt.seats)), self.chance.random()
        self.now += self.chance.randrange(1, 200)
        if what < 0.05 or self.answers >= MOVES_IN_ONE_PROMPT:
            self.now += 10 * FREE_MS
            self.do(self.match.tick(self.now))
        elif what < 0.06:
            self.do(self.match.resign(seat, self.now))
        elif what < 0.1 and self.moves:
            self.submit(seat, prompt.number, self.chance.choice(self.moves))
        else:
            move = self.chance.choice(list(islice(self.game.legal_moves(state, seat), LISTED)))
            self.moves.append(move)
            self.submit(seat, prompt.number, move)

    def submit(self, seat: Seat, prompt: int, move: Any) -> None:
        self.do(self.match.submit_move(seat, prompt, f"m{self.match.position.seq}", move, self.now))

    def do(self, effects: list[Effect]) -> None:
        written = [effect for effect in effects if isinstance(effect, JournalEntry)]
        self.entries += written
        if written:
            self.match.confirm_entries(self.now)


def twin_of(moment: Moment, viewer: Seat | None, chance: Random) -> Position:
    """The same to the viewer; everything else is drawn anew, but for seats that have left: all can see that."""
    state = resampled(moment.setup.game, moment.position.state, viewer, chance)
    assert moment.position.prompt
    seats = [
        seat if own == viewer else elsewhere(seat, moment.position.seq, chance)
        for own, seat in enumerate(moment.position.seats)
    ]
    for own in moment.position.prompt.seats:  # when its time runs out, all can see what it had
        seats[own] = seats[own]._replace(bank_ms=moment.position.seats[own].bank_ms)
    return moment.position._replace(state=state, seats=tuple(seats))


def elsewhere(seat: SeatState, seq: int, chance: Random) -> SeatState:
    return seat._replace(
        bank_ms=chance.randrange(3 * BANK_MS),
        nonce=chance.randbytes(32),
        strikes=chance.randrange(PLENTY // 2),
        rejections=chance.randrange(PLENTY // 2),
        charged_ms=chance.randrange(FREE_MS),
        reply=RequestReply(chance.randrange(99), "other", "ILLEGAL", "no", 0),
        rejected_seq=chance.randrange(seq + 1),
        late_prompt=chance.choice([None, chance.randrange(1, 99)]),
    )


# --- What is said in both worlds ------------------------------------------------------------------------


@dataclass
class Plan:
    """What all bots do, made of nothing that is different in the two worlds."""

    viewer: Seat | None
    asked: list[Seat]
    prompt: int
    refused: dict[Seat, list[Any]]
    """By seat: moves that are refused to it, in both worlds."""
    legal: dict[Seat, list[Any]]
    """By asked seat: moves that it may make in both worlds."""
    chance: int
    """For choices on the way."""


def plan_for(game: Any, moment: Moment, twin: Position, viewer: Seat | None, chance: Random) -> Plan:
    prompt, state = moment.position.prompt, moment.position.state
    assert prompt
    seats = [Seat(seat) for seat in range(len(moment.setup.bots))]
    tried = chance.sample(moment.moves, min(4, len(moment.moves)))
    refused = {
        seat: [
            move
            for move in tried
            if LEGAL not in (answer(game, state, seat, move), answer(game, twin.state, seat, move))
        ]
        for seat in seats
    }
    legal = {
        seat: [
            move
            for move in islice(game.legal_moves(state, seat), LISTED)
            if answer(game, twin.state, seat, move) == LEGAL
        ]
        for seat in prompt.seats
    }
    return Plan(viewer, sorted(prompt.seats), prompt.number, refused, legal, chance.randrange(2**32))


@dataclass
class Seen:
    """All that comes out of a world towards the viewer."""

    messages: list[tuple[float, bytes]] = field(default_factory=list)
    watched: list[bytes] = field(default_factory=list)
    log: list[Any] = field(default_factory=list)


@dataclass
class World:
    """One of the two."""

    quiet: Seen
    """Up to where nothing was played."""
    whole: Seen
    view: Any
    """What the rules show the viewer at the end. Where a new deal makes it another, the worlds part."""
    end: pb.MatchEnded | None


def world(moment: Moment, position: Position, plan: Plan) -> World:
    """Runs everything in one world."""
    return virtual.run(_world(moment, position, plan))


async def _world(moment: Moment, position: Position, plan: Plan) -> World:
    room = Room(setup=moment.setup, position=position)
    room.journal.start_with(room.table.name, map(encode_entry, moment.entries))
    with capture_logs() as log:
        links = [room.link(seat) for seat in range(len(moment.setup.bots))]
        await speak(room, links, plan)
        quiet = what_is_seen(room, position, links, plan, log)
        await play(room, links, plan)
        whole = what_is_seen(room, position, links, plan, log)
    journal = list(map(encode_entry, room.entries()))
    end = end_of(room.setup, journal).message if room.match.is_over else None
    return World(quiet, whole, room.match.view_for(plan.viewer), end)


def what_is_seen(room: Room, position: Position, links: list[Link], plan: Plan, log: list[Any]) -> Seen:
    messages = [] if plan.viewer is None else list(links[plan.viewer].messages)
    watched = [spectating.spectator_view(position, room.setup, position.at_ms).SerializeToString()]
    for entry in room.entries()[position.seq :]:
        position = position_after(position, entry, room.setup, room.match.game)
        watched.append(spectating.spectator_view(position, room.setup, entry.at_ms).SerializeToString())
    return Seen(messages, watched, list(log))


async def speak(room: Room, links: list[Link], plan: Plan) -> None:
    """Everything that may be said without anything being played."""
    chance = Random(plan.chance)
    room.table.start_clocks()
    for seat, link in enumerate(links):
        link.sit(seat, every_change=chance.random() < 0.5)
        link.stream.check_reader()
    await room.pass_ms(chance.randrange(1, 60))
    for link in links:
        link.send(pb.PlayRequestItem(pong=pb.Pong(number=1)))
    for seat, link in chance.sample(list(enumerate(links)), len(links)):
        await complain(room, link, Seat(seat), plan, chance)
    if chance.random() < 0.3:
        room.loop.stand_still(0.3)
    await room.pass_ms(150)


async def complain(room: Room, link: Link, seat: Seat, plan: Plan, chance: Random) -> None:
    """A seat says what does not stand, for every reason there is."""
    some = plan.refused[seat] or plan.legal[plan.asked[0]][:1]
    name = room.table.name
    for number, move in enumerate(some):
        other_prompt = chance.randrange(1000, 2000)
        link.submit(seat, move, other_prompt, f"stale {number}")
        if seat not in plan.asked or plan.refused[seat]:
            link.submit(seat, move, plan.prompt, f"refused {number}")
            link.submit(seat, move, plan.prompt, f"refused {number}")
        link.submit(Seat((seat + 1) % len(room.setup.bots)), move, plan.prompt, "not mine")
        link.submit(seat, move, plan.prompt, "")
    link.send(
        pb.PlayRequestItem(match=name, seat=seat),
        pb.PlayRequestItem(match=name, seat=seat, submit_move=pb.SubmitMove(request_id="r", prompt=1)),
        pb.PlayRequestItem(match=name, seat=seat, sit=pb.Sit(nonce=b"short")),
        pb.PlayRequestItem(match="matches/none", seat=seat, sit=pb.Sit()),
    )
    link.send_raw(b"\xff\xff")
    wrong = pb.SubmitMove(request_id="w").SerializeToString() + encode_field(99, b"")
    link.send(pb.PlayRequestItem(match=name, seat=seat, submit_move=pb.SubmitMove.FromString(wrong)))
    link.sit(seat, every_change=chance.random() < 0.5)
    if plan.refused[seat] and chance.random() < 0.3:
        room.journal.hold()
        for number in range(12):
            link.submit(seat, plan.refused[seat][0], plan.prompt, f"many {number}")
        await room.pass_ms(20)
        room.journal.release()
    await room.pass_ms(chance.randrange(1, 30))


async def play(room: Room, links: list[Link], plan: Plan) -> None:
    """One thing that brings the match on."""
    chance = Random(plan.chance + 1)
    seat = chance.choice(plan.asked)
    what = chance.choice(["move", "move", "move", "late", "resign", "void"])
    if what == "move" and plan.legal[seat]:
        links[seat].submit(seat, chance.choice(plan.legal[seat]), plan.prompt, "played")
    elif what == "late":
        for _ in range(60):  # no longer than it takes: when another seat's time runs out depends on its bank
            if room.prompt == plan.prompt:
                await room.pass_ms(50)
        for move in plan.legal[seat][:1]:
            links[seat].submit(seat, move, plan.prompt, "late")
    elif what == "resign":
        links[seat].resign(seat)
    elif what == "void" and chance.random() < 0.1:
        room.table.void_match(VoidReason.ABORTED)
    await room.pass_ms(150)
    if room.match.is_over:
        room.table.updates.announce_end(pb.MatchEnded())
    links[seat].resign(seat)
    for each, link in enumerate(links):
        link.sit(each)
    await room.pass_ms(150)


# --- The two compared -----------------------------------------------------------------------------------


@dataclass
class Compared:
    """What was found at one moment for one viewer."""

    differences: list[str]
    went_on: bool
    """Whether the worlds were still one after a move."""
    kinds: set[str]
    """Of items and of rejections that were compared."""


def compared(game: Any, moment: Moment, viewer: Seat | None, chance: Random) -> Compared:
    twin = twin_of(moment, viewer, chance)
    plan = plan_for(game, moment, twin, viewer, chance)
    one, other = (world(moment, position, plan) for position in (moment.position, twin))
    differences = list(unlike(one.quiet, other.quiet))
    went_on = one.view == other.view
    if went_on and not differences:
        differences = list(unlike(one.whole, other.whole))
        if one.end and other.end and bare(one.end) != bare(other.end):
            differences.append("match_ended")
    return Compared(differences, went_on, set(kinds_of(one.whole)))


def unlike(one: Seen, other: Seen) -> Iterator[str]:
    """The channels by which the two worlds can be told apart."""
    if [raw for _, raw in one.messages] != [raw for _, raw in other.messages]:
        yield "messages"
    elif one.messages != other.messages:
        yield "the time of messages"
    if one.watched != other.watched:
        yield "watch"
    if one.log != other.log:
        yield "log"


def kinds_of(told: Seen) -> Iterator[str]:
    for _, raw in told.messages:
        for item in pb.PlayResponse.FromString(raw).items:
            yield item.WhichOneof("event") or ""
            if item.HasField("move_rejected"):
                yield pb.MoveRejected.Reason.Name(item.move_rejected.reason).removeprefix("REASON_")


def bare(end: pb.MatchEnded) -> bytes:
    """Without what is revealed by design: the seed, and the chain over cards and seed."""
    left = pb.MatchEnded()
    left.CopyFrom(end)
    left.ClearField("seed")
    left.result.ClearField("chain")
    return left.SerializeToString()


def renamed_receipts(messages: list[tuple[float, bytes]]) -> list[tuple[float, list[bytes]]]:
    """Receipts by the order in which they came up: all that a bot can make of them."""
    names: dict[bytes, bytes] = {}
    renamed = []
    for when, raw in messages:
        told = pb.PlayResponse.FromString(raw)
        for item in told.items:
            for event in (item.update, item.move_accepted):
                if event.receipt:
                    event.receipt = names.setdefault(event.receipt, b"%d" % len(names))
        renamed.append((when, [item.SerializeToString() for item in told.items]))
    return renamed


def comparisons(
    game: Any, seats: int, chance: Random, share: float, most_viewers: int = 9
) -> Iterator[Compared]:
    """At about this share of the steps of a match, and at the last three."""
    moments = list(Course(game, seats, chance).moments())
    for number, moment in enumerate(moments, 4):
        if number > len(moments) or chance.random() < share:
            all_viewers = viewers(seats)
            for viewer in chance.sample(all_viewers, min(most_viewers, len(all_viewers))):
                yield compared(game, moment, viewer, chance)
