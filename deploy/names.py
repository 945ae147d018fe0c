"""Writes the names of names.toml into the files that carry them: `python deploy/names.py`. With --check it only says which differ."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMES = tomllib.loads(Path(__file__).with_name("names.toml").read_text(encoding="utf-8"))
CARRIERS = (
    ("proto/**/*.proto", r'(?<=option go_package = ")[^"]*(?=/gen/)', NAMES["go"]),
    ("docs/starters/go/go.mod", r"(?<=^module )\S+$", NAMES["go"]),
    ("docs/starters/go/*.go", r'(?<=")[^"]*(?=/gen/)', NAMES["go"]),
    ("docs/starters/go/buf.gen.yaml", r"(?<=module=)\S+(?=/gen)", NAMES["go"]),
    ("deploy/kubernetes/manifests/*.yaml", r"(?<=image: )\S*seatwise(?=:)", NAMES["image"]),
    ("deploy/kubernetes/values.yaml", r"(?<=image: )\S*seatwise(?=:)", NAMES["image"]),
    ("deploy/kubernetes/templates/*.yaml", r"(?<=image: )\S*seatwise(?=:\d)", NAMES["image"]),
    ("deploy/kubernetes/kustomization.yaml", r"(?<=newName: )\S+|(?<=- name: )\S*seatwise$", NAMES["image"]),
    ("deploy/compose.yaml", r"(?<=image: )\S*seatwise$", NAMES["image"]),
)
"""The files, the place of the name in them, and the name."""


def main() -> int:
    """Write the names, or return 1 if a file carries another one."""
    differs = 0
    for pattern, place, name in CARRIERS:
        for path in sorted(ROOT.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            named = re.sub(place, name, text, flags=re.MULTILINE)
            if named == text:
                continue
            differs = 1
            print(path.relative_to(ROOT))
            if "--check" not in sys.argv:
                path.write_text(named, encoding="utf-8")
    return differs if "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
