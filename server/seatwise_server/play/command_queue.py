"""Runs the commands of one match one after the other. No effect of a command is shown before the journal has it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from seatwise_referee.effects import Effect, WriteEntry
from seatwise_referee.journal import encode_entry
from seatwise_server.counts import COUNTS
from seatwise_server.store.group_commit.writer import AppendResult

MOST_WAITING_COMMANDS = 8
"""The most commands of one seat that may wait in the queue."""

Command: TypeAlias = Callable[[int], list[Effect]]
"""A command for a match. It takes the match's time, in milliseconds, and returns the effects."""


class MatchJournal(Protocol):
    """The journal that entries are appended to; see `Flusher`."""

    @property
    def healthy(self) -> bool:
        """Whether the store answers."""
        ...

    def append_entries(
        self,
        match: str,
        epoch: int,
        owner: str,
        first_seq: int,
        entries: list[bytes],
        done: Callable[[AppendResult], None],
    ) -> None:
        """Queues the entries; `done` is called once, in the event loop."""
        ...


class CommandOwner(Protocol):
    """The match whose commands are queued."""

    name: str
    epoch: int
    owner: str

    def decide(self, command: Command, at: float) -> list[Effect]:
        """Returns the effects of a command that came at `at`, on the clock of the loop."""
        ...

    def perform_effects(self, effects: list[Effect]) -> None:
        """Performs effects, in their order."""
        ...

    def on_kept(self, effects: list[Effect], entries: Sequence[bytes]) -> None:
        """Called when the journal has these entries: now their effects may be shown."""
        ...

    def lose_ownership(self, answer: AppendResult) -> None:
        """Called when the journal has refused: the match is another referee's."""
        ...


class CommandQueue:
    """The commands of one match that wait, and the effects that wait for the journal."""

    __slots__ = (
        "_asked_s",
        "_commands",
        "_entries",
        "_held",
        "_is_closed",
        "_journal",
        "_loop",
        "_owner",
        "_waiting",
    )

    def __init__(self, owner: CommandOwner, journal: MatchJournal, seats: int) -> None:
        self._owner = owner
        self._journal = journal
        self._loop = asyncio.get_running_loop()
        self._commands: list[tuple[int | None, Command, float]] = []
        """A list, because it is short and mostly empty: an empty deque takes 760 bytes, and there are many tables."""
        self._waiting = [0] * seats
        """The number of commands that wait, for each seat."""
        self._held: list[Effect] | None = None
        """The effects that wait for the journal's answer; None if nothing was appended."""
        self._entries: list[bytes] = []
        """The entries that were appended last."""
        self._asked_s = 0.0
        """The time of that append, on the clock of the loop."""
        self._is_closed = False

    @property
    def is_writing(self) -> bool:
        """Whether the journal has not answered yet."""
        return self._held is not None

    def has_room(self, seat: int) -> bool:
        """Whether one more command of this seat may wait."""
        return self._waiting[seat] < MOST_WAITING_COMMANDS

    def add_command(self, seat: int | None, command: Command, at: float) -> None:
        """Adds a command of a seat, or of the server itself, that came at `at`, and runs what can be run."""
        if not self._is_closed:
            if seat is not None:
                self._waiting[seat] += 1
            self._commands.append((seat, command, at))
            self.run_commands()

    def put_first(self, command: Command) -> None:
        """Adds a command of the server itself that goes before all that wait, and runs what can be run."""
        self._commands.insert(0, (None, command, self._loop.time()))
        self.run_commands()

    def run_commands(self) -> None:
        """Runs one command after the other. While the store is away they wait."""
        while self._commands and self._held is None and not self._is_closed and self._journal.healthy:
            seat, command, at = self._commands.pop(0)
            if seat is not None:
                self._waiting[seat] -= 1
            self._append_effects(self._owner.decide(command, at))

    def close_queue(self) -> None:
        """Drops the commands that wait and accepts no more. An outstanding answer of the journal is still reported."""
        self._is_closed = True
        self._commands.clear()

    def forget_journal(self) -> None:
        """Ignores any outstanding answer of the journal too, because the match is given up."""
        self.close_queue()
        self._held = None

    def _append_effects(self, effects: list[Effect]) -> None:
        entries = [effect.entry for effect in effects if isinstance(effect, WriteEntry)]
        owner = self._owner
        if not entries:
            owner.perform_effects(effects)
            return
        self._held, self._asked_s = effects, self._loop.time()
        self._entries = data = [encode_entry(entry) for entry in entries]
        self._journal.append_entries(
            owner.name, owner.epoch, owner.owner, entries[0].seq, data, self._on_appended
        )

    def _on_appended(self, answer: AppendResult) -> None:
        """Handles the journal's answer: only now may the effects be shown."""
        effects, self._held = self._held, None
        if effects is None:
            return
        if not answer.is_kept:
            self._owner.lose_ownership(answer)
            return
        self._count_entries(effects)
        self._owner.on_kept(effects, self._entries)
        self.run_commands()

    def _count_entries(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, WriteEntry):
                COUNTS.count_entry(effect.entry)
        COUNTS.count_append(self._loop.time() - self._asked_s)
