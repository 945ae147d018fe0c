"""Lets spectators follow a match from any process. It reads the journal, not the referee's memory: only safe entries."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable

from seatwise.codec.wire_format import encode_field
from seatwise.kits.codecs import CODECS
from seatwise.v1 import match_service_pb2 as pb
from seatwise_referee.games.registry import GAMES
from seatwise_referee.journal import Entry, Rejected, decode_entry, entry_from_json
from seatwise_referee.position import Position, first_position, position_after
from seatwise_referee.setup import Setup
from seatwise_server import resources
from seatwise_server.store import MatchMeta, Store

TAIL_BLOCK_MS = 1000


class MatchWatcher:
    """Follows matches for any number of spectators, each with a reader of its own."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def follow_match(self, name: str) -> AsyncIterator[pb.WatchMatchResponse]:
        """Yields the present state of the match, then each change, then its end."""
        meta = await self._store.matches.get_meta(name)
        if meta is None:
            return
        yield pb.WatchMatchResponse(match=resources.match_resource(meta))
        setup = Setup.from_json(json.loads(meta.fields["setup"]))
        position, state = first_position(setup), meta.state
        while not position.end and meta and "result" not in meta.fields:
            found = await self._store.journal.wait_for_entries(name, position.seq, TAIL_BLOCK_MS)
            position, news_ms = fold_entries(position, map(decode_entry, found), setup)
            if news_ms is not None:
                yield spectator_view(position, setup, news_ms)
            meta = await self._store.matches.get_meta(name)
            if meta and meta.state != state and "result" not in meta.fields:
                state = meta.state
                yield pb.WatchMatchResponse(match=resources.match_resource(meta))
        last = await self._wait_for_result(name)
        position, news_ms = fold_entries(position, await self._read_rest(name, position), setup)
        if news_ms is not None:
            yield spectator_view(position, setup, news_ms)
        if last and last.state != state:
            yield pb.WatchMatchResponse(match=resources.match_resource(last))

    async def _wait_for_result(self, name: str) -> MatchMeta | None:
        """Waits for the match's result, which follows the last entry within a moment."""
        while True:
            meta = await self._store.matches.get_meta(name)
            if meta is None or "result" in meta.fields:
                return meta
            await asyncio.sleep(TAIL_BLOCK_MS / 1000 / 4)

    async def _read_rest(self, name: str, position: Position) -> list[Entry]:
        """Returns the entries that were not read before the journal was replaced by the record."""
        kept = None if position.end else await self._store.matches.get_record(name)
        if not kept:
            return []
        return [entry_from_json(each) for each in json.loads(kept)["entries"][position.seq :]]


def fold_entries(position: Position, entries: Iterable[Entry], setup: Setup) -> tuple[Position, int | None]:
    """Returns the position after these entries, and the time in ms of the last of them that a spectator may
    know of.

    A rejection is only for its seat: a response without a change would reveal it.
    """
    news_ms = None
    for entry in entries:
        position = position_after(position, entry, setup, GAMES[setup.game])
        if not isinstance(entry, Rejected):
            news_ms = entry.at_ms
    return position, news_ms


def spectator_view(position: Position, setup: Setup, at_ms: int) -> pb.WatchMatchResponse:
    """Returns the view that a spectator has of a position."""
    response = pb.WatchMatchResponse(at_ms=at_ms)
    if position.state is not None:
        codec = CODECS[setup.game]
        view = codec.encode_view(GAMES[setup.game].view(position.state, None))
        response.MergeFromString(encode_field(codec.number, view))
    return response
