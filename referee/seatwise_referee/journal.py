"""The entries of a match's journal, and the canonical JSON in which stores and records hold them.

Everything that decides the outcome or a clock is an entry. A replay needs nothing but the entries.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from functools import lru_cache
from json.encoder import c_make_encoder, encode_basestring_ascii  # type: ignore[attr-defined]  # the stubs lack the C encoder
from typing import Any, ClassVar, Final, Self, TypeAlias

from seatwise_referee.each_move import encode_moved
from seatwise_referee.ending import Ending, RejectReason
from seatwise_referee.game import Json, Seat
from seatwise_referee.value_type import value_type


class Unconfirmed(RuntimeError):
    """The shell gave a command before it had confirmed the entries of the last one."""


PRIVATE_FIELDS = frozenset({"message", "request_id", "request_ids"})
"""Fields of entries that the public record leaves out."""


def canonical_json(value: Json) -> bytes:
    """Return the value in the only way to write it: sorted keys, no spaces, ASCII.

    >>> canonical_json({"b": [1, None], "a": "x"})
    b'{"a":"x","b":[1,null]}'
    """
    return _encode_json(value).encode()


def _json_encoder() -> Callable[[Json], str]:
    """Return `JSONEncoder.encode`, without what it does again for each call: to encode a move takes 0.4 instead of 1.2 us (measured)."""
    plain = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    if c_make_encoder is None:  # not CPython
        return plain.encode
    # as `JSONEncoder.iterencode` makes it, but without its note of what is being encoded: an error would leave that behind
    encode = c_make_encoder(None, plain.default, encode_basestring_ascii, None, ":", ",", True, False, False)
    return lambda value: "".join(encode(value, 0))


_encode_json: Final = _json_encoder()


class DefaultReason(StrEnum):
    """Why the referee played for a seat."""

    TIMED_OUT = "TIMED_OUT"
    FORFEITED = "FORFEITED"
    RESIGNED = "RESIGNED"


class AgreedReason(StrEnum):
    """Why a race ended without a call."""

    OFFERED = "OFFERED"
    """All seats that still built agreed to end the round."""
    TIMED_OUT = "TIMED_OUT"


@dataclass(frozen=True, slots=True)
class Charge:
    """The charge of an answer, or of giving no answer, with its parts."""

    asked_ms: int
    """The time at which the seat's time began."""
    allowance_ms: int
    """The time that was taken off for the network."""
    charged_ms: int


class EntryPart:
    """A part of an entry: a dataclass, whose charge is written among its other fields."""

    __slots__: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Return it as entries hold it."""
        body = {name: getattr(self, name) for name in self.__slots__}
        charge = body.pop("charge", None)
        return {**body, **(asdict(charge) if charge else {})}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Return what was written so. Raises `KeyError` or `TypeError` for anything else."""
        given = {name: body[name] for name in cls.__slots__ if name != "charge"}
        if "charged_ms" in body:
            given["charge"] = Charge(body["asked_ms"], body["allowance_ms"], body["charged_ms"])
        return cls(**given)


@dataclass(frozen=True, slots=True)
class DefaultMove(EntryPart):
    """A move that the referee played for a seat."""

    seat: Seat
    move: Json
    charge: Charge | None = None
    """The seat's charge, if its time ran out."""


@dataclass(frozen=True, slots=True)
class RaceCall(EntryPart):
    """A call in a race."""

    seat: Seat
    came_ms: int
    """The time at which the call arrived."""
    charge: Charge


@dataclass(frozen=True, slots=True)
class SeatTimeout(EntryPart):
    """A seat whose time ran out in a race."""

    seat: Seat
    charge: Charge


@value_type
class JournalEntry:
    """One entry; `Entry` is the union of all its kinds."""

    kind: ClassVar[str]
    seq: int
    """Counts the entries of the match from 1, without gaps."""
    at_ms: int
    """The time since the match was opened. It never falls."""

    def to_json(self) -> dict[str, Json]:
        """Return the entry as the store holds it. Records leave out `PRIVATE_FIELDS`."""
        body = {name: _to_plain(getattr(self, name)) for name in _FIELD_NAMES[type(self)]}
        return {**body, "kind": self.kind}


def _to_plain(value: Any) -> Json:
    """Return a field as JSON: a tuple as a list, and its parts as they are written."""
    if not isinstance(value, tuple):
        plain: Json = value
        return plain
    return [each.to_json() if isinstance(each, EntryPart) else each for each in value]


@value_type
class Sat(JournalEntry):
    """A bot sat down at its seat for the first time."""

    kind = "sat"
    seat: Seat
    nonce: str | None
    """In hex: the bot's contribution to the deal."""


@value_type
class Dealt(JournalEntry):
    """The set-up is over. The deals follow from the seed and from the nonces in the entries before."""

    kind = "dealt"


