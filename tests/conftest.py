"""Random tests are the same in every run, and a slow machine is no fault."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "seatwise", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("seatwise")
