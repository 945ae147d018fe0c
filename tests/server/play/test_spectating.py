"""Spectators see a match from its journal to its end, and nothing that is between the referee and a seat."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest
from doubles.virtual import in_virtual_time
from matches.one_match import Desk

from seatwise.replay.frame_builder import short_names
from seatwise_referee import record
from seatwise_referee.games.registry import GAMES
from seatwise_referee.journal import Moved, Rejected, canonical_json, encode_entry
from seatwise_server.config import SpectatorDelay
from seatwise_server.pages.match_page import PositionWriter
from seatwise_server.play import spectating
from seatwise_server.play.delivery import end_of
from seatwise_server.play.spectating import LATE_CHECK_S, SHORTEST_UPDATE_S, MatchWatcher, spectator_view
from seatwise_server.refusal import Refusal
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
        self.reads = 0
        self._written = asyncio.Event()

    async def get_meta(self, name: str) -> MatchMeta | None:
        return MatchMeta(name, 0, dict(self.fields)) if name == self.desk.setup.match else None

    async def get_record(self, _: str) -> bytes | None:
        return self.kept

    def fail_reads(self) -> pytest.MonkeyPatch:
        async def fail(*_: Any) -> list[bytes]:
            raise RuntimeError("gone")

        patch = pytest.MonkeyPatch()
        patch.setattr(self, "wait_for_entries", fail)
        return patch

    async def wait_for_entries(self, _: str, after_seq: int, block_ms: int) -> list[bytes]:
        self.reads += 1
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

    def __init__(self, store: Any, watcher: MatchWatcher | None = None, *, has_all: bool = False) -> None:
        self.has_all = has_all
        self.shown: list[pb.WatchMatchResponse] = []
        self.task = asyncio.create_task(self._watch(watcher or MatchWatcher(store), store.desk.setup.match))

    async def _watch(self, watch: MatchWatcher, name: str) -> None:
        self.shown = []
        async for response in watch.follow_match(name, has_all=self.has_all):
            self.shown.append(response)

    async def new(self) -> list[pb.WatchMatchResponse]:
        await asyncio.sleep(2 * SHORTEST_UPDATE_S)
        shown, self.shown[:] = list(self.shown), []
        return shown


def dealt(rounds: int = 1) -> tuple[Desk, FakeStore, Spectator]:
    desk = Desk(3, rounds)
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
@pytest.mark.parametrize("check_s", [4, 3600])
async def test_the_end_is_told_although_the_check_of_the_game_hangs_as_the_game_does(check_s: int) -> None:
    """If the check passes soon after the end, positions are shown, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spectating.MatchTail, "_is_shown", lambda *_: asyncio.sleep(check_s, True))
        desk, store, spectator = dealt()
        await spectator.new()
        desk.play_out()
        store.deliver()
        await asyncio.sleep(2 * LATE_CHECK_S)
    assert spectator.task.done()
    *positions, over = spectator.shown
    assert len(positions) == (1 if check_s == 4 else 0)
    assert over.match.result.points == desk.journal[-1].outcome["points"]  # type: ignore[union-attr]


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


# --- Many spectators ------------------------------------------------------------------------------------


@in_virtual_time
async def test_one_tail_reads_the_journal_for_all_spectators_of_a_match() -> None:
    desk, store, _ = dealt()
    watcher = MatchWatcher(store)
    spectators = [Spectator(store, watcher) for _ in range(50)]
    await spectators[0].new()
    reads = store.reads
    desk.submit()
    store.wake()
    await asyncio.sleep(2 * SHORTEST_UPDATE_S)
    assert store.reads == reads + 2  # the tail of the fixture's spectator, and that of these 50
    shown = [spectator.shown[-1] for spectator in spectators]
    assert all(one is shown[0] for one in shown)
    assert len(shown[0].ugo.trick) == 1


