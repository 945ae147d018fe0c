"""Spectators see a match from its journal to its end, and nothing that is between the referee and a seat."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from doubles.virtual import in_virtual_time
from matches.one_match import Desk

from seatwise_referee import record
from seatwise_referee.journal import canonical_json, encode_entry
from seatwise_server.play.delivery import end_of
from seatwise_server.play.spectating import MatchWatcher
from seatwise_server.store import MatchMeta

if TYPE_CHECKING:
    from seatwise.v1 import match_service_pb2 as pb


class FakeStore:
    """Knows one match: its journal while that runs, its record afterwards."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.fields = {"setup": canonical_json(desk.setup.to_json()), "state": b"RUNNING"}
        self.kept: bytes | None = None
        self.matches = self.journal = self
        self._written = asyncio.Event()

    async def get_meta(self, name: str) -> MatchMeta | None:
        return MatchMeta(name, 0, dict(self.fields)) if name == self.desk.setup.match else None

    async def get_record(self, _: str) -> bytes | None:
        return self.kept

    async def wait_for_entries(self, _: str, after_seq: int, block_ms: int) -> list[bytes]:
        try:
            async with asyncio.timeout(block_ms / 1000):
                while self.kept is not None or len(self.desk.journal) <= after_seq:
                    self._written.clear()
                    await self._written.wait()
        except TimeoutError:
            return []
        return [encode_entry(entry) for entry in self.desk.journal[after_seq:]]

    def wake(self) -> None:
        self._written.set()

    def deliver(self) -> None:
        end = end_of(self.desk.setup, [encode_entry(entry) for entry in self.desk.journal])
        self.kept = end.record
        self.fields |= {"result": end.message.SerializeToString(), "state": end.state.encode()}
        self.wake()


class Spectator:
    """Keeps what it is shown."""

    def __init__(self, store: Any) -> None:
        self.shown: list[pb.WatchMatchResponse] = []
        self.task = asyncio.create_task(self._watch(MatchWatcher(store), store.desk.setup.match))

    async def _watch(self, watch: MatchWatcher, name: str) -> None:
        self.shown = []
        async for response in watch.follow_match(name):
            self.shown.append(response)

    async def new(self) -> list[pb.WatchMatchResponse]:
        await asyncio.sleep(0.01)
        shown, self.shown[:] = list(self.shown), []
        return shown


def dealt() -> tuple[Desk, FakeStore, Spectator]:
    desk = Desk(3)
    desk.sit_all()
    store = FakeStore(desk)
    return desk, store, Spectator(store)


@in_virtual_time
async def test_a_spectator_is_shown_the_match_then_each_change() -> None:
    desk, store, spectator = dealt()
    first, position = await spectator.new()
    assert first.match.name == desk.setup.match
    assert not first.HasField("ugo")
    assert position.ugo.hand_sizes == [10, 10, 10]
    desk.now = 70
    desk.submit()
    store.wake()
    (seen,) = await spectator.new()
    assert (seen.at_ms, len(seen.ugo.trick)) == (70, 1)
    assert not seen.ugo.hand
    assert not seen.ugo.HasField("seat")


@in_virtual_time
async def test_a_rejection_is_not_shown_and_moves_no_time() -> None:
    desk, store, spectator = dealt()
    await spectator.new()
    desk.now = 50
    desk.submit_illegal()
    store.wake()
    assert await spectator.new() == []
    desk.now = 60
    desk.submit()
    desk.now = 90
    desk.submit_illegal()
    store.wake()
    (seen,) = await spectator.new()
    assert seen.at_ms == 60


@in_virtual_time
async def test_the_end_is_shown_and_ends_the_watch() -> None:
    desk, store, spectator = dealt()
    await spectator.new()
    desk.play_out()
    store.wake()
    await asyncio.sleep(0.5)
    store.deliver()
    await asyncio.sleep(2)
    last, over = await spectator.new()
    assert last.ugo.points
    assert over.match.result.points == desk.journal[-1].outcome["points"]  # type: ignore[union-attr]
    assert spectator.task.done()


@in_virtual_time
async def test_an_end_that_came_too_quickly_for_the_journal_is_shown_from_the_record() -> None:
    desk, store, spectator = dealt()
    await spectator.new()
    desk.play_out()
    store.deliver()
    await asyncio.sleep(2)
    shown = await spectator.new()
    assert [response.HasField("ugo") for response in shown] == [True, False]
    assert shown[0].ugo.points
    assert shown[0].at_ms == desk.journal[-1].at_ms


@in_virtual_time
async def test_a_match_that_was_over_is_shown_as_it_ended() -> None:
    desk, store, _ = dealt()
    desk.play_out()
    store.deliver()
    late = Spectator(store)
    match, end = await late.new()
    assert match.match.result.points
    assert end.ugo.points
    assert late.task.done()


@in_virtual_time
async def test_a_voided_match_ends_the_watch_and_has_no_last_view() -> None:
    from seatwise_referee.ending import VoidReason

    desk, store, spectator = dealt()
    await spectator.new()
    desk.do(desk.match.void_match(VoidReason.ABORTED, 5))
    store.deliver()
    await asyncio.sleep(2)
    (over,) = await spectator.new()
    assert over.match.void_reason == "ABORTED"
    assert spectator.task.done()


@in_virtual_time
async def test_an_unknown_match_shows_nothing() -> None:
    _, store, _ = dealt()
    assert [each async for each in MatchWatcher(store).follow_match("matches/none")] == []  # type: ignore[arg-type]


def test_the_record_is_complete_enough_to_be_watched() -> None:
    """What `Watch` reads of it are the entries from a number on."""
    desk = Desk(2)
    desk.sit_all()
    desk.play_out()
    entries = record.build_record(desk.setup, desk.journal)["entries"]
    assert isinstance(entries, list)
    assert [each["seq"] for each in entries if isinstance(each, dict)] == list(range(1, len(entries) + 1))
