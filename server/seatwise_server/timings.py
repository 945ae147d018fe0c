"""How long processes wait for one another: leases, heartbeats, and when another process may act for a silent one.

These limits depend on each other. Where one follows from another it is computed from it; the other relations are
checked by `tests/contract/test_timings.py`.
"""

from __future__ import annotations

REFEREE_HEARTBEAT_S = 1.0
"""Seconds between two heartbeats of a referee."""
REFEREE_LEASE_S = 5.0
"""Seconds without a heartbeat after which a referee counts as dead: others take over its matches."""
REFEREE_LEASE_MARGIN_S = 1.0
"""Seconds before the end of its lease at which a referee stops answering: clocks differ, and messages take time."""
REFEREE_SILENT_MS = int(REFEREE_LEASE_S * 1000)
"""Milliseconds of silence after which a lobby does not count a referee's tables any more: it is dead by then."""
REFEREE_SHOWN_SILENT_MS = int(2.5 * REFEREE_HEARTBEAT_S * 1000)
"""`ctl referees` shows a referee as silent after this time: then it has missed at least one heartbeat."""

LOBBY_HEARTBEAT_S = 3.0
"""Seconds between two renewals of the attendances of a lobby."""
ATTENDANCE_LEASE_MS = 10_000
"""Milliseconds after which an attendance that is not renewed is over."""

PROPOSAL_OWN_MS = 10_000
"""Milliseconds for which a proposal belongs to the lobby that made it. Seats and matches refuse later writes of that lobby."""
PROPOSAL_ADOPT_MS = 15_000
"""After this time another lobby may adopt the proposal.

The difference is how far the clocks of a cluster's nodes may be apart.
"""

LADDER_CHECK_S = 0.5
"""Seconds between two checks of all ladders, in which their leases are renewed."""
LADDER_LEASE_S = 5.0
"""Seconds that the lease of a ladder lasts."""

HOUSE_LEASE_S = 10.0
"""Seconds that the lease to run the house bots lasts."""
