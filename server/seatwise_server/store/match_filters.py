"""Filters of lists of matches, and the sets in Redis that make them cheap.

A match enters a set before its meta has the new state, and leaves it afterwards. So a set never lacks a match
that fits the filter, and a reader checks the state in the meta. The scripts are `match_list`,
`match_enter_state` and `match_forget`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from seatwise_referee.ending import MatchState
from seatwise_referee.setup import Setup
from seatwise_server.store import keys
from seatwise_server.store.errors import BadPageToken
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, as_pairs

OPEN = "OPEN"
"""The set of all matches that are not over."""

OVER = (MatchState.FINISHED, MatchState.VOIDED)

STATE_SETS = (OPEN, MatchState.RUNNING, MatchState.FINISHED, MatchState.VOIDED)

SETS_VERSION = 1
"""Rises when existing stores need another run of `MatchSetBuilder`."""

MOST_SEEN_AT_ONCE = 1_000
"""The most entries of a set that one run of the script reads, which takes about a millisecond of Redis."""

NEWEST_US = 2**62
"""Higher than every creation time."""


@dataclass(frozen=True, slots=True)
class MatchFilter:
    """Narrows a list. A match must fit all fields; an empty field fits every match."""

    bot: str = ""
    """Format: bots/{bot}/versions/{version}."""
    game: str = ""
    """The name of the game in the referee, for example "ugo"."""
    competition: str = ""
    """Format: ladders/{ladder} or leagues/{league}."""
    state: MatchState | None = None
    since_us: int = 0
    """Fits matches that were created then or later, in microseconds of Redis's clock."""
    until_us: int = NEWEST_US
    """Fits matches that were created before then."""

    @property
    def sets(self) -> list[str]:
        """The keys of the sets that a match must be in; the index if there are no others."""
        facets = _facets((self.bot,) if self.bot else (), self.game, self.competition)
        if self.state:
            facets.append(f"state/{state_set(self.state)}")
        return [keys.match_set(facet) for facet in facets] or [keys.MATCH_INDEX]

    @property
    def needs_sets(self) -> bool:
        """Whether the filter needs other sets than the index."""
        return self.sets != [keys.MATCH_INDEX]

    def fits_state(self, state: str) -> bool:
        """Returns whether a match of this state fits."""
        return self.state is None or state == self.state

    @property
    def digest(self) -> str:
        """Empty for a filter that fits every match; different for different filters."""
        if self == MatchFilter():
            return ""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]


def facets_of(setup: Setup) -> str:
    """Returns the permanent sets of the match, in the form that `match_list` takes: facets with spaces between them."""
    return " ".join(_facets(dict.fromkeys(setup.bots), setup.game, setup.competition))


def state_set(state: str) -> str:
    """Returns the name of the set that has all matches of this state, and possibly others."""
    return OPEN if state in (MatchState.WAITING, MatchState.SEATING) else state


def sets_of_state(state: str) -> frozenset[str]:
    """Returns the state sets that must have a match of this state. A match that is over must be in no others."""
    return frozenset({f"state/{state_set(state)}"} | (set() if state in OVER else {f"state/{OPEN}"}))


def enter_state(match: str, state: str) -> tuple[str, list[str], tuple[str]]:
    """Returns the script, for `run_in_order`, that must run before the one that writes this state into the meta."""
    sets = [keys.match_set(f"state/{OPEN}"), keys.match_set(f"state/{state_set(state)}")]
    return "match_enter_state", sets, (match,)


def _facets(bots: Sequence[str] | dict[str, None], game: str, competition: str) -> list[str]:
    found = [f"bot/{bot}" for bot in bots]
    found += [f"game/{game}"] if game else []
    return found + ([f"competition/{competition}"] if competition else [])


@dataclass(frozen=True, slots=True, order=True)
class PageCursor:
    """A place in the list, between two matches."""

    create_us: int
    match: str

    @classmethod
    def parse(cls, token: str, digest: str = "") -> PageCursor:
        """Returns the place that a page token of this filter names; the empty token is before the newest match.

        Raises BadPageToken.
        """
        if not token:
            return cls(NEWEST_US, "")
        try:
            create_us, match, *rest = base64.urlsafe_b64decode(token.encode()).decode().split(" ")
            place = cls(int(create_us), match)
        except (binascii.Error, ValueError) as error:
            raise BadPageToken("the page token is not one that this list gave out") from error
        if rest != ([digest] if digest else []) or not 0 <= place.create_us <= NEWEST_US:
            raise BadPageToken("the page token is not one that this list gave out for these filters")
        return place

    def token(self, digest: str = "") -> str:
        """Returns the place as an opaque page token."""
        parts = (str(self.create_us), self.match, digest) if digest else (str(self.create_us), self.match)
        return base64.urlsafe_b64encode(" ".join(parts).encode()).decode()


class MatchNames:
    """Reads the names of the matches that fit a filter, newest first."""

    def __init__(self, client: RedisClient, wanted: MatchFilter, start: PageCursor) -> None:
        self._client = client
        self._wanted = wanted
        self._passed = 0
        """The number of entries with the same microsecond as `place` that were read before it."""
        self.place = start
        """The last entry that was read, including those that do not fit."""
        self.is_at_end = False

    async def read_names(self, count: int) -> list[str]:
        """Reads the next names, at most `count`, in one command. It may return none although more follow.

        The set of a state has every match of that state, and others that have left it.
        """
        highest = min(self.place.create_us, self._wanted.until_us - 1)
        args = (highest, self._wanted.since_us, self._passed, count, MOST_SEEN_AT_ONCE)
        answer = await scripts.run_script(self._client, "match_page", self._wanted.sets, *args)
        passed, is_at_end, last_name, last_score, *found = answer
        places = [_place(name, score) for name, score in as_pairs(found)]
        names = [it.match for it in places if it < self.place]
        last = _place(last_name, last_score) if last_name else self.place
        self._passed = 0 if last < self.place else passed
        self.place, self.is_at_end = min(last, self.place), bool(is_at_end)
        return names


def _place(name: bytes, score: bytes) -> PageCursor:
    return PageCursor(int(float(score)), name.decode())
