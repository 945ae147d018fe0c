"""The times that referees charged a bot in its newest matches, for the page of the bot. It is read from the records."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cachetools import LRUCache

from seatwise.replay import charges_in
from seatwise.v1 import match_pb2
from seatwise_referee.game import Seat
from seatwise_referee.journal import Agreed, Defaulted, DefaultReason, Entry, entry_from_json
from seatwise_server.pages.page_calls import PageCalls
from seatwise_server.refusal import Refusal

CLOCKED_MATCHES = 8
"""Matches whose records the page of a bot reads."""
KEPT_CLOCKS = 4_000


@dataclass(frozen=True, slots=True)
class SeatClock:
    """The times that one seat of a match was charged."""

    charged_ms: tuple[int, ...]
    """Of each answer, in milliseconds."""
    timeouts: int

    @property
    def total_ms(self) -> int:
        """All that the seat was charged."""
        return sum(self.charged_ms)


class BotClocks:
    """Reads the clocks of finished matches, which never change, and keeps those of the last ones."""

    def __init__(self, calls: PageCalls) -> None:
        self._calls = calls
        self._kept: LRUCache[str, tuple[SeatClock, ...]] = LRUCache(KEPT_CLOCKS)
        """By match, in the order of the seats."""

    async def read_clocks(self, bot: str, matches: Sequence[match_pb2.Match]) -> list[dict[str, Any]]:
        """Returns a line for each seat of the bot in these matches. A match whose record cannot be read now has none."""
        return [
            _clock_line(match, clock)
            for match in matches
            for seat, clock in enumerate(await self._find_clocks(match.name))
            if match.bots[seat] == bot
        ]

    async def _find_clocks(self, match: str) -> tuple[SeatClock, ...]:
        kept = self._kept.get(match)
        if kept is None:
            try:
                record = (await self._calls.call("MatchService/GetRecord", name=match)).record
            except Refusal:
                return ()
            kept = self._kept[match] = await asyncio.to_thread(_read_record, record)
        return kept


def _read_record(record: str) -> tuple[SeatClock, ...]:
    return clocks_of(json.loads(record))


def clocks_of(record: Mapping[str, Any]) -> tuple[SeatClock, ...]:
    """Returns what each seat was charged, by a record that is known to be genuine."""
    charged: list[list[int]] = [[] for _ in record["seats"]]
    timeouts = [0] * len(charged)
    for entry in map(entry_from_json, record["entries"]):
        for seat, ms in charges_in(entry):
            charged[seat].append(ms)
        for seat in _late_seats(entry):
            timeouts[seat] += 1
    return tuple(SeatClock(tuple(each), late) for each, late in zip(charged, timeouts, strict=True))


def _late_seats(entry: Entry) -> list[Seat]:
    """Returns the seats that ran out of time, by this entry."""
    match entry:
        case Defaulted(reason=DefaultReason.TIMED_OUT):
            return [each.seat for each in entry.moves if each.charge]
        case Agreed():
            return list(entry.silent)
    return []


def _clock_line(match: match_pb2.Match, clock: SeatClock) -> dict[str, Any]:
    answers = len(clock.charged_ms)
    return {
        "match": match,
        "answers": answers,
        "total_ms": clock.total_ms,
        "mean_ms": clock.total_ms / answers if answers else 0,
        "longest_ms": max(clock.charged_ms, default=0),
        "timeouts": clock.timeouts,
    }
