"""The private Redis: kept through kills, never left behind, one server to a folder."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
import redis

from seatwise_server import embedded as server_module
from seatwise_server.embedded import (
    DEATHS,
    DataFolderBusy,
    EmbeddedRedis,
    EmbeddedRedisError,
    RedisKeepsDying,
    is_ready,
)

OWNER = """
import sys, time
from pathlib import Path
from urllib.parse import unquote
from seatwise_server.embedded import EmbeddedRedis
server = EmbeddedRedis(Path(sys.argv[1]))
server.start()
print(server.pid, server.url, flush=True)
time.sleep(60)
"""


@contextlib.contextmanager
def client_of(server: EmbeddedRedis) -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(server.url)
    try:
        yield client
    finally:
        client.close()


def is_alive(pid: int | None) -> bool:
    """Whether the process runs; what only waits to be buried does not."""
    assert pid is not None
    return subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout[
        :1
    ] not in ("", "Z")


def until(holds: Callable[[], bool], within_s: float = 5) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)


def start_owner(folder: Path) -> tuple[subprocess.Popen[str], int]:
    """A process of its own that owns a Redis on the folder, and that Redis's process id."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    return owner, int(owner.stdout.readline().split()[0])


def end_owner(owner: subprocess.Popen[str]) -> None:
    owner.kill()
    owner.wait()
    assert owner.stdout is not None
    owner.stdout.close()


def test_written_data_survives_a_stop_and_a_start(tmp_path: Path) -> None:
    for expected in (1, 2):
        with EmbeddedRedis(tmp_path) as server, client_of(server) as client:
            assert client.incr("starts") == expected
            pid = server.pid
        assert not is_alive(pid)
    assert not (tmp_path / "redis.sock").exists()
    assert not (tmp_path / "redis.pid").exists()


def test_only_its_owner_gets_at_it(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / "data") as server, client_of(server) as client:
        assert client.config_get("port") == {"port": "0"}
        assert client.config_get("appendfsync") == {"appendfsync": "always"}
        for name in ("", "redis.sock", "redis.conf", "redis.pid", "redis.log", "lock", "appendonlydir"):
            assert stat.S_IMODE((tmp_path / "data" / name).stat().st_mode) & 0o077 == 0, name


def test_acknowledged_writes_survive_a_kill_of_redis(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path) as server, client_of(server) as client:
        client.set("moves", "acknowledged")
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        until(server.ensure_running)
        until(lambda: is_ready(tmp_path / "redis.sock"))
        assert client.get("moves") == b"acknowledged"
        assert not server.ensure_running()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_kill_9_of_the_owner_leaves_no_orphan(tmp_path: Path) -> None:
    owner, pid = start_owner(tmp_path)
    assert is_alive(pid)
    end_owner(owner)
    until(lambda: not is_alive(pid), within_s=2)


def test_a_start_right_after_kill_9_goes_on_at_once(tmp_path: Path) -> None:
    owner, pid = start_owner(tmp_path)
    end_owner(owner)
    started = time.monotonic()
    with EmbeddedRedis(tmp_path) as server:
        assert server.pid not in (pid, None)
        assert time.monotonic() - started < 3


@pytest.mark.parametrize("first", [signal.SIGCONT, signal.SIGSTOP])
def test_an_orphan_is_ended_and_its_data_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: signal.Signals
) -> None:
    monkeypatch.setattr(
        server_module, "with_death_signal", lambda command: command
    )  # as on a system without death signalses
    lost = EmbeddedRedis(tmp_path)
    lost.start()
    with client_of(lost) as client:
        client.set("moves", "acknowledged")
    os.kill(lost.pid or 0, first)  # a stopped orphan hears neither SHUTDOWN nor SIGTERM
    os.close(lost._lock or 0)  # all that the kernel does for a killed owner
    burial = threading.Thread(target=lambda: lost._child and lost._child.wait())
    burial.start()
    monkeypatch.setattr(server_module, "PROCESS_END_S", 0.3)
    with EmbeddedRedis(tmp_path) as server, client_of(server) as client:
        burial.join()
        assert client.get("moves") == b"acknowledged"


def test_a_process_that_has_the_orphans_number_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "redis.pid").write_text(f"{os.getpid()}\n{tmp_path / 'redis.sock'}\n")
    with EmbeddedRedis(tmp_path) as server:
        assert server.pid


