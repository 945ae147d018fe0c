"""How many places a bot gains by absence: seasons with the product's schedules and its rules of a table, honest and with somebody away.

    PYTHONPATH=tests .venv/bin/python tests/seasons/absence.py [SEASONS] [FORMAT ...] [SEATS ...]

For each format and number of seats somebody misses matches on purpose, twice each, by one of these plans. The bot in question is the
fourth-best of eight:

- `stronger`: it misses matches whenever a stronger bot sits at the table, as far as the offer tells it.
- `blind`: as often, but without a look at the opponents, as if offers did not name them.
- `ahead`: every match after its first win, to keep its mean.
- `friend`: the weakest bot misses all matches without the bot in question, which plays honestly.
- `rivals`: it misses only those with the three bots that are nearest to the bot in question, so it stays in the table.
- `above`: only those with bots that are stronger than the bot in question.
- `annul`: it misses its last matches with a near bot, if those had gained more from it so far than the bot in question.
- `luck`: it misses matches with near bots that have had bad luck so far, to keep their means low.
- `quit`: it leaves before half of its matches, if the bot in question had less luck against it so far than the others.
- `half`: the same in a league with `withdrawals = "half"`.

All plans meet the same luck, so a gain is a paired difference of places; more is better for the cheat. The bound is the one-sided 99.9 %
bound of the mean. An absent friend falls to the last place, and that alone gains a place wherever it would have been ahead. So the last
column is the gain among all bots but the friend.

No matches are played: points are 10, the strength less the mean strength of the others, and normal luck. The arithmetic is done for
all seasons at once, and the first seasons are compared with the product's table. A Swiss draws the best of all draws of eight bots: the
fewest repeats, then the nearest scores, then by lot.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from seasons.one_season import league_of
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.schedule import SoFar
from seatwise_server.competition.standings.played_season import LINK_WEIGHT
from seatwise_server.competition.standings.ranking import rank_entrants
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.settings import Entrant

BOTS, ME, FRIEND = 8, 3, 7
BOUND_Z = 3.09
"""Standard errors of a one-sided bound of 99.9 %."""
LUCK = 8.0
ENTRANTS = tuple(Entrant(f"e{number}", f"bots/e{number}/versions/1") for number in range(BOTS))
PLAYERS = tuple(each.player for each in ENTRANTS)
STRENGTH = 10.0 * (BOTS / 2 - np.arange(BOTS)) / BOTS
"""Points a match above the mean of the field; the first is the strongest."""
NEAR, ABOVE, OTHERS = (1, 2, 4), (0, 1, 2), (0, 1, 2, 4, 5, 6)
SCHEDULES = 8
"""Different schedules of a format: their design takes longer than a thousand seasons."""
CHECKED = 20
"""Seasons of each plan whose table the product computes, too."""
FORMATS = {
    "round robin": {"format": "round-robin", "rounds": 14},
    "swiss": {"format": "swiss", "rounds": 4},
    "gauntlet": {"format": "gauntlet", "challengers": ("e0", "e3", "e7"), "rounds": 8},
    "knockout": {"format": "knockout"},
}
Ints = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass
class Seasons:
    """Seasons that are played side by side. The first axis of all arrays is the season."""

    chance: Floats
    """By season, round and bot: the luck, the same for all plans."""
    tables: list[Ints]
    """Of each match, the bots by seat."""
    points: list[Floats]
    absent: list[Ints]
    """Of each match, the bot that missed it, or -1."""
    byes: Ints
    """By season and bot."""

    def sits(self, bot: int) -> Mask:
        return (self.tables[-1] == bot).any(1)

    def sits_any(self, bots: tuple[int, ...]) -> Mask:
        return np.isin(self.tables[-1], bots).any(1)

    def past(self) -> Iterator[tuple[Ints, Floats, Mask]]:
        """Yield the tables, the points, and whether it was played, of each earlier match."""
        for table, points, absent in zip(self.tables, self.points, self.absent, strict=False):
            yield table, points, absent < 0

    def sum_past(self, bots: tuple[int, ...], *, with_friend: bool, as_luck: bool) -> tuple[Floats, Floats]:
        """Return by season what these bots got so far, and in how many seats."""
        total, count = np.zeros(len(self.chance)), np.zeros(len(self.chance))
        for table, points, played in self.past():
            counts = np.isin(table, bots) & played[:, None]
            if with_friend:
                counts &= (table == FRIEND).any(1)[:, None]
            total += np.where(counts, points - expect(table) * as_luck, 0).sum(1)
            count += counts.sum(1)
        return total, count


Plan = Callable[[Seasons, "Luck"], Ints]
"""By season, the bot that misses the last of the matches, or -1."""
Luck = np.random.Generator


def absent_if(bot: int, mask: Mask) -> Ints:
    return np.where(mask, bot, -1)


def honest(now: Seasons, _: Luck) -> Ints:
    return np.full(len(now.chance), -1)


def stronger(now: Seasons, _: Luck) -> Ints:
    return absent_if(ME, now.sits(ME) & now.sits_any(ABOVE))


def blind(now: Seasons, luck: Luck) -> Ints:
    return absent_if(ME, now.sits(ME) & (luck.random(len(now.chance)) < 3 / (BOTS - 1)))


def ahead(now: Seasons, _: Luck) -> Ints:
    has_won = np.zeros(len(now.chance), bool)
    for table, points, played in now.past():
        own = np.where(table == ME, points, -np.inf).max(1)
        has_won |= (own >= points.max(1)) & played
    return absent_if(ME, now.sits(ME) & has_won)


def friend(now: Seasons, _: Luck) -> Ints:
    return absent_if(FRIEND, now.sits(FRIEND) & ~now.sits(ME))


def rivals(now: Seasons, _: Luck) -> Ints:
    return absent_if(FRIEND, now.sits(FRIEND) & ~now.sits(ME) & now.sits_any(NEAR))


def above(now: Seasons, _: Luck) -> Ints:
    return absent_if(FRIEND, now.sits(FRIEND) & ~now.sits(ME) & now.sits_any(ABOVE))


def annul(now: Seasons, _: Luck) -> Ints:
    own, count = now.sum_past((ME,), with_friend=True, as_luck=False)
    got, seats = now.sum_past(NEAR, with_friend=True, as_luck=False)
    is_worse = own / np.maximum(count, 1) + 2 < got / np.maximum(seats, 1)
    return np.where(is_worse & (count >= 1) & (seats >= 2), rivals(now, _), -1)


def luck(now: Seasons, _: Luck) -> Ints:
    got = np.zeros(len(now.chance))
    for bot in NEAR:
        total, _count = now.sum_past((bot,), with_friend=False, as_luck=True)
        got += np.where(now.sits(bot), total, 0)
    return np.where(got < 0, rivals(now, _), -1)


def leave(now: Seasons, _: Luck) -> Ints:
    has_left = np.zeros(len(now.chance), bool)
    for absent in now.absent:
        has_left |= absent == FRIEND
    seats = len(now.tables[0][0])
    half = 1 if now.chance.shape[1] < 8 else (6, 4, 6)[seats - 2]  # it plays 14, 10 or 11, and 14 matches
    own, _count = now.sum_past((ME,), with_friend=True, as_luck=True)
    got, _count = now.sum_past(OTHERS, with_friend=True, as_luck=True)
    _total, count = now.sum_past((FRIEND,), with_friend=True, as_luck=True)
    is_worse = own < got / len(OTHERS) - LUCK / seats
    return absent_if(FRIEND, now.sits(FRIEND) & (has_left | ((count == half) & is_worse)))


PLANS: dict[str, Plan] = {
    each.__name__: each for each in (stronger, blind, ahead, friend, rivals, above, annul, luck)
} | {"quit": leave, "half": leave}
OF_FRIENDS = ("friend", "rivals", "above", "annul", "luck", "quit", "half")


def expect(table: Ints) -> Floats:
    own = STRENGTH[table]
    return 10 + own - (own.sum(1, keepdims=True) - own) / (table.shape[1] - 1)


def begin(seasons: int, rounds: int) -> Seasons:
    chance = np.random.default_rng(1).normal(0, LUCK, (seasons, rounds, BOTS))
    return Seasons(chance, [], [], [], np.zeros((seasons, BOTS), int))


def play_match(now: Seasons, number: int, table: Ints, plan: Plan, generator: Luck) -> None:
    now.tables.append(table)
    away = plan(now, generator)
    now.points.append(np.rint(expect(table) + np.take_along_axis(now.chance[:, number], table, 1)))
    now.absent.append(away)


def play_fixed(settings: dict[str, Any], seasons: int, plan: Plan) -> Seasons:
    """Play a round robin or a gauntlet."""
    plans = [
        schedule_of(league_of(**settings, seed=str(seed))).all_matches()  # type: ignore[attr-defined]
        for seed in range(SCHEDULES)
    ]
    generator = np.random.default_rng(2)
    now = begin(seasons, 1 + max(match.round for match in plans[0]) * (settings["format"] == "gauntlet" or 1))
    which = np.arange(seasons) % SCHEDULES
    for place, match in enumerate(plans[0]):
        seated = np.array([[PLAYERS.index(bot) for bot in each[place].bots] for each in plans])
        play_match(now, match.round - 1, seated[which], plan, generator)
    return now


def list_tables(bots: tuple[int, ...], size: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield all ways to seat the bots at tables of this size."""
    if not bots:
        yield ()
        return
    for others in combinations(bots[1:], size - 1):
        rest = tuple(bot for bot in bots[1:] if bot not in others)
        yield from (((bots[0], *others), *tables) for tables in list_tables(rest, size))


