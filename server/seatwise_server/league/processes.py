"""The processes of a league: the bots that it starts, and its own server if it has one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from subprocess import PIPE

from seatwise.child_process import ChildProcess, others_environment
from seatwise.defaults import TOKEN_VARIABLE
from seatwise.errors import UsageError
from seatwise.link.security import Security
from seatwise_server.league import time_reports
from seatwise_server.league.settings import Entrant, League

CHILD_END_S = 6.0
START_S = 30.0


async def start_command(
    *command: str, log: Path, variables: Mapping[str, str] | None = None, is_heard: bool = False
) -> ChildProcess:
    """Start `seatwise COMMAND ...` as a process. Its output goes to the log file; with `is_heard` standard output can be read."""
    with log.open("ab") as out:
        said = PIPE if is_heard else out
        return await ChildProcess.start(
            "seatwise", *command, stdout=said, stderr=out, environment=variables, runs_others=True
        )


class OwnServer:
    """A server on the given folder, restarted at the same address if it dies. It finds all that the last one acknowledged."""

    def __init__(self, folder: Path, decks: Sequence[str] = ()) -> None:
        self._decks = [word for deck in decks for word in ("--deck", deck)]
        self._folder = folder.resolve()
        self._log = folder / "server.log"
        self.address = ""
        self._server: ChildProcess | None = None
        self._keeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> OwnServer:
        await self._start_server()
        self._keeper = asyncio.create_task(self._keep_running())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._keeper
        assert self._server
        self._keeper.cancel()
        await asyncio.gather(self._keeper, return_exceptions=True)  # callers have noticed: their calls failed
        await self._server.stop(CHILD_END_S)

    async def _start_server(self) -> None:
        port = self.address.rpartition(":")[2] or "0"
        command = ["serve", "--port", port, "--data", str(self._folder), "--no-house-bots", "--no-http"]
        command += ["--log-level", "warning"]
        self._server = await start_command(*command, *self._decks, log=self._log, is_heard=True)
        line = (await self._server.read_line(START_S)).decode()
        if "listens on " not in line:
            await self._server.stop(CHILD_END_S)
            why = f"the league's own server did not start: {last_line(self._log)}; see {self._log}"
            raise UsageError(why)
        self.address = line.partition("listens on ")[2].split(". ")[0]

    async def _keep_running(self) -> None:
        """Restart the server at the same address. Its clients retry until it answers."""
        while True:
            assert self._server
            await self._server.wait()
            self._server.kill()  # processes that it left behind lock the folder
            await self._start_server()


async def start_bot(
    league: League, entrant: Entrant, address: str, token: str, log: Path,
    *, security: Security, most: int, matches: int = 0,
) -> ChildProcess:  # fmt: skip
    """Start the entrant as a process. It gets its token through the environment, which other users cannot read."""
    command = ["bot", entrant.bot, "--game", league.game, "--address", address, "--no-queue", "--quiet"]
    command += ["--max-matches", str(most)]
    command += ["--matches", str(matches)] if matches else []
    command += ["--times", str(log.with_suffix(time_reports.REPORT_SUFFIX))]
    variables = {TOKEN_VARIABLE: token, **security.to_environment()}
    return await start_command(*command, log=log, variables=variables)


async def check_bot_files(league: League, given_up: Collection[str]) -> None:
    """Import each bot that is not given up, in a process of its own. Raises `UsageError`: why some fail, and how to go on without them."""
    checked = [each for each in league.entrants if each.is_local and each.player not in given_up]
    failures = await asyncio.gather(*(_find_failure(league, each) for each in checked))
    failed = {each.name: why for each, why in zip(checked, failures, strict=True) if why}
    if not failed:
        return
    options = " ".join(f"--without {name}" for name in failed)
    which = "this bot" if len(failed) == 1 else "these bots"
    why = "\n".join(failed.values()) + f"\nTo go on without {which}: the same command with {options}"
    raise UsageError(why)


async def _find_failure(league: League, entrant: Entrant) -> str:
    """Return why the bot cannot be imported; empty if it can."""
    code = "import sys; from seatwise.samples import load_bot; load_bot(*sys.argv[1:])"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, entrant.bot, league.game, env=others_environment(),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(START_S):
            _, said = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return f"{entrant.bot}: importing it took longer than {START_S:.0f} s"
    if not process.returncode:
        return ""
    text = said.decode(errors="replace").strip()
    _, found, reason = text.partition("UsageError: ")  # load_bot says why itself
    return reason if found else f"{entrant.bot}: cannot be imported\n{text}"


def last_line(log: Path) -> str:
    """Return the last line of a process's log."""
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "its log is empty"
