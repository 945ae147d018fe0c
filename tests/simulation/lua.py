"""Runs the shipped Lua scripts, in a real Lua of the version that Redis has."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from lupa.lua51 import LuaRuntime, lua_type

_WRAPPED = b"function(KEYS, ARGV)\n%s\nend"

_COMPILED: dict[bytes, Any] = {}
"""By hash. The scripts keep nothing between two runs, so every server of every world may share them."""

_lua = LuaRuntime(encoding=None, unpack_returned_tuples=False, register_eval=False)
_table = _lua.table


class Scripts:
    """The scripts that one server knows."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call
        self._known: set[bytes] = set()

    def load(self, source: bytes) -> bytes:
        """The script's hash, under which it is known from now on."""
        sha = hashlib.sha1(source, usedforsecurity=False).hexdigest().encode()
        if sha not in _COMPILED:
            _COMPILED[sha] = _lua.eval(_WRAPPED % _without_head(source))
        self._known.add(sha)
        return sha

    def knows(self, sha: bytes) -> bool:
        """Whether it has been loaded since the server started."""
        return sha in self._known

    def forget(self) -> None:
        """The server starts anew."""
        self._known.clear()

    def run(self, sha: bytes, keys: Sequence[bytes], args: Sequence[bytes]) -> Any:
        """What the script returns, as a reply."""
        _running.append(self._call)
        try:
            return _reply(_COMPILED[sha](_table(*keys), _table(*args)))
        finally:
            _running.pop()


_running: list[Callable[..., Any]] = []
"""The server whose script runs. Lua must not know it: what it knows no collector of Python's ever finds."""


def _answer(*command: Any) -> Any:
    return _lua_value(_running[-1](*map(_argument, command)))


_lua.globals()[b"redis"] = _lua.table_from({b"call": _answer})


def _without_head(source: bytes) -> bytes:
    """Redis reads the first line itself; Lua gets an empty one, so that line numbers stay."""
    return b"--" + source if source.startswith(b"#!") else source


def _argument(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, float):
        return b"%d" % value if value == int(value) else b"%.17g" % value
    if isinstance(value, int):
        return b"%d" % value
    raise TypeError(f"Lua redis.call: arguments must be strings or integers, not {value!r}")


def _lua_value(value: Any) -> Any:
    if value is None:
        return False
    if isinstance(value, bytes | int):
        return value
    if isinstance(value, str):
        return _lua.table_from({b"ok": value.encode()})
    return _table(*map(_lua_value, value))


def _reply(value: Any) -> Any:
    """What Redis makes of it: numbers lose what is behind the point, a list ends at the first nil."""
    if value is None or value is False:
        return None
    if value is True:
        return 1
    if isinstance(value, float | int):
        return int(value)
    if lua_type(value) in ("table", b"table"):
        return list(_listed(value))
    return value


def _listed(value: Any) -> Any:
    number = 1
    while (each := value[number]) is not None:
        yield _reply(each)
        number += 1
