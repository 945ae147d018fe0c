"""How many places a bot gains by being absent: seasons with the product's own schedules and tables, honest and with a dodger.

    PYTHONPATH=tests .venv/bin/python tests/bench/absence.py [SEASONS] [SECONDS] [FORMAT]

For each format and number of seats a bot of middle strength misses matches on purpose, twice each, by one of these plans:

- `stronger`: whenever a stronger bot sits at the table, as far as the offer tells it.
- `blind`: as often, but without a look at the opponents, as if offers did not name them.
- `ahead`: every match after its first win, to keep its mean.
- `friend`: the weakest bot misses all matches without the bot in question, which plays honestly.
- `rivals`: it misses only those with the three bots that are nearest to the bot in question, so it stays in the table.
- `annul`: it misses its last matches with one of them, if those had gained more from it so far than the bot in question.

Each season is played twice with the same luck, so the gain is a paired difference of places; more is better for the dodger. The last
column is the one-sided 99.9 % bound of the gain.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from random import Random
from statistics import fmean, stdev

from seasons.one_season import league_of

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.schedule import ScheduledMatch, SoFar
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.settings import Entrant, League
from seatwise_server.league.table import rows_of

BOTS = 8
BOUND_Z = 3.09
"""Standard errors of a one-sided bound of 99.9 %."""
ENTRANTS = tuple(Entrant(f"e{number}", f"bots/e{number}/versions/1") for number in range(BOTS))
PLAYERS = tuple(each.player for each in ENTRANTS)
STRENGTH = {player: 10.0 * (BOTS / 2 - place) / BOTS for place, player in enumerate(PLAYERS)}
"""Points a match above the mean of the field; the first is the strongest."""
FORMATS = {
    "round robin": {"format": "round-robin", "rounds": 14},
    "swiss": {"format": "swiss", "rounds": 4},
    "knockout": {"format": "knockout"},
    "gauntlet": {"format": "gauntlet", "challengers": ("e0", "e3", "e7"), "rounds": 8},
}
ME = PLAYERS[3]
FRIEND = PLAYERS[-1]
RIVALS = {PLAYERS[1], PLAYERS[2], PLAYERS[4]}
Plan = Callable[[ScheduledMatch, Sequence[LoggedResult], Random], str]
"""Returns the bot that misses this match, or "": by the match, and by the results so far."""


def honest(_match: ScheduledMatch, _played: Sequence[LoggedResult], _chance: Random) -> str:
    return ""


def stronger(match: ScheduledMatch, _played: Sequence[LoggedResult], _chance: Random) -> str:
    return ME if ME in match.bots and any(STRENGTH[bot] > STRENGTH[ME] for bot in match.bots) else ""


def blind(match: ScheduledMatch, _played: Sequence[LoggedResult], chance: Random) -> str:
    return ME if ME in match.bots and chance.random() < 3 / (BOTS - 1) else ""


def ahead(match: ScheduledMatch, played: Sequence[LoggedResult], _chance: Random) -> str:
    has_won = any(ME in each.bots and each.ranks[each.bots.index(ME)] == 1 for each in played)
    return ME if ME in match.bots and has_won else ""


def friend(match: ScheduledMatch, _played: Sequence[LoggedResult], _chance: Random) -> str:
    return FRIEND if FRIEND in match.bots and ME not in match.bots else ""


def rivals(match: ScheduledMatch, _played: Sequence[LoggedResult], _chance: Random) -> str:
    return FRIEND if FRIEND in match.bots and ME not in match.bots and RIVALS & {*match.bots} else ""


def annul(match: ScheduledMatch, played: Sequence[LoggedResult], _chance: Random) -> str:
    if FRIEND not in match.bots or ME in match.bots or not RIVALS & {*match.bots}:
        return ""
    gained = {
        bot: [each.points[each.bots.index(bot)] for each in played if {bot, FRIEND} <= {*each.bots}]
        for bot in (ME, *RIVALS)
    }
    if len(gained[ME]) < 2 or not all(gained.values()):
        return ""
    return FRIEND if fmean(gained[ME]) + 2 < fmean(fmean(gained[bot]) for bot in RIVALS) else ""


PLANS: dict[str, Plan] = {each.__name__: each for each in (stronger, blind, ahead, friend, rivals, annul)}
OF_FRIENDS = ("friend", "rivals", "annul")


def play_match(match: ScheduledMatch, seq: int, seed: int) -> LoggedResult:
    """Play with the luck of this season; it depends on the bots and the round alone."""
    points = []
    for bot in match.bots:
        others = [STRENGTH[other] for other in match.bots if other != bot]
        luck = Random(f"{seed}/{match.round}/{bot}/{sorted(match.bots)}").gauss(0, 8)
        points.append(round(10 + STRENGTH[bot] - sum(others) / len(others) + luck))
    ranks = tuple(1 + sum(other > own for other in points) for own in points)
    return LoggedResult(seq, f"matches/{seq}", match.bots, tuple(points), ranks, ("COMPLETED",) * len(points))


def place_after(league: League, plan: Plan, seed: int) -> float:
    """Return the place of the bot in question; shared ones count as their mean."""
    schedule, chance = schedule_of(league), Random(seed)
    so_far = SoFar({}, set(), {}, {})
    while due := schedule.due_matches(so_far):
        if league.format == "swiss":
            draw = schedule.current_draw(so_far)
            so_far.draws[draw.round] = draw
        for match in due:
            absent = plan(match, list(so_far.results.values()), chance)
            if absent:
                for attempt in (match.id, f"{match.id}.2"):
                    so_far.voids.add(attempt)
                    so_far.absences[attempt] = (absent,)
                continue
            so_far.results[match.id] = play_match(match, len(so_far.results) + 1, seed)
    ranks = {row["player"]: row["rank"] for row in rows_of(league, schedule, so_far)}
    shared = sum(rank == ranks[ME] for rank in ranks.values())
    return ranks[ME] + (shared - 1) / 2


def measure_gain(league: League, plan: Plan, seasons: int, until: float) -> tuple[int, float, float]:
    """Return the seasons played, the mean gain in places, and its bound."""
    gains: list[float] = []
    for seed in range(seasons):
        seeded = league_of(**{**vars_of(league), "seed": str(seed)})
        gains.append(place_after(seeded, honest, seed) - place_after(seeded, plan, seed))
        if time.process_time() > until and len(gains) > 30:
            break
    mean = fmean(gains)
    return len(gains), mean, mean + BOUND_Z * stdev(gains) / len(gains) ** 0.5


def vars_of(league: League) -> dict[str, object]:
    """Return the settings that differ from those of `league_of`."""
    names = ("format", "rounds", "seats", "entrants", "challengers", "advance", "deals")
    return {name: getattr(league, name) for name in names}


def main() -> None:
    """Print a line for each format, number of seats and plan."""
    seasons = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 300.0
    cases = [
        (form, seats, name)
        for form in sys.argv[3:] or FORMATS
        for seats in (2, 3, 4)
        for name in PLANS
        if form != "gauntlet" or name not in OF_FRIENDS
    ]
    for form, seats, name in cases:
        more = {"advance": 2} if form == "knockout" and seats == 4 else {}
        settings = {"entrants": ENTRANTS, "seats": seats, "deals": "none", **FORMATS[form], **more}
        if form == "swiss" and seats == 3:
            settings["rounds"] = 3
        until = time.process_time() + seconds / len(cases)
        played, mean, bound = measure_gain(league_of(**settings), PLANS[name], seasons, until)
        print(
            f"{form:12} {seats} seats  {name:9} {played:5} seasons  gain {mean:+.3f}  bound {bound:+.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
