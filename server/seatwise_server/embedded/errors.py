"""Errors of the private Redis, in words for the operator that starts the server."""

from __future__ import annotations


class EmbeddedRedisError(Exception):
    """The base of all errors of the private Redis."""


class NoServerBinary(EmbeddedRedisError):
    """No Redis or Valkey server was found."""


class DataFolderBusy(EmbeddedRedisError):
    """Another Seatwise server uses this data folder."""


class RedisKeepsDying(EmbeddedRedisError):
    """The private Redis dies repeatedly; the text ends with the last lines of its log."""
