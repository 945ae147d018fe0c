"""Functions that take any bytes and must never fail: the parsers of bytes from outside, which may refuse them, and a live match."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from matches.example_record import FILE as EXAMPLE_RECORD
from seasons.one_season import league_of, played

from fuzz.live_match import play_live_match
from seatwise.codec import MalformedMove
from seatwise.season import BadSeason, UncheckedSeason, check_season, open_bundle, write_bundle
from seatwise.season.audit_chain import verify_audit_log
from seatwise.v1 import lobby_service_pb2, match_service_pb2
from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee.game import IllegalMove
from seatwise_referee.games.registry import GAMES
from seatwise_referee.games.ubongo import BadDeck, parse_deck
from seatwise_referee.verify import verify_line
from seatwise_server.league.league_file import read_league
from seatwise_server.league.publishing import publish_season
from seatwise_server.league.season_files import BUNDLE
from seatwise_server.league.table_reader import LeagueFileError
from seatwise_server.play.inbound import WrongGame, _decode_move
from seatwise_server.refusal import Refusal
from seatwise_server.rest.json_requests import RequestDecoder
from seatwise_server.rest.routes import HTTP_ROUTES
from seatwise_server.services.matches import parse_match_filter
from seatwise_server.services.request_fields import parse_position
from seatwise_server.store.bots import _parse_page_token
from seatwise_server.store.errors import BadPageToken
from seatwise_server.store.matches import PageCursor
from seatwise_server.ws.message_formats import FORMATS

FuzzTarget: TypeAlias = Callable[[bytes], None]

SEEDS = Path(__file__).parent / "seeds"
"""A folder for each target, with a file for each input: those to begin with, and those that once failed."""
MEMBERS = ("settings.json", "standings.json", "results.jsonl")
STARTED = {
    game: GAMES[game].deal(2, bytes(32), GAMES[game].complete_options({})) for game in ("ugo", "ubongo")
}
DECODERS = [RequestDecoder(route) for route in HTTP_ROUTES]
MESSAGE_FORMATS = list(FORMATS.values())


def read_play_items(data: bytes) -> None:
    """A message of a play stream: the first byte says in which format."""
    form = MESSAGE_FORMATS[data[0] % len(MESSAGE_FORMATS)] if data else MESSAGE_FORMATS[0]
    for read in form.read_items(data[1:]):
        if read.item is not None and read.item.WhichOneof("action") == "submit_move":
            for game in STARTED:
                _play_move(read.item.submit_move, game)
    with suppress(Refusal):
        assert isinstance(form.read_attend_request(data[1:]), lobby_service_pb2.AttendRequest)


def _play_move(asked: pb.SubmitMove, game: str) -> None:
    with suppress(IllegalMove, MalformedMove, WrongGame):
        GAMES[game].play(STARTED[game], 0, _decode_move(asked, game))


def read_rest_request(data: bytes) -> None:
    """A request to a URL of the REST API: a byte for the URL, the query, a zero byte, and the body."""
    decoder = DECODERS[data[0] % len(DECODERS)] if data else DECODERS[0]
    query, _, body = data[1:].partition(b"\0")
    try:
        request = decoder.decode_request(["a", "1"], query, body)
        if isinstance(request, match_service_pb2.ListMatchesRequest):
            parse_match_filter(request)
    except Refusal:
        pass


def read_record_line(data: bytes) -> None:
    """A line of a file of records, or of an audit log: the verdict is a value."""
    verdict = verify_line(data)
    assert verdict.fault is None or str(verdict.fault)
    verify_audit_log(data.splitlines(keepends=True))


def read_bundle(data: bytes) -> None:
    """A bundle: if the first byte is zero, the others are the file; else they are one file in a bundle that fits it."""
    with tempfile.TemporaryDirectory(prefix="sw-", dir=MEMORY) as folder:
        path = Path(folder) / "season.bundle"
        if data[:1] == b"\0":
            path.write_bytes(data[1:])
        else:
            _write_changed_bundle(path, MEMBERS[data[0] % len(MEMBERS)] if data else MEMBERS[0], data[1:])
        try:
            with open_bundle(path) as bundle:
                check_season(bundle)
        except (BadSeason, UncheckedSeason):
            pass


def _write_changed_bundle(path: Path, changed: str, content: bytes) -> None:
    paths = {}
    for name, held in _season_files().items():
        paths[name] = path.parent / name
        paths[name].write_bytes(content if name == changed else held)
    write_bundle(path, paths)


def _season_files() -> dict[str, bytes]:
    if not _SEASON:
        with open_bundle(_season_bundle()) as season:
            _SEASON.update(
                {name: b"".join(season.read_lines(name)) for name in season._names if name != "manifest.json"}
            )
    return _SEASON


@cache
def _season_bundle() -> Path:
    """The bundle of a small knockout, in a folder that ends with this process."""
    folder = Path(_FOLDER.name)
    played(folder, league_of(format="knockout", deals="none")).close()
    publish_season(folder)
    return folder / BUNDLE


_FOLDER = tempfile.TemporaryDirectory(prefix="sw-season-")
_SEASON: dict[str, bytes] = {}
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


def read_league_file(data: bytes) -> None:
    """A league file."""
    with tempfile.TemporaryDirectory(prefix="sw-", dir=MEMORY) as folder:
        path = Path(folder) / "league.toml"
        path.write_bytes(data)
        with suppress(LeagueFileError):
            read_league(path)


def read_deck(data: bytes) -> None:
    """A deck of Ubongo."""
    with suppress(BadDeck):
        parse_deck(data.decode("utf-8", "replace"))


def read_page_tokens(data: bytes) -> None:
    """A page token, as each list reads it."""
    token = data.decode("utf-8", "replace")
    parsers: tuple[Callable[[str], Any], ...] = (
        parse_position,
        _parse_page_token,
        PageCursor.parse,
        lambda it: PageCursor.parse(it, "digest"),
    )
    for parse in parsers:
        with suppress(BadPageToken, Refusal):
            parse(token)


def play_match(data: bytes) -> None:
    """A live match: the bytes say who lies how, and what happens to its referees."""
    play_live_match(data)


TARGETS: dict[str, FuzzTarget] = {
    "bundle": read_bundle,
    "deck": read_deck,
    "league-file": read_league_file,
    "page-token": read_page_tokens,
    "live-match": play_match,
    "play-items": read_play_items,
    "record-line": read_record_line,
    "rest-request": read_rest_request,
}
"""By the name of their folder of seeds."""


def seeds_of(name: str) -> Iterator[bytes]:
    """Yields the inputs of a target that are in this folder, and the record and the season that other tests use."""
    for path in sorted((SEEDS / name).iterdir()):
        yield path.read_bytes()
    if name == "record-line":
        yield EXAMPLE_RECORD.read_bytes()
    if name == "bundle":
        yield b"\0" + _season_bundle().read_bytes()