@value_type
class Moved(JournalEntry):
    """A seat made a legal move in time."""

    kind = "move"
    seat: Seat
    prompt: int
    move: Json
    asked_ms: int
    allowance_ms: int
    charged_ms: int
    request_id: str


@dataclass(frozen=True, slots=True)
class WeightedMove(EntryPart):
    """A choice of a mixed move."""

    move: Json
    weight: int
    """Its probability is its part of the sum of all weights."""


@value_type
class DrawnMove(Moved):
    """A seat made a mixed move in time. `move` is the choice that the referee drew."""

    choices: tuple[WeightedMove, ...]


def with_choices(entry: Moved, choices: tuple[WeightedMove, ...]) -> DrawnMove:
    """Return the same move as one that was drawn from these choices."""
    return DrawnMove(**{name: getattr(entry, name) for name in _FIELD_NAMES[Moved]}, choices=choices)


MOST_CHOICES_BYTES: Final = 4096
"""The most bytes of all choices of a mixed move as canonical JSON: no more than one large move of a game from outside."""

LAST_DRAW_SEQ: Final = 3600
"""The last entry that may be a drawn move. With more of them a record might be too large to be verified."""


def fault_of_choices(seq: int, choices: Sequence[WeightedMove]) -> str:
    """Return why entry `seq` may not have these choices; empty if it may."""
    written = [canonical_json(choice.to_json()) for choice in choices]
    if seq > LAST_DRAW_SEQ:
        return f"after entry {LAST_DRAW_SEQ} of a match no move is drawn; send one move"
    if sum(map(len, written)) > MOST_CHOICES_BYTES:
        return f"the choices of a mixed move may have {MOST_CHOICES_BYTES} bytes of JSON together"
    moves = [canonical_json(choice.move) for choice in choices]
    for place, move in enumerate(moves):
        if move in moves[:place]:
            return f"the choice {move.decode():.80} occurs twice in one mixed move"
    return ""


@value_type
class Defaulted(JournalEntry):
    """The referee played for seats that gave no answer."""

    kind = "default"
    reason: DefaultReason
    prompt: int
    moves: tuple[DefaultMove, ...]
    """In the order of the seats. For a seat that left a race, its last layout comes before its default move."""


@value_type
class Called(JournalEntry):
    """Seats called in a race, and no other seat can have called before them."""

    kind = "called"
    prompt: int
    calls: tuple[RaceCall, ...]
    """The call with the lowest charge first."""
    window_ms: int
    """Calls that were charged at most this much more than the first are simultaneous with it."""
    layouts: tuple[Json, ...]
    """The layout of each seat at the charged time of the first call; for a caller, at its own charged time."""
    request_ids: tuple[str, ...]
    """The request ids of the calls, in their order."""


@value_type
class Agreed(JournalEntry):
    """A race ended without a call."""

    kind = "agreed"
    prompt: int
    reason: AgreedReason
    layouts: tuple[Json, ...]
    """The layout of each seat."""
    silent: tuple[Seat, ...]
    """Seats that sent no answer until the time was over. Each has a strike."""
    asked: tuple[SeatTimeout, ...]
    """The seats that built, if the time ran out; else empty."""


@value_type
class Rejected(JournalEntry):
    """A move did not stand, in a way that counts against its seat."""

    kind = "rejected"
    seat: Seat
    prompt: int
    reason: RejectReason
    """ILLEGAL or TOO_LATE. Other rejections do not count, and are no entries."""
    request_id: str
    message: str


@value_type
class Resigned(JournalEntry):
    """A seat gave up."""

    kind = "resigned"
    seat: Seat


@value_type
class Forfeited(JournalEntry):
    """The referee took a seat out of the match."""

    kind = "forfeited"
    seat: Seat
    ending: Ending


@value_type
class TakenOver(JournalEntry):
    """Another referee owns the match from here on. Seats that are asked are asked again, with their full time."""

    kind = "taken_over"
    epoch: int


@value_type
class Frozen(JournalEntry):
    """The referee stood still for the `ms` before `at_ms`. No seat is charged for that."""

    kind = "frozen"
    ms: int
    why: str
    """STALL (the process stood still) or STORE (Redis did)."""


@value_type
class Finished(JournalEntry):
    """The match was played to its end. This is its result."""

    kind = "finished"
    outcome: dict[str, Json]
    """The outcome by the rules of the game: {"points", "ranks", "rounds"}."""
    result: dict[str, Json]
    """The result that counts: {"ranks"}."""
    endings: tuple[Ending, ...]


@value_type
class Voided(JournalEntry):
    """The match was ended without a result."""

    kind = "voided"
    reason: str
    """A `VoidReason`. It is text here, so that a reason of a later version can be read."""


