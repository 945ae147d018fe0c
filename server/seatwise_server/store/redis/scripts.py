"""The Lua scripts. Each is one atomic change of several keys, sent by its hash, and loaded again if Redis has lost it."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, TypeAlias

from redis.exceptions import NoScriptError

from seatwise_server.store.keys import PROCESS_INDEX
from seatwise_server.store.redis.address import RedisMode
from seatwise_server.store.redis.client import Argument, Command, RedisClient

ScriptRun: TypeAlias = tuple[list[str], Sequence[Argument]]
"""The keys and the arguments of one run of a script."""
ScriptCall: TypeAlias = tuple[str, list[str], Sequence[Argument]]
"""The name of a script, its keys and its arguments."""


@dataclass(frozen=True, slots=True)
class Script:
    """One Lua script; its hash is computed here, so that it can be sent before Redis has seen the script."""

    name: str
    source: bytes
    sha: str


_NOW_MS = b"""
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
"""


def _read_scripts() -> dict[str, Script]:
    """Read all scripts of the package. Those that ask for the time get the function `now_ms`."""
    files = resources.files("seatwise_server.store").joinpath("scripts").iterdir()
    named = {file.name.removesuffix(".lua"): file.read_bytes() for file in files}
    for name, source in named.items():
        if b"now_ms()" in source:
            named[name] = source.replace(b"\n", _NOW_MS, 1)  # behind the first line, which Redis reads
    sha1 = {name: hashlib.sha1(source, usedforsecurity=False) for name, source in named.items()}
    return {name: Script(name, source, sha1[name].hexdigest()) for name, source in named.items()}


_LUA_SCRIPTS = _read_scripts()
"""Read once, at the start: a busy server may have no file descriptor left to open a file."""


def script_named(name: str) -> Script:
    """Return the script of that name; raises KeyError if there is none."""
    return _LUA_SCRIPTS[name]


async def run_script(client: RedisClient, name: str, keys: list[str], *args: Argument) -> Any:
    """Run the script and return its answer. It may run twice if a reply was lost, which every script recognises."""
    it = script_named(name)
    try:
        return await client.call("EVALSHA", it.sha, len(keys), *keys, *args)
    except NoScriptError:  # EVAL also loads the script, and its keys lead it to the right node of a cluster
        return await client.call("EVAL", it.source, len(keys), *keys, *args)


async def run_script_many(client: RedisClient, name: str, calls: Sequence[ScriptRun]) -> list[Any]:
    """Run one script several times, each time with other keys and arguments, in one round trip; returns the answers.

    The runs are not one atomic change. Some may run twice if a reply was lost.
    """
    it = script_named(name)
    try:
        return await client.call_many([("EVALSHA", it.sha, len(keys), *keys, *args) for keys, args in calls])
    except NoScriptError:
        return [await run_script(client, name, keys, *args) for keys, args in calls]


async def run_in_order(client: RedisClient, *calls: ScriptCall) -> list[Any]:
    """Run several scripts one after the other; returns their answers. See `run_phases`."""
    return [answer for [answer] in await run_phases(client, *([call] for call in calls))]


async def run_and_call(
    client: RedisClient, calls: Sequence[ScriptCall], commands: Sequence[Command]
) -> list[Any]:
    """Run scripts, then commands, in one message; returns the answers. In a cluster those with one hash tag keep their order."""
    return await client.call_many([*_with_sources(calls), *commands])


async def run_phases(client: RedisClient, *phases: Sequence[ScriptCall]) -> list[list[Any]]:
    """Run the scripts of each phase after those of the phases in front of it; returns their answers.

    They are not one atomic change. They are one message, except in a cluster, where each script may go to another node and the
    scripts of one phase run at the same time. Some may run twice if a reply was lost.
    """
    if client.mode is RedisMode.CLUSTER:
        return [await _run_at_once(client, phase) for phase in phases]
    answers = iter(await client.call_many(_with_sources([call for phase in phases for call in phase])))
    return [[next(answers) for _ in phase] for phase in phases]


async def _run_at_once(client: RedisClient, calls: Sequence[ScriptCall]) -> list[Any]:
    outcomes = await asyncio.gather(
        *(run_script(client, name, keys, *args) for name, keys, args in calls), return_exceptions=True
    )
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return outcomes


def _with_sources(calls: Sequence[ScriptCall]) -> list[Command]:
    """Return the commands. The first one of each script has its source.

    If Redis had lost a script, a command with its hash alone would fail, and the commands behind it would run nevertheless.
    """
    commands: list[Command] = []
    sent: set[str] = set()
    for name, keys, args in calls:
        it = script_named(name)
        head: tuple[Argument, ...] = ("EVALSHA", it.sha) if name in sent else ("EVAL", it.source)
        commands.append((*head, len(keys), *keys, *args))
        sent.add(name)
    return commands


async def now_ms(client: RedisClient) -> int:
    """Return milliseconds on Redis's clock; in a cluster on the clock of the node that has the heartbeats."""
    return int(await run_script(client, "now", [PROCESS_INDEX]))


class StorePart:
    """A part of the store on one Redis."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def _call(self, *command: Argument) -> Any:
        return await self._client.call(*command)

    async def _call_many(self, commands: Sequence[Command]) -> list[Any]:
        return await self._client.call_many(commands) if commands else []

    async def _run(self, script: str, named: list[str], *args: Argument) -> Any:
        return await run_script(self._client, script, named, *args)

    async def _read_secret(self, key: str) -> bytes:
        """Return the secret that all processes share at this key. The first one that asks draws it."""
        if (found := await self._call("GET", key)) is None:
            await self._call("SET", key, secrets.token_bytes(32), "NX")
            found = await self._call("GET", key)
        return bytes(found)

    async def _run_many(self, script: str, calls: Sequence[ScriptRun]) -> list[Any]:
        return await run_script_many(self._client, script, calls)
