"""A bot around a language model: any function that maps a prompt to an answer, both as text.

>>> from seatwise.samples.language_model import make_language_model_bot
>>> first = make_language_model_bot(lambda prompt: prompt.rpartition("LEGAL MOVES: ")[2].partition(",")[0])
>>> import seatwise
>>> len(seatwise.play([first, "random"], seed=1, options={"rounds": 1}))
1

The prompt holds the rules in short, the view of the seat and the legal moves, and nothing else. The model answers with a line
`MOVE: ...`. If that is no legal move, it is asked once more and told why. Otherwise, and when a budget is spent, the bot plays the
first legal move, so a model that talks nonsense loses no time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Final, TypeAlias

from seatwise import BadAnswerError, Bot, Offer, Result
from seatwise.kits import find_server_kit
from seatwise.kits.game_kit import GameKit, check_text_game, list_move_texts, read_move_text
from seatwise.rules import read_rules_text

Complete: TypeAlias = Callable[[str], str]
"""Asks a model: the prompt in, the answer out. It runs in a thread of the seat, so it may take its time."""

MOVE_LINE: Final = re.compile(r"^\W*MOVE\W*:\s*(.+?)\W*$", re.IGNORECASE | re.MULTILINE)
LONGEST_RULES: Final = 12_000
"""The most characters of the rules in a prompt."""
LONGEST_MODEL_ANSWER: Final = 20_000
"""The most characters of an answer that are read."""


@dataclass(frozen=True, slots=True)
class ModelBudget:
    """The limits of one match. A request that could break one is not made, and the first legal move is played."""

    tokens: int = 200_000
    """The most tokens of all prompts and answers together."""
    move_s: float = 60.0
    """No request begins later than this after the question, in seconds. A request that runs is not interrupted."""
    match_s: float = 3600.0
    """The most seconds in which the model may be asked, in all."""


def estimate_tokens(text: str) -> int:
    """Return about as many tokens as a text has: one for four characters."""
    return len(text) // 4 + 1


def make_language_model_bot(
    complete: Complete,
    *,
    budget: ModelBudget | None = None,
    transcripts: str | Path | None = None,
    count_tokens: Callable[[str], int] = estimate_tokens,
) -> Callable[[], Bot]:
    """Return a factory of bots that ask a language model for each move.

    Args:
        complete: Asks the model: the prompt in, the answer out. An exception of it costs one attempt.
        budget: The limits of one match.
        transcripts: A folder for the transcripts, one file of JSON lines for each seat, named after the match. A transcript shows
            the hand of its seat, so keep the folder to yourself while the match runs.
        count_tokens: Counts the tokens of a text. By default it is an estimate.

    Returns:
        What `seatwise.run` and `seatwise.play` take as a bot.
    """
    folder = Path(transcripts) if transcripts is not None else None
    return lambda: LanguageModelBot(complete, budget or ModelBudget(), folder, count_tokens)


class LanguageModelBot(Bot):
    """Asks a language model for each move. Make it with `make_language_model_bot`."""

    def __init__(
        self,
        complete: Complete,
        budget: ModelBudget,
        transcripts: Path | None,
        count_tokens: Callable[[str], int],
    ) -> None:
        """Create the bot of one match."""
        self._complete = complete
        self._budget = budget
        self._transcripts = transcripts
        self._count_tokens = count_tokens
        self._kit: GameKit
        self._tokens = 0
        self._spent_s = 0.0
        self._questions = 0

    def setup(self, offer: Offer) -> None:
        """Note the game. Raises `UsageError` if its moves cannot be listed."""
        self._kit = find_server_kit(offer.game)
        check_text_game(self._kit)

    def ended(self, result: Result) -> None:
        """Write the result below the transcript."""
        told = {"match": result.match, "seat": result.seat, "ranks": result.ranks, "points": result.points}
        self._write_line(told)

    def choose(self, view: Any) -> Any:
        """Ask the model for a move, whatever the game and its question."""
        self._questions += 1
        moves = list_move_texts(self._kit, view)
        if not moves:
            raise BadAnswerError("the game lists no legal move here")
        if len(moves) == 1:
            return read_move_text(self._kit, view, moves[0])
        asked_s, prompt = monotonic(), self._write_prompt(view, moves)
        for attempt in (1, 2):
            if not self._may_ask(prompt, asked_s):
                break
            text, error = self._request_move(prompt, attempt, view)
            if not error:
                return read_move_text(self._kit, view, text)
            prompt = f"{prompt}\n\nYour answer could not be used: {error}\nAnswer with one line MOVE: and a legal move."
        return read_move_text(self._kit, view, moves[0])

    arrange = decide = choose

    def _write_prompt(self, view: Any, moves: tuple[str, ...]) -> str:
        return (
            f"You play {self._kit.title} at seat {self.seat}, against other players. Score as many points as you can.\n\n"
            f"THE RULES\n{read_rules_text(self._kit.name)[:LONGEST_RULES]}\n\nWHAT YOU SEE\n{view!r}\n\n"
            "Think briefly. Then write your move in the last line, in the form MOVE: and one of the legal moves.\n\n"
            f"LEGAL MOVES: {', '.join(moves)}"
        )

    def _may_ask(self, prompt: str, asked_s: float) -> bool:
        """Whether the budget allows one more request."""
        budget = self._budget
        return (
            self._tokens + self._count_tokens(prompt) <= budget.tokens
            and monotonic() - asked_s <= budget.move_s
            and self._spent_s <= budget.match_s
        )

    def _request_move(self, prompt: str, attempt: int, view: Any) -> tuple[str, str]:
        """Ask once. Return the text of the move and "", or "" and what was wrong."""
        began_s, answer, text, error = monotonic(), "", "", ""
        try:
            answer = self._complete(prompt)[:LONGEST_MODEL_ANSWER]
            text = find_move_text(answer, list_move_texts(self._kit, view))
            read_move_text(self._kit, view, text)
        except BadAnswerError as bad:
            text, error = "", str(bad)
        except Exception as failed:  # the model's own error: a time-out of its service, for example
            error = f"{type(failed).__name__}: {failed}"
        seconds = monotonic() - began_s
        self._spent_s += seconds
        self._tokens += self._count_tokens(prompt) + self._count_tokens(answer)
        self._write_line(
            {
                "match": self.match, "seat": self.seat, "number": self._questions, "attempt": attempt, "prompt": prompt,
                "answer": answer, "move": text, "error": error, "seconds": round(seconds, 3), "tokens": self._tokens,
            }
        )  # fmt: skip
        return text, error

    def _write_line(self, told: dict[str, Any]) -> None:
        if self._transcripts is None:
            return
        self._transcripts.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._transcripts / f"{self.match.removeprefix('matches/')}-seat{self.seat}.jsonl"
        with path.open("a", encoding="utf-8") as file:
            print(json.dumps(told), file=file)


def find_move_text(answer: str, moves: tuple[str, ...]) -> str:
    """Return the move that an answer names: in its last line `MOVE: ...`, or the only legal move in its last line.

    Raises `BadAnswerError` if it names none.
    """
    if found := MOVE_LINE.findall(answer):
        return str(found[-1])
    lines = answer.strip().splitlines()
    named = [move for move in moves if lines and re.search(rf"(?<!\w){re.escape(move)}(?!\w)", lines[-1])]
    if len(named) == 1:
        return named[0]
    raise BadAnswerError("there is no line that begins with MOVE:")
