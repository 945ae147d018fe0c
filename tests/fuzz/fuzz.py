"""Fuzzes one parser by coverage: python tests/fuzz/fuzz.py TARGET SECONDS CORPUS. Needs atheris: pip install '.[fuzz]'.

The inputs that reach new code are kept in the folder CORPUS, and the next run begins with them. An input that fails is
written to the folder CORPUS/failed. The exit code is 0 if none has failed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))
with atheris.instrument_imports(include=["seatwise", "seatwise_referee", "seatwise_server"]):
    from fuzz import targets

LONGEST_INPUT = 65_536
LONGEST_RUN_S = 20
"""One input may take so many seconds, on a machine under load."""
MOST_MEMORY_MB = 1_500


def main(name: str, seconds: str, corpus: str) -> None:
    """Runs libFuzzer, which ends the process."""
    folder = Path(corpus)
    (folder / "failed").mkdir(parents=True, exist_ok=True)
    kept = folder / "kept"
    kept.mkdir(exist_ok=True)
    for number, seed in enumerate(targets.seeds_of(name)):
        (kept / f"seed-{number}").write_bytes(seed)
    limits = [f"-max_total_time={seconds}", f"-timeout={LONGEST_RUN_S}", f"-rss_limit_mb={MOST_MEMORY_MB}"]
    options = [f"-artifact_prefix={folder}/failed/", f"-max_len={LONGEST_INPUT}", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *limits, *options, str(kept)], targets.TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
