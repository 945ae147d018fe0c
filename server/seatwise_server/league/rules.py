"""Tie-breaks (until competition has them)."""

from __future__ import annotations

TIE_BREAKS = ("points", "mean_rank")
USUAL_TIE_BREAKS = ("points",)
