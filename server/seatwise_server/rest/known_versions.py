"""Keeps the versions of responses, with the reads behind them: a 304 repeats the reads, and none of the other work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from cachetools import LRUCache
from google.protobuf.message import Message

from seatwise_server.services.access import Access
from seatwise_server.services.authentication import Caller
from seatwise_server.store.redis.recorded_reads import ReadRecording

MOST_READS_KEPT = 20_000
"""Commands of all responses together; a page of 50 matches needs 51."""

VersionKey: TypeAlias = tuple[str, bytes, str, str, frozenset[Access]]


@dataclass(frozen=True, slots=True)
class KnownVersion:
    """The version of a response, and the reads from which it followed."""

    version: str
    reads: ReadRecording


class KnownVersions:
    """The versions of the responses that were asked for last. A caller with other rights has versions of its own."""

    def __init__(self) -> None:
        self._known: LRUCache[VersionKey, KnownVersion] = LRUCache(
            MOST_READS_KEPT, lambda known: 1 + len(known.reads.commands)
        )

    def get_version(self, key: VersionKey) -> KnownVersion | None:
        """Returns what is known of this response; it may have changed since."""
        return self._known.get(key)

    def keep_version(self, key: VersionKey, version: str, reads: ReadRecording) -> None:
        """Keeps the version if its reads can be repeated, and are not too many."""
        if reads.is_repeatable and len(reads.commands) < MOST_READS_KEPT:
            self._known[key] = KnownVersion(version, reads)


def version_key(method: str, caller: Caller, request: Message) -> VersionKey:
    """Returns what the response to this request depends on, beside the store."""
    asked = request.SerializeToString(deterministic=True)
    return method, asked, caller.bot, caller.name, caller.scopes
