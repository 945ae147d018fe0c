"""The record of a finished match: one line of JSON that anybody can check.

`docs/record-format.md` is its specification.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import takewhile
from typing import Any

from seatwise_referee.game import Json, Seat
from seatwise_referee.games.registry import GAMES
from seatwise_referee.journal import (
    Dealt,
    Defaulted,
    Entry,
    Finished,
    Moved,
    Sat,
    canonical_json,
    decode_entry,
    encode_entry,
    entry_from_json,
    public_part,
)
from seatwise_referee.setup import Setup
from seatwise_referee.shuffle import commitment_to

RECORD_FORMAT = "seatwise.record/1"
TAIL_KEYS = ("entries", "outcome", "result", "endings", "chain")
"""The keys after the header. All other keys are the header, with which the chain begins."""


class NotFinished(ValueError):
    """The match was not played to its end, so it has no record."""


@dataclass(frozen=True, slots=True)
class WrittenRecord:
    """A record as it is stored."""

    line: bytes
    """Canonical JSON and a newline."""
    chain: bytes
    """The last link of its chain."""


def write_record(setup: Setup, journal: Sequence[bytes]) -> WrittenRecord:
    """Return the record of a finished match.

    `journal` are its entries as the store holds them; the record copies their public parts. Raises `NotFinished`
    if the last entry is not `finished`.
    """
    last = decode_entry(journal[-1]) if journal else None
    if not isinstance(last, Finished):
        raise NotFinished(f"{setup.match} was not played to its end")
    head = record_header(setup, nonces_of(setup, takewhile(_is_before_the_deal, map(decode_entry, journal))))
    entries = list(map(public_part, journal))
    link = compute_last_link(head, entries)
    body: dict[str, Json] = {
        **head,
        "entries": [],
        "outcome": last.outcome,
        "result": last.result,
        "endings": list(last.endings),
        "chain": link.hex(),
    }
    return WrittenRecord(
        canonical_json(body).replace(b'"entries":[]', b'"entries":[%b]' % b",".join(entries), 1) + b"\n", link
    )


def _is_before_the_deal(entry: Entry) -> bool:
    return not isinstance(entry, Dealt)


def build_record(setup: Setup, entries: Iterable[Entry]) -> dict[str, Json]:
    """Return the record of a finished match as JSON, from entries in memory. Raises `NotFinished`."""
    body: dict[str, Json] = json.loads(write_record(setup, list(map(encode_entry, entries))).line)
    return body


def record_header(setup: Setup, nonces: Sequence[bytes | None]) -> dict[str, Json]:
    """Return the header of a record: all that is fixed when the cards are dealt."""
    more: dict[str, Json] = {"deal_set": setup.deal_set.to_json()} if setup.deal_set else {}
    if setup.times:
        more["times"] = setup.times
    return {
        **more,
        "format": RECORD_FORMAT,
        "match": setup.match,
        "game": setup.game,
        "rules_version": setup.rules_version,
        "options": dict(setup.options.items()),
        "seats": [{"seat": seat, "bot": bot} for seat, bot in enumerate(setup.bots)],
        "time_control": setup.time_control.to_json(),
        "durability": setup.durability,
        "commitment": commitment_to(setup.seed).hex(),
        "seed": setup.seed.hex(),
        "nonces": [None if nonce is None else nonce.hex() for nonce in nonces],
        "deals": GAMES[setup.game].deals_in_clear(len(setup.bots), setup.deals_from(nonces), setup.options),
    }


def nonces_of(setup: Setup, entries: Iterable[Entry]) -> tuple[bytes | None, ...]:
    """Return the nonces with which the bots sat down, by seat; `None` for a seat without one."""
    given = {int(entry.seat): entry.nonce for entry in entries if isinstance(entry, Sat)}
    nonces = [given.get(seat) for seat in range(len(setup.bots))]
    return tuple(None if nonce is None else bytes.fromhex(nonce) for nonce in nonces)


def compute_last_link(head: dict[str, Json], entries: Iterable[bytes]) -> bytes:
    """Return the same of entries that are canonical JSON already."""
    link = sha256(canonical_json(head)).digest()
    for entry in entries:
        link = sha256(link + entry).digest()
    return link


def replay_moves(
    record: Mapping[str, Any], setup: Setup
) -> Iterator[tuple[Any, Moved | Defaulted, Seat, Any]]:
    """Yield each move of a genuine record of a game of turns: the state before it, its entry, its seat and the move."""
    game = GAMES[setup.game]
    nonces = [None if nonce is None else bytes.fromhex(nonce) for nonce in record["nonces"]]
    state = game.deal(len(setup.bots), setup.deals_from(nonces), setup.options)
    for entry in map(entry_from_json, record["entries"]):
        if isinstance(entry, Moved | Defaulted):
            played = (entry,) if isinstance(entry, Moved) else entry.moves
            for each in played:
                move = game.move_from_json(each.move)
                yield state, entry, each.seat, move
                state = game.play(state, each.seat, move)


def record_line(record: dict[str, Json]) -> bytes:
    """Return the record as it is stored: canonical JSON and a newline."""
    return canonical_json(record) + b"\n"
