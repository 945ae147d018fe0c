"""Games from outside on a server: by each door, in queues and ladders, and beside matches of ours when they fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from doubles.hosted_games import Bids, Guesses, Highest, load_leduc, use_game, use_inline_views
from harness import House
from harness.house import house_in
from websockets.asyncio.client import connect

import seatwise
from seatwise.hosting import HostedGame
from seatwise.remote import run_async
from seatwise.v1 import game_service_pb2, match_service_pb2
from seatwise.v1.json_payload_pb2 import JsonValue
from seatwise.v1.play_service_pb2 import PlayRequestItem, Sit, SubmitMove
from seatwise_server.config import HttpSettings

pytestmark = pytest.mark.asyncio(loop_scope="session")

PATIENT = {"free_ms": {"move": 30_000}}


class Failing(Highest):
    """Fails at a chosen move."""

    name = "failing"
    fail_at = 2

    def play_move(self, state: Any, move: Any, chance: Any) -> Any:
        after = super().play_move(state, move, chance)
        if len(after.played) == self.fail_at:
            raise RuntimeError("the author's mistake")
        return after


class Leaking(Highest):
    """Shows every hand after the first move."""

    name = "leaking"

    def show_state(self, state: Any, seat: int | None) -> dict[str, Any]:
        hidden = super().show_state(state, seat)
        return {**hidden, "hands": [list(hand) for hand in state.hands]} if state.played else hidden


class Unchecked(Highest):
    """Tells spectators a hand, which nobody can check: it has no `resample_state`."""

    name = "unchecked"
    resample_state = HostedGame.resample_state

    def show_state(self, state: Any, seat: int | None) -> dict[str, Any]:
        return {**super().show_state(state, seat), "hand": list(state.hands[seat or 0])}


class Endless(Highest):
    """Does not end."""

    name = "endless"
    most_moves = 50

    def play_move(self, state: Any, move: Any, chance: Any) -> Any:
        return state


@pytest.fixture(autouse=True, scope="module")
def games() -> Iterator[None]:
    """The games, before the server starts."""
    with pytest.MonkeyPatch.context() as patch:
        for game in (load_leduc(), Highest, Bids, Guesses, Failing, Leaking, Endless, Unchecked):
            use_game(patch, game)
        use_inline_views(patch)
        yield


async def create(house: House, game: str, bots: list[str], **options: str) -> str:
    request = match_service_pb2.CreateMatchRequest(
        game=f"games/{game}", bots=bots, options=options, time_control=PATIENT
    )
    answer = await house.admin.matches.CreateMatch(request, metadata=house.admin.metadata)
    return str(answer.match.name)


async def play_one(house: House, address: str, game: str, **options: str) -> tuple[str, list[Any]]:
    """Two random bots of the SDK play a match by this address; its name, and their results."""
    wires, results = [await house.bot() for _ in range(2)], []
    match = await create(house, game, [wire.bot for wire in wires], **options)
    async with asyncio.timeout(60):
        await asyncio.gather(*[
            run_async(
                "random", game=game, address=address, token=wire.token, queues=(), matches=1, on_result=results.append
            )
            for wire in wires
        ])  # fmt: skip
    return match, results


def addresses(house: House) -> dict[str, str]:
    assert house.server is not None
    return {"grpc": house.address, "rest": f"rest+{house.server.http_address}"}


@pytest.mark.parametrize(
    ("game", "door"),
    [("leduc", "grpc"), ("leduc", "rest"), ("highest", "grpc"), ("bids", "grpc"), ("guesses", "rest")],
)
async def test_a_match_is_played_by_each_door_and_verified(http_house: House, game: str, door: str) -> None:
    match, results = await play_one(http_house, addresses(http_house)[door], game)
    assert {ending for result in results for ending in result.endings} == {"COMPLETED"}
    record = json.loads(await http_house.admin.record(match))
    assert (record["game"], record["deals"]) == (game, [])


async def test_a_bot_s_machine_needs_no_package_of_the_game(http_house: House, monkeypatch: Any) -> None:
    from seatwise.kits import KITS, find_server_kit

    kit = find_server_kit("somewhere-else")
    assert (kit.casual_queue, kit.main_method, list(kit.samples)) == (
        "casual-somewhere-else",
        "decide",
        ["random"],
    )
    monkeypatch.setattr(
        "seatwise.link.seat_session.find_server_kit", lambda game: find_server_kit("somewhere-else")
    )
    _, results = await play_one(http_house, http_house.address, "highest")
    assert not results[0].is_void
    assert "somewhere-else" not in KITS


async def test_the_kind_of_match_is_told(http_house: House) -> None:
    games = (
        await http_house.admin.games.ListGames(game_service_pb2.ListGamesRequest(page_size=50))
        if hasattr(http_house.admin, "games")
        else None
    )
    async with http_house.http() as http:
        answer = await http.call("GET", "/v1/games/highest")
        told = json.loads(answer.body)
        assert answer.status == 200, told
        told = told["game"]
    assert games is None or games
    assert (told["minSeats"], told["maxSeats"], told["paces"]) == (2, 4, {"move": 1000})
    assert told["options"] == {"cards": "3", "deck": "short"}


async def test_bots_wait_in_the_casual_queue_of_the_game(http_house: House) -> None:
    wires, results = [await http_house.bot() for _ in range(2)], []
    async with asyncio.timeout(60):
        await asyncio.gather(*[
            run_async("random", game="highest", address=http_house.address, token=wire.token, matches=1, on_result=results.append)
            for wire in wires
        ])  # fmt: skip
    assert [result.is_void for result in results] == [False, False]


async def watch_one(house: House, game: str) -> tuple[str, list[Any]]:
    """A match of two random bots; all that a spectator is told of it."""
    wires, seen = [await house.bot() for _ in range(2)], []
    match = await create(house, game, [wire.bot for wire in wires])

    async def watch() -> None:
        seen.extend([each async for each in house.admin.watch(match, all_positions=True)])

    watching = asyncio.create_task(watch())
    await asyncio.gather(*[
        run_async("random", game=game, address=house.address, token=wire.token, queues=(), matches=1)
        for wire in wires
    ])  # fmt: skip
    async with asyncio.timeout(30):
        await watching
    return match, seen


@pytest.mark.parametrize(("game", "steps"), [("highest", 7), ("bids", 4), ("unchecked", 0)])
async def test_spectators_see_a_checked_game_as_it_is_played_and_any_when_it_is_over(
    http_house: House, game: str, steps: int
) -> None:
    match, seen = await watch_one(http_house, game)
    views = [each.json for each in seen if each.WhichOneof("view")]
    assert len(views) == steps  # a choice among several is shown when all have chosen
    assert all(json.loads(view.data.json)["hand"] == [] for view in views)
    assert all(json.loads(view.drawing.json)[0]["zone"] == "Played" for view in views[1:])
    assert [view.says for view in views[1:]] == (
        ["All have chosen."] * 3 if game == "bids" else [view.says for view in views[1:]]
    )
    assert seen[-1].match.HasField("end_time")
    async with http_house.http() as http:
        frames = json.loads((await http.call("GET", f"/{match}/frames")).body)["frames"]
        assert len(frames[0]["own"][1]["drawing"]) == 1
        page = (await http.call("GET", f"/{match}")).body.decode()
        assert "The last position as text" in page
        assert "Played: " in page
        assert "Download the record" in page


# What is on the wire


async def received(stream: Any, match: str, event: str) -> Any:
    """The next event of this kind for seat 0."""
    while (item := await stream.receive(match, 0)).WhichOneof("event") != event:
        pass
    return getattr(item, event)


async def seated(house: House, **options: str) -> tuple[Any, Any]:
    """A match of `highest`, its two seats taken; the streams of the bots, the seat that is asked first."""
    wires = [await house.bot() for _ in range(2)]
    attending = [await wire.attend() for wire in wires]
    match = await create(house, "highest", [wire.bot for wire in wires], **options)
    offers = [await each.offer(match) for each in attending]
    streams = [wire.play() for wire in wires]
    for stream, offer in zip(streams, offers, strict=True):
        await stream.send(PlayRequestItem(match=match, seat=offer.seat, sit=Sit()))
    return match, [
        stream
        for _, stream in sorted(
            zip([offer.seat for offer in offers], streams, strict=True), key=lambda each: each[0]
        )
    ]


async def test_a_move_is_refused_with_a_sentence(http_house: House) -> None:
    match, (first, _) = await seated(http_house)
    update = await received(first, match, "update")
    while not update.to_act:
        update = await received(first, match, "update")
    shown = update.json
    assert json.loads(shown.data.json).keys() == {"hand", "played"}
    assert len(shown.legal_moves) == 3
    for text, reason in (
        ('{"card":99}', "ILLEGAL"),
        ("{", "MALFORMED"),
        ("[" * 5000, "MALFORMED"),
        ("", "MALFORMED"),
        ("1.5", "MALFORMED"),
    ):
        move = SubmitMove(request_id=text[:20] or "none", prompt=update.prompt, json=JsonValue(json=text))
        await first.send(PlayRequestItem(match=match, seat=0, submit_move=move))
        rejected = await received(first, match, "move_rejected")
        assert rejected.Reason.Name(rejected.reason) == f"REASON_{reason}", text


async def test_json_doors_show_the_view_and_take_the_move_as_values() -> None:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory(prefix="sw-") as folder:
        async with house_in(Path(folder), ws_port=0, http=HttpSettings(port=0)) as house:
            wires = [await house.bot() for _ in range(2)]
            match = await create(house, "highest", [wire.bot for wire in wires], cards="1")
            async with asyncio.timeout(60):
                moves = await asyncio.gather(*[play_by_websocket(house, wire.token, match) for wire in wires])
            assert all(len(each) == 1 and each[0].keys() == {"card"} for each in moves)


async def play_by_websocket(house: House, token: str, match: str) -> list[Any]:
    """A bot of another language: JSON, and nothing of the SDK. The moves that it made."""
    headers = {"authorization": f"Bearer {token}"}
    protocol = ["seatwise.v1.json"]
    url, moves = house.ws_address, []
    async with connect(f"{url}/v1/attend", additional_headers=headers, subprotocols=protocol) as lobby:
        await lobby.send(json.dumps({"maxMatches": 1}))
        offer: dict[str, Any] = {}
        while not offer:
            offer = json.loads(await lobby.recv()).get("offer", {})
        assert offer["match"] == match
        async with connect(f"{url}/v1/play", additional_headers=headers, subprotocols=protocol) as play:
            where = {"match": match, "seat": offer["seat"]}
            await play.send(json.dumps({"items": [{**where, "sit": {}}]}))
            while True:
                for item in json.loads(await play.recv())["items"]:
                    if "matchEnded" in item:
                        return moves
                    if "ping" in item:
                        await play.send(json.dumps({"items": [{"pong": item["ping"]}]}))
                    update = item.get("update", {})
                    if update.get("toAct"):
                        view = update["json"]
                        assert isinstance(view["data"]["hand"], list)
                        moves.append(view["legalMoves"][0])
                        move = {"requestId": "1", "prompt": update["prompt"], "json": view["legalMoves"][0]}
                        await play.send(json.dumps({"items": [{**where, "submitMove": move}]}))


# Games that fail, beside honest matches


@pytest.mark.parametrize("wrong", [Failing, Leaking, Endless])
async def test_a_game_that_fails_voids_its_own_match_and_no_other(
    http_house: House, wrong: type[Highest]
) -> None:
    honest = asyncio.create_task(play_ugo(http_house))
    assert await void_reason(http_house, wrong.name) == "GAME_FAULT"
    [told] = http_house.logs.named("game_failed")
    assert told["game"] == wrong.name
    assert [result.is_void for result in await honest] == [False, False]


async def void_reason(house: House, game: str) -> str:
    """Why a match of two random bots was voided. Such a match counts for no bot, so the bots wait for another."""
    wires = [await house.bot() for _ in range(2)]
    match = await create(house, game, [wire.bot for wire in wires])
    playing = [
        asyncio.create_task(
            run_async("random", game=game, address=house.address, token=wire.token, queues=())
        )
        for wire in wires
    ]
    try:
        return str((await house.admin.over(match, within_s=30)).void_reason)
    finally:
        for each in playing:
            each.cancel()
        await asyncio.wait(playing)


async def play_ugo(house: House) -> list[Any]:
    wires, results = [await house.bot() for _ in range(2)], []
    await house.admin.create([wire.bot for wire in wires])
    async with asyncio.timeout(60):
        await asyncio.gather(*[
            run_async("random", address=house.address, token=wire.token, queues=(), matches=1, on_result=results.append)
            for wire in wires
        ])  # fmt: skip
    return results


async def test_a_bot_without_the_method_is_told_what_to_write() -> None:
    class Chooser(seatwise.Bot):
        def choose(self, view: Any) -> Any:
            return view.legal_cards[0]

    with pytest.raises(seatwise.errors.SeatwiseError, match=r"has no method decide\(self, view\)"):
        await run_async(Chooser, game="leduc", token="x")
