"""`seatwise ladder`: creates, shows, checks, exports and closes ladders."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any, BinaryIO

from seatwise.cli import arguments
from seatwise.cli.arguments import Command
from seatwise.errors import NotAllowedError, NotFoundError, ServerFullError, UsageError, WrongStateError
from seatwise.kits import DEFAULT_GAME
from seatwise.v1 import ladder_pb2, ladder_service_pb2_grpc, match_service_pb2, match_service_pb2_grpc
from seatwise.v1 import ladder_service_pb2 as pb
from seatwise_referee.ending import Ending
from seatwise_referee.games.registry import GAMES
from seatwise_server.cli import asking, table
from seatwise_server.cli.asking import Call
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.standings.ranking import format_ranges
from seatwise_server.competition.statistics.fairness import check_fairness
from seatwise_server.ladder.bot_form import rate_log
from seatwise_server.ladder.ladder_worker import (
    MOST_CHECKED_RESULTS,
    check_ladder,
    describe_look,
    strengths_by_bot,
)

PAGE_SIZE = 1000
RECORD_START = b'{"chain":"'

Act = Callable[[Call, Namespace], int]


def configure(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    create = _add_verb(verbs, "create", "create a ladder (scope operate)", _create_ladder, as_admin=True)
    create.add_argument(
        "--game", default=DEFAULT_GAME, choices=list(GAMES), help="game to play (default: %(default)s)"
    )
    create.add_argument("--seats", type=int, default=4, help="seats at each table (default: %(default)s)")
    asking.add_rules(create)
    create.add_argument("--owners-together", action="store_true", help="let bots of one owner meet")
    follows = "begin the next season of this ladder, with all its settings"
    create.add_argument("--follows", type=arguments.name_parser("ladders"), metavar="LADDER", help=follows)
    _add_verb(verbs, "list", "list the ladders", _list_ladders, named=False)
    show = _add_verb(verbs, "show", "show the standings", _show_standings)
    text = "fetch all results, compute the ratings here and compare them to the last digit"
    show.add_argument("--recompute", action="store_true", help=text)
    history = _add_verb(verbs, "history", "show the latest results", _show_history)
    text = "only results of this bot: bots/NAME/versions/V, or NAME for all its versions"
    history.add_argument("--bot", help=text)
    asking.add_count(history, "results")
    text = "print all results, oldest first, one line of JSON each; or write records"
    export = _add_verb(verbs, "export", text, _export)
    text = "write the records to this file, one a line; a file that is there is continued"
    export.add_argument("--records", type=arguments.parse_output, metavar="FILE", help=text)
    text = f"test in the newest {MOST_CHECKED_RESULTS} results whether bots help each other, and whether seats are equal"
    for verb in (export, _add_verb(verbs, "checks", text, _show_checks)):
        asking.add_span(verb, "results that came")
    text = "close a ladder: its results are final, and its table stays (scope operate)"
    _add_verb(verbs, "close", text, _close_ladder, as_admin=True)
    text = (
        "readmit a bot that was taken off the ladder (scope operate; or the bot's own token, 10 minutes after the first time and "
        "2 hours after the second)"
    )
    asking.add_bot(_add_verb(verbs, "reinstate", text, _reinstate_bot, as_admin=True))


def _add_verb(
    verbs: Any, name: str, text: str, act: Act, *, named: bool = True, as_admin: bool = False
) -> ArgumentParser:
    parser = asking.add_verb(verbs, name, text, act=act, as_admin=as_admin)
    if named:
        text = "name of the ladder: ladders/main, or main"
        parser.add_argument("ladder", type=arguments.name_parser("ladders"), help=text)
    return parser


def run(args: Namespace) -> int:
    """Run the verb and return the exit code. Raises `SeatwiseError` if the server refuses the call."""
    stub = ladder_service_pb2_grpc.LadderServiceStub
    with asking.open_service(args, stub, as_admin=args.as_admin) as ask:
        act: Act = args.act
        return act(ask, args)


def _create_ladder(ask: Call, args: Namespace) -> int:
    if args.follows:
        others = (args.option, args.free_ms, args.bank_ms, args.owners_together)
        if any(others) or (args.game, args.seats) != (DEFAULT_GAME, 4):
            raise UsageError(f"--follows takes all settings from {args.follows}; leave the others out")
        ladder: ladder_pb2.Ladder = ask("GetLadder", pb.GetLadderRequest(name=args.follows)).ladder
        ladder.name, ladder.follows = args.ladder, args.follows
    else:
        ladder = ladder_pb2.Ladder(
            name=args.ladder,
            game=f"games/{args.game}",
            seats=args.seats,
            options=asking.parse_options(args.option),
            time_control=asking.time_control_of(args, args.game),
            owners_together=args.owners_together,
        )
    made = ask("CreateLadder", pb.CreateLadderRequest(ladder=ladder)).ladder
    asking.show_entries("Ladders", LADDER_COLUMNS, _ladder_row, [made], args)
    if not args.json:
        game = made.game.removeprefix("games/")
        print(f"Bots join it with: seatwise bot FILE.py:CLASS --game {game} --queue {made.name}")
    return 0


def _close_ladder(ask: Call, args: Namespace) -> int:
    closed = ask("CloseLadder", pb.CloseLadderRequest(name=args.ladder)).ladder
    asking.show_entries("Ladders", LADDER_COLUMNS, _ladder_row, [closed], args)
    if not args.json:
        print(f"Its final table follows within seconds: seatwise ladder show {args.ladder} --recompute")
    return 0


def _list_ladders(ask: Call, args: Namespace) -> int:
    found = list(asking.read_entries(ask, "ListLadders", pb.ListLaddersRequest(), "ladders"))
    none = "There are no ladders yet. Create one with: seatwise ladder create NAME"
    asking.show_entries("Ladders", LADDER_COLUMNS, _ladder_row, found, args, none)
    return 0


def _ladder_row(each: ladder_pb2.Ladder) -> list[str]:
    return [
        each.name.removeprefix("ladders/"),
        each.game.removeprefix("games/"),
        str(each.seats),
        " ".join(f"{name}={value}"[:24] for name, value in sorted(each.options.items())),
        " ".join(f"{pace} {ms}" for pace, ms in sorted(each.time_control.free_ms.items())),
        str(each.results),
        table.format_time(each.create_time),
        str(each.season),
        table.format_time(each.close_time),
    ]


def _show_standings(ask: Call, args: Namespace) -> int:
    name = args.ladder
    request = pb.ListStandingsRequest(ladder=name, page_size=PAGE_SIZE)
    pages = list(asking.read_pages(ask, "ListStandings", request))
    standings = [each for page in pages for each in page.standings]
    shown = pages[0].results
    if args.json:
        for each in standings:
            print(json.dumps(asking.to_dict(each)))
    elif standings:
        show_standings(f"{name} after {shown} results", standings)
    else:
        print(_why_empty(name, ask("GetLadder", pb.GetLadderRequest(name=name)).ladder.results))
    return _compare_with_results(ask, name, standings, shown) if args.recompute else 0


def _why_empty(name: str, results: int) -> str:
    """Return why the table is empty. It follows the results within seconds."""
    if results:
        return f"{name} has {results} results, and its first table is being computed: try again in a moment"
    return (
        f"No match on {name} is over yet; the table is computed within seconds of the first. "
        f"Start a bot with: seatwise bot FILE.py:CLASS --queue {name}"
    )


def _compare_with_results(ask: Call, name: str, standings: Sequence[ladder_pb2.Standing], shown: int) -> int:
    """Compute the ratings from the results alone; return 1 if any of them differs."""
    results = [result for result in _list_results(ask, name) if result.seq <= shown]
    found = sorted(
        (bot, rating.mu, rating.sigma, rating.matches) for bot, rating in rate_log(results).ranked_bots()
    )
    told = sorted((each.bot, each.mu, each.sigma, each.matches) for each in standings)
    if found != told:
        wrong = next((one for one, other in zip(told, found, strict=False) if one != other), "its length")
        print(f"The table does not follow from its {len(results)} results; the first difference is {wrong}")
        return 1
    print(f"Recomputed from {len(results)} results: every rating is the same to the last digit.")
    return _compare_final_table(ask, name, standings, results)


def _compare_final_table(
    ask: Call, name: str, standings: Sequence[ladder_pb2.Standing], results: Sequence[LoggedResult]
) -> int:
    """Compute the strengths of a closed ladder, and return 1 if the table is not final, or has any other line or order."""
    ladder = ask("GetLadder", pb.GetLadderRequest(name=name)).ladder
    if not ladder.HasField("close_time"):
        return 0
    if len(results) != ladder.results:
        print(f"{name} is closed with {ladder.results} results; its final table is not computed yet")
        return 1
    told = [
        (each.bot, [each.strength, each.low, each.high, each.provisional, [*each.not_distinguishable_from]])
        for each in standings
    ]
    found = list(strengths_by_bot(results).items())
    if found != told[: len(found)]:
        wrong = next(one[0] for one, other in zip_longest(told, found, fillvalue=("",)) if one != other)
        print(f"The final table does not follow from its results; the first difference is {wrong}")
        return 1
    print(
        "The ladder is closed, and this is its final table: every strength and every place is the same, too."
    )
    return 0


def _list_results(ask: Call, name: str) -> Iterator[LoggedResult]:
    request = pb.ListLadderResultsRequest(ladder=name, page_size=PAGE_SIZE)
    for each in asking.read_entries(ask, "ListLadderResults", request, "results"):
        yield LoggedResult(
            each.place, each.match, tuple(each.bots), tuple(each.points), tuple(each.ranks),
            tuple(each.endings), each.chain.hex(), log_ms=each.log_time.ToMilliseconds(),
        )  # fmt: skip


def _show_history(ask: Call, args: Namespace) -> int:
    request = pb.ListLadderResultsRequest(ladder=args.ladder, page_size=PAGE_SIZE, newest_first=True)
    found: list[ladder_pb2.LadderResult] = []
    for each in asking.read_entries(ask, "ListLadderResults", request, "results"):
        if len(found) >= args.count:
            break
        is_met = any(bot == args.bot or bot.startswith(f"bots/{args.bot}/versions/") for bot in each.bots)
        if is_met or not args.bot:
            found.append(each)
    none = "There are no results yet."
    asking.show_entries(f"{args.ladder}, newest first", HISTORY, _history_row, found, args, none)
    return 0


def _export(ask: Call, args: Namespace) -> int:
    results = _list_span(ask, args)
    if args.records:
        return _write_records(args, list(results))
    for result in results:
        print(json.dumps(result.to_json(), sort_keys=True, separators=(",", ":")))
    return 0


def _list_span(ask: Call, args: Namespace) -> Iterator[LoggedResult]:
    for result in _list_results(ask, args.ladder):
        at = datetime.fromtimestamp(result.log_ms / 1000, UTC)
        if (not args.since or at >= args.since) and (not args.until or at < args.until):
            yield result


def _write_records(args: Namespace, results: Sequence[LoggedResult]) -> int:
    """Append the records that the file does not have yet; return 1 if some cannot be had."""
    refused: Counter[str] = Counter()
    stub = match_service_pb2_grpc.MatchServiceStub
    with _open_records(args.records) as out, asking.open_service(args, stub, as_admin=args.as_admin) as ask:
        held = _held_matches(out, args.records)
        missing = [result.match for result in results if result.match not in held]
        with table.show_progress("records", len(missing)) as advance:
            for match in missing:
                try:
                    _append_record(out, _fetch_record(ask, match))
                except (NotFoundError, WrongStateError, NotAllowedError) as error:
                    refused[error.reason] += 1
                advance(1)
    added = len(missing) - refused.total()
    print(f"{args.records}: {added} records added, {len(results) - len(missing)} were there")
    for reason, count in sorted(refused.items()):
        print(f"{count} cannot be had ({reason}): they were deleted after --keep-records, or are withheld")
    return 1 if refused else 0


@contextmanager
def _open_records(path: str) -> Iterator[BinaryIO]:
    try:
        file = open(path, "a+b")  # noqa: SIM115  # closed below, without a second fault
    except OSError as bad:
        raise UsageError(f"--records {path}: {bad.strerror}") from None
    try:
        yield file
    finally:
        with suppress(OSError):  # each record was written already, or has failed
            file.close()


def _append_record(file: BinaryIO, record: str) -> None:
    try:
        file.write(record.encode() + b"\n")
        file.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, file.name) from None


def _fetch_record(ask: Call, match: str) -> str:
    while True:
        try:
            return str(ask("GetRecord", match_service_pb2.GetRecordRequest(name=match)).record)
        except ServerFullError as error:
            time.sleep(error.retry_after or 1.0)


def _held_matches(file: BinaryIO, name: str) -> set[str]:
    """Return the matches whose records the file has, and cut a last line off that is not whole.

    Raises `UsageError` for a file of something else, and leaves it as it is.
    """
    found: set[str] = set()
    file.seek(0)
    for line in file:
        if not line.startswith(RECORD_START[: len(line)]):
            raise UsageError(f"--records {name}: it holds something else than records; name another file")
        if not line.endswith(b"\n"):
            file.truncate(file.tell() - len(line))
            break
        found.add(json.loads(line)["match"])
    return found


def _show_checks(ask: Call, args: Namespace) -> int:
    results = list(_list_span(ask, args))
    if args.since or args.until:
        results = results[-MOST_CHECKED_RESULTS:]
        found = check_fairness(results)
        looked = f"From {len(results)} results. Chance names something in one of twenty such spans of honest bots, so choose few."
    else:
        found, looked = check_ladder(results), describe_look(len(results))
    if args.json:
        print(json.dumps(asdict(found)))
        return 0
    for remark in found.list_remarks() or ["No figure is remarkable."]:
        print(remark)
    rows = [
        [shorten_bot(each.taker), shorten_bot(each.giver), f"{each.gain:+.2f}", str(each.matches),
         f"{each.corrected_p_value:.3f}", each.found_by]
        for each in found.favours[:MOST_SHOWN_PAIRS]
    ]  # fmt: skip
    if rows:
        table.show_table("The most surprising pairs", FAVOURS, rows)
    print(f"{looked} It is no verdict.")
    return 0


def _reinstate_bot(ask: Call, args: Namespace) -> int:
    bot = asking.full_bot_name(args.bot)
    ask("ReinstateBot", pb.ReinstateBotRequest(ladder=args.ladder, bot=bot))
    if not args.json:
        print(f"{bot} may play on {args.ladder} again")
    return 0


LADDER_COLUMNS = ("ladder", "game", "seats", "options", "free ms", "results", "created", "season", "closed")
STANDINGS_COLUMNS = ("bot", "#", "matches", "rating", "strength (95 %)", "like", "")
FAVOURS = ("bot", "where this one sits", "points a match", "matches", "p", "most surprising")
MOST_SHOWN_PAIRS = 8
HISTORY = ("match", "logged", "result", "bots", "points", "ranks", "")

LEGEND = """\
rating: openskill's rating, which decides the pairing. strength: a fit to all results at once,
on Elo's scale (100 more means ahead in 64 of 100 matches), with an interval that holds the
truth in 95 of 100 cases, however often you look. ? marks a provisional one, whose interval is
wide. The table is ordered by strength; after few matches a bot stands lower, by what its
interval is too wide. like: the places of neighbours that the results do not distinguish
from the bot. At the end of a line: the kind of the bot, as its author or an operator says."""


def show_standings(title: str, standings: Sequence[ladder_pb2.Standing]) -> None:
    """Print one line for each bot, the best first, and why some are off the ladder."""
    places = {each.bot: each.place for each in standings}
    table.show_table(title, STANDINGS_COLUMNS, [_standing_row(each, places) for each in standings])
    print(LEGEND)
    for each in standings:
        if each.off_reason:
            print(f"{shorten_bot(each.bot)} is off the ladder: {each.off_reason}")


def _standing_row(each: ladder_pb2.Standing, places: dict[str, int]) -> list[str]:
    marks = [table.describe_kind(each.kind), "?" * each.provisional, "off" * bool(each.off_reason)]
    return [
        shorten_bot(each.bot),
        str(each.place),
        str(each.matches),
        f"{each.mu:.1f}",
        f"{each.strength:+.0f} ({each.low:+.0f} {each.high:+.0f})",
        format_ranges(sorted(places[bot] for bot in each.not_distinguishable_from if bot in places)),
        " ".join(filter(None, marks)),
    ]


def _history_row(each: ladder_pb2.LadderResult) -> list[str]:
    seats = zip(each.bots, each.endings, strict=True)
    exits = [f"{shorten_bot(bot)} {ending.lower()}" for bot, ending in seats if ending != Ending.COMPLETED]
    return [
        each.match,
        table.format_time(each.log_time),
        str(each.place),
        " ".join(map(shorten_bot, each.bots)),
        " ".join(map(str, each.points)),
        " ".join(map(str, each.ranks)),
        ", ".join(exits),
    ]


def shorten_bot(bot: str) -> str:
    """Shorten a bot's name: bots/greedy/versions/2 is greedy:2."""
    return bot.removeprefix("bots/").replace("/versions/", ":")


COMMAND = Command("ladder", "create ladders and show their standings", configure, run, shows_answers=True)
