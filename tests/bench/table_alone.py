"""The tables alone: the bytes of moves go in, the bytes of views come out. No gRPC, no Redis; the journal answers at once."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import table
import wire
from processes import child, say
from table import Row, at_most

from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee.match import Match
from seatwise_referee.setup import Setup
from seatwise_referee.time_control import TimeControl
from seatwise_server import log
from seatwise_server.play import inbound, play_messages
from seatwise_server.play.inbound import InboundItems
from seatwise_server.play.match_clock import EventLoopLag
from seatwise_server.play.play_stream import PlayStream
from seatwise_server.play.table import Table
from seatwise_server.store.group_commit.writer import AppendResult

MATCHES = 64
BOTS = 16
SEATS = 4
MOVES, QUICK_MOVES = 40_000, 20_000
BAR_US = 20
PHASES = ("reading and deciding", "after the journal", "views and messages", "opening and dealing")


def rows(*, quick: bool = False) -> list[Row]:
    """CPU of a move by itself, in microseconds."""
    series = [_one_series(QUICK_MOVES if quick else MOVES) for _ in range(1 if quick else 3)]
    return [at_most("CPU a move at the table alone", median(series), BAR_US, "us")]


def _one_series(moves: int) -> float:
    with (
        TemporaryDirectory(prefix="seatwise-bench-") as folder,
        child("table_alone.py", "--moves", moves, log=Path(folder) / "tables.log") as tables,
    ):
        return sum(tables.hear().values())


class InstantJournal:
    """Keeps nothing, and has every entry when it is asked."""

    healthy = True

    def __init__(self) -> None:
        self._waiting: list[Callable[[AppendResult], None]] = []

    def append_entries(
        self,
        _match: str,
        _epoch: int,
        _owner: str,
        _first_seq: int,
        _entries: list[bytes],
        done: Callable[[AppendResult], None],
    ) -> None:
        """As the store's."""
        self._waiting.append(done)

    def answer(self) -> bool:
        """Answers all that wait; False if nothing did."""
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            done(AppendResult.OK)
        return bool(waiting)


class BareTables:
    """Tables of UGO! with four seats each, and the streams of 16 bots."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lag = EventLoopLag(self._loop)
        self._lag.start_beat()
        self._journal = InstantJournal()
        self._tables: dict[str, Table] = {}
        self._inbound = InboundItems(self._tables, _no_end)
        self._bots = [f"bots/b{number}/versions/1" for number in range(BOTS)]
        self._streams = [PlayStream(bot) for bot in self._bots]
        self._opened = 0
        self._ended: list[Table] = []
        self.spent_ns = dict.fromkeys(PHASES, 0)
        self.moves = 0

    def open_tables(self, count: int) -> None:
        """Opens matches, and seats all their bots."""
        began = time.thread_time_ns()
        for _ in range(count):
            self._seat_bots(self._open_table())
        while self._journal.answer():
            pass
        self.spent_ns["opening and dealing"] += time.thread_time_ns() - began

    def take_messages(self) -> list[tuple[PlayStream, bytes]]:
        """What the bots are sent."""
        began = time.thread_time_ns()
        messages = []
        for stream in self._streams:
            draft = stream.outbox.take_draft()
            if draft.items:
                messages.append((stream, play_messages.encode_response(draft.items)))
                for source, seat, prompt in draft.prompts:
                    source.on_prompt_delivered(seat, prompt, 1)
        self.spent_ns["views and messages"] += time.thread_time_ns() - began
        return messages

    def give_requests(self, requests: list[tuple[PlayStream, bytes]]) -> None:
        """What the bots send."""
        began, now = time.thread_time_ns(), self._loop.time()
        for stream, raw in requests:
            for item in inbound.read_items(raw):
                self._inbound.dispatch_item(stream, item, now)
        kept = time.thread_time_ns()
        while self._journal.answer():
            pass
        self.spent_ns["reading and deciding"] += kept - began
        self.spent_ns["after the journal"] += time.thread_time_ns() - kept
        self.moves += len(requests)

    def replace_ended(self) -> None:
        """Closes the tables whose matches are over, and opens as many."""
        for each in self._ended:
            self._tables.pop(each.name).close_table()
        count = len(self._ended)
        self._ended.clear()
        self.open_tables(count)

    def _open_table(self) -> Table:
        self._opened += 1
        setup = Setup(
            match=f"matches/m{self._opened:09d}",
            game="ugo",
            rules_version="1",
            options={"rounds": 4},
            bots=tuple(self._bots[(self._opened * SEATS + seat) % BOTS] for seat in range(SEATS)),
            time_control=TimeControl(free_ms={"card": 60_000, "arrange": 60_000}),
            seed=os.urandom(32),
        )
        opened = Table(Match(setup), 1, "me", self._journal, self._lag, self._ended.append, _ignore)
        self._tables[setup.match] = opened
        opened.start_clocks()
        return opened

    def _seat_bots(self, opened: Table) -> None:
        for seat, bot in enumerate(opened.match.setup.bots):
            outbox = self._streams[self._bots.index(bot)].outbox
            opened.sit_down(seat, os.urandom(32), False, outbox, self._loop.time())


class LeanBots:
    """Answer every question with one of the cards on offer. They read bytes, as the load client does."""

    def __init__(self) -> None:
        self._answered: dict[tuple[bytes, int], int] = {}
        self._requests = 0

    def answer(self, messages: list[tuple[PlayStream, bytes]]) -> list[tuple[PlayStream, bytes]]:
        """The requests to these messages, one for each question that is new."""
        return [
            (stream, request)
            for stream, raw in messages
            for item in wire.items(raw)
            if (request := self._answer_item(raw, item))
        ]

    def _answer_item(self, raw: bytes, item: wire.Item) -> bytes | None:
        if item.kind == wire.REJECTED:
            raise RuntimeError(str(pb.MoveRejected.FromString(raw[item.start : item.end])))
        place = item.match, item.seat
        prompt, cards, is_arrange = wire.question(raw, item) if item.kind == wire.UPDATE else (0, b"", False)
        if prompt <= self._answered.get(place, 0):
            return None
        self._answered[place] = prompt
        self._requests += 1
        chosen = cards if is_arrange else cards[prompt % len(cards) :]
        request_id = b"00000000-0000-4000-8000-%012d" % self._requests
        return wire.submit(wire.head(*place), request_id, prompt, chosen, is_arrange)


async def _no_end(*_: object) -> None:
    return None


def _ignore(_: Table) -> None:
    pass


async def measure(moves: int) -> dict[str, float]:
    """CPU of the parts of a move, in microseconds."""
    log.configure("critical", is_terminal=False)
    tables, bots = BareTables(), LeanBots()
    tables.open_tables(MATCHES)
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 250, 50)  # as the referee's server does it
    while tables.moves < moves:
        requests = bots.answer(tables.take_messages())
        if not requests:
            raise RuntimeError(f"no bot is asked after {tables.moves} moves")
        tables.give_requests(requests)
        tables.replace_ended()
        await asyncio.sleep(0)
    return {phase: spent / 1e3 / tables.moves for phase, spent in tables.spent_ns.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moves", type=int, help="measure in this process, and say what came of it as JSON")
    parser.add_argument("--profile", action="store_true", help="with --moves: show where the time goes")
    args = parser.parse_args()
    if args.moves is None:
        table.show(rows(quick=True))
    elif args.profile:
        import cProfile

        cProfile.run("asyncio.run(measure(args.moves))", sort="tottime")
    else:
        say(asyncio.run(measure(args.moves)))