@in_virtual_time
async def test_two_thousand_spectators_of_a_match_see_all_that_changes_and_its_end() -> None:
    """Two changes a second, and 200 of them leave on the way."""
    desk, store, first = dealt(rounds=2)
    first.task.cancel()
    await asyncio.sleep(1)
    tasks, watcher = asyncio.all_tasks(), MatchWatcher(store)
    spectators = [Spectator(store, watcher) for _ in range(2000)]
    for change in range(20):
        await asyncio.sleep(0.5)
        desk.submit()
        store.wake()
        if change == 10:
            for spectator in spectators[:200]:
                spectator.task.cancel()
    desk.play_out()
    store.deliver()
    await asyncio.sleep(3)
    assert asyncio.all_tasks() == tasks
    stayed = [spectator.shown for spectator in spectators[200:]]
    # The match, the deal, 19 changes, the last position together with the 20th change, and the end.
    assert {len(shown) for shown in stayed} == {23}
    assert all(shown[-1].match.HasField("result") for shown in stayed)


@in_virtual_time
async def test_spectators_that_leave_leave_no_task_behind() -> None:
    _, store, first = dealt()
    first.task.cancel()
    await asyncio.sleep(1)
    tasks, watcher = asyncio.all_tasks(), MatchWatcher(store)
    spectators = [Spectator(store, watcher) for _ in range(200)]
    await asyncio.sleep(1)
    assert len(asyncio.all_tasks()) == len(tasks) + 201
    for spectator in spectators:
        spectator.task.cancel()
    await asyncio.sleep(1)
    assert asyncio.all_tasks() == tasks
    late = Spectator(store, watcher)
    assert [response.HasField("match") for response in await late.new()] == [True, False]


@in_virtual_time
async def test_a_spectator_is_sent_the_newest_position_at_most_ten_times_a_second() -> None:
    desk, store, spectator = dealt(rounds=8)
    await spectator.new()
    for _ in range(100):
        await asyncio.sleep(0.01)
        desk.submit()
        store.wake()
    await asyncio.sleep(SHORTEST_UPDATE_S)
    assert 8 <= len(spectator.shown) <= 12
    assert spectator.shown[-1].at_ms == desk.journal[-1].at_ms
    assert spectator.shown[-1].ugo == spectator_view(desk.match.position, desk.setup, 0).ugo


@in_virtual_time
async def test_a_slow_spectator_misses_positions_and_no_end() -> None:
    desk, store, _ = dealt()
    responses = MatchWatcher(store).follow_match(desk.setup.match)
    assert (await anext(responses)).HasField("match")
    await asyncio.sleep(1)
    for _ in range(5):
        desk.submit()
        store.wake()
        await asyncio.sleep(1)
    assert len((await anext(responses)).ugo.tricks) == 1
    desk.play_out()
    store.deliver()
    await asyncio.sleep(3)
    last = [response async for response in responses]
    assert [response.HasField("match") for response in last] == [False, True]
    assert last[0].ugo.points


@in_virtual_time
async def test_a_store_that_fails_is_told_to_all_and_the_next_spectator_tries_again() -> None:
    desk, store, other = dealt()
    other.task.cancel()
    watcher, failed = MatchWatcher(store), store.fail_reads()
    first, second = Spectator(store, watcher), Spectator(store, watcher)
    await asyncio.sleep(1)
    for spectator in (first, second):
        with pytest.raises(RuntimeError, match="gone"):
            await spectator.task
    failed.undo()
    assert len(await Spectator(store, watcher).new()) == 2
    assert desk.journal


@in_virtual_time
async def test_only_so_many_matches_are_followed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    _, store, _ = dealt()
    watcher = MatchWatcher(store)
    with monkeypatch.context() as patch:
        patch.setattr(spectating, "MOST_WATCHED_MATCHES", 1)
        spectator = Spectator(store, watcher)
        await spectator.new()
        with pytest.raises(Refusal, match="1 matches are watched already"):
            await anext(watcher.follow_match("matches/another"))
        assert len(await Spectator(store, watcher).new()) == 2