def test_a_copy_of_a_data_folder_leaves_the_folder_that_it_is_of_alone(tmp_path: Path) -> None:
    """It deleted that folder, whose socket its own state named."""
    first, copy = tmp_path / "first" / "redis", tmp_path / "copy" / "redis"
    with EmbeddedRedis(first) as server, client_of(server) as client:
        client.set("moves", "acknowledged")
        shutil.copytree(first, copy, ignore=shutil.ignore_patterns("*.sock"))
        with EmbeddedRedis(copy) as other, client_of(other) as client_of_copy:
            assert client_of_copy.get("moves") == b"acknowledged"
        with client_of(server) as again:
            assert again.get("moves") == b"acknowledged"
        assert (first / "appendonlydir").is_dir()


def test_a_folder_may_be_named_by_a_link_at_one_start_and_not_at_the_next(tmp_path: Path) -> None:
    """The data were deleted, if the server had been killed in between."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with EmbeddedRedis(tmp_path / "real" / "redis") as server, client_of(server) as client:
        client.set("moves", "acknowledged")
    for first, second in (("link", "real"), ("real", "link")):
        owner, pid = start_owner(tmp_path / first / "redis")
        end_owner(owner)
        until(lambda pid=pid: not is_alive(pid))
        with EmbeddedRedis(tmp_path / second / "redis") as server, client_of(server) as client:
            assert client.get("moves") == b"acknowledged"


def test_a_torn_tail_of_the_file_is_cut_off(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path) as server, client_of(server) as client:
        client.set("moves", "acknowledged")
    [file] = (tmp_path / "appendonlydir").glob("*.incr.aof")
    with file.open("ab") as torn:
        torn.write(b"*3\r\n$3\r\nSET\r\n$5\r\nmov")
    with EmbeddedRedis(tmp_path) as server, client_of(server) as client:
        assert client.get("moves") == b"acknowledged"


def test_a_second_server_on_the_folder_is_refused_with_advice(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path) as server:
        with pytest.raises(DataFolderBusy) as busy:
            EmbeddedRedis(tmp_path).start()
        assert str(tmp_path) in str(busy.value)
        assert str(os.getpid()) in str(busy.value)
        assert "--data" in str(busy.value)
        assert server.pid


def test_a_folder_with_a_long_path_gets_a_short_socket(tmp_path: Path) -> None:
    folder = tmp_path / ("long " * 30).strip()
    with EmbeddedRedis(folder) as server, client_of(server) as client:
        socket = Path(unquote(server.url.removeprefix("unix://")))
        assert len(os.fsencode(socket)) <= 103
        assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
        assert client.incr("starts") == 1
    assert not socket.parent.exists()


def test_a_folder_with_odd_characters_works(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / 'a "b" \\ c #%20') as server:
        url = server.url
        client = redis.Redis.from_url(url)
        assert client.ping()
        client.close()


def test_it_is_started_from_the_main_thread_only(tmp_path: Path) -> None:
    raised: list[BaseException] = []

    def start() -> None:
        try:
            EmbeddedRedis(tmp_path).start()
        except RuntimeError as error:
            raised.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert len(raised) == 1
    with EmbeddedRedis(tmp_path):  # the failed start has given the folder back
        pass


def test_a_redis_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "appendonlydir").write_text("in the way")
    with pytest.raises(EmbeddedRedisError, match=r"did not start.*appendonlydir"):
        EmbeddedRedis(tmp_path).start()


def test_a_full_disk_is_named_and_what_was_there_is_there_again_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with EmbeddedRedis(tmp_path) as server:
        with client_of(server) as client:
            client.set("kept", "yes")
        os.kill(server.pid or 0, signal.SIGKILL)
        until(lambda: server.pid is None)
        with monkeypatch.context() as patch:
            patch.setattr(server_module, "write_private", full)
            with pytest.raises(RedisKeepsDying, match=f"{tmp_path}.*No space left"):
                server.ensure_running()
        assert server.ensure_running()
        with client_of(server) as client:
            until(lambda: is_ready(Path(unquote(server.url.removeprefix("unix://")))))
            assert client.get("kept") == b"yes"


async def test_it_is_supervised_until_it_keeps_dying(tmp_path: Path) -> None:
    killed: set[int] = set()
    with EmbeddedRedis(tmp_path) as server:
        supervisor = asyncio.create_task(server.supervise(every_s=0.01))
        while not supervisor.done():
            if server.pid and server.pid not in killed:
                killed.add(server.pid)
                os.kill(server.pid, signal.SIGKILL)
            await asyncio.sleep(0.01)
        with pytest.raises(RedisKeepsDying, match=str(tmp_path)):
            supervisor.result()
    assert len(killed) == DEATHS


def test_ctrl_c_in_the_terminal_is_not_for_redis(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path) as server:
        assert server.pid is not None
        assert os.getpgid(server.pid) != os.getpgid(0)
