"""The name of a public class says which one is meant, wherever it stands in the product."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = (
    "client_sdk/seatwise",
    "client_sdk/seatwise_fast",
    "referee/seatwise_referee",
    "server/seatwise_server",
)


def test_no_two_public_classes_share_a_name() -> None:
    places = _places_of_classes()
    assert len(places) > 500
    shared = {name: found for name, found in places.items() if len(found) > 1}
    assert not shared, "rename all but one"


def _places_of_classes() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for folder in PRODUCT:
        for path in (ROOT / folder).rglob("*.py"):
            if "_pb2" not in path.name:
                for node in ast.parse(path.read_text()).body:
                    if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                        found[node.name].append(str(path.relative_to(ROOT)))
    return found
