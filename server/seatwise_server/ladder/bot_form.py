"""What the log says of a version beside its rating: whom it met last, where it sat, whether it still answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from seatwise_server.competition.logged_result import FORFEIT_ENDINGS, LoggedResult

REMEMBERED_OPPONENTS = 12
"""So many opponents are kept, the last ones: no pairing looks further back."""
FORFEITS_IN_A_ROW = 3
"""So many take a version off the ladder."""


@dataclass(frozen=True, slots=True)
class BotForm:
    """One version's; a new one has none."""

    matches: int = 0
    recent_opponents: tuple[str, ...] = ()
    """Its last opponents, the latest first; one that it met twice stands here twice."""
    seat_counts: tuple[int, ...] = (0, 0, 0, 0)
    """How often it has sat in each seat."""
    forfeits: tuple[tuple[str, str], ...] = ()
    """Match and ending of those it has forfeited since it last saw one through."""

    def after_result(self, result: LoggedResult, seat: int) -> BotForm:
        """The form after one more match, in which it sat there."""
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
        """Whether it has seen no match through, or not its last one."""
        return not self.matches or bool(self.forfeits)

    def off_reason(self, limit: int = FORFEITS_IN_A_ROW) -> str:
        """Why it may not stay on the ladder, told to its owner; "" if it may. Resigning is no fault: it answered."""
        if len(self.forfeits) < limit:
            return ""
        told = ", ".join(f"{match} ({ending})" for match, ending in self.forfeits[-limit:])
        return f"forfeited {len(self.forfeits)} matches in a row: {told}"


class BotForms:
    """Everybody's form: like ratings a pure function of the ordered log."""

    def __init__(self) -> None:
        self._forms: dict[str, BotForm] = {}
        self.seq = 0

    def form_of(self, bot: str) -> BotForm:
        return self._forms.get(bot, BotForm())

    def apply_result(self, result: LoggedResult) -> None:
        """Takes one more result in; one that is in already changes nothing."""
        if result.seq <= self.seq:
            return
        self.seq = result.seq
        for seat, bot in enumerate(result.bots):
            self._forms[bot] = self.form_of(bot).after_result(result, seat)

    def note_no_show(self, bot: str, match: str) -> None:
        """It never sat down in a match that was void for it, and so has no result."""
        form = self.form_of(bot)
        self._forms[bot] = replace(form, forfeits=(*form.forfeits, (match, "NEVER_SAT")))

    def reinstate_bot(self, bot: str) -> None:
        """Its owner says that it is mended: what it forfeited until now is not counted against it any more."""
        self._forms[bot] = replace(self.form_of(bot), forfeits=())


def compute_forms(results: Iterable[LoggedResult]) -> BotForms:
    """The forms from the whole log."""
    found = BotForms()
    for result in results:
        found.apply_result(result)
    return found
