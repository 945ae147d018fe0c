"""A bot's own exceptions, shown to its author and kept away from everybody else."""

from __future__ import annotations

import re
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TextIO

from seatwise.errors import BadAnswerError

_SAMPLE = re.compile(r"[/\\]seatwise[/\\](kits[/\\]\w+[/\\])?samples\b")
"""The place of the sample bots, which are shown as a bot of an author is."""
_ON_THE_WAY = (
    str(Path(__file__).parent),
    "client_sdk/seatwise/",  # what frames of compiled modules say
    str(Path(traceback.__file__).parent / "asyncio"),
    "<frozen importlib",
)
"""Frames of the traceback that come before the bot's own code."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A bot raised an exception, or its answer was no legal move."""

    bot: str
    """Its name at this table."""

    match: str
    seat: int
    doing: str
    """The call that failed: "choose", "arrange", "set up" and so on."""

    error: BaseException
    costs: str
    """The consequence for its match, for a person to read."""


class Failures:
    """Shows each kind of failure once, with its traceback, and counts the others."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out
        self._seen: dict[tuple[str, type, str], int] = {}

    def __call__(self, failure: Failure) -> None:
        """Shows it, unless one of the same bot from the same place was shown before."""
        key = (failure.bot, type(failure.error), place_of(failure.error) or failure.doing)
        self._seen[key] = self._seen.get(key, 0) + 1
        if self._seen[key] == 1:
            print(text_of(failure), file=self._out or sys.stderr, flush=True)

    def close(self) -> None:
        """Says how often the same failures came again."""
        for (bot, kind, place), count in self._seen.items():
            if count > 1:
                print(
                    f"{bot}: {kind.__name__} in {place}: {count - 1} more like it",
                    file=self._out or sys.stderr,
                    flush=True,
                )


class NewFailures:
    """Collects the first failure of each kind, for a worker process that tells them to its parent."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()
        self._new: list[dict[str, str]] = []

    def __call__(self, failure: Failure) -> None:
        """Note it, unless one of the same bot from the same place was noted before."""
        bot, place = failure.bot, place_of(failure.error) or failure.doing
        if (bot, place) not in self._seen:
            self._seen.add((bot, place))
            self._new.append({"bot": bot, "place": place, "text": text_of(failure)})

    def take_new(self) -> list[dict[str, str]]:
        """Return what was noted since the last call: the bot, the place and the text of each."""
        new, self._new = self._new, []
        return new


def text_of(failure: Failure) -> str:
    """The failure with its traceback, from the bot's own code on."""
    where = f"{failure.match}, seat {failure.seat}, {failure.doing}"
    return f"{failure.bot} failed ({where}; {failure.costs}):\n{traceback_of(failure.error)}"


def traceback_of(error: BaseException) -> str:
    """The traceback, from the author's own code on; only the error where that is not in it."""
    if isinstance(error, BadAnswerError):
        return str(error)
    return "".join(traceback.format_exception(type(error), error, _own_part(error))).rstrip()


def _own_part(error: BaseException) -> TracebackType | None:
    """The traceback without the frames that lead to the bot; `None` if it never came so far."""
    own = error.__traceback__
    while own is not None and _is_on_the_way(own.tb_frame.f_code.co_filename):
        own = own.tb_next
    return own


def _is_on_the_way(file: str) -> bool:
    return file.startswith(_ON_THE_WAY) and not is_sample(file)


def is_sample(file: str) -> bool:
    """Return whether this is the code of a sample bot."""
    return _SAMPLE.search(file) is not None


def place_of(error: BaseException) -> str:
    """The last line that it came from; empty if that is not the author's."""
    frames = traceback.extract_tb(_own_part(error))
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
