"""A Redis that is reached by TLS, and wants a certificate of each client.

The embedded Valkey speaks no TLS, so a gate that does stands before it. Where a redis-server with TLS is installed, it is
tried itself as well.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest
from doubles.certificates import identity
from harness import SOON_S, ServerProcess
from redis.asyncio import Redis
from redis.exceptions import RedisError

from seatwise.async_client import AsyncClient
from seatwise.remote import run_async
from seatwise_server.embedded import EmbeddedRedis

CA = identity(is_ca=True, subject="test CA")
REDIS = identity("localhost", signer=CA)
SEATWISE = identity("seatwise", signer=CA)


@asynccontextmanager
async def gate(folder: Path) -> AsyncIterator[int]:
    """A port with TLS that passes on what clients with a certificate say."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(folder / "ca.crt"))
    context.load_cert_chain(*REDIS.write(folder, "redis"))
    context.verify_mode = ssl.CERT_REQUIRED
    with EmbeddedRedis(folder / "redis") as redis:
        path = redis.url.removeprefix("unix://").partition("?")[0]
        tasks: set[asyncio.Task[None]] = set()

        async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                while data := await source.read(65_536):
                    sink.write(data)
            sink.close()

        async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            back, forth = await asyncio.open_unix_connection(path)
            await asyncio.gather(copy(reader, forth), copy(back, writer))
            for each in (writer, forth):
                with suppress(OSError):
                    await each.wait_closed()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.add(asyncio.create_task(pass_on(reader, writer)))

        server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            if tasks:
                await asyncio.wait(tasks, timeout=SOON_S)


def speaks_tls(binary: str) -> bool:
    return "libssl" in subprocess.run(["ldd", binary], capture_output=True, text=True, check=False).stdout


@asynccontextmanager
async def installed(folder: Path) -> AsyncIterator[int]:
    """A redis-server of this machine, if it was built with TLS."""
    binary = shutil.which("redis-server") or shutil.which("valkey-server")
    if binary is None or not speaks_tls(binary):
        pytest.skip("NO REDIS-SERVER WITH TLS IS INSTALLED: only the gate before Valkey is tried")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = int(taken.getsockname()[1])
    cert, key = REDIS.write(folder, "redis")
    process = await asyncio.create_subprocess_exec(
        binary, "--port", "0", "--tls-port", str(port), "--tls-cert-file", cert, "--tls-key-file", key,
        "--tls-ca-cert-file", str(folder / "ca.crt"), "--tls-auth-clients", "yes", "--dir", str(folder),
        "--appendonly", "yes", "--appendfsync", "always", stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(SOON_S):
            while True:
                with suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                await asyncio.sleep(0.02)
        yield port
    finally:
        process.terminate()
        await process.wait()


@pytest.mark.parametrize("redis", [gate, installed])
@pytest.mark.slow
async def test_matches_are_played_on_a_redis_that_wants_certificates(
    tmp_path: Path, redis: Callable[[Path], AbstractAsyncContextManager[int]]
) -> None:
    CA.write(tmp_path, "ca")
    cert, key = SEATWISE.write(tmp_path, "seatwise")
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(redis(tmp_path))
        trust = f"rediss://localhost:{port}?ssl_ca_certs={tmp_path}/ca.crt"
        (tmp_path / "server").mkdir()
        process = ServerProcess(
            tmp_path / "server", "--redis", f"{trust}&ssl_certfile={cert}&ssl_keyfile={key}"
        )
        stack.push_async_callback(process.stop)
        await process.start()
        async with AsyncClient(process.address, process.token) as admin:
            bots = [await admin.register_bot(name) for name in ("one", "two")]
            match = await admin.create_match("ugo", [bot.bot for bot in bots])
            async with asyncio.timeout(60):
                await asyncio.gather(*[
                    run_async("random", address=process.address, token=bot.token, queues=(), matches=1)
                    for bot in bots
                ])  # fmt: skip
            assert (await admin.get_match(match.name)).name in await admin.get_record(match.name)
        await process.stop()
        for url in (
            trust,
            f"rediss://localhost:{port}?ssl_certfile={cert}&ssl_keyfile={key}",  # trusts the public CAs only
            f"redis://localhost:{port}",
        ):
            async with Redis.from_url(url) as client:
                with pytest.raises(RedisError):
                    await client.ping()
