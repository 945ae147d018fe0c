"""Writes down what happened: at the bots' ends of the wire, at the referees', and in Redis.

It says what must never be as soon as it sees it; what can be said only when all is over is for `model`.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from seatwise.result import Result
from seatwise.v1.lobby_service_pb2 import AttendResponse
from seatwise.v1.play_service_pb2 import MatchEnded, MoveRejected, PlayRequest, PlayResponse
from seatwise_server.store import keys
from simulation.redis_model import Redis, Stream


@dataclass
class Seen:
    """What is known of one match."""

    said: dict[tuple[int, str], tuple[int, Any]] = field(default_factory=dict)
    """Seat and request id to prompt and move, as the bot said it."""
    accepted: dict[tuple[int, str], None] = field(default_factory=dict)
    rejected: list[tuple[int, str, str]] = field(default_factory=list)
    """Seat, request id, reason."""
    ends: dict[bytes, None] = field(default_factory=dict)
    """What bots were told at the end, each wording once."""
    results: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How often which process of a bot was told the result of which seat."""
    journals: list[list[bytes]] = field(default_factory=list)
    """What was there when the record took its place; one, if all is well."""
    epoch: int = 0
    """The highest that was seen."""

    @property
    def state(self) -> str:
        """FINISHED or VOIDED, of a match that is over."""
        if self.journals:
            return "FINISHED" if b'"kind":"finished"' in self.journals[0][-1] else "VOIDED"
        return "VOIDED" if any(MatchEnded.FromString(raw).void_reason for raw in self.ends) else "FINISHED"


