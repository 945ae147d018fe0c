"""Matches without a server: the same rules and the same records, with all bots in this process."""

from __future__ import annotations

import hmac
import os
import random
import re
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from hashlib import sha256
from itertools import permutations
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from seatwise.bot import BotFactory, Failure, Failures, check_bot, is_awaitable
from seatwise.errors import UsageError
from seatwise.kits import DEFAULT_GAME, find_kit
from seatwise.local.recorded_deal import RecordedDeal
from seatwise.local.table import LocalPlayer, LocalTable, local_time_control, local_times
from seatwise.output import writing_file
from seatwise.samples import load_bot
from seatwise.standings import PlayedMatch, Results
from seatwise_referee.game import BadOptions, Options
from seatwise_referee.games.registry import GAMES
from seatwise_referee.setup import MEASURED, PRICED, Setup

if TYPE_CHECKING:
    from asyncio import Runner


Seed: TypeAlias = "int | str | bytes"
Entrant: TypeAlias = "BotFactory | str"
"""A bot's class, any function that makes bots, or the name of a sample."""


def play(
    bots: Sequence[Entrant],
    *,
    game: str = DEFAULT_GAME,
    matches: int = 1,
    seed: Seed | None = None,
    options: Mapping[str, int | str] | None = None,
    records: str | os.PathLike[str] | None = None,
    is_rotating: bool = True,
    on_match: Callable[[PlayedMatch], None] | None = None,
    deal: RecordedDeal | None = None,
    times: str = PRICED,
) -> Results:
    """Play a series of matches in this process, without a server.

    No bot runs out of time, however slow the machine is. An exception of a bot is shown, and counts as a time-out.

    Args:
        bots: One entrant for each seat, 2 to 4: a class derived from `Bot`, a function that makes bots, the name of a
            sample ("random", "greedy", "counting"), or `"FILE.py:CLASS"`.
        game: The game, as in "ugo".
        matches: The number of matches, at least 1.
        seed: Any number, text or bytes. Deals, match names, and the numbers that bots draw from `self.chance` or from
            the module `random` follow from it. Without a seed each series is different.
        options: Options of the game, as in `{"rounds": 1}`. An option that is not named has its default.
        records: A file to write the records to, one line for each match. An existing file is replaced at the end.
        is_rotating: Whether the bots change seats from match to match, through all orders.
        on_match: A function that is called with each match as soon as it is over.
        deal: A deal out of a record, which is played again in every match. The bots then sit as they are given.
        times: In a race, "priced" charges a bot for what it does, so that the machine does not matter. "measured" charges
            the real time in which it builds.

    Returns:
        The matches and the standings. `print` shows them as a table.

    Raises:
        UsageError: The series cannot be played, or `records` cannot be written. The message says why.

    Example:
        >>> results = play(["random", "greedy"], matches=10, seed=1, options={"rounds": 1})
        >>> len(results)
        10
        >>> results.standings[1].bot
        'greedy'
    """
    if _is_inside_a_loop():
        return _in_a_thread(lambda: play(
            bots, game=game, matches=matches, seed=seed, options=options, records=records,
            is_rotating=is_rotating, on_match=on_match, deal=deal, times=times,
        ))  # fmt: skip
    if deal is not None:
        game, options, is_rotating = deal.setup.game, deal.setup.options, False
    series = _Series(game, bots, options or {}, matches, seed, is_rotating, deal, times)
    played = []
    with ExitStack() as stack:
        wait = stack.enter_context(LocalWaiter())
        file = stack.enter_context(_writing_records(records)) if records is not None else None
        failures = Failures()
        stack.callback(failures.close)
        stack.enter_context(restoring_chance())
        for number in range(matches):
            table = series.make_table(number, failures, wait)
            played.append(table.play_match())
            if file is not None:
                file.write(table.write_record() or b"")
            if on_match is not None:
                on_match(played[-1])
    return Results(game, series.names, tuple(played))