# --- All positions ----------------------------------------------------------------------------------------


async def follow_all(store: Any, watcher: MatchWatcher) -> list[pb.WatchMatchResponse]:
    return [each async for each in watcher.follow_match(store.desk.setup.match, has_all=True)]


def written(told: list[pb.WatchMatchResponse]) -> list[bytes]:
    return [each.SerializeToString() for each in told]


@in_virtual_time
async def test_a_spectator_that_asks_for_all_positions_is_sent_each_of_them_in_order_whenever_one_comes() -> (
    None
):
    desk, store, newest = dealt(rounds=2)
    watcher = MatchWatcher(store)
    early = asyncio.create_task(follow_all(store, watcher))
    await asyncio.sleep(1)
    for _ in range(30):
        desk.submit()
    store.wake()
    await asyncio.sleep(1)
    late = asyncio.create_task(follow_all(store, watcher))
    desk.submit_illegal()
    desk.play_out()
    store.deliver()
    told = await late
    assert written(await early) == written(told)
    assert [each.HasField("match") for each in (told[0], told[-1])] == [True, True]
    seen = [entry.at_ms for entry in desk.journal if not isinstance(entry, Rejected)]
    assert [each.at_ms for each in told[1:-1]] == seen
    views = [each.ugo for each in told[1:-1] if each.HasField("ugo")]
    assert len({view.SerializeToString() for view in views}) > 60
    assert len(newest.shown) < 10


@in_virtual_time
async def test_only_so_many_positions_are_kept_and_the_match_is_told_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk, store, _ = dealt(rounds=2)
    watcher = MatchWatcher(store)
    with monkeypatch.context() as patch:
        patch.setattr(spectating, "MOST_KEPT_RESPONSES", 10)
        early = asyncio.create_task(follow_all(store, watcher))
        for _ in range(30):
            await asyncio.sleep(1)
            desk.submit()
            store.wake()
        late = asyncio.create_task(follow_all(store, watcher))
        await asyncio.sleep(1)
        desk.play_out()
        store.deliver()
        whole, part = await early, await late
    told, late_told = written(whole), written(part)
    assert late_told[0] == told[0]
    first = told.index(late_told[1])
    assert first > 20
    assert late_told[1:10] == told[first : first + 9]
    assert late_told[-1] == told[-1]


@in_virtual_time
async def test_the_match_is_told_first_although_its_state_has_changed_since_the_last_move() -> None:
    _, store, first = dealt()
    await first.new()
    first.task.cancel()
    store.fields["state"] = b"SEATING"
    watcher = MatchWatcher(store)
    await Spectator(store, watcher).new()
    store.fields["state"] = b"RUNNING"
    await asyncio.sleep(3)
    assert [each.HasField("match") for each in await Spectator(store, watcher).new()] == [True, False]


@in_virtual_time
async def test_a_spectator_that_comes_while_the_last_spectator_leaves_is_shown_the_match() -> None:
    _, store, first = dealt()
    first.task.cancel()
    watcher = MatchWatcher(store)
    leaving = Spectator(store, watcher)
    await leaving.new()
    leaving.task.cancel()
    await asyncio.sleep(0)
    assert [each.HasField("match") for each in await Spectator(store, watcher).new()] == [True, False]


@in_virtual_time
async def test_no_delay_of_a_host_is_shorter_for_who_asks_for_all_positions() -> None:
    desk, store, _ = dealt(rounds=2)
    at_round_end = Spectator(store, MatchWatcher(store, SpectatorDelay.ROUND), has_all=True)
    at_end = Spectator(store, MatchWatcher(store, SpectatorDelay.OVER), has_all=True)
    await asyncio.gather(at_round_end.new(), at_end.new())
    desk.submit()
    store.wake()
    assert await at_round_end.new() == []
    play_one_round(desk)
    desk.submit()
    store.wake()
    shown = [each.ugo.round for each in await at_round_end.new()]
    assert (len(shown) > 20, shown[-2:]) == (True, [1, 2])
    assert await at_end.new() == []


