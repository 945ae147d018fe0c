"""The yardstick: the least that a `grpc.aio` server does for one message in and one message out."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator
from typing import Any

import grpc
from processes import say, wait_for_end

VIEW = bytes(300)
"""As long as the update with which a referee asks for a move, on average."""


async def echo(requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[Any, Any]) -> None:
    """A view for each move."""
    async for _ in requests:
        await context.write(VIEW)


async def main() -> None:
    """Serves until the parent lets go."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    handler = grpc.method_handlers_generic_handler(
        "bench.Echo", {"Echo": grpc.stream_stream_rpc_method_handler(echo)}
    )
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 250, 50)  # as the referee's server does it
    say({"address": f"127.0.0.1:{port}", "pid": os.getpid()})
    await asyncio.to_thread(wait_for_end)
    await server.stop(0)


if __name__ == "__main__":
    asyncio.run(main())