class _Series:
    """The settings of a series, which are the same for all its matches."""

    def __init__(
        self,
        game: str,
        bots: Sequence[Entrant],
        options: Mapping[str, int | str],
        matches: int,
        seed: Seed | None,
        is_rotating: bool,
        deal: RecordedDeal | None,
        times: str,
    ) -> None:
        if times not in (PRICED, MEASURED):
            raise UsageError(f"times: must be {PRICED} or {MEASURED}, not {times!r:.20}")
        find_kit(game)
        self._times = local_times(game, times)
        if deal is not None and len(deal.setup.bots) != len(bots):
            seats = len(deal.setup.bots)
            raise UsageError(f"the recorded match has {seats} seats, and {len(bots)} bots are given")
        if matches < 1:
            raise UsageError(f"matches: must be 1 or more, not {matches}")
        self._deal = deal
        self._game = game
        self._factories = _load_factories(bots, game)
        self._options = complete_game_options(game, len(self._factories), options)
        self.names = name_entrants(bots)
        self._orders = _seat_orders(len(bots)) if is_rotating else [tuple(range(len(bots)))]
        self._has_seed = seed is not None
        self._key = derive_series_key(seed)

    def make_table(
        self, number: int, failed: Callable[[Failure], None], wait: Callable[[Any], Any]
    ) -> LocalTable:
        """Return the table of one match."""
        moves, last_move = (self._deal.moves, self._deal.last_move) if self._deal else ({}, None)
        return LocalTable(self.make_setup(number), self.make_players(number), failed, wait, moves, last_move)

    def make_setup(self, number: int) -> Setup:
        """Return the set-up of one match."""
        if self._deal is not None:
            return replace(self._deal.setup, bots=_full_names(self.names), times=self._times)
        name, seed = (self._derive_bytes(number, what) for what in ("name", "seed"))
        names = [self.names[each] for each in self._seat_order(number)]
        setup = make_local_setup(self._game, name.hex()[:16], names, self._options, seed)
        return replace(setup, times=self._times)

    def make_players(self, number: int) -> list[LocalPlayer]:
        """Return the players of one match by seat. If there is a seed, seed the module `random` as well."""
        if self._has_seed:
            random.seed(self._derive_bytes(number, "random"))
        return [
            LocalPlayer(
                name=self.names[each],
                factory=self._factories[each],
                nonce=self._deal.nonces[seat] if self._deal else self._derive_bytes(number, f"nonce/{seat}"),
                chance=random.Random(self._derive_bytes(number, f"chance/{seat}")),
            )
            for seat, each in enumerate(self._seat_order(number))
        ]

    def _seat_order(self, number: int) -> tuple[int, ...]:
        return self._orders[number % len(self._orders)]

    def _derive_bytes(self, number: int, what: str) -> bytes:
        return hmac.digest(self._key, f"match/{number}/{what}".encode(), "sha256")


def _load_factories(bots: Sequence[Entrant], game: str) -> list[BotFactory]:
    if isinstance(bots, str):
        raise UsageError(f'bots: a list is wanted, as in ["{bots}", "random"]')
    return [load_bot(bot, game) if isinstance(bot, str) else check_bot(bot, game) for bot in bots]


def complete_game_options(game: str, seats: int, given: Mapping[str, int | str]) -> Options:
    sizes = GAMES[game].table_sizes
    if seats not in sizes:
        raise UsageError(f"{game} is played by {sizes[0]} to {sizes[-1]} bots, not by {seats}")
    try:
        return GAMES[game].complete_options(given)
    except BadOptions as error:
        raise UsageError(f"option {error}") from None


def name_entrants(bots: Sequence[Entrant]) -> tuple[str, ...]:
    """Return each bot's name. Equal names are numbered."""
    names: list[str] = []
    for bot in bots:
        name = bot.rpartition(":")[2] if isinstance(bot, str) else getattr(bot, "__name__", "bot")
        number = sum(1 for each in names if each.partition(" ")[0] == name) + 1
        names.append(f"{name} {number}" if number > 1 else name)
    return tuple(names)


def make_local_setup(game: str, match: str, names: Sequence[str], options: Options, seed: bytes) -> Setup:
    """Return the set-up of a match at a local table, in which no bot runs out of time."""
    rules = GAMES[game]
    return Setup(
        f"matches/{match}", game, rules.rules_version, options, _full_names(names), local_time_control(game), seed,
        durability="none", times=local_times(game),
    )  # fmt: skip


def _full_names(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"bots/{slug_of_name(name)}/versions/local" for name in names)


def slug_of_name(name: str) -> str:
    """Return the name as a part of a resource name."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name)
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-") or "bot"


def _seat_orders(seats: int) -> list[tuple[int, ...]]:
    """Return all seatings. In each block of as many matches as there are seats, each bot has each seat once."""
    circles = [(0, *others) for others in permutations(range(1, seats))]
    return [circle[first:] + circle[:first] for circle in circles for first in range(seats)]


def derive_series_key(seed: Seed | None) -> bytes:
    if seed is None:
        return secrets.token_bytes(32)
    if not isinstance(seed, bytes):
        seed = str(seed).encode()
    return sha256(b"seatwise.play/1:" + seed).digest()


@contextmanager
def _writing_records(records: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    with ExitStack() as stack:
        try:
            file = stack.enter_context(writing_file(records))
        except OSError as error:
            reason = error.strerror or str(error)
            raise UsageError(f"records: cannot write to {os.fspath(records)}: {reason}") from None
        yield file


@contextmanager
def restoring_chance() -> Iterator[None]:
    """Restore the state of the module `random` at the end."""
    before = random.getstate()
    try:
        yield
    finally:
        random.setstate(before)


# Async bots


class LocalWaiter:
    """Awaits the results of async methods, all in one event loop. Other results pass through."""

    def __init__(self) -> None:
        self._runner: Runner | None = None

    def __enter__(self) -> LocalWaiter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._runner is not None:
            self._runner.close()

    def __call__(self, value: Any) -> Any:
        if not is_awaitable(value):
            return value
        if self._runner is None:
            import asyncio

            self._runner = asyncio.Runner()
        return self._runner.run(_result_of(value))


async def _result_of(value: Any) -> Any:
    return await value


def _is_inside_a_loop() -> bool:
    """Return whether the caller is async code, as in a notebook."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None


def _in_a_thread(call: Callable[[], Results]) -> Results:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1, thread_name_prefix="seatwise-play") as pool:
        return pool.submit(call).result()
