"""The form of each version on a ladder, and how often pairs have met lately: pure functions of the log, as the ratings are."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile

from seatwise_server.competition.logged_result import FORFEIT_ENDINGS, LoggedResult
from seatwise_server.competition.ratings.openskill_ratings import OpenskillRatings

REMEMBERED_OPPONENTS = 12
"""The number of last opponents to keep. No pairing needs more."""
FORFEITS_IN_A_ROW = 3
"""The number of forfeits in a row that takes a version off the ladder."""
PAUSES_MS = (600_000, 7_200_000)
"""How long a version is off the ladder the first time and the second, before its own token readmits it.

The third time only the operator readmits it. After that the first pause comes next again.
"""

PAIR_WINDOW_MATCHES = 40
"""The last rated matches of a version in which its meetings with one opponent are limited."""
PAIR_WINDOW_MS = 7 * 86_400_000
"""Meetings that are older do not count, and a version without a match for so long does not belong to the field."""
MOST_EVEN_SHARES = 1.5
"""How many times as often as in an even field a pair may meet."""
LARGEST_SCALED_FIELD = 20
"""In a larger field the limit stays as it is here, because pairing by rating chooses from the neighbours."""


@dataclass(frozen=True, slots=True)
class BotForm:
    """The form of one version. A new one has an empty form."""

    matches: int = 0
    recent_opponents: tuple[str, ...] = ()
    """The last opponents, the latest first. An opponent that it met twice is in the list twice."""
    seat_counts: tuple[int, ...] = (0, 0, 0, 0)
    """How often it has sat at each seat, by seat."""
    forfeits: tuple[tuple[str, str], ...] = ()
    """The match and the ending of each forfeit since the version last finished a match."""
    removals: int = 0
    """How often it was taken off the ladder since the operator last readmitted it."""
    off_ms: int = 0
    """When it was last taken off, in milliseconds of Redis's clock."""

    def after_result(self, result: LoggedResult, seat: int) -> BotForm:
        """Return the form after one more match, which it played at this seat."""
        ending = result.endings[seat]
        others = tuple(bot for bot in result.bots if bot != result.bots[seat])
        form = replace(
            self,
            matches=self.matches + 1,
            recent_opponents=(others + self.recent_opponents)[:REMEMBERED_OPPONENTS],
            seat_counts=tuple(count + (number == seat) for number, count in enumerate(self.seat_counts)),
        )
        if ending in FORFEIT_ENDINGS:
            return form.after_forfeit(result.match, ending, result.log_ms)
        return form if self.is_off else replace(form, forfeits=())

    def after_forfeit(self, match: str, ending: str, at_ms: int) -> BotForm:
        """Return the form after one more forfeit, which may take the version off the ladder."""
        form = replace(self, forfeits=(*self.forfeits, (match, ending)))
        if self.is_off or not form.is_off:
            return form
        return replace(form, removals=self.removals + 1, off_ms=at_ms)

    @property
    def is_on_trial(self) -> bool:
        """Whether it has not finished any match yet, or did not finish its last one."""
        return not self.matches or bool(self.forfeits)

    @property
    def is_off(self) -> bool:
        """Whether it is off the ladder. Resigning is no forfeit, because the bot answered."""
        return len(self.forfeits) >= FORFEITS_IN_A_ROW

    @property
    def back_ms(self) -> int:
        """From when its own token readmits it, in milliseconds of Redis's clock; 0 if only the operator does."""
        return self.off_ms + PAUSES_MS[self.removals - 1] if 0 < self.removals <= len(PAUSES_MS) else 0

    def off_reason(self) -> str:
        """Return why it is off the ladder, in words for its owner; empty if it is on it."""
        if not self.is_off:
            return ""
        told = ", ".join(f"{match} ({ending})" for match, ending in self.forfeits[-FORFEITS_IN_A_ROW:])
        return f"forfeited {len(self.forfeits)} matches in a row: {told}"


class BotForms:
    """The form of every version: like ratings, a pure function of the ordered log."""

    def __init__(self) -> None:
        self._forms: dict[str, BotForm] = {}
        self.seq = 0

    def form_of(self, bot: str) -> BotForm:
        """Return the form of a version."""
        return self._forms.get(bot, BotForm())

    def apply_result(self, result: LoggedResult) -> None:
        """Add one more result. A result that was added before changes nothing."""
        if result.seq <= self.seq:
            return
        self.seq = result.seq
        for seat, bot in enumerate(result.bots):
            self._forms[bot] = self.form_of(bot).after_result(result, seat)

    def note_no_show(self, bot: str, match: str, at_ms: int = 0) -> None:
        """Count a match that was void because the version never sat down. Such a match has no result."""
        self._forms[bot] = self.form_of(bot).after_forfeit(match, "NEVER_SAT", at_ms)

    def reinstate_bot(self, bot: str) -> None:
        """Forget the forfeits of a version and its removals, because the operator readmits it."""
        self._forms[bot] = replace(self.form_of(bot), forfeits=(), removals=0)

    def let_bot_return(self, bot: str, at_ms: int) -> None:
        """Forget the forfeits of a version that readmits itself. Nothing happens if it is on the ladder, or before the time."""
        form = self.form_of(bot)
        if form.is_off and form.back_ms and at_ms >= form.back_ms:
            self._forms[bot] = replace(form, forfeits=())


