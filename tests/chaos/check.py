"""Holds what bots wrote down against the record of their match: lost, doubled, wrongly flagged.

It knows the rules of time and of the journal only as the documents say them, and shares no code with the
server: what a seat may be charged is what its own bot reckons.
"""

from __future__ import annotations

import base64
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from chaos.history import Line
from seatwise.games.ubongo.v1 import ubongo_pb2
from seatwise.games.ugo.v1 import ugo_pb2
from seatwise.kits.codecs import CODECS
from seatwise_referee.game import Seat
from seatwise_referee.games.registry import GAMES
from seatwise_referee.games.ubongo import Lay
from seatwise_referee.journal import entry_from_json
from seatwise_referee.position import first_position, position_after
from seatwise_referee.verify import verify_line
from seatwise_referee.verify.header import setup_of

SLACK_MS = 2000
"""So much more than its bot's own reckoning may a charge be: the machine is crowded, and sitting down takes time."""

VIEWS: dict[str, Any] = {"ugo": ugo_pb2.View, "ubongo": ubongo_pb2.View}

Views = Mapping[tuple[int, int], Sequence[Any]]
"""All that a seat could see at a prompt."""

Told = Mapping[int, Sequence[Line]]
"""What the bot of each seat wrote down about one match, in its order."""


@dataclass
class Findings:
    """What was found, match by match."""

    checked: int = 0
    """Acknowledged moves."""
    takeovers: int = 0
    views: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    contradicted: list[str] = field(default_factory=list)
    """What a bot was shown or told that the record says otherwise."""
    wrong_flags: list[str] = field(default_factory=list)


