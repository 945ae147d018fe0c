"""The results of a bot by opponent and game."""

from __future__ import annotations

from dataclasses import replace

import pytest
from doubles.operations import operations_on
from matches.one_match import Desk

from seatwise.v1 import bot_service_pb2 as pb
from seatwise_referee.journal import canonical_json, encode_entry
from seatwise_referee.setup import JOURNAL_FORMAT
from seatwise_server.play.delivery import Delivery, end_of
from seatwise_server.refusal import Refusal
from seatwise_server.services import bots as bot_operations
from seatwise_server.services.authentication import ANONYMOUS
from seatwise_server.store import MatchMeta, Store
from seatwise_server.store.matches import facets_of

KEEP_S = 600
LIST_OPPONENTS = "/seatwise.v1.BotService/ListOpponents"
A, B, C = (f"bots/{name}/versions/1" for name in "abc")


async def play(
    store: Store, name: str, *bots: str, points: list[int], ranks: list[int], game: str = "ugo"
) -> None:
    """A match that is over, with these points and ranks."""
    desk = Desk(len(bots), 1, name=name)
    desk.setup = replace(desk.setup, bots=bots)
    desk.match = type(desk.match)(desk.setup)
    desk.sit_all()
    desk.play_out(ms_each=7)
    end = end_of(desk.setup, [encode_entry(entry) for entry in desk.journal])
    end.message.result.points[:] = points
    end.message.result.ranks[:] = ranks
    setup = canonical_json(replace(desk.setup, game=game).to_json())
    meta = {"format": JOURNAL_FORMAT, "setup": setup, "state": "SEATING", "queue": "created"}
    await store.matches.create_match(name, meta, facets=facets_of(desk.setup))
    epoch, _ = await store.journal.claim_match(name, "a", 0)
    assert await Delivery(store, KEEP_S).deliver_match(desk.setup, epoch, "a", end)


async def listed(store: Store, name: str = A, **more: object) -> pb.ListOpponentsResponse:
    answer = await operations_on(store)[LIST_OPPONENTS].handle(
        ANONYMOUS, pb.ListOpponentsRequest(name=name, **more)
    )
    assert isinstance(answer, pb.ListOpponentsResponse)
    return answer


@pytest.fixture(autouse=True)
async def bots(store: Store) -> None:
    for name in "abc":
        await store.bots.register_bot(name, "1", "owner", "")


async def test_each_opponent_is_counted_by_game(store: Store) -> None:
    await play(store, "matches/1", A, B, points=[10, 20], ranks=[2, 1])
    await play(store, "matches/2", B, A, points=[1, 4], ranks=[2, 1])
    await play(store, "matches/3", A, B, points=[5, 5], ranks=[1, 1])
    await play(store, "matches/4", C, A, B, points=[9, 8, 7], ranks=[1, 2, 3])
    await play(store, "matches/5", B, C, points=[9, 8], ranks=[1, 2])
    await play(store, "matches/6", A, C, points=[60, 0], ranks=[1, 2], game="ubongo")
    found = await listed(store)
    assert (found.matches, found.withheld, found.next_page_token) == (5, 0, "")
    assert [(each.opponent, each.game, each.matches, each.wins, each.ties) for each in found.opponents] == [
        (B, "games/ugo", 4, 2, 1),
        (C, "games/ubongo", 1, 1, 0),
        (C, "games/ugo", 1, 0, 0),
    ]
    first = found.opponents[0]
    assert (first.mean_rank, first.mean_points, first.opponent_mean_points) == (6 / 4, 27 / 4, 33 / 4)
    last = await store.matches.get_meta("matches/4")
    assert last
    assert first.last_end_time.ToMilliseconds() == int(last.fields["end_ms"])


async def test_matches_that_are_not_over_and_bots_that_play_themselves_do_not_count(store: Store) -> None:
    await play(store, "matches/1", A, A, points=[1, 2], ranks=[2, 1])
    setup = replace(Desk(2, 1, name="matches/open").setup, bots=(A, B))
    meta = {"setup": canonical_json(setup.to_json()), "state": "RUNNING", "queue": "created"}
    await store.matches.create_match("matches/open", meta, facets=facets_of(setup))
    assert list((await listed(store)).opponents) == []


async def test_a_match_is_read_once_and_only_the_newest_are(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bot_operations, "MOST_OPPONENT_MATCHES", 3)
    for number in range(5):
        await play(store, f"matches/{number}", A, B, points=[number, 0], ranks=[1, 2])
    asked = operations_on(store)[LIST_OPPONENTS]
    read = list[str]()
    read_metas = store.matches.read_metas

    async def counted(names: list[str]) -> list[MatchMeta]:
        read.extend(names)
        return await read_metas(names)

    monkeypatch.setattr(store.matches, "read_metas", counted)
    answers = [await asked.handle(ANONYMOUS, pb.ListOpponentsRequest(name=A)) for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0].opponents[0].mean_points == 3
    assert sorted(read) == ["matches/2", "matches/3", "matches/4"]


async def test_opponents_are_listed_page_by_page(store: Store) -> None:
    await play(store, "matches/1", A, B, C, points=[3, 2, 1], ranks=[1, 2, 3])
    first = await listed(store, page_size=1)
    second = await listed(store, page_size=1, page_token=first.next_page_token)
    assert [each.opponent for page in (first, second) for each in page.opponents] == [B, C]
    assert second.next_page_token == ""
    with pytest.raises(Refusal):
        await listed(store, page_token="x")
    with pytest.raises(Refusal):
        await listed(store, name="bots/none/versions/1")
