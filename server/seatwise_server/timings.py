"""How long processes wait for one another: leases, heartbeats and who may act when one is silent.

These limits depend on each other. Where one follows from another it is computed from it; the other relations are
checked by `tests/contract/test_timings.py`.
"""

from __future__ import annotations

REFEREE_HEARTBEAT_S = 1.0
"""Seconds between two heartbeats of a referee."""
REFEREE_LEASE_S = 5.0
"""A referee whose heartbeat stands still for so long is dead: others take over its matches."""
REFEREE_LEASE_MARGIN_S = 1.0
"""A referee falls silent so long before its lease is over: clocks run differently, and messages are on their way."""
REFEREE_SILENT_MS = int(REFEREE_LEASE_S * 1000)
"""A lobby does not count the tables of a referee that has been silent for so long: it is dead by then."""
REFEREE_SHOWN_SILENT_MS = int(2.5 * REFEREE_HEARTBEAT_S * 1000)
"""`ctl referees` shows a referee as silent after this: it has missed one heartbeat, at least."""

LOBBY_HEARTBEAT_S = 3.0
"""Seconds between two renewals of the attendances of a lobby."""
ATTENDANCE_LEASE_MS = 10_000
"""An attendance that is not renewed for so long is gone."""

PROPOSAL_OWN_MS = 10_000
"""A proposal belongs to the lobby that made it for so long: seats and metas refuse what comes later."""
PROPOSAL_ADOPT_MS = 15_000
"""After this another lobby may adopt it. The difference is how far the clocks of a cluster's nodes may be apart."""

LADDER_CHECK_S = 0.5
"""Seconds between two checks of all ladders, in which their leases are renewed."""
LADDER_LEASE_S = 5.0
"""Seconds that the lease of a ladder lasts."""

HOUSE_RETRY_S = 5.0
"""Seconds between two looks at the lease of the house bots, in which it is renewed."""
HOUSE_LEASE_S = 10.0
"""Seconds that the lease of running the house bots lasts."""
