"""What the log says of a version beside its rating: whom it met last, where it sat, whether it still answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from seatwise_server.competition.logged_result import FORFEIT_ENDINGS, LoggedResult

REMEMBERED = 12
"""So many opponents are kept, the last ones: no pairing looks further back."""
FORFEITS_IN_A_ROW = 3
"""So many take a version off the ladder."""


@dataclass(frozen=True, slots=True)
class Form:
    """One version's; a new one has none."""

    matches: int = 0
    recent: tuple[str, ...] = ()
    """Its last opponents, the latest first; one that it met twice stands here twice."""
    seats: tuple[int, ...] = (0, 0, 0, 0)
    """How often it has sat in each seat."""
    forfeits: tuple[tuple[str, str], ...] = ()
    """Match and ending of those it has forfeited since it last saw one through."""

    def after(self, result: LoggedResult, seat: int) -> Form:
        """The form after one more match, in which it sat there."""
        ending = result.endings[seat]
        others = tuple(bot for bot in result.bots if bot != result.bots[seat])
        return Form(
            matches=self.matches + 1,
            recent=(others + self.recent)[:REMEMBERED],
            seats=tuple(count + (number == seat) for number, count in enumerate(self.seats)),
            forfeits=(*self.forfeits, (result.match, ending)) if ending in FORFEIT_ENDINGS else (),
        )

    @property
    def is_on_trial(self) -> bool:
        """Whether it has seen no match through, or not its last one."""
        return not self.matches or bool(self.forfeits)

    def fault(self, limit: int = FORFEITS_IN_A_ROW) -> str:
        """Why it may not stay on the ladder, told to its owner; "" if it may. Resigning is no fault: it answered."""
        if len(self.forfeits) < limit:
            return ""
        told = ", ".join(f"{match} ({ending})" for match, ending in self.forfeits[-limit:])
        return f"forfeited {len(self.forfeits)} matches in a row: {told}"


class Forms:
    """Everybody's form: like ratings a pure function of the ordered log."""

    def __init__(self) -> None:
        self._forms: dict[str, Form] = {}
        self.seq = 0

    def of(self, bot: str) -> Form:
        return self._forms.get(bot, Form())

    def apply(self, result: LoggedResult) -> None:
        """Takes one more result in; one that is in already changes nothing."""
        if result.seq <= self.seq:
            return
        self.seq = result.seq
        for seat, bot in enumerate(result.bots):
            self._forms[bot] = self.of(bot).after(result, seat)

    def miss(self, bot: str, match: str) -> None:
        """It never sat down in a match that was void for it, and so has no result."""
        form = self.of(bot)
        self._forms[bot] = replace(form, forfeits=(*form.forfeits, (match, "NEVER_SAT")))

    def pardon(self, bot: str) -> None:
        """Its owner says that it is mended: what it forfeited until now is not counted against it any more."""
        self._forms[bot] = replace(self.of(bot), forfeits=())


def forms(results: Iterable[LoggedResult]) -> Forms:
    """The forms from the whole log."""
    found = Forms()
    for result in results:
        found.apply(result)
    return found
