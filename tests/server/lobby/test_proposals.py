"""Lobbies that die, or stand still, between two steps of seating a match; and what the heir of the proposal does then."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from copy import copy
from typing import Any

import pytest
from harness.free_tables import give_tables
from harness.store_calls import reserve_seat
from matches.one_match import Desk
from redis.asyncio import Redis

from seatwise_referee.games.registry import default_time_control
from seatwise_referee.journal import encode_entry
from seatwise_referee.match import Match
from seatwise_server.game_choice import GameKind
from seatwise_server.ladder.ladder_host import HostedLadder, LadderHost
from seatwise_server.ladder.ladder_settings import Ladder
from seatwise_server.ladder.ladder_state import LadderState
from seatwise_server.lobby.pairing import Pairing
from seatwise_server.lobby.seating import CREATED, QUEUES, Seating
from seatwise_server.play.delivery import Delivery, end_of
from seatwise_server.play.match_claims import MatchClaims, UnownedMatch
from seatwise_server.resource_names import new_match_name
from seatwise_server.store import Attendance, Flusher, Job, OwnerLimits, Proposal, Store, keys, now_ms
from seatwise_server.store.errors import MatchRetired, ProposalExpired

LEASE_MS = 60_000
KEEP_S = 600
OURS_MS = 300
"""In tests of what comes too late."""
BOTS = ("bots/a/versions/1", "bots/b/versions/1")
OWNERS = ("owners/joan", "owners/ann")
"""Of these bots. Each may play one match at once."""
LADDER = Ladder("ladders/main", "ugo", 2, {"rounds": 1}, default_time_control("ugo"))
QUEUE = "casual-2"
WAYS = (QUEUE, LADDER.name, CREATED)
"""How bots come to a table."""


class Killed(BaseException):
    """The process of a lobby is no more."""


class StoppingPart:
    """A part of the store that stops its lobby before one of its steps."""

    def __init__(self, part: Any, step: str, stop: Any) -> None:
        self._part, self._step, self._stop = part, step, stop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        return self._stopping(found) if name == self._step else found

    def _stopping(self, step: Any) -> Any:
        async def stops(*args: Any, **kwargs: Any) -> Any:
            await self._stop()
            return await step(*args, **kwargs)

        return stops


class StandStill:
    """A lobby stands still until it is woken."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()
        self._is_over = asyncio.Event()

    async def __call__(self) -> None:
        self.has_begun.set()
        await self._is_over.wait()

    def wake(self) -> None:
        """It goes on as if nothing had happened."""
        self._is_over.set()


async def kill() -> None:
    """At once."""
    raise Killed


def lobby_on(store: Store) -> Pairing:
    """A lobby that holds the ladder, where there is room at some referee."""
    host = LadderHost(store, "a lobby")
    host.hosted[LADDER.name] = HostedLadder(LADDER, LadderState(store, LADDER.name))
    return give_tables(Pairing(store, Seating(store, "fsync"), {}, host))


def lobby_that_stops(store: Store, part: str, step: str, stop: Any) -> Pairing:
    """A lobby that stops before the step of that part of the store."""
    stopping = copy(store)
    setattr(stopping, part, StoppingPart(getattr(store, part), step, stop))
    return lobby_on(stopping)


async def attend(store: Store, *bots: str, most: int = 1) -> None:
    """They are present, and would play in a queue and on the ladder."""
    for bot in bots:
        await store.attendances.write_attendance(
            bot, Attendance("lobby", bot, most, (QUEUE, LADDER.name)), LEASE_MS
        )


async def wait_for_a_match(store: Store, way: str, bots: Sequence[str] = BOTS) -> None:
    """They stand in a queue, or a match of theirs has been created."""
    for owner, bot in zip(OWNERS, bots, strict=False):
        await store.owners.create_owner(owner, 3, 8, "invites/i", "")
        await store.owners.set_quotas(owner, {"most_matches_at_once": 1, "most_matches_a_day": 9})
        await store.bots.register_bot(bot.split("/")[1], "1", owner, "r")
    await attend(store, *bots)
    if way == CREATED:
        seating, match = Seating(store, "fsync"), new_match_name()
        await seating.create_match(
            seating.new_setup(match, "ugo", bots, {"rounds": 1}, default_time_control("ugo")),
            "WAITING",
            CREATED,
        )
        await store.queues.enter_queue(CREATED, match)
        return
    for bot in bots:
        await store.queues.enter_queue(way, bot)


