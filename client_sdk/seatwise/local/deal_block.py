"""Blocks of matches on the same deal, at local tables: the unit in which two versions of a bot are compared."""

from __future__ import annotations

import hmac
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from seatwise.bot import BotFactory, Failure, NewFailures
from seatwise.kits import use_deck_files
from seatwise.local.matches import LocalWaiter, complete_game_options, derive_series_key, make_local_setup
from seatwise.local.table import LocalPlayer, LocalTable
from seatwise.samples import load_bot, load_version
from seatwise.standings import PlayedMatch
from seatwise.units import UnitAnswer, UnitPlan
from seatwise.units.plan import UnitPlayer
from seatwise_referee.setup import DealSet, Setup

OLD, NEW = 0, 1
"""The places of the two versions among the bots of a plan. The opponents follow."""


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """The settings of a comparison, which are the same for all its blocks."""

    game: str
    bots: tuple[str, ...]
    """The old version, the new one, and then the opponents: samples, or FILE.py:CLASS."""

    names: tuple[str, ...]
    """The names of the bots."""

    options: Mapping[str, int | str]
    seed: str
    decks: tuple[str, ...] = ()
    """Files with decks of one's own."""

    def to_unit_plan(self) -> UnitPlan:
        """Return the plan of units, one for each block."""
        files = (*(bot for bot in self.bots if ":" in bot), *self.decks)
        return UnitPlan("seatwise.local.deal_block:open_blocks", asdict(self), files)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> BlockPlan:
        """Return the plan that the settings of its units are."""
        return cls(
            told["game"], tuple(told["bots"]), tuple(told["names"]), told["options"], told["seed"], tuple(told["decks"])
        )  # fmt: skip

    @property
    def seats(self) -> int:
        """How many seats each match has."""
        return max(2, len(self.bots) - 1)

    @property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """The matches of a block: by seat, the place of the bot in `bots`.

        Without opponents the versions play each other, in both orders. With opponents each version takes each seat once, and the
        opponents keep their order.
        """
        others = tuple(range(NEW + 1, len(self.bots)))
        if not others:
            return (OLD, NEW), (NEW, OLD)
        seats = range(self.seats)
        return tuple((*others[:seat], version, *others[seat:]) for seat in seats for version in (OLD, NEW))


@dataclass(frozen=True, slots=True)
class PlayedBlock:
    """The outcome of one block, as a worker tells it."""

    difference: float | None
    """The mean points by which the new version is ahead of the old one on this deal; `None` if a match was voided."""

    thought_ms: tuple[float, float]
    """The time that the old and the new version thought."""

    moves: tuple[int, int]
    failures: tuple[int, int]
    """How often they raised, or answered with no legal move."""

    @classmethod
    def from_answer(cls, answer: UnitAnswer) -> PlayedBlock:
        """Return the block that a worker has told."""
        told = answer.result
        thought_ms, moves, failures = answer.note["thought_ms"], told["moves"], told["failures"]
        return cls(told["difference"], tuple(thought_ms), tuple(moves), tuple(failures))


def open_blocks(settings: Mapping[str, Any]) -> UnitPlayer:
    """Return what plays blocks as units. Their times are notes, because no two runs have the same."""
    plan = BlockPlan.from_json(settings)
    use_deck_files(plan.decks)
    failures = NewFailures()
    player = BlockPlayer(plan, failures, LocalWaiter())

    def play_unit(number: int, _: Any) -> tuple[Any, dict[str, Any]]:
        block = asdict(player.play_block(number))
        thought_ms = block.pop("thought_ms")
        return block, {"thought_ms": thought_ms, "failures": failures.take_new()}

    return play_unit


class BlockPlayer:
    """Plays blocks in this process."""

    def __init__(
        self, plan: BlockPlan, failed: Callable[[Failure], None], wait: Callable[[Any], Any]
    ) -> None:
        self._plan = plan
        self._failed = failed
        self._wait = wait
        self._factories: Sequence[BotFactory] = _load_versions(plan)
        self._options = complete_game_options(plan.game, plan.seats, plan.options)
        self._key = derive_series_key(plan.seed)

    def play_block(self, number: int) -> PlayedBlock:
        """Play all matches of a block. The same plan and number give the same matches."""
        tables = self._plan.tables
        played = [self._play_table(number, place, bots) for place, bots in enumerate(tables)]
        totals = (
            tuple(_total(tables, played, version, name) for version in (OLD, NEW))
            for name in ("thought_ms", "moves", "failures")
        )
        return PlayedBlock(_difference(tables, played), *totals)

    def _play_table(self, number: int, place: int, bots: tuple[int, ...]) -> PlayedMatch:
        random.seed(self._derive(number, "random"))
        players = [
            LocalPlayer(
                name=self._plan.names[bot],
                factory=self._factories[bot],
                nonce=self._derive(number, f"nonce/{seat}"),
                chance=random.Random(self._derive(number, f"chance/{seat}")),
            )
            for seat, bot in enumerate(bots)
        ]
        setup = self._make_setup(number, place, bots)
        return LocalTable(setup, players, self._failed, self._wait).play_match()

    def _make_setup(self, number: int, place: int, bots: tuple[int, ...]) -> Setup:
        name, size = self._derive(number, "name").hex()[:16], len(self._plan.tables)
        setup = make_local_setup(
            self._plan.game, f"{name}-{place + 1}", [self._plan.names[bot] for bot in bots], self._options,
            self._derive(number, f"seed/{place}"),
        )  # fmt: skip
        return replace(setup, deal_set=DealSet(f"sets/{name}", place + 1, size, self._derive(number, "deal")))

    def _derive(self, number: int, what: str) -> bytes:
        return hmac.digest(self._key, f"block/{number}/{what}".encode(), "sha256")


def _load_versions(plan: BlockPlan) -> list[BotFactory]:
    """Load all bots. Two versions from different folders get modules of their own."""
    folders = {os.path.dirname(os.path.abspath(bot.rpartition(":")[0])) for bot in plan.bots[: NEW + 1]}
    load = load_bot if len(folders) == 1 else load_version
    return [(load if place <= NEW else load_bot)(bot, plan.game) for place, bot in enumerate(plan.bots)]


def _difference(tables: Sequence[tuple[int, ...]], played: Sequence[PlayedMatch]) -> float | None:
    if any(match.void_reason for match in played):
        return None
    total = {OLD: 0, NEW: 0}
    for bots, match in zip(tables, played, strict=True):
        for bot, points in zip(bots, match.points, strict=True):
            if bot in total:
                total[bot] += points
    return (total[NEW] - total[OLD]) / sum(bots.count(NEW) for bots in tables)


def _total(tables: Sequence[tuple[int, ...]], played: Sequence[PlayedMatch], version: int, field: str) -> Any:
    return sum(
        getattr(match, field)[seat]
        for bots, match in zip(tables, played, strict=True)
        for seat, bot in enumerate(bots)
        if bot == version
    )