# --- What is opened, and when -----------------------------------------------------------------------------


@in_virtual_time
async def test_the_hands_of_a_round_are_opened_when_it_is_over() -> None:
    desk, store, spectator = dealt(rounds=2)
    assert not (await spectator.new())[-1].opened
    deal = GAMES["ugo"].deals_in_clear(
        3, desk.setup.deals_from(desk.match.position.nonces), desk.setup.options
    )
    play_one_round(desk)
    store.wake()
    (opened,) = (await spectator.new())[-1].opened
    assert opened.round == 1
    assert [sorted(hand.cards) for hand in opened.hands] == [sorted(hand) for hand in deal[0]["hands"]]  # type: ignore[call-overload, index, union-attr]


@in_virtual_time
async def test_a_host_may_show_positions_only_when_their_round_is_over() -> None:
    desk, store, _ = dealt(rounds=2)
    spectator = Spectator(store, MatchWatcher(store, SpectatorDelay.ROUND))
    _, first = await spectator.new()
    assert first.ugo.hand_sizes == [10, 10, 10]
    desk.submit()
    store.wake()
    assert await spectator.new() == []
    play_one_round(desk)
    after = spectator_view(desk.match.position, desk.setup, 0).ugo
    desk.submit()
    store.wake()
    (shown,) = await spectator.new()
    assert shown.ugo == after
    assert (shown.ugo.round, len(shown.ugo.trick)) == (2, 0)


@in_virtual_time
async def test_a_host_may_show_a_match_only_when_it_is_over() -> None:
    desk, store, _ = dealt()
    spectator = Spectator(store, MatchWatcher(store, SpectatorDelay.OVER))
    assert [response.HasField("match") for response in await spectator.new()] == [True]
    desk.submit()
    store.wake()
    assert await spectator.new() == []
    desk.play_out()
    store.wake()
    await asyncio.sleep(0.5)
    assert spectator.shown == []
    store.deliver()
    await asyncio.sleep(2)
    last, over = await spectator.new()
    assert (last.ugo.points != [], over.HasField("match")) == (True, True)


def play_one_round(desk: Desk) -> None:
    state = desk.match.position.state
    while desk.match.position.state.round.number == state.round.number:
        desk.submit()


@in_virtual_time
async def test_the_steps_of_a_watched_match_name_each_card_as_its_journal_does() -> None:
    desk, store, _ = dealt(rounds=2)
    desk.play_out()
    store.deliver()
    told = await follow_all(store, MatchWatcher(store))
    writer, views = PositionWriter(told[0].match), [each for each in told if each.HasField("ugo")]
    steps = [
        frame for pair in zip([None, *views], views, strict=False) for frame in writer.frames_between(*pair)
    ]
    played = [entry for entry in desk.journal if isinstance(entry, Moved) and "play" in dict(entry.move)]  # type: ignore[call-overload]
    said = [each for step in steps for each in re.findall(r"(\w+) plays (\w+)\.", step.says)]
    names = short_names(desk.setup.bots)
    assert said == [(names[entry.seat], dict(entry.move)["play"]) for entry in played]  # type: ignore[call-overload]
    assert len(said) == 60
    assert not [step.says for step in steps if step.says.endswith("after the start.")]


def test_the_record_is_complete_enough_to_be_watched() -> None:
    """What `Watch` reads of it are the entries from a number on."""
    desk = Desk(2)
    desk.sit_all()
    desk.play_out()
    entries = record.build_record(desk.setup, desk.journal)["entries"]
    assert isinstance(entries, list)
    assert [each["seq"] for each in entries if isinstance(each, dict)] == list(range(1, len(entries) + 1))
