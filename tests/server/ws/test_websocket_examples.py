"""The page of the protocol is enough to play by WebSocket: its examples are right, and a bot made of them plays a match."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from harness import House
from websockets.asyncio.client import ClientConnection, connect

from seatwise.games.ubongo.v1 import ubongo_pb2
from seatwise.games.ugo.v1 import ugo_pb2
from seatwise.v1 import lobby_service_pb2, play_service_pb2
from seatwise_server.refusal import REASONS, Refusal
from seatwise_server.ws.bot_socket import close_code

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE = Path(__file__).parents[3] / "docs" / "protocol.md"
ATTENDING, PLAYING, OTHER_EVENTS, OTHER_ITEMS, RACE = (
    block
    for block in re.findall(r"```\n(.*?)```", PAGE.read_text(), re.DOTALL)
    if block.startswith(("> {", "< {"))
)
ATTEND_LINES, PLAY_LINES = (
    (ATTENDING + OTHER_EVENTS).splitlines(),
    (PLAYING + OTHER_ITEMS + RACE).splitlines(),
)
EXAMPLES = [
    *((line, lobby_service_pb2.AttendRequest, lobby_service_pb2.AttendResponse) for line in ATTEND_LINES),
    *((line, play_service_pb2.PlayRequest, play_service_pb2.PlayResponse) for line in PLAY_LINES),
]


@pytest.mark.parametrize(
    ("line", "request_type", "response_type"), EXAMPLES, ids=[line[:60] for line, *_ in EXAMPLES]
)
async def test_an_example_is_what_is_said(
    line: str, request_type: type[Message], response_type: type[Message]
):
    said = json.loads(line[2:])
    if said.keys() == {"token"}:
        return
    if said.keys() == {"error"}:
        assert said["error"]["details"][0].keys() == {"@type", "domain", "metadata", "reason"}
        return
    message = json_format.ParseDict(said, request_type() if line.startswith(">") else response_type())
    if line.startswith("<"):
        assert json_format.MessageToDict(message, always_print_fields_with_no_presence=True) == said


def kinds_of(message_type: type[Message], oneof: str) -> set[str]:
    """The fields of a choice, as JSON names them."""
    return {field.json_name for field in message_type.DESCRIPTOR.oneofs_by_name[oneof].fields}


async def test_every_event_and_item_has_an_example():
    said = [json.loads(line[2:]) for line in ATTEND_LINES if line.startswith("<")]
    assert {name for each in said for name in each} == kinds_of(lobby_service_pb2.AttendResponse, "event")
    heard = {name for line in PLAY_LINES for item in json.loads(line[2:]).get("items", []) for name in item}
    assert heard >= kinds_of(play_service_pb2.PlayResponseItem, "event")
    assert heard >= kinds_of(play_service_pb2.PlayRequestItem, "action")


async def test_every_move_of_each_game_has_an_example():
    moves = [
        item["submitMove"]
        for line in PLAY_LINES
        for item in json.loads(line[2:]).get("items", [])
        if "submitMove" in item
    ]
    for game, message_type in (("ugo", ugo_pb2.Move), ("ubongo", ubongo_pb2.Move)):
        assert {name for move in moves for name in move.get(game, {})} == kinds_of(message_type, "kind")
    [view] = re.findall(r'"hand":(\[[^]]+\])', RACE)
    assert set(example(RACE, "lay")["items"][0]["submitMove"]["ubongo"]["lay"]["cards"]) <= set(
        json.loads(view)
    )
    assert example(RACE, "offerEnd")["items"][0]["submitMove"]["ubongo"]["offerEnd"] == {"on": True}


async def test_the_page_names_each_close_code_of_a_stream():
    named = {int(code): name for code, name in re.findall(r"\| (40\d\d) \| ([A-Z_]+) ", PAGE.read_text())}
    end_no_stream = ("ALREADY_EXISTS", "FAILED_PRECONDITION")
    ending = [Refusal(reason, "") for reason, code in REASONS.items() if code not in end_no_stream]
    assert named == {close_code(refusal): refusal.code for refusal in ending}


async def test_the_seed_of_the_examples_is_that_of_their_commitment():
    [commitment] = re.findall(r'"commitment":"([^"]+)"', ATTENDING)
    for seed in re.findall(r'"seed":"([^"]+)"', OTHER_ITEMS):
        assert hashlib.sha256(base64.b64decode(seed)).digest() == base64.b64decode(commitment)


def example(block: str, field: str) -> dict[str, Any]:
    """The line that the bot sends with this field."""
    [found] = [
        json.loads(line[2:]) for line in block.splitlines() if line.startswith(">") and f'"{field}"' in line
    ][:1]
    return found


class PageBot:
    """A bot that says the lines of the page, with the names of its own match in them."""

    def __init__(self, address: str, token: str) -> None:
        self.address = address
        self.token = token
        self.moves = 0

    async def open(self, path: str) -> ClientConnection:
        socket = await connect(f"{self.address}{path}", subprotocols=["seatwise.v1.json"], proxy=None)  # type: ignore[list-item]
        await socket.send(json.dumps({"token": self.token}))
        return socket

    async def play(self) -> dict[str, Any]:
        """One match; how it ended."""
        lobby = await self.open("/v1/attend")
        await lobby.send(json.dumps(example(ATTENDING, "queues")))
        while "offer" not in (said := json.loads(await lobby.recv())):
            pass
        offer = said["offer"]
        address = offer["wsAddress"] or self.address
        assert address == self.address
        referee = await self.open("/v1/play")
        await self.say(referee, offer, example(PLAYING, "sit"))
        while True:
            for item in json.loads(await referee.recv())["items"]:
                if "matchEnded" in item:
                    await referee.close()
                    await lobby.close()
                    return dict(item["matchEnded"])
                await self.answer(referee, offer, item)

    async def answer(self, referee: ClientConnection, offer: dict[str, Any], item: dict[str, Any]) -> None:
        assert "moveRejected" not in item, item
        if "ping" in item:
            pong = example(PLAYING, "pong")
            pong["items"][0]["pong"]["number"] = item["ping"]["number"]
            await referee.send(json.dumps(pong))
        elif item.get("update", {}).get("toAct"):
            update, self.moves = item["update"], self.moves + 1
            said = example(PLAYING, "play" if update["pace"] == "card" else "arrange")
            move = said["items"][0]["submitMove"]
            move["prompt"], move["requestId"] = update["prompt"], f"move-{self.moves}"
            if update["pace"] == "card":
                move["ugo"] = {"play": update["ugo"]["legalCards"][0]}
            else:
                move["ugo"]["arrange"]["cards"] = update["ugo"]["wonCards"]
            await self.say(referee, offer, said)

    async def say(self, referee: ClientConnection, offer: dict[str, Any], said: dict[str, Any]) -> None:
        said["items"][0] |= {"match": offer["match"], "seat": offer["seat"]}
        await referee.send(json.dumps(said))


async def test_bots_made_of_the_examples_play_a_match_in_a_queue(house: House):
    assert house.server is not None
    bots = [PageBot(house.server.ws_address, (await house.bot()).token) for _ in range(2)]
    async with asyncio.timeout(30):
        ends = await asyncio.gather(*[bot.play() for bot in bots])
    assert ends[0] == ends[1]
    assert ends[0]["result"]["endings"] == ["ENDING_COMPLETED", "ENDING_COMPLETED"]
    assert min(bot.moves for bot in bots) > 10