class Check:
    """One finished match."""

    def __init__(self, line: bytes, told: Told, excused: Iterable[int], findings: Findings) -> None:
        self.record: dict[str, Any] = json.loads(line)
        self.match = self.record["match"]
        self.told = told
        self.excused = frozenset(excused)
        """Seats whose own bot was killed or stopped meanwhile: what they were late for is their fault."""
        self.findings = findings
        self.is_race = self.record["game"] == "ubongo"
        """Then bots are shown what lies, and that is not in the record; and they answer many times."""
        self._codec = CODECS[self.record["game"]]
        self._view_message = VIEWS[self.record["game"]]
        self._line = line

    def run(self) -> None:
        """All of it."""
        fault = verify_line(self._line).fault
        if fault is not None:
            self.findings.lost.append(f"{self.match}: its record does not verify: {fault}")
        self.findings.takeovers += sum(entry["kind"] == "taken_over" for entry in self.record["entries"])
        self._check_repeats()
        self._check_flags()
        views = self._views()
        for seat, lines in self.told.items():
            self._check_acknowledged(seat, lines)
            self._check_shown(seat, lines, views)
            self._check_lying(seat, lines)
            self._check_end(seat, lines)

    def _moves(self) -> Iterable[dict[str, Any]]:
        """What was acknowledged as the record has it: moves, and calls in a race."""
        for entry in self.record["entries"]:
            if entry["kind"] == "move":
                yield entry
            elif entry["kind"] == "called":
                for call in entry["calls"]:
                    yield {**call, "prompt": entry["prompt"], "move": {"call": True}}

    def _say(self, where: list[str], seat: int, text: str) -> None:
        where.append(f"{self.match} seat {seat}: {text}")

    # What was acknowledged is there, once

    def _check_repeats(self) -> None:
        played = Counter((move["seat"], move["prompt"]) for move in self._moves())
        for (seat, prompt), times in played.items():
            if times > 1:
                self._say(
                    self.findings.doubled, seat, f"prompt {prompt} is answered {times} times in the record"
                )

    def _check_acknowledged(self, seat: int, lines: Sequence[Line]) -> None:
        said = {line["request_id"]: line for line in lines if line["what"] == "said"}
        played = {(move["seat"], move["prompt"]): move for move in self._moves()}
        answers: dict[int, str] = {}
        for request_id, told in _acknowledged(lines).items():
            self.findings.checked += 1
            move = said.get(request_id)
            if move is None:
                self._say(self.findings.lost, seat, f"request {request_id} was acknowledged, and never made")
                continue
            prompt = move["prompt"]
            if answers.setdefault(prompt, request_id) != request_id:
                self._say(self.findings.doubled, seat, f"two answers to prompt {prompt} were acknowledged")
            self._check_move(seat, move, told, played.get((seat, prompt)), lines)

    def _check_move(
        self, seat: int, said: Line, told: Line, entry: dict[str, Any] | None, lines: Sequence[Line]
    ) -> None:
        if entry is None:
            self._say(self.findings.lost, seat, f"its answer to prompt {said['prompt']} is not in the record")
        elif entry["move"] != said["move"]:
            found = f"{entry['move']} instead of {said['move']}"
            self._say(self.findings.lost, seat, f"for prompt {said['prompt']} the record has {found}")
        elif entry["charged_ms"] != told["charged_ms"]:
            charges = f"{told['charged_ms']} ms, the record says {entry['charged_ms']}"
            self._say(self.findings.wrong_flags, seat, f"told to be charged {charges}")
        elif seat not in self.excused and not self.is_race:
            self._check_charge(seat, said, entry["charged_ms"], lines)

    def _check_charge(self, seat: int, said: Line, charged_ms: int, lines: Sequence[Line]) -> None:
        used_ms = _used_ms(lines, said["prompt"])
        if used_ms is not None and charged_ms > used_ms + SLACK_MS:
            text = f"charged {charged_ms} ms for prompt {said['prompt']}, of which it used {used_ms:.0f}"
            self._say(self.findings.wrong_flags, seat, text)

    # What was shown is what happened

    def _views(self) -> Views:
        """What each seat sees, by prompt; 0 is the end."""
        setup, game = setup_of(self.record), GAMES[self.record["game"]]
        position, views = first_position(setup), defaultdict[tuple[int, int], list[Any]](list)
        for body in self.record["entries"]:
            position = position_after(position, entry_from_json(body), setup, game)
            if position.state is not None:
                number = position.prompt.number if position.prompt else 0
                for seat in range(len(setup.bots)):
                    views[number, seat].append(self._on_record(game.view(position.state, Seat(seat))))
        return views

    def _check_shown(self, seat: int, lines: Sequence[Line], views: Views) -> None:
        for prompt, view in self._shown(lines):
            self.findings.views += 1
            if self._on_record(view) not in views.get((prompt, seat), ()):
                text = f"was shown at prompt {prompt} what the record does not have"
                self._say(self.findings.contradicted, seat, text)

    def _shown(self, lines: Iterable[Line]) -> Iterable[tuple[int, Any]]:
        """Every view, and the prompt it came with."""
        for line in lines:
            if line["what"] == "shown" and line["view"]:
                message = self._view_message.FromString(base64.b64decode(line["view"]))
                yield line["prompt"], self._codec.decode_view(message)

    def _on_record(self, view: Any) -> Any:
        """Without what lies and is offered in a round that is open: that is on no record."""
        return replace(view, layout=(), laid=(), offers=()) if self.is_race else view

    def _check_lying(self, seat: int, lines: Sequence[Line]) -> None:
        """What a seat is shown as lying before it is what it has laid in that round, or nothing."""
        laid = {(line["prompt"], str(line["move"])) for line in lines if line["what"] == "said"}
        for prompt, view in self._shown(lines) if self.is_race else ():
            move = GAMES[self.record["game"]].move_to_json(Lay(view.layout))
            if prompt and view.layout and (prompt, str(move)) not in laid:
                self._say(
                    self.findings.contradicted, seat, f"was shown at prompt {prompt} what it never laid"
                )

    # Nobody is blamed for what was our fault

    def _check_flags(self) -> None:
        for entry in self.record["entries"]:
            for seat, text in _blamed(entry):
                if seat not in self.excused:
                    self._say(self.findings.wrong_flags, seat, text)
        for seat, lines in self.told.items():
            for line in lines:
                if line["what"] == "rejected" and line["reason"] in BLAMES and seat not in self.excused:
                    self._say(self.findings.wrong_flags, seat, f"its answer was rejected: {line['reason']}")

    # One result

    def _check_end(self, seat: int, lines: Sequence[Line]) -> None:
        ends = [line for line in lines if line["what"] == "ended"]
        seed = "" if "deal_set" in self.record else self.record["seed"]  # others may play the same deals
        right = {"ranks": self.record["result"]["ranks"], "seed": seed, "void": ""}
        for end in ends:
            if {key: end[key] for key in right} != right:
                self._say(
                    self.findings.contradicted, seat, f"was told another result than the record's: {end}"
                )
        if not ends and seat not in self.excused:
            self._say(self.findings.lost, seat, "was never told the result")


