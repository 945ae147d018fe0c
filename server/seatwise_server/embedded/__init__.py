"""A private Redis: started on a data folder, restarted when it dies, and ended with the server."""

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
