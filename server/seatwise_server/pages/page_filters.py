"""Turns resources of the API into the words that pages show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from google.protobuf.timestamp_pb2 import Timestamp
from markupsafe import Markup

from seatwise.kits import KITS
from seatwise.v1 import bot_pb2, match_pb2
from seatwise_server.pages.static_files import static_url

LONGEST_LABEL: Final = 18

_STATE_WORDS: Final = {
    match_pb2.Match.STATE_WAITING: "waits for its bots",
    match_pb2.Match.STATE_SEATING: "the bots sit down",
    match_pb2.Match.STATE_RUNNING: "live",
    match_pb2.Match.STATE_FINISHED: "finished",
    match_pb2.Match.STATE_VOIDED: "void",
}
_KIND_WORDS: Final[dict[int, str]] = {
    bot_pb2.BOT_KIND_RULES: "rules",
    bot_pb2.BOT_KIND_SEARCH: "search",
    bot_pb2.BOT_KIND_LEARNED: "learned",
    bot_pb2.BOT_KIND_LANGUAGE_MODEL: "language model",
}
_ENDINGS: Final = {
    "COMPLETED": "played to the end",
    "RESIGNED": "resigned",
    "TIMED_OUT": "forfeited: too many time-outs",
    "ILLEGAL_MOVES": "forfeited: too many illegal moves",
    "NEVER_SAT": "forfeited: did not sit down",
}


def kind_words(kind: int) -> str:
    """Returns how a bot finds its moves, in words; empty where nobody has said it, and for a kind that this version does not know."""
    return _KIND_WORDS.get(kind, "")


def bot_label(name: str) -> str:
    """Returns how a page calls a bot: "alice", or "alice 2" for a version that is not the first."""
    _, bot, _, version = name.split("/")
    return bot if version == "1" else f"{bot} {version}"


def short_label(name: str) -> str:
    """Returns the label of a bot, cut to the room that a figure has for it."""
    label = bot_label(name)
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"


def page_link(name: str) -> str:
    """Returns the URL of a resource's page."""
    return "/" + quote(name)


def last_part(name: str) -> str:
    """Returns the id of a resource: "main" of ladders/main."""
    return name.rpartition("/")[2]


def game_title(name: str) -> str:
    """Returns the title of a game: "UGO!" of games/ugo."""
    kit = KITS.get(last_part(name))
    return kit.title if kit else last_part(name)


def state_words(state: match_pb2.Match.State) -> str:
    """Returns the state of a match in words."""
    return _STATE_WORDS.get(state, "unknown")


def ending_words(ending: int | str) -> str:
    """Returns in words how a seat came to the end."""
    name = ending if isinstance(ending, str) else match_pb2.Ending.Name(match_pb2.Ending.ValueType(ending))
    return _ENDINGS.get(name.removeprefix("ENDING_"), "unknown")


def show_time(time: Timestamp) -> Markup:
    """Returns a point in time, in UTC, for people and for programs."""
    told = time.ToDatetime()
    return Markup('<time datetime="{}">{}</time>').format(
        told.strftime("%Y-%m-%dT%H:%M:%SZ"), told.strftime("%Y-%m-%d %H:%M UTC")
    )


def show_span(milliseconds: float) -> str:
    """Returns a span of time with the unit that suits it."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000:.1f} s" if milliseconds < 60_000 else f"{milliseconds / 60_000:.1f} min"


PAGE_FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "bot_label": bot_label,
    "kind_words": kind_words,
    "page_link": page_link,
    "last_part": last_part,
    "game_title": game_title,
    "state_words": state_words,
    "ending_words": ending_words,
    "show_time": show_time,
    "show_span": show_span,
}
PAGE_GLOBALS: Final[Mapping[str, Callable[..., Any]]] = {"static": static_url}
