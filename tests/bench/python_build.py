"""How Python itself was built: that alone changes the cost of a move by a sixth."""

from __future__ import annotations

import importlib
import platform
import sysconfig
import time
from timeit import repeat

COMPILED = "seatwise_referee.match"
"""A module of which an optional build has a compiled version."""


_LOOP = "for number in range(20_000): table[number & 63] = table[number & 31] + len(str(number))"


def describe_python() -> str:
    """One line for readers of the table."""
    flags = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    facts = [  # only what the options say: Debian optimises its Python by other means
        f"configured {'with' if '--enable-optimizations' in flags else 'without'} --enable-optimizations",
        f"{'with' if '--with-lto' in flags else 'without'} --with-lto",
        "shared library" if sysconfig.get_config_var("Py_ENABLE_SHARED") else "static",
        f"{loop_us():.0f} us for a fixed loop",
    ]
    build = "interpreted" if is_interpreted() else "compiled by mypyc"
    return (
        f"{platform.python_implementation()} {platform.python_version()} ({', '.join(facts)}); "
        f"the table of a match is {build}."
    )


def loop_us() -> float:
    """The least CPU time of ten passes through a loop that only reads and adds, in microseconds: it tells builds of Python apart."""
    return 1e6 * min(
        repeat(
            _LOOP, setup="table = dict.fromkeys(range(64), 0)", timer=time.process_time, number=1, repeat=10
        )
    )


def is_interpreted() -> bool:
    """Whether the product was installed without its optional compilation."""
    return str(importlib.import_module(COMPILED).__file__).endswith(".py")
