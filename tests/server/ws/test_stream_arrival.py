"""A WebSocket comes when its connection is accepted: what is read or looked up for it later does not change the order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from harness import until

from seatwise_server.background_tasks import cancel_until_ended
from seatwise_server.streams import StreamArrival
from seatwise_server.ws.bot_socket import BotSocket
from seatwise_server.ws.websocket_server import PLAY_PATH, Upgrade, WebSocketServer

pytestmark = pytest.mark.asyncio(loop_scope="function")

UPGRADE = "\r\n".join([
    f"GET {PLAY_PATH} HTTP/1.1", "Host: here", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: seatwise.v1.json", "Authorization: {}", "", "",
])  # fmt: skip


class Arrivals(dict[str, StreamArrival]):
    """Notes when each socket came, by its authorization, and closes it."""

    async def serve_socket(self, socket: BotSocket, upgrade: Upgrade, _: str) -> None:
        self[upgrade.authorization or ""] = socket.arrival
        socket.close()


@pytest.fixture
async def port() -> AsyncIterator[tuple[int, Arrivals]]:
    """A WebSocket port, and what came there."""
    server, arrivals = WebSocketServer(most_connections=10), Arrivals()
    server.add_handler(PLAY_PATH, arrivals)
    number = server.bind("127.0.0.1", 0)
    accepting = asyncio.create_task(server.accept_connections())
    yield number, arrivals
    await cancel_until_ended([accepting])
    await server.stop(0)


@pytest.mark.slow
async def test_a_socket_comes_when_it_is_accepted_however_late_its_upgrade(
    port: tuple[int, Arrivals],
) -> None:
    number, arrivals = port
    (_, older), (_, newer) = [await asyncio.open_connection("127.0.0.1", number) for _ in range(2)]
    for name, writer in (("newer", newer), ("older", older)):
        writer.write(UPGRADE.format(name).encode())
        await until(lambda name=name: name in arrivals)  # type: ignore[misc]
    assert arrivals["older"] < arrivals["newer"]
    for writer in (older, newer):
        writer.close()