async def play_out(store: Store) -> str:
    """A referee takes the one job, and its match is played to the end and delivered."""
    [job] = await store.jobs.take_jobs("referee", 9, 1_000)
    setup = await Seating(store, "fsync").setup_of(job.match)
    assert setup
    desk = Desk()
    desk.setup, desk.match = setup, Match(setup)
    desk.sit_all()
    desk.play_out()
    epoch, _ = await store.journal.claim_match(job.match, "referee", 0)
    end = end_of(setup, [encode_entry(entry) for entry in desk.journal])
    assert await Delivery(store, KEEP_S).deliver_match(setup, epoch, "referee", end)
    await store.jobs.finish_job(job.job_id)
    return job.match


async def check_on_the_books(store: Store, match: str) -> None:
    """What GetMatch, GetRecord and ListMatches say follows from this."""
    meta = await store.matches.get_meta(match)
    assert meta
    assert (meta.state, "setup" in meta.fields, "result" in meta.fields) == ("FINISHED", True, True)
    assert await store.matches.get_record(match)
    assert match in [each.match for each in (await store.matches.list_page(9)).matches]


async def check_nothing_is_left(store: Store, way: str) -> None:
    """No seat is held, no proposal is open, no job waits, and no match is counted for an owner."""
    assert [await store.seats.held_seats(bot) for bot in BOTS] == [[], []]
    assert await store.queues.unfinished_proposals(way) == []
    assert await store.jobs.count_unfinished() == 0
    assert await count_of_owners(store) == [0, 0]
    if way == CREATED:
        assert await store.queues.count_waiting(CREATED) == 0


async def count_of_owners(store: Store) -> list[int]:
    """How many matches the bots of each owner play."""
    return [room.open_matches for room in await store.owner_matches.measure_room(OWNERS, OwnerLimits())]


@pytest.fixture
async def heir(store: Store, monkeypatch: pytest.MonkeyPatch) -> Pairing:
    """A lobby to which every proposal is old."""
    monkeypatch.setattr("seatwise_server.lobby.seating.PROPOSAL_ADOPT_MS", 0)
    return lobby_on(store)


@pytest.mark.parametrize("where", ["present", "absent", "busy"])
@pytest.mark.parametrize("way", WAYS)
async def test_the_heir_of_a_lobby_that_was_killed_leaves_a_finished_match_on_the_books(
    store: Store, heir: Pairing, way: str, where: str
) -> None:
    await wait_for_a_match(store, way)
    with pytest.raises(Killed):
        await lobby_that_stops(store, "queues", "close_proposal", kill)._run_pass()
    match = await play_out(store)
    await be(store, where)
    await heir.take_up_unfinished()
    await check_on_the_books(store, match)
    await check_after(store, way, where)


@pytest.mark.parametrize("where", ["present", "absent", "busy"])
@pytest.mark.parametrize("way", WAYS)
async def test_a_lobby_that_stood_still_leaves_it_there_too(
    store: Store, heir: Pairing, way: str, where: str
) -> None:
    still = StandStill()
    await wait_for_a_match(store, way)
    passing = asyncio.create_task(lobby_that_stops(store, "queues", "close_proposal", still)._run_pass())
    async with asyncio.timeout(5):
        await still.has_begun.wait()
    match = await play_out(store)
    await be(store, where)
    await heir.take_up_unfinished()
    still.wake()
    async with asyncio.timeout(5):
        await passing
    await check_on_the_books(store, match)
    await check_after(store, way, where)


async def be(store: Store, where: str) -> None:
    """The bots are present, or have left, or play another match by now."""
    for bot in BOTS:
        if where == "absent":
            await store.attendances.remove_attendance(bot, bot)
        elif where == "busy":
            assert (await reserve_seat(store, bot, "matches/another", 0)).holds


async def check_after(store: Store, way: str, where: str) -> None:
    """Nobody is locked, or seated again; those who have a place free wait on."""
    if where == "busy":
        await store.seats.release_all("matches/another", [BOTS[0]])
        await store.seats.release_all("matches/another", [BOTS[1]])
    await check_nothing_is_left(store, way)
    if way != CREATED:
        waiting = {each.name for each in await store.queues.list_entries(way)}
        assert waiting == (set(BOTS) if where == "present" else set())


