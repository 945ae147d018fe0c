"""The journal of a match: entries, and the canonical JSON that stores and records hold.

Everything that decides the outcome or a clock is an entry; replaying them needs nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from json.encoder import encode_basestring_ascii
from typing import Any, ClassVar, TypeAlias

from seatwise_referee.ending import Ending
from seatwise_referee.game import Json, Seat

PRIVATE_FIELDS = frozenset({"message", "request_id", "request_ids"})
"""Fields of the journal that the public record leaves out."""


def canonical_json(value: Json) -> bytes:
    """The one way to write a value: sorted keys, no spaces, ASCII, integers only."""
    return _ENCODE(value).encode()


_ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


class DefaultReason(StrEnum):
    """Why the referee played for a seat."""

    TIMED_OUT = "TIMED_OUT"
    FORFEITED = "FORFEITED"
    RESIGNED = "RESIGNED"


class AgreedReason(StrEnum):
    """Why a race ended without a call."""

    OFFERED = "OFFERED"
    """All seats that still built agreed."""
    TIMED_OUT = "TIMED_OUT"


@dataclass(frozen=True, slots=True)
class Charge:
    """What an answer, or the lack of one, was charged, and why."""

    asked_ms: int
    """When the seat's time began."""
    allowance_ms: int
    """Taken off for the network."""
    charged_ms: int


