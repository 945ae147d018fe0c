"""The house bots: they take free seats, and play over the same API as all other bots.

They run in processes of their own, so that their computing takes no time from the referee. Those that search share one,
with a limit on its share of the machine. Those of games from outside share another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

import structlog

from seatwise.child_process import ChildProcess, run_repeatedly
from seatwise.kits import KITS
from seatwise.kits.game_kit import SEARCH_PACKAGE, is_search_installed
from seatwise_server.background_tasks import cancel_until_ended
from seatwise_server.game_choice import is_hosted_game
from seatwise_server.store import Store
from seatwise_server.store.errors import BotAbsent, BotExists, StoreUnavailable
from seatwise_server.store.owners import OWNERS_PREFIX
from seatwise_server.timings import HOUSE_LEASE_S


class HouseBot(NamedTuple):
    """One house bot. Each game has as many of them as a match can lack."""

    game: str
    name: str
    sample: str
    is_paced: bool = False

    @property
    def bot(self) -> str:
        """Format: bots/{bot}/versions/{version}."""
        return f"bots/{self.name}/versions/1"


DEFAULT_HOUSE: Final = tuple(
    HouseBot(kit.name, each.bot, each.sample, each.is_paced)
    for kit in KITS.values()
    for each in kit.house_bots
)
"""The house bots of a server whose operator has chosen none, the strongest of each game first."""
OTHER_HOUSE: Final = tuple(
    HouseBot(kit.name, each.bot, each.sample) for kit in KITS.values() for each in kit.other_house_bots
)
"""More of them, from which an operator may choose."""
SEARCHING: Final = frozenset(sample for kit in KITS.values() for sample in kit.searching_samples)
"""The samples that search. They have a process of their own, with a limit on its share of the machine."""
SEARCH_SHARE: Final = 0.25
"""The share of all cores that searching house bots may take together."""
KIND_OF_SEARCHING: Final = 2
"""The number of the kind `search` in the protocol's `BotKind`."""
ALL_HOUSE: Final = frozenset(each.bot for each in (*DEFAULT_HOUSE, *OTHER_HOUSE))
"""The names of all house bots, whichever a server runs. None of them can be deleted: another process may run it."""
OWNER = "house"
HOUSE_WORK = "house-bots"

log = structlog.get_logger()


class HouseNameTaken(Exception):
    """An owner has registered a bot of a house bot's name, with a version of the server that permitted it."""


def choose_house(names: Sequence[str]) -> tuple[HouseBot, ...]:
    """Return the house bots that an operator has chosen; a game of which none is named keeps its default.

    Args:
        names: Names of house bots, as in "house-greedy", in the order in which they are asked to take seats.

    Raises:
        ValueError: There is no such house bot, it needs a package that is missing, or a match could lack more.
    """
    known = {each.name: each for each in (*DEFAULT_HOUSE, *OTHER_HOUSE)}
    for name in names:
        _check_name(name, known)
    chosen = tuple(known[name] for name in dict.fromkeys(names))
    _check_numbers(chosen)
    named = {each.game for each in chosen}
    return (*chosen, *(each for each in DEFAULT_HOUSE if each.game not in named))


def _check_name(name: str, known: Mapping[str, HouseBot]) -> None:
    if name not in known:
        raise ValueError(f"--house-bot {name}: no such house bot; there are {', '.join(known)}")
    if known[name].sample in SEARCHING and not is_search_installed():
        raise ValueError(
            f"--house-bot {name}: it searches with the package {SEARCH_PACKAGE}, which is not installed or not compiled;"
            " from a clone: pip install ./client_sdk/seatwise_fast"
        )


def _check_numbers(chosen: Sequence[HouseBot]) -> None:
    for game in {each.game for each in chosen}:
        count, needed = sum(each.game == game for each in chosen), KITS[game].game.table_sizes[-1] - 1
        if count < needed:
            why = f"--house-bot: a match of {game} can lack {needed} bots; choose as many, not {count}"
            raise ValueError(why)


def house_bots(names: Sequence[str] = ()) -> dict[str, tuple[str, ...]]:
    """Return the names of the house bots by game, in the order in which they are asked to take seats.

    Args:
        names: Those that the operator has chosen.
    """
    house = choose_house(names)
    return {
        game: tuple(each.bot for each in house if each.game == game) for game in {each.game for each in house}
    }