@pytest.mark.parametrize("way", WAYS)
async def test_a_match_that_is_played_is_left_to_its_referee(store: Store, heir: Pairing, way: str) -> None:
    await wait_for_a_match(store, way)
    with pytest.raises(Killed):
        await lobby_that_stops(store, "queues", "close_proposal", kill)._run_pass()
    [job] = await store.jobs.take_jobs("referee", 9, 1_000)
    await store.journal.claim_match(job.match, "referee", 0)
    for bot in BOTS:
        await store.attendances.remove_attendance(bot, bot)
    await heir.take_up_unfinished()
    assert await store.matches.get_meta(job.match)
    assert [[each.match for each in await store.seats.held_seats(bot)] for bot in BOTS] == [[job.match]] * 2
    assert await store.queues.unfinished_proposals(way) == []


async def test_a_created_match_that_waits_once_more_is_not_played_twice(store: Store, heir: Pairing) -> None:
    """CreateMatch was repeated while the match was seated."""
    await wait_for_a_match(store, CREATED)
    await heir._run_pass()
    match = await play_out(store)
    await store.queues.enter_queue(CREATED, match)
    await heir._run_pass()
    await check_on_the_books(store, match)
    await check_nothing_is_left(store, CREATED)


@pytest.mark.parametrize("way", [QUEUE, LADDER.name])
async def test_a_match_that_came_to_nothing_leaves_nothing(
    store: Store, heir: Pairing, redis_client: Redis, way: str
) -> None:
    await wait_for_a_match(store, way)
    await store.attendances.remove_attendance(BOTS[0], BOTS[0])
    await heir._run_pass()
    assert [each.name for each in await store.queues.list_entries(way)] == [BOTS[1]]
    assert (await store.matches.list_page(9)).matches == ()
    assert await redis_client.zcard(keys.MATCH_INDEX) == 0
    await check_nothing_is_left(store, way)


@pytest.mark.parametrize("way", WAYS)
async def test_a_bot_that_left_while_its_seat_was_a_dead_lobbys_is_not_seated_by_the_heir(
    store: Store, heir: Pairing, way: str
) -> None:
    """It was told of no seat; a match without it would say that it never sat down."""
    await wait_for_a_match(store, way)
    with pytest.raises(Killed):
        await lobby_that_stops(store, "jobs", "push_new_job", kill)._run_pass()
    assert [len(await store.seats.held_seats(bot)) for bot in BOTS] == [1, 1]
    await store.attendances.remove_attendance(BOTS[0], BOTS[0])
    await heir.take_up_unfinished()
    assert [len(await store.seats.held_seats(bot)) for bot in BOTS] == [0, 0]
    assert (await store.jobs.count_unfinished(), await store.queues.unfinished_proposals(way)) == (0, [])
    if way == CREATED:
        assert await store.queues.count_waiting(CREATED) == 1, "it waits for its bots as before"
    else:
        assert [each.name for each in await store.queues.list_entries(way)] == [BOTS[1]]


# Two lobbies that want the last free table


def lobby_with_a_table(store: Store) -> Pairing:
    """A lobby that saw one free table a moment ago."""
    return give_tables(lobby_on(store), 1)


async def check_they_wait_as_before(store: Store, way: str) -> None:
    """Without a seat, at their places in the queue, and no match is left but the one that has the table."""
    assert [len(await store.seats.held_seats(bot)) for bot in BOTS] == [0, 0]
    assert await store.queues.unfinished_proposals(way) == []
    assert await count_of_owners(store) == [0, 0]
    assert [job.match for job in await store.jobs.list_page(9)] == ["matches/last"]
    if way == CREATED:
        assert await store.queues.count_waiting(CREATED) == 1
    else:
        assert {each.name for each in await store.queues.list_entries(way)} == set(BOTS)
        assert (await store.matches.list_page(9)).matches == ()


@pytest.mark.parametrize("way", WAYS)
async def test_of_two_lobbies_one_seats_a_match_at_the_last_table(store: Store, way: str) -> None:
    await wait_for_a_match(store, way)
    before = await store.queues.list_entries(way)
    await store.jobs.push_job("matches/last")
    await lobby_with_a_table(store)._run_pass()
    await check_they_wait_as_before(store, way)
    assert await store.queues.list_entries(way) == before


