"""The servers that tests of games from outside may ask for."""

from __future__ import annotations

from harness import house, http_house, module_house, module_http_house

__all__ = ["house", "http_house", "module_house", "module_http_house"]
