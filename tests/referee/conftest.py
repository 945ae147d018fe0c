"""Random tests are the same in every run, and a slow machine is no fault."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("referee", deadline=None, derandomize=True, database=None)
settings.load_profile("referee")
