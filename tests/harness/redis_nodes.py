"""Real Redis nodes on loopback: a cluster of three shards, or a primary with replicas and sentinels.

with cluster_in(folder) as cluster:
    cluster.primary_of("some key").kill()

Every process ends with the block; should this process be killed, they end with it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import redis
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.retry import Retry

from seatwise.child_process import with_death_signal
from seatwise_server.embedded import find_server_binary

SERVICE = "seatwise"
"""What the sentinels call their primary."""

NODE_TIMEOUT_MS = 1_000
"""After so long a node of a cluster that does not answer is replaced."""

SENTINEL_DOWN_MS = 1_500
"""The same for sentinels. A sentinel that has lost a link tries again only after a second. With a time of a second it
took each new primary for dead just then, and replaced it in the middle of the next test."""

PATIENCE_S = 30.0
SLOTS = 16_384

Options: TypeAlias = dict[str, str | int]

DURABLE: Options = {
    "appendonly": "yes",
    "appendfsync": "always",
    "save": "",
    "repl-diskless-sync-delay": 0,
    "repl-ping-replica-period": 1,
}


def binaries() -> list[Path]:
    """The packaged server, and a redis-server on PATH if there is one: whatever is here shall work."""
    on_path = shutil.which("redis-server")
    return [find_server_binary(), *([Path(on_path)] if on_path else [])]


class Node:
    """One server process; it keeps its ports and its folder through all restarts."""

    def __init__(self, binary: Path, folder: Path, options: Options, mode: str = "") -> None:
        self.binary = binary
        self.folder = folder
        self.mode = mode
        self.port, self.bus_port = free_ports(2)
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """host:port."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts it, or starts it again with what is in its folder; returns when it answers."""
        self.folder.mkdir(exist_ok=True)
        conf = self.folder / "node.conf"
        if not conf.exists():  # a sentinel writes down here what it has learnt
            conf.write_text(self._configuration())
        command = [str(self.binary), str(conf), *([self.mode] if self.mode else [])]
        self._process = subprocess.Popen(
            with_death_signal(command), cwd=self.folder, stdout=subprocess.DEVNULL
        )
        until(self._answers, f"{self.address} answers")

    def _configuration(self) -> str:
        lines = [
            f"port {self.port}",
            "bind 127.0.0.1",
            f'dir "{self.folder}"',
            f'logfile "{self.folder}/log"',
        ]
        if "cluster-enabled" in self._options:
            lines.append(f"cluster-port {self.bus_port}")
        lines += [
            f"{name} {value!r}" if value == "" else f"{name} {value}" for name, value in self._options.items()
        ]
        return "\n".join([*lines, ""])

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "log").read_text()[-500:]
        try:
            return bool(self.ask("PING") == b"PONG")
        except redis.RedisError:  # not there yet, or loading
            return False

    def ask(self, *command: str | int | bytes) -> Any:
        """Its answer, as it came over the line; on a new line, for nodes hang up when they change their role."""
        line = redis.Connection(port=self.port, protocol=2, socket_timeout=5, retry=Retry(NoBackoff(), 0))
        try:
            line.send_command(*command)  # type: ignore[no-untyped-call]
            return line.read_response()  # type: ignore[no-untyped-call]
        finally:
            line.disconnect()

    def info(self) -> dict[str, str]:
        """What INFO says."""
        lines = (line.partition(":") for line in self.ask("INFO").decode().splitlines())
        return {name: value for name, _, value in lines}

    def read_offset(self) -> int:
        """How far a replica has read what its primary writes."""
        return int(self.info().get("slave_repl_offset", -1))

    def signal(self, number: signal.Signals) -> None:
        """SIGKILL, SIGSTOP, SIGCONT."""
        assert self._process is not None
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        """Ends it without a chance to say anything; does nothing when it has ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def is_alive(self) -> bool:
        """Whether there is a process."""
        return self._process is not None


class Nodes:
    """Several data nodes that replicate."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = list(nodes)

    def restart(self) -> None:
        """Starts whoever is dead; nobody waits until it has found its part."""
        for node in self.nodes:
            if not node.is_alive:
                node.start()

    def revive(self) -> None:
        """Starts the dead nodes, and waits until every node has a part and every replica has everything."""
        self.restart()
        until(self._comes_together, "all replicas follow")

    def empty(self) -> None:
        """Forgets everything, also at the replicas; they have to be whole.

        Redis 7.0 may list a replica as online, and send it nothing for another second.
        """
        primaries = [node for node in self.nodes if node.info()["role"] == "master"]
        for primary in primaries:
            primary.ask("FLUSHALL")
        for primary in primaries:
            self._await_replicas_of(primary)

    def _await_replicas_of(self, primary: Node) -> None:
        """Waits until its replicas have all that it has written."""
        written = int(primary.info()["master_repl_offset"])
        replicas = self.replicas_of(primary)
        until(lambda: all(node.read_offset() >= written for node in replicas), "all replicas are empty")

    def _comes_together(self) -> bool:
        return self.is_whole()

    def is_whole(self) -> bool:
        """Whether all live, and every replica follows a primary of today."""
        try:
            return self._is_whole()
        except redis.ConnectionError:  # a node that becomes a replica hangs up on everybody
            return False

    def _is_whole(self) -> bool:
        infos = [node.info() for node in self.nodes]
        followed = sum(int(it["connected_slaves"]) for it in infos if it["role"] == "master")
        replicas = [it for it in infos if it["role"] == "slave"]
        are_up = all(it["master_link_status"] == "up" for it in replicas)
        return are_up and followed == len(replicas) == self._replicas and self._agrees()

    _replicas: int

    def _agrees(self) -> bool:
        raise NotImplementedError

    def cut_off(self, primary: Node) -> list[Node]:
        """Stops the primary's replicas and their links: from now on it writes for itself alone."""
        cut = [node for node in self.replicas_of(primary) if node.is_alive]
        for node in cut:
            node.signal(signal.SIGSTOP)
        primary.ask("CLIENT KILL", "TYPE", "replica")
        return cut

    def replicas_of(self, primary: Node) -> list[Node]:
        """Who follows it now."""
        said = [value for name, value in primary.info().items() if name.startswith("slave")]
        return [node for node in self.nodes if any(f"port={node.port}," in it for it in said)]


