"""The golden matches go as they are written; `python tests/golden/golden.py --write` writes them anew after a change of a rule."""

from __future__ import annotations

import pytest
from golden.golden import FOLDER, GOLDENS, Golden, text


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.path.stem)
def test_a_golden_match_goes_as_it_is_written(golden: Golden) -> None:
    assert text(golden).splitlines() == golden.path.read_text(encoding="utf-8").splitlines()


def test_every_golden_file_is_compared() -> None:
    assert set(FOLDER.glob("*-*.txt")) == {golden.path for golden in GOLDENS}
