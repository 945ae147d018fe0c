"""The form of a version, computed from the log like its rating: its last opponents, its seats, and its forfeits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from seatwise_server.competition.logged_result import FORFEIT_ENDINGS, LoggedResult

REMEMBERED_OPPONENTS = 12
"""The number of last opponents to keep. No pairing needs more."""
FORFEITS_IN_A_ROW = 3
"""The number of forfeits in a row that takes a version off the ladder."""


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

    def after_result(self, result: LoggedResult, seat: int) -> BotForm:
        """Return the form after one more match, which it played at this seat."""
        ending = result.endings[seat]
        others = tuple(bot for bot in result.bots if bot != result.bots[seat])
        return BotForm(
            matches=self.matches + 1,
            recent_opponents=(others + self.recent_opponents)[:REMEMBERED_OPPONENTS],
            seat_counts=tuple(count + (number == seat) for number, count in enumerate(self.seat_counts)),
            forfeits=(*self.forfeits, (result.match, ending)) if ending in FORFEIT_ENDINGS else (),
        )

    @property
    def is_on_trial(self) -> bool:
        """Whether it has not finished any match yet, or did not finish its last one."""
        return not self.matches or bool(self.forfeits)

    def off_reason(self, limit: int = FORFEITS_IN_A_ROW) -> str:
        """Return the reason why it is off the ladder, in words for its owner; empty if it is on it.

        Resigning is no forfeit, because the bot answered.
        """
        if len(self.forfeits) < limit:
            return ""
        told = ", ".join(f"{match} ({ending})" for match, ending in self.forfeits[-limit:])
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

    def note_no_show(self, bot: str, match: str) -> None:
        """Count a match that was void because the version never sat down. Such a match has no result."""
        form = self.form_of(bot)
        self._forms[bot] = replace(form, forfeits=(*form.forfeits, (match, "NEVER_SAT")))

    def reinstate_bot(self, bot: str) -> None:
        """Forget the forfeits of a version, because its owner says that it is repaired."""
        self._forms[bot] = replace(self.form_of(bot), forfeits=())


def compute_forms(results: Iterable[LoggedResult]) -> BotForms:
    """Compute the forms from a whole log."""
    found = BotForms()
    for result in results:
        found.apply_result(result)
    return found
