"""Bots that come over HTTP: whole matches, lost streams, takeovers, and how each end is told."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf import json_format
from harness import Chair, House, HttpConnection, Wire, endings, http_connection, legal_move, until
from harness.wire import SOON_S

from seatwise.v1 import play_service_pb2
from seatwise_server.rest.bot_relay import RelayedPlay

pytestmark = pytest.mark.asyncio(loop_scope="session")

LINES = {"accept": "application/x-ndjson"}


class HttpBot:
    """A bot with three connections: one for each stream, and one to post."""

    def __init__(self, attending: HttpConnection, playing: HttpConnection, posting: HttpConnection) -> None:
        self.attending, self.playing, self.posting = attending, playing, posting
        self.offers: list[dict[str, Any]] = []
        self.ended: list[dict[str, Any]] = []
        self.accepted = 0
        self.rejections: list[dict[str, Any]] = []
        self.pings = 0
        self._chance = random.Random(1)
        self._requests = 0

    async def attend(self, query: str = "maxMatches=4") -> dict[str, Any]:
        """Attends from now on; the welcome."""
        await self.attending.send("GET", f"/v1/attendance?{query}")
        status, headers, _ = await self.attending.answer_head()
        assert (status, headers["content-type"]) == (200, "application/x-ndjson")
        return await self._next_of_attendance("welcome")

    async def _next_of_attendance(self, kind: str) -> dict[str, Any]:
        async for line in lines(self.attending):
            if kind in line:
                return dict(line[kind])
        raise AssertionError(f"the stream ended without {kind}")

    async def open_play(self) -> None:
        """Opens the play stream."""
        await self.playing.send("GET", "/v1/play", headers=LINES)
        status, _, _ = await self.playing.answer_head()
        assert status == 200

    async def post(self, *items: dict[str, Any]) -> None:
        """Posts items, in order."""
        answer = await self.posting.call("POST", "/v1/play", {"items": items})
        assert answer.status == 204, answer.body

    async def sit(self) -> dict[str, Any]:
        """Waits for an offer and sits down."""
        offer = await self._next_of_attendance("offer")
        self.offers.append(offer)
        nonce = base64.b64encode(bytes(32)).decode()
        await self.post({"match": offer["match"], "seat": offer["seat"], "sit": {"nonce": nonce}})
        return offer

    async def play(self) -> None:
        """Answers prompts and pings until a match is over."""
        async for message in lines(self.playing):
            replies = [reply for item in message["items"] if (reply := self._reply_to(item))]
            if replies:
                await self.post(*replies)
            if self.ended:
                return

    def _reply_to(self, item: dict[str, Any]) -> dict[str, Any] | None:
        if "ping" in item:
            self.pings += 1
            return {"pong": {"number": item["ping"]["number"]}}
        self.accepted += "moveAccepted" in item
        self.rejections += [item] if "moveRejected" in item else []
        self.ended += [item["matchEnded"]] if "matchEnded" in item else []
        if not item.get("update", {}).get("toAct"):
            return None
        update = json_format.ParseDict(item["update"], play_service_pb2.Update())
        move = json_format.MessageToDict(legal_move(update, self._chance))
        self._requests += 1
        submit = {"requestId": f"r{self._requests}", "prompt": update.prompt, "ugo": move}
        return {"match": item["match"], "seat": item["seat"], "submitMove": submit}


async def lines(http: HttpConnection) -> AsyncIterator[dict[str, Any]]:
    """The lines of a stream, without signs of life."""
    async for chunk in http.chunks():
        for line in chunk.splitlines():
            if line:
                yield json.loads(line)


@asynccontextmanager
async def http_bot(house: House, wire: Wire) -> AsyncIterator[HttpBot]:
    """A bot over HTTP, with the token of a bot that was registered."""
    async with house.http(wire.token) as one, house.http(wire.token) as two, house.http(wire.token) as three:
        yield HttpBot(one, two, three)


async def test_bots_over_http_play_a_whole_match(http_house: House) -> None:
    wires = [await http_house.bot() for _ in range(2)]
    async with http_bot(http_house, wires[0]) as one, http_bot(http_house, wires[1]) as two:
        for bot, wire in zip((one, two), wires, strict=True):
            assert (await bot.attend())["bot"] == wire.bot
            await bot.open_play()
        match = await http_house.admin.create([wire.bot for wire in wires], rounds=2)
        async with asyncio.timeout(30):
            await asyncio.gather(one.sit(), two.sit())
            await asyncio.gather(one.play(), two.play())
        found = await http_house.admin.over(match.name)
        assert endings(found) == ["COMPLETED"] * 2
        await http_house.admin.record(match.name)
        for bot in (one, two):
            assert bot.rejections == []
            assert bot.accepted > 5
            assert bot.ended[0]["result"]["endings"] == ["ENDING_COMPLETED"] * 2


async def test_bots_that_offer_http2_with_every_request_play_a_whole_match(
    http_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_raw = HttpConnection.send_raw

    async def send_offer(http: HttpConnection, raw: bytes) -> None:
        await send_raw(http, raw.replace(b"\r\n", b"\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n", 1))

    monkeypatch.setattr(HttpConnection, "send_raw", send_offer)
    await test_bots_over_http_play_a_whole_match(http_house)


async def test_a_bot_over_http_plays_with_bots_over_grpc(http_house: House) -> None:
    wire = await http_house.bot()
    other = await http_house.bot()
    async with http_bot(http_house, wire) as bot:
        await bot.attend()
        await bot.open_play()
        attending = await other.attend()
        match = await http_house.admin.create([wire.bot, other.bot])
        await bot.sit()
        chair = Chair(other, match.name, (await attending.offer(match.name)).seat)
        await chair.sit()
        async with asyncio.timeout(30):
            await asyncio.gather(bot.play(), chair.play_out())
        assert endings(await http_house.admin.over(match.name)) == ["COMPLETED"] * 2


async def test_pings_of_all_referees_have_numbers_of_their_own() -> None:
    """Two referees may use the same number, so the relay counts by itself, and gives each its own number back."""
    sent: list[tuple[str, int]] = []

    class Referee:
        def __init__(self, address: str) -> None:
            self.address = address

        def send(self, request: play_service_pb2.PlayRequest) -> None:
            sent.extend((self.address, item.pong.number) for item in request.items)

    play = RelayedPlay(SimpleNamespace(), {}.get)  # type: ignore[arg-type]
    for address in ("one", "two"):
        play._streams[address] = Referee(address)  # type: ignore[assignment]
        ping = play_service_pb2.Ping(number=7)
        await play.receive(address, play_service_pb2.PlayResponse(items=[{"ping": ping}]))
    numbers = [(await play.next_message()).items[0].ping.number for _ in range(2)]
    assert len(set(numbers)) == 2
    pongs = [
        play_service_pb2.PlayRequestItem(pong=play_service_pb2.Pong(number=number))
        for number in (*numbers, 99)
    ]
    await play.send_items(pongs)
    assert sent == [("one", 7), ("two", 7)]


async def test_items_without_a_stream_are_refused_with_a_reason_of_their_own(http_house: House) -> None:
    wire = await http_house.bot()
    async with http_house.http(wire.token) as http:
        answer = await http.call("POST", "/v1/play", {"items": []})
        assert (answer.status, answer.reason) == (400, "NO_STREAM")


@pytest.mark.parametrize(
    ("verb", "path"), [("GET", "/v1/attendance"), ("GET", "/v1/play"), ("POST", "/v1/play")]
)
async def test_seats_are_for_bots_with_a_token(http_house: House, verb: str, path: str) -> None:
    for token, status, reason in (
        ("", 401, "TOKEN_MISSING"), ("none", 401, "TOKEN_UNKNOWN"), (http_house.admin.token, 403, "NOT_ALLOWED"),
    ):  # fmt: skip
        async with http_house.http(token) as http:
            answer = await http.call(verb, path, {"items": []} if verb == "POST" else None)
            assert (answer.status, answer.reason) == (status, reason)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("queues=nowhere&maxMatches=1", "NOT_FOUND"),
        ("maxMatches=-1", "INVALID_ARGUMENT"),
        ("maxMatches=x", "INVALID_ARGUMENT"),
        ("colour=red", "INVALID_ARGUMENT"),
    ],
)
async def test_an_attendance_that_cannot_be_is_refused_with_a_status(
    http_house: House, query: str, reason: str
) -> None:
    wire = await http_house.bot()
    async with http_house.http(wire.token) as http:
        answer = await http.get(f"/v1/attendance?{query}")
        assert answer.reason == reason


@pytest.mark.parametrize("path", ["/v1/attendance", "/v1/play"])
async def test_a_look_at_the_head_of_a_stream_does_not_replace_it(http_house: House, path: str) -> None:
    wire = await http_house.bot()
    async with http_house.http(wire.token) as http:
        answer = await http.call("HEAD", path)
        assert (answer.status, answer.headers["allow"]) == (405, "GET, POST")


async def test_the_stream_of_referees_takes_no_query(http_house: House) -> None:
    wire = await http_house.bot()
    async with http_house.http(wire.token) as http:
        answer = await http.get("/v1/play?items=1")
        assert (answer.status, answer.reason, answer.message) == (
            400,
            "INVALID_ARGUMENT",
            "this URL takes no query",
        )


@pytest.mark.parametrize(
    "items",
    [
        [1],
        ["x"],
        [{"colour": 1}],
        [{"match": "matches/none", "seat": 3, "sit": {}}, {"sit": 1}],
        {"match": "x"},
        [{"submitMove": {"prompt": "x"}}],
    ],
)
async def test_items_that_cannot_be_read_are_refused_and_the_stream_goes_on(
    http_house: House, items: Any
) -> None:
    wire = await http_house.bot()
    async with http_bot(http_house, wire) as bot:
        await bot.open_play()
        answer = await bot.posting.call("POST", "/v1/play", {"items": items})
        assert (answer.status, answer.reason) == (400, "INVALID_ARGUMENT")
        await bot.post({"match": "matches/none", "seat": 0, "sit": {}})
        async for message in lines(bot.playing):
            if message["items"]:
                [rejected] = message["items"]  # nothing of the post that was refused
                assert rejected["seat"] == 0
                assert rejected["moveRejected"]["reason"] == "REASON_NOT_YOUR_SEAT"
                break


async def test_a_newer_stream_replaces_the_older_one(http_house: House) -> None:
    wire = await http_house.bot()
    async with http_bot(http_house, wire) as old, http_bot(http_house, wire) as new:
        await old.open_play()
        await new.open_play()
        *_, last = [line async for line in lines(old.playing)]
        assert last["error"]["details"][0]["reason"] == "REPLACED"
        await new.post()


async def test_a_revoked_token_ends_the_streams(http_house: House) -> None:
    wire = await http_house.bot()
    async with http_bot(http_house, wire) as bot:
        await bot.attend()
        await bot.open_play()
        await bot.post({"match": "matches/none", "seat": 0, "sit": {}})
        await http_house.admin.revoke(wire.bot)
        for http in (bot.attending, bot.playing):
            *_, last = [line async for line in lines(http)]
            assert last["error"]["details"][0]["reason"] == "TOKEN_REVOKED"
        answer = await bot.posting.call("POST", "/v1/play", {"items": []})
        assert answer.reason == "TOKEN_REVOKED"


async def test_a_revoked_token_ends_a_stream_that_never_had_a_seat(http_house: House) -> None:
    """It has no link to a referee, which would end it."""
    wire = await http_house.bot()
    async with http_bot(http_house, wire) as bot:
        await bot.open_play()
        await http_house.admin.revoke(wire.bot)
        async with asyncio.timeout(SOON_S):
            *_, last = [line async for line in lines(bot.playing)]
        assert last["error"]["details"][0]["reason"] == "TOKEN_REVOKED"


async def test_a_bot_that_lost_its_stream_comes_back_and_plays_on(http_house: House) -> None:
    wires = [await http_house.bot() for _ in range(2)]
    async with http_bot(http_house, wires[0]) as one, http_bot(http_house, wires[1]) as two:
        for bot in (one, two):
            await bot.attend()
            await bot.open_play()
        match = await http_house.admin.create([wire.bot for wire in wires])
        async with asyncio.timeout(30):
            offer, _ = await asyncio.gather(one.sit(), two.sit())
            one.playing.writer.close()
            async with http_connection(http_house.server.http_address, wires[0].token) as again:  # type: ignore[union-attr]
                one.playing = again
                await one.open_play()
                await one.post({"match": offer["match"], "seat": offer["seat"], "sit": {}})
                await asyncio.gather(one.play(), two.play())
        assert endings(await http_house.admin.over(match.name)) == ["COMPLETED"] * 2


async def test_a_bot_that_hangs_up_attends_no_longer(http_house: House) -> None:
    wire = await http_house.bot()
    assert http_house.server is not None
    lobby = http_house.server.lobby
    async with http_bot(http_house, wire) as bot:
        await bot.attend()
        assert len(lobby) == 1  # type: ignore[arg-type]
    await until(lambda: len(lobby) == 0)  # type: ignore[arg-type]
