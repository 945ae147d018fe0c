"""The operations of the API on a store, as doors get them."""

from __future__ import annotations

import time
from typing import Any

from seatwise_server.config import Config
from seatwise_server.services.api import new_operations
from seatwise_server.services.audit_trail import AuditTrail
from seatwise_server.services.open_streams import OpenStreams
from seatwise_server.services.operations import Operation
from seatwise_server.store import OwnerLimits, Store

UNLIMITED: dict[str, Any] = {
    "reads_per_second": 0.0,
    "anonymous_reads_per_second": 0.0,
    "owner_requests_per_minute": 0.0,
}


def operations_on(
    store: Store, owner_limits: OwnerLimits | None = None, **settings: Any
) -> dict[str, Operation]:
    """Every operation by its method, without limits of reads and changes. `settings` are those of `Config`."""
    made = new_operations(
        store,
        Config(**UNLIMITED, **settings),
        "fsync",
        (),
        owner_limits or OwnerLimits(),
        AuditTrail(store.audit),
        OpenStreams(store.credentials),
        lambda: None,
        time.monotonic,
    )
    return {operation.method: operation for operation in made}
