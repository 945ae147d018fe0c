"""The guarantees that a Redis must give: every node of it, primaries and replicas, at the start and as long as a server runs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import structlog
from redis.exceptions import BusyLoadingError, InvalidResponse, RedisError, ResponseError

from seatwise_server.store.errors import StoreRefused, StoreUnavailable
from seatwise_server.store.redis.address import SLOTS, THE_PRIMARY, NodeAddress, RedisMode, open_for_commands
from seatwise_server.store.redis.client import (
    BRIDGED_S,
    RedisClient,
    as_pairs,
    pack_command,
    retry_through_outage,
)

OLDEST = (7, 0)
KNOWS_WAITAOF = (7, 2)
NODE_ANSWER_S = 3.0
"""A node that does not report within this time counts as unreachable."""

REWRITES_NOTHING = "0"
"""The percentage of growth with which an operator stops rewriting while the files are copied."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ReplicaWait:
    """The number of replicas that must have an append before it counts as written."""

    replicas: int = 0
    on_disk: bool = False
    """Whether a replica must have it on its disk. Then every node must know WAITAOF and keep an append-only file."""

    def commands(self, patience_s: float) -> list[bytes]:
        """Return the commands that follow each batch; none if no replica is waited for. `patience_s` is the timeout."""
        if not self.replicas:
            return []
        wait_ms = int(patience_s * 1000)
        wait = pack_command(("WAIT", self.replicas, wait_ms))
        return [wait, pack_command(("WAITAOF", 1, self.replicas, wait_ms))] if self.on_disk else [wait]


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The facts that one node reports about itself."""

    address: NodeAddress
    software: str
    """"redis" or "valkey"."""
    version: str
    """The version of the Redis command set; Valkey names the one that it follows."""
    role: str
    """"master" or "slave", in Redis's own words."""
    kind: str
    """"standalone", "cluster" or "sentinel"."""
    appendonly: bool
    appendfsync: str
    """"always", "everysec", "no", or "unknown" if CONFIG is not allowed."""
    maxmemory_policy: str
    replicas: tuple[NodeAddress, ...] = ()
    """The replicas that are connected to it now."""

    @property
    def is_lossless(self) -> bool:
        """Whether its acknowledged writes survive if it is killed."""
        return self.appendonly and self.appendfsync == "always"

    @property
    def name(self) -> str:
        """The name of the node in messages."""
        return self.software if self.address == THE_PRIMARY else f"{self.software} at {self.address}"


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """The guarantees of the Redis behind a URL."""

    mode: RedisMode
    primaries: tuple[NodeFacts, ...]
    replicas: tuple[NodeFacts, ...] = ()
    unreachable: tuple[NodeAddress, ...] = ()
    """Replicas that do not answer; their guarantees are not known."""
    wait_replicas: int = 0
    """The number of replicas that must have an append before it counts as written."""

    @property
    def nodes(self) -> tuple[NodeFacts, ...]:
        """All nodes that answered."""
        return self.primaries + self.replicas

    @property
    def software(self) -> str:
        """The software of the first primary."""
        return self.primaries[0].software

    @property
    def version(self) -> str:
        """The oldest version of all nodes."""
        return min((node.version for node in self.nodes), key=_version_number)

    @property
    def appendfsync(self) -> str:
        """The setting of all nodes; if they differ, all their settings."""
        return ", ".join(sorted({node.appendfsync for node in self.nodes}))

    @property
    def is_lossless(self) -> bool:
        """Whether Redis's acknowledged writes survive if every node is killed."""
        return all(node.is_lossless for node in self.nodes)

    @property
    def survives_failover(self) -> bool:
        """Whether they survive if a replica takes over for good; always True for a single server."""
        return self.mode is RedisMode.STANDALONE or self.wait_replicas > 0

    @property
    def durability(self) -> str:
        """The durability that matches and records name: "fsync" or "loss-allowed"."""
        return "fsync" if self.is_lossless and self.survives_failover else "loss-allowed"

    @property
    def summary(self) -> dict[str, Any]:
        """A summary for logs and health."""
        return {
            "redis": self.software,
            "version": self.version,
            "mode": str(self.mode),
            "primaries": len(self.primaries),
            "replicas": len(self.replicas),
            "unreachable": [str(address) for address in self.unreachable],
            "wait_replicas": self.wait_replicas,
        }

    @property
    def wait(self) -> ReplicaWait:
        """How the flusher waits for replicas."""
        is_known = all(_version_number(node.version) >= KNOWS_WAITAOF for node in self.nodes)
        are_all_seen = not self.unreachable and all(node.appendonly for node in self.nodes)
        return ReplicaWait(self.wait_replicas, on_disk=is_known and are_all_seen)


