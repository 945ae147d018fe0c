"""What the README shows is what happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from prose.public_functions import PUBLIC_MODULES

import seatwise

README = (Path(__file__).parents[2] / "README.md").read_text()
MOST_LINES = 15


def the_bot() -> str:
    (code,) = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return code


def test_the_bot_of_the_readme_is_short() -> None:
    assert len([line for line in the_bot().splitlines() if line.strip()]) <= MOST_LINES


def test_the_bot_of_the_readme_plays(tmp_path: Path) -> None:
    (tmp_path / "highest.py").write_text(the_bot())
    done = subprocess.run(
        [sys.executable, "highest.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert "Highest" in done.stdout
    assert "greedy" in done.stdout


def test_the_bot_of_the_readme_beats_random() -> None:
    found: dict[str, Any] = {"__name__": "readme"}
    exec(the_bot(), found)
    results = seatwise.play([found["Highest"], "random"], matches=60, seed=1)
    mine, other = results.standings
    assert mine.interval[0] > other.interval[1]


def test_every_make_target_of_the_readme_is_there() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


DOCS = Path(__file__).parents[2] / "docs"
TUTORIAL = (DOCS / "tutorial.md").read_text()


@pytest.mark.parametrize("page", [README, TUTORIAL], ids=["README.md", "tutorial.md"])
def test_a_first_reader_can_do_each_step_when_it_comes(page: str) -> None:
    steps = (
        "git clone ",
        "\nmake setup\n",
        "folder `.venv`",
        "class Highest(",
        "\nmake demo",
        "\n.venv/bin/seatwise serve\n",
    )
    places = [page.index(step) for step in steps]
    assert places == sorted(places)
    assert page.index("one to three minutes") < page.index("class Highest(")
    assert "twenty seconds to a minute and a half" in page
    assert the_bot() in page


def test_the_set_up_says_what_it_does() -> None:
    """Without that it is silent for a minute and more."""
    told = subprocess.run(
        ["make", "--always-make", "--dry-run", "setup"], cwd=DOCS.parent, capture_output=True, text=True, check=True
    ).stdout  # fmt: skip
    assert [f'echo "{step} of 3: ' in told for step in (1, 2, 3)] == [True] * 3
    assert "awk" in told


def test_the_lines_of_pip_become_a_few_and_its_failure_stays_one() -> None:
    makefile = (DOCS.parent / "Makefile").read_text()
    (count,) = re.findall(r"^COUNT := (.*?[^\\])$", makefile, re.MULTILINE | re.DOTALL)
    command = count.replace("$$", "$").replace("\\\n", " ")
    pip = (
        "".join(f"Collecting p{each}\n  Downloading\n" for each in range(45))
        + "Installing collected packages\n"
    )
    for end, code in (("", 0), ("FAILED\n", 1)):
        done = subprocess.run(
            ["sh", "-c", command],
            input=pip + end,
            cwd=DOCS.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code
        assert [line.split()[0] for line in done.stdout.splitlines()] == ["20", "40", "all"]


# Each snippet of the README, the tutorial and the bot guide, alone

GUIDE = (DOCS / "bot-guide.md").read_text()
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", README + TUTORIAL + GUIDE, re.MULTILINE | re.DOTALL)
SPELT = sorted(set(re.findall(r"(?<!from )(?<!-m )\bseatwise((?:\.[A-Za-z_]+)+)[`(:\[]", README + GUIDE)))


@pytest.mark.parametrize("code", SNIPPETS, ids=range(len(SNIPPETS)))
def test_each_snippet_runs_alone(tmp_path: Path, code: str) -> None:
    seatwise.play(["greedy", "random"], records=tmp_path / "out.jsonl")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_each_name_is_there_after_import_seatwise() -> None:
    """Each in a copy of its own of the process that has imported `seatwise`, so that none is there because of another."""
    public = {*PUBLIC_MODULES} - {"seatwise.rl"}  # built on all else, and with extras of its own
    modules = sorted(name.removeprefix("seatwise") for name in public if name.startswith("seatwise."))
    names = [*SPELT, *modules, ".ugo.View", ".ubongo.View", ".client.Client"]
    program = f"""
import os, seatwise
def read(name):
    if (child := os.fork()) == 0:
        try:
            eval("seatwise" + name)
        except AttributeError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0
print([name for name in {names} if not read(name)])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_type_checker_takes_each_snippet_and_no_name_that_is_not_there(tmp_path: Path) -> None:
    for number, code in enumerate(SNIPPETS):
        (tmp_path / f"snippet_{number}.py").write_text(code)
    (tmp_path / "annotated.py").write_text(
        "import seatwise\n\n\nclass Mine(seatwise.Bot):\n"
        "    def choose(self, view: seatwise.ugo.View) -> seatwise.ugo.Card:\n"
        "        if len(view.legal_cards) > 9:\n            raise seatwise.ResignMatch\n"
        "        return view.legal_cards[0]\n"
    )
    (tmp_path / "wrong.py").write_text("from seatwise import Nonsense\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--check-untyped-defs", "--config-file", os.devnull, "."],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.stdout.splitlines()[:-1] == [
        'wrong.py:1: error: Module "seatwise" has no attribute "Nonsense"  [attr-defined]'
    ], done.stdout


def test_a_bot_resigns_as_the_guide_says() -> None:
    class Gone(seatwise.Bot):
        def choose(self, view: seatwise.View) -> seatwise.Card:  # noqa: ARG002
            raise seatwise.ResignMatch

    [match] = seatwise.play([Gone, "random"], seed=1)
    assert "RESIGNED" in map(str, match.endings)
