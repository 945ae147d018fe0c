"""The kernel's round trips are read from sockets of our own, and from those of a library that hides them."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from seatwise_server.kernel_round_trips import (
    IS_MEASURED_HERE,
    NOT_MEASURED,
    PAUSE_PER_SEARCH,
    PeerConnections,
    read_round_trip_ms,
)

pytestmark = pytest.mark.skipif(not IS_MEASURED_HERE, reason="only Linux tells the least round trip")


@pytest.fixture(params=["127.0.0.1", "::1"])
def both_ends(request: pytest.FixtureRequest) -> Iterator[tuple[socket.socket, socket.socket]]:
    """The server's end of a connection, and the other one."""
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    try:
        listener = socket.create_server((request.param, 0), family=family)
    except OSError:
        pytest.skip(f"this machine has no {request.param}")
    with listener, socket.create_connection(listener.getsockname()[:2]) as far, listener.accept()[0] as near:
        yield near, far


def test_the_handshake_is_measured_already(both_ends: tuple[socket.socket, socket.socket]) -> None:
    near, _ = both_ends
    round_trip_ms = read_round_trip_ms(near)
    assert round_trip_ms is not None
    assert 0 <= round_trip_ms < 30_000


def test_a_connection_is_found_by_its_peer_and_left_open(
    both_ends: tuple[socket.socket, socket.socket],
) -> None:
    near, far = both_ends
    address, port = far.getsockname()[:2]
    connections = PeerConnections()
    for _ in range(3):
        assert connections.round_trip_ms(address, port) is not None
    far.sendall(b"still open")
    assert near.recv(100) == b"still open"


def test_a_descriptor_that_was_used_again_is_not_taken_for_the_old_connection(
    both_ends: tuple[socket.socket, socket.socket],
) -> None:
    near, far = both_ends
    address, port = far.getsockname()[:2]
    connections = PeerConnections(now=lambda: 0.0)
    assert connections.round_trip_ms(address, port) is not None
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as other,
    ):
        os.dup2(other.fileno(), near.fileno())
        assert connections.round_trip_ms(address, port) is None


def test_a_search_is_followed_by_a_pause_because_it_looks_at_all_descriptors() -> None:
    times = iter([100.0, 101.0, 101.0, 101.0 + PAUSE_PER_SEARCH - 1, 101.0 + PAUSE_PER_SEARCH])
    asked: list[float] = []

    def now() -> float:
        asked.append(next(times, 1e9))
        return asked[-1]

    connections = PeerConnections(now)
    connections.round_trip_ms("192.0.2.1", 1)
    assert len(asked) == 3
    connections.round_trip_ms("192.0.2.1", 1)
    assert len(asked) == 4  # too early: it has only asked for the time
    connections.round_trip_ms("192.0.2.1", 1)
    assert len(asked) > 5


def test_a_socket_without_tcp_has_no_round_trip() -> None:
    near, far = socket.socketpair()
    with near, far:
        assert read_round_trip_ms(near) is None


@pytest.mark.parametrize("info", [b"", bytes(104), bytes(148) + NOT_MEASURED.to_bytes(4, "little")])
def test_a_kernel_that_does_not_know_is_not_believed(info: bytes) -> None:
    class OldKernel:
        def getsockopt(self, *_: int) -> bytes:
            return info

    assert read_round_trip_ms(OldKernel()) is None
