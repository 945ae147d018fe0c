"""The OpenAPI document as it was last looked at: its diff is what clients see of a change.

`python tests/golden/openapi_golden.py --write` writes it again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from seatwise_server.rest.openapi import openapi_document

OPENAPI = Path(__file__).parent / "openapi.json"


def openapi_text() -> str:
    """The document, one value on each line."""
    return json.dumps(openapi_document(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    if "--write" in sys.argv:
        OPENAPI.write_text(openapi_text(), encoding="utf-8")
    else:
        print(openapi_text(), end="")