class Witness:
    """Of one world."""

    def __init__(self, redis: Redis, now: Callable[[], float]) -> None:
        self.matches: dict[str, Seen] = defaultdict(Seen)
        self.wrongs: list[str] = []
        """What must not be."""
        self.counts: Counter[str] = Counter()
        self._redis = redis
        self._now = now
        self._trace = hashlib.sha256()
        self.log: list[str] | None = None
        """All that is noted, for people; None where nobody reads it."""

    def note(self, *what: object) -> None:
        """One line of the trace."""
        line = f"{self._now():.6f} " + " ".join(map(str, what))
        self._trace.update(line.encode())
        if self.log is not None:
            self.log.append(line)

    @property
    def digest(self) -> str:
        """Of all that was noted: two runs that have the same did the same."""
        return self._trace.hexdigest()

    def count(self, what: str) -> None:
        """It has happened once more."""
        self.counts[what] += 1

    def wrong(self, text: str) -> None:
        """It must not be."""
        self.note("WRONG", text)
        self.wrongs.append(f"{self._now():.3f} {text}")

    # At the bots

    def said(self, bot: str, address: str, request: PlayRequest) -> None:
        """A bot says something to a referee."""
        for item in request.items:
            what = item.WhichOneof("action")
            self.note(bot, "->", address, item.match, item.seat, what, item.submit_move.request_id)
            if what == "submit_move":
                move = item.submit_move
                key = item.seat, move.request_id
                told = self.matches[item.match].said.setdefault(key, (move.prompt, move))
                if told[1] != move:
                    self.wrong(f"{bot} says two things under one request id {move.request_id}")

    def heard(self, bot: str, address: str, response: PlayResponse, epochs: dict[str, int]) -> None:
        """A bot reads what a referee said; `epochs` are those of this stream so far."""
        for item in response.items:
            what = item.WhichOneof("event") or ""
            if what == "ping":
                continue
            self.note(bot, "<-", address, item.match, item.seat, item.epoch, what)
            if 0 < item.epoch < epochs.get(item.match, 0):
                self.wrong(f"{address} falls back to epoch {item.epoch} of {item.match}")
            epochs[item.match] = max(item.epoch, epochs.get(item.match, 0))
            self._heard(item, what)

    def told(self, bot: str, response: AttendResponse) -> None:
        """A bot reads what the lobby said."""
        what = response.WhichOneof("event") or ""
        where = getattr(response, what) if what in ("offer", "closed") else None
        self.note(bot, "<- lobby", what, *((where.match, where.seat) if where else ()))

    def _heard(self, item: Any, what: str) -> None:
        seen = self.matches[item.match]
        if what == "move_accepted":
            seen.accepted[item.seat, item.move_accepted.request_id] = None
        elif what == "move_rejected":
            reason = MoveRejected.Reason.Name(item.move_rejected.reason).removeprefix("REASON_")
            self.counts[f"rejected {reason}"] += 1
            seen.rejected.append((item.seat, item.move_rejected.request_id, reason))
        elif what == "match_ended":
            ended = MatchEnded()
            ended.CopyFrom(item.match_ended)
            ended.ClearField("receipt")  # it is of the way by which the bot was told, and may be empty
            seen.ends[ended.SerializeToString(deterministic=True)] = None

    def result(self, process: str, result: Result) -> None:
        """The SDK tells a bot's program how a match ended."""
        self.note(process, "result", result.match, result.seat, result.points, result.void_reason)
        seen = self.matches[result.match]
        seen.results[process, result.seat] += 1
        if seen.results[process, result.seat] > 1:
            self.wrong(f"{process} is told the result of {result.match} twice")

    # At the referees

    def spoke(self, process: str, response: PlayResponse) -> None:
        """A referee writes to a bot: only of what is its own, now."""
        for item in response.items:
            if not item.epoch:
                continue
            fence = self._redis.peek(keys.match_fence(item.match)) or {}
            epoch, owner = int(fence.get(b"epoch", 0)), fence.get(b"owner", b"").decode()
            if (epoch, owner) != (item.epoch, process):
                self.wrong(
                    f"{process} speaks of {item.match} at epoch {item.epoch}, and it is {owner}'s at {epoch}"
                )
            seen = self.matches[item.match]
            if epoch < seen.epoch:
                self.wrong(f"the epoch of {item.match} falls from {seen.epoch} to {epoch}")
            seen.epoch = max(seen.epoch, epoch)
            if item.HasField("move_accepted") and b"retired" not in fence:
                self._check_kept(process, item.match, item.move_accepted.request_id)

    def _check_kept(self, process: str, match: str, request_id: str) -> None:
        """What is acknowledged is in the journal already."""
        journal: Stream | None = self._redis.peek(keys.match_journal(match))
        said = f'"{request_id}"'.encode()
        if journal and not any(said in journal.fields[each][1] for each in reversed(journal.ids)):
            self.wrong(f"{process} acknowledges {request_id} of {match}, and it is not in the journal")

    # In Redis

    def appended(self, host: str, command: list[bytes], answer: Any) -> None:
        """A referee has asked for an append: only who owns the match may be told that it is written."""
        fence = self._redis.peek(command[3].decode()) or {}
        asks = command[5], command[6]
        if answer in (1, 2) and asks != (fence.get(b"epoch"), fence.get(b"owner")):
            self.wrong(f"{host} appends to {command[4].decode()} as {asks}, and it is {fence}")

    def added(self, host: str, command: list[bytes], answer: Any) -> None:
        """The same of a single entry: its id names the epoch."""
        key, epoch = command[1].decode(), int(command[3].partition(b"-")[2]) + 1
        fence = self._redis.peek(key.removesuffix("journal") + "fence") or {}
        owner = fence.get(b"owner", b"").decode().partition("#")[0]
        if isinstance(answer, bytes) and (fence.get(b"epoch"), owner) != (b"%d" % epoch, host):
            self.wrong(f"{host} adds to {key} at epoch {epoch}, and it is {fence}")

    def unlinked(self, key: bytes, value: Any) -> None:
        """A key is dropped: a journal gives way to the record, and no meta of a match that has had an owner goes."""
        if key.endswith(b":meta") and self._redis.peek(key.decode().removesuffix("meta") + "fence"):
            self.wrong(f"{key.decode()} is dropped, and the match has had an owner")
        if isinstance(value, Stream) and key.endswith(b":journal"):
            match = key.decode().partition("{match:")[2].partition("}")[0]
            journal = [value.fields[each][1] for each in value.ids]
            self.note("retired", match, len(journal))
            self.matches[match].journals.append(journal)
