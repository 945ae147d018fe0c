"""Changes the core of the referee and the codec at random, with mutmut, and prints how much of it the tests find.

    python tests/mutants/mutation.py                   # as `make mutation`
    python tests/mutants/mutation.py --only journal    # one module

mutmut names a module by its place, so it works on a copy in dist/mutation. `mutmut show NAME`, run there, shows a change that no
test has found.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "dist" / "mutation"
PACKAGES = ("referee/seatwise_referee", "client_sdk/seatwise", "server/seatwise_server")
MUTATED = (
    *(f"seatwise_referee/{name}" for name in ("decision", "journal", "match", "position", "prompt_clock", "race_prompt", "record", "shuffle")),
    *(f"seatwise/codec/{name}" for name in ("game_codec", "result", "wire_format")),
    *(f"seatwise/kits/{game}/codec" for game in ("ubongo", "ugo")),
)  # fmt: skip
TESTS = ("tests/referee", "tests/client_sdk/test_codec.py", "tests/client_sdk/test_codec_ubongo.py")
LEFT_OUT = ("tests/referee/test_match_at_random.py", "tests/referee/test_race_at_random.py")
"""Long random walks: they find what the others find, and would run for each change."""
LONGEST_S = 3300


def lay_out(modules: list[str]) -> None:
    """A copy as mutmut wants it: sources in src/, tests beside them, and its settings."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, FOLDER / "src" / Path(package).name)
    for folder in ("tests", "docs", "proto"):
        shutil.copytree(ROOT / folder, FOLDER / folder)
    options = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("[tool.pytest.ini_options]")[2]
    settings = {
        "source_paths": ["src"],
        "only_mutate": [f"src/{module}.py" for module in modules],
        "also_copy": ["docs", "proto"],
        "pytest_add_cli_args": ["-m", "not slow", "-p", "no:cacheprovider", *(f"--deselect={it}" for it in LEFT_OUT)],
        "pytest_add_cli_args_test_selection": list(TESTS),
    }  # fmt: skip
    lines = [
        *(f"{name} = {json.dumps(value)}" for name, value in settings.items()),
        "track_dependencies = false",
        "use_git_change_detection = false",
    ]
    text = "\n".join(["[tool.mutmut]", *lines, "[tool.pytest.ini_options]", options.partition("\n[tool.")[0]])
    (FOLDER / "pyproject.toml").write_text(text, encoding="utf-8")


def print_score() -> None:
    """The changes by what became of them, for each module and for all."""
    total = Counter[str]()
    for file in sorted(FOLDER.rglob("*.py.meta")):
        found = Counter(map(_outcome, json.loads(file.read_text())["exit_code_by_key"].values()))
        total += found
        if found:
            print(f"{file.stem:24}", _score(found))
    print(f"{'all':24}", _score(total))


def _outcome(exit_code: int | None) -> str:
    """As mutmut's: 0 says that all tests passed."""
    return {None: "not tried", 0: "survived", 33: "without a test"}.get(exit_code, "found")


def _score(found: Counter[str]) -> str:
    tried = found.total() - found["not tried"]
    shares = ", ".join(f"{count} {name}" for name, count in sorted(found.items()))
    return f"{100 * found['found'] / max(1, tried):5.1f} % found ({shares})"


def main() -> int:
    """0 if mutmut came to its end in time; the score is no failure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", metavar="WORD", default="", help="only modules whose name has the word")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="default: %(default)s")
    args = parser.parse_args()
    lay_out([module for module in MUTATED if args.only in module])
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(args.jobs)]
    with subprocess.Popen(command, cwd=FOLDER, start_new_session=True) as process:
        try:
            ended = process.wait(LONGEST_S)
        except subprocess.TimeoutExpired:
            print("the time is over")
            os.killpg(process.pid, signal.SIGKILL)
            ended = 0
    print_score()
    return ended


if __name__ == "__main__":
    sys.exit(main())
