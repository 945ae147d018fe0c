"""A digest of each operation and type in the OpenAPI document, as it was last looked at: a diff names what changed for clients.

`make openapi` writes them again. `python tests/golden/openapi_golden.py "GET /v1/games"` prints one part; without a name, all.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from seatwise_server.rest.openapi import openapi_document

DIGESTS = Path(__file__).parent / "openapi.txt"


def parts(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every operation, every component, and whatever else the document has, with a name for each."""
    for path, verbs in document["paths"].items():
        for verb, operation in verbs.items():
            yield f"{verb.upper()} {path}", operation
    for kind, components in document["components"].items():
        for name, component in components.items():
            yield f"{kind} {name}", component
    yield "info", {name: value for name, value in document.items() if name not in ("paths", "components")}


def digests() -> str:
    """A line for each part, in the order of the document."""
    return "".join(
        f"{sha256(json.dumps(part).encode()).hexdigest()[:12]} {name}\n"
        for name, part in parts(openapi_document())
    )


if __name__ == "__main__":
    if "--write" in sys.argv:
        DIGESTS.write_text(digests(), encoding="utf-8")
    else:
        shown = dict(parts(openapi_document()))
        print(json.dumps(shown[sys.argv[1]] if sys.argv[1:] else shown, indent=1, ensure_ascii=False))