def play_swiss(settings: dict[str, Any], seasons: int, plan: Plan) -> Seasons:
    size = settings["seats"]
    seated = BOTS - BOTS % size
    ways = np.array(list(list_tables(tuple(range(seated)), size)))
    lots = np.random.default_rng(3).random((seasons, settings["rounds"], len(ways)))
    generator = np.random.default_rng(2)
    now = begin(seasons, settings["rounds"])
    scores, met = np.zeros((seasons, BOTS)), np.zeros((seasons, BOTS, BOTS))
    rows = np.arange(seasons)[:, None]
    for number in range(settings["rounds"]):
        order = np.argsort(-scores * 1000 + np.arange(BOTS), axis=1, kind="stable")
        # the last bots without a bye have one, so they come last
        late = np.argsort(np.take_along_axis(now.byes == 0, order, 1) * np.arange(1, BOTS + 1), axis=1)
        resting = np.take_along_axis(order, late[:, seated:], 1)
        now.byes[rows, resting] += 1
        is_in = ~(order[:, :, None] == resting[:, None, :]).any(2)
        order = order[is_in].reshape(seasons, seated)
        off = (scores[:, :, None] - scores[:, None, :]) ** 2 * 10 + met * 1e6
        weights = lots[:, number] * 1e-3
        for place in range(seated):
            for other in range(place + 1, seated):
                together = (ways == place).any(2) & (ways == other).any(2)
                weight = off[rows[:, 0], order[:, place], order[:, other]]
                if number == 0:  # the fold
                    weight = weight + (abs(other - place) % (seated // size) != 0)
                weights += weight[:, None] * together.any(1)
        drawn = ways[weights.argmin(1)]
        scores[rows, resting] += 1
        mean = scores / number if number else np.full_like(scores, 0.5)
        for at in range(seated // size):
            table = np.take_along_axis(order, drawn[:, at], 1)
            play_match(now, number, table, plan, generator)
            away = now.absent[-1]
            gained = np.where(away[:, None] < 0, shares(now.points[-1]), mean[rows, table])
            scores[rows, table] += np.where(table == away[:, None], 0.0, gained)
            for one in range(size):
                for other in range(size):
                    if one != other:
                        met[rows[:, 0], table[:, one], table[:, other]] += away < 0
    return now


def shares(points: Floats) -> Floats:
    """The share of the others that each seat finished ahead of."""
    over = (points[:, :, None] > points[:, None, :]) + (points[:, :, None] == points[:, None, :]) / 2
    return (over.sum(2) - 0.5) / (points.shape[1] - 1)


# The table, by the rules of docs/statistics.md


def table_values(now: Seasons, gone: Mask, *, by_score: bool) -> Floats:
    """Return each bot's mean by season, with what walk-overs add. Matches of an entrant that is gone do not count."""
    seasons = len(now.chance)
    total, count = np.zeros((seasons, BOTS)), np.zeros((seasons, BOTS))
    matrix, right = np.tile(np.eye(BOTS) * LINK_WEIGHT, (seasons, 1, 1)), np.zeros((seasons, BOTS))
    every, seats = np.zeros(seasons), np.zeros(seasons)
    lowest = np.full(seasons, 0.0 if by_score else np.inf)
    rows = np.arange(seasons)[:, None]
    kept = []
    for table, points, away in zip(now.tables, now.points, now.absent, strict=True):
        stays = ~(gone[:, None] & (table == FRIEND)).any(1)
        values, size = shares(points) if by_score else points, table.shape[1]
        counts = ((away < 0) & stays)[:, None]
        kept.append((table, away, stays))
        total[rows, table] += values * counts
        count[rows, table] += counts
        right[rows, table] += (values - values.mean(1, keepdims=True)) * counts
        matrix[rows, table, table] += counts
        for one in range(size):
            for other in range(size):
                matrix[rows[:, 0], table[:, one], table[:, other]] -= counts[:, 0] / size
        every += (values * counts).sum(1)
        seats += counts[:, 0] * size
        lowest = np.where(counts[:, 0], np.minimum(lowest, values.min(1)), lowest)
    strength = np.linalg.solve(matrix, right[:, :, None])[:, :, 0]
    has_played = count > 0
    if by_score:
        total, count = total + now.byes, count + now.byes
    for table, away, stays in kept:
        own = np.take_along_axis(strength, table, 1)
        expected = (every / seats)[:, None] + own - own.mean(1, keepdims=True)
        expected = np.clip(expected, 0, 1) if by_score else expected
        is_away = table == away[:, None]
        counts = (away >= 0)[:, None] & (stays[:, None] | is_away) & (is_away | has_played[rows, table])
        total[rows, table] += np.where(is_away, lowest[:, None], expected) * counts
        count[rows, table] += counts
    return np.where(count > 0, total / np.maximum(count, 1), -np.inf)


def find_places(now: Seasons, settings: dict[str, Any]) -> tuple[Floats, Floats]:
    """Return the place of the bot in question, and that among all but the friend; shared ones count as their mean."""
    is_swiss = settings["format"] == "swiss"
    lost, played = np.zeros(len(now.chance)), np.zeros(len(now.chance))
    for table, away in zip(now.tables, now.absent, strict=True):
        lost += away == FRIEND
        played += (table == FRIEND).any(1) & (away < 0)
    gone = (played < lost) & (settings.get("withdrawals") == "half")
    first = np.round(table_values(now, gone, by_score=is_swiss), 9)
    second = buchholz(now, first) if is_swiss else np.zeros_like(first)
    third = table_values(now, gone, by_score=False) if is_swiss else second
    first[gone, FRIEND] = -np.inf
    own = [each[:, [ME]] for each in (first, second, third)]
    over = (first > own[0]) | (
        (first == own[0]) & ((second > own[1]) | ((second == own[1]) & (third > own[2])))
    )
    level = (first == own[0]) & (second == own[1]) & (third == own[2])
    value = over + level / 2
    return value.sum(1) + 0.5, np.delete(value, FRIEND, 1).sum(1) + 0.5


def buchholz(now: Seasons, scores: Floats) -> Floats:
    total, count = np.zeros_like(scores), np.zeros_like(scores)
    rows = np.arange(len(scores))[:, None]
    for table, away in zip(now.tables, now.absent, strict=True):
        own = scores[rows, table]
        counts = (away < 0)[:, None]
        total[rows, table] += (own.sum(1, keepdims=True) - own) * counts
        count[rows, table] += counts * (table.shape[1] - 1)
    return np.round(np.where(count > 0, total / np.maximum(count, 1), -np.inf), 9)


def check_with_product(now: Seasons, settings: dict[str, Any]) -> None:
    """Compare the means of the first seasons with those of the product's table."""
    by_score = settings["format"] == "swiss"
    values = table_values(now, np.zeros(len(now.chance), bool), by_score=by_score)
    for season in range(CHECKED):
        results, missed = [], []
        for table, points, away in zip(now.tables, now.points, now.absent, strict=True):
            bots = tuple(PLAYERS[bot] for bot in table[season])
            if away[season] >= 0:
                missed.append((bots, (PLAYERS[away[season]],)))
                continue
            gained = tuple(int(each) for each in points[season])
            ranks = tuple(1 + sum(other > own for other in gained) for own in gained)
            results.append(LoggedResult(1, "m", bots, gained, ranks, ("COMPLETED",) * len(bots)))
        byes = [(1, PLAYERS[bot]) for bot in range(BOTS) for _ in range(now.byes[season, bot])]
        for row in rank_entrants(results, PLAYERS, byes=byes, missed=missed):
            own = row.score if by_score else row.points
            assert abs(own - values[season, PLAYERS.index(row.bot)]) < 1e-5, (season, row)


# A knockout has no means: the product's bracket itself


def knockout_places(settings: dict[str, Any], seasons: int, plan: Plan) -> tuple[Floats, Floats]:
    found: list[tuple[float, float]] = []
    chance, generator = begin(seasons, 8).chance, np.random.default_rng(2)
    for season in range(seasons):
        schedule = schedule_of(league_of(**settings, seed=str(season)))
        now = Seasons(chance[season : season + 1], [], [], [], np.zeros((1, BOTS), int))
        so_far = SoFar({}, set(), {}, {})
        while due := schedule.due_matches(so_far):
            for match in due:
                table = np.array([[PLAYERS.index(bot) for bot in match.bots]])
                repeat = match.id.count(
                    "."
                )  # the rest play on without the absent bot, and that is another match
                play_match(now, match.round - 1, table, honest if repeat else plan, generator)
                if (away := now.absent[-1][0]) >= 0:
                    for attempt in (match.id, f"{match.id}.2"):
                        so_far.voids.add(attempt)  # type: ignore[attr-defined]
                        so_far.absences[attempt] = (PLAYERS[away],)  # type: ignore[index]
                    continue
                gained = tuple(int(each) for each in now.points[-1][0])
                ranks = tuple(1 + sum(other > own for other in gained) for own in gained)
                ended = ("COMPLETED",) * len(gained)
                so_far.results[match.id] = LoggedResult(1, "m", match.bots, gained, ranks, ended)  # type: ignore[index]
        places, at = {}, 1
        for group in schedule.final_order(so_far):  # type: ignore[attr-defined]
            places |= dict.fromkeys(group, at + (len(group) - 1) / 2)
            at += len(group)
        own = places[PLAYERS[ME]]
        found.append((own, own - (places[PLAYERS[FRIEND]] < own)))
    return tuple(np.array(found).T)  # type: ignore[return-value]


def places_after(settings: dict[str, Any], seasons: int, name: str) -> tuple[Floats, Floats]:
    plan = PLANS.get(name, honest)
    if name == "half":
        settings = settings | {"withdrawals": "half"}
    if settings["format"] == "knockout":
        return knockout_places(settings, seasons, plan)
    now = (play_swiss if settings["format"] == "swiss" else play_fixed)(settings, seasons, plan)
    check_with_product(now, settings)
    return find_places(now, settings)


def describe(gains: Floats) -> str:
    bound = gains.mean() + BOUND_Z * gains.std(ddof=1) / len(gains) ** 0.5
    return f"{gains.mean():+.3f}  bound {bound:+.3f}"


def main() -> None:
    """Print a line for each format, number of seats and plan."""
    seasons = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    sizes = [int(each) for each in sys.argv[2:] if each.isdigit()] or [2, 3, 4]
    for form in [each for each in sys.argv[2:] if each in FORMATS] or FORMATS:
        for seats in sizes:
            more = {"advance": 2} if form == "knockout" and seats == 4 else {}
            settings = {"entrants": ENTRANTS, "seats": seats, "deals": "none", **FORMATS[form], **more}
            if form == "swiss" and seats == 3:
                settings["rounds"] = 3
            base = places_after(settings, seasons, "honest")
            for name in PLANS:
                if form == "gauntlet" and name in OF_FRIENDS:
                    continue
                every, without = (
                    before - after
                    for before, after in zip(base, places_after(settings, seasons, name), strict=True)
                )
                rest = f"  without the friend {describe(without)}" if name in OF_FRIENDS else ""
                print(
                    f"{form:12} {seats} seats  {name:9} {seasons} seasons  gain {describe(every)}{rest}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
