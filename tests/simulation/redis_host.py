"""The machine on which the model of Redis runs: connections, blocking reads, subscriptions, restarts."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hiredis

from simulation.chance import Chance
from simulation.clock import Loop
from simulation.network import End, Link, Network
from simulation.redis_model import OK, Redis, Refused, block_ms, reply, streams_of

HOST = "redis"
PORT = 6379
URL = f"redis://{HOST}:{PORT}"
READING_PATIENCE_S = 30.0

_NIL_LIST = b"*-1\r\n"


class Client:
    """One connection, as the server sees it."""

    def __init__(self, server: RedisHost, end: End) -> None:
        self.end = end
        self.link: Link
        self.channels: dict[bytes, None] = {}
        self._server = server
        self._reader = hiredis.Reader()
        self._waiting: deque[list[bytes]] = deque()
        self.host = ""
        """Who is at the other end."""
        self.sites: deque[Any] = deque()
        """For each command that is under way: see `RedisHost.site_of_sender`."""
        self._wanted: list[bytes] | None = None

    def take(self, data: bytes) -> None:
        """Bytes have come."""
        self._reader.feed(data)
        while (command := self._reader.gets()) is not False:
            self._waiting.append(command)
        self.work()

    def work(self) -> None:
        """Carries out what has come, one after the other; a read that blocks holds up what is behind it."""
        replies: list[bytes] = []
        while self._waiting and self._wanted is None and self.end.is_open:
            command = self._waiting.popleft()
            replies += self._server.carry_out(self, command)
        if replies:
            self.say(b"".join(replies))

    def say(self, data: bytes) -> None:
        """To the client, unless it has hung up."""
        self.link.send(self.end, data)

    def wait(self, command: list[bytes], ms: int) -> None:
        """The read found nothing: again when something is added, and no longer than asked for."""
        self._wanted = command
        self._server.blocked[self] = streams_of(command)
        if ms:
            self._server.net.clock.after(ms / 1000, lambda: self._give_up(command))

    def _give_up(self, command: list[bytes]) -> None:
        if self._wanted is command and self.end.is_open:
            self._stop_waiting()
            self.say(_NIL_LIST)
            self.work()

    def _stop_waiting(self) -> None:
        self._wanted = None
        self._server.blocked.pop(self, None)

    def look_again(self) -> None:
        """Something was added somewhere."""
        assert self._wanted is not None
        found = self._server.answer(self._wanted)
        if found is not None:
            self._stop_waiting()
            self.say(b"".join(reply(found)))
            self.work()


@dataclass
class Lapse:
    """The next message of a host loses its answer, after so many of its commands were carried out."""

    host: str
    commands: int


class RedisHost:
    """One server."""

    def __init__(self, net: Network, chance: Chance) -> None:
        self.net = net
        self.model = Redis(lambda: 1_700_000_000_000_000 + int(net.clock.now * 1_000_000))
        self.model.publish = self._publish
        self.clients: dict[Client, None] = {}
        self.blocked: dict[Client, frozenset[bytes]] = {}
        """Connections that wait for something to be added to a stream."""
        self.is_down = False
        self.lapse: Lapse | None = None
        self.lapses = 0
        self.on_command: Callable[[str, list[bytes], Any], None] = lambda _host, _command, _answer: None
        """Host, command, and its answer: for whoever watches."""
        self.site_of_sender: Callable[[str, list[bytes]], Any] | None = None
        """Called for each command that a process sends, with its host; what it returns is told to `strike`."""
        self.strike: Callable[[str, Any, list[bytes], bool], bool] | None = None
        """Host, site, command, and whether it is carried out: harms somebody there, if it likes, and says if it has."""
        self._chance = chance

    # Connections

    def way_from(self, loop: Loop) -> Callable[..., Any]:
        """How the processes of a host connect; see `Loop.create_connection`."""

        async def connect(new_protocol: Callable[[], Any], host: str = "", port: int = 0, **_: Any) -> Any:
            assert (host, port) == (HOST, PORT), (host, port)
            await self._round_trip(loop.name)
            protocol = new_protocol()
            transport = self._accept(loop, protocol)
            protocol.connection_made(transport)
            return transport, protocol

        return connect

    async def _round_trip(self, host: str) -> None:
        while freed := self.net.blocked_until(host, HOST):  # noqa: ASYNC110 - the end of it is known
            await asyncio.sleep(freed - self.net.clock.now)
        await asyncio.sleep(2 * self.net.delay_s(host, HOST, self._chance))
        if self.is_down:
            raise ConnectionRefusedError(f"{HOST} is down")

    def _accept(self, loop: Loop, protocol: Any) -> Transport:
        near, far = End(loop.name, loop, READING_PATIENCE_S), End(HOST, None, READING_PATIENCE_S)
        client = Client(self, far)
        client.link, client.host = self.net.link(near, far), loop.name
        far.on_message, far.on_lost = client.take, lambda: self._forget(client)
        self.clients[client] = None
        transport = Transport(client.link, near)
        transport.set_protocol(protocol)
        if self.site_of_sender:
            transport.on_write = lambda data: self._note_sites(client, data)
        return transport

    def _note_sites(self, client: Client, data: bytes) -> None:
        reader = hiredis.Reader()
        reader.feed(data)
        while (command := reader.gets()) is not False:
            client.sites.append(self.site_of_sender(client.host, command) if self.site_of_sender else None)

    def _forget(self, client: Client) -> None:
        self.clients.pop(client, None)
        self.blocked.pop(client, None)

    # Commands

    def carry_out(self, client: Client, command: list[bytes]) -> list[bytes]:
        """The reply, as bytes; none if it has to wait, or is lost."""
        site = client.sites.popleft() if client.sites else None
        lapse = self.lapse
        if lapse and lapse.host == client.host and lapse.commands <= 0:
            self.lapse, self.lapses = None, self.lapses + 1
            client.link.cut()
            client.end.is_open = False
            self._forget(client)
            return []
        if lapse and lapse.host == client.host:
            lapse.commands -= 1
        if command[0] == b"SUBSCRIBE":
            return list(self._subscribe(client, command[1:]))
        if client.channels and command[0] == b"PING":
            return list(reply([b"pong", b""]))
        if self.strike and self.strike(client.host, site, command, False):
            return []
        answer = self.answer(command)
        self.on_command(client.host, command, answer)
        if self.strike and self.strike(client.host, site, command, True) and self.is_down:
            return []
        if answer is None and (ms := block_ms(command)) is not None:
            client.wait(command, ms)
            return []
        if self.model.added:
            self._wake_readers()
        return list(reply(answer))

    def answer(self, command: list[bytes]) -> Any:
        """What the model says, errors too."""
        try:
            return OK if command[0] == b"HELLO" else self.model.call(*command)
        except Refused as refused:
            return refused

    def _wake_readers(self) -> None:
        added, self.model.added = self.model.added, set()
        for client in [client for client, streams in self.blocked.items() if streams & added]:
            client.look_again()

    def _subscribe(self, client: Client, channels: list[bytes]) -> Any:
        for channel in channels:
            client.channels[channel] = None
            yield from reply([b"subscribe", channel, len(client.channels)])

    def _publish(self, channel: bytes, text: bytes) -> int:
        heard = [client for client in self.clients if channel in client.channels]
        for client in heard:
            client.say(b"".join(reply([b"message", channel, text])))
        return len(heard)

    # Faults

    def restart(self, seconds: float) -> None:
        """It goes down and comes back with all it had written, which is all that it has answered."""
        if self.is_down:
            return
        self.is_down = True
        for client in list(self.clients):
            client.link.cut()
            client.end.is_open = False
        self.clients.clear()
        self.blocked.clear()
        self.model.scripts.forget()
        self.net.clock.after(seconds, self._come_back)

    def _come_back(self) -> None:
        self.is_down = False


class Transport(asyncio.Transport):
    """The client's end, as asyncio wants it."""

    def __init__(self, link: Link, end: End) -> None:
        super().__init__()
        self._link = link
        self._end = end
        self._protocol: Any = None
        self._is_closing = False
        self.on_write: Callable[[bytes], None] = lambda _: None

    def set_protocol(self, protocol: Any) -> None:
        """As asyncio's."""
        self._protocol = protocol
        self._end.on_message = protocol.data_received
        self._end.on_lost = lambda: protocol.connection_lost(ConnectionResetError("the link is cut"))

    def write(self, data: Any) -> None:
        """As asyncio's."""
        self.on_write(bytes(data))
        self._link.send(self._end, bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        """As asyncio's."""
        self.write(b"".join(list_of_data))

    def is_closing(self) -> bool:
        """As asyncio's."""
        return self._is_closing

    def close(self) -> None:
        """As asyncio's."""
        if not self._is_closing:
            self._is_closing = True
            if self._end.is_open:
                self._link.close(self._end)
                assert self._end.loop is not None
                self._end.loop.call_soon(self._protocol.connection_lost, None)

    abort = close

    def pause_reading(self) -> None:
        """What comes is little: nothing is held back."""

    def resume_reading(self) -> None:
        """See `pause_reading`."""
