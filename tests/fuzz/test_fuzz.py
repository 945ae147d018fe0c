"""No bytes from outside make a parser fail: every input that is kept here, and what a fuzzer finds in a minute."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.targets import TARGETS, seeds_of

FUZZ = Path(__file__).parent / "fuzz.py"
CORPUS = Path(__file__).parents[2] / "fuzz-corpus"
"""Kept from run to run."""
FUZZ_S = 60


@pytest.mark.parametrize("name", TARGETS)
def test_every_parser_takes_or_refuses_the_inputs_that_are_kept(name: str) -> None:
    seeds = list(seeds_of(name))
    assert len(seeds) >= 2
    for seed in seeds:
        TARGETS[name](seed)
        TARGETS[name](seed[: len(seed) // 2])


@pytest.mark.slow
@pytest.mark.timeout(10 * FUZZ_S)
@pytest.mark.parametrize("name", TARGETS)
def test_no_input_that_a_fuzzer_finds_makes_a_parser_fail(name: str) -> None:
    pytest.importorskip("atheris", reason="fuzzing needs atheris: pip install '.[fuzz]'")
    command = [sys.executable, str(FUZZ), name, str(FUZZ_S), str(CORPUS / name)]
    ended = subprocess.run(
        command, capture_output=True, text=True, errors="replace", check=False, timeout=8 * FUZZ_S
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    assert "stat::number_of_executed_units" in ended.stderr
