"""`seatwise ctl audit`: shows the audit log, or exports its lines for `seatwise verify`."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from datetime import UTC, datetime

from seatwise.v1 import access_service_pb2 as pb
from seatwise.v1.access_service_pb2_grpc import AccessServiceStub
from seatwise_server.cli import asking, table
from seatwise_server.cli.asking import Call, next_page

AUDIT_HELP = (
    "list what admins did and what they were refused; with --json as lines that `seatwise verify` checks"
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    asking.add_arguments(parser)
    parser.add_argument(
        "--after",
        type=int,
        default=0,
        metavar="SEQ",
        help="begin after the entry with this seq (default: the oldest)",
    )
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
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


def _list_entries(ask: Call, after: int) -> Iterator[pb.AuditEntry]:
    token = str(after)
    while token:
        page = ask("ListAuditEntries", pb.ListAuditEntriesRequest(page_size=1000, page_token=token))
        yield from page.entries
        token = next_page(token, page)


def _row_of(entry: pb.AuditEntry) -> list[str]:
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
