"""Finds the games from outside: packages that are installed here and name a game in an entry point.

No package is imported to learn the facts of its games: a process of its own does that, and its time is bounded. The code of a
game is loaded when the game is first played here.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import redirect_stdout, suppress
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, Final, NamedTuple, cast

from seatwise.child_process import FACTS_VARIABLE, kill_group, others_environment
from seatwise.hosting import GameFault, HostedGame
from seatwise.kits.game_kit import GameKit
from seatwise.kits.hosted.describe_package import DescribedGame, GameFacts, PackageFacts, facts_of, read_entry
from seatwise.kits.hosted.kit import complete_kit, make_hosted_kit
from seatwise_referee.hosted.hosted_rules import HostedRules

HOSTED_GAMES: Final = "seatwise.hosted_games"
"""The group of entry points in which packages name their games."""

DESCRIBE_LIMIT_S: Final = 20.0
"""Seconds in which a package must have described its games. All packages are asked at the same time."""

DESCRIBING_VARIABLE: Final = "SEATWISE_DESCRIBES_GAMES"
"""The environment variable that is set in a process which describes a package: it looks for no games itself."""

UNLOADED_VARIABLE: Final = "SEATWISE_UNLOADED_GAMES"
"""The environment variable with the names of entry points, a line each, whose packages this process must not import."""

LONGEST_FACTS: Final = 100_000
"""The most characters of the facts in the environment; Linux allows 131,071."""

log = logging.getLogger("seatwise")


class RefusedGame(NamedTuple):
    """A game, or a whole package, that is installed and cannot be hosted."""

    entry: str
    """The entry point, as in "leduc = seatwise_leduc:Leduc"."""
    why: str


class InstalledGames(NamedTuple):
    """The games from outside that are installed here."""

    kits: tuple[GameKit, ...]
    refused: tuple[RefusedGame, ...]


class _Package(NamedTuple):
    """An entry point, and where it comes from."""

    point: EntryPoint
    name: str
    version: str

    @property
    def entry(self) -> str:
        return f"{self.point.name} = {self.point.value}"


def find_installed_games(taken: Collection[str]) -> InstalledGames:
    """Return the games that are installed. A package that fails, or takes a name in `taken`, is refused, and affects no other."""
    kits: dict[str, GameKit] = {}
    refused: list[RefusedGame] = []
    packages = _find_packages()
    for package, facts in zip(packages, _learn_facts(packages), strict=True):
        refused += [RefusedGame(package.entry, fault) for fault in facts.faults]
        for game in facts.games:
            try:
                if game.name in taken or game.name in kits:
                    raise GameFault(f"there is another game {game.name}")
                kits[game.name] = _make_described_kit(package, game)
            except GameFault as fault:
                refused.append(RefusedGame(package.entry, str(fault)))
    return InstalledGames(tuple(kits.values()), tuple(refused))


def _find_packages() -> list[_Package]:
    found = []
    if DESCRIBING_VARIABLE not in os.environ:
        for point in entry_points(group=HOSTED_GAMES):
            dist = point.dist
            found.append(_Package(point, dist.name if dist else "", dist.version if dist else ""))
    return sorted(found, key=lambda package: (package.point.name, package.point.value))


# The facts: from the process that has started this one, or from a process for each package


def _learn_facts(packages: Sequence[_Package]) -> Sequence[PackageFacts]:
    if not packages:
        return ()
    asked = [[package.entry, package.name, package.version] for package in packages]
    with suppress(KeyError, TypeError, ValueError):
        told = json.loads(os.environ[FACTS_VARIABLE])
        if told["packages"] == asked:
            return [PackageFacts.from_json(each) for each in told["facts"]]
    facts = _describe_packages(packages)
    for package, found in zip(packages, facts, strict=True):
        for fault in found.faults:
            log.info("the game %s is not hosted: %s", package.entry, fault)
    text = json.dumps({"packages": asked, "facts": [each.to_json() for each in facts]})
    if len(text) <= LONGEST_FACTS:
        os.environ[FACTS_VARIABLE] = text
    return facts


def _describe_packages(packages: Sequence[_Package]) -> list[PackageFacts]:
    """Have each package described by a process. All run at the same time, and none beyond the limit."""
    until_s = monotonic() + DESCRIBE_LIMIT_S
    started: list[subprocess.Popen[bytes]] = []
    try:
        with TemporaryDirectory(prefix="seatwise-games-") as folder:
            files = [Path(folder) / str(number) for number in range(len(packages))]
            for package, file in zip(packages, files, strict=True):
                started.append(_start_describing(package.point, file))
            return [_read_facts(process, file, until_s) for process, file in zip(started, files, strict=True)]
    except OSError as error:  # no process, or no folder for its answer: our own games need neither
        return [PackageFacts((), (f"its games cannot be described: {error}",))] * len(packages)
    finally:
        for process in started:
            if process.returncode is None:
                _end_process(process)


def _start_describing(point: EntryPoint, file: Path) -> subprocess.Popen[bytes]:
    """Start the process. It finds the modules that this one finds."""
    path = os.pathsep.join(os.path.abspath(each) for each in sys.path)
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "seatwise.kits.hosted.describe_package", point.name, point.value, str(file)],
        env={**others_environment(), DESCRIBING_VARIABLE: "1", "PYTHONPATH": path},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def _read_facts(process: subprocess.Popen[bytes], file: Path, until_s: float) -> PackageFacts:
    try:
        code = process.wait(max(0.0, until_s - monotonic()))
    except subprocess.TimeoutExpired:
        return PackageFacts((), (f"its package was not imported within {DESCRIBE_LIMIT_S:.0f} s",))
    finally:
        _end_process(process)
    try:
        return PackageFacts.from_json(json.loads(file.read_text()))
    except (OSError, KeyError, TypeError, ValueError):
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return PackageFacts((), (f"its package ended the process that imported it ({how})",))


def _end_process(process: subprocess.Popen[bytes]) -> None:
    """Kill the process, and those that the package has started in it."""
    kill_group(process.pid)
    process.wait()


# The code: imported when a game is first played here


class _LoadedGames:
    """The games whose code is loaded in this process, by entry point and name."""

    def __init__(self) -> None:
        self._packages: dict[str, dict[str, HostedGame[Any]] | GameFault] = {}
        self.is_forbidden = False

    def load_game(self, package: _Package, facts: GameFacts) -> HostedGame[Any]:
        """Return the game. Raises `GameFault` if it is no longer as it was described."""
        self.import_package(package)
        games = self._packages[package.entry]
        if isinstance(games, GameFault):
            raise games
        game = games.get(facts.name)
        if game is None or not _is_described(game, facts):
            raise GameFault(f"{facts.name}: its package describes it otherwise than before; start again")
        return cast("HostedGame[Any]", _PrintsApart(game))

    def import_package(self, package: _Package) -> None:
        """Import a package, if it is not imported yet. A failed import is not tried again."""
        if package.entry in self._packages:
            return
        try:
            self._packages[package.entry] = self._import_games(package)
        except GameFault as fault:
            self._packages[package.entry] = fault

    def _import_games(self, package: _Package) -> dict[str, HostedGame[Any]]:
        if self.is_forbidden:
            raise GameFault(f"{package.entry}: this process runs no code of games from outside")
        if package.point.name in os.environ.get(UNLOADED_VARIABLE, "").splitlines():
            raise GameFault(f"{package.entry}: its package has stopped a process that imported it")
        games: dict[str, HostedGame[Any]] = {}
        with redirect_stdout(sys.stderr):
            for found in read_entry(package.point):
                with suppress(GameFault):
                    game = complete_kit(found).game
                    games.setdefault(game.name, game)
        return games


class _PrintsApart:
    """A game whose methods print to standard error: standard output has the answers of a command, or the log of a server."""

    def __init__(self, game: HostedGame[Any]) -> None:
        self._game = game

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._game, name)
        return partial(_print_apart, found) if callable(found) else found


def _print_apart(method: Callable[..., Any], *arguments: Any) -> Any:
    with redirect_stdout(sys.stderr):
        return method(*arguments)


LOADED_GAMES: Final = _LoadedGames()
"""Those of this process."""


def _is_described(game: HostedGame[Any], facts: GameFacts) -> bool:
    HostedRules(game)
    found = facts_of(game, {}).values
    return all(found[key] == facts.values[key] for key in found if key != "samples")


def _make_described_kit(package: _Package, facts: GameFacts) -> GameKit:
    rules = HostedRules(DescribedGame(facts), package.name, lambda: LOADED_GAMES.load_game(package, facts))
    return make_hosted_kit(rules, rules.title, facts.samples)


def forbid_game_code() -> None:
    """Let this process never import a package of games from outside. A match of such a game fails here."""
    LOADED_GAMES.is_forbidden = True


def load_installed_games(run: Callable[[str, Callable[[], None]], object]) -> None:
    """Import the packages now that have games to play.

    `run` is called with the name of each entry point, and with the function that imports its package.
    """
    packages = _find_packages()
    for package, facts in zip(packages, _learn_facts(packages), strict=True):
        if facts.games:
            with suppress(GameFault):
                run(package.point.name, partial(LOADED_GAMES.import_package, package))


def make_kit(found: object, package: str = "") -> GameKit:
    """Return the kit for a `HostedKit`, a `HostedGame` or a class derived from it. Raises `GameFault` for anything else."""
    kit = complete_kit(found)
    rules = HostedRules(kit.game, package)
    return make_hosted_kit(rules, rules.title, dict(kit.samples))
