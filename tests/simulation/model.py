"""What must be true when all is over: a small model of a match that knows nothing of how the server works.

A match is its journal. The model reads it as text, and holds it against what the bots said and were told.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from seatwise.v1.match_pb2 import Ending
from seatwise.v1.play_service_pb2 import MatchEnded, SubmitMove, WeightedMove
from seatwise_referee.verify import verify_line
from simulation.players import Books
from simulation.witness import Seen

COLOURS = "RBGYK"
OUR_FAULTS = ("TIMED_OUT", "NEVER_SAT", "ILLEGAL_MOVES")
"""How no bot may end that answers in time and by the rules."""
FORBIDDEN = ("TOO_LATE", "ILLEGAL", "MALFORMED", "WRONG_GAME", "NOT_YOUR_SEAT")
"""What nobody may be told who answers so."""
VERIFIED = 3
"""One record in so many is played through: that takes a third of what a match takes here."""
LAST_WORDS = ("finished", "voided")

Entry = Mapping[str, Any]


def entries_of(journal: Iterable[bytes]) -> list[dict[str, Any]]:
    """As text, and what is private with it."""
    return [
        {name: value for half in data.split(b"\t") for name, value in json.loads(half).items()}
        for data in journal
    ]


def wrongs_of(
    match: str, seen: Seen, record: bytes | None, is_blameless: Callable[[int], bool]
) -> Iterator[str]:
    """All that is wrong with one match that is over."""
    if len(seen.journals) != 1:
        yield f"{match}: its journal was retired {len(seen.journals)} times"
        return
    entries = entries_of(seen.journals[0])
    for text in _all_wrongs(seen, entries, record, is_blameless):
        yield f"{match}: {text}"


def wrongs_of_books(over: Mapping[str, str], books: Books) -> Iterator[str]:
    """All that is wrong with what the doors say of matches; `over` has FINISHED or VOIDED of those that are over."""
    for match, state in over.items():
        if (found := books.states.get(match)) != state:
            yield f"{match} is {state}, and GetMatch says {found or 'NOT_FOUND'}"
        if (match in books.records) != (state == "FINISHED"):
            yield f"{match} is {state}, and GetRecord gives {'a' if match in books.records else 'no'} record"
        if match not in books.listed:
            yield f"{match} is {state}, and ListMatches does not have it"
    yield from (f"{match} is listed, and nobody has played it" for match in books.listed if match not in over)


def _all_wrongs(
    seen: Seen, entries: list[dict[str, Any]], record: bytes | None, is_blameless: Callable[[int], bool]
) -> Iterator[str]:
    yield from _form(entries)
    yield from _moves(seen, entries)
    yield from _flags(seen, entries, is_blameless)
    yield from _end(seen, entries[-1])
    if entries[-1]["kind"] == "finished" and (record is None or len(record) % VERIFIED == 0):
        yield from _record(record, len(entries))


def _form(entries: list[dict[str, Any]]) -> Iterator[str]:
    """No gaps, no way back in time, one last word, and owners one after the other."""
    if [entry["seq"] for entry in entries] != list(range(1, len(entries) + 1)):
        yield "its entries are not numbered from 1 on"
    times = [entry["at_ms"] for entry in entries]
    if times != sorted(times):
        yield "its time falls"
    last_words = [entry for entry in entries if entry["kind"] in LAST_WORDS]
    if last_words != entries[-1:]:
        yield f"it has {len(last_words)} last words"
    epochs = [entry["epoch"] for entry in entries if entry["kind"] == "taken_over"]
    if epochs != sorted(set(epochs)):
        yield f"its owners follow each other as {epochs}"


def _moves(seen: Seen, entries: list[dict[str, Any]]) -> Iterator[str]:
    """What was acknowledged is there, once, as the bot said it."""
    found: Counter[tuple[int, str]] = Counter()
    answered: Counter[tuple[int, int]] = Counter()
    for entry in entries:
        for seat, request_id, move in _played(entry):
            found[seat, request_id] += 1
            if entry["kind"] == "move":
                answered[seat, entry["prompt"]] += 1
            if (told := seen.said.get((seat, request_id))) is None:
                yield f"seat {seat} never said {request_id}"
            elif told[0] != entry["prompt"] or not _is_what_was_said(entry, move, told[1]):
                yield f"seat {seat} said something else under {request_id}"
        if entry["kind"] == "default":
            answered.update((each["seat"], entry["prompt"]) for each in entry["moves"])
    for key in seen.accepted:
        if found[key] == 0 and not _is_in_race(seen, key):
            yield f"the acknowledged move {key} is lost"
    yield from (f"the move {key} is there {count} times" for key, count in found.items() if count > 1)
    yield from (f"{key} is answered {count} times" for key, count in answered.items() if count > 1)


def _is_what_was_said(entry: Entry, move: Any, said: SubmitMove) -> bool:
    """Whether the entry has the move, or the choices of which it has one. `verify` knows which of them is drawn."""
    choices = [{"move": as_text(choice), "weight": choice.weight} for choice in said.choices]
    if choices:
        return bool(entry.get("choices") == choices) and move in (choice["move"] for choice in choices)
    return move is None or ("choices" not in entry and move == as_text(said))


def _played(entry: Entry) -> Iterator[tuple[int, str, Any]]:
    """Seat, request id and move of what bots did."""
    if entry["kind"] == "move":
        yield entry["seat"], entry["request_id"], entry["move"]
    elif entry["kind"] == "called":
        for call, request_id in zip(entry["calls"], entry["request_ids"], strict=True):
            yield call["seat"], request_id, None


def _is_in_race(seen: Seen, key: tuple[int, str]) -> bool:
    """Layouts and offers are not in the journal by name."""
    told = seen.said.get(key)
    return told is not None and told[1].WhichOneof("move") == "ubongo" and not told[1].ubongo.HasField("call")


def _flags(seen: Seen, entries: list[dict[str, Any]], is_blameless: Callable[[int], bool]) -> Iterator[str]:
    """Nobody is flagged who answers in time."""
    for entry in entries:
        for seat, why in _flagged(entry):
            if is_blameless(seat):
                yield f"seat {seat} is flagged ({why}) at {entry['at_ms']} ms, and answers in time"
    for seat, request_id, reason in seen.rejected:
        if reason in FORBIDDEN and is_blameless(seat):
            yield f"seat {seat} is told {reason} about {request_id}"


def _flagged(entry: Entry) -> Iterator[tuple[int, str]]:
    if entry["kind"] == "default" and entry["reason"] == "TIMED_OUT":
        yield from ((each["seat"], "TIMED_OUT") for each in entry["moves"])
    elif entry["kind"] == "agreed":
        yield from ((seat, "SILENT") for seat in entry["silent"])
    elif entry["kind"] == "forfeited" and entry["ending"] in OUR_FAULTS:
        yield entry["seat"], entry["ending"]


def _end(seen: Seen, last: Entry) -> Iterator[str]:
    """All bots are told the same, which is what the journal says."""
    if len(seen.ends) > 1:
        yield f"its bots are told {len(seen.ends)} different ends"
    for raw in seen.ends:
        ended = MatchEnded.FromString(raw)
        if last["kind"] == "voided":
            if ended.void_reason != last["reason"]:
                yield f"its bots are told {ended.void_reason!r}, and it was voided as {last['reason']}"
        elif list(ended.result.points) != last["outcome"]["points"]:
            yield f"its bots are told {list(ended.result.points)}, and it ended {last['outcome']['points']}"
        elif [Ending.Name(each).removeprefix("ENDING_") for each in ended.result.endings] != last["endings"]:
            yield "its bots are told other endings than its journal has"


def _record(record: bytes | None, length: int) -> Iterator[str]:
    """The record plays through."""
    if record is None:
        yield "it has no record"
        return
    verdict = verify_line(record)
    if verdict.fault:
        yield f"its record of {length} entries does not play through: {verdict.fault}"


def as_text(submit: SubmitMove | WeightedMove) -> Any:
    """A move of UGO! as the journal writes it; None for what the journal has no text for."""
    move = submit.ugo
    match move.WhichOneof("kind"):
        case "play":
            return {"play": _card(move.play)}
        case "arrange":
            return {"arrange": [_card(each) for each in move.arrange.cards]}
    return None


def _card(number: int) -> str:
    return f"{COLOURS[(number - 1) // 9]}{(number - 1) % 9}"
