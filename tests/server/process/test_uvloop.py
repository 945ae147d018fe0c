"""A server on uvloop, which is an extra: it plays a match and ends in order. Without the extra, the option is refused."""

from __future__ import annotations

import asyncio
import signal

import pytest
from harness import server_process

from seatwise.v1 import match_pb2
from seatwise_server.background_tasks import run_in_loop
from seatwise_server.cli import serve

pytest.importorskip("uvloop", reason="uvloop is not installed")


async def name_loop() -> str:
    return type(asyncio.get_running_loop()).__module__


def test_a_coroutine_runs_in_the_loop_that_was_asked_for() -> None:
    assert run_in_loop(name_loop(), with_uvloop=True).startswith("uvloop")
    assert run_in_loop(name_loop(), with_uvloop=False).startswith("asyncio")


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.slow
async def test_a_match_is_played_on_a_server_on_uvloop_which_ends_in_order() -> None:
    async with server_process("--uvloop") as (process, house):
        async with house.table() as table:
            await table.sit()
            ended = await table.play_out()
        assert set(ended[0].result.endings) == {match_pb2.ENDING_COMPLETED}
        process.signal(signal.SIGTERM)
        assert await process.ended() == 0


def test_without_the_extra_the_option_is_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve, "has_uvloop", lambda: False)
    parser = serve.ArgumentParser()
    serve.add_options(parser)
    assert serve.run(parser.parse_args(["--uvloop"])) == 2
    assert "install '.[server,uvloop]'" in capsys.readouterr().err
