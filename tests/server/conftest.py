"""What all tests of the server may ask for."""

from __future__ import annotations

from harness import house, module_house
from private_redis.redis_server import client, flusher, redis_client, redis_server, store

__all__ = ["client", "flusher", "house", "module_house", "redis_client", "redis_server", "store"]
