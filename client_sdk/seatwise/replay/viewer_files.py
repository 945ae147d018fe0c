"""The viewer of matches for browsers: its files, and all of them as one script and one style sheet."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Final

from seatwise.kits import OWN_KITS

SCRIPTS: Final = ("shapes.js", *(kit.viewer_script for kit in OWN_KITS if kit.viewer_script), "viewer.js")
"""The modules, each after those that it imports. The last one exports `mount`."""

STYLES: Final = ("drawing.css", "viewer.css")

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([a-z]+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|function) ([A-Za-z]\w*))", re.MULTILINE)


@cache
def read_viewer_file(name: str) -> str:
    """Return one file of the viewer, one of `SCRIPTS` or `STYLES`."""
    return files("seatwise.replay").joinpath("viewer", name).read_text(encoding="utf-8")


@cache
def bundle_scripts() -> str:
    """Return all modules as one script that exports nothing: an inline script cannot import.

    Each module becomes a function that returns what it exports, under the name of its file.
    """
    return "".join(_wrap_module(name.removesuffix(".js"), read_viewer_file(name)) for name in SCRIPTS)


def _wrap_module(name: str, code: str) -> str:
    exported = _EXPORT.findall(code)
    inside = _IMPORT.sub(lambda found: f"const {found[1]} = {found[2]};", _EXPORT.sub("", code))
    return f"const {name} = (() => {{\n{inside}return {{ {', '.join(exported)} }};\n}})();\n"


@cache
def bundle_styles() -> str:
    """Return all style sheets as one."""
    return "".join(map(read_viewer_file, STYLES))
