"""A private Redis of our own: started on a data folder, kept alive, and never left behind."""

from seatwise_server.embedded.binary import find_server_binary
from seatwise_server.embedded.errors import (
    DataFolderBusy,
    EmbeddedRedisError,
    NoServerBinary,
    RedisKeepsDying,
)
from seatwise_server.embedded.server import EmbeddedRedis

__all__ = [
    "DataFolderBusy",
    "EmbeddedRedis",
    "EmbeddedRedisError",
    "NoServerBinary",
    "RedisKeepsDying",
    "find_server_binary",
]
