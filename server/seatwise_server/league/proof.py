"""Checks a published season: that its matches are those of the settings, and that its table follows from the results."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, replace
from itertools import repeat, takewhile
from typing import Any

from seatwise.season import DRAWS, BadSeason, Bundle, check_keys, fault_at
from seatwise_server.competition.designs.cyclic_design import cycle_length
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.knockout import Knockout
from seatwise_server.competition.schedules.schedule import (
    MISSES_OF_WALK_OVER,
    RoundDraw,
    Schedule,
    ScheduledMatch,
    SoFar,
    attempt_ids,
    follow_attempts,
)
from seatwise_server.competition.schedules.swiss import Swiss
from seatwise_server.league.par import par_of
from seatwise_server.league.rules import LARGEST_TABLE, MOST_ROUNDS, is_repeat, schedule_of, started_by
from seatwise_server.league.season_files import format_json
from seatwise_server.league.season_log import EntrantChange, Season, Void
from seatwise_server.league.settings import League, OtherVersion
from seatwise_server.league.table import standings_of

LONGEST_TABLE_ID = 64
"""The most characters of a table's id. A schedule's own ids look like r12-t3.2."""
VOIDS_FOR_A_RESULT, MOST_VOIDS = 3, 1_000
"""The most void matches: the first number for each match that counts, plus the second number.