class ClusterNodes(Nodes):
    """Three primaries with a replica each."""

    _replicas = 3

    @property
    def url(self) -> str:
        """Names two of the nodes."""
        return f"redis+cluster://{self.nodes[0].address},{self.nodes[4].address}"

    def primary_of(self, key: str) -> Node:
        """The node that holds the key, as the nodes that live see it."""
        return next(node for node in self.nodes if self.keys_at(node, [key]))

    def keys_at(self, node: Node, names: Sequence[str]) -> list[str]:
        """Those of the keys that the node holds, as the nodes that live see it."""
        rows = next(it for it in self.nodes if it.is_alive).ask("CLUSTER SLOTS")
        spans = [range(first, last + 1) for first, last, (_, port, *_), *_ in rows if port == node.port]
        return [name for name in names if any(key_slot(name.encode()) in span for span in spans)]

    def primaries(self) -> list[Node]:
        """One for each shard."""
        return [node for node in self.nodes if node.is_alive and node.info()["role"] == "master"]

    def form(self) -> None:
        """Makes a cluster of nodes that know nothing yet."""
        first, *others = self.nodes
        for number, node in enumerate(self.nodes[:3]):
            node.ask("CLUSTER ADDSLOTSRANGE", number * SLOTS // 3, (number + 1) * SLOTS // 3 - 1)
        for number, node in enumerate(self.nodes):
            node.ask("CLUSTER SET-CONFIG-EPOCH", number + 1)
        for node in others:
            node.ask("CLUSTER MEET", "127.0.0.1", first.port, first.bus_port)
        until(self._all_known, "all nodes know each other")
        for primary, replica in zip(self.nodes[:3], self.nodes[3:], strict=True):
            replica.ask("CLUSTER REPLICATE", primary.ask("CLUSTER MYID"))
        until(self.is_whole, "all replicas follow")

    def _all_known(self) -> bool:
        """Links have to stand both ways: a handshake that is not over knows nobody's real name."""
        said = [node.ask("CLUSTER NODES") for node in self.nodes]
        return all(b"handshake" not in it and len(it.splitlines()) == 6 for it in said)

    def _agrees(self) -> bool:
        for node in self.nodes:
            said = node.ask("CLUSTER NODES")
            if said.count(b"slave ") != 3 or b"fail" in said:
                return False
        return all(b"cluster_state:ok" in node.ask("CLUSTER INFO") for node in self.nodes)


class SentinelNodes(Nodes):
    """A primary with two replicas, watched by three sentinels."""

    _replicas = 2

    def __init__(self, nodes: Sequence[Node], sentinels: Sequence[Node]) -> None:
        super().__init__(nodes)
        self.sentinels = list(sentinels)

    @property
    def url(self) -> str:
        """Names all sentinels."""
        return f"redis+sentinel://{','.join(it.address for it in self.sentinels)}/{SERVICE}"

    def primary(self) -> Node:
        """Who is the primary, as the first living sentinel sees it."""
        sentinel = next(node for node in self.sentinels if node.is_alive)
        _, port = sentinel.ask("SENTINEL GET-MASTER-ADDR-BY-NAME", SERVICE)
        return next(node for node in self.nodes if node.port == int(port))

    def form(self) -> None:
        """Makes followers of two, and waits until the sentinels know each other and all data nodes."""
        for node in self.nodes[1:]:
            node.ask("REPLICAOF", "127.0.0.1", self.nodes[0].port)
        for node in self.sentinels:
            node.start()
        until(self.is_whole, "all replicas follow and all sentinels know it")

    def _comes_together(self) -> bool:
        """Left alone, the sentinels make replicas of former primaries only after ten seconds."""
        states = [self._state_at(sentinel) for sentinel in self.sentinels]
        agreed = {state[b"port"] for state in states}
        if len(agreed) > 1 or any(b"failover_in_progress" in state[b"flags"] for state in states):
            return False  # a primary that has just been promoted is not to become a replica again
        if self.is_whole():
            return True
        [port] = agreed
        for node in self.nodes:
            with suppress(redis.ConnectionError):  # it has just heard of it
                if node.port != int(port) and node.info()["role"] == "master":
                    node.ask("REPLICAOF", "127.0.0.1", port)
        return False

    def _agrees(self) -> bool:
        return all(self._knows_all(sentinel) for sentinel in self.sentinels)

    def _state_at(self, sentinel: Node) -> dict[bytes, bytes]:
        """What the sentinel says of the primary."""
        [answer] = sentinel.ask("SENTINEL MASTERS")
        return dict(zip(answer[::2], answer[1::2], strict=True))

    def _knows_all(self, sentinel: Node) -> bool:
        state = self._state_at(sentinel)
        wanted = {b"num-slaves": b"2", b"num-other-sentinels": b"2", b"flags": b"master"}
        return wanted.items() <= state.items() and int(state[b"port"]) == self.primary().port


@contextmanager
def cluster_in(folder: Path, binary: Path | None = None) -> Iterator[ClusterNodes]:
    """Three primaries with a replica each, whole and agreed."""
    options: Options = DURABLE | {
        "cluster-enabled": "yes",
        "cluster-config-file": "nodes.conf",
        "cluster-node-timeout": NODE_TIMEOUT_MS,
        "cluster-replica-validity-factor": 0,
        "cluster-allow-replica-migration": "no",
    }
    with _started(folder, binary or find_server_binary(), [options] * 6) as nodes:
        cluster = ClusterNodes(nodes)
        cluster.form()
        yield cluster


@contextmanager
def sentinels_in(folder: Path, binary: Path | None = None) -> Iterator[SentinelNodes]:
    """A primary with two replicas and three sentinels, whole and agreed."""
    binary = binary or find_server_binary()
    with _started(folder, binary, [DURABLE] * 3) as nodes, ExitStack() as stack:
        options: Options = {
            f"sentinel monitor {SERVICE}": f"127.0.0.1 {nodes[0].port} 2",
            f"sentinel down-after-milliseconds {SERVICE}": SENTINEL_DOWN_MS,
            f"sentinel failover-timeout {SERVICE}": 3_000,
        }
        sentinels = [
            Node(binary, folder / f"sentinel-{number}", options, "--sentinel") for number in range(3)
        ]
        for sentinel in sentinels:
            stack.callback(sentinel.kill)
        watched = SentinelNodes(nodes, sentinels)
        watched.form()
        yield watched


@contextmanager
def _started(folder: Path, binary: Path, options: Sequence[Options]) -> Iterator[list[Node]]:
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        nodes = [Node(binary, folder / f"node-{number}", it) for number, it in enumerate(options)]
        for node in nodes:
            stack.callback(node.kill)
            node.start()
        yield nodes


def free_ports(count: int) -> list[int]:
    """Ports that nobody has now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for it in sockets:
            it.bind(("127.0.0.1", 0))
        return [it.getsockname()[1] for it in sockets]


def until(holds: Callable[[], bool], what: str, within_s: float = PATIENCE_S) -> None:
    """Waits for processes outside, and for no longer than that."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {within_s:.0f} s: {what}"
        time.sleep(0.01)
