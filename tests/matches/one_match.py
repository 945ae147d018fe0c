"""A shell without a world: it writes entries down, confirms them and keeps what a match asks for."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

from seatwise_referee import record
from seatwise_referee.decision import Effect
from seatwise_referee.game import Json, Seat
from seatwise_referee.journal import Entry, JournalEntry
from seatwise_referee.match import Match
from seatwise_referee.setup import Setup
from seatwise_referee.time_control import TimeControl

SEED = bytes(range(32))
FREE_MS, BANK_MS, GRACE_MS = 1000, 500, 50
ALLOWED_MS = FREE_MS + BANK_MS + GRACE_MS


def nonce(seat: int) -> bytes:
    """Each seat's own."""
    return bytes([0xA0 + seat]) * 32


def setup_of(seats: int = 2, rounds: int = 1, name: str = "matches/test", **limits: Any) -> Setup:
    """A match of UGO! with short limits."""
    limits = {
        "free_ms": {"card": FREE_MS, "arrange": FREE_MS},
        "bank_ms": BANK_MS,
        "grace_ms": GRACE_MS,
        "setup_ms": 5000,
        "allowance_cap_ms": 100,
        **limits,
    }
    return Setup(
        match=name,
        game="ugo",
        rules_version="1",
        options={"rounds": rounds},
        bots=tuple(f"bots/b{seat}/versions/1" for seat in range(seats)),
        time_control=TimeControl(**limits),
        seed=SEED,
    )


class Desk:
    """One match and its journal. `now` stands still unless a test moves it."""

    def __init__(self, seats: int = 2, rounds: int = 1, **limits: Any) -> None:
        self.setup = setup_of(seats, rounds, **limits)
        self.match = Match(self.setup)
        self.journal: list[Entry] = []
        self.now = 0
        self._requests = count(1)

    def do(self, effects: Iterable[Effect]) -> list[Effect]:
        """Writes and confirms; all effects, those of the confirmation too."""
        effects = list(effects)
        written = [effect for effect in effects if isinstance(effect, JournalEntry)]
        self.journal.extend(written)
        return [*effects, *self.match.confirm_entries(self.now)] if written else effects

    @property
    def asked(self) -> Seat:
        """The one seat that is asked."""
        prompt = self.match.position.prompt
        assert prompt is not None
        return min(prompt.seats)

    @property
    def prompt(self) -> int:
        """The number of the open prompt, 0 if none."""
        return self.match.position.prompt.number if self.match.position.prompt else 0

    def seat(self, seat: int) -> Any:
        """Where the seat stands."""
        return self.match.position.seats[seat]

    def sit(self, *seats: int) -> list[Effect]:
        """The seats sit down, with their nonces."""
        return [
            effect for seat in seats for effect in self.do(self.match.sit(Seat(seat), nonce(seat), self.now))
        ]

    def sit_all(self) -> list[Effect]:
        """All sit down; the match is dealt."""
        return self.sit(*range(len(self.setup.bots)))

    def default_move(self) -> Any:
        """A legal move of the asked seat."""
        return self.match.game.default_move(self.match.position.state, self.asked)

    def illegal_move(self) -> Any:
        """Laying no cards is never legal."""
        return self.match.game.move_from_json({"arrange": []})

    def submit(
        self, move: Any = None, request_id: str | None = None, seat: int | None = None
    ) -> list[Effect]:
        """The asked seat moves; if nothing is said, legally."""
        mover = self.asked if seat is None else Seat(seat)
        move = self.default_move() if move is None else move
        request_id = request_id or f"r{next(self._requests)}"
        return self.do(self.match.submit_move(mover, self.prompt, request_id, move, self.now))

    def submit_illegal(self) -> list[Effect]:
        """The asked seat moves against the rules."""
        return self.submit(self.illegal_move())

    def hand(self, allowance_ms: int = 0) -> None:
        """The open prompt reaches the transport."""
        self.match.note_delivery(self.asked, self.prompt, self.now, allowance_ms)

    def tick(self) -> list[Effect]:
        """The timer rings."""
        return self.do(self.match.tick(self.now))

    def play_until(self, seat: int) -> None:
        """Legal moves at once, until this seat is asked."""
        while self.asked != seat:
            self.submit()

    def play_out(self, ms_each: int = 0) -> None:
        """Legal moves to the end of the match."""
        while not self.match.is_over:
            self.now += ms_each
            self.submit()

    def record(self) -> dict[str, Json]:
        """The record of the finished match."""
        return record.build_record(self.setup, self.journal)

    def line(self) -> bytes:
        """The record as stored."""
        return record.record_line(self.record())


def only(kind: type[Any], effects: list[Effect]) -> Any:
    """The one effect of that kind."""
    (found,) = [effect for effect in effects if isinstance(effect, kind)]
    return found


def kinds(entries: Iterable[Entry]) -> list[str]:
    """What kinds of entries these are."""
    return [entry.kind for entry in entries]


def dealt(seats: int = 2, rounds: int = 1, **limits: Any) -> Desk:
    """A match in which all have sat."""
    desk = Desk(seats, rounds, **limits)
    desk.sit_all()
    return desk
