"""What Redis does with the commands that the store sends, and no more than these: data without a network.

Replies are Python's: bytes for a bulk string, int, None, list, `Status` for a simple string; `Refused` is
raised for an error. `test_redis_model.py` holds it against a real server.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from simulation.lua import Scripts

Id: TypeAlias = tuple[int, int]

FIRST: Id = (0, 0)
LAST: Id = (2**64, 0)
FOR_EVER_MS = 2**63


class Refused(Exception):
    """An error reply."""


class Status(str):
    """A simple string."""


OK = Status("OK")


@dataclass
class Pending:
    """An entry that a consumer has been given and has not acknowledged."""

    consumer: bytes
    since_ms: int
    deliveries: int = 1


@dataclass
class Group:
    """A consumer group."""

    last: Id = FIRST
    pending: dict[Id, Pending] = field(default_factory=dict)
    consumers: dict[bytes, None] = field(default_factory=dict)


@dataclass
class Stream:
    """Entries in the order of their ids."""

    ids: list[Id] = field(default_factory=list)
    fields: dict[Id, list[bytes]] = field(default_factory=dict)
    last: Id = FIRST
    groups: dict[bytes, Group] = field(default_factory=dict)

    def between(self, first: Id, last: Id, count: int | None = None) -> list[Id]:
        """Ids from the first to the last of these, both included."""
        found = self.ids[bisect.bisect_left(self.ids, first) : bisect.bisect_right(self.ids, last)]
        return found if count is None else found[:count]

    def rows(self, ids: list[Id]) -> list[Any]:
        """As replies show entries."""
        return [[_text(each), self.fields.get(each)] for each in ids]

    def drop(self, entry: Id) -> int:
        """How many there were of it."""
        if entry not in self.fields:
            return 0
        del self.fields[entry]
        self.ids.remove(entry)
        return 1


class ZSet(dict[bytes, float]):
    """Members with scores."""

    def in_order(self) -> list[tuple[float, bytes]]:
        """By score, then by name."""
        return sorted((score, member) for member, score in self.items())


class Redis:
    """The data of one server, and what it does to them."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self.data: dict[bytes, Any] = {}
        self._ends_ms: dict[bytes, int] = {}
        self.added: set[bytes] = set()
        """Streams that have something new, for those who wait for it."""
        self.publish: Callable[[bytes, bytes], int] = lambda _channel, _text: 0
        self.on_unlink: Callable[[bytes, Any], None] = lambda _key, _value: None
        self.scripts = Scripts(self.call)
        self._names: dict[bytes, Callable[..., Any]] = {
            name.removeprefix("do_").upper().encode(): getattr(self, name)
            for name in dir(self)
            if name.startswith("do_")
        }

    @property
    def now_ms(self) -> int:
        """Its clock."""
        return self._now_us() // 1000

    def call(self, *command: bytes) -> Any:
        """One command."""
        act = self._names.get(command[0].upper())
        if act is None:
            raise Refused(f"ERR unknown command '{command[0].decode()}'")
        return act(*command[1:])

    # Keys

    def peek(self, key: str) -> Any:
        """What is there, for whoever checks; not to be changed."""
        return self._get(key.encode(), lambda: None, keep=False)

    def names(self) -> list[str]:
        """All that there are now, for whoever checks."""
        return [
            key.decode() for key in list(self.data) if self._get(key, lambda: None, keep=False) is not None
        ]

    def _get(self, key: bytes, new: Callable[[], Any], *, keep: bool = True) -> Any:
        ends = self._ends_ms.get(key)
        if ends is not None and ends <= self.now_ms:
            self._drop(key)
        value = self.data.get(key)
        if value is None:
            value = new()
            if keep:
                self.data[key] = value
        return value

    def _drop(self, key: bytes) -> bool:
        self._ends_ms.pop(key, None)
        return self.data.pop(key, None) is not None

    def _tidy(self, key: bytes) -> None:
        """An empty collection is none."""
        if not self.data.get(key):
            self._drop(key)

    def _hash(self, key: bytes, *, keep: bool = False) -> dict[bytes, bytes]:
        return self._get(key, dict, keep=keep)  # type: ignore[no-any-return]

    def _zset(self, key: bytes, *, keep: bool = False) -> ZSet:
        return self._get(key, ZSet, keep=keep)  # type: ignore[no-any-return]

    def _set(self, key: bytes, *, keep: bool = False) -> dict[bytes, None]:
        return self._get(key, dict, keep=keep)  # type: ignore[no-any-return]

    def _stream(self, key: bytes, *, keep: bool = False) -> Stream:
        return self._get(key, Stream, keep=keep)  # type: ignore[no-any-return]

    def do_exists(self, key: bytes) -> int:
        return int(self._get(key, lambda: None, keep=False) is not None)

    def do_unlink(self, *keys: bytes) -> int:
        count = 0
        for key in keys:
            value = self._get(key, lambda: None, keep=False)
            if value is not None:
                self.on_unlink(key, value)
                count += self._drop(key)
        return count

    def do_pexpire(self, key: bytes, ms: bytes) -> int:
        if not self.do_exists(key):
            return 0
        self._ends_ms[key] = self.now_ms + int(ms)
        return 1

    def do_pttl(self, key: bytes) -> int:
        if not self.do_exists(key):
            return -2
        ends = self._ends_ms.get(key)
        return -1 if ends is None else ends - self.now_ms

    def do_time(self) -> list[bytes]:
        now = self._now_us()
        return [b"%d" % (now // 1_000_000), b"%d" % (now % 1_000_000)]

    # Strings

    def do_get(self, key: bytes) -> bytes | None:
        return self._get(key, lambda: None, keep=False)  # type: ignore[no-any-return]

    def do_set(self, key: bytes, value: bytes, *how: bytes) -> Status | None:
        if b"NX" in how and self.do_exists(key):
            return None
        self.data[key] = value
        self._ends_ms.pop(key, None)
        if how:
            assert how[0] == b"PX", how
            self.do_pexpire(key, how[1])
        return OK

    def do_incr(self, key: bytes) -> int:
        value = int(self.do_get(key) or 0) + 1
        self.data[key] = b"%d" % value
        return value

    # Hashes

    def do_hget(self, key: bytes, name: bytes) -> bytes | None:
        return self._hash(key).get(name)

    def do_hexists(self, key: bytes, name: bytes) -> int:
        return int(name in self._hash(key))

    def do_hlen(self, key: bytes) -> int:
        return len(self._hash(key))

    def do_hmget(self, key: bytes, *names: bytes) -> list[bytes | None]:
        held = self._hash(key)
        return [held.get(name) for name in names]

    def do_hgetall(self, key: bytes) -> list[bytes]:
        return [part for pair in self._hash(key).items() for part in pair]

    def do_hkeys(self, key: bytes) -> list[bytes]:
        return list(self._hash(key))

    def do_hset(self, key: bytes, *pairs: bytes) -> int:
        held = self._hash(key, keep=True)
        before = len(held)
        held.update(zip(pairs[::2], pairs[1::2], strict=True))
        return len(held) - before

    def do_hsetnx(self, key: bytes, name: bytes, value: bytes) -> int:
        held = self._hash(key, keep=True)
        if name in held:
            return 0
        held[name] = value
        return 1

    def do_hincrby(self, key: bytes, name: bytes, by: bytes) -> int:
        held = self._hash(key, keep=True)
        value = int(held.get(name, 0)) + int(by)
        held[name] = b"%d" % value
        return value

    def do_hdel(self, key: bytes, *names: bytes) -> int:
        held = self._hash(key)
        count = sum(held.pop(name, None) is not None for name in names)
        self._tidy(key)
        return count

    # Sets

    def do_sadd(self, key: bytes, *members: bytes) -> int:
        held = self._set(key, keep=True)
        before = len(held)
        held.update(dict.fromkeys(members))
        return len(held) - before

    def do_srem(self, key: bytes, *members: bytes) -> int:
        held = self._set(key)
        count = sum(held.pop(member, 0) is None for member in members)
        self._tidy(key)
        return count

    def do_sismember(self, key: bytes, member: bytes) -> int:
        return int(member in self._set(key))

    def do_smembers(self, key: bytes) -> list[bytes]:
        return list(self._set(key))

    def do_scard(self, key: bytes) -> int:
        return len(self._set(key))

    # Sorted sets

    def do_zadd(self, key: bytes, *args: bytes) -> int:
        how = args[0] if args[0] in (b"NX", b"LT") else b""
        held = self._zset(key, keep=True)
        before = len(held)
        pairs = args[1:] if how else args
        for score, member in zip(pairs[::2], pairs[1::2], strict=True):
            if member not in held or how == b"" or (how == b"LT" and float(score) < held[member]):
                held[member] = float(score)
        return len(held) - before

    def do_zrem(self, key: bytes, *members: bytes) -> int:
        held = self._zset(key)
        count = sum(held.pop(member, None) is not None for member in members)
        self._tidy(key)
        return count

    def do_zscore(self, key: bytes, member: bytes) -> bytes | None:
        score = self._zset(key).get(member)
        return None if score is None else _number(score)

    def do_zcard(self, key: bytes) -> int:
        return len(self._zset(key))

    def do_zrank(self, key: bytes, member: bytes) -> int | None:
        names = [name for _, name in self._zset(key).in_order()]
        return names.index(member) if member in names else None

    def do_zrange(self, key: bytes, first: bytes, last: bytes, *how: bytes) -> list[bytes]:
        found = self._zset(key).in_order()
        if b"BYSCORE" in how:
            low, high = (last, first) if b"REV" in how else (first, last)
            found = [each for each in found if _is_within(each[0], low, high)]
            found = found[::-1] if b"REV" in how else found
        elif b"BYLEX" in how:
            found = [each for each in found if _is_behind(each[1], first) and _is_before(each[1], last)]
        else:
            found = _slice(found, int(first), int(last))
        if b"LIMIT" in how:
            at = how.index(b"LIMIT")
            found = found[int(how[at + 1]) :][: int(how[at + 2])]
        if b"WITHSCORES" in how:
            return [part for score, name in found for part in (name, _number(score))]
        return [name for _, name in found]

    def do_zremrangebyscore(self, key: bytes, low: bytes, high: bytes) -> int:
        gone = [name for name, score in self._zset(key).items() if _is_within(score, low, high)]
        return self.do_zrem(key, *gone) if gone else 0

    # Streams

    def do_xadd(self, key: bytes, *args: bytes) -> bytes | None:
        if args[0] == b"NOMKSTREAM":
            if not self.do_exists(key):
                return None
            args = args[1:]
        if args[0] == b"MAXLEN":
            args = args[3:] if args[1] == b"~" else args[2:]
        stream = self._stream(key, keep=True)
        entry = self._next_id(stream) if args[0] == b"*" else _id(args[0])
        if entry <= stream.last:
            self._tidy_stream(key, stream)
            raise Refused("ERR The ID specified in XADD is equal or smaller than the target stream top item")
        stream.ids.append(entry)
        stream.fields[entry] = list(args[1:])
        stream.last = entry
        self.added.add(key)
        return _text(entry)

    def _next_id(self, stream: Stream) -> Id:
        now = (self.now_ms, 0)
        return now if now > stream.last else (stream.last[0], stream.last[1] + 1)

    def _tidy_stream(self, key: bytes, stream: Stream) -> None:
        if stream.last == FIRST and not stream.groups:
            self._drop(key)

    def do_xsetid(self, key: bytes, last: bytes) -> Status:
        if not self.do_exists(key):
            raise Refused("ERR no such key")
        stream = self._stream(key)
        if stream.ids and _id(last) < stream.ids[-1]:
            raise Refused("ERR The ID specified in XSETID is smaller than the target stream top item")
        stream.last = _id(last)
        return OK

    def do_xlen(self, key: bytes) -> int:
        return len(self._stream(key).ids)

    def do_xrange(self, key: bytes, first: bytes, last: bytes, *how: bytes) -> list[Any]:
        stream = self._stream(key)
        return stream.rows(stream.between(_from(first), _to(last), int(how[1]) if how else None))

    def do_xrevrange(self, key: bytes, last: bytes, first: bytes, *how: bytes) -> list[Any]:
        stream = self._stream(key)
        found = stream.between(_from(first), _to(last))[::-1]
        return stream.rows(found[: int(how[1])] if how else found)

    def do_xdel(self, key: bytes, *ids: bytes) -> int:
        stream = self._stream(key)
        return sum(stream.drop(_id(each)) for each in ids)

    def do_xtrim(self, key: bytes, _minid: bytes, least: bytes) -> int:
        stream = self._stream(key)
        return sum(stream.drop(each) for each in list(stream.ids) if each < _id(least))

    def do_xread(self, *args: bytes) -> list[Any] | None:
        how, (key, after) = _split(args)
        stream = self._stream(key)
        found = stream.between(_next(_id(after)), LAST, _count(how))
        return [[key, stream.rows(found)]] if found else None

    # Groups

    def do_xgroup(self, what: bytes, key: bytes, name: bytes, *args: bytes) -> Any:
        if what == b"CREATE":
            stream = self._stream(key, keep=True)
            if name in stream.groups:
                raise Refused("BUSYGROUP Consumer Group name already exists")
            stream.groups[name] = Group(last=stream.last if args[0] == b"$" else _id(args[0]))
            return OK
        assert what == b"DELCONSUMER", what
        group = self._group(key, name)
        group.consumers.pop(args[0], None)
        gone = [each for each, held in group.pending.items() if held.consumer == args[0]]
        for each in gone:
            del group.pending[each]
        return len(gone)

    def _group(self, key: bytes, name: bytes) -> Group:
        group = self._stream(key).groups.get(name)
        if group is None:
            raise Refused(f"NOGROUP No such key '{key.decode()}' or consumer group '{name.decode()}'")
        return group

    def do_xreadgroup(self, _group: bytes, name: bytes, consumer: bytes, *args: bytes) -> list[Any] | None:
        at = args.index(b"STREAMS")
        how, named = args[:at], args[at + 1 :]
        streams = list(zip(named[: len(named) // 2], named[len(named) // 2 :], strict=True))
        for key, _ in streams:
            self._group(key, name)
        found = [self._read_of_group(key, name, consumer, how, after) for key, after in streams]
        return [each for each in found if each] or None

    def _read_of_group(
        self, key: bytes, name: bytes, consumer: bytes, how: tuple[bytes, ...], after: bytes
    ) -> list[Any] | None:
        group, stream = self._group(key, name), self._stream(key)
        group.consumers[consumer] = None
        if after != b">":
            own = sorted(each for each, held in group.pending.items() if held.consumer == consumer)
            own = [each for each in own if each > _id(after)]
            return [key, stream.rows(own[: _count(how)])]
        found = stream.between(_next(group.last), LAST, _count(how))
        for each in found:
            group.pending[each] = Pending(consumer, self.now_ms)
            group.last = each
        return [key, stream.rows(found)] if found else None

    def do_xack(self, key: bytes, name: bytes, *ids: bytes) -> int:
        group = self._stream(key).groups.get(name)
        return sum(group.pending.pop(_id(each), None) is not None for each in ids) if group else 0

    def do_xpending(self, key: bytes, name: bytes, *args: bytes) -> list[Any]:
        group = self._group(key, name)
        ids = sorted(group.pending)
        if not args:
            return _summary(group, ids)
        first, last, count, *consumer = args
        found = [each for each in ids if _from(first) <= each <= _to(last)]
        found = [each for each in found if not consumer or group.pending[each].consumer == consumer[0]]
        return [_pending(each, group.pending[each], self.now_ms) for each in found[: int(count)]]

    def do_xclaim(self, key: bytes, name: bytes, consumer: bytes, _idle: bytes, *args: bytes) -> list[Any]:
        group, stream = self._group(key, name), self._stream(key)
        is_bare = args[-1] == b"JUSTID"
        claimed: list[Id] = []
        for each in (_id(it) for it in args if it != b"JUSTID"):
            if each in group.pending and each not in stream.fields:
                del group.pending[each]
            elif each in group.pending:
                deliveries = group.pending[each].deliveries + (not is_bare)
                group.pending[each] = Pending(consumer, self.now_ms, deliveries)
                claimed.append(each)
        group.consumers[consumer] = None
        return [_text(each) for each in claimed] if is_bare else stream.rows(claimed)

    # The server

    def do_ping(self) -> Status:
        return Status("PONG")

    def do_client(self, *_: bytes) -> Status:
        return OK

    def do_select(self, _: bytes) -> Status:
        return OK

    def do_publish(self, channel: bytes, text: bytes) -> int:
        return self.publish(channel, text)

    def do_script(self, what: bytes, source: bytes) -> bytes:
        assert what == b"LOAD", what
        return self.scripts.load(source)

    def do_evalsha(self, sha: bytes, count: bytes, *args: bytes) -> Any:
        if not self.scripts.knows(sha):
            raise Refused("NOSCRIPT No matching script. Please use EVAL.")
        return self.scripts.run(sha, args[: int(count)], args[int(count) :])

    def do_eval(self, source: bytes, count: bytes, *args: bytes) -> Any:
        return self.do_evalsha(self.scripts.load(source), count, *args)


def block_ms(command: list[bytes]) -> int | None:
    """How long a read may wait; None when it does not."""
    if command[0] in (b"XREAD", b"XREADGROUP") and b"BLOCK" in command:
        return int(command[command.index(b"BLOCK") + 1])
    return None


def _summary(group: Group, ids: list[Id]) -> list[Any]:
    counts: dict[bytes, int] = {}
    for each in ids:
        consumer = group.pending[each].consumer
        counts[consumer] = counts.get(consumer, 0) + 1
    rows = [[consumer, b"%d" % number] for consumer, number in sorted(counts.items())]
    return [len(ids), _text(ids[0]), _text(ids[-1]), rows] if ids else [0, None, None, None]


def _pending(entry: Id, held: Pending, now_ms: int) -> list[Any]:
    return [_text(entry), held.consumer, now_ms - held.since_ms, held.deliveries]


def _text(entry: Id) -> bytes:
    return b"%d-%d" % entry


def _id(text: bytes, rest: int = 0) -> Id:
    first, _, second = text.partition(b"-")
    return int(first), int(second) if second else rest


def _next(entry: Id) -> Id:
    return entry[0], entry[1] + 1


def _from(text: bytes) -> Id:
    if text == b"-":
        return FIRST
    return _next(_id(text[1:])) if text[:1] == b"(" else _id(text)


def _to(text: bytes) -> Id:
    return LAST if text == b"+" else _id(text, 2**64)


def streams_of(command: list[bytes]) -> frozenset[bytes]:
    """The streams that a read waits for."""
    named = command[command.index(b"STREAMS") + 1 :]
    return frozenset(named[: len(named) // 2])


def _split(args: tuple[bytes, ...]) -> tuple[tuple[bytes, ...], tuple[bytes, bytes]]:
    at = args.index(b"STREAMS")
    key, after = args[at + 1 :]
    return args[:at], (key, after)


def _count(how: tuple[bytes, ...]) -> int | None:
    return int(how[how.index(b"COUNT") + 1]) if b"COUNT" in how else None


def _number(score: float) -> bytes:
    return b"%d" % score if score == int(score) else repr(score).encode()


def _is_within(score: float, low: bytes, high: bytes) -> bool:
    return _edge(low, score) <= 0 <= _edge(high, score)


def _edge(edge: bytes, score: float) -> float:
    """Where the edge is, seen from the score; one that is left out counts as missed."""
    if edge in (b"-inf", b"+inf"):
        return float(edge)
    is_open = edge[:1] == b"("
    away = float(edge[1:] if is_open else edge) - score
    return away if away or not is_open else float("nan")


def _is_behind(name: bytes, edge: bytes) -> bool:
    return edge == b"-" or (name > edge[1:] if edge[:1] == b"(" else name >= edge[1:])


def _is_before(name: bytes, edge: bytes) -> bool:
    return edge == b"+" or (name < edge[1:] if edge[:1] == b"(" else name <= edge[1:])


def _slice(found: list[Any], first: int, last: int) -> list[Any]:
    size = len(found)
    first = max(0, first + size) if first < 0 else first
    last = last + size if last < 0 else last
    return found[first : last + 1]


def reply(value: Any) -> Iterator[bytes]:
    """The bytes of a reply."""
    if value is None:
        yield b"$-1\r\n"
    elif isinstance(value, Status):
        yield b"+%s\r\n" % value.encode()
    elif isinstance(value, bytes):
        yield b"$%d\r\n%s\r\n" % (len(value), value)
    elif isinstance(value, int):
        yield b":%d\r\n" % value
    elif isinstance(value, Refused):
        yield b"-%s\r\n" % str(value).encode()
    else:
        yield b"*%d\r\n" % len(value)
        for each in value:
            yield from reply(each)
