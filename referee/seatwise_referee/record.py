"""A finished match as one line of JSON that anybody can check. docs/record-format.md is the specification."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

from seatwise_referee.game import Json
from seatwise_referee.games.registry import GAMES
from seatwise_referee.journal import PRIVATE, Entry, Finished, Sat, canonical, entry_from_json
from seatwise_referee.setup import Setup
from seatwise_referee.shuffle import commitment, deal_seed

FORMAT = "seatwise.record/1"
TAIL = ("entries", "outcome", "result", "endings", "chain")
"""What follows the header; the rest is the header, with which the chain begins."""


class NotFinished(ValueError):
    """Only a match that was played to its end has a record."""


def build(setup: Setup, entries: Sequence[Entry]) -> dict[str, Json]:
    """The record of a finished match. `NotFinished` if the last entry is not `finished`."""
    return build_from_json(setup, [entry.to_json() for entry in entries])


def build_from_json(setup: Setup, bodies: Sequence[dict[str, Json]]) -> dict[str, Json]:
    """The same of entries as the store holds them: most are copied, and need not be understood for that."""
    last = entry_from_json(bodies[-1]) if bodies else None
    if not isinstance(last, Finished):
        raise NotFinished(f"{setup.match} was not played to its end")
    sat = [entry_from_json(body) for body in bodies if body["kind"] == Sat.kind]
    head = header(setup, nonces_of(setup, sat))
    public = [{name: body[name] for name in body if name not in PRIVATE} for body in bodies]
    return {
        **head,
        "entries": list(public),
        "outcome": last.outcome,
        "result": last.result,
        "endings": list(last.endings),
        "chain": chain(head, public).hex(),
    }


def header(setup: Setup, nonces: Sequence[bytes | None]) -> dict[str, Json]:
    """What is fixed once the cards are dealt: everything of a record but its tail."""
    seed = deal_seed(setup.seed, nonces)
    return {
        "format": FORMAT,
        "match": setup.match,
        "game": setup.game,
        "rules_version": setup.rules_version,
        "options": dict(setup.options.items()),
        "seats": [{"seat": seat, "bot": bot} for seat, bot in enumerate(setup.bots)],
        "time_control": setup.time_control.to_json(),
        "durability": setup.durability,
        "commitment": commitment(setup.seed).hex(),
        "seed": setup.seed.hex(),
        "nonces": [None if nonce is None else nonce.hex() for nonce in nonces],
        "deals": GAMES[setup.game].deals(len(setup.bots), seed, setup.options),
    }


def nonces_of(setup: Setup, entries: Iterable[Entry]) -> tuple[bytes | None, ...]:
    """Each seat's nonce as it sat down with it, by seat."""
    given = {int(entry.seat): entry.nonce for entry in entries if isinstance(entry, Sat)}
    nonces = [given.get(seat) for seat in range(len(setup.bots))]
    return tuple(None if nonce is None else bytes.fromhex(nonce) for nonce in nonces)


def chain(head: dict[str, Json], entries: Iterable[dict[str, Json]]) -> bytes:
    """SHA-256 of the header, then of each link and the entry that follows it; the last link."""
    link = sha256(canonical(head)).digest()
    for entry in entries:
        link = sha256(link + canonical(entry)).digest()
    return link


def line(record: dict[str, Json]) -> bytes:
    """The record as it is stored: canonical JSON and a newline."""
    return canonical(record) + b"\n"
