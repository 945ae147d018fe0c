"""What can go wrong with the private Redis, in words for whoever starts the server."""

from __future__ import annotations


class EmbeddedRedisError(Exception):
    """Root of what can go wrong with the private Redis."""


class NoServerBinary(EmbeddedRedisError):
    """There is no Redis or Valkey to start."""


class DataFolderBusy(EmbeddedRedisError):
    """Another Seatwise server works on this data folder."""


class RedisKeepsDying(EmbeddedRedisError):
    """The private Redis does not stay up; the text ends with what it said last."""
