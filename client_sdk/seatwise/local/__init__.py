"""Matches at local tables, without a server. `comparison.py` compares two versions of a bot."""

from __future__ import annotations

from seatwise.local.matches import play
from seatwise.standings import PlayedMatch, Results, Standing

__all__ = ["PlayedMatch", "Results", "Standing", "play"]