Void matches have no record, so any number of them is quickly forged.
"""
RESULT_KEYS = frozenset({"table", *(each.name for each in fields(LoggedResult))})
VOID_KEYS = ("table", "match", "reason", "absent", "excuse")
CHANGE_KEYS = ("player", "kind", "why", "results")
DRAW_KEYS = frozenset(each.name for each in fields(RoundDraw))
"""The keys of a line of each file."""


def check_table(bundle: Bundle) -> None:
    """Recompute the season. Raises `BadSeason` for the first thing that does not follow from what precedes it."""
    league = _read_league(bundle)
    results = dict(_read_results(bundle))
    _check_pars(bundle, results.values())
    season = Season("", results, _read_voids(bundle, {result.match for result in results.values()}))
    season.entrant_changes = list(_read_entrant_changes(league, bundle, len(results)))
    _check_length(league, len(results) + len(season.voids) // MISSES_OF_WALK_OVER)
    schedule = _make_schedule(league)
    season.draws = _read_draws(bundle, league, schedule)
    _check_deals(bundle, _check_played(schedule, season.so_far), results)
    _check_voids(schedule, season)
    right = standings_of(league, season.so_far)
    published = bundle.read_json("standings.json")
    wanted = json.loads(format_json(right))
    if not _is_same(published, wanted):
        raise BadSeason(f"standings.json: {_first_difference(published, wanted, '')}")


def _read_league(bundle: Bundle) -> League:
    try:
        return League.from_json(bundle.read_json("settings.json"))
    except OtherVersion as other:
        raise BadSeason(f"settings.json: {other}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BadSeason(f"settings.json: these are not settings of a league: {error!r}") from None


def _make_schedule(league: League) -> Schedule:
    try:
        return schedule_of(league)
    except ValueError as bad:  # including `BadSchedule`
        raise BadSeason(f"settings.json: {bad}") from None


def _check_length(league: League, matches: int) -> None:
    """Check that the season is not too short for its settings, before the schedule is computed.

    `matches` have a result, are lost by walk-over or were given up, each of these after `MISSES_OF_WALK_OVER` void attempts or more.
    A forged season may have any settings, and a long schedule takes long to compute. Each entrant plays at least
    one match, or sits out where a table is not full. Each round takes at least one match; in round robin and Swiss
    it takes as many as there are full tables.
    """
    entrants, most = len(league.entrants), matches + 1
    if entrants > LARGEST_TABLE * most:
        why = f"settings.json: there are {entrants} entrants, too many for {matches} played matches"
        raise BadSeason(why)
    if league.format == "ab-test":
        most = MOST_ROUNDS
    elif league.format in ("round-robin", "swiss"):
        most = most // max(1, entrants // max(1, league.seats)) + 1
    # of a round robin, 0 rounds are as many as it takes until all have met
    has_cycle = league.format == "round-robin" and league.seats > 0
    rounds = league.rounds or (cycle_length(entrants, league.seats) if has_cycle else 0)
    if not 0 <= rounds <= most:
        raise BadSeason(f"settings.json: rounds is {rounds}, which does not fit {matches} played matches")


def _read_voids(bundle: Bundle, counted: Collection[str]) -> list[Void]:
    """Return the void attempts. None of them is one of the `counted` matches."""
    voids: dict[str, Void] = {}
    matches = set(counted)
    for number, void in enumerate(bundle.read_json_lines("voids.jsonl"), start=1):
        table = _table_in(void, "voids.jsonl", number)
        check_keys(void, VOID_KEYS, f"voids.jsonl: line {number}")
        try:
            found = Void.from_json(void)
        except KeyError as error:
            raise fault_at("voids.jsonl", number, f"the key {error} is missing") from None
        except ValueError as error:
            raise fault_at("voids.jsonl", number, str(error)) from None
        if table in voids:
            raise fault_at("voids.jsonl", number, f"{table} was void already")
        if found.match in matches:
            raise fault_at("voids.jsonl", number, f"{found.match!r:.80} is another match of this season")
        voids[table] = found
        matches.add(found.match)
        if len(voids) > VOIDS_FOR_A_RESULT * len(counted) + MOST_VOIDS:
            why = f"voids.jsonl: more than {len(voids) - 1} void matches, and {len(counted)} that count"
            raise BadSeason(why)
    return list(voids.values())


def _table_in(line: Mapping[str, Any], file: str, number: int) -> str:
    table = line.get("table")
    if not isinstance(table, str) or len(table) > LONGEST_TABLE_ID:
        raise fault_at(file, number, f"table is {_shorten_json(table)}, which no schedule has")
    return table


def _read_results(bundle: Bundle) -> Iterator[tuple[str, LoggedResult]]:
    seen: dict[str, int] = {}
    for number, line in enumerate(bundle.read_json_lines("results.jsonl"), start=1):
        try:
            result = LoggedResult.from_json(line)
        except (ValueError, OverflowError) as error:
            raise fault_at("results.jsonl", number, str(error)) from None
        table = _table_in(line, "results.jsonl", number)
        check_keys(line, RESULT_KEYS, f"results.jsonl: line {number}")
        first = seen.setdefault(table, number)
        if first != number:
            raise fault_at("results.jsonl", number, f"{table} was played in line {first} already")
        yield table, result


def _check_pars(bundle: Bundle, results: Collection[LoggedResult]) -> None:
    """Check the par scores. Anyone with the record can compute them: the par bot is published and makes no random choice."""
    if not any(result.par for result in results):
        return
    for result, line in zip(results, bundle.read_lines("records.jsonl"), strict=True):
        right = par_of(json.loads(line)) or ()
        if result.par and result.par != right:
            why = f"par is {_shorten_json(list(result.par))}; for these deals it is {_shorten_json(list(right))}"
            raise fault_at("results.jsonl", result.seq, why)


def _read_draws(bundle: Bundle, league: League, schedule: Schedule) -> dict[int, RoundDraw]:
    """The stored draw of each round of a Swiss tournament. It is checked by its rules, and never drawn here."""
    draws: dict[int, RoundDraw] = {}
    for number, line in enumerate(bundle.read_json_lines(DRAWS) if bundle.has_draws else (), start=1):
        try:
            draws[number] = RoundDraw.from_json(line, len(league.entrants))
        except ValueError as error:
            raise fault_at(DRAWS, number, str(error)) from None
        check_keys(line, DRAW_KEYS, f"{DRAWS}: line {number}")
        if draws[number].round != number:
            raise fault_at(DRAWS, number, f"round is {draws[number].round}")
    wanted = schedule.rounds if isinstance(schedule, Swiss) else 0
    if len(draws) != wanted:
        raise BadSeason(f"{DRAWS}: there are draws of {len(draws)} rounds, and the schedule stores {wanted}")
    return draws


def _check_played(schedule: Schedule, season: SoFar) -> dict[str, ScheduledMatch]:
    """Check that all matches were played in the order in which they were due, and no others. Return the match of each result."""
    results, known = season.results, dict[str, LoggedResult]()
    so_far = replace(season, results=known)
    scheduled: dict[str, ScheduledMatch] = {}
    while due := schedule.due_matches(so_far):
        played = [match for match in due if match.id in results]
        if not played:
            why = f"results.jsonl: the match {due[0].id} between {', '.join(due[0].bots)} is missing"
            raise BadSeason(why)
        for match in played:
            _check_match(match, results[match.id])
            known[match.id], scheduled[match.id] = results[match.id], match
    if isinstance(schedule, Swiss) and (fault := schedule.find_draw_fault(so_far)):
        raise BadSeason(f"{DRAWS}: {fault}")
    under_way = {match.id: match for match in started_by(schedule, len(results))}
    for table, result in results.items():
        if table not in known:
            scheduled[table] = _check_late(table, result, under_way)
    return scheduled


def _check_voids(schedule: Schedule, season: Season) -> None:
    """Check that each void attempt fits the schedule and its bots, and that it is settled, unless a test was decided before."""
    if not season.voids:
        return
    so_far = season.so_far
    goes_on = isinstance(schedule, Knockout)
    bots = {match.id: match.bots for match in schedule.known_matches(so_far)}
    under_way = {match.id.partition(".")[0] for match in started_by(schedule, MOST_ROUNDS)}
    for void in sorted(season.voids, key=lambda void: void.table):
        match = void.table.partition(".")[0]
        attempts = list(takewhile(so_far.voids.__contains__, attempt_ids(match)))
        found = follow_attempts(match, so_far, goes_on=goes_on)
        is_settled = found.attempt is None or match in under_way or (found.absent and match in bots)
        if match not in bots or void.table not in attempts or void.table in season.results or not is_settled:
            raise BadSeason(f"voids.jsonl: {void.table} is not a void match of the schedule")
        if strange := set(void.absent).difference(bots[match]):
            why = f"voids.jsonl: {void.table} was not missed by {min(strange)!r:.80}: its bots are others"
            raise BadSeason(why)


def _read_entrant_changes(league: League, bundle: Bundle, results: int) -> Iterator[EntrantChange]:
    """Yield the changes, and check that an entrant is given up before it is let back. Both may happen any number of times."""
    before, is_out = 0, dict.fromkeys(league.players, False)
    for number, change in enumerate(bundle.read_json_lines("entrants.jsonl"), start=1):
        player, kind, at_result = change.get("player"), change.get("kind"), change.get("results")
        if (
            not isinstance(player, str)
            or player not in is_out
            or kind != ("let_back" if is_out[player] else "given_up")
        ):
            raise fault_at("entrants.jsonl", number, f"{player!r:.60} cannot be {kind!r:.20} here")
        check_keys(change, CHANGE_KEYS, f"entrants.jsonl: line {number}")
        if not isinstance(change.get("why"), str):
            raise fault_at("entrants.jsonl", number, "why must be a text")
        if type(at_result) is not int or not before <= at_result <= results:
            raise fault_at("entrants.jsonl", number, f"results is {at_result!r:.20}; the log has {results}")
        before, is_out[player] = at_result, not is_out[player]
        yield EntrantChange(player, kind == "let_back", change["why"], at_result)


def _check_late(table: str, result: LoggedResult, under_way: Mapping[str, ScheduledMatch]) -> ScheduledMatch:
    if table not in under_way:
        why = f"{table} ({result.match}) is not in the schedule of these settings"
        raise fault_at("results.jsonl", result.seq, why)
    _check_match(under_way[table], result)
    return under_way[table]


def _check_match(match: ScheduledMatch, result: LoggedResult) -> None:
    if result.bots != match.bots:
        who = ", ".join(match.bots)
        why = f"{match.id} is between {who}, not {', '.join(result.bots)}"
        raise fault_at("results.jsonl", result.seq, why)


def _check_deals(
    bundle: Bundle, scheduled: Mapping[str, ScheduledMatch], results: Mapping[str, LoggedResult]
) -> None:
    """Check that matches that should share a deal do share it, that no others do, and each match's place in its set.

    That all records of one set have its seed was checked with the records.
    """
    season, names = "", dict[str, str]()
    for (table, result), place in zip(results.items(), _read_deal_sets(bundle, results), strict=True):
        match = scheduled[table]
        _check_deal(match, result)
        if not match.deal or not place:
            continue
        of = result.deal.removesuffix(f"-{match.deal.set}")
        if of != (season := season or of):
            raise fault_at("results.jsonl", result.seq, f"{match.id} has a deal of {of}, not of {season}")
        if names.setdefault(place["seed"], result.deal) != result.deal:
            first = names[place["seed"]]
            raise fault_at("results.jsonl", result.seq, f"{match.id} has the same deal as the set {first}")
        wanted = (match.deal.number, match.deal.size)
        if (found := (place["number"], place["size"])) != wanted:
            told = f"{match.id} is match {found[0]} of {found[1]} of its set, and must be {wanted[0]} of {wanted[1]}"
            raise fault_at("records.jsonl", result.seq, told)


def _read_deal_sets(bundle: Bundle, results: Mapping[str, LoggedResult]) -> Iterator[Mapping[str, Any]]:
    """Yield what each record says of the set of its deal; nothing if its deal is not shared."""
    if not any(result.deal for result in results.values()):
        yield from repeat({}, len(results))
        return
    for line in bundle.read_lines("records.jsonl"):
        yield json.loads(line).get("deal_set", {})


def _check_deal(match: ScheduledMatch, result: LoggedResult) -> None:
    """Check the name of a match's deal.

    A void match that was the last of its deal is repeated with cards of its own, because the old ones are known.
    """
    wanted = match.deal.set if match.deal else ""
    if result.deal.endswith(f"-{wanted}") if wanted else not result.deal:
        return
    if result.deal or not is_repeat(match.id):
        wants = f"of the set {wanted}" if wanted else "of its own"
        why = f"{match.id} has a deal {wants}, not {result.deal or 'of its own'}"
        raise fault_at("results.jsonl", result.seq, why)


def _is_same(one: Any, other: Any) -> bool:
    """Compare two values as JSON. `==` would not do, because to it `true` is 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _first_difference(published: Any, right: Any, where: str) -> str:
    """Return the first difference of two values, in words."""
    if isinstance(published, dict) and isinstance(right, dict) and published.keys() == right.keys():
        pairs = [(f"{where}.{key}".strip("."), published[key], right[key]) for key in right]
    elif isinstance(published, list) and isinstance(right, list) and len(published) == len(right):
        both = enumerate(zip(published, right, strict=True))
        pairs = [(f"{where}[{place}]", one, other) for place, (one, other) in both]
    else:
        what = where or "all of it"
        return f"{what} is {_shorten_json(published)}; the results give {_shorten_json(right)}"
    place, one, other = next(pair for pair in pairs if not _is_same(*pair[1:]))
    return _first_difference(one, other, place)


def _shorten_json(value: Any) -> str:
    """Return the first 120 characters of the value as JSON."""
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= 120 else f"{text[:120]}..."