async def check_server(
    client: RedisClient, *, allow_loss: bool, wait_replicas: int = 0, within_s: float = BRIDGED_S
) -> ServerFacts:
    """Check all nodes of this Redis, and return what they guarantee.

    Raises StoreRefused if that is not enough, with the setting that would be, and StoreUnavailable if a primary
    does not answer. Replicas that do not answer are listed in `unreachable`.
    """
    try:
        facts = await retry_through_outage(lambda: read_facts(client, wait_replicas), within_s)
    except InvalidResponse as error:
        raise StoreRefused(f"The server at this URL is not Redis: {error}") from error
    _refuse_kind(facts)
    for node in facts.nodes:
        _refuse_old(node)
        _refuse_settings(node, allow_loss)
    _refuse_too_few_replicas(facts)
    return facts


async def check_settings(client: RedisClient, *, allow_loss: bool) -> None:
    """Check again, while the server runs, what may be set at any time. Raises StoreRefused if a primary is no longer safe.

    A replica that is not is logged, and an outage is for others to notice.
    """
    try:
        facts = await read_facts(client)
    except (RedisError, OSError, TimeoutError, StoreUnavailable):
        return
    for node in facts.nodes:
        try:
            _refuse_settings(node, allow_loss)
        except StoreRefused as refused:
            if node in facts.primaries:
                raise
            log.error("replica_is_not_safe", node=node.name, why=str(refused))


async def read_facts(client: RedisClient, wait_replicas: int = 0) -> ServerFacts:
    """Return what all nodes report. Raises StoreUnavailable or a RedisError if a primary does not answer."""
    spans = await _read_spans(client)
    primaries = [await _ask_node(client, address) for address in sorted({span.primary for span in spans})]
    wanted = [replica for primary in primaries for replica in primary.replicas]
    found = await asyncio.gather(*(_ask_replica(client, address) for address in wanted))
    return ServerFacts(
        mode=client.mode,
        primaries=tuple(primaries),
        replicas=tuple(node for node in found if node is not None),
        unreachable=tuple(address for address, node in zip(wanted, found, strict=True) if node is None),
        wait_replicas=wait_replicas,
    )


async def _read_spans(client: RedisClient) -> Any:
    try:
        spans = await client.routes.read_spans()
    except ResponseError as error:
        if "cluster support disabled" not in str(error):
            raise
        raise StoreRefused("This Redis is not a cluster; name it with redis://HOST") from error
    covered = sum(span.last - span.first + 1 for span in spans)
    if covered != SLOTS:
        raise StoreUnavailable(f"The cluster covers {covered} of its {SLOTS} slots: a shard of it is down.")
    return spans


async def _ask_replica(client: RedisClient, address: NodeAddress) -> NodeFacts | None:
    try:
        return await _ask_node(client, address)
    except (RedisError, OSError):
        return None


async def _ask_node(client: RedisClient, address: NodeAddress) -> NodeFacts:
    async with open_for_commands(client.routes.new_connection(address), NODE_ANSWER_S) as ask:
        info = _parse_info(await ask("INFO"))
        if info.get("loading") == "1":  # while it loads, it reports that it has no append-only file
            raise BusyLoadingError("it is loading its data from disk")
        return NodeFacts(
            address=address,
            software=info.get("server_name", "redis"),
            version=info.get("redis_version", "0"),
            role=info.get("role", ""),
            kind=info.get("redis_mode") or info.get("server_mode", "standalone"),
            appendonly=info.get("aof_enabled") == "1",
            appendfsync=await read_setting(ask, "appendfsync"),
            maxmemory_policy=info.get("maxmemory_policy", "unknown"),
            replicas=tuple(_parse_replicas(info)),
        )


def _parse_info(answer: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in answer.decode().splitlines() if not line.startswith("#"))
    return {name: value for name, _, value in lines}


