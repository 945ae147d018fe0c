"""What tests of leagues may ask for."""

from __future__ import annotations

from harness import house, module_house

__all__ = ["house", "module_house"]