@dataclass(frozen=True, slots=True)
class HouseLink:
    """How the house bots reach the server."""

    address: str
    insecure: bool = False
    """Whether their tokens may be sent in plain text."""
    tls_pin: str | None = None
    """The pin of the key that all servers share; `None` leaves trust to the certificates of the environment."""


async def run_house_bots(store: Store, link: HouseLink, process: str, names: Sequence[str] = ()) -> None:
    """Run the house bots against this server as long as no other process runs them. Runs until cancelled."""
    running: asyncio.Task[None] | None = None
    try:
        while True:
            holds = await _holds_lease(store, process)
            if holds and running is None:
                house = tuple(dict.fromkeys((*choose_house(names), *DEFAULT_HOUSE)))
                running = asyncio.create_task(_keep_all_running(store, link, house))
            elif holds is False and running:
                await cancel_until_ended([running])
                running = None
            await asyncio.sleep(HOUSE_LEASE_S / 4)
    finally:
        if running:
            await cancel_until_ended([running])
            with suppress(StoreUnavailable):
                await store.leases.release_lease(HOUSE_WORK, process)


async def _holds_lease(store: Store, process: str) -> bool | None:
    """Return whether this process holds the lease; None while the store does not answer.

    Then no other process can take it.
    """
    try:
        return await store.leases.take_lease(HOUSE_WORK, process, int(HOUSE_LEASE_S * 1000))
    except StoreUnavailable:
        return None


async def _keep_all_running(store: Store, link: HouseLink, house: Sequence[HouseBot]) -> None:
    """Run those that search in one process, those of games from outside in one, and the others in a third one."""
    async with asyncio.TaskGroup() as group:
        for kind in ((False, False), (True, False), (False, True)):
            bots = [each for each in house if (each.sample in SEARCHING, is_hosted_game(each.game)) == kind]
            if bots:
                group.create_task(_keep_running(store, link, bots))


async def _keep_running(store: Store, link: HouseLink, house: Sequence[HouseBot]) -> None:
    async def run_once() -> None:
        try:
            if players := await _prepare_players(store, house):
                code = await _run_process(link, players)
                log.warning("house_bots_ended", code=code)
        except StoreUnavailable:
            log.debug("house_bots_paused")
        except OSError as error:  # no process or descriptor is left: matches go on without house bots
            log.warning("house_bots_not_started", why=str(error))

    await run_repeatedly(run_once)


async def _prepare_players(store: Store, house: Sequence[HouseBot]) -> list[dict[str, Any]]:
    """Return what the process is told of each house bot. One that was deleted, or is an owner's, is left out: the others play without it."""
    players = []
    for each in house:
        try:
            token = await _token(store, each)
        except BotAbsent:
            log.warning("house_bot_left_out", bot=each.bot, why="it was deleted")
        except HouseNameTaken as taken:
            log.warning("house_bot_left_out", bot=each.bot, why=str(taken))
        else:
            players.append(
                {"game": each.game, "sample": each.sample, "is_paced": each.is_paced, "token": token}
            )
    return players


async def _run_process(link: HouseLink, players: list[dict[str, Any]]) -> int:
    runs_others = is_hosted_game(players[0]["game"])
    process = await ChildProcess.start("seatwise_server.house_process", runs_others=runs_others)
    try:
        share = SEARCH_SHARE if players[0]["sample"] in SEARCHING else None
        process.send_line({"link": asdict(link), "players": players, "search_share": share})
        return await process.wait()
    finally:
        await process.stop()


async def _token(store: Store, house_bot: HouseBot) -> str:
    """Issue a new token at each start, so that no other process has it. Raises BotAbsent if the bot was deleted, and HouseNameTaken."""
    try:
        await store.bots.register_bot(house_bot.name, "1", OWNER, "")
    except BotExists:
        log.debug("house_bot_registered_before", bot=house_bot.name)
        known = await store.bots.get_bot(house_bot.bot)
        if known and known.owner.startswith(OWNERS_PREFIX):
            why = "an owner registered a bot of this name; an operator may delete it"
            raise HouseNameTaken(why) from None
    issued = await store.bots.rotate_token(house_bot.bot)
    assert issued.token
    if house_bot.sample in SEARCHING:
        await store.bots.suggest_kind(house_bot.bot, KIND_OF_SEARCHING)
    return issued.token
