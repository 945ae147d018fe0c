"""Ways to forge a record, and to find out whether anybody notices."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

from matches.scenes import SCENES
from seatwise_referee import record as records
from seatwise_referee.journal import canonical_json
from seatwise_referee.verify import verify_line

Body: TypeAlias = dict[str, Any]
Forgery: TypeAlias = Callable[[Body], object]


@cache
def genuine(scene: str) -> bytes:
    line: bytes = SCENES[scene]().line()
    return line


def record_of(scene: str) -> Body:
    body: Body = json.loads(genuine(scene))
    return body


def chained(body: Body) -> Body:
    """The same with the chain that a careful forger would give it."""
    header = {key: value for key, value in body.items() if key not in records.TAIL_KEYS}
    return {**body, "chain": records.compute_last_link(header, map(canonical_json, body["entries"])).hex()}


def fault_of(body: Any) -> str:
    return str(verify_line(canonical_json(body)).fault)


def the(body: Body, kind: str, nth: int = 0, **values: Any) -> Body:
    """The nth entry of that kind with those values."""
    found = [
        entry
        for entry in body["entries"]
        if entry["kind"] == kind and all(entry.get(key) == value for key, value in values.items())
    ]
    one: Body = found[nth]
    return one


def renumber(body: Body) -> None:
    for seq, entry in enumerate(body["entries"], start=1):
        entry["seq"] = seq


def drop(body: Body, entry: Body) -> None:
    body["entries"].remove(entry)
    renumber(body)


def insert(body: Body, after: Body, **entry: Any) -> None:
    place = body["entries"].index(after) + 1
    body["entries"].insert(place, {"at_ms": after["at_ms"], "seq": 0, **entry})
    renumber(body)


def set_in(path: list[Any], value: Any) -> Forgery:
    def forge(body: Body) -> None:
        place: Any = body
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return forge


def swap(path: list[Any], one: int, other: int) -> Forgery:
    def forge(body: Body) -> None:
        place: Any = body
        for key in path:
            place = place[key]
        place[one], place[other] = place[other], place[one]

    return forge
