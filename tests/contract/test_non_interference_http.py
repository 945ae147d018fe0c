"""Nobody learns over HTTP what the watcher of a match may not know: not by a byte of a response, a header, or the log."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import islice
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from doubles.operations import operations_on
from google.protobuf.timestamp_pb2 import Timestamp
from harness.http import http_connection
from leaks.two_worlds import Course, Moment, twin_of
from matches.random_matches import TABLES
from structlog.testing import capture_logs

from seatwise.v1 import play_service_pb2
from seatwise_referee.journal import canonical_json
from seatwise_referee.position import Position
from seatwise_server.config import HttpSettings
from seatwise_server.pages.page_routes import add_pages
from seatwise_server.play import spectating
from seatwise_server.rest import rest_app
from seatwise_server.rest.event_streams import EventStreams
from seatwise_server.rest.http_server import HttpServer, bind_port
from seatwise_server.rest.rest_app import new_rest_app, new_url_tree
from seatwise_server.services.authentication import Authenticator
from seatwise_server.services.guest_seats import GuestTicket
from seatwise_server.store import Credential, MatchMeta, Store
from seatwise_server.store.matches import MatchFilter, StoredMatchPage
from seatwise_server.store.results import CompetitionMeta

PATHS = (
    ("GET", "/v1/matches/test", ""),
    ("GET", "/v1/matches/test", "accept-encoding: gzip"),
    ("GET", "/v1/matches/test", 'if-none-match: "x"'),
    ("HEAD", "/v1/matches/test", ""),
    ("GET", "/v1/matches/test:watch", "accept: text/event-stream"),
    ("GET", "/v1/matches/test:watch", "accept: application/x-ndjson"),
    ("HEAD", "/v1/matches/test:watch", ""),
    ("GET", "/v1/matches/test/record", ""),
    ("GET", "/v1/matches/test/record", 'if-none-match: "x"'),
    ("GET", "/v1/matches/test/hand", ""),
    ("POST", "/v1/matches/test:abort", ""),
    ("GET", "/matches/test", ""),
    ("GET", "/matches/test", "accept-encoding: gzip"),
    ("GET", "/seats/test", ""),
    ("GET", "/seats/test", "cookie: seatwise_seat=guest"),
    ("GET", "/matches/test/live", "accept: text/event-stream"),
    ("GET", "/matches/test/frames", ""),
    ("GET", "/matches/test/live/steps", ""),
    ("GET", "/v1/matches/test:watch?all_positions=true", "accept: application/x-ndjson"),
    ("GET", "/", ""),
    ("GET", "/show?ladder=test", ""),
    ("GET", "/embed/ladders/test", ""),
    ("GET", "/matches/test/pictures/decisive.svg", ""),
    ("GET", "/embed/matches/test", ""),
    ("GET", "/embed/matches/test", "cookie: seatwise_seat=guest"),
)
LOOKS_BEFORE_THE_END = 3

moments_of = pytest.mark.parametrize(("game", "seats"), TABLES, ids=lambda it: str(getattr(it, "name", it)))


class Matches:
    """One match, which is over when it has been looked at some times."""

    def __init__(self, moment: Moment) -> None:
        self._fields: dict[str, Any] = {"setup": canonical_json(moment.setup.to_json())}
        self.bots = moment.setup.bots
        self.looks = 0

    async def get_meta(self, name: str) -> MatchMeta | None:
        self.looks += 1
        if self.looks <= LOOKS_BEFORE_THE_END:
            return MatchMeta(name, 1, {**self._fields, "state": b"RUNNING"})
        end = play_service_pb2.MatchEnded(void_reason="ABORTED").SerializeToString()
        return MatchMeta(name, 1, {**self._fields, "state": b"VOIDED", "result": end})

    async def get_record(self, _name: str) -> bytes | None:
        return None

    async def list_page(self, _size: int, _token: str, wanted: MatchFilter) -> StoredMatchPage:
        """The match, in lists of those that are played."""
        meta = await self.get_meta("matches/test") if wanted.state == "RUNNING" else None
        return StoredMatchPage([meta] if meta else [], "")


async def some_entries(*_: Any) -> list[bytes]:
    return [b"one", b"another"]


async def nothing(*_: Any, **__: Any) -> Any:
    return ()


async def find_ladder(name: str) -> CompetitionMeta:
    return CompetitionMeta(name, b"", 1)


async def open_ticket(text: str) -> str:
    """The ticket of a guest, for its text."""
    return json.dumps(["0" * 32, "ugo", "192.0.2.1", 4e9]) if text == "guest" else ""


def store_of(matches: Matches) -> Store:
    store = Store(SimpleNamespace())  # type: ignore[arg-type]  # nothing is asked of it
    object.__setattr__(store, "matches", matches)
    object.__setattr__(store, "journal", SimpleNamespace(wait_for_entries=some_entries))
    object.__setattr__(store, "access_tokens", SimpleNamespace(open_ticket=open_ticket))
    ladders = SimpleNamespace(find=find_ladder, list_names=nothing, read_table=nothing)
    for name in ("leagues", "bots", "results"):
        object.__setattr__(store, name, SimpleNamespace(list_names=nothing, kinds_of=nothing))
    object.__setattr__(store, "ladders", ladders)
    return store


def guests_of(matches: Matches) -> Any:
    """Credentials in which every token belongs to the guest in seat 0."""

    async def authenticate(token: str) -> Credential:
        return Credential(matches.bots[0], frozenset({"attend", "play", "guest"}), token)

    return SimpleNamespace(authenticate=authenticate)


@asynccontextmanager
async def http_port(matches: Matches) -> AsyncIterator[str]:
    """The HTTP port of a gateway on a store that has this match."""
    store, streams = store_of(matches), EventStreams()
    operations = list(operations_on(store).values())
    authenticator = Authenticator(guests_of(matches), lambda: "admin")
    urls = new_url_tree(operations, authenticator, streams, lambda: True)
    settings = HttpSettings(guests=2, guest_sockets="ws://:7481", embed_origins=("https://host.example",))
    add_pages(urls, operations, authenticator, streams, lambda: True, settings=settings, store=store)
    server, port = HttpServer(new_rest_app(urls), 100), bind_port("127.0.0.1", 0)
    await server.start(port, None)
    try:
        yield f"http://127.0.0.1:{port.getsockname()[1]}"
    finally:
        await server.stop(1.0)


async def seen_in(moment: Moment, position: Position) -> tuple[list[bytes], list[Any]]:
    """Every byte of every response but the date, and the log."""
    matches, seen = Matches(moment), []
    with pytest.MonkeyPatch.context() as patch, capture_logs() as log:
        patch.setattr(spectating, "position_after", lambda *_: position)
        patch.setattr(spectating, "decode_entry", lambda _: SimpleNamespace(at_ms=7))
        patch.setattr(spectating, "SHORTEST_UPDATE_S", 0.001)
        patch.setattr(spectating, "TAIL_BLOCK_MS", 4)
        patch.setattr(GuestTicket, "match", "matches/test")
        patch.setattr(spectating, "_now", lambda: Timestamp(seconds=1))
        async with http_port(matches) as address:
            for verb, path, header in PATHS:
                matches.looks = 0
                head = f"{verb} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-request-id: same\r\n{header}"
                async with http_connection(address) as http:
                    await http.send_raw(head.encode().rstrip() + b"\r\n\r\n")
                    seen.append(re.sub(rb"\r\ndate: [^\r]*", b"", await http.ends()))
    return seen, [{**line, "took_ms": 0} for line in log]


def some_moments(game: Any, seats: int) -> list[Moment]:
    moments = list(Course(game, seats, Random(seats)).moments())
    return moments[1 :: max(1, len(moments) // 3)][:3]


@moments_of
async def test_a_spectator_over_http_is_sent_the_same_bytes_whatever_is_hidden(game: Any, seats: int) -> None:
    for moment in some_moments(game, seats):
        one = await seen_in(moment, moment.position)
        other = await seen_in(moment, twin_of(moment, None, Random(1)))
        assert one == other
        statuses = [raw.split()[1] for raw in one[0]]
        assert statuses == [b"200"] * 7 + [
            b"400", b"400", b"404", b"401", b"200", b"200", b"403", b"200", b"200", b"400", *[b"200"] * 5, b"400", b"200", b"200"
        ]  # fmt: skip
        views = [raw for raw in one[0] if b'"ugo":' in raw or b'"ubongo":' in raw]
        assert len(views) == 3
        assert all(b'"frames":[{' in raw for raw in (one[0][-10], one[0][-8]))
        assert b'class="meter"' in one[0][-6]
        assert all(b'data-live="/matches/test/live"' in raw for raw in (*one[0][-6:-4], *one[0][-2:]))
        framed = [
            number for number, raw in enumerate(one[0]) if b"frame-ancestors https://host.example" in raw
        ]
        assert framed == [number for number, (_, path, _) in enumerate(PATHS) if path.startswith("/embed/")]
        assert one[0][-2] == one[0][-1]  # no cookie is read, and there is no form
        assert not any(b"<form" in one[0][number] for number in framed)


def leak_by_a_header(patch: pytest.MonkeyPatch, secret: list[int]) -> None:
    clean = rest_app._with_strict_headers
    patch.setattr(
        rest_app, "_with_strict_headers", lambda *them: [*clean(*them), (b"x-leak", b"%d" % secret[0])]
    )


def leak_by_a_view(patch: pytest.MonkeyPatch, _secret: list[int]) -> None:
    clean = spectating.spectator_view
    patch.setattr(
        spectating,
        "spectator_view",
        lambda position, setup, _: clean(position, setup, hash(position.state) % 997),
    )


@pytest.mark.parametrize("leak", [leak_by_a_header, leak_by_a_view])
async def test_a_leak_that_is_planted_is_found(leak: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the test above would prove nothing."""
    game, seats = TABLES[0]
    moment = next(islice(Course(game, seats, Random(1)).moments(), 6, None))
    secret = [0]
    leak(monkeypatch, secret)
    seen = []
    for position in (moment.position, *(twin_of(moment, None, Random(number)) for number in range(3))):
        secret[0] = hash(position.state)
        seen.append(await seen_in(moment, position))
    assert any(one != seen[0] for one in seen)
