"""How Python itself was built: that alone changes the cost of a move by a sixth."""

from __future__ import annotations

import importlib
import platform
import sysconfig

COMPILED = "seatwise_referee.match"
"""A module of which an optional build has a compiled version."""


def describe_python() -> str:
    """One line for readers of the table."""
    flags = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    facts = [
        "profile-guided" if "--enable-optimizations" in flags else "not profile-guided",
        "link-time optimised" if "--with-lto" in flags else "not link-time optimised",
        "shared library" if sysconfig.get_config_var("Py_ENABLE_SHARED") else "static",
    ]
    build = "interpreted" if is_interpreted() else "compiled by mypyc"
    return (
        f"{platform.python_implementation()} {platform.python_version()} ({', '.join(facts)}); "
        f"the table of a match is {build}."
    )


def is_interpreted() -> bool:
    """Whether the product was installed without its optional compilation."""
    return str(importlib.import_module(COMPILED).__file__).endswith(".py")