@pytest.mark.parametrize(
    ("way", "part", "step"),
    [
        *(
            (CREATED, part, step)
            for part, step in (("seats", "release_all"), ("queues", "dissolve_proposal"))
        ),
        *((QUEUE, part, step) for part, step in (("seats", "release_all"), ("matches", "drop_unowned"))),
        *(
            (QUEUE, part, step)
            for part, step in (("owner_matches", "close_match"), ("queues", "dissolve_proposal"))
        ),
    ],
)
async def test_a_lobby_that_dies_after_it_found_no_table_leaves_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, way: str, part: str, step: str
) -> None:
    monkeypatch.setattr("seatwise_server.lobby.seating.PROPOSAL_ADOPT_MS", 0)
    await wait_for_a_match(store, way)
    await store.jobs.push_job("matches/last")
    with pytest.raises(Killed):
        await give_tables(lobby_that_stops(store, part, step, kill), 1)._run_pass()
    await lobby_with_a_table(store).take_up_unfinished()
    await check_they_wait_as_before(store, way)


async def test_a_match_is_handed_to_the_referees_of_its_kind_of_games(store: Store) -> None:
    proposal = Proposal("matches/foreign", 10**14, ())
    assert await lobby_on(store)._proposals._hand_over(proposal, "leduc")
    assert [job.match for job in await store.jobs.take_jobs("a", 9, 100, [GameKind.HOSTED])] == [
        proposal.match
    ]


@pytest.mark.parametrize("way", WAYS)
async def test_a_match_that_waits_for_a_referee_is_left_to_it(store: Store, heir: Pairing, way: str) -> None:
    await wait_for_a_match(store, way)
    with pytest.raises(Killed):
        await lobby_that_stops(store, "queues", "close_proposal", kill)._run_pass()
    await store.attendances.remove_attendance(BOTS[0], BOTS[0])
    await heir.take_up_unfinished()
    assert [len(await store.seats.held_seats(bot)) for bot in BOTS] == [1, 1]
    assert (await store.jobs.count_unfinished(), await store.queues.unfinished_proposals(way)) == (1, [])


@pytest.mark.parametrize(
    ("part", "step"),
    [("matches", "drop_unowned"), ("owner_matches", "close_match"), ("queues", "dissolve_proposal")],
)
async def test_an_heir_finishes_the_giving_up_of_a_dead_lobby(
    store: Store, heir: Pairing, redis_client: Redis, part: str, step: str
) -> None:
    await wait_for_a_match(store, QUEUE)
    await store.attendances.remove_attendance(BOTS[0], BOTS[0])
    with pytest.raises(Killed):
        await lobby_that_stops(store, part, step, kill)._run_pass()
    await heir.take_up_unfinished()
    assert [each.name for each in await store.queues.list_entries(QUEUE)] == [BOTS[1]]
    assert await redis_client.zcard(keys.MATCH_INDEX) == 0
    await check_nothing_is_left(store, QUEUE)


async def test_a_match_that_an_operator_ended_while_its_bots_were_looked_for_stays_on_the_books(
    store: Store,
) -> None:
    await wait_for_a_match(store, QUEUE)
    await store.attendances.remove_attendance(BOTS[0], BOTS[0])
    claimed: list[str] = []

    async def claim() -> None:
        [proposal] = await store.queues.unfinished_proposals(QUEUE)
        claimed.append(proposal.match)
        await store.journal.claim_match(proposal.match, "referee", 0)

    await lobby_that_stops(store, "matches", "drop_unowned", claim)._run_pass()
    assert [each.match for each in (await store.matches.list_page(9)).matches] == claimed
    assert [each.name for each in await store.queues.list_entries(QUEUE)] == [BOTS[1]]
    await check_nothing_is_left(store, QUEUE)


@pytest.mark.parametrize(
    ("part", "step"), [("journal", "read_fence"), ("jobs", "push_job"), ("queues", "leave_queue")]
)
async def test_a_match_whose_abort_was_cut_short_is_ended_all_the_same(
    store: Store, heir: Pairing, part: str, step: str
) -> None:
    await wait_for_a_match(store, CREATED)
    [match] = await store.queues.front_of(CREATED, 1)
    dying = copy(store)
    setattr(dying, part, StoppingPart(getattr(store, part), step, kill))
    with pytest.raises(Killed):
        await Seating(dying, "fsync").abort_match(match)
    await heir._run_pass()
    assert await store.queues.count_waiting(CREATED) == 0
    assert [job.match for job in await store.jobs.list_page(9)] == [match]
    assert await store.matches.is_to_be_aborted(match)


