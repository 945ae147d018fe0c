"""The rules of plain English that a program can check: how long a sentence is, and the words it avoids."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from prose.sentences import Kind, Sentence

MOST_WORDS = 35
"""In one sentence outside of tables and code."""

FORBIDDEN = {
    "anew": "again, once more",
    "nought": "zero, nothing",
    "naught": "zero, nothing",
    "whom": "name the thing: `the bots that ...`",
    "to nobody": "`nobody can ...`",
    "for nobody": "`does not count`, `nobody can ...`",
    "whoever": "name the role: `the operator`, `anyone`",
    "whosoever": "name the role: `the operator`, `anyone`",
    "whomever": "name the role: `the operator`, `anyone`",
    "whence": "from where",
    "he": "`it` for a program, the role for a person",
    "him": "`it` for a program, the role for a person",
    "his": "`its` for a program",
    "himself": "`itself` for a program",
}
"""Words and phrases that no page has, each with what to write in their place."""

RELATIVE_SUBJECTS = ("Who", "Whose", "What", "Whatever", "Whichever")
"""A sentence that begins with one of them is a question, or has a clause for its subject. So has the part of a sentence
behind a semicolon. A cell of a table may name a thing so, in lower case: `the name; who owns it`.
"""

_FORBIDDEN = re.compile(rf"(?<![\w-])(?:{'|'.join(FORBIDDEN)})(?![\w-])", re.IGNORECASE)
_SUBJECT = re.compile(
    rf"^[\"'(*_]*({'|'.join(RELATIVE_SUBJECTS)})(?= )|; ({'|'.join(RELATIVE_SUBJECTS).lower()})(?= )"
)


def faults_of(sentences: Sequence[Sentence]) -> list[str]:
    """Return the faults, each as `LINE: fault: sentence`."""
    return [f"{each.line}: {what}: {each.text}" for each in sentences for what in _faults(each)]


def _faults(sentence: Sentence) -> Iterator[str]:
    if sentence.kind is Kind.TEXT and sentence.words > MOST_WORDS:
        yield f"{sentence.words} words, at most {MOST_WORDS}"
    for found in _FORBIDDEN.finditer(sentence.text):
        phrase = found[0].lower()
        yield f'"{phrase}" ({FORBIDDEN[phrase]})'
    if sentence.kind is not Kind.HEADING and not _is_question(sentence):
        for found in _SUBJECT.finditer(sentence.text):
            if found[1] or sentence.kind is Kind.TEXT:
                yield f'"{found[1] or found[2]}" begins a clause that is the subject'


def _is_question(sentence: Sentence) -> bool:
    return sentence.text.rstrip("\"')*_").endswith("?")
