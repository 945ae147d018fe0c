"""What all tests of the server may ask for."""

from __future__ import annotations

from harness import both_doors, house, http_house, module_house, module_http_house
from private_redis.redis_server import client, flusher, redis_client, redis_server, store

__all__ = [
    "both_doors",
    "client",
    "flusher",
    "house",
    "http_house",
    "module_house",
    "module_http_house",
    "redis_client",
    "redis_server",
    "store",
]
