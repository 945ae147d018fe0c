"""A plugin of pytest: what Hypothesis finds is enough; nobody reads the smallest example of a planted fault."""

from __future__ import annotations

from hypothesis import Phase, settings

settings.register_profile("mutants", phases=[Phase.explicit, Phase.generate])
settings.load_profile("mutants")
