"""`seatwise ctl`: manages the processes of a server."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any

import grpc

from seatwise.cli import arguments
from seatwise.cli.command import Command
from seatwise.v1 import access_service_pb2, bot_service_pb2
from seatwise.v1 import admin_service_pb2 as pb
from seatwise.v1.access_service_pb2_grpc import AccessServiceStub
from seatwise.v1.admin_service_pb2_grpc import AdminServiceStub
from seatwise.v1.bot_service_pb2_grpc import BotServiceStub
from seatwise_server.cli import access_tokens, asking, audit_log, certificates, check, health, owners, table
from seatwise_server.cli.asking import Call

MOST_LISTED = 1000


def configure(parser: ArgumentParser) -> None:
    """Add the verbs and their arguments."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    health.configure(verbs.add_parser("health", help=health.HEALTH_HELP, description=health.HEALTH_HELP))
    _add_verb(verbs, "referees", "list the referees, their matches and their free tables", _list_referees)
    _add_verb(verbs, "matches", "list the matches that are not over, and their referees", _list_matches)
    _add_verb(verbs, "leases", "list the leases, their holders and the remaining time", _list_leases)
    check.configure(verbs.add_parser("check", help=check.CHECK_HELP, description=check.CHECK_HELP))
    access_tokens.configure(
        verbs.add_parser("token", help=access_tokens.TOKENS_HELP, description=access_tokens.TOKENS_HELP)
    )
    for name, help_text, add_verbs in (
        ("invite", owners.INVITES_HELP, owners.configure_invites),
        ("owner", owners.OWNERS_HELP, owners.configure_owners),
    ):
        add_verbs(verbs.add_parser(name, help=help_text, description=help_text))
    audit_log.configure(
        verbs.add_parser("audit", help=audit_log.AUDIT_HELP, description=audit_log.AUDIT_HELP)
    )
    text = "erase an owner: the name, the addresses and the meaning of pseudonyms; bots, records and the audit log stay"
    erase = _add_verb(verbs, "erase-owner", text, _erase_owner, AccessServiceStub)
    erase.add_argument("owner", help="the owner as it was registered")
    drain = _add_verb(
        verbs, "drain", "tell a referee to take no new matches and finish those it has", _drain_referee
    )
    drain.add_argument(
        "referee",
        type=arguments.name_parser("referees"),
        help="name of the referee, as `seatwise ctl referees` shows it",
    )
    void = _add_verb(verbs, "void", "end a match without a result", _void_match)
    void.add_argument(
        "match", type=arguments.name_parser("matches"), help="name of the match: matches/7f3k..., or 7f3k..."
    )
    void.add_argument("--reason", required=True, metavar="TEXT", help="the reason, which everyone can read")
    certificates.configure(
        verbs.add_parser(
            "certificates", help=certificates.CERTIFICATES_HELP, description=certificates.CERTIFICATES_HELP
        )
    )
    text = "forget the no-shows of a bot, and let it wait in the queues again"
    forgive = _add_verb(verbs, "forgive", text, _forgive_bot)
    forgive.add_argument("bot", help="name of the bot: bots/NAME/versions/1")
    text = "delete a bot for good: its token, its place in queues and its owner go; its name and its records stay"
    delete = _add_verb(verbs, "delete-bot", text, _delete_bot, BotServiceStub)
    delete.add_argument("bot", help="name of the bot: bots/NAME/versions/1")


def _add_verb(
    verbs: Any,
    name: str,
    text: str,
    act: Callable[[Any, Namespace], None],
    stub_of: Callable[[grpc.Channel], object] = AdminServiceStub,
) -> ArgumentParser:
    return asking.add_service_verb(verbs, stub_of, name, text, act)


def run(args: Namespace) -> int:
    """Run the verb and return the exit code. Raises `SeatwiseError` if the server refuses the call."""
    code: int = args.run(args)
    return code


def _list_referees(ask: Call, args: Namespace) -> None:
    found = ask("ListReferees", pb.ListRefereesRequest()).referees
    columns = ("referee", "address", "state", "matches", "free", "silent s")
    _show_rows("Referees", columns, [_referee_row(each) for each in found], found, args)


def _referee_row(each: pb.Referee) -> list[str]:
    state = pb.Referee.State.Name(each.state).removeprefix("STATE_").lower()
    counts = [str(each.matches), str(each.free_tables), f"{each.silent_ms / 1000:.1f}"]
    return [each.name, each.address or "the lobby's", state, *counts]


def _list_matches(ask: Call, args: Namespace) -> None:
    request = pb.ListLiveMatchesRequest(page_size=MOST_LISTED)
    found = list(asking.read_entries(ask, "ListLiveMatches", request, "matches"))
    rows = [[it.match, it.referee or "waits", str(it.epoch), str(it.deaths)] for it in found]
    _show_rows("Matches that are not over", ("match", "referee", "epoch", "deaths"), rows, found, args)


def _list_leases(ask: Call, args: Namespace) -> None:
    found = ask("ListLeases", pb.ListLeasesRequest()).leases
    rows = [[each.what, each.holder, f"{each.left_ms / 1000:.1f}"] for each in found]
    _show_rows("Leases", ("what", "holder", "left s"), rows, found, args)


def _drain_referee(ask: Call, args: Namespace) -> None:
    referee = ask("DrainReferee", pb.DrainRefereeRequest(name=args.referee)).referee
    _print_answer(referee, f"{referee.name} takes no new matches and finishes its {referee.matches}", args)


def _void_match(ask: Call, args: Namespace) -> None:
    match = ask("VoidMatch", pb.VoidMatchRequest(name=args.match, reason=args.reason)).match
    over = match.HasField("end_time")
    _print_answer(
        match, f"{match.name} was already over" if over else f"{match.name} will end: {args.reason}", args
    )


def _forgive_bot(ask: Call, args: Namespace) -> None:
    bot = ask("ForgiveNoShows", pb.ForgiveNoShowsRequest(bot=args.bot)).bot
    was_off = bot.HasField("off_queues")
    _print_answer(
        bot, f"{bot.name} is back on the queues" if was_off else f"{bot.name} was not off the queues", args
    )


def _delete_bot(ask: Call, args: Namespace) -> None:
    answer = ask("DeleteBot", bot_service_pb2.DeleteBotRequest(name=args.bot))
    aborted = len(answer.aborted_matches)
    ended = f"{aborted} created match{'es' * (aborted != 1)} that waited for it ended as ABORTED"
    _print_answer(answer, f"{args.bot} is deleted; {ended}", args)


def _erase_owner(ask: Call, args: Namespace) -> None:
    answer = ask("EraseOwner", access_service_pb2.EraseOwnerRequest(owner=args.owner))
    text = f"the owner is erased; it had {len(answer.bots)} bots, which stay, and {len(answer.access_tokens)} access tokens"
    _print_answer(answer, text, args)


def _show_rows(
    title: str, columns: tuple[str, ...], rows: list[list[str]], found: Any, args: Namespace
) -> None:
    if args.json:
        for each in found:
            print(json.dumps(asking.to_dict(each)))
    elif rows:
        table.show_table(title, columns, rows)
    else:
        print("There are none.")


def _print_answer(message: Any, text: str, args: Namespace) -> None:
    print(json.dumps(asking.to_dict(message)) if args.json else text)


COMMAND = Command(
    "ctl", "manage the referees, matches and leases of a server", configure, run, shows_answers=True
)
