"""Loads and prepares the compiled module: `ffi` is for memory, and `lib` for functions."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

try:
    _ugo_rules = import_module("seatwise_fast._ugo_rules")
except ImportError as missing:
    raise ImportError(
        "seatwise_fast is here, but its C part is not compiled; run"
        " `python client_sdk/seatwise_fast/build_extension.py` in a clone, with a C compiler installed"
    ) from missing

ffi: Final[Any] = _ugo_rules.ffi
lib: Final[Any] = _ugo_rules.lib
lib.ugo_prepare()
