"""`seatwise ctl`: manages the processes of a server."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from seatwise.cli import arguments
from seatwise.cli.arguments import Command, add_security_arguments
from seatwise.defaults import ADDRESS
from seatwise.errors import EncryptionError, from_rpc
from seatwise.link.dialing import explain_failure, open_blocking_channel
from seatwise.v1 import access_service_pb2, bot_service_pb2
from seatwise.v1 import admin_service_pb2 as pb
from seatwise.v1.access_service_pb2_grpc import AccessServiceStub
from seatwise.v1.admin_service_pb2_grpc import AdminServiceStub
from seatwise.v1.bot_service_pb2_grpc import BotServiceStub
from seatwise_server.cli import asking, backup, check, owners, table
from seatwise_server.cli.asking import Call, next_page
from seatwise_server.tls.made_certificates import issue_certificate
from seatwise_server.tls.tls_files import TlsError, read_identity

MOST_LISTED = 1000


def configure(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    _add_health_arguments(verbs.add_parser("health", help=HEALTH_HELP, description=HEALTH_HELP))
    _add_verb(verbs, "referees", "list the referees, their matches and their free tables", _list_referees)
    _add_verb(verbs, "matches", "list the matches that are not over, and their referees", _list_matches)
    _add_verb(verbs, "leases", "list the leases, their holders and the remaining time", _list_leases)
    backup.configure(lambda name, text: verbs.add_parser(name, help=text, description=text))
    check.configure(verbs.add_parser("check", help=check.CHECK_HELP, description=check.CHECK_HELP))
    owners.configure_tokens(
        verbs.add_parser("token", help=owners.TOKENS_HELP, description=owners.TOKENS_HELP)
    )
    for name, help_text, add_verbs in (
        ("invite", owners.INVITES_HELP, owners.configure_invites),
        ("owner", owners.OWNERS_HELP, owners.configure_owners),
    ):
        add_verbs(verbs.add_parser(name, help=help_text, description=help_text))
    _add_audit_arguments(verbs.add_parser("audit", help=AUDIT_HELP, description=AUDIT_HELP))
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
    _add_certificate_arguments(
        verbs.add_parser("certificates", help=CERTIFICATES_HELP, description=CERTIFICATES_HELP)
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


HEALTH_HELP = "ask whether a process is ready: Redis answers, and a referee has free tables"
HEALTH_TIMEOUT_S = 3.0

_Status = health_pb2.HealthCheckResponse.ServingStatus


def _add_health_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--address", default=ADDRESS, help="address of the process (default: %(default)s)")
    parser.add_argument(
        "--service", default="", metavar="NAME",
        help="ask about one service, such as seatwise.v1.PlayService (default: the process as a whole)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    add_security_arguments(parser)
    parser.set_defaults(run=_show_health)


def _show_health(args: Namespace) -> int:
    """Return 0 if the server is ready, and 1 if it is not or does not answer."""
    status = _fetch_status(args)
    if args.json:
        print(json.dumps({"status": status}))
    else:
        print(status, file=sys.stdout if status == "SERVING" else sys.stderr)
    return 0 if status == "SERVING" else 1


def _fetch_status(args: Namespace) -> str:
    endpoint, security = asking.server_of(args, token="")
    with open_blocking_channel(endpoint, security) as channel:
        request = health_pb2.HealthCheckRequest(service=args.service)
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(request, timeout=HEALTH_TIMEOUT_S)
        except grpc.RpcError as error:
            explained = explain_failure(endpoint, security, from_rpc(error))
            if isinstance(explained, EncryptionError):
                raise explained from error
            return f"no answer from {args.address}: {explained}"
        return str(_Status.Name(answer.status))


AUDIT_HELP = (
    "list what admins did and what they were refused; with --json as lines that `seatwise verify` checks"
)


def _add_audit_arguments(parser: ArgumentParser) -> None:
    asking.add_arguments(parser)
    parser.add_argument(
        "--after",
        type=int,
        default=0,
        metavar="SEQ",
        help="begin after the entry with this seq (default: the oldest)",
    )
    parser.set_defaults(run=_list_audit)


def _list_audit(args: Namespace) -> int:
    """List the entries, oldest first."""
    with asking.open_service(args, AccessServiceStub) as ask:
        entries = _list_entries(ask, max(0, args.after))
        if args.json:
            for entry in entries:
                print(entry.line)
            return 0
        rows = [_row_of(entry) for entry in entries]
    if rows:
        table.show_table("Audit log", ("seq", "time", "who", "from", "method", "thing", "outcome"), rows)
    else:
        print("There are none.")
    return 0


def _list_entries(ask: Call, after: int) -> Iterator[access_service_pb2.AuditEntry]:
    token = str(after)
    while token:
        page = ask(
            "ListAuditEntries", access_service_pb2.ListAuditEntriesRequest(page_size=1000, page_token=token)
        )
        yield from page.entries
        token = next_page(token, page)


def _row_of(entry: access_service_pb2.AuditEntry) -> list[str]:
    written = json.loads(entry.line)
    at = datetime.fromtimestamp(written["at_ms"] / 1000, UTC)
    who, address = entry.who or written["who"], entry.address or written["from"]
    method = written["method"].rpartition("/")[2]
    return [
        str(written["seq"]),
        f"{at:%Y-%m-%d %H:%M:%S}",
        who,
        address,
        method,
        written["thing"],
        written["outcome"],
    ]


CERTIFICATES_HELP = "sign a certificate for servers with these hosts, by a CA of your own, or renew it"


def _add_certificate_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "hosts", nargs="+", metavar="HOST", help="names and IP addresses by which clients call the server"
    )
    parser.add_argument(
        "--ca",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="folder of the CA; it is made at the first run",
    )
    parser.add_argument(
        "--into",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="folder to write tls.crt, tls.key and ca.crt to",
    )
    parser.add_argument(
        "--readable", action="store_true",
        help="let every user that can open the folder read the key, for a server that runs as another user",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    parser.set_defaults(run=_issue_certificates)


def _issue_certificates(args: Namespace) -> int:
    """Issue the certificate and print the pin of its key; return the exit code."""
    try:
        files = issue_certificate(args.ca, args.into, args.hosts, is_readable=args.readable)
        identity = read_identity(files)
    except TlsError as error:
        print(f"seatwise ctl: {error}", file=sys.stderr)
        return 1
    expires = f"{identity.expires:%Y-%m-%d}"
    if args.json:
        print(json.dumps({"cert": str(files.cert), "pin": identity.pin, "expires": expires}))
    else:
        print(f"{files.cert} for {', '.join(args.hosts)}, until {expires}. Pin of its key: {identity.pin}")
    return 0


COMMAND = Command(
    "ctl", "manage the referees, matches and leases of a server", configure, run, shows_answers=True
)
