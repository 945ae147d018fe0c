"""`seatwise match`: creates, shows and ends matches from a terminal."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from typing import Any

from google.protobuf.json_format import MessageToDict

from seatwise.cli import arguments
from seatwise.cli.arguments import Command, security_of
from seatwise.cli.tokens import own_bots, token_at
from seatwise.client import Client
from seatwise.codec.json_values import unwrap_json_values
from seatwise.errors import UsageError
from seatwise.kits import DEFAULT_GAME
from seatwise.v1 import match_pb2, match_service_pb2
from seatwise_server.cli import asking, table
from seatwise_server.cli.asking import follow_pages, full_bot_name, parse_options

MATCH_COLUMNS = ("match", "created", "game", "state", "bots", "points", "ranks")


def configure(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    text = "create a match between named bots (scope operate)"
    _configure_create(asking.add_verb(verbs, "create", text, act=_create_match))
    _configure_list(asking.add_verb(verbs, "list", "list matches, newest first", act=_list_matches))
    for name, text, act in (
        ("show", "show one match", _show_match),
        ("record", "print the record of a finished match", _print_record),
        ("watch", "watch a match as a spectator", _watch_match),
        ("abort", "end a match without a result (scope operate)", _abort_match),
    ):
        verb = asking.add_verb(verbs, name, text, act=act)
        help_text = "name of the match: matches/7f3k..., or 7f3k..."
        verb.add_argument("match", type=arguments.name_parser("matches"), help=help_text)
    for name, text, act in (
        ("set", "show a set of duplicate deals", _show_set),
        ("close-set", "end a set whose matches will not all be played (scope operate)", _close_set),
    ):
        verb = asking.add_verb(verbs, name, text, act=act)
        help_text = "name of the set: sets/final-1, or final-1"
        verb.add_argument("set", type=arguments.name_parser("sets"), help=help_text)


def _configure_create(create: ArgumentParser) -> None:
    create.add_argument("game", help=f"name of the game: games/{DEFAULT_GAME}, or {DEFAULT_GAME}")
    create.add_argument(
        "bots", nargs="+", metavar="BOT", help="by seat: bots/NAME/versions/V, or NAME for version 1"
    )
    asking.add_rules(create)
    text = "make this match I of the N matches of a set of duplicate deals, such as sets/final:2/4"
    create.add_argument("--deal-set", type=_parse_deal_set, metavar="SET:I/N", help=text)


def _configure_list(listing: ArgumentParser) -> None:
    asking.add_count(listing, "matches")
    text = "only matches of this bot: bots/NAME/versions/V, or NAME for version 1"
    listing.add_argument("--bot", help=text)
    text = "only matches of the bots that have registered themselves from this machine"
    listing.add_argument("--mine", action="store_true", help=text)
    listing.add_argument("--game", help=f"only matches of this game, such as {DEFAULT_GAME}")
    listing.add_argument("--competition", metavar="NAME", help="only matches of ladders/NAME or leagues/NAME")
    states = ["waiting", "seating", "running", "finished", "voided"]
    listing.add_argument("--state", choices=states, help="only matches in this state")
    asking.add_span(listing, "matches that were created")


def run(args: Namespace) -> int:
    """Run the verb and return the exit code. Raises `SeatwiseError`."""
    token = token_at(args.address, args.token)  # that of this machine's admin is for this machine only
    with Client(args.address, token=token, **security_of(args)) as client:
        return int(args.act(client, args))


def _create_match(client: Client, args: Namespace) -> int:
    game = args.game.removeprefix("games/")
    bots, options = list(map(full_bot_name, args.bots)), parse_options(args.option)
    limits = asking.time_control_of(args, game)
    return _print_match(client.create_match(f"games/{game}", bots, options, limits, args.deal_set), args)


def _parse_deal_set(text: str) -> match_pb2.DealSet:
    parts = re.fullmatch(r"(.+):(\d{1,4})/(\d{1,4})", text)
    if parts is None:
        raise ArgumentTypeError(f"{text!r}: write SET:I/N, as in sets/final:2/4")
    name, number, size = parts.groups()
    return match_pb2.DealSet(name=name, number=int(number), size=int(size))


def _list_matches(client: Client, args: Namespace) -> int:
    matches = _read_mine(client, args) if args.mine else _read_matches(client, args, args.bot or "")
    if args.json:
        for match in matches:
            print(json.dumps(_to_dict(match)))
    elif matches:
        table.show_table("Matches, newest first", MATCH_COLUMNS, [_match_row(match) for match in matches])
        _print_withheld(matches)
    else:
        filters = (args.bot, args.mine, args.game, args.competition, args.state, args.since, args.until)
        print("No match fits." if any(filters) else "There are no matches yet.")
    return 0


def _read_mine(client: Client, args: Namespace) -> list[match_pb2.Match]:
    """Return the newest matches of all bots whose tokens are on this machine, each once."""
    names = own_bots()
    if not names:
        raise UsageError("--mine: no bot has registered itself from this machine; name one with --bot")
    found = {match.name: match for name in names for match in _read_matches(client, args, name)}
    newest = sorted(found.values(), key=lambda match: match.create_time.ToNanoseconds(), reverse=True)
    return newest[: args.count]


def _read_matches(client: Client, args: Namespace, bot: str) -> list[match_pb2.Match]:
    matches: list[match_pb2.Match] = []
    filters: dict[str, Any] = {name: getattr(args, name) or "" for name in ("game", "competition", "state")}
    filters |= {"bot": full_bot_name(bot) if bot else ""}
    filters |= {"created_from": args.since, "created_before": args.until}
    for page in follow_pages(
        lambda token: client.list_matches(min(args.count - len(matches), 1000), token, **filters)
    ):
        matches.extend(page)
        if len(matches) >= args.count:
            break
    return matches


def _show_match(client: Client, args: Namespace) -> int:
    return _print_match(client.get_match(args.match), args)


def _print_record(client: Client, args: Namespace) -> int:
    print(client.get_record(args.match))
    return 0


def _abort_match(client: Client, args: Namespace) -> int:
    return _print_match(client.abort_match(args.match), args)


def _show_set(client: Client, args: Namespace) -> int:
    found = client.get_deal_set(args.set)
    if args.json:
        print(json.dumps(_to_dict(found)))
        return 0
    matches = [client.get_match(name) for name in found.matches]
    table.show_table(args.set, MATCH_COLUMNS, list(map(_match_row, matches)))
    state = "is over" if found.over else "is not over, so its records are withheld"
    print(f"{len(found.matches)} of {found.size} matches were created; the set {state}.")
    _print_withheld(matches)
    return 0


def _close_set(client: Client, args: Namespace) -> int:
    is_over = client.close_deal_set(args.set)
    text = f"{args.set} is {'over' if is_over else 'closed, and over as soon as its running matches are'}."
    print(json.dumps({"set": args.set, "over": is_over}) if args.json else text)
    return 0


def _watch_match(client: Client, args: Namespace) -> int:
    for seen in client.watch_match(args.match):
        if args.json:
            print(json.dumps(_to_dict(seen)), flush=True)
        elif seen.HasField("match"):
            print("  ".join(_match_row(seen.match)), flush=True)
        else:
            _print_view(seen)
    return 0


def _print_view(seen: match_service_pb2.WatchMatchResponse) -> None:
    from seatwise.kits.codecs import describe_seen

    field = seen.WhichOneof("view")
    text = describe_seen(field, getattr(seen, field)) if field else "sitting down"
    print(f"{seen.at_ms / 1000:8.3f} s  {text}", flush=True)


def _print_match(match: match_pb2.Match, args: Namespace) -> int:
    if args.json:
        print(json.dumps(_to_dict(match)))
    else:
        table.show_table(match.name, MATCH_COLUMNS, [_match_row(match)])
    return 0


def _print_withheld(matches: Sequence[match_pb2.Match]) -> None:
    if withheld := sum(match.result_withheld for match in matches):
        print(f"Results withheld until their deal sets are over: {withheld}")


def _to_dict(message: Any) -> dict[str, Any]:
    plain: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return unwrap_json_values(plain, message.DESCRIPTOR)  # type: ignore[no-any-return]  # a dict stays one


def _match_row(match: match_pb2.Match) -> list[str]:
    state = match_pb2.Match.State.Name(match.state).removeprefix("STATE_").lower()
    unknown = "withheld" if match.result_withheld else "-"
    return [
        match.name,
        table.format_time(match.create_time),
        match.game.removeprefix("games/"),
        f"{state} ({match.void_reason})" if match.void_reason else state,
        " ".join(bot.removeprefix("bots/").replace("/versions/", ":") for bot in match.bots),
        " ".join(map(str, match.result.points)) or unknown,
        " ".join(map(str, match.result.ranks)) or unknown,
    ]


COMMAND = Command(
    "match", "create, list, show and watch the matches of a server", configure, run, shows_answers=True
)