@dataclass(frozen=True, slots=True)
class DefaultMove:
    """A move that the referee played for a seat."""

    seat: Seat
    move: Json
    charge: Charge | None = None
    """Only where time ran out."""

    def to_json(self) -> dict[str, Json]:
        """As in the journal."""
        return {"seat": self.seat, "move": self.move, **_charge_to_json(self.charge)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> DefaultMove:
        """The inverse of `to_json`; `KeyError` or `TypeError` for anything else."""
        charge = _charge_from_json(body) if "charged_ms" in body else None
        return cls(body["seat"], body["move"], charge)


@dataclass(frozen=True, slots=True)
class RaceCall:
    """A call in a race."""

    seat: Seat
    came_ms: int
    """When the call arrived."""
    charge: Charge

    def to_json(self) -> dict[str, Json]:
        """As in the journal."""
        return {"seat": self.seat, "came_ms": self.came_ms, **_charge_to_json(self.charge)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> RaceCall:
        """The inverse of `to_json`; `KeyError` or `TypeError` for anything else."""
        return cls(body["seat"], body["came_ms"], _charge_from_json(body))


@dataclass(frozen=True, slots=True)
class SeatTimeout:
    """A seat whose time ran out in a race."""

    seat: Seat
    charge: Charge

    def to_json(self) -> dict[str, Json]:
        """As in the journal."""
        return {"seat": self.seat, **_charge_to_json(self.charge)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> SeatTimeout:
        """The inverse of `to_json`; `KeyError` or `TypeError` for anything else."""
        return cls(body["seat"], _charge_from_json(body))


def _charge_to_json(charge: Charge | None) -> dict[str, Json]:
    return asdict(charge) if charge else {}


def _charge_from_json(body: Mapping[str, Any]) -> Charge:
    return Charge(body["asked_ms"], body["allowance_ms"], body["charged_ms"])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    kind: ClassVar[str]
    seq: int
    """Counts the entries of the match, from 1 without gaps."""
    at_ms: int
    """Since the match was opened; never falls."""

    def to_json(self) -> dict[str, Json]:
        """As in the store; records leave out `PRIVATE_FIELDS`."""
        body: dict[str, Json] = {name: getattr(self, name) for name in _NAMES[type(self)]}
        body["kind"] = self.kind
        return body


@dataclass(frozen=True, slots=True, kw_only=True)
class Sat(_Entry):
    """A seat was taken for the first time."""

    kind = "sat"
    seat: Seat
    nonce: str | None
    """Hex; what the bot adds to the deal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dealt(_Entry):
    """The set-up is over; the deals follow from the seed and the nonces in the journal so far."""

    kind = "dealt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved(_Entry):
    """A seat moved, by the rules and in time."""

    kind = "move"
    seat: Seat
    prompt: int
    move: Json
    asked_ms: int
    """When the seat's time began."""
    allowance_ms: int
    """Taken off for the network."""
    charged_ms: int
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaulted(_Entry):
    """The referee played the default moves of seats that gave no answer."""

    kind = "default"
    reason: DefaultReason
    prompt: int
    moves: tuple[DefaultMove, ...]
    """In the order of the seats; of a seat that left a race first what it had laid."""

    def to_json(self) -> dict[str, Json]:
        """As in the store."""
        return {**_Entry.to_json(self), "moves": [move.to_json() for move in self.moves]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Called(_Entry):
    """Seats called in a race, and nobody can have called before them."""

    kind = "called"
    prompt: int
    calls: tuple[RaceCall, ...]
    """The lowest charge first."""
    window_ms: int
    """Calls that were charged at most so much more than the first are simultaneous with it."""
    layouts: tuple[Json, ...]
    """What lay before each seat at the first call's charged time; before callers, at their own."""
    request_ids: tuple[str, ...]
    """Of the calls."""

    def to_json(self) -> dict[str, Json]:
        """As in the store."""
        lists: dict[str, Json] = {
            "calls": [call.to_json() for call in self.calls],
            "layouts": list(self.layouts),
            "request_ids": list(self.request_ids),
        }
        return {**_Entry.to_json(self), **lists}


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed(_Entry):
    """A race ended without a call."""

    kind = "agreed"
    prompt: int
    reason: AgreedReason
    layouts: tuple[Json, ...]
    """What lay before each seat."""
    silent: tuple[Seat, ...]
    """Seats that gave no sign of life until the time was over; each has a strike."""
    asked: tuple[SeatTimeout, ...]
    """The seats that built, where time ran out."""

    def to_json(self) -> dict[str, Json]:
        """As in the store."""
        lists: dict[str, Json] = {
            "layouts": list(self.layouts),
            "silent": list(self.silent),
            "asked": [each.to_json() for each in self.asked],
        }
        return {**_Entry.to_json(self), **lists}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected(_Entry):
    """A move did not stand, and that counts."""

    kind = "rejected"
    seat: Seat
    prompt: int
    reason: str
    """ILLEGAL or TOO_LATE."""
    request_id: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resigned(_Entry):
    """A seat gave the match up."""

    kind = "resigned"
    seat: Seat


@dataclass(frozen=True, slots=True, kw_only=True)
class Forfeited(_Entry):
    """The referee took a seat out of the match."""

    kind = "forfeited"
    seat: Seat
    ending: Ending


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver(_Entry):
    """Another referee owns the match; the open prompt is asked again in full."""

    kind = "taken_over"
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen(_Entry):
    """We stood still for the `ms` before `at_ms`; nobody is charged for it."""

    kind = "frozen"
    ms: int
    why: str
    """STALL (our process) or STORE (Redis)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(_Entry):
    """Played to the end. The result."""

    kind = "finished"
    outcome: dict[str, Json]
    """What the rules say: {"points", "ranks", "rounds"}."""
    result: dict[str, Json]
    """What counts: {"ranks"}."""
    endings: tuple[Ending, ...]

    def to_json(self) -> dict[str, Json]:
        """As in the store."""
        return {**_Entry.to_json(self), "endings": list(self.endings)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Voided(_Entry):
    """Given up; counts for nobody."""

    kind = "voided"
    reason: str


Entry: TypeAlias = (
    Sat | Dealt | Moved | Defaulted | Called | Agreed | Rejected | Resigned | Forfeited
    | TakenOver | Frozen | Finished | Voided
)  # fmt: skip
_TYPES: tuple[type[Entry], ...] = (
    Sat, Dealt, Moved, Defaulted, Called, Agreed, Rejected, Resigned, Forfeited,
    TakenOver, Frozen, Finished, Voided,
)  # fmt: skip


def _tuple_of(read: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda values: tuple(map(read, values))


_NAMES: dict[type[_Entry], tuple[str, ...]] = {
    kind: tuple(each.name for each in fields(kind)) for kind in _TYPES
}
_PRIVATE_NAMES = {
    kind: tuple(name for name in names if name in PRIVATE_FIELDS) for kind, names in _NAMES.items()
}
_READERS: dict[type[Entry], dict[str, Callable[[Any], Any]]] = {
    Defaulted: {"reason": DefaultReason, "moves": _tuple_of(DefaultMove.from_json)},
    Called: {"calls": _tuple_of(RaceCall.from_json), "layouts": tuple, "request_ids": tuple},
    Agreed: {
        "reason": AgreedReason,
        "layouts": tuple,
        "silent": tuple,
        "asked": _tuple_of(SeatTimeout.from_json),
    },
    Forfeited: {"ending": Ending},
    Finished: {"endings": _tuple_of(Ending)},
}
"""How fields that are more than plain JSON are read."""
ENTRY_TYPES: dict[str, type[Entry]] = {kind.kind: kind for kind in _TYPES}
"""The entry types by their name in JSON."""


class BadEntry(ValueError):
    """Not an entry of this format."""


def entry_from_json(body: Mapping[str, Any]) -> Entry:
    """The inverse of `to_json`, or `BadEntry`. Fields in `PRIVATE_FIELDS` may be missing, as in records."""
    if not isinstance(body, Mapping):
        raise BadEntry("an entry is a JSON object")
    name = body.get("kind")
    kind = ENTRY_TYPES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise BadEntry(f"unknown kind {name!r:.40}")
    names = _NAMES[kind]
    given = {name: body[name] for name in names if name in body}
    missing = [name for name in names if name not in given and name not in PRIVATE_FIELDS]
    unknown = body.keys() - {*names, "kind"}
    if missing or unknown:
        raise BadEntry(f"{kind.kind}: missing {missing}, unknown {sorted(unknown)}")
    return _read_entry(kind, {**{name: "" for name in names if name in PRIVATE_FIELDS}, **given})


def _read_entry(kind: type[Entry], given: dict[str, Any]) -> Entry:
    try:
        for name, read in _READERS.get(kind, {}).items():
            given[name] = read(given[name])
    except (KeyError, TypeError, ValueError) as error:
        raise BadEntry(f"{kind.kind}: {error}") from error
    return kind(**given)


_SEPARATOR = b"\t"
"""Stands between the halves of a stored entry; JSON escapes tabs."""

_MOVE_TEMPLATE = (
    '{"allowance_ms":%d,"asked_ms":%d,"at_ms":%d,"charged_ms":%d,"kind":"move",'
    '"move":%s,"prompt":%d,"seat":%d,"seq":%d}\t{"request_id":%s}'
)


def encode_entry(entry: Entry) -> bytes:
    """An entry as the store holds it: as records show it, then what is `PRIVATE_FIELDS`, if anything is.

    Each half is canonical JSON. So records are copied from journals and not written anew. Moves, which
    nearly all entries are, are written by hand: `canonical_json` takes three times as long.
    """
    if type(entry) is Moved:
        text = _MOVE_TEMPLATE % (
            entry.allowance_ms, entry.asked_ms, entry.at_ms, entry.charged_ms,
            _ENCODE(entry.move), entry.prompt, entry.seat, entry.seq, encode_basestring_ascii(entry.request_id),
        )  # fmt: skip  # as it reads in the template
        return text.encode()
    body = entry.to_json()
    private = {name: body.pop(name) for name in _PRIVATE_NAMES[type(entry)]}
    return canonical_json(body) + (_SEPARATOR + canonical_json(private) if private else b"")


def public_part(data: bytes) -> bytes:
    """What records show of a stored entry: canonical JSON."""
    return data.partition(_SEPARATOR)[0]


def decode_entry(data: bytes) -> Entry:
    """The inverse of `encode_entry`, or `BadEntry`."""
    shown, _, private = data.partition(_SEPARATOR)
    body = _load_object(shown)
    if private:
        body = {**body, **_load_object(private)}
    return entry_from_json(body)


def _load_object(data: bytes) -> dict[str, Any]:
    try:
        body = json.loads(data)
    except ValueError as error:
        raise BadEntry(f"not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadEntry("an entry is a JSON object")
    return body
