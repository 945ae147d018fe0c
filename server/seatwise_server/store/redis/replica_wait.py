"""How long an append waits for replicas, and how commands are packed without redis-py (hiredis packs five times faster)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import hiredis

pack_command: Callable[[tuple[object, ...]], bytes] = hiredis.pack_command  # type: ignore[assignment]  # its stub allows one-tuples only


@dataclass(frozen=True, slots=True)
class ReplicaWait:
    """How many replicas must have an append before it counts as written."""

    replicas: int = 0
    on_disk: bool = False
    """Whether a replica must have it on its disk; every node has to know WAITAOF and to keep an append-only file."""

    def commands(self, patience_s: float) -> list[bytes]:
        """The commands that follow each batch; none when no replica is waited for."""
        if not self.replicas:
            return []
        wait_ms = int(patience_s * 1000)
        wait = pack_command(("WAIT", self.replicas, wait_ms))
        return [wait, pack_command(("WAITAOF", 1, self.replicas, wait_ms))] if self.on_disk else [wait]
