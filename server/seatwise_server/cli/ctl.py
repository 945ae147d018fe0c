"""`seatwise ctl`: manages the processes of a server."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

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
from seatwise_server.cli.asking import Call
from seatwise_server.tls.tls_files import TlsError, read_identity

MOST_LISTED = 1000


def configure(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def add_parser(name: str, text: str) -> ArgumentParser:
        added: ArgumentParser = verbs.add_parser(name, help=text, description=text)
        return added

    _add_health_arguments(add_parser("health", HEALTH_HELP))
    _add_verb(verbs, "referees", "list the referees, their matches and their free tables", _list_referees)
    _add_verb(verbs, "matches", "list the matches that are not over, and their referees", _list_matches)
    _add_verb(verbs, "leases", "list the leases, their holders and the remaining time", _list_leases)
    backup.configure(add_parser)
    check.configure(add_parser("check", check.CHECK_HELP))
    owners.configure_tokens(add_parser("token", owners.TOKENS_HELP))
    owners.configure_invites(add_parser("invite", owners.INVITES_HELP))
    owners.configure_owners(add_parser("owner", owners.OWNERS_HELP))
    _add_audit_arguments(add_parser("audit", AUDIT_HELP))
    text = "erase an owner: the name, the addresses and the meaning of pseudonyms; bots, records and the audit log stay"
    erase = asking.add_service_verb(AccessServiceStub, verbs, "erase-owner", text, _erase_owner)
    erase.add_argument("owner", help="the owner as it was registered")
    text = "tell a referee to take no new matches and finish those it has"
    text_of_name = "name of the referee, as `seatwise ctl referees` shows it"
    drain = _add_verb(verbs, "drain", text, _drain_referee)
    drain.add_argument("referee", type=arguments.name_parser("referees"), help=text_of_name)
    void = _add_verb(verbs, "void", "end a match without a result", _void_match)
    void.add_argument(
        "match", type=arguments.name_parser("matches"), help="name of the match: matches/7f3k..., or 7f3k..."
    )
    void.add_argument("--reason", required=True, metavar="TEXT", help="the reason, which everyone can read")
    _add_certificate_arguments(add_parser("certificates", CERTIFICATES_HELP))
    text = "forget the no-shows of a bot, and let it wait in the queues again"
    forgive = _add_verb(verbs, "forgive", text, _forgive_bot)
    forgive.add_argument("bot", help="name of the bot: bots/NAME/versions/1")
    text = "delete a bot for good: its token, its place in queues and its owner go; its name and its records stay"
    delete = asking.add_service_verb(BotServiceStub, verbs, "delete-bot", text, _delete_bot)
    delete.add_argument("bot", help="name of the bot: bots/NAME/versions/1")


_add_verb = partial(asking.add_service_verb, AdminServiceStub)


def run(args: Namespace) -> int:
    """Run the verb and return the exit code. Raises `SeatwiseError` if the server refuses the call."""
    return int(args.run(args))


def _list_referees(ask: Call, args: Namespace) -> None:
    found = ask("ListReferees", pb.ListRefereesRequest()).referees
    columns = ("referee", "address", "state", "matches", "free", "silent s")
    asking.show_entries("Referees", columns, _referee_row, found, args)


def _referee_row(each: pb.Referee) -> list[str]:
    state = pb.Referee.State.Name(each.state).removeprefix("STATE_").lower()
    counts = [str(each.matches), str(each.free_tables), f"{each.silent_ms / 1000:.1f}"]
    return [each.name, each.address or "the lobby's", state, *counts]


def _list_matches(ask: Call, args: Namespace) -> None:
    request = pb.ListLiveMatchesRequest(page_size=MOST_LISTED)
    found = list(asking.read_entries(ask, "ListLiveMatches", request, "matches"))
    columns = ("match", "referee", "epoch", "deaths")
    asking.show_entries("Matches that are not over", columns, _match_row, found, args)


def _match_row(each: pb.LiveMatch) -> list[str]:
    return [each.match, each.referee or "waits", str(each.epoch), str(each.deaths)]


def _list_leases(ask: Call, args: Namespace) -> None:
    found = ask("ListLeases", pb.ListLeasesRequest()).leases
    asking.show_entries("Leases", ("what", "holder", "left s"), _lease_row, found, args)


def _lease_row(each: pb.Lease) -> list[str]:
    return [each.what, each.holder, f"{each.left_ms / 1000:.1f}"]


def _drain_referee(ask: Call, args: Namespace) -> None:
    referee = ask("DrainReferee", pb.DrainRefereeRequest(name=args.referee)).referee
    text = f"{referee.name} takes no new matches and finishes its {referee.matches}"
    asking.show_answer(referee, text, args)


def _void_match(ask: Call, args: Namespace) -> None:
    match = ask("VoidMatch", pb.VoidMatchRequest(name=args.match, reason=args.reason)).match
    done = "was already over" if match.HasField("end_time") else f"will end: {args.reason}"
    asking.show_answer(match, f"{match.name} {done}", args)


def _forgive_bot(ask: Call, args: Namespace) -> None:
    bot = ask("ForgiveNoShows", pb.ForgiveNoShowsRequest(bot=args.bot)).bot
    done = "is back on the queues" if bot.HasField("off_queues") else "was not off the queues"
    asking.show_answer(bot, f"{bot.name} {done}", args)


def _delete_bot(ask: Call, args: Namespace) -> None:
    answer = ask("DeleteBot", bot_service_pb2.DeleteBotRequest(name=args.bot))
    aborted = len(answer.aborted_matches)
    ended = f"{aborted} created match{'es' * (aborted != 1)} that waited for it ended as ABORTED"
    asking.show_answer(answer, f"{args.bot} is deleted; {ended}", args)


def _erase_owner(ask: Call, args: Namespace) -> None:
    answer = ask("EraseOwner", access_service_pb2.EraseOwnerRequest(owner=args.owner))
    text = f"the owner is erased; it had {len(answer.bots)} bots, which stay, and {len(answer.access_tokens)} access tokens"
    asking.show_answer(answer, text, args)


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
    text = "begin after the entry with this seq (default: the oldest)"
    parser.add_argument("--after", type=int, default=0, metavar="SEQ", help=text)
    parser.set_defaults(run=_list_audit)


def _list_audit(args: Namespace) -> int:
    with asking.open_service(args, AccessServiceStub) as ask:
        page_token = str(max(0, args.after))
        request = access_service_pb2.ListAuditEntriesRequest(page_size=1000, page_token=page_token)
        entries = asking.read_entries(ask, "ListAuditEntries", request, "entries")
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


def _row_of(entry: access_service_pb2.AuditEntry) -> list[str]:
    written = json.loads(entry.line)
    at = datetime.fromtimestamp(written["at_ms"] / 1000, UTC)
    who, address = entry.who or written["who"], entry.address or written["from"]
    done = [written["method"].rpartition("/")[2], written["thing"], written["outcome"]]
    return [str(written["seq"]), f"{at:%Y-%m-%d %H:%M:%S}", who, address, *done]


CERTIFICATES_HELP = "sign a certificate for servers with these hosts, by a CA of your own, or renew it"


def _add_certificate_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "hosts", nargs="+", metavar="HOST", help="names and IP addresses by which clients call the server"
    )
    for option, text in (
        ("--ca", "folder of the CA; it is made at the first run"),
        ("--into", "folder to write tls.crt, tls.key and ca.crt to"),
    ):
        parser.add_argument(option, type=Path, required=True, metavar="FOLDER", help=text)
    parser.add_argument(
        "--readable", action="store_true",
        help="let every user that can open the folder read the key, for a server that runs as another user",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    parser.set_defaults(run=_issue_certificates)


def _issue_certificates(args: Namespace) -> int:
    from seatwise_server.tls.made_certificates import issue_certificate

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