Entry: TypeAlias = (
    Sat | Dealt | Moved | DrawnMove | Defaulted | Called | Agreed | Rejected | Resigned | Forfeited
    | TakenOver | Frozen | Finished | Voided
)  # fmt: skip
_TYPES: tuple[type[Entry], ...] = (
    Sat, Dealt, Moved, Defaulted, Called, Agreed, Rejected, Resigned, Forfeited,
    TakenOver, Frozen, Finished, Voided,
)  # fmt: skip
_ALL_TYPES: tuple[type[Entry], ...] = (*_TYPES, DrawnMove)
"""The last one has the `kind` of `Moved`, and one key more."""


def _tuple_of(read: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda values: tuple(map(read, values))


_FIELD_NAMES: dict[type[JournalEntry], tuple[str, ...]] = {
    kind: tuple(each.name for each in fields(kind)) for kind in _ALL_TYPES
}
_PRIVATE_NAMES = {
    kind: tuple(name for name in names if name in PRIVATE_FIELDS) for kind, names in _FIELD_NAMES.items()
}
_PUBLIC_NAMES = {
    kind: tuple(name for name in names if name not in PRIVATE_FIELDS) for kind, names in _FIELD_NAMES.items()
}
_PUBLIC_KEYS = {kind: frozenset((*names, "kind")) for kind, names in _PUBLIC_NAMES.items()}
_NO_PRIVATE = {kind: dict.fromkeys(names, "") for kind, names in _PRIVATE_NAMES.items()}
"""The private fields of an entry from a record, which leaves them out."""
_READERS: dict[type[Entry], dict[str, Callable[[Any], Any]]] = {
    DrawnMove: {"choices": _tuple_of(WeightedMove.from_json)},
    Defaulted: {"reason": DefaultReason, "moves": _tuple_of(DefaultMove.from_json)},
    Called: {"calls": _tuple_of(RaceCall.from_json), "layouts": tuple, "request_ids": tuple},
    Agreed: {
        "reason": AgreedReason,
        "layouts": tuple,
        "silent": tuple,
        "asked": _tuple_of(SeatTimeout.from_json),
    },
    Rejected: {"reason": RejectReason},
    Forfeited: {"ending": Ending},
    Finished: {"endings": _tuple_of(Ending)},
}
"""The readers of fields that are more than plain JSON."""
ENTRY_TYPES: dict[str, type[Entry]] = {kind.kind: kind for kind in _TYPES}
"""The types of entries, by their `kind` in JSON."""


class BadEntry(ValueError):
    """The JSON is no entry of this format."""


def entry_from_json(body: Mapping[str, Any]) -> Entry:
    """Return the entry that was written so; `PRIVATE_FIELDS` may be missing, as in records. Raises `BadEntry`."""
    if not isinstance(body, Mapping):
        raise BadEntry("an entry is a JSON object")
    name = body.get("kind")
    kind = ENTRY_TYPES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise BadEntry(f"unknown kind {name!r:.40}")
    if kind is Moved and "choices" in body:
        kind = DrawnMove
    if body.keys() == _PUBLIC_KEYS[kind]:  # an entry of a record, as it should be
        given = {**body, **_NO_PRIVATE[kind]}
        del given["kind"]
        return _read_entry(kind, given)
    names = _FIELD_NAMES[kind]
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
"""Separates the two halves of a stored entry. It is in neither of them, because JSON escapes tabs."""


@lru_cache(maxsize=1 << 10)
def _encode_pair(key: str, value: str) -> str:
    """Encode a move that is one text; most moves of UGO! are so, and only 45 different ones."""
    return _encode_json({key: value})


def encode_entry(entry: Entry) -> bytes:
    """Return the entry as the store holds it: its public part, and after a tab its `PRIVATE_FIELDS`, if it has any.

    Each half is canonical JSON, so that a record copies the public parts of its journal. Moves, which nearly all
    entries are, are written by `encode_moved`: `canonical_json` takes many times as long (measured).
    """
    if type(entry) is Moved:
        body: Any = entry.move
        (key,) = body if type(body) is dict and len(body) == 1 else ("",)
        move = _encode_pair(key, body[key]) if key and type(body[key]) is str else _encode_json(body)
        return encode_moved(
            entry.allowance_ms, entry.asked_ms, entry.at_ms, entry.charged_ms,
            move, entry.prompt, entry.seat, entry.seq, encode_basestring_ascii(entry.request_id),
        )  # fmt: skip  # as it reads in the entry
    body = entry.to_json()
    private = {name: body.pop(name) for name in _PRIVATE_NAMES[type(entry)]}
    return canonical_json(body) + (_SEPARATOR + canonical_json(private) if private else b"")


def public_part(data: bytes) -> bytes:
    """Return what records show of a stored entry: canonical JSON."""
    return data.partition(_SEPARATOR)[0]


def decode_entry(data: bytes) -> Entry:
    """Return the entry of which `encode_entry` made these bytes. Raises `BadEntry`."""
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