# A lobby that stands still for so long that its proposal is another's

STEPS = (
    (QUEUE, "matches", "create_match"),
    (QUEUE, "seats", "reserve_all"),
    (QUEUE, "seats", "release_all"),
    (QUEUE, "matches", "drop_unowned"),
    (QUEUE, "owner_matches", "close_match"),
    (QUEUE, "queues", "dissolve_proposal"),
    (QUEUE, "jobs", "push_new_job"),
    (LADDER.name, "seats", "release_all"),
    (CREATED, "seats", "reserve_all"),
    (CREATED, "jobs", "push_new_job"),
)
NEEDS_ABSENT = ("release_all", "drop_unowned", "close_match", "dissolve_proposal")
"""Steps that are taken when a bot is not to be had."""


@pytest.mark.parametrize("is_finished", [False, True], ids=["running", "finished"])
@pytest.mark.parametrize(("way", "part", "step"), STEPS)
async def test_a_late_lobby_harms_no_match_of_its_heir(
    store: Store,
    heir: Pairing,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    part: str,
    step: str,
    is_finished: bool,
) -> None:
    monkeypatch.setattr("seatwise_server.lobby.seating.PROPOSAL_OWN_MS", OURS_MS)
    still = StandStill()
    await wait_for_a_match(store, way)
    if step in NEEDS_ABSENT:
        await store.attendances.remove_attendance(BOTS[0], BOTS[0])
    passing = asyncio.create_task(lobby_that_stops(store, part, step, still)._run_pass())
    async with asyncio.timeout(5):
        await still.has_begun.wait()
    taken_ms = [proposal.taken_ms for proposal in await store.queues.unfinished_proposals(way)]
    await attend(store, *BOTS)
    await seat_as_heir(store, heir, way)
    match = await (play_out(store) if is_finished else claim(store))
    await until_ms(store, max(taken_ms, default=0) + OURS_MS)
    still.wake()
    async with asyncio.timeout(5):
        await passing
    if is_finished:
        await check_on_the_books(store, match)
        await check_nothing_is_left(store, way)
    else:
        assert [[each.match for each in await store.seats.held_seats(bot)] for bot in BOTS] == [[match]] * 2
        assert [each.match for each in (await store.matches.list_page(9)).matches] == [match]
        assert await count_of_owners(store) == [1, 1]


