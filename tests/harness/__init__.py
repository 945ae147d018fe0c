"""A real server and raw clients for tests at the wire: bytes and messages, nothing of the SDK.

A test module that uses it says `pytestmark = pytest.mark.asyncio(loop_scope="session")` and takes the
fixture `house`: one server for the module, on an embedded Redis. After each test the house must not
have logged a fault of its own, nor lost a task.

    async def test_two_bots_play_to_the_end(house):
        async with house.table(seats=2) as table:
            await table.sit()
            ends = await table.play_out()
"""

from harness.fleet import FRONT, REFEREE, Fleet, Seats, fleet
from harness.house import (
    House,
    both_doors,
    house,
    house_in,
    http_house,
    in_memory,
    module_house,
    module_http_house,
)
from harness.http import HttpAnswer, HttpConnection, http_connection
from harness.items import field_of, item, legal_move, message, reason_name, submission
from harness.process import ServerProcess, processes_with, server_process, until
from harness.scenes import IMPATIENT, bystanders, dealt, endings, plays_on
from harness.survivor import Survivor, check_nothing_lost
from harness.table import QUICK, Admin, Chair, Table
from harness.wire import PLAY, SOON_S, Attending, Refused, Stream, StreamEnded, Wire, refusal_of

__all__ = [
    "FRONT",
    "IMPATIENT",
    "PLAY",
    "QUICK",
    "REFEREE",
    "SOON_S",
    "Admin",
    "Attending",
    "Chair",
    "Fleet",
    "House",
    "HttpAnswer",
    "HttpConnection",
    "Refused",
    "Seats",
    "ServerProcess",
    "Stream",
    "StreamEnded",
    "Survivor",
    "Table",
    "Wire",
    "both_doors",
    "bystanders",
    "check_nothing_lost",
    "dealt",
    "endings",
    "field_of",
    "fleet",
    "house",
    "house_in",
    "http_connection",
    "http_house",
    "in_memory",
    "item",
    "legal_move",
    "message",
    "module_house",
    "module_http_house",
    "plays_on",
    "processes_with",
    "reason_name",
    "refusal_of",
    "server_process",
    "submission",
    "until",
]