BLAMES = frozenset({"ILLEGAL", "TOO_LATE", "MALFORMED", "NOT_YOUR_SEAT"})
"""Reasons that no honest bot which plays legal moves at once should ever hear."""


def _acknowledged(lines: Iterable[Line]) -> dict[str, Line]:
    """By request id. A repeat of the request is acknowledged again, and is the same move."""
    found: dict[str, Line] = {}
    for line in lines:
        if line["what"] == "accepted":
            found.setdefault(line["request_id"], line)
    return found


def _used_ms(lines: Iterable[Line], prompt: int) -> float | None:
    """From when the bot was first asked to when it first answered; whatever came after that was not its doing."""
    asked_at = None
    for line in lines:
        if line.get("prompt") == prompt:
            if line["what"] == "shown" and line["to_act"] and asked_at is None:
                asked_at = line["at"]
            elif line["what"] == "said" and asked_at is not None:
                return float(line["at"] - asked_at) * 1000
    return None


def _blamed(entry: Mapping[str, Any]) -> Iterable[tuple[int, str]]:
    """Whom an entry of the record blames, and for what."""
    if entry["kind"] == "forfeited":
        yield entry["seat"], f"forfeited as {entry['ending']}"
    elif entry["kind"] == "rejected":
        yield entry["seat"], f"rejected at prompt {entry['prompt']} as {entry['reason']}"
    elif entry["kind"] == "agreed":
        for seat in entry["silent"]:
            yield seat, f"gave no sign of life at prompt {entry['prompt']}"
    elif entry["kind"] == "default" and entry["reason"] == "TIMED_OUT":
        for each in entry["moves"]:
            yield each["seat"], f"timed out at prompt {entry['prompt']}"


# Logs of ladders and leagues


def wrongs_of_log(
    competition: str, logged: Iterable[tuple[str, str]], finished: Mapping[str, str]
) -> list[str]:
    """What is wrong with the log of a ladder or league, in words.

    Both name a match and the last hash of its record: `logged` as the log has it, `finished` as the records of all finished matches
    have it that count there.
    """
    chains = dict[str, list[str]]()
    for match, chain in logged:
        chains.setdefault(match, []).append(chain)
    wrong = [f"{match} is not in the log of {competition}" for match in finished.keys() - chains.keys()]
    for match, found in chains.items():
        if found != [finished.get(match)]:
            wrong.append(f"{competition} logged {match} as {found}, its record has {finished.get(match)}")
    return sorted(wrong)


# Gaps

Spans = Sequence[tuple[float, float]]
"""From when until when, on the clock of the histories."""


def longest_gap(told: Told, excuses: Spans) -> float:
    """The longest time in which no seat of a match heard or said anything, while no bot of it was away."""
    at = sorted(
        line["at"] for lines in told.values() for line in lines if line["what"] in ("shown", "accepted")
    )
    gaps = (until - since for since, until in pairwise(at) if not overlap(excuses, since, until))
    return max(gaps, default=0.0)


def overlap(spans: Spans, since: float, until: float) -> bool:
    """Whether any of the spans has a part of this time."""
    return any(begin < until and since < end for begin, end in spans)