def most_meetings(field: int, seats: int) -> int:
    """Return how often a pair may meet within `PAIR_WINDOW_MATCHES` matches of either, in a field of so many versions.

    >>> [most_meetings(field, 2) for field in (3, 4, 8, 20, 500)]
    [30, 20, 8, 3, 3]
    """
    others = max(1, min(field, LARGEST_SCALED_FIELD) - 1)
    return min(PAIR_WINDOW_MATCHES, int(MOST_EVEN_SHARES * PAIR_WINDOW_MATCHES * (seats - 1) / others))


class PairMeetings:
    """How often pairs met in the rated matches of a ladder's log, by the log's own time: it decides whether a match is rated.

    A few bots that are alone on a ladder could otherwise decide their ratings by themselves.
    """

    def __init__(self) -> None:
        self._recent: dict[str, deque[tuple[int, tuple[str, ...]]]] = {}
        """By version its last rated matches, the oldest first: the time, and the opponents."""
        self._counts: dict[str, Counter[str]] = {}
        """By version its meetings in these matches."""
        self._seen_ms: dict[str, int] = {}
        """When each version of the field was last rated, the oldest first."""
        self._now_ms = 0

    def admit_result(self, result: LoggedResult) -> bool:
        """Return whether the next result of the log is rated, and count its meetings if it is."""
        self._now_ms = max(self._now_ms, result.log_ms)
        bots = result.bots
        self._forget_old_meetings(bots)
        if not result.compares_bots:
            return False
        if any(not self.barred_opponents(bot, len(bots)).isdisjoint(bots) for bot in bots):
            return False
        for bot in bots:
            self._count_match(bot, tuple(other for other in bots if other != bot))
        return True

    def barred_opponents(
        self, bot: str, seats: int, now_ms: int = 0, at_tables: Mapping[str, int] | None = None
    ) -> frozenset[str]:
        """Return the opponents that the version may not meet now, because the match would not be rated.

        `at_tables` are its meetings in matches whose results have not come yet. `now_ms` is the time by Redis's clock; without it, it is
        the time of the last result.
        """
        since_ms = max(self._now_ms, now_ms) - PAIR_WINDOW_MS
        counts = Counter(self._counts.get(bot))
        counts.update(at_tables or {})
        for _, others in takewhile(lambda it: it[0] <= since_ms, self._recent.get(bot, ())):
            counts.subtract(others)
        gone = sum(1 for _ in takewhile(lambda at_ms: at_ms <= since_ms, self._seen_ms.values()))
        most = most_meetings(len(self._seen_ms) - gone, seats)
        if most >= PAIR_WINDOW_MATCHES:
            return frozenset()
        return frozenset(other for other, count in counts.items() if count >= most)

    def _forget_old_meetings(self, bots: Iterable[str]) -> None:
        since_ms = self._now_ms - PAIR_WINDOW_MS
        for bot in bots:
            while (recent := self._recent.get(bot)) and recent[0][0] <= since_ms:
                self._forget_oldest(bot)
        while self._seen_ms and self._seen_ms[oldest := next(iter(self._seen_ms))] <= since_ms:
            del self._seen_ms[oldest]

    def _count_match(self, bot: str, others: tuple[str, ...]) -> None:
        recent = self._recent.setdefault(bot, deque())
        recent.append((self._now_ms, others))
        self._counts.setdefault(bot, Counter()).update(others)
        if len(recent) > PAIR_WINDOW_MATCHES:
            self._forget_oldest(bot)
        self._seen_ms.pop(bot, None)
        self._seen_ms[bot] = self._now_ms

    def _forget_oldest(self, bot: str) -> None:
        counts = self._counts[bot]
        for other in self._recent[bot].popleft()[1]:
            counts[other] -= 1
            if not counts[other]:
                del counts[other]


def rated_results(results: Iterable[LoggedResult]) -> Iterator[LoggedResult]:
    """Yield the results of a whole log that are rated."""
    meetings = PairMeetings()
    return (result for result in results if meetings.admit_result(result))


def rate_log(results: Iterable[LoggedResult]) -> OpenskillRatings:
    """Compute the ratings of a ladder from its whole log. They equal, to the last digit, those that were updated while it grew."""
    ratings, meetings = OpenskillRatings(), PairMeetings()
    for result in results:
        ratings.apply_result(result, is_rated=meetings.admit_result(result))
    return ratings
