"""Compiles the core with mypyc: the referee, UGO!, the codec and the tables of matches. The sources stay complete without it.

    SEATWISE_COMPILE=1 pip wheel --no-deps .

It needs a C compiler. The hook of the build calls this file as a program: `python compile_core.py ROOT OUT`. Modules that
take values from outside stay interpreted, because compiled code answers a wrong type with `TypeError`, and not with an error of the rules.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

SOURCES = ("client_sdk", "referee", "server")
GROUP = "seatwise_compiled"
"""The library behind all modules; they call each other without a look-up."""

MODULES = {
    "referee/seatwise_referee": (
        "decision", "each_move", "ending", "match", "position", "prompt_clock", "race_prompt", "turn_prompt",
    ),
    "referee/seatwise_referee/games/ugo": ("kingdoms", "round_flow", "rules", "state", "tricks", "view"),
    "referee/seatwise_referee/verify": ("charges", "replay", "shape", "verdict"),
    "client_sdk/seatwise/local": ("table",),
    "client_sdk/seatwise/codec": ("wire_format",),
    "client_sdk/seatwise/kits/ugo": ("codec",),
    "server/seatwise_server": ("counts",),
    "server/seatwise_server/play": (
        "allowance", "match_clock", "outbox", "play_messages", "seat_updates", "table",
    ),
}  # fmt: skip
"""The modules, by folder."""

_CONFIGURATION = """
[mypy]
explicit_package_bases = true
mypy_path = {path}
ignore_missing_imports = true
follow_imports = silent
"""


def compile_modules(root: Path, out: Path) -> None:
    """Write the extension modules of the sources below `root` to `out`."""
    from mypyc.build import mypycify
    from setuptools import setup

    paths = [f"{folder}/{name}.py" for folder, names in MODULES.items() for name in names]
    os.chdir(root)
    with tempfile.TemporaryDirectory(prefix="seatwise-compile-") as name:
        configuration = Path(name) / "mypy.ini"
        configuration.write_text(_CONFIGURATION.format(path=":".join(SOURCES)))
        options = [f"--config-file={configuration}", f"--cache-dir={name}/cache"]
        extensions = mypycify(
            [*options, *paths], opt_level="2", group_name=GROUP, target_dir=f"{name}/generated"
        )
        where = ["--build-lib", str(out.resolve()), "--build-temp", f"{name}/objects"]
        setup(
            name=GROUP, packages=[], py_modules=[], ext_modules=extensions, script_args=["build_ext", *where]
        )


if __name__ == "__main__":
    compile_modules(Path(sys.argv[1]), Path(sys.argv[2]))
