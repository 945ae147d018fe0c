"""The Lua scripts. Each is one atomic change of several keys, sent by its hash, and loaded again if Redis has lost it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from redis.exceptions import NoScriptError

from seatwise_server.store.redis.address import RedisMode
from seatwise_server.store.redis.client import Argument, RedisClient, call, call_many


@dataclass(frozen=True, slots=True)
class Script:
    """One Lua script; its hash is computed here, so that it can be sent before Redis has seen the script."""

    name: str
    source: bytes
    sha: str


def _read_scripts() -> dict[str, Script]:
    """Reads all scripts of the package."""
    files = resources.files("seatwise_server.store").joinpath("scripts").iterdir()
    named = {file.name.removesuffix(".lua"): file.read_bytes() for file in files}
    sha1 = {name: hashlib.sha1(source, usedforsecurity=False) for name, source in named.items()}
    return {name: Script(name, source, sha1[name].hexdigest()) for name, source in named.items()}


_SCRIPTS = _read_scripts()
"""Read once, at the start: a busy server may have no file descriptor left to open a file."""


def script_named(name: str) -> Script:
    """Returns the script of that name; raises KeyError if there is none."""
    return _SCRIPTS[name]


async def run_script(client: RedisClient, name: str, keys: list[str], *args: Argument) -> Any:
    """Runs the script and returns its answer. It may run twice if a reply was lost, which every script recognises."""
    it = script_named(name)
    try:
        return await call(client, "EVALSHA", it.sha, len(keys), *keys, *args)
    except NoScriptError:  # EVAL also loads the script, and its keys lead it to the right node of a cluster
        return await call(client, "EVAL", it.source, len(keys), *keys, *args)


async def run_script_many(
    client: RedisClient, name: str, calls: Sequence[tuple[list[str], Sequence[Argument]]]
) -> list[Any]:
    """Runs one script several times, each time with other keys and arguments, in one round trip; returns the
    answers.

    The runs are not one atomic change. Some may run twice if a reply was lost.
    """
    it = script_named(name)
    try:
        return await call_many(client, [("EVALSHA", it.sha, len(keys), *keys, *args) for keys, args in calls])
    except NoScriptError:
        return [await run_script(client, name, keys, *args) for keys, args in calls]


async def run_in_order(client: RedisClient, *calls: tuple[str, list[str], Sequence[Argument]]) -> list[Any]:
    """Runs several scripts one after the other, each given by its name, keys and arguments; returns their
    answers.

    They are not one atomic change, but no script runs before the ones in front of it. They are one message,
    except in a cluster, where each may go to another node. Some may run twice if a reply was lost.
    """
    if client.mode is RedisMode.CLUSTER:
        return [await run_script(client, name, keys, *args) for name, keys, args in calls]
    found = [(script_named(name), keys, args) for name, keys, args in calls]
    try:
        return await call_many(
            client, [("EVALSHA", it.sha, len(keys), *keys, *args) for it, keys, args in found]
        )
    except NoScriptError:  # EVAL loads them too
        return await call_many(
            client, [("EVAL", it.source, len(keys), *keys, *args) for it, keys, args in found]
        )
