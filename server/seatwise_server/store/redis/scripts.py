"""The Lua scripts: one change of several keys each, sent by hash and loaded again when Redis forgot."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from redis.exceptions import NoScriptError

from seatwise_server.store.redis.client import Argument, RedisClient, call, call_many


@dataclass(frozen=True, slots=True)
class Script:
    """One Lua script; its hash is reckoned here, so that it can be sent before Redis has seen it."""

    name: str
    source: bytes
    sha: str


def _read_scripts() -> dict[str, Script]:
    """All that the package has."""
    files = resources.files("seatwise_server.store").joinpath("scripts").iterdir()
    named = {file.name.removesuffix(".lua"): file.read_bytes() for file in files}
    sha1 = {name: hashlib.sha1(source, usedforsecurity=False) for name, source in named.items()}
    return {name: Script(name, source, sha1[name].hexdigest()) for name, source in named.items()}


_SCRIPTS = _read_scripts()
"""Read once, at the start: a server at work may have no descriptor left to open a file with."""


def script_named(name: str) -> Script:
    """The script of that name; raises KeyError when the package has none."""
    return _SCRIPTS[name]


async def run_script(client: RedisClient, name: str, keys: list[str], *args: Argument) -> Any:
    """The script's answer; may have run twice when a reply was lost, which every script recognises."""
    it = script_named(name)
    try:
        return await call(client, "EVALSHA", it.sha, len(keys), *keys, *args)
    except NoScriptError:  # EVAL loads it too, and goes to the right node of a cluster by its keys
        return await call(client, "EVAL", it.source, len(keys), *keys, *args)


async def run_script_many(
    client: RedisClient, name: str, calls: Sequence[tuple[list[str], Sequence[Argument]]]
) -> list[Any]:
    """The answers of one script to several calls of it, each keys and arguments, sent at once.

    They are not one change. Some may have run twice when a reply was lost.
    """
    it = script_named(name)
    try:
        return await call_many(client, [("EVALSHA", it.sha, len(keys), *keys, *args) for keys, args in calls])
    except NoScriptError:
        return [await run_script(client, name, keys, *args) for keys, args in calls]
