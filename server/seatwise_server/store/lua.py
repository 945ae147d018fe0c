"""The Lua scripts: one change of several keys each, sent by hash and loaded again when Redis forgot."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

from seatwise_server.store.client import Argument, call


@dataclass(frozen=True, slots=True)
class Script:
    """One Lua script; its hash is reckoned here, so that it can be sent before Redis has seen it."""

    name: str
    source: bytes
    sha: str


@cache
def script(name: str) -> Script:
    """The script of that name; raises FileNotFoundError when the package has none."""
    source = resources.files("seatwise_server.store").joinpath("scripts").joinpath(f"{name}.lua").read_bytes()
    return Script(name, source, hashlib.sha1(source, usedforsecurity=False).hexdigest())


async def run(client: Redis, name: str, keys: list[str], *args: Argument) -> Any:
    """The script's answer; may have run twice when a reply was lost, which every script recognises."""
    it = script(name)
    try:
        return await call(client, "EVALSHA", it.sha, len(keys), *keys, *args)
    except NoScriptError:  # EVAL loads it too, and goes to the right node of a cluster by its keys
        return await call(client, "EVAL", it.source, len(keys), *keys, *args)
