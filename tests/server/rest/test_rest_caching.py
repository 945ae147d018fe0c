"""Caching at the REST door: a 304 is sent only if the response is the same."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from harness import House, HttpConnection
from harness.house import house_in, in_memory
from harness.published import DEAL_SET, LADDER, LEAGUE, Published, publishing

from seatwise_referee.ending import Ending
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.config import HttpSettings
from seatwise_server.store import LadderExclusion

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shown() -> AsyncIterator[tuple[House, Published]]:
    """A server that has something of everything."""
    with tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as folder:
        async with house_in(Path(folder), http=HttpSettings(port=0)) as house, publishing(house) as published:
            yield house, published


@pytest.fixture
def http_house(shown: tuple[House, Published]) -> House:
    """The server."""
    return shown[0]


@pytest.fixture
def published(shown: tuple[House, Published]) -> Published:
    """What it has."""
    return shown[1]


def paths_of(what: Published) -> list[str]:
    """Of all resources that change and that everybody may read."""
    return [
        "games/ugo",
        *what.matches,
        *("matches", "matches?pageSize=2", f"matches?bot={what.bots[0]}"),
        *("bots", what.bots[0], f"{what.bots[0]}/opponents", DEAL_SET),
        *("ladders", LADDER, f"{LADDER}/standings", f"{LADDER}/standingsHistory", f"{LADDER}/results"),
        *("leagues", LEAGUE, f"{LEAGUE}/standings", f"{LEAGUE}/results"),
    ]


TRIES = 20
"""The bots of other tests have leases that may run out between two requests, which changes the list of bots."""


async def tag_of(http: HttpConnection, path: str) -> str:
    """The ETag of a response."""
    for _ in range(TRIES):
        answer = await http.get(f"/v1/{path}")
        assert answer.status == 200, path
        tag = answer.headers["etag"]
        if (await http.get(f"/v1/{path}", if_none_match=tag)).status == 304:
            return tag
    raise AssertionError(f"{path} is sent again and again")


async def test_an_unchanged_body_is_not_sent_again(http_house: House, published: Published) -> None:
    async with http_house.http() as http:
        for path in paths_of(published):
            for _ in range(TRIES):
                tag = await tag_of(http, path)
                again = await http.get(f"/v1/{path}", if_none_match=tag)
                if again.status == 304:
                    break
            assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag), path


async def test_a_version_is_known_only_to_callers_with_the_same_rights(
    http_house: House, published: Published
) -> None:
    in_a_set = f"/v1/{published.matches[1]}"
    async with http_house.http(http_house.admin.token) as operator, http_house.http() as anybody:
        full = await tag_of(operator, published.matches[1])
        withheld = await tag_of(anybody, published.matches[1])
        assert full != withheld
        assert (await anybody.get(in_a_set, if_none_match=full)).status == 200
        assert (await operator.get(in_a_set, if_none_match=withheld)).status == 200
        assert (await operator.get(in_a_set, if_none_match=full)).status == 304


async def test_a_changed_body_is_sent_again(http_house: House, published: Published) -> None:
    assert http_house.server
    store, bot = http_house.server.store, published.bots[0]
    async with http_house.http() as http:

        async def changes(path: str, tag: str) -> None:
            now = await http.get(f"/v1/{path}", if_none_match=tag)
            assert (now.status, now.body) == (200, (await http.get(f"/v1/{path}")).body), path
            assert now.headers["etag"] != tag

        in_a_set, waiting, stranger = published.matches[1], published.matches[-1], published.bots[-1]
        first = ("matches", in_a_set, waiting, "bots", stranger)
        tags = {path: await tag_of(http, path) for path in first}
        assert "withheld" in (await http.get(f"/v1/{in_a_set}")).body.decode().lower()
        await http_house.admin.abort(waiting)
        await store.bots.revoke_token(stranger)
        await store.sets.close_set(DEAL_SET, 3600)
        for path in first:
            await changes(path, tags[path])
        newest = (
            f"{LADDER}/results?newestFirst=true"  # on a busy machine there is more than a page of results
        )
        second = (LADDER, newest, LEAGUE, f"{LEAGUE}/results", f"{LEAGUE}/standings", bot)
        tags = {path: await tag_of(http, path) for path in second}
        endings = (Ending.COMPLETED, Ending.COMPLETED)
        played = LoggedResult(1, "matches/one-more", tuple(published.bots[:2]), (3, 2), (1, 2), endings)
        for competition in (LADDER, LEAGUE):
            await store.results.append_result(competition, played)
        await store.ladders.take_off(bot, LADDER, LadderExclusion("FORFEITS", 0))
        for path in second:
            await changes(path, tags[path])


@pytest.mark.usefixtures("published")
async def test_the_kind_of_a_bot_changes_the_table_of_its_ladder(http_house: House) -> None:
    assert http_house.server
    store, path = http_house.server.store, f"/v1/{LADDER}/standings"
    async with http_house.http() as http:
        leader, second = [line["bot"] for line in (await http.get(path)).json["standings"][:2]]
        for bot, kind in ((leader, 4), (second, 4), (leader, 0), (second, 0)):
            tag = await tag_of(http, f"{LADDER}/standings")
            await store.bots.set_kind(bot, kind)
            lines = (await http.get(path, if_none_match=tag)).json["standings"]
            shown = {line["bot"]: line["kind"] for line in lines}
            assert shown[bot] == f"BOT_KIND_{'LANGUAGE_MODEL' if kind else 'UNSPECIFIED'}"
            if bot == second and kind:  # pages are kept for some seconds
                assert (await http.get(f"/{LADDER}")).body.decode().count("language model") == 2