async def test_a_lobby_that_is_late_to_count_a_match_no_more_leaves_it_to_an_heir(
    store: Store, heir: Pairing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatwise_server.lobby.seating.PROPOSAL_OWN_MS", OURS_MS)
    still = StandStill()
    await wait_for_a_match(store, QUEUE)
    await store.owners.set_quotas(OWNERS[1], {"most_matches_at_once": 0})
    passing = asyncio.create_task(lobby_that_stops(store, "owner_matches", "close_match", still)._run_pass())
    async with asyncio.timeout(5):
        await still.has_begun.wait()
    assert await count_of_owners(store) == [1, 0]
    [proposal] = await store.queues.unfinished_proposals(QUEUE)
    await until_ms(store, proposal.taken_ms + OURS_MS)
    still.wake()
    async with asyncio.timeout(5):
        await passing
        while await store.queues.unfinished_proposals(QUEUE):
            await heir.take_up_unfinished()
    assert await count_of_owners(store) == [0, 0]


async def seat_as_heir(store: Store, heir: Pairing, way: str) -> None:
    """The heir may be too late itself on a machine that is busy: then it adopts the proposal once more."""
    async with asyncio.timeout(5):
        while await store.queues.unfinished_proposals(way):
            await heir.take_up_unfinished()
        while not await store.jobs.count_unfinished():  # what was dropped is paired again
            for bot in BOTS:
                await store.queues.enter_queue(way, bot)
            await heir._run_pass()


async def claim(store: Store) -> str:
    """A referee plays the one match."""
    [job] = await store.jobs.take_jobs("referee", 9, 1_000)
    await store.journal.claim_match(job.match, "referee", 0)
    return job.match


async def until_ms(store: Store, at_ms: int) -> None:
    """Redis's clock shows that."""
    left_ms = at_ms - await now_ms(store.client)
    await asyncio.sleep(max(0, left_ms + 1) / 1000)


# The scripts


async def test_nothing_is_done_for_a_lobby_that_comes_too_late(store: Store) -> None:
    await attend(store, *BOTS)
    match, wanted = await new_match(store), [(bot, seat) for seat, bot in enumerate(BOTS)]
    await store.seats.reserve_all(match, wanted, await now_ms(store.client) + 60_000)
    late = await now_ms(store.client)
    for attempt in (
        store.seats.reserve_all("matches/2", wanted, late),
        store.seats.release_all(match, BOTS, late),
        store.matches.drop_unowned(match, late),
        store.matches.create_match("matches/2", {"setup": "{}"}, late),
    ):
        with pytest.raises(ProposalExpired):
            await attempt
    assert [[each.match for each in await store.seats.held_seats(bot)] for bot in BOTS] == [[match]] * 2
    assert [each.match for each in (await store.matches.list_page(9)).matches] == [match]
    assert not await store.matches.create_match(match, {"setup": "{}"}, late), "it stands, whoever asks"


async def new_match(store: Store) -> str:
    """Nobody has owned it."""
    assert await store.matches.create_match("matches/1", {"setup": "{}", "state": "SEATING"})
    return "matches/1"


async def test_a_match_that_nobody_has_owned_is_dropped(store: Store, redis_client: Redis) -> None:
    match = await new_match(store)
    assert [await store.matches.drop_unowned(match) for _ in range(2)] == [True, True]
    assert await store.matches.get_meta(match) is None
    assert await redis_client.zcard(keys.MATCH_INDEX) == 0


@pytest.mark.parametrize("part", ["fence", "journal", "record", "result"])
async def test_anything_that_an_owner_has_left_keeps_a_match(
    store: Store, redis_client: Redis, part: str
) -> None:
    match = await new_match(store)
    match part:
        case "fence":
            await store.journal.claim_match(match, "a", 0)
        case "journal":
            await redis_client.xadd(keys.match_journal(match), {"e": "an entry"}, id="1-0")
        case "record":
            await redis_client.set(keys.match_record(match), b"a record")
        case "result":
            await redis_client.hset(keys.match_meta(match), "result", b"a result")
    before = await store.matches.get_meta(match)
    assert not await store.matches.drop_unowned(match)
    assert await store.matches.get_meta(match) == before is not None
    assert [each.match for each in (await store.matches.list_page(9)).matches] == [match]


async def test_no_process_claims_or_creates_a_match_that_was_dropped(store: Store) -> None:
    """A referee may have read its meta before, and a lobby may have stood still."""
    match = await new_match(store)
    await store.matches.drop_unowned(match)
    with pytest.raises(MatchRetired):
        await store.journal.claim_match(match, "a", 0)
    with pytest.raises(MatchRetired):
        await store.matches.create_match(match, {"setup": "{}"})
    assert await store.journal.read_fence(match) is None
    assert await store.matches.get_meta(match) is None
    assert (await store.matches.list_page(9)).matches == ()


async def test_nothing_of_a_dropped_match_is_kept(store: Store, redis_client: Redis) -> None:
    match = await new_match(store)
    await store.matches.drop_unowned(match)
    [key] = [key async for key in redis_client.scan_iter() if b"match:" in key]
    assert key == keys.match_fence(match).encode()
    assert 0 < await redis_client.pttl(key) <= 3_600_000


async def test_the_job_of_a_dropped_match_is_done_with(store: Store, flusher: Flusher) -> None:
    match = await new_match(store)
    await store.jobs.push_job(match)
    [job] = await store.jobs.take_jobs("a", 1, 100)
    await store.matches.drop_unowned(match)
    opening = MatchClaims("a", store, flusher, Delivery(store, KEEP_S))
    assert await opening.claim_match(UnownedMatch(Job(job.job_id, match), "a", None)) is None
    assert await store.jobs.count_unfinished() == 0


def test_the_queue_of_these_tests_is_for_two() -> None:
    assert QUEUES[QUEUE].seats == len(BOTS)
