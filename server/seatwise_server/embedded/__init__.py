"""A private Redis: started on a data folder, restarted when it dies, and ended with the server."""

from seatwise_server.embedded.folder import (
    DataFolderBusy,
    EmbeddedRedisError,
    NoServerBinary,
    RedisKeepsDying,
)
from seatwise_server.embedded.server import EmbeddedRedis, find_server_binary

__all__ = [
    "DataFolderBusy",
    "EmbeddedRedis",
    "EmbeddedRedisError",
    "NoServerBinary",
    "RedisKeepsDying",
    "find_server_binary",
]