def _parse_replicas(info: dict[str, str]) -> Iterable[NodeAddress]:
    """Parse `slave0:ip=10.0.0.7,port=6379,state=online,...`."""
    for name, value in info.items():
        if re.fullmatch(r"slave\d+", name):
            fields = dict(part.partition("=")[::2] for part in value.split(","))
            if fields.get("state") == "online":
                yield NodeAddress(fields["ip"], int(fields["port"]))


async def read_setting(ask: Any, name: str) -> str:
    """Return a setting of the node that `ask` asks, or "unknown" where CONFIG is not allowed."""
    try:
        answer = await ask("CONFIG", "GET", name)
    except ResponseError:  # hosted services do not allow CONFIG
        return "unknown"
    return next((str(value.decode()) for _, value in as_pairs(answer)), "unknown")


def _version_number(version: str) -> tuple[int, int]:
    major, minor = map(int, re.findall(r"\d+", version + ".0")[:2])
    return major, minor


def _refuse_kind(facts: ServerFacts) -> None:
    for node in facts.primaries:
        if node.kind == "sentinel":
            raise StoreRefused("This is a sentinel; name the service too: redis+sentinel://HOST,HOST/SERVICE")
        if node.kind == "cluster" and facts.mode is not RedisMode.CLUSTER:
            why = f"This {node.name} is a node of a cluster; name it with redis+cluster://HOST,HOST"
            raise StoreRefused(why)
        if node.role == "slave":
            raise StoreRefused(
                f"This {node.name} is a replica: it takes no writes. Name its primary, or the sentinels "
                "that know it: redis+sentinel://HOST,HOST/SERVICE"
            )


def _refuse_old(node: NodeFacts) -> None:
    if _version_number(node.version) < OLDEST:
        raise StoreRefused(
            f"This {node.name} speaks version {node.version} of the Redis command set; "
            "Seatwise needs 7.0 or newer (or any Valkey)."
        )


def _refuse_settings(node: NodeFacts, allow_loss: bool) -> None:
    if node.maxmemory_policy != "noeviction":
        raise StoreRefused(
            f"This {node.name} may evict matches when memory is short: maxmemory-policy is "
            f'"{node.maxmemory_policy}". Set: CONFIG SET maxmemory-policy noeviction'
        )
    if allow_loss:
        return
    if not node.appendonly:
        raise StoreRefused(
            f"This {node.name} keeps no append-only file, so its restart would lose acknowledged moves. "
            "Set: CONFIG SET appendonly yes appendfsync always  (or accept the loss with --allow-loss)"
        )
    if node.appendfsync != "always":
        raise StoreRefused(
            f'This {node.name} may lose acknowledged moves: appendfsync is "{node.appendfsync}". '
            "Set: CONFIG SET appendfsync always  (or accept the loss with --allow-loss)"
        )


def _refuse_too_few_replicas(facts: ServerFacts) -> None:
    for node in facts.primaries:
        if len(node.replicas) < facts.wait_replicas:
            raise StoreRefused(
                f"Every append must wait for {facts.wait_replicas} replicas (--wait-replicas), but this "
                f"{node.name} has {len(node.replicas)}. Connect more, or wait for fewer."
            )


async def rewrite_files(client: RedisClient) -> bool:
    """Ask every node, primaries and replicas. Return whether all have begun; the log names those that have not.

    A node does not begin while its operator has turned rewriting off, which is how a backup is made.
    """
    try:
        facts = await read_facts(client)
    except (RedisError, OSError, StoreUnavailable) as error:
        log.warning("redis_files_not_rewritten", why=str(error))
        return False
    begun = await asyncio.gather(*(_rewrite_node(client, node.address) for node in facts.nodes))
    return all(begun) and not facts.unreachable


async def _rewrite_node(client: RedisClient, address: NodeAddress) -> bool:
    try:
        async with open_for_commands(client.routes.new_connection(address), NODE_ANSWER_S) as ask:
            if await read_setting(ask, "auto-aof-rewrite-percentage") == REWRITES_NOTHING:
                raise ResponseError("auto-aof-rewrite-percentage is 0")
            await ask("BGREWRITEAOF")
    except (RedisError, OSError) as error:
        log.warning("redis_files_not_rewritten", node=str(address), why=str(error))
        return False
    return True
