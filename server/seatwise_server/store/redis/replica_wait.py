"""How long an append waits for replicas, and a packer of commands: hiredis packs them five times faster than redis-py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import hiredis

pack_command: Callable[[tuple[object, ...]], bytes] = hiredis.pack_command  # type: ignore[assignment]  # its stub allows one-tuples only


@dataclass(frozen=True, slots=True)
class ReplicaWait:
    """The number of replicas that must have an append before it counts as written."""

    replicas: int = 0
    on_disk: bool = False
    """Whether a replica must have it on its disk. Then every node must know WAITAOF and keep an append-only file."""

    def commands(self, patience_s: float) -> list[bytes]:
        """Returns the commands that follow each batch; none if no replica is waited for. `patience_s` is the timeout."""
        if not self.replicas:
            return []
        wait_ms = int(patience_s * 1000)
        wait = pack_command(("WAIT", self.replicas, wait_ms))
        return [wait, pack_command(("WAITAOF", 1, self.replicas, wait_ms))] if self.on_disk else [wait]
